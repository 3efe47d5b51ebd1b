"""Fitted PCA, truncated SVD and probabilistic PCA of any library: their attributes, given to the checkers."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from certifit.checkers.decomposition import pca
from certifit.checkers.decomposition import probabilistic_pca as ppca
from certifit.checkers.decomposition.captured_variance import PCACheckTuning, digits_of_own_fit
from certifit.checkers.decomposition.component_count import check_component_count
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.problem import Problem
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Rows
from certifit.rows.checks import TableTerms


def audit_pca(
    model: Any, X: Any, _y: Any, sample_weight: Any, tol: float, *, tuning: PCACheckTuning = PCACheckTuning()
) -> Certificate:
    """Check PCA, IncrementalPCA, and models with the same attributes."""
    B = numbers(model, "components_")
    if isinstance(model, Estimator) and hasattr(model, "partial_fit"):
        numbers(model, "scatter_")  # without it partial_fit would begin anew
    rows = fitted_rows(model, B.shape[1], X, None, sample_weight, "none")
    optional = ("explained_variance_ratio_", "singular_values_", "noise_variance_")
    mean, variances = numbers(model, "mean_"), numbers(model, "explained_variance_")
    claim = pca.PCAClaim(B, mean, variances, *(given(model, name) for name in optional))
    check_shapes(claim.components, mean_=claim.mean, explained_variance_=claim.explained_variance)
    measured = pca.measure(B, rows, tuning)
    if hasattr(model, "n_samples_seen_"):
        measured = _allow_for_merging(measured)
    # Running sums are kept in float64 whatever the rows are.
    solver = _own_solver(model)
    digits = digits_of_own_fit(rows, measured.variance, solver, tuning) if solver else rows.dtype
    digits = np.dtype(np.float64) if hasattr(model, "scatter_") else digits
    found = pca.certify_measured(claim, measured, tol, digits, tuning=tuning)
    more = [*check_component_count(model, measured, tol, rows), *check_counts(model, len(B), rows)]
    more += check_signs(model, B)
    if hasattr(model, "scatter_"):
        more += _check_running_sums(model, measured, tol, rows)
    return replace(found, checks=(*found.checks, *more))


def audit_svd(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted TruncatedSVD."""
    B, sigma = numbers(model, "components_"), numbers(model, "singular_values_")
    rows = fitted_rows(model, B.shape[1], X, None, sample_weight, "none")
    optional = (given(model, name) for name in ("explained_variance_", "explained_variance_ratio_"))
    found = pca.certify_svd(pca.SVDClaim(B, sigma, *optional), tol, rows, _own_solver(model))
    wanted = getattr(model, "n_components", len(B))
    return replace(found, checks=(*found.checks, check_number_asked_for(len(B), wanted), *check_signs(model, B)))


