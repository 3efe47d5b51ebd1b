"""Nyström features and their landmarks: known solutions, proved errors, corners, sabotage."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn import kernel_approximation
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from certifit.checkers.kernel_approximation.adapter import audit_nystroem
from certifit.exceptions import DataError, NoSolutionError
from certifit.kernel_approximation.landmarks import RULES, LandmarkKernel, LandmarkPool, LandmarkTuning
from certifit.kernel_approximation.nystroem import Nystroem
from certifit.svm.kernel.kernels import RBF, Linear, Polynomial, variance_of_entries
from tests.kernel_approximation.tables import LARGEST, TOL, gram, minus, table


@pytest.mark.parametrize("rule", ["rpcholesky", "uniform"])
@pytest.mark.parametrize(
    ("params", "kernel"),
    [
        ({"gamma": 0.3}, partial(rbf_kernel, gamma=0.3)),
        ({"kernel": "poly", "gamma": 0.5, "coef0": 1.0}, partial(polynomial_kernel, gamma=0.5, coef0=1.0)),
        ({"kernel": "linear"}, lambda A: A @ A.T),
        ({"kernel": RBF(0.3) + 2.0 * Linear()}, lambda A: rbf_kernel(A, gamma=0.3) + 2.0 * A @ A.T),
        ({"kernel": rbf_kernel, "gamma": 0.25}, partial(rbf_kernel, gamma=0.25)),  # its own default for 4 columns
    ],
)
def test_with_every_row_a_landmark_features_are_exact(params, kernel, rule):
    """Also where the landmarks' Gram matrix is singular: Linear has rank 4, Polynomial at most 35."""
    X = table(120)
    model = Nystroem(**params, n_components=120, landmarks=rule, random_state=0).fit(X)
    K = kernel(X)
    np.testing.assert_allclose(gram(model, X), K, atol=1e-7 * K.max())
    assert model.certificate_.holds
    assert audit_nystroem(model, X, None, None, TOL).holds
    assert ("if the kernel is" in model.certificate_.claim) == (
        params.get("kernel") is rbf_kernel
    )  # nobody proved it


def test_a_kernel_of_low_rank_needs_few_landmarks():
    X = table()
    assert len(Nystroem(Linear(), random_state=0).fit(X).components_) == 4
    assert len(Nystroem(Polynomial(2, 1.0, 1.0), random_state=0).fit(X).components_) == 15  # (d + 1) (d + 2) / 2


def test_inner_products_are_those_of_scikit_learn_with_the_same_landmarks():
    X = table()
    model = Nystroem(gamma=0.3, n_components=20, random_state=0).fit(X)
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])
    theirs = kernel_approximation.Nystroem(gamma=0.3, n_components=20, random_state=0).fit(model.components_)
    np.testing.assert_allclose(gram(model, X), gram(theirs, X), atol=1e-9)
    checked = audit_nystroem(kernel_approximation.Nystroem(gamma=0.3, random_state=0).fit(X), X, None, None, TOL)
    assert checked.holds


@pytest.mark.parametrize("rule", ["rpcholesky", "uniform"])
def test_proved_errors_cover_the_whole_kernel_matrix(rule):
    X, w = table(), np.linspace(0.5, 2.0, 200)
    model = Nystroem(n_components=30, landmarks=rule, random_state=0).fit(X, sample_weight=w)
    left = rbf_kernel(X, gamma=model.gamma_) - gram(model, X)
    e = np.maximum(np.diag(left), 0.0)
    assert np.linalg.eigvalsh(left).min() > -1e-12
    assert (np.abs(left) <= np.sqrt(np.outer(e, e)) + 1e-12).all()
    for found in (model.certificate_, audit_nystroem(model, X, None, w, TOL)):
        np.testing.assert_allclose(found.objective, w @ e / w.sum(), rtol=1e-10)
        np.testing.assert_allclose(found.facts[LARGEST], np.abs(left).max(), rtol=1e-10)


