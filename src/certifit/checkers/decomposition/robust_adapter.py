"""Fitted robust and trimmed PCA: their attributes, given to the checkers."""

from __future__ import annotations

import math
from typing import Any

from certifit.checkers.decomposition import robust_pca, trimmed_pca
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate

TRIMMED = ("components_", "mean_", "explained_variance_", "weights_", "errors_", "threshold_")


def audit_robust_pca(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check RobustPCA. Without `dual_` the checker finds a dual point; without `lam_` λ is the usual one."""
    low_rank = numbers(model, "low_rank_")
    rows = fitted_rows(model, low_rank.shape[1], X, None, sample_weight, "none")
    parts = robust_pca.RobustPCAParts(
        low_rank,
        numbers(model, "sparse_"),
        numbers(model, "components_"),
        numbers(model, "singular_values_"),
        numbers(model, "mean_"),
        numbers(model, "dual_") if hasattr(model, "dual_") else None,
        float(getattr(model, "lam_", 1 / math.sqrt(max(low_rank.shape)))),
        bool(getattr(model, "center", False)),
    )
    return robust_pca.certify(parts, tol, rows)


def audit_trimmed_pca(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted TrimmedPCA."""
    fitted: list[Any] = [numbers(model, name) for name in TRIMMED]
    rows = fitted_rows(model, fitted[0].shape[1], X, None, sample_weight, "none")
    return trimmed_pca.certify(trimmed_pca.TrimmedPCAParts(float(model.keep), *fitted), tol, rows)
