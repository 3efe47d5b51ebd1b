"""The strengths of a path of L1-penalised fits, and the choice of one of them, worked out again.

BIC    deviance + log(Σ w) · parameters that are not 0
EBIC   the same + 2 log(number of sets of that many columns)  (Chen & Chen 2008)
CV     mean loss on rows held out of the fits of a fold, each of which is kept and proved like those on all rows

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

from certifit.checkers.feature_selection.screening import (
    LOSSES,
    Screening,
    ScreeningProblem,
    largest_strength,
    screen,
    screening_problem,
)
from certifit.checkers.plain.dual_points import summation_error
from certifit.core import Check
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.rows.folds import FITTED, HELD_OUT, fold_roles


@dataclass(frozen=True)
class TargetTuning:
    """When whole numbers count as classes."""

    few_values: int = 20  # different values up to which they do
    rows_per_value: float = 5.0  # from which they do, however many there are


class _TargetValues(NamedTuple):
    """The distinct targets of some rows with a positive weight, and how many these rows are."""

    values: Array
    n: int

    def __add__(self, other: Any) -> _TargetValues:
        return _TargetValues(np.unique(np.concatenate([self.values, other.values])), self.n + other.n)


def _target_values(block: Block) -> _TargetValues:
    assert block.y is not None
    y = block.y[block.w > 0]
    return _TargetValues(np.unique(y), len(y))


def loss_for(rows: Rows, tuning: TargetTuning = TargetTuning()) -> str:
    """The loss that a target calls for: 'squared' of numbers, 'logistic' of classes."""
    values, n = rows.sum(_target_values)
    if values.dtype.kind not in "iuf" or len(values) == 0:
        return "logistic"
    whole = bool((values == np.floor(values)).all())
    many = len(values) > tuning.few_values and n < tuning.rows_per_value * len(values)
    return "squared" if many or not whole else "logistic"


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
    if model.loss_ == "squared":
        deviance = weight * np.log(np.maximum(2 * loss / weight, np.finfo(float).tiny))
    free = np.count_nonzero(path.coef, axis=(1, 2)) + bool(model.fit_intercept) * k
    sets = gammaln(d + 1) - gammaln(size + 1) - gammaln(d - size + 1) if model.criterion == "ebic" else 0.0
    return np.asarray(deviance + np.log(weight) * free + 2 * sets)


# ----------------------------------------------------------------------------------------------------------- folds
class FoldFits(NamedTuple):
    """The fits of every fold as a selector states them."""

    roles: Array  # (folds, n)
    coef: Array  # (folds, m, k, d)
    intercept: Array  # (folds, m, k)


class HeldOut(NamedTuple):
    """What the fits of the folds say, and how far from optimal they are."""

    criterion: Array  # (m,)
    error: Array  # (m,)
    gap: float  # the largest relative gap of a fit


def held_out_again(model: Any, fits: FoldFits, alphas: Array, data: ArrayRows) -> HeldOut:
    """The mean held-out loss (m,) of the fits kept of every fold, and a proof of each; nothing is fitted."""
    losses, gaps = [], []
    value = LOSSES[model.loss_].value
    for role, coef, intercept in zip(fits.roles, fits.coef, fits.intercept, strict=True):
        fitted, held = (data.take(np.flatnonzero(role & bit)) for bit in (FITTED, HELD_OUT))
        problem = screening_problem(model.loss_, bool(model.fit_intercept), fitted)
        path = [*zip(alphas, coef, intercept, strict=True)]
        gaps += [
            screen(problem.at(float(a), float(model.l1_ratio)), beta, b, fitted).relative_gap for a, beta, b in path
        ]
        total = [held.w @ value(held.X @ beta.T + b, np.asarray(held.y)) for _, beta, b in path]
        losses.append(np.array(total) / held.w.sum())
    found = np.array(losses)
    return HeldOut(found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found)), max(gaps))


def fold_gap(gap: float, tol: float, n_rows: int) -> Check:
    """The check that every fit of every fold is optimal for its rows, to ten times the tolerance.

    No column is proved 0 by these fits: they need no more digits than the losses that are compared.
    """
    return Check("largest relative gap of the fits of the folds", gap, 10 * tol + 8 * summation_error(n_rows))


def fold_check(model: Any, roles: Array, data: ArrayRows) -> tuple[Check, ...]:
    """The check that the folds are those that `cv` makes; none where it makes others every time."""
    if hasattr(model.cv, "__next__"):  # an iterator, which the fit has used up
        return ()
    first, second = (fold_roles(model.cv, data.X, np.asarray(data.y), model.loss_ == "logistic") for _ in range(2))
    if not np.array_equal(first, second):
        return ()
    other = float((first != roles).any(axis=1).sum()) if first.shape == roles.shape else float("inf")
    return (Check("folds that are not those of `cv`", other, 0.0),)


def chosen_strength(path: StatedPath) -> int:
    """The number of the strength that follows from the criterion and its errors, as stated."""
    some, value, error = path.nonzero.any(axis=1), path.columns["criterion"], path.columns["error"]
    if not some.any():
        raise DataError(
            got="a path without any coefficient that is not 0",
            wanted="at least one fit that uses a column: the selector keeps those that the chosen fit uses",
        )
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
