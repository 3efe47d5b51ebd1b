"""Fitted mixtures, ours or scikit-learn's."""

from __future__ import annotations

from typing import Any

from certifit.auditing.fitted import fitted_rows, numbers
from certifit.certificates import gaussian_mixture as checker
from certifit.core import Certificate, DataError

MIXTURE = ("weights_", "means_", "covariances_")


def audit_gaussian_mixture(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """GaussianMixture; rows may have holes."""
    kind = model.covariance_type
    if kind not in checker.KINDS:
        raise DataError(got=f"covariance_type={kind!r}", wanted=f"one of {(*checker.KINDS,)}")
    weights, means, covariances = (numbers(model, name) for name in MIXTURE)
    rows = fitted_rows(model, means.shape[1], X, None, sample_weight, "none", holes=True)
    floor = checker.floors(getattr(model, "reg_covar", 0.0), checker.survey(rows).spread)
    return checker.certify(checker.Model(weights, means, covariances, kind), floor, tol, rows)


def refuse_bayesian_mixture(model: Any, *_: Any, **__: Any) -> Certificate:
    """A variational posterior, no point that EM could come to rest at."""
    raise DataError(
        got=f"a {type(model).__name__}",
        wanted="a GaussianMixture: a variational posterior maximises another objective, which audit does not know",
        fix="Fit a GaussianMixture from its means_ and audit that.",
    )
