"""The checker of greedy searches over sets of columns: every step must have taken the best of its candidates.

A model keeps the scores of all candidates, so that each choice can be compared with its alternatives; a seeded sample
of steps is scored again from the data, by fitting the estimator anew. Nothing is claimed about sets of columns that
the search did not try.
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


def certify_greedy(path: GreedyPath, tol: float, rescored: dict[tuple[int, int], float] | None = None) -> Certificate:
    """Check that every step took its best candidate; `rescored` holds scores computed again by (step, column)."""
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
    missing = 0 if refused else path.asked - len(path.taken)
    if refused and (path.least is None or float(np.nanmax(path.scores[-1])) - last >= path.least):
        wrong += 1  # the search stopped before a step that gains enough
    checks = [
        Check("score given away by a step", lost, 0.0),
        Check("steps or columns that do not fit together", float(wrong), 0.0),
        Check("steps asked for and not made", float(missing), 0.0),
    ]
    claim = "at every step the column taken was the best of its candidates; nothing is claimed about other sets"
    facts: dict[str, float | str] = {"steps": float(len(path.taken))}
    if rescored is not None:
        checks += _recomputed_check(path.scores, rescored, tol)
        facts["candidates scored again"] = float(len(rescored)) if rescored else "none: their scores are random"
    return Certificate("greedy", claim, -last, tol=tol, checks=tuple(checks), facts=facts)


@dataclass(frozen=True)
class EliminationSteps:
    """The steps of an elimination, each of which leaves out the columns that matter least."""

    importances: Array  # (steps, d) of each column not yet left out, NaN for the others
    ranking: Array  # (d,) 1 for the columns kept, then 2, 3, … from the last step to the first
    support: Array  # (d,) bool, the columns kept
    wanted: int  # how many columns were to be kept

    def fitted(self, step: int) -> Array:
        """Return the columns (a mask) that a step fitted."""
        return self.ranking <= len(self.importances) - step + 1


def certify_elimination(
    found: EliminationSteps, objective: float, tol: float, refitted: dict[tuple[int, int], float] | None = None
) -> Certificate:
    """Check that each step left out the least important; `refitted` maps (step, column) to recomputed importances."""
    steps = len(found.importances)
    wrong, lost = int(set(found.ranking.tolist()) != set(range(1, steps + 2))), 0.0
    wrong += int((found.support != (found.ranking == 1)).sum())
    for step, row in enumerate(found.importances):
        before, after = found.fitted(step), found.fitted(step + 1)
        wrong += not np.array_equal(np.isfinite(row), before)
        lost = max(lost, float(row[before & ~after].max(initial=-np.inf) - row[after].min(initial=np.inf)))
    checks = [
        Check("importance of a column left out above one kept", lost, 0.0),
        Check("steps or columns that do not fit together", float(wrong), 0.0),
        Check("columns too many or too few", abs(float(found.support.sum()) - found.wanted), 0.0),
    ]
    claim = "at every step the columns left out mattered least to the fit; nothing is claimed about other sets"
    facts: dict[str, float | str] = {"steps": float(steps)}
    if refitted is not None:
        checks += _recomputed_check(found.importances, refitted, tol)
        facts["importances computed again"] = float(len(refitted)) if refitted else "none: they are random"
    return Certificate("greedy", claim, objective, tol=tol, checks=tuple(checks), facts=facts)


def _recomputed_check(scores: Array, found: dict[tuple[int, int], float], tol: float) -> list[Check]:
    """Compare recorded scores with those computed again, relative to the largest of their step, to 1e-9 at best."""
    if not found:
        return []
    size = np.nanmax(np.abs(scores), axis=1, initial=np.finfo(float).tiny)
    difference = max(abs(scores[at] - value) / size[at[0]] for at, value in found.items())
    return [Check("scores differ when computed again by (relative)", float(difference), max(tol, 1e-9))]


def sample_steps(steps: int, sampled: int = 3) -> list[int]:
    """Return the numbers of the first step, the last and some between, the same for every check."""
    if steps <= sampled:
        return list(range(steps))
    between = np.random.default_rng(0).choice(np.arange(1, steps - 1), sampled - 2, replace=False)
    return sorted({0, steps - 1, *map(int, between)})


def rescore(path: GreedyPath, score: Callable[[Array], float]) -> dict[tuple[int, int], float]:
    """Score every candidate of a sample of steps again, by `score(mask)`; empty where scores are random."""
    again: dict[tuple[int, int], float] = {}
    for step in sample_steps(len(path.scores)):
        masks = {int(j): path.columns(step, int(j)) for j in np.flatnonzero(np.isfinite(path.scores[step]))}
        found = {(step, j): score(mask) for j, mask in masks.items()}
        if step == 0 and any(score(masks[j]) != value for (_, j), value in found.items()):
            return {}
        again |= found
    return again


def refit(found: EliminationSteps, importances: Callable[[Array], Array]) -> dict[tuple[int, int], float]:
    """Compute the importances of a sample of steps again, by `importances(mask)`; empty where they are random."""
    steps = sample_steps(len(found.importances))
    if not steps or not np.array_equal(importances(found.fitted(0)), importances(found.fitted(0))):
        return {}
    again: dict[tuple[int, int], float] = {}
    for step in steps:
        columns = np.flatnonzero(found.fitted(step))
        again |= {(step, int(j)): float(v) for j, v in zip(columns, importances(found.fitted(step)), strict=True)}
    return again
