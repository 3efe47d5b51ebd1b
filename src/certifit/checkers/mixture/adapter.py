"""Fitted mixtures, ours or scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.mixture import gaussian as checker
from certifit.checkers.mixture.em import Said
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array

MIXTURE = ("weights_", "means_", "covariances_")
SAID = ("loglikelihood_", "lower_bound_", "lower_bounds_", "em_trace_")


def audit_gaussian_mixture(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """GaussianMixture; rows may have holes."""
    kind = model.covariance_type
    if kind not in checker.KINDS:
        raise DataError(got=f"covariance_type={kind!r}", wanted=f"one of {(*checker.KINDS,)}")
    weights, means, covariances = (numbers(model, name) for name in MIXTURE)
    rows = fitted_rows(model, means.shape[1], X, None, sample_weight, "none", missing=True)
    floor = checker.floors(getattr(model, "reg_covar", 0.0), checker.survey(rows).spread)
    found = checker.Model(weights, means, covariances, kind)
    return checker.certify(found, floor, tol, rows, said(model), _consistent(model, found, floor))


def said(model: Any) -> Said | None:
    """What a mixture of ours says of itself. (scikit-learn's lower_bound_ is that of the step before.)"""
    return Said(*(getattr(model, name) for name in SAID)) if all(hasattr(model, name) for name in SAID) else None


def _consistent(model: Any, found: checker.Model, floor: Array) -> tuple[Check, ...]:
    """Attributes that repeat others or the settings: the penalty's floor; what scikit-learn predicts with."""
    checks: tuple[Check, ...] = ()
    if hasattr(model, "covariance_type_"):
        other = float(model.covariance_type_ != model.covariance_type)
        checks = (Check("covariance_type_ other than covariance_type", other, 0.0),)
    if hasattr(model, "reg_covar_"):
        off = float(np.abs(numbers(model, "reg_covar_") / floor - 1).max())
        checks = (*checks, Check("reg_covar_ off what the settings say, relative", off, 1e-6))
    if "precisions_cholesky_" in vars(model):  # not worked out when asked for
        expand = checker.KINDS[found.covariance_type][0]
        U, C = (
            np.array(expand(A, *found.means.shape))
            for A in (numbers(model, "precisions_cholesky_"), found.covariances)
        )
        off = float(np.abs(U.swapaxes(1, 2) @ C @ U - np.eye(C.shape[1])).max())
        rounding = 100 * np.finfo(float).eps * float(np.linalg.cond(C).max())
        checks = (*checks, Check("precisions_cholesky_ off covariances_", off, 1e-6 + rounding))
    return checks


def refuse_bayesian_mixture(model: Any, *_: Any, **__: Any) -> Certificate:
    """A variational posterior, no point that EM could come to rest at."""
    raise DataError(
        got=f"a {type(model).__name__}",
        wanted="a GaussianMixture: a variational posterior maximises another objective, which audit does not know",
        fix="Fit a GaussianMixture from its means_ and audit that.",
    )
