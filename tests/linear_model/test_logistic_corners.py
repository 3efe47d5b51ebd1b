"""Logistic regression where it is hard: offsets, units, collinear and separable columns, very unequal weights."""

import copy

import numpy as np
import pytest
from sklearn import linear_model

from certifit import (
    CertificateWarning,
    DataError,
    ElasticNet,
    Lasso,
    LogisticRegression,
    NoSolutionError,
    Ridge,
    audit,
)
from certifit.checkers.linear_model.logistic import likelihood
from tests.common.catalogue import three, two
from tests.linear_model.logistic_tables import SOLVERS, certified, exact


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize(("offset", "spread"), [(1e8, 1.0), (1e8, 1e-2), (-1e4, 1e-3)])
def test_an_offset_costs_no_digits(data, offset, spread, solver):
    """A free intercept absorbs any offset; the penalty is put on the same footing as the spread."""
    X, y = data()
    C = 1 / spread**2
    plain = exact(solver=solver, tol=1e-9).fit(X, y)
    moved = exact(solver=solver, tol=1e-9, C=C).fit(offset + spread * X, y)
    lost = 1e-16 * abs(offset) / spread  # what the moved table itself has forgotten of X
    np.testing.assert_allclose(moved.certificate_.objective, plain.certificate_.objective, rtol=1e-8 + 10 * lost)
    np.testing.assert_allclose(spread * moved.coef_, plain.coef_, atol=1e-3)
    assert certified(moved, offset + spread * X, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter(data, scale, solver):
    X, y = data()
    plain = exact(penalty=None, solver=solver, tol=1e-8).fit(X, y)
    scaled = exact(penalty=None, solver=solver, tol=1e-8).fit(scale * X, y)
    np.testing.assert_allclose(scaled.certificate_.objective, plain.certificate_.objective, rtol=1e-7)
    assert certified(scaled, scale * X, y)
    penalised = LogisticRegression(solver=solver).fit(scale * X, y)
    assert certified(penalised, scale * X, y)


@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize("C", [1e-300, 1e-10, 1e10, 1e15])
def test_extreme_penalties(data, C):
    X, y = data()
    model = LogisticRegression(C=C).fit(X, y)
    assert certified(model, X, y)
    if C < 1:
        np.testing.assert_allclose(model.coef_, 0, atol=1e-6)
        np.testing.assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / len(y), rtol=1e-5)
    else:
        free = LogisticRegression(penalty=None).fit(X, y)
        np.testing.assert_allclose(model.certificate_.objective, free.certificate_.objective, rtol=1e-5)


@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e-300, 5e-324 / 1e-3])
def test_values_at_the_ends_of_the_range(data, scale):
    """Fitted and proved, or said to be neither: no NaN, no false proof."""
    X, y = data()
    for penalty in ("l2", None):
        try:
            model = LogisticRegression(penalty=penalty, max_iter=100).fit(scale * X, y)
        except (CertificateWarning, FloatingPointError, DataError):
            continue
        assert certified(model, scale * X, y)
        if penalty is None:
            best = LogisticRegression(penalty=None).fit(X, y).certificate_.objective
            np.testing.assert_allclose(model.certificate_.objective, best, rtol=1e-5)


def test_huge_columns_that_part_the_classes():
    """The proof's sizes overflow, which proves nothing and breaks nothing."""
    X = 1e150 * np.random.default_rng(5).normal(size=(60, 4))
    y = X[:, 0] > 0
    with pytest.warns(CertificateWarning, match="of the optimum"):
        model = LogisticRegression().fit(X, y)
    assert model.score(X, y) == 1


