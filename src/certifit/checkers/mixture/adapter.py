"""Fitted Gaussian mixtures, ours or scikit-learn's, handed to their checker as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.mixture import gaussian as checker
from certifit.checkers.mixture.column_survey import survey_columns, variance_floor
from certifit.checkers.mixture.em import ReportedFit
from certifit.checkers.problem import Problem
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.checks import TableTerms

MIXTURE = ("weights_", "means_", "covariances_")


def audit_gaussian_mixture(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted GaussianMixture on these rows, whose entries may be missing.

    scikit-learn's adds `reg_covar` to the variances in every step: it is judged by its own fixed point.
    """
    found = _fitted_mixture(model)
    rows = fitted_rows(model, found.means.shape[1], X, None, sample_weight, TableTerms(missing=True))
    if isinstance(model, Estimator):
        floor = variance_floor(getattr(model, "reg_covar", 0.0), survey_columns(rows).spread)
        more = _repeated_numbers(model, found, floor)
        return checker.certify(found, floor, tol, rows, reported_fit(model), more)
    added = np.full(found.means.shape[1], float(getattr(model, "reg_covar", 0.0)))
    reported = float(getattr(model, "lower_bound_", np.nan))
    return checker.certify_fixed_point(found, added, tol, rows, reported, _repeated_numbers(model, found, added))


def gaussian_mixture_problem(model: Any) -> Problem:
    """The same for mixtures of as many components of the same shape, kept from collapse in the same way."""
    loss = f"log-likelihood of {len(model.weights_)} Gaussians with {model.covariance_type} covariances"
    way = "penalty of" if isinstance(model, Estimator) else "added after each step:"
    return Problem(loss, f"{way} reg_covar={getattr(model, 'reg_covar', 0.0)}")


def _fitted_mixture(model: Any) -> checker.FittedGaussianMixture:
    """Return the fitted attributes; an error where their shapes are not those of the settings."""
    kind = model.covariance_type
    if kind not in checker.COVARIANCE_TYPES:
        raise DataError(got=f"covariance_type={kind!r}", wanted=f"one of {(*checker.COVARIANCE_TYPES,)}")
    weights, means, covariances = (numbers(model, name) for name in MIXTURE)
    k = int(getattr(model, "n_components", len(means)))
    d = means.shape[-1] if means.ndim else 0
    wanted = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[kind]
    if (weights.shape, means.shape, covariances.shape) != ((k,), (k, d), wanted):
        raise DataError(
            got=f"weights_, means_ and covariances_ of shapes {weights.shape}, {means.shape} and {covariances.shape}",
            wanted=f"{(k,)}, {(k, d)} and {wanted}, as n_components={k} and covariance_type={kind!r} say",
            fix="Fit it again: settings were changed after the fit, or attributes were.",
        )
    return checker.FittedGaussianMixture(weights, means, covariances, kind)


def reported_fit(model: Any) -> ReportedFit | None:
    """Return what a mixture of ours reports of itself; None of scikit-learn's, whose lower_bound_ is another."""
    names = ("loglikelihood_", "lower_bound_", "lower_bounds_", "em_trace_")
    return ReportedFit(*(getattr(model, name) for name in names)) if all(hasattr(model, n) for n in names) else None


def _repeated_numbers(model: Any, found: checker.FittedGaussianMixture, floor: Array) -> tuple[Check, ...]:
    """Check attributes that repeat others or the settings: the penalty's floor; what scikit-learn predicts with."""
    checks: tuple[Check, ...] = ()
    if hasattr(model, "covariance_type_"):
        other = float(model.covariance_type_ != model.covariance_type)
        checks = (Check("covariance_type_ other than covariance_type", other, 0.0),)
    if hasattr(model, "reg_covar_"):
        off = float(np.abs(numbers(model, "reg_covar_") / floor - 1).max())
        checks = (*checks, Check("reg_covar_ off what the settings say, relative", off, 1e-6))
    for name in ("precisions_cholesky_", "precisions_"):
        if name in vars(model):  # stored, not computed when asked for
            checks = (*checks, _precision_check(name, numbers(model, name), found))
    return checks


def _precision_check(name: str, values: Array, found: checker.FittedGaussianMixture) -> Check:
    """Check inverses of the covariances, or factors U of them, C⁻¹ = U Uᵀ."""
    if values.shape != found.covariances.shape:
        raise DataError(
            got=f"{name} of shape {values.shape}", wanted=f"that of covariances_, {found.covariances.shape}"
        )
    expand = checker.COVARIANCE_TYPES[found.covariance_type].expand
    U, C = (np.array(expand(A, *found.means.shape)) for A in (values, found.covariances))
    product = U @ C if name == "precisions_" else U.swapaxes(1, 2) @ C @ U
    off = float(np.abs(product - np.eye(C.shape[1])).max())
    rounding = min(100 * np.finfo(float).eps * float(np.linalg.cond(C).max()), 0.01)
    return Check(f"{name} off covariances_", off, 1e-6 + rounding)
