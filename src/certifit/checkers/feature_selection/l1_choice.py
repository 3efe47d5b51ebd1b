"""The strengths of a path of L1-penalised fits, and the choice of one of them, worked out again.

BIC    deviance + log(Σ w) · parameters that are not 0
EBIC   the same + 2 log(number of sets of that many columns)  (Chen & Chen 2008)
CV     mean loss on rows held out of the fits

The strongest penalty is chosen whose criterion is within its standard error of the best, among those that use a
column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from certifit.checkers.feature_selection.screening import Screening, ScreeningProblem, largest_strength
from certifit.core import Check
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class L1ChoiceTuning:
    """How far two computations of the same number may be apart, relative."""

    close: float = 1e-6


class StatedPath(NamedTuple):
    """A selector's path as it states it."""

    columns: Mapping[str, Array]  # `path_`
    coef: Array  # (m, k, d)
    proved: Array  # (m, d) bool
    screened: tuple[Screening, ...]  # what the coefficients prove

    @property
    def nonzero(self) -> Array:
        """Columns with some coefficient that is not 0 (m, d)."""
        return (self.coef != 0).any(axis=1)


def strengths_again(model: Any, problem: ScreeningProblem, k: int, rows: Rows) -> Array:
    """The strengths (m,) that the settings ask for, falling."""
    if not isinstance(model.alphas, Integral):
        return np.sort(np.asarray(model.alphas, dtype=np.float64))[::-1]
    top = largest_strength(problem, k, float(model.l1_ratio), rows)
    return top * np.geomspace(1.0, float(model.eps), int(model.alphas))


def information_again(model: Any, path: StatedPath, weight: float) -> Array:
    """The (extended) Bayesian information criterion (m,)."""
    loss, d = np.array([s.loss for s in path.screened]), path.coef.shape[2]
    size, k = path.nonzero.sum(axis=1), path.coef.shape[1]
    deviance = 2 * loss
    if model.loss == "squared":
        deviance = weight * np.log(np.maximum(2 * loss / weight, np.finfo(float).tiny))
    free = np.count_nonzero(path.coef, axis=(1, 2)) + bool(model.fit_intercept) * k
    sets = gammaln(d + 1) - gammaln(size + 1) - gammaln(d - size + 1) if model.criterion == "ebic" else 0.0
    return np.asarray(deviance + np.log(weight) * free + 2 * sets)


def chosen_strength(path: StatedPath) -> int:
    """The number of the strength that follows from the criterion and its errors, as stated."""
    some, value, error = path.nonzero.any(axis=1), path.columns["criterion"], path.columns["error"]
    best = int(np.argmin(np.where(some, value, np.inf)))
    return int(np.flatnonzero(some & (value <= value[best] + error[best]))[0])


def path_checks(
    path: StatedPath, alphas: Array, criterion: Array, error: Array, tuning: L1ChoiceTuning = L1ChoiceTuning()
) -> tuple[Check, ...]:
    """Compare every column of a stated path with what follows from its coefficients and from the settings."""
    expected = {
        "alpha": alphas[: len(path.screened)],
        "nonzero": path.nonzero.sum(axis=1),
        "proved_zero": path.proved.sum(axis=1),
        "loss": np.array([s.loss for s in path.screened]),
        "criterion": criterion,
        "error": error,
    }
    checks = [
        Check(f"path_['{name}'] is off by", _largest(path.columns[name] - value), tuning.close * _largest(value))
        for name, value in expected.items()
    ]
    # A gap is next to nothing beside its objective: it is compared with that.
    gap = np.array([s.relative_gap for s in path.screened])
    checks.append(Check("path_['gap'] is off by", _largest(path.columns["gap"] - gap), tuning.close))
    return tuple(checks)


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))
