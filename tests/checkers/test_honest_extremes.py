"""Honest fits of extreme tables: fit and audit say the same, and what cannot be fitted is refused in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from certifit import (
    PCA,
    BayesianGaussianMixture,
    CertificateWarning,
    DataError,
    GaussianNB,
    HardMarginSVC,
    HistGradientBoostingRegressor,
    IncrementalPCA,
    KernelPCA,
    Lasso,
    LinearRegression,
    LinearSVR,
    LogisticRegression,
    MiniBatchKMeans,
    NuSVR,
    Nystroem,
    QuadraticDiscriminantAnalysis,
    SelectFeatures,
    audit,
)
from certifit.checkers.naive_bayes.class_statistics import class_moments
from certifit.checkers.plain.kernels import PlainRadial
from certifit.rows import as_rows


def test_variances_of_next_to_no_size_agree():
    X = np.random.default_rng(0).normal(size=(21, 2)) * 1e-161  # variances of 1e-322 have one digit
    y = np.arange(21) % 2
    model = SelectFeatures("variance", k=1).fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X * (1 + 1e-16), y).holds


def test_rows_without_any_size_have_a_regression():
    X, y = np.zeros((12, 3)), np.random.default_rng(0).normal(size=12)
    model = NuSVR(kernel="linear", nu=0.4, C=1720.0).fit(X, y, sample_weight=np.linspace(0.5, 2, 12))
    assert np.isfinite(model.predict(X)).all()
    assert audit(model, X, y, np.linspace(0.5, 2, 12)).holds == model.certificate_.holds


def test_kernel_values_that_are_all_zero_are_refused_in_words():
    X = np.random.default_rng(0).normal(size=(20, 2)) * 1e-180
    with pytest.raises(DataError, match="kernel values are all 0"):
        HardMarginSVC(kernel="poly", degree=1, ridge=0.0).fit(X, np.arange(20) % 2)


def test_a_radial_kernel_of_rows_whose_squares_overflow():
    X = np.array([[0.0, 1e200], [1e200, 0.0], [1e200, 0.0]])
    assert PlainRadial(0.5)(X, X).tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]


def test_landmarks_far_from_one_another_and_next_to_one_another():
    """Two groups far apart: products of rows lose the digits that the inverse root makes much of."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [700.0, 700.0]], 12, axis=0) + 1e-3 * rng.normal(size=(24, 2))
    model = Nystroem(gamma=0.5, n_components=20, random_state=0).fit(X)
    assert model.certificate_.holds
    assert audit(model, X).holds


def test_eigenvalues_called_zero_are_in_no_order():
    """Rows in one direction have no cosine between them but 1: what is left of the centred matrix is rounding."""
    X = 1e9 + np.random.default_rng(0).normal(size=(12, 5))
    model = KernelPCA(3, kernel="cosine").fit(X)
    assert model.certificate_.holds
    assert audit(model, X).holds


def test_an_l1_penalty_of_columns_far_from_0_is_proved():
    """The last digit of the coefficient moves its slope by more than the tolerance allows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([5e9 + 4e3 * rng.normal(size=9), 2e6 + 3 * rng.normal(size=(9, 2))])
    y = 5.1e-7 * X[:, 0]
    model = Lasso(0.358, fit_intercept=False, positive=True).fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    model.coef_ = model.coef_ * (1 + 1e-6)
    assert not audit(model, X, y).holds


def test_validation_without_a_row_is_refused_in_words():
    X, y = np.arange(4.0)[:, None], np.arange(4.0)
    with pytest.raises(DataError, match="too few rows for validation_fraction"):
        HistGradientBoostingRegressor(early_stopping=True, validation_fraction=0.1).fit(X, y)


def test_an_l1_penalty_beside_columns_too_far_from_0_is_proved_by_fit_and_audit_or_by_neither():
    """The last digits of the slopes take a millionth of the penalty."""
    X = np.full((25, 1), 47493607893414.52)
    y = np.array([0, 0, 1, 0, 2, 0, 1, 1, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 1, 1, 0, 0, 1, 2, 2])
    w = np.array([1, 1, 1, 0, 2, 2, 0, 0, 3, 1, 0, 2, 1, 1, 0, 1, 3, 2, 2, 2, 0, 2, 1, 3, 0.0])
    for scale in (1.0, 1e-3, 1e-9):
        model = LogisticRegression(C=0.000818, penalty="l1", fit_intercept=False, tol=1e-6)
        with warnings.catch_warnings(action="ignore", category=CertificateWarning):
            model.fit(X * scale, y, w)
        assert model.certificate_.holds == audit(model, X * scale, y, w).holds
        assert model.certificate_.holds or scale == 1.0


@pytest.mark.parametrize("estimator", [PCA(svd_solver="covariance_eigh"), IncrementalPCA()])
def test_faint_variances_of_columns_ninety_deviations_from_0(estimator):
    """A variance of 1e-5 of the largest has few digits where squares about 0 are summed: 1e-12 of the total."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for _ in range(20):
        X = rng.normal(size=(30, 3)) * [1.0, 1e-2, 3e-6] @ turn
        X += 90 * X.std(axis=0)
        model = estimator.fit(X)
        assert model.certificate_.holds
        assert audit(model, X).holds