def test_pivoted_landmarks_are_near_the_best_possible_and_find_small_groups():
    """Eckart & Young: no rank-m matrix leaves less of the trace than the smallest eigenvalues."""
    rng = np.random.default_rng(0)
    X = np.vstack([0.1 * rng.normal(size=(400, 3)), 5 * rng.normal(size=(30, 3))])
    best = np.linalg.eigvalsh(rbf_kernel(X, gamma=0.5))[:-30].sum() / len(X)
    mean = {
        rule: np.mean(
            [
                Nystroem(gamma=0.5, n_components=30, landmarks=rule, random_state=i).fit(X).certificate_.objective
                for i in range(5)
            ]
        )
        for rule in ("rpcholesky", "uniform", "auto")
    }
    assert mean["auto"] <= mean["rpcholesky"] * (1 + 1e-6)
    assert best <= mean["rpcholesky"] <= 4 * best
    assert mean["rpcholesky"] < 0.5 * mean["uniform"]


def test_several_draws_at_a_time_are_those_of_one_at_a_time():
    """Chen et al. (2023), algorithm 1: the second pivot is drawn by what the first leaves over; 5 standard errors."""
    X, w, rng = np.array([[0.0], [0.5], [0.8], [2.0]]), np.array([1.0, 2.0, 1.0, 0.5]), np.random.default_rng(0)
    K = rbf_kernel(X, gamma=1.0)
    expected = np.zeros((4, 4))
    for i in range(4):
        left = w * (1.0 - K[i] ** 2)
        expected[i] = w[i] / w.sum() * left / left.sum()
    kernel = LandmarkKernel(RBF(1.0), lambda A: np.ones(len(A)))
    pool = LandmarkPool(X, w, X[:, 0], 2, kernel, np.inf, LandmarkTuning())
    found, draws = np.zeros((4, 4)), 3000
    for _ in range(draws):
        found[tuple(RULES["rpcholesky"](pool, rng))] += 1 / draws
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected / draws)).all()


def test_landmarks_found_until_time_is_up_are_proved_as_any_others():
    X = table(1000)
    model = Nystroem(n_components=500, random_state=0).limit_seconds(0.0).fit(X)
    assert 0 < len(model.components_) < 500
    assert model.certificate_.holds
    assert audit_nystroem(model, X, None, None, TOL).holds


@pytest.mark.parametrize("rule", ["rpcholesky", "uniform"])
def test_long_tables_are_drawn_from(rule):
    X = table(20_000, 2)
    w = (X[:, 0] > 0).astype(float)
    model = Nystroem(n_components=20, landmarks=rule, random_state=0).fit(X, sample_weight=w)
    assert (model.components_[:, 0] > 0).all()
    assert audit_nystroem(model, X, None, w, TOL).holds


@pytest.mark.parametrize("rule", ["auto", "rpcholesky", "uniform"])
def test_what_is_no_kernel_is_refused_with_a_witness(rule):
    with pytest.raises(NoSolutionError, match="not positive semidefinite") as caught:
        Nystroem(minus, n_components=5, landmarks=rule).fit(table())
    assert caught.value.certificate.proved


@pytest.mark.parametrize(
    ("params", "got"),
    [
        ({"kernel": "cubic"}, "kernel='cubic'"),
        ({"landmarks": "best"}, "landmarks='best'"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"n_components": 0}, "n_components=0"),
        ({"kernel": lambda A, B: np.ones(len(A)), "landmarks": "uniform"}, "an array of shape"),
    ],
)
def test_bad_settings(params, got):
    with pytest.raises(DataError, match="wanted") as caught:
        Nystroem(**params).fit(table())
    assert got in caught.value.got


