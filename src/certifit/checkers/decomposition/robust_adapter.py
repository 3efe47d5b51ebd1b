"""Fitted robust and trimmed PCA: their attributes, given to the checkers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from certifit.checkers.decomposition import pca, robust_pca, trimmed_pca
from certifit.checkers.decomposition.adapter import (
    check_counts,
    check_number_asked_for,
    check_shapes,
    check_signs,
    given,
)
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate

TRIMMED = ("components_", "mean_", "explained_variance_", "weights_", "errors_")


def audit_robust_pca(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check RobustPCA. Without `dual_` the checker finds a dual point; without `lam_` λ is the usual one."""
    low_rank = numbers(model, "low_rank_")
    rows = fitted_rows(model, low_rank.shape[1], X, None, sample_weight, "none")
    sigma, variances = numbers(model, "singular_values_"), given(model, "explained_variance_")
    B = numbers(model, "components_")
    check_shapes(B, mean_=numbers(model, "mean_"), singular_values_=sigma)
    parts = robust_pca.RobustPCAParts(
        low_rank,
        numbers(model, "sparse_"),
        B,
        sigma,
        numbers(model, "mean_"),
        numbers(model, "dual_") if hasattr(model, "dual_") else None,
        float(getattr(model, "lam_", 1 / math.sqrt(max(low_rank.shape)))),
        bool(getattr(model, "center", False)),
        getattr(model, "lam", "any"),
        variances,
    )
    found = robust_pca.certify(parts, tol, rows)
    return replace(found, checks=(*found.checks, *check_counts(model, len(B), rows), *check_signs(model, B)))


def audit_trimmed_pca(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted TrimmedPCA."""
    B, mean, variances, v, e = (numbers(model, name) for name in TRIMMED)
    check_shapes(B, mean_=mean, explained_variance_=variances)
    rows = fitted_rows(model, B.shape[1], X, None, sample_weight, "none")
    repeated = (given(model, name) for name in ("explained_variance_ratio_", "singular_values_", "noise_variance_"))
    plane = pca.PCAClaim(B, mean, variances, *repeated)
    found = trimmed_pca.certify(trimmed_pca.TrimmedPCAParts(float(model.keep), v, e, plane), tol, rows)
    asked = check_number_asked_for(len(B), getattr(model, "n_components", len(B)))
    more = asked, *check_counts(model, len(B), rows), *check_signs(model, B)
    return replace(found, checks=(*found.checks, *more))
