"""Fitted PCA, truncated SVD and probabilistic PCA of any library: their attributes, given to the checkers."""

from __future__ import annotations

from typing import Any

from certifit.checkers.decomposition import pca
from certifit.checkers.decomposition import probabilistic_pca as ppca
from certifit.checkers.decomposition.captured_variance import PCACheckTuning
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate
from certifit.rows.checks import TableTerms


def audit_pca(
    model: Any, X: Any, _y: Any, sample_weight: Any, tol: float, *, tuning: PCACheckTuning = PCACheckTuning()
) -> Certificate:
    """Check PCA, IncrementalPCA, and models with the same attributes."""
    B = numbers(model, "components_")
    rows = fitted_rows(model, B.shape[1], X, None, sample_weight, "none")
    optional = (getattr(model, name, None) for name in ("explained_variance_ratio_", "singular_values_"))
    claim = pca.PCAClaim(B, numbers(model, "mean_"), numbers(model, "explained_variance_"), *optional)
    return pca.certify(claim, tol, rows, tuning=tuning)


def audit_svd(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted TruncatedSVD."""
    B = numbers(model, "components_")
    rows = fitted_rows(model, B.shape[1], X, None, sample_weight, "none")
    return pca.certify_svd(B, numbers(model, "singular_values_"), tol, rows)


def audit_ppca(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted ProbabilisticPCA; rows may have missing entries."""
    B, variances, mean = (numbers(model, name) for name in ("components_", "explained_variance_", "mean_"))
    rows = fitted_rows(model, len(mean), X, None, sample_weight, TableTerms(missing=True))
    fitted = ppca.PPCAModel(B, variances, mean, float(numbers(model, "noise_variance_")))
    return ppca.certify(fitted, tol, rows, ard=getattr(model, "n_components", None) == "ard")