def test_variances_of_batches_are_held_to_the_digits_of_their_own_columns():
    """A column of deviation 1e5 far from 0 excuses nothing of one of deviation 1e-2."""
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1e5, 1e-2, 1e-3] + [1e10, 1.0, 1.0]
    model = IncrementalPCA().fit(X)
    assert audit(model, X).holds
    model.explained_variance_ = model.explained_variance_ + 1.0
    assert not audit(model, X).holds


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
def test_a_constrained_fit_beside_one_row_of_nearly_all_weight():
    rng, w = np.random.default_rng(2), np.where(np.arange(20) == 0, 1e12, 1.0)
    for _ in range(20):
        X = rng.normal(size=(20, 5)).astype(np.float32)
        y = rng.normal(size=20) + X[:, 0]
        model = LinearRegression(positive=True, fit_intercept=False).fit(X, y, sample_weight=w)
        assert audit(model, X, y, w).holds == model.certificate_.holds
    assert model.certificate_.holds
    model.coef_ = model.coef_ * 1.01
    assert not audit(model, X, y, w).holds


def test_logistic_columns_far_from_0_that_no_intercept_centres():
    """Their Hessian is singular to rounding; in orthonormal coordinates it is not."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(12, 3)) + np.array([1e5, 1e4, 1.0])).astype(np.float32)
    X[:, 2] = X[:, 0]
    y = np.arange(12) % 2
    model = LogisticRegression(C=1e4, fit_intercept=False).fit(X, y)
    assert model.certificate_.holds
    found = audit(model, X, y)
    assert found.holds
    model.coef_ = -model.coef_
    assert not audit(model, X, y).holds


def test_a_radial_kernel_beside_an_outlier():
    """About a mean that an outlier has moved, differences of the other rows have lost their digits."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    X[-1] *= 1e8
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(PlainRadial(0.7)(X, X), np.exp(-0.7 * squares), rtol=1e-14, atol=1e-300)
    model = KernelPCA(1, kernel="rbf", gamma=0.7).fit(X)
    assert model.certificate_.holds
    assert audit(model, X).holds
    y = np.random.default_rng(1).normal(size=12)
    machine = NuSVR(gamma=0.7, C=20.0).fit(X, y)
    assert audit(machine, X, y).holds == machine.certificate_.holds


def test_a_tube_of_repeated_columns_with_weights_of_eight_decades():
    """Rows at the kink are fewer than parameters, and the multipliers of others have their limits."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = 194 + rng.normal(size=5)
        X, y, w = np.column_stack([x, x]), 5e-6 * rng.random(5), 10.0 ** rng.uniform(-4, 4, size=5)
        model = LinearSVR(C=0.0123, tol=1e-5, penalize_intercept=False).fit(X, y, sample_weight=w)
        assert audit(model, X, y, w).holds == model.certificate_.holds


def test_classes_of_which_rounding_hides_whether_they_are_separable_are_refused():
    x = [14246513932.154015, 14246487812.023016, 14246500171.703682, 14246468683.20155, 14246429999.531698]
    z = [237299144.60704008, 237299144.60702777, 237299144.6070493, 237299144.60702416, 237299144.60702676]
    with pytest.raises(DataError, match="rounding hides whether they are separable"):
        LogisticRegression(penalty=None, tol=6e-4).fit(sparse.csr_array(np.transpose([x, z])), [0, 1, 0, 1, 1])


def test_rows_that_are_all_the_same_have_no_variance():
    """Sums of weighted equal rows leave 1e-55 of numbers of 1e4, which is no variance to scale a threshold by."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = np.repeat(10.0 ** rng.uniform(-2, 5, size=(1, 5)), 20, axis=0)
        y, w = rng.permutation(np.arange(20) % 3), rng.exponential(size=20)
        with pytest.raises(DataError, match="do not vary within a class"):
            GaussianNB(var_smoothing=1e-3).fit(X, y, w)
        assert (class_moments(as_rows(X, y, w, target="classes"), 3).pooled().ssd == 0).all()


