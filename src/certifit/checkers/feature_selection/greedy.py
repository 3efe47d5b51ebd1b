"""The checker of greedy searches over sets of columns: every step must have taken the best of its candidates.

A model keeps the scores of all candidates, so that each choice can be compared with its alternatives; all of them are
computed again from the data, by fitting the estimator anew at every step, unless they are random. Nothing is claimed
about sets of columns that the search did not try.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class GreedyPath:
    """The steps of a search, each of which adds a column (forward) or removes one."""

    scores: Array  # (steps, d) of each candidate, NaN for other columns; one row more for a step that was not taken
    taken: Array  # (steps,) the column of each step
    reached: Array  # (steps,) score after each step
    support: Array  # (d,) bool, the columns kept in the end
    forward: bool
    asked: int  # number of steps that were asked for
    start: float  # score before the first step
    least: float | None  # gain without which no step is taken; None: all steps asked for are taken

    def columns(self, step: int, candidate: int) -> Array:
        """Return the columns (a mask) that would be kept after taking a candidate at a step."""
        mask = np.zeros(len(self.support), bool)
        mask[[*self.taken[:step], candidate]] = True
        return mask if self.forward else ~mask


@dataclass(frozen=True)
class Recomputed:
    """Numbers of a model beside the same numbers computed again, by what they are; none where they are random."""

    pairs: tuple[tuple[str, Array, Array], ...]

    def checks(self, tol: float) -> list[Check]:
        """Compare them, relative to the largest of each step (row), to 1e-9 at best; NaN must meet NaN."""
        return [
            Check(f"{name} differ when computed again by (relative)", _difference(ours, again), max(tol, 1e-9))
            for name, ours, again in self.pairs
        ]


RANDOM = Recomputed(())  # the estimator or its folds are other ones every time


def certify_greedy(path: GreedyPath, tol: float, again: Recomputed | None = None) -> Certificate:
    """Check that every step took its best candidate; `again` holds scores computed again."""
    rest = np.ones(len(path.support), bool)
    wrong, lost = 0, 0.0
    for row, column, reached in zip(path.scores, path.taken, path.reached, strict=False):
        candidates = np.where(rest, row, -np.inf)
        wrong += not np.array_equal(np.isfinite(row), rest) or reached != row[column]
        lost = max(lost, float(candidates.max() - candidates[column]))
        wrong += int(column) != int(candidates.argmax())  # the first among equals
        rest[column] = False
    wrong += int((path.support != (~rest if path.forward else rest)).sum())
    last = float(path.reached[-1]) if len(path.taken) else path.start
    refused = len(path.scores) > len(path.taken)
    missing = 0 if refused else abs(path.asked - len(path.taken))
    if refused and (path.least is None or float(np.nanmax(path.scores[-1])) - last >= path.least):
        wrong += 1  # the search stopped before a step that gains enough
    if path.least is not None:  # a step that gained too little was taken
        wrong += int((np.diff([path.start, *path.reached]) < path.least).sum())
    checks = [
        Check("score given away by a step", lost, 0.0),
        Check("steps or columns that do not fit together", float(wrong), 0.0),
        Check("steps asked for and not made", float(missing), 0.0),
    ]
    claim = "at every step the column taken was the best of its candidates; nothing is claimed about other sets"
    return _certificate(claim, -last, checks, (tol, len(path.taken), "candidates scored again", again))


def _certificate(
    claim: str, objective: float, checks: list[Check], found: tuple[float, int, str, Recomputed | None]
) -> Certificate:
    """Make the certificate; `found` are the tolerance, the number of steps, and what was computed again."""
    tol, steps, words, again = found
    facts: dict[str, float | str] = {"steps": float(steps)}
    if again is not None and again.pairs:
        checks = checks + again.checks(tol)
        facts[words] = float(np.isfinite(again.pairs[0][1]).sum())
    elif again is not None:
        facts[words] = "none: they are random"
        claim = f"by the numbers recorded, which are random and cannot be computed again, {claim}"
    # A forward search that made no step has no score.
    objective = objective if np.isfinite(objective) else np.nan
    return Certificate("greedy", claim, objective, tol=tol, checks=tuple(checks), facts=facts)


def _difference(ours: Array, again: Array) -> float:
    """The largest difference, relative to the largest number of its row; infinite where the two do not match."""
    ours, again = np.atleast_2d(np.asarray(ours, float)), np.atleast_2d(np.asarray(again, float))
    finite = np.isfinite(again)
    if ours.shape != again.shape or not np.array_equal(ours[~finite], again[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    size = np.maximum(np.abs(np.where(finite, again, 0.0)).max(axis=1, keepdims=True), np.finfo(float).tiny)
    with np.errstate(invalid="ignore"):
        return float((np.abs(ours - again) / size)[finite].max())


@dataclass(frozen=True)
class EliminationSteps:
    """The steps of an elimination, each of which leaves out the columns that matter least."""

    importances: Array  # (steps, d) of each column not yet left out, NaN for the others
    ranking: Array  # (d,) 1 for the columns kept, then 2, 3, … from the last step to the first
    support: Array  # (d,) bool, the columns kept
    wanted: int  # how many columns were to be kept
    step: int  # how many are left out at a time

    def fitted(self, step: int) -> Array:
        """Return the columns (a mask) that a step fitted."""
        return self.ranking <= len(self.importances) - step + 1


def certify_elimination(
    found: EliminationSteps, objective: float, tol: float, again: Recomputed | None = None
) -> Certificate:
    """Check that each step left out the least important; `again` holds importances and scores computed again."""
    steps = len(found.importances)
    wrong, lost = int(set(found.ranking.tolist()) != set(range(1, steps + 2))), 0.0
    wrong += int((found.support != (found.ranking == 1)).sum())
    for step, row in enumerate(found.importances):
        before, after = found.fitted(step), found.fitted(step + 1)
        wrong += not np.array_equal(np.isfinite(row), before)
        wrong += int(before.sum() - after.sum()) != min(found.step, int(before.sum()) - found.wanted)
        lost = max(lost, float(row[before & ~after].max(initial=-np.inf) - row[after].min(initial=np.inf)))
    checks = [
        Check("importance of a column left out above one kept", lost, 0.0),
        Check("steps or columns that do not fit together", float(wrong), 0.0),
        Check("columns too many or too few", abs(float(found.support.sum()) - found.wanted), 0.0),
    ]
    claim = "at every step the columns left out mattered least to the fit; nothing is claimed about other sets"
    return _certificate(claim, objective, checks, (tol, steps, "importances computed again", again))


def rescore(path: GreedyPath, errors: Array, scores: Callable[[Array], Array], from_start: bool = True) -> Recomputed:
    """Score every candidate of every step again, by `scores(mask)`, one for each fold.

    A backward search starts at the score of all columns, unless it does not compare its first step with anything.
    """
    d = len(path.support)
    table, spread = np.full(path.scores.shape, np.nan), np.full(len(path.taken), np.nan)
    for step in range(len(path.scores)):
        for j in np.flatnonzero(np.isfinite(path.scores[step])):
            found = scores(path.columns(step, int(j)))
            if step == 0 and not np.array_equal(found, scores(path.columns(step, int(j)))):
                return RANDOM
            table[step, j] = found.mean()
            if step < len(path.taken) and j == path.taken[step]:
                spread[step] = standard_error(found)
    start = -np.inf if path.forward or not from_start else float(scores(np.ones(d, bool)).mean())
    begun = np.array([path.start]), np.array([start])
    return Recomputed(
        (("scores", path.scores, table), ("standard errors", errors, spread), ("scores of the start", *begun))
    )


def standard_error(scores: Array) -> float:
    """Return the standard error of the mean over folds, 0 where there is one."""
    n = len(scores)
    return float(scores.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def refit(found: EliminationSteps, importances: Callable[[Array], Array]) -> Recomputed:
    """Compute the importances of every step again, by `importances(mask)`."""
    table = np.full(found.importances.shape, np.nan)
    for step in range(len(table)):
        mask = found.fitted(step)
        again = importances(mask)
        if step == 0 and not np.array_equal(again, importances(mask)):
            return RANDOM
        table[step, mask] = again
    return Recomputed((("importances", found.importances, table),))
