"""Quadratic discriminant analysis: against scikit-learn and Bayes' rule, and what is refused."""

import copy

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import OAS
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as SklearnQDA

from certifit import QuadraticDiscriminantAnalysis, audit
from certifit.discriminant_analysis.quadratic import SingularClassWarning
from certifit.exceptions import DataError, NotSupportedError

X, y = load_wine(return_X_y=True)
ROWS, LABELS = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "params",
    [
        {"store_covariance": True},
        {"reg_param": 0.3, "store_covariance": True},
        {"priors": [0.2, 0.3, 0.5]},
        {"solver": "eigen"},
        {"solver": "eigen", "shrinkage": 0.2, "store_covariance": True},
        {"solver": "eigen", "shrinkage": "auto"},
        {"solver": "eigen", "covariance_estimator": OAS()},
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_scikit_learn(params, classes):
    kept = np.isin(y, range(classes))
    if "priors" in params:
        params = {"priors": np.array(params["priors"][:classes]) / sum(params["priors"][:classes])}
    Z, t = X[kept], np.array(["a", "b", "c"])[y[kept]]
    model, peer = (cls(**params).fit(Z, t) for cls in (QuadraticDiscriminantAnalysis, SklearnQDA))
    np.testing.assert_allclose(model.decision_function(Z), peer.decision_function(Z), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(Z), peer.predict_proba(Z), atol=1e-9)
    np.testing.assert_array_equal(model.predict(Z), peer.predict(Z))
    np.testing.assert_allclose(model.scalings_, np.array(peer.scalings_), rtol=1e-7)
    if "store_covariance" in params:
        np.testing.assert_allclose(model.covariance_, np.array(peer.covariance_), rtol=1e-7, atol=1e-9)
    assert model.certificate_.holds
    assert audit(model, Z, t).holds
    assert audit(peer, Z, t).holds


def test_probabilities_follow_from_bayes_rule():
    model = QuadraticDiscriminantAnalysis(store_covariance=True).fit(ROWS, LABELS)
    density = np.column_stack(
        [
            prior * multivariate_normal(mean, C).pdf(ROWS)
            for prior, mean, C in zip(model.priors_, model.means_, model.covariance_, strict=True)
        ]
    )
    np.testing.assert_allclose(model.predict_proba(ROWS), density / density.sum(axis=1, keepdims=True), atol=1e-12)
    assert model.objective(ROWS, LABELS).total == pytest.approx(-np.log(density[range(150), LABELS]).sum())


def test_weights_count_rows():
    w = np.random.default_rng(0).integers(1, 4, 150)
    model = QuadraticDiscriminantAnalysis().fit(ROWS, LABELS, w)
    twice = SklearnQDA().fit(np.repeat(ROWS, w, axis=0), np.repeat(LABELS, w))
    np.testing.assert_allclose(model.predict_proba(ROWS), twice.predict_proba(ROWS), atol=1e-9)
    assert audit(model, ROWS, LABELS, w).holds


def test_far_from_zero():
    near, far = (QuadraticDiscriminantAnalysis().fit(ROWS + shift, LABELS) for shift in (0.0, 1e7))
    np.testing.assert_allclose(far.predict_proba(ROWS + 1e7), near.predict_proba(ROWS), atol=1e-5)
    assert audit(far, ROWS + 1e7, LABELS).holds


@pytest.mark.parametrize("part", ["means_", "priors_", "rotations_", "scalings_"])
def test_scikit_learns_wrong_models_are_noticed(part):
    peer = SklearnQDA().fit(ROWS, LABELS)
    setattr(peer, part, [np.asarray(one) * 1.01 for one in getattr(peer, part)])
    assert not audit(peer, ROWS, LABELS).holds


@pytest.mark.parametrize("params", [{}, {"solver": "eigen"}, {"reg_param": 1e-6}])
def test_variances_of_a_class_in_a_plane_are_held(params):
    """Of all covariances with variances of at least tol, none makes the rows likelier."""
    Z = np.column_stack([ROWS, ROWS[:, 0]])
    model = QuadraticDiscriminantAnalysis(store_covariance=True, **params)
    with pytest.warns(SingularClassWarning, match=r"class 0 \(1 axis\), 1 \(1 axis\), 2 \(1 axis\) is not full rank"):
        model.fit(Z, LABELS)
    assert (model.scalings_[:, -1] == 1e-4).all()
    assert model.certificate_.holds
    assert audit(model, Z, LABELS).holds
    if not params:
        best, rng = model.objective(Z, LABELS).total, np.random.default_rng(0)
        for _ in range(20):
            other = copy.deepcopy(model)
            turn = np.linalg.qr(np.eye(5) + 0.05 * rng.normal(size=(5, 5)))[0]
            other.rotations_ = model.rotations_ @ turn
            other.scalings_ = np.maximum(model.scalings_ * rng.uniform(0.8, 1.25, size=(3, 5)), 1e-4)
            assert other.objective(Z, LABELS).total > best
    model.scalings_[0, -1] *= 1.01
    assert not audit(model, Z, LABELS).holds


@pytest.mark.parametrize(
    ("rows", "labels", "params", "words"),
    [
        (np.r_[ROWS[:100], ROWS[101:102]], np.r_[LABELS[:100], 2], {}, "y has only 1 sample in class 2"),
        (1e-3 * ROWS, LABELS, {}, "rescale the columns"),
        (np.column_stack([ROWS, ROWS[:, 0]]), LABELS, {"tol": 0.0}, "not full rank"),
    ],
    ids=["one row", "small units", "no variance held"],
)
def test_a_class_without_spread_is_refused(rows, labels, params, words):
    with pytest.raises(DataError, match=words):
        QuadraticDiscriminantAnalysis(**params).fit(rows, labels)


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"shrinkage": 0.1}, NotSupportedError),
        ({"covariance_estimator": OAS()}, DataError),
        ({"solver": "eigen", "shrinkage": 0.1, "covariance_estimator": OAS()}, DataError),
        ({"priors": [0.5, 0.5]}, DataError),
        ({"reg_param": 2.0}, DataError),
    ],
)
def test_settings_that_do_not_go_together(params, kind):
    with pytest.raises(kind):
        QuadraticDiscriminantAnalysis(**params).fit(ROWS, LABELS)


def test_columns_of_huge_values_leave_no_room_for_wrong_means():
    """Each mean is held to its own last digits: those of another column would excuse any mean."""
    t = np.repeat([0, 1], 8)
    Z = np.column_stack([np.random.default_rng(0).normal(size=16) + t, np.full(16, 3e246)])
    model = QuadraticDiscriminantAnalysis(reg_param=0.1).fit(Z, t)
    assert model.certificate_.holds
    assert audit(model, Z, t).holds
    assert max(c.limit for c in model.certificate_.checks if c.name.startswith("means_")) <= 1e-8
    for column, size in ((0, 1.0), (1, 1e240)):
        wrong = copy.deepcopy(model)
        wrong.means_[0, column] += size
        assert not audit(wrong, Z, t).holds


def test_a_class_far_from_0_whose_rows_are_all_the_same():
    """Squares about a mean that rounding has moved overflow, and are summed again about a better one."""
    Z, t = np.tile([0.0, 2.9815355772273777e246, 9.938451924091259e245], (7, 1)), np.array([0, 0, 2, 0, 0, 0, 1])
    model = QuadraticDiscriminantAnalysis(reg_param=0.1).fit(Z, t)
    assert model.certificate_.holds
    assert audit(model, Z, t).holds
