"""MLPClassifier and MLPRegressor: scikit-learn's losses, several solvers, going on, and what they refuse."""

import warnings

import numpy as np
import pytest
from sklearn import neural_network as theirs
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from certifit import CertificateWarning, DataError, MLPClassifier, MLPRegressor, audit, load, save
from certifit.neural_network.output_losses import OUTPUT_LOSSES

X, Y = load_iris(return_X_y=True)
SOLVED = {"hidden_layer_sizes": (4,), "activation": "tanh", "solver": "lbfgs", "alpha": 3.0, "max_iter": 3000}
CLOSE = {"tol": 1e-6, "random_state": 0}


def amounts(targets=1):
    return make_regression(80, 4, n_targets=targets, noise=1.0, random_state=0, coef=False)


@pytest.mark.parametrize("labels", [2, 3])
def test_lbfgs_reaches_the_loss_of_scikit_learn(labels):
    """From the same first weights, at the same penalty; theirs stops a little earlier."""
    rows = labels > Y
    ours = MLPClassifier(**SOLVED, **CLOSE).fit(X[rows], Y[rows])
    peer = theirs.MLPClassifier(**SOLVED, **CLOSE).fit(X[rows], Y[rows])
    assert ours.certificate_.holds
    assert ours.certificate_.kind == "stationary"
    assert ours.loss_ <= peer.loss_ * (1 + 1e-9)
    assert [W.shape for W in ours.coefs_] == [W.shape for W in peer.coefs_]
    assert (ours.n_layers_, ours.n_outputs_, ours.out_activation_) == (
        peer.n_layers_, peer.n_outputs_, peer.out_activation_,
    )  # fmt: skip


def test_without_hidden_layers_the_minimum_is_the_same():
    """Multinomial regression: convex, so both end at the same loss."""
    convex = {**SOLVED, **CLOSE, "hidden_layer_sizes": ()}
    ours, peer = MLPClassifier(**convex).fit(X, Y), theirs.MLPClassifier(**convex).fit(X, Y)
    assert ours.loss_ == pytest.approx(peer.loss_, rel=1e-7)


