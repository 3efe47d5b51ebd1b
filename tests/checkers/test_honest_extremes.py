"""Honest fits of extreme tables: fit and audit say the same, and what cannot be fitted is refused in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from certifit import (
    CertificateWarning,
    DataError,
    HardMarginSVC,
    HistGradientBoostingRegressor,
    KernelPCA,
    Lasso,
    LogisticRegression,
    NuSVR,
    Nystroem,
    SelectFeatures,
    audit,
)
from certifit.checkers.plain.kernels import PlainRadial


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
