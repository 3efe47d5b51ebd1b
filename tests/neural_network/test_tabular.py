"""The tabular preset: its layers against definitions and differences, its certificate, files and settings."""

import numpy as np
import onnxruntime
import pytest
from scipy.stats import norm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import RobustScaler

from certifit import DataError, MLPClassifier, MLPRegressor, audit, load, robust_radius, save, save_onnx
from certifit.checkers.neural_network.adapter import read_perceptron
from certifit.checkers.neural_network.network_loss import network_scores
from certifit.checkers.neural_network.plain_columns import robust_columns
from certifit.neural_network.output_losses import OUTPUT_LOSSES
from certifit.neural_network.tabular import tabular_groups, tabular_network
from certifit.neural_network.training.network_rows import NetworkRows
from certifit.neural_network.training.optimisers import Optimiser, OptimiserRules
from certifit.neural_network.training.slopes import full_slopes
from certifit.rows import ArrayRows

X, KINDS = load_iris(return_X_y=True)
FEW = {"preset": "tabular", "hidden_layer_sizes": (8,), "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return MLPClassifier(**FEW).fit(X, KINDS)


def test_slopes_of_all_its_layers_are_central_differences():
    rng = np.random.default_rng(0)
    network = tabular_network((rng.normal(size=2), np.array([1.5, 0.0])), (3,), 2, "gelu")
    rows = NetworkRows(rng.normal(size=(9, 2)), np.eye(2)[rng.integers(0, 2, 9)], rng.exponential(size=9))
    params, step = 0.5 * rng.normal(size=network.n_parameters), 1e-6

    def loss(p):
        return full_slopes(network, OUTPUT_LOSSES["softmax"], p, rows).loss

    wanted = [(loss(params + e) - loss(params - e)) / (2 * step) for e in step * np.eye(len(params))]
    np.testing.assert_allclose(
        full_slopes(network, OUTPUT_LOSSES["softmax"], params, rows).slopes, wanted, rtol=1e-6, atol=1e-7
    )


def test_scores_are_those_of_the_layers_written_out(fitted):
    z = (X - fitted.center_) / fitted.scale_
    z = z / np.sqrt(1 + z**2 / 9)
    (W, V, U, S), (a, b, c, s) = (
        [np.float64(part) for part in parts] for parts in (fitted.coefs_, fitted.intercepts_)
    )
    embedded = [
        np.column_stack([z[:, j], np.cos(np.outer(z[:, j], W[j]) + a[j])]) @ V[j] + b[j] for j in range(X.shape[1])
    ]
    hidden = np.hstack(embedded) @ U + c
    wanted = hidden * norm.cdf(hidden) @ S + s
    np.testing.assert_allclose(fitted._scores(X), wanted, atol=1e-12)
    np.testing.assert_allclose(network_scores(read_perceptron(fitted), X), wanted, atol=1e-12)


def test_columns_are_scaled_as_a_robust_scaler_does():
    rows = np.random.default_rng(0).normal(size=(41, 3)) ** 3  # quartiles of 41 rows are rows themselves
    scaler = RobustScaler().fit(rows)
    for found, wanted in zip(robust_columns(ArrayRows(rows)), (scaler.center_, scaler.scale_), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    # A weight counts a row as often; equal quartiles give way to half the range; a constant column has none.
    odd = np.array([[0.0, 7.0], [0.0, 7.0], [4.0, 7.0]])
    center, scale = robust_columns(ArrayRows(odd, None, np.array([2.0, 8.0, 1.0])))
    assert (center.tolist(), scale.tolist()) == ([0.0, 7.0], [2.0, 0.0])


@pytest.mark.parametrize("name", ["center_", "scale_", "coefs_", "intercepts_", "loss_"])
def test_what_is_changed_is_seen(fitted, name, tmp_path):
    assert fitted.certificate_.kind == "exact"
    assert audit(fitted, X, KINDS).holds
    save(fitted, tmp_path / "m.certifit")
    wrong = load(tmp_path / "m.certifit")
    np.testing.assert_array_equal(wrong.predict_proba(X), fitted.predict_proba(X))
    value = getattr(wrong, name)
    if isinstance(value, list):
        value[0].flat[0] += 1e-4
    else:
        setattr(wrong, name, value * (1 + 1e-9))
    assert not audit(wrong, X, KINDS).holds


def test_a_scaling_by_other_rows_is_seen_although_its_loss_is_right(fitted, tmp_path):
    save(fitted, tmp_path / "m.certifit")
    wrong = load(tmp_path / "m.certifit")
    wrong.scale_ = 2 * wrong.scale_
    wrong.loss_ = wrong.objective(X, KINDS).total
    assert audit(wrong, X, KINDS).failures() != []
    assert all("center_" in failure for failure in audit(wrong, X, KINDS).failures())


def test_amounts_of_any_unit_are_learnt_alike():
    rows, y = load_diabetes(return_X_y=True)
    here = {**FEW, "max_iter": 20, "hidden_layer_sizes": (32,)}
    plain = MLPRegressor(**here).fit(rows, y)
    assert plain.score(rows, y) > LinearRegression().fit(rows, y).score(rows, y) - 0.03
    other = MLPRegressor(**here).fit(rows, 1e4 * y + 1e6)
    np.testing.assert_allclose((other.predict(rows) - 1e6) / 1e4, plain.predict(rows), rtol=1e-3)
    assert audit(other, rows, 1e4 * y + 1e6).holds


def test_onnx_runtime_says_the_same(fitted, tmp_path):
    constant = np.column_stack([X, np.full(len(X), 3.0)])
    for model, rows in ((fitted, X), (MLPClassifier(**FEW).fit(constant, KINDS), constant)):
        save_onnx(model, tmp_path / "m.onnx")
        session = onnxruntime.InferenceSession((tmp_path / "m.onnx").read_bytes(), providers=["CPUExecutionProvider"])
        found = session.run(None, {"rows": rows.astype(np.float32)})[0]
        np.testing.assert_allclose(found, model.predict_proba(rows), atol=3e-6)


def test_settings_that_are_given_win_over_the_preset():
    model = MLPClassifier(preset="tabular", hidden_layer_sizes=(5,), solver="sgd", max_iter=2, random_state=0)
    model.fit(X, KINDS)
    used = model._in_use()
    assert (used.solver, used.activation, used.label_smoothing, used.max_iter) == ("sgd", "gelu", 0.1, 2)
    assert [b.size for b in model.intercepts_] == [4 * 16, 4 * 4, 5, 3]
    assert model.get_params()["activation"] == "relu"
    assert audit(model, X, KINDS).holds


def test_a_factor_of_the_rate_is_the_neural_tangent_parametrisation():
    network = tabular_network((np.zeros(2), np.ones(2)), (4,), 1, "relu")
    groups = tabular_groups(network, 10.0)
    factors = [round(group.factor, 12) for group in groups]
    narrow = [round(1 / np.sqrt(fans), 12) for fans in (17, 8, 4)]
    embedding = [0.1, 0.01, round(0.1 * narrow[0], 12), 0.01]
    assert factors == [*embedding, narrow[1], 0.1, round(10 * narrow[2], 12), 1.0]
    assert sum(group.end - group.start for group in groups) == network.n_parameters
    # One step of Adam is as long as its rate, whatever the slope; decay knows no factor.
    rules = OptimiserRules("adamw", 0.5, "constant", 0.0, False, 0.5, 0.9, 0.999, 1e-30, 0.2)
    optimiser = Optimiser.begin(rules, np.ones(network.n_parameters), network.n_weights, seed=0)
    optimiser.groups = groups
    optimiser.step(np.full(network.n_parameters, 1e-3), 1.0, 1.0)
    for group in groups:
        wanted = 1 - 0.5 * group.factor - 0.5 * 0.2 * group.penalised
        np.testing.assert_allclose(optimiser.params[group.start : group.end], wanted, rtol=1e-9)


def test_what_the_preset_cannot_do_is_refused(fitted):
    with pytest.raises(DataError, match="quartiles of all rows"):
        MLPClassifier(**FEW).partial_fit(X, KINDS, classes=[0, 1, 2])
    with pytest.raises(DataError, match="no two lines bound a cosine"):
        robust_radius(fitted, X[:2])
    with pytest.raises(DataError, match="tabular"):
        MLPClassifier(preset="tables").fit(X, KINDS)