def test_the_objective_is_scikit_learns_at_its_own_weights():
    w = np.random.default_rng(0).exponential(size=len(X))
    peer = theirs.MLPClassifier(**SOLVED, **CLOSE).fit(X, Y, sample_weight=w)
    found = audit(peer, X, Y, w)
    assert found.objective == pytest.approx(peer.loss_, rel=1e-12)
    ours = MLPClassifier(**SOLVED, **CLOSE).fit(X, Y, sample_weight=w)
    ours.coefs_, ours.intercepts_ = peer.coefs_, peer.intercepts_
    assert ours.objective(X, Y, w).total == pytest.approx(peer.loss_, rel=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_amounts_have_scikit_learns_loss(loss):
    table, y = amounts()
    y = np.abs(y) / 20
    peer = theirs.MLPRegressor(loss, **SOLVED, **CLOSE).fit(table, y)
    assert audit(peer, table, y).objective == pytest.approx(peer.loss_, rel=1e-12)
    ours = MLPRegressor(loss, **SOLVED, **CLOSE).fit(table, y)
    assert ours.certificate_.holds
    assert ours.loss_ <= peer.loss_ * (1 + 1e-6)


def test_the_first_epoch_has_scikit_learns_loss():
    """Of all rows at once the order of rows does not matter, and first weights are the same."""
    one = {"hidden_layer_sizes": (6,), "max_iter": 3, "random_state": 4, "batch_size": 150}
    ours = MLPClassifier(**one).fit(X, Y)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        peer = theirs.MLPClassifier(**one).fit(X, Y)
    np.testing.assert_allclose(ours.loss_curve_, peer.loss_curve_, rtol=1e-10)
    np.testing.assert_allclose(ours.coefs_[0], peer.coefs_[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rule", ["constant", "invscaling", "adaptive"])
def test_gradient_descent_moves_as_scikit_learns(rule):
    one = {
        "hidden_layer_sizes": (3,), "solver": "sgd", "learning_rate": rule, "learning_rate_init": 0.05,
        "max_iter": 60, "random_state": 1, "batch_size": 150, "n_iter_no_change": 2, "tol": 1e-2,
    }  # fmt: skip
    ours = MLPClassifier(**one).fit(X, Y)
    peer = theirs.MLPClassifier(**one).fit(X, Y)
    np.testing.assert_allclose(ours.loss_curve_, peer.loss_curve_, rtol=1e-8)
    assert ours.t_ == peer.t_


def test_digits_are_learnt():
    """8 x 8 digits, a third held out."""
    table, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    table, y = table[order] / 16, y[order]
    model = MLPClassifier((64,), batch_size=32, max_iter=25, learning_rate="flat_cosine", random_state=0)
    model.fit(table[:1200].astype(np.float32), y[:1200])
    assert model.coefs_[0].dtype == np.float32
    assert model.score(table[1200:], y[1200:]) > 0.96
    assert model.certificate_.holds
    assert audit(model, table[:1200].astype(np.float32), y[:1200]).holds


def test_any_number_of_threads_gives_the_same_bits(threads):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(600, 60)).astype(np.float32)
    y = (table[:, :5].sum(axis=1) > 0).astype(int)
    seen = []
    for n in (1, 2, 4):
        threads(n)
        seen.append(MLPClassifier((80,), max_iter=3, batch_size=256, random_state=0).fit(table, y))
    for model in seen[1:]:
        assert all((a == b).all() for a, b in zip(model.coefs_, seen[0].coefs_, strict=True))
        assert model.certificate_ == seen[0].certificate_


def test_rows_with_several_labels():
    table, y = make_multilabel_classification(120, 8, n_classes=3, random_state=0)
    few = {"hidden_layer_sizes": (20,), "max_iter": 10, "random_state": 0}
    model = MLPClassifier(**few).fit(table, y)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        peer = theirs.MLPClassifier(**few).fit(table, y)
    np.testing.assert_allclose(model.loss_curve_, peer.loss_curve_, rtol=1e-8)
    np.testing.assert_array_equal(model.predict(table), peer.predict(table))
    assert model.multilabel_
    assert model.out_activation_ == "logistic"
    assert model.predict_proba(table).shape == (120, 3)
    assert audit(model, table, y).holds
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    with pytest.raises(DataError, match="columns that are not all 0 and 1"):
        model.fit(table, y + np.arange(3))


def test_several_amounts():
    table, y = amounts(3)
    model = MLPRegressor(**{**SOLVED, "activation": "identity"}, **CLOSE).fit(table, y)
    assert model.predict(table).shape == (80, 3)
    assert model.score(table, y) > 0.99
    assert audit(model, table, y).holds


def test_huber_is_not_pulled_by_an_outlier():
    table, y = amounts()
    table, y = StandardScaler().fit_transform(table), y / y.std()
    wild = y.copy()
    wild[0] = 1000.0
    error = {}
    for loss in ("huber", "squared_error"):
        model = MLPRegressor(loss, (), solver="lbfgs", max_iter=2000, **CLOSE).fit(table, wild)
        assert model.certificate_.holds
        error[loss] = np.median(np.abs(model.predict(table) - y))
    assert error["huber"] < 0.2 < error["squared_error"]


def test_class_weights_are_row_weights():
    weight = {0: 1.0, 1: 3.0, 2: 0.5}
    one = MLPClassifier(**SOLVED, **CLOSE, class_weight=weight).fit(X, Y)
    two = MLPClassifier(**SOLVED, **CLOSE).fit(X, Y, sample_weight=[weight[int(label)] for label in Y])
    assert one.loss_ == pytest.approx(two.loss_, rel=1e-9)
    assert audit(one, X, Y).holds


@pytest.mark.parametrize("labels", [2, 3])
def test_smoothed_labels_bound_the_scores(labels):
    """A constant score is best at the smoothed shares, (1 - s) p + s / k; and the checker knows the targets."""
    rows = labels > Y
    smooth = MLPClassifier((), solver="lbfgs", alpha=0.0, label_smoothing=0.2, max_iter=500, **CLOSE)
    smooth.fit(np.zeros((rows.sum(), 1)), Y[rows] // 2 if labels == 3 else Y[rows])
    share = np.array([2 / 3, 1 / 3]) if labels == 3 else np.array([0.5, 0.5])
    np.testing.assert_allclose(smooth.predict_proba(np.zeros((1, 1)))[0], 0.8 * share + 0.1, atol=1e-5)
    model = MLPClassifier((4,), label_smoothing=0.1, clip_norm=1.0, max_iter=5, random_state=0).fit(X[rows], Y[rows])
    assert audit(model, X[rows], Y[rows]).holds
    assert not audit(model.set_params(label_smoothing=0.11), X[rows], Y[rows]).holds


# ---------------------------------------------------------------------------------------------------- going on
@pytest.mark.parametrize("rule", ["cosine", "step"])
def test_a_killed_run_goes_on_from_its_file_with_the_same_bits(tmp_path, rule):
    """Saved after two of four epochs and read again: weights, state and schedule are those of one fit."""
    common = {"batch_size": 32, "max_iter": 4, "tol": 0.0, "random_state": 0, "learning_rate": rule}
    whole = MLPClassifier((5,), **common).fit(X, Y)
    model = MLPClassifier((5,), **common)
    for _ in range(2):
        model.partial_fit(X, Y, [0, 1, 2])
    save(model, tmp_path / "run.certifit")
    model = load(tmp_path / "run.certifit")
    for _ in range(2):
        model.partial_fit(X, Y)
    assert all((a == b).all() for a, b in zip(model.coefs_, whole.coefs_, strict=True))
    assert model.training_state_.checksum == whole.training_state_.checksum


def test_partial_fit_goes_on_where_the_last_epoch_ended():
    """Epochs one by one are the epochs of one fit, if both start from the same seed."""
    steps = MLPClassifier((5,), batch_size=32, max_iter=4, tol=0.0, random_state=0)
    for _ in range(4):
        steps.partial_fit(X, Y, classes=[0, 1, 2])
        assert audit(steps, X, Y).holds
    whole = MLPClassifier((5,), batch_size=32, max_iter=4, tol=0.0, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(steps.coefs_[0], whole.coefs_[0])
    assert steps.training_state_.checksum == whole.training_state_.checksum
    np.testing.assert_array_equal(steps.loss_curve_, whole.loss_curve_)


def test_partial_fit_refuses():
    with pytest.raises(DataError, match="no classes in the first call"):
        MLPClassifier().partial_fit(X, Y)
    model = MLPClassifier((3,), max_iter=1).partial_fit(X, Y, [0, 1, 2])
    with pytest.raises(DataError, match="not fitted on"):
        model.partial_fit(X, Y + 1)
    with pytest.raises(DataError, match="same as on last call"):
        model.partial_fit(X, Y, [0, 1])
    assert not hasattr(MLPClassifier(solver="lbfgs"), "partial_fit")
    with pytest.raises(DataError, match="early_stopping"):
        MLPRegressor(early_stopping=True).partial_fit(X, Y)


def test_a_warm_start_goes_on():
    model = MLPClassifier(**{**SOLVED, "max_iter": 20, "warm_start": True}, **CLOSE)
    losses = []
    for _ in range(3):
        with pytest.warns(CertificateWarning, match=r"stopped by max_iter=20; about \d+ would do"):
            losses.append(model.fit(X, Y).loss_)
    assert losses[0] > losses[1] > losses[2]
    with pytest.raises(DataError, match="layers of the earlier fit"):
        model.set_params(hidden_layer_sizes=(7,)).fit(X, Y)


def test_early_stopping_restores_the_best_weights():
    model = MLPClassifier(
        (30,),
        learning_rate_init=0.05,
        early_stopping=True,
        validation_fraction=0.3,
        n_iter_no_change=8,
        random_state=3,
    ).fit(X, Y)
    assert len(model.validation_scores_) == model.n_iter_ < 200
    assert model.best_validation_score_ == max(model.validation_scores_)
    assert model.best_loss_ is None
    assert audit(model, X, Y).holds


def test_a_fitted_network_prints_its_layers():
    model = MLPClassifier((3,), "tanh", max_iter=1, random_state=0).fit(X, Y)
    lines = [line.split() for line in str(model.summary()).splitlines()[1:]]
    assert lines == [["Dense", "3", "15"], ["Tanh", "3", "0"], ["Dense", "3", "12"], ["all", "27"]]
    assert model.summary().n_parameters == sum(part.size for part in (*model.coefs_, *model.intercepts_))
    with pytest.raises(NotFittedError):
        MLPClassifier().summary()


def test_validation_of_labels_asks_for_every_one():
    """Of each row one label is right and another is predicted too: the likeliest is right, but not the row."""
    scores, Y_held, w = np.array([[2.0, 1.0, -1.0], [-1.0, 3.0, -2.0]]), np.eye(3)[:2], np.array([3.0, 1.0])
    found = [
        MLPClassifier()._validation_score(OUTPUT_LOSSES[name], scores, Y_held, w) for name in ("logistic", "softmax")
    ]
    assert found == [0.25, 1.0]


def test_a_search_that_ends_at_a_kink_says_so():
    """Of ReLUs the loss has kinks; behind tanh there are none, and the same fit is solved."""
    table = StandardScaler().fit_transform(X)
    settings = {"solver": "lbfgs", "max_iter": 5000, "random_state": 0}
    with pytest.warns(CertificateWarning, match=r"gradient.*kink of a ReLU.*'tanh' or 'gelu'"):
        model = MLPClassifier((10,), **settings).fit(table, Y)
    assert model.n_iter_ < 5000
    assert MLPClassifier((10,), "tanh", **settings).fit(table, Y).certificate_.holds


# ------------------------------------------------------------------------------------------------ what is refused
def test_divergence_is_caught_with_the_layer_the_step_and_what_to_try():
    with pytest.raises(DataError, match=r"at step \d+; .* in layer 3 \(Dense\).*learning_rate_init") as caught:
        MLPRegressor(hidden_layer_sizes=(5,), solver="sgd", learning_rate_init=1e300, random_state=0).fit(X, Y)
    assert "diverged" in str(caught.value)


def test_divergence_is_caught_before_numbers_overflow():
    """In float64 a loss may reach 1e274 and be finite; a row that is far off is no divergence."""
    with pytest.raises(DataError, match=r"a loss of .* at step \d+, more than 1e\+10 times the first one.*_init"):
        MLPRegressor(hidden_layer_sizes=(50, 50), solver="sgd", learning_rate_init=1e3, random_state=0).fit(
            X * 1e3, X[:, 0]
        )
    far = X[:, 0].copy()
    far[100] = 1e9
    model = MLPRegressor(hidden_layer_sizes=(5,), batch_size=10, max_iter=3, random_state=0)
    assert np.isfinite(model.fit(X, far).loss_)


def test_a_loss_that_overflows_before_the_first_step_is_no_divergence():
    with pytest.raises(DataError, match=r"at step 0; .*before training begins\. Scale columns and amounts"):
        MLPRegressor(hidden_layer_sizes=(5,), random_state=0).fit(X, Y * 1e300)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function"])
def test_scores_that_overflow_are_no_answers(ask):
    model = MLPClassifier((5,), max_iter=2, random_state=0).fit(X.astype(np.float32), Y)
    rows = X.copy()
    rows[3] *= 1e300
    with pytest.raises(DataError, match="row 3, whose scores overflow in float32"):
        getattr(model, ask)(rows)
    assert np.isfinite(model.predict_proba(np.delete(rows, 3, axis=0))).all()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("learning_rate_init", 0.0), ("learning_rate_init", -1), ("hidden_layer_sizes", (3, 0)), ("alpha", -1.0),
        ("activation", "swish"), ("solver", "newton"), ("batch_size", 0), ("beta_1", 1.0), ("learning_rate", "fast"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(setting, value):
    with pytest.raises(DataError, match=f"{setting}="):
        MLPClassifier(**{setting: value}).fit(X, Y)


def test_a_batch_larger_than_the_table_is_all_of_it():
    with pytest.warns(UserWarning, match="batch_size=1000 for 150 rows"):
        model = MLPClassifier((3,), batch_size=1000, max_iter=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(
        model.coefs_[0], MLPClassifier((3,), batch_size=150, max_iter=2, random_state=0).fit(X, Y).coefs_[0]
    )


def test_amounts_below_zero_have_no_poisson_loss():
    with pytest.raises(DataError, match="negative amount"):
        MLPRegressor("poisson").fit(X, Y - 1.0)


# ---------------------------------------------------------------------------------------------------- the checker
def test_scikit_learns_minibatch_fit_is_judged_by_its_gradient():
    peer = theirs.MLPClassifier((5,), max_iter=300, tol=1e-3, random_state=0).fit(X, Y)
    found = audit(peer, X, Y)
    assert found.kind == "stationary"
    assert not found.holds
    assert "largest entry of the gradient" in found.failures()[0]


def test_a_wrong_gradient_would_be_noticed(monkeypatch):
    """Central differences hold the checker's own chain rule to account."""
    from certifit.checkers.neural_network import plain_layers

    whole = plain_layers.activate

    def wrong(name, z):
        value, slope = whole(name, z)
        return value, 1.1 * slope

    model = MLPClassifier(**SOLVED, **CLOSE).fit(X, Y)
    monkeypatch.setattr(plain_layers, "activate", wrong)
    failed = audit(model, X, Y).failures()
    assert any("central differences" in words for words in failed)


@pytest.mark.parametrize(("loss", "activation"), [(None, "relu"), ("poisson", "tanh"), ("huber", "tanh")])
def test_a_row_of_enormous_weight_neither_fails_nor_hides_a_wrong_gradient(monkeypatch, loss, activation):
    """The heavy row's loss is next to 0, and its rounding as large as all other rows' loss."""
    from certifit.checkers.neural_network import plain_layers

    rng, w = np.random.default_rng(14), np.where(np.arange(20) == 0, 1e12, 1.0)
    rows, common = 10 * rng.normal(size=(20, 2)), {"hidden_layer_sizes": (9,), "activation": activation}
    common |= {"max_iter": 40, "solver": "lbfgs", "random_state": 0}
    y = np.exp(rng.normal(size=20)) * 100 if loss else np.arange(20) % 2
    model = MLPRegressor(loss, **common) if loss else MLPClassifier(**common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 40 steps are too few
        model.fit(rows, y, sample_weight=w)
    assert not [words for words in model.certificate_.failures() if "central" in words]
    whole = plain_layers.PlainDense.slopes

    def light_rows_wrong(layer, delta, memory):
        return whole(layer, 1.001 * delta if len(delta) > 1 else delta, memory)

    monkeypatch.setattr(plain_layers.PlainDense, "slopes", light_rows_wrong)
    assert [words for words in audit(model, rows, y, w).failures() if "central" in words]


def test_early_stopping_of_too_few_rows_says_so():
    table, y = load_iris(return_X_y=True)
    with pytest.raises(DataError, match="early_stopping with 10 rows"):
        MLPClassifier((3,), early_stopping=True).fit(table[45:55], y[45:55])


def test_weights_of_another_type_are_seen():
    """Rounded to float32 the weights of 'lbfgs' have the same loss to all digits: its slopes are next to 0."""
    model = MLPClassifier((4,), "tanh", solver="lbfgs", alpha=1.0, max_iter=500, random_state=0).fit(X, Y)
    model.coefs_ = [W.astype(np.float32) for W in model.coefs_]
    with pytest.raises(DataError, match="float64, as 'lbfgs' leaves them"):
        audit(model, X, Y)