@pytest.mark.parametrize("data", [two, three])
def test_collinear_columns(data):
    X, y = data()
    twice = np.column_stack([X, X, np.ones(len(X)), np.zeros(len(X))])
    for penalty in ("l2", None):
        C = 2.0 if penalty == "l2" else 1.0
        single = exact(penalty=penalty, C=C).fit(X, y)  # sharing a coefficient halves its penalty
        double = exact(penalty=penalty, C=1.0).fit(twice, y)
        np.testing.assert_allclose(double.predict_proba(twice), single.predict_proba(X), atol=1e-5)
        assert certified(double, twice, y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit", [exact, linear_model.LogisticRegression])
def test_coefficients_moved_along_collinear_columns_are_noticed(fit, classes, intercept):
    """Every row keeps its probabilities, but no reader is helped by coefficients of a million of either sign."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 3))
    X, y = np.column_stack([X, X[:, 0]]), rng.integers(classes, size=100)
    model = fit(C=np.inf, fit_intercept=intercept, tol=1e-9).fit(X, y)
    assert audit(model, X, y).holds
    moved = copy.deepcopy(model)
    moved.coef_[0, [0, 3]] += [1e6, -1e6]
    np.testing.assert_allclose(moved.predict_proba(X), model.predict_proba(X), atol=1e-8)
    found = audit(moved, X, y)
    assert not found.holds
    assert any("collinear" in words for words in found.failures())


def test_nearly_collinear_columns_are_not_proved_falsely():
    """Columns that differ by 1e-9: the maximum lies far away along the difference, and rounding hides it."""
    X, y = two()
    rng = np.random.default_rng(0)
    close = np.column_stack([X, X + 1e-9 * rng.normal(size=X.shape)])
    with pytest.warns(CertificateWarning):
        LogisticRegression(penalty=None).fit(close, y)
    assert certified(LogisticRegression().fit(close, y), close, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_fewer_rows_than_columns(classes, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 50)), np.arange(20) % classes
    theirs = linear_model.LogisticRegression(tol=1e-10, max_iter=1000).fit(X, y)
    model = exact(solver=solver).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
    assert certified(model, X, y)
    with pytest.raises(NoSolutionError):
        LogisticRegression(penalty=None, solver=solver).fit(X, y)


def test_duplicate_rows_are_weights():
    X, y = three()
    a = exact(C=3.0).fit(X, y)
    b = exact(C=1.0).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


@pytest.mark.parametrize("data", [two, three])
def test_an_outlier_far_away(data):
    X, y = data()
    X[0] = 1e9
    assert certified(LogisticRegression().fit(X, y), X, y)


def test_separable_with_a_penalty():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    for y in ((X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])):
        for C in (1.0, 1e10):
            model = LogisticRegression(C=C).fit(X, y)
            assert model.score(X, y) > 0.9
            assert certified(model, X, y)


@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_classes_of_very_unequal_weight(weight):
    X, y = two()
    model = LogisticRegression(class_weight={0: weight}).fit(X, y)
    assert certified(model, X, y)


@pytest.mark.parametrize(
    "penalty", [{"penalty": "elasticnet", "l1_ratio": 0.9}, {"penalty": "l1"}, {"penalty": "firth"}, {}]
)
def test_columns_whose_squares_overflow_are_refused(penalty):
    """At β = 0 the sums of the dual overflow: a gap that is not known is not a gap of 0."""
    rng = np.random.default_rng(0)
    X = 1e280 * rng.normal(size=(29, 1))
    with pytest.raises(DataError, match="overflow"):
        LogisticRegression(C=0.0133, **penalty).fit(X, X[:, 0] > 1e279 * rng.normal(size=29))


def test_a_separating_direction_of_many_numbers_is_told_in_a_sentence():
    rng = np.random.default_rng(0)
    X = 1e-120 * np.concatenate([rng.normal(size=(5, 9)) + 20 * rng.normal(size=9) for _ in range(5)])
    with pytest.raises(NoSolutionError) as error:
        LogisticRegression(penalty=None).fit(X, np.repeat(np.arange(5), 5))
    assert len(str(error.value)) <= 400
    assert "column 0, column 1, column 2, column 3 and 5 more" in str(error.value)
    assert "(50 numbers)" in str(error.value.certificate)
    assert np.shape(error.value.certificate.witness) == (5, 10)


@pytest.mark.parametrize("penalty", [{"penalty": None}, {"C": 100.0}])
def test_an_intercept_that_has_lost_its_digits_is_not_certified(penalty):
    """At 1e15 spreads from 0 the intercept that is kept moves every score by tenths; fit and audit both say so."""
    rng = np.random.default_rng(0)
    X = 1e15 + 8 * rng.integers(-4, 5, (40, 1)).astype(float)
    y = X[:, 0] - 1e15 > 16 * rng.normal(size=40)
    model = LogisticRegression(**penalty)
    with pytest.warns(CertificateWarning):
        model.fit(X, y)
    again = audit(model, X, y)
    assert not model.certificate_.holds
    assert not again.holds
    assert model.certificate_.objective == pytest.approx(again.objective, rel=1e-9)


def test_an_inverse_is_enlarged_by_what_rounding_may_hide():
    """The smallest eigenvalue is taken to be smaller by m n eps, and all by the rounding of the scores."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    H = Q @ np.diag([1.0, 1.0, 1e-10]) @ Q.T
    scale = 1 / np.sqrt(np.diag(H))
    smallest = np.linalg.eigvalsh(H * scale * scale[:, None])[0]
    few, many, off = (
        likelihood._enlarged_inverse(H.reshape(1, 3, 1, 3), score, n).reshape(3, 3)
        for score, n in ((0.0, 10), (0.0, 30_000), (0.1, 10))
    )
    eps = np.finfo(float).eps
    lost = [3 * (n + 64 + 16) * eps / smallest for n in (10, 30_000)]
    np.testing.assert_allclose(many, few * (1 - lost[0]) / (1 - lost[1]), rtol=1e-6)
    np.testing.assert_allclose(off, few * np.exp(0.2), rtol=1e-12)
    assert (np.diag(few) > np.diag(np.linalg.inv(H)) * (1 + lost[0] / 2)).all()
    assert likelihood._enlarged_inverse((H - 1e-10 * np.eye(3)).reshape(1, 3, 1, 3), 0.0, 10) is None


def test_slopes_that_cancel_far_from_0_without_an_intercept_are_summed_in_more_digits():
    # Balanced classes of equal rows: the slope at 0 is a difference of 1e12 and 1e12, next to an l1 of 0.003.
    X, y, weight = np.tile([0.0, 1.0, 3.0], (5, 1)), [0, 0, 0, 0, 1], [1e12, 1.0, 1.0, 1.0, 1.0]
    model = LogisticRegression(C=332.0, class_weight="balanced", fit_intercept=False, penalty="l1").fit(X, y, weight)
    assert not model.coef_.any()
    assert model.certificate_.holds
    assert audit(model, X, y, weight).holds
    model.coef_ = np.array([[0.0, 0.0, 0.01]])
    assert not audit(model, X, y, weight, tol=1e-9).holds


@pytest.mark.parametrize("seed", range(5))
def test_the_covariance_is_that_of_the_stored_intercept_however_far_columns_lie_from_0(seed):
    rng = np.random.default_rng(seed)
    X = 38968274.9 + 3e-5 * rng.normal(size=(16, 1))
    y = (X[:, 0] + 3e-5 * rng.normal(size=16) > 38968274.9).astype(int)
    y[:2] = 0, 1
    model = LogisticRegression(penalty=None).fit(X, y)
    assert audit(model, X, y).holds == model.certificate_.holds


@pytest.mark.parametrize("model", [Lasso(1e-15), Ridge(1e-15), LogisticRegression(C=1e12), ElasticNet(1e-12)])
def test_a_column_of_zeros_has_no_coefficient(model):
    """A penalty next to nothing leaves it within any tolerance of the objective, and no row tells it."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(30, 2)), np.zeros(30)])
    y = rng.integers(2, size=30)
    model.fit(X, y)
    assert audit(model, X, y).holds
    model.coef_[..., 2] = 1.0
    found = audit(model, X, y)
    assert not found.holds
    assert any("zeros" in words for words in found.failures())
