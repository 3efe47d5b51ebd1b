"""Where EM for Gaussian components starts: from given parameters, else from groups of a sample's rows.

Groups are found in units of the columns' spreads, so that a column's unit does not matter; a missing entry counts as
the median. The first components are the likeliest given these groups. See `mixture.starting_groups`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.mixture.column_survey import ColumnSurvey
from certifit.exceptions import DataError
from certifit.mixture.em import MixtureParameters
from certifit.mixture.gaussian.components import GaussianComponents
from certifit.mixture.gaussian.covariance_shapes import SHAPES, CovarianceShape
from certifit.mixture.gaussian.tuning import GaussianMixtureTuning
from certifit.mixture.starting_groups import STARTING_GROUPS
from certifit.numerics.packed import pack
from certifit.rows import Array, ArrayRows


class GaussianStart(NamedTuple):
    """What a start has to be: its form, how groups are found, and the parameters that are given (None: not)."""

    covariance_type: str
    n_components: int
    floor: Array  # (d,) of the penalty
    init_params: str  # a name in `STARTING_GROUPS`
    tuning: GaussianMixtureTuning
    weights: Any = None  # (k,)
    means: Any = None  # (k, d)
    precisions: Any = None  # in the public form of their shape


def first_mixture(survey: ColumnSurvey, asked: GaussianStart, rng: np.random.RandomState) -> MixtureParameters:
    """Return a mixture to start from: the given parameters, and the others from groups of the sample's rows."""
    k, d = asked.n_components, len(asked.floor)
    shape = SHAPES[asked.covariance_type]
    name = f"{asked.covariance_type} precision"
    weights = _given(asked.weights, "weights_init", "weights", (k,))
    means = _given(asked.means, "means_init", "means", (k, d))
    precisions = _given(asked.precisions, "precisions_init", name, shape.size(k, d))
    if weights is not None and not ((weights >= 0).all() and weights.sum() > 0):
        raise DataError(got=f"weights_init={weights.tolist()}", wanted="numbers of at least 0, not all of them 0")
    means = None if means is None else means - survey.median
    C = None if precisions is None else _inverse(shape, precisions, name)
    if weights is None or means is None or C is None:
        found = _from_groups(survey, asked, rng)
        weights = found.weights if weights is None else weights
        means = found.components.means if means is None else means
        C = found.components.C if C is None else C
    return MixtureParameters(weights / weights.sum(), _components(survey, asked, means, C))


def _components(survey: ColumnSurvey, asked: GaussianStart, means: Array, C: Array) -> GaussianComponents:
    return GaussianComponents(asked.covariance_type, survey.median, means, C, asked.floor, asked.tuning)


def _given(values: Any, setting: str, name: str, size: tuple[int, ...]) -> Array | None:
    if values is None:
        return None
    found = np.array(values, dtype=np.float64)
    if found.shape != size or not np.isfinite(found).all():
        same = found.shape == size
        raise DataError(
            got=f"{setting} of shape {found.shape}" + (" with NaN or infinity" if same else ""),
            wanted=f"finite numbers of shape {size}",
            fix="" if same else f"The parameter '{name}' should have the shape of {size}, but got {found.shape}.",
        )
    return found


def _inverse(shape: CovarianceShape, precisions: Array, name: str) -> Array:
    """Return the covariances of given precisions, which must be symmetric and positive definite."""
    P = shape.private(precisions)
    try:
        if P.ndim == 3 and not np.allclose(P, P.swapaxes(1, 2), rtol=1e-6, atol=0.0):
            raise np.linalg.LinAlgError("not symmetric")
        with np.errstate(invalid="raise", divide="raise"):
            C = shape.invert(P)
            shape.log_det(P, 1)
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        raise DataError(
            got="precisions_init that are not positive definite",
            wanted="symmetric positive definite matrices" if P.ndim == 3 else "numbers above 0",
            fix=f"'{name}' should be {'symmetric, positive-definite' if P.ndim == 3 else 'positive'}.",
        ) from error
    return C


def _from_groups(survey: ColumnSurvey, asked: GaussianStart, rng: np.random.RandomState) -> MixtureParameters:
    """Return the likeliest components given groups of the sample's rows."""
    sample, shape, k = survey.sample, SHAPES[asked.covariance_type], asked.n_components
    d, none = sample.n_features, asked.tuning.empty_share
    Z = np.asarray(sample.X, np.float64) - survey.median
    Z[np.isnan(Z)] = 0.0
    find = STARTING_GROUPS[asked.init_params]
    labels = find(ArrayRows(Z / survey.spread, None, sample.w), k, rng, asked.tuning)
    n = np.bincount(labels, sample.w, k)
    means, second = np.zeros((k, d)), np.empty((k, shape.width(d)))
    for j in range(k):
        mine, w = Z[labels == j], sample.w[labels == j]
        if n[j] > 0:
            means[j] = w @ mine / n[j]
            away = mine - means[j]  # about the group's own mean: nothing cancels
            S = (away.T * w) @ away
        else:  # a group without rows: as wide as all rows, and of no weight
            S = np.diag(survey.spread**2) * none * n.sum()
        second[j] = shape.reduce(pack(S)[None], d)[0]
    share = np.where(n > 0, n, none * n.sum())
    least = asked.floor * np.where(n > 0, n.sum() / (k * share), 1.0)[:, None]
    C = shape.covariances(share, np.zeros((k, d)), second, least)
    return MixtureParameters(n / n.sum(), _components(survey, asked, means, C))