def test_one_last_digit_of_a_heavy_row_is_a_variance():
    X = np.full((8, 1), 3e5)
    X[3:6] = np.nextafter(3e5, np.inf)
    y, w = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([1e6, 1, 1, 1, 1e6, 1, 1, 1])
    model = GaussianNB().fit(X, y, w)
    for c in (0, 1):
        x, v = X[y == c, 0] - 3e5, w[y == c]
        assert model.var_[c, 0] == pytest.approx(np.average((x - np.average(x, weights=v)) ** 2, weights=v), rel=1e-3)
    assert audit(model, X, y, w).holds


def test_covariances_of_rows_beyond_the_digits_of_their_means():
    """The mean of 2e15 is rounded by a tenth; its square beside a variance of 0.01 is no rounding."""
    rng, y = np.random.default_rng(0), np.arange(9) % 2
    for _ in range(20):
        X = 2.06e15 + np.round(4 * rng.normal(size=(9, 3)) * [1e5, 10.0, 0.2]) / 4
        model = QuadraticDiscriminantAnalysis(reg_param=0.01).fit(X, y)
        assert model.certificate_.holds
        assert audit(model, X, y).holds


def test_the_ridge_of_sparse_rows_in_single_precision_has_the_digits_of_double():
    rng = np.random.default_rng(0)
    x = (0.0004 * (1 + 0.01 * rng.normal(size=7))).astype(np.float32)
    X, y = np.column_stack([x, x, 2 * x]), np.array([1, 1, 1, 0, 0, 1, 1])
    with warnings.catch_warnings(action="ignore"):
        ridges = [HardMarginSVC().fit(form, y).ridge_ for form in (X, sparse.csr_array(X), X.astype(float))]
    mean_square = np.square(X.astype(float) - X.astype(float).mean(axis=0)).sum() / 7
    np.testing.assert_allclose(ridges, 1e-3 * mean_square, rtol=1e-12)


# ------------------------------------------------------------------------------- digits on which answers depend
def test_precisions_of_nearly_flat_clusters_are_watched():
    """A covariance rounded to float32 moves a precision of 1e6 by a tenth."""
    X = np.random.default_rng(0).integers(-3, 4, size=(5, 6)).astype(float)
    model = BayesianGaussianMixture(covariance_type="tied", random_state=0).fit(X)
    assert audit(model, X).holds
    model.covariances_ = model.covariances_.astype(np.float32).astype(float)
    assert not audit(model, X).holds


def test_landmarks_are_the_rows_themselves():
    X = np.random.default_rng(0).normal(size=(9, 2)) + np.array([5e7, 1.0])
    model = Nystroem(n_components=2, random_state=0).fit(X)
    assert audit(model, X).holds
    model.components_ = np.nextafter(model.components_, np.inf)
    assert not audit(model, X).holds


def test_centres_of_single_precision_compare_rows_in_double():
    X = np.random.default_rng(0).normal(size=(60, 2)) + 3e4
    model = MiniBatchKMeans(3, random_state=0).fit(X)
    before = model.predict(X)
    model.cluster_centers_ = model.cluster_centers_.astype(np.float32)
    assert (model.predict(X) != before).sum() < 3


def test_the_bound_of_a_hard_margin_is_that_of_the_ridge_that_is_set():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    model = HardMarginSVC(kernel="rbf", gamma=1.0, ridge=0.00234).fit(X, y)
    best = model.certificate_.objective
    model.ridge_ = model.ridge_.astype(np.float32)
    assert audit(model, X, y).bound <= best
