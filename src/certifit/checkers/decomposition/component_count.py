"""The number of components that a fitted PCA has, against the one that its setting `n_components` asks for.

| n_components | how many there must be |
|---|---|
| a whole number | that many |
| None | as many as directions that can have variance |
| a fraction | the fewest that have this share of the variance |
| 'mle' | those with the largest evidence (Minka 2000) |
| 'cv' | not looked at: the choice depends on folds |

Reference: Minka, Automatic choice of dimensionality for PCA (2000), equation 77.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import gammaln

from certifit.checkers.decomposition.pca import PCAMeasured, covariance, variance_of_rounding
from certifit.core import Check
from certifit.rows import Array, Rows


def check_component_count(model: Any, measured: PCAMeasured, tol: float, rows: Rows) -> list[Check]:
    """Return the check that the number of components is the one asked for, if the setting says which."""
    varies = measured.variance.total > variance_of_rounding(measured.mean)
    k, wanted, most = len(model.components_), getattr(model, "n_components", "cv"), measured.directions
    name, in_batches = "components, more or fewer than n_components asks for", hasattr(model, "n_samples_seen_")
    if isinstance(wanted, str) and wanted == "mle":
        return [_check_evidence(k, measured, rows)]
    if isinstance(wanted, Integral):
        # While fewer rows than components have come, there are as many components as rows.
        expected = min(int(wanted), most) if in_batches else int(wanted)
        return [Check(name, float(abs(k - expected)), 0.0)]
    if wanted is None:
        # ARPACK finds all but one direction; other libraries take as many as the first batch has rows.
        free = (most - k) * (in_batches and not hasattr(model, "scatter_"))
        one_less = getattr(model, "svd_solver", "auto") == "arpack" and k == most - 1
        return [Check(name, float(max(0, abs(most - k) - max(free, int(one_less)))), 0.0)]
    if isinstance(wanted, Real) and varies:
        return [_check_share(k, float(wanted), measured, tol, rows.dtype)]
    return []


def _check_share(k: int, wanted: float, measured: PCAMeasured, tol: float, dtype: Any) -> Check:
    """Check that k components have the wanted share of the variance, and k - 1 do not."""
    s = measured.variance
    share = np.append(0.0, np.cumsum(s.captured)) / s.total
    too_few = wanted - share[k] if k < measured.directions else 0.0
    too_many = share[max(0, k - 1)] - wanted
    return Check(
        "share of the variance, more or less than n_components asks for",
        max(float(too_few), float(too_many), 0.0),
        tol + s.rounding(dtype) / s.total,
    )


def _check_evidence(k: int, measured: PCAMeasured, rows: Rows) -> Check:
    """Check that no other number of components has a larger evidence."""
    S = measured.variance.S
    values = np.linalg.eigvalsh(covariance(rows) if S is None else S)[::-1]
    # What is left of rows that are all the same is rounding of their mean.
    values = np.where(values > variance_of_rounding(measured.mean), values, 0.0)
    evidence = [_evidence(values, j, measured.weight) for j in range(1, len(values))]
    if len(values) < 2 or not np.isfinite(evidence).any():
        expected = len(values) if len(values) < 2 else 0
        return Check("components, more or fewer than n_components='mle' asks for", float(abs(k - expected)), 0.0)
    best = float(np.nanmax(evidence))
    below = best - evidence[k - 1] if 1 <= k <= len(evidence) else np.inf
    return Check("log evidence below that of another number of components by", max(below, 0.0), 1e-6 * abs(best))


def _evidence(values: Array, k: int, n: float) -> float:
    """Return the log of Laplace's approximation to the evidence of k components."""
    d = len(values)
    values = values / (values[0] or 1.0)
    if values[k - 1] < np.finfo(float).eps:
        return -np.inf
    noise = max(np.finfo(float).eps, float(values[k:].mean()))
    i = np.arange(1, k + 1)
    prior = -k * np.log(2.0) + float((gammaln((d - i + 1) / 2) - (d - i + 1) / 2 * np.log(np.pi)).sum())
    likelihood = -0.5 * n * (float(np.log(values[:k]).sum()) + (d - k) * np.log(noise))
    model = np.where(np.arange(d) < k, values, noise)
    curvature = 0.0
    for j in range(k):
        with np.errstate(divide="ignore"):
            terms = np.log((1 / model[j + 1 :] - 1 / model[j]) * (values[j] - values[j + 1 :])) + np.log(n)
        curvature += float(terms.sum())
    m = d * k - k * (k + 1) / 2
    return prior + likelihood + 0.5 * (m + k) * np.log(2 * np.pi) - 0.5 * curvature - 0.5 * k * np.log(n)