def test_rows_whose_kernel_is_zero():
    model = Nystroem("linear").fit(np.zeros((5, 3)))
    assert not model.transform(np.zeros((2, 3))).any()
    assert model.certificate_.holds


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("components_", lambda a: a + 1e-3),
        ("component_indices_", lambda a: a[::-1]),
        ("component_indices_", lambda a: a + 1000),
        ("normalization_", lambda a: 0.99 * a),
        ("normalization_", lambda a: 0.0 * a),  # a projection too, but not on the landmarks
        ("gamma_", lambda a: 1.001 * a),
    ],
)
def test_damaged_landmarks_are_noticed(name, damage):
    X = table()
    model = Nystroem(n_components=20, random_state=0).fit(X)
    setattr(model, name, damage(getattr(model, name)))
    assert not audit_nystroem(model, X, None, None, TOL).holds


def test_landmarks_that_are_other_rows_are_noticed_far_from_the_origin():
    X = table() + 1e8
    model = Nystroem(n_components=20, random_state=0).fit(X)
    assert audit_nystroem(model, X, None, None, TOL).holds
    model.component_indices_ = model.component_indices_[::-1]
    assert not audit_nystroem(model, X, None, None, TOL).holds


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_of_rows_far_from_zero(dtype):
    """Against rational arithmetic; fit and audit have it from different sums, and must agree."""
    rng = np.random.default_rng(0)
    X = (7e13 + np.round(rng.normal(size=(39, 5)) * 4) * (1.0 if dtype == np.float64 else 2.0**28)).astype(dtype)
    values = [Fraction(float(v)) for v in X.ravel()]
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    model = Nystroem(gamma="scale", n_components=2, random_state=0).fit(X)
    np.testing.assert_allclose(model.gamma_, float(1 / (5 * variance)), rtol=1e-9)
    np.testing.assert_allclose(variance_of_entries(X, np.ones(39)), float(variance), rtol=1e-9)
    assert audit_nystroem(model, X, None, None, TOL).holds


def test_an_error_of_rounding_is_measured_against_kernel_values():
    X = table(40)
    found = Nystroem(n_components=40, random_state=0).fit(X).certificate_
    assert found.objective < 1e-10
    np.testing.assert_allclose(found.scale, 1.0)


def histogram_kernel(x, z, share=1.0):
    """Of two rows, as scikit-learn calls it."""
    return share * float(np.minimum(x, z).sum())


def test_defaults_are_those_of_scikit_learn():
    X = table(150)
    model, peer = Nystroem(random_state=0).fit(X), kernel_approximation.Nystroem(random_state=0).fit(X)
    assert model.transform(X).shape == peer.transform(X).shape == (150, 100)
    assert model.gamma_ == 1 / 4
    K = kernel_approximation.Nystroem("poly", n_components=150).fit_transform(X)
    np.testing.assert_allclose(
        gram(Nystroem("polynomial", n_components=150).fit(X), X), K @ K.T, atol=1e-6 * np.abs(K @ K.T).max()
    )


def test_a_kernel_of_rows_and_its_parameters():
    X = np.abs(table(40))
    model = Nystroem(histogram_kernel, kernel_params={"share": 2.0}, n_components=40, random_state=0).fit(X)
    K = 2.0 * np.minimum(X[:, None], X[None]).sum(axis=2)
    np.testing.assert_allclose(gram(model, X), K, rtol=1e-6)
    assert audit_nystroem(model, X, None, None, TOL).holds
    with pytest.raises(DataError, match="kernel_params"):
        Nystroem(kernel_params={"share": 2.0}).fit(X)


def test_a_polynomial_of_a_fractional_degree():
    """Its values are scikit-learn's; it is tried on the landmarks: a fractional power need not be a kernel."""
    X = np.random.default_rng(0).uniform(size=(12, 4))
    model = Nystroem(kernel="polynomial", n_components=12, degree=3.1, coef0=0.1).fit(X)
    expected = polynomial_kernel(X, degree=3.1, coef0=0.1)
    np.testing.assert_allclose(model.transform(X) @ model.transform(X).T, expected, atol=1e-9)
    assert model.certificate_.facts["kernel"] == "not refuted on its landmarks"
    assert audit_nystroem(model, X, None, None, TOL).holds
    with pytest.raises(DataError, match="finite"):
        Nystroem(kernel="polynomial", degree=3.1).fit(5 * X - 2.5)  # a power of a number below 0
