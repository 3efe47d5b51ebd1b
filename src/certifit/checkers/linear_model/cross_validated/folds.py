"""The folds of a cross-validated model as it states them, and the checks that they are those of its settings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.core import Check
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows
from certifit.rows.folds import FITTED, HELD_OUT, fold_roles


class StatedFolds(NamedTuple):
    """What each row is to every fold, and the coefficients of every fit on its rows, as a model states them."""

    roles: Array  # (folds, n)
    coef: Array  # (folds, …, d)
    intercept: Array  # (folds, …)

    def each(self, data: ArrayRows) -> list[tuple[ArrayRows, ArrayRows, Array, Array]]:
        """For each fold the rows of its fits, those held out, and the fits' coefficients and intercepts."""
        parts = [[data.take(np.flatnonzero(role & bit)) for bit in (FITTED, HELD_OUT)] for role in self.roles]
        return [(*part, c, b) for part, c, b in zip(parts, self.coef, self.intercept, strict=True)]


def stated_folds(model: Any, n: int, shape: tuple[int, ...]) -> StatedFolds:
    """The folds of a fitted model, in the shapes that belong together; `shape` is that of a fold's coefficients."""
    missing = [name for name in ("fold_roles_", "fold_coef_", "fold_intercept_") if not hasattr(model, name)]
    if missing:
        raise DataError(
            got=f"a {type(model).__name__} without {missing[0]}",
            wanted="the fits of the folds, by which the penalty was chosen",
            fix="Fit it again.",
        )
    roles = np.asarray(model.fold_roles_)
    well = roles.ndim == 2 and roles.shape[1] == n and roles.dtype.kind == "i"
    if not well or not all({1, 2} <= {*role.tolist()} <= {0, 1, 2, 3} for role in roles):
        raise DataError(
            got="fold_roles_ that do not say what each row is to every fold",
            wanted=f"a row of {n} numbers 0, 1 (fitted) and 2 (held out), some of both, for each fold",
        )
    coef, intercept = (
        np.asarray(getattr(model, name), dtype=np.float64) for name in ("fold_coef_", "fold_intercept_")
    )
    if coef.shape != (len(roles), *shape) or intercept.shape != (len(roles), *shape[:-1]):
        raise DataError(
            got=f"fold_coef_ {coef.shape} and fold_intercept_ {intercept.shape}",
            wanted=f"{(len(roles), *shape)} and {(len(roles), *shape[:-1])}",
        )
    return StatedFolds(roles, coef, intercept)


def check_sides(roles: Array, w: Array, cv: Any) -> None:
    """Refuse folds without rows of positive weight on either side."""
    sides = [(((roles & bit) > 0) & (w > 0)).any(axis=1) for bit in (FITTED, HELD_OUT)]
    if not len(roles) or not (sides[0] & sides[1]).all():
        raise DataError(
            got=f"cv={cv!r}, which makes {len(roles)} folds, or one without rows of positive weight on a side",
            wanted="folds with rows to fit and rows to score",
        )


def fold_checks(cv: Any, roles: Array, data: ArrayRows, classes: bool) -> tuple[Check, ...]:
    """The check that the folds are those that `cv` makes; none where it makes others every time."""
    if hasattr(cv, "__next__"):  # an iterator, which the fit has used up
        return ()
    first = fold_roles(cv, data.X, data.y, classes)
    if not np.array_equal(first, roles) and not np.array_equal(first, fold_roles(cv, data.X, data.y, classes)):
        return ()
    same = min(len(first), len(roles))
    other = float((first[:same] != roles[:same]).any(axis=1).sum()) + abs(len(first) - len(roles))
    return (Check("folds that are not those of `cv`", other, 0.0),)


def unproved_check(unproved: int) -> Check:
    """The check that every fit of every fold is proved."""
    return Check("fits of the folds that are not proved", float(unproved), 0.0)


def table_check(name: str, stated: Any, again: Array, close: float, size: float | None = None) -> Check:
    """The check that a stated table is what comes out again, up to a share of its size."""
    stated = np.asarray(stated, dtype=np.float64)
    if stated.shape != again.shape:
        raise DataError(got=f"{name} of shape {stated.shape}", wanted=f"{again.shape}", fix="Fit it again.")
    # Equal infinities are equal.
    off = np.where(stated == again, 0.0, np.abs(stated - again))
    finite = np.abs(again[np.isfinite(again)])
    scale = float(finite.max(initial=0.0)) if size is None else size
    return Check(f"{name} is off by", float(np.nan_to_num(off, nan=np.inf).max(initial=0.0)), close * scale)


def choice_check(words: str, score: Array, chosen: tuple[int, ...], close: float) -> Check:
    """The check that no candidate's score, larger being better, beats that of the chosen one but by rounding."""
    known = score[np.isfinite(score)]
    best, size = known.max(initial=-np.inf), np.abs(known).max(initial=0.0)
    short = float(best - score[chosen])
    return Check(f"{words}, short of the best by", short if np.isfinite(short) else float("inf"), close * float(size))


def place_of(words: str, value: float, candidates: Array, close: float) -> tuple[int, Check]:
    """The place of the candidate nearest to a chosen value, and the check that it is that one."""
    with np.errstate(invalid="ignore"):
        off = np.where(candidates == value, 0.0, np.abs(candidates - value))
    place = int(np.argmin(np.nan_to_num(off, nan=np.inf)))
    limit = close * abs(float(candidates[place])) if np.isfinite(candidates[place]) else 0.0
    return place, Check(f"{words} is off the nearest that was tried by", float(off[place]), limit)