def audit_ppca(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted ProbabilisticPCA; rows may have missing entries."""
    B, variances, mean = (numbers(model, name) for name in ("components_", "explained_variance_", "mean_"))
    check_shapes(B, mean_=mean, explained_variance_=variances)
    rows = fitted_rows(model, len(mean), X, None, sample_weight, TableTerms(missing=True))
    asked = getattr(model, "n_components", "any"), given(model, "loglikelihood_")
    found = ppca.certify(
        ppca.PPCAModel(B, variances, mean, float(numbers(model, "noise_variance_")), *asked), tol, rows
    )
    return replace(found, checks=(*found.checks, *check_counts(model, len(B), rows), *check_signs(model, B)))


# ------------------------------------------------------------------------------------- problems in words
def pca_problem(model: Any) -> Problem:
    """The same for every PCA with so many components, whatever its solver."""
    return Problem(f"squared distances to the best plane of {len(model.components_)} dimensions")


def svd_problem(model: Any) -> Problem:
    """As that of PCA, but for planes through zero."""
    return Problem(f"squared distances to the best plane of {len(model.components_)} dimensions through zero")


def ppca_problem(model: Any) -> Problem:
    """The same for every probabilistic PCA with so many components."""
    ard = isinstance(getattr(model, "n_components", None), str) and model.n_components == "ard"
    penalty = "relevance of each component" if ard else "none"
    return Problem(f"Gaussian log-likelihood with {len(model.components_)} components", penalty)


# ------------------------------------------------------------------------------------- what several models share
def given(model: Any, name: str) -> Any:
    """An attribute that a model may lack, as float64; NaN stays, so that its check fails."""
    value = getattr(model, name, None)
    return None if value is None else np.asarray(value, np.float64)


def _own_solver(model: Any) -> str:
    """The solver of one of our own estimators, by which the audit knows the digits of the fit; '' of any other."""
    chosen = getattr(model, "svd_solver", getattr(model, "algorithm", "auto"))
    return str(chosen) if isinstance(model, Estimator) else ""


def check_shapes(B: Array, **others: Array) -> None:
    """Refuse attributes whose lengths do not fit the components (k, d)."""
    lengths = {"mean_": B.shape[1]}
    for name, values in others.items():
        expected = (lengths.get(name, len(B)),)
        if values.shape != expected:
            raise DataError(got=f"{name} of shape {values.shape}", wanted=f"{expected}, to fit components_ {B.shape}")


def check_signs(model: Any, B: Array) -> list[Check]:
    """Check that the first of each axis's largest entries is positive, as our own estimators promise."""
    if not isinstance(model, Estimator):
        return []
    size = np.abs(B)
    # Of entries that are equal to rounding, any may be the first.
    largest = size >= (1 - 1e-6) * size.max(axis=1, initial=0.0, keepdims=True)
    wrong = (largest & (B < 0)).any(axis=1) & ~(largest & (B > 0)).any(axis=1)
    return [Check("axes that point the other way", float(wrong.sum()), 0.0)]


def check_number_asked_for(k: int, wanted: Any) -> Check:
    """Check that there are as many components as a whole number asks for."""
    whole = isinstance(wanted, Integral) and not isinstance(wanted, bool)
    return Check(
        "components, more or fewer than n_components asks for", float(abs(k - wanted)) if whole else 0.0, 0.0
    )


def check_counts(model: Any, k: int, rows: Rows) -> list[Check]:
    """Check the numbers of components and of rows that a model keeps, where it keeps them."""
    counts = {"n_components_": k, "n_samples_": rows.n_rows, "n_samples_seen_": rows.n_rows}
    return [
        Check(f"{name} off by", abs(float(getattr(model, name)) - count), 0.0)
        for name, count in counts.items()
        if hasattr(model, name)
    ]


def _allow_for_merging(measured: pca.PCAMeasured) -> pca.PCAMeasured:
    """Allow for the rounding of means far from zero, of which every batch has its own."""
    merged = 8 * np.finfo(float).eps * np.abs(measured.mean)
    return measured._replace(variance=replace(measured.variance, merged=merged))


def _check_running_sums(model: Any, measured: pca.PCAMeasured, tol: float, rows: Rows) -> list[Check]:
    """Check the sums to which the next batch of an IncrementalPCA is added."""
    s, n, d = measured.variance, measured.weight, len(measured.mean)
    scatter, weight = numbers(model, "scatter_"), float(numbers(model, "weight_"))
    if scatter.shape != (d, d):
        raise DataError(got=f"scatter_ of shape {scatter.shape}", wanted=f"({d}, {d})")
    share = tol + s.rounding(np.float64) / (s.total or 1.0)
    off = scatter - n * (pca.covariance(rows) if s.S is None else s.S)
    last = s.deviations * np.sqrt(share) + 8 * np.finfo(float).eps * np.abs(measured.mean)
    limit = n * np.multiply.outer(last, last)
    used = getattr(model, "n_used_", measured.n_used)
    return [
        pca.worst("scatter off by", off.ravel(), limit.ravel()),
        Check("weight_ off by", abs(weight - n), 1e-12 * n),
        Check("n_used_ off by", abs(float(used) - measured.n_used), 0.0),
    ]
