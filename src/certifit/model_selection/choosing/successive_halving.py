"""Successive halving: all settings on few rows, the better ones on more, and the best of these on all rows.

Which rows a rung has is drawn once, each rung a part of the next, with its share of every class and of every fold:
the folds of all rows are also those of a rung. Groups stay whole, so that rows that were not in a rung know nothing
of those that were.

Reference: Jamieson & Talwalkar, Non-stochastic best arm identification and hyperparameter optimization (2016).
"""

from __future__ import annotations

import numpy as np

from certifit.checkers.model_selection.choices import HalvingRung
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.assessment.plans import FoldSplits
from certifit.rows import Array


def rung_rows(
    problem: AssessedProblem, splits: FoldSplits, shares: list[float], rng: np.random.RandomState
) -> list[Array]:
    """Return the numbers of the rows of each rung, ascending, from the shares of all rows that they have."""
    places = _nested_places(problem, splits.folds[0], rng)
    return [np.flatnonzero(places < share) for share in shares]


def rung_shares(members: int, settings: int, factor: int, least: int) -> list[float]:
    """Return the share of all rows that each rung has, the last all of them.

    There are as many rungs as settings can be divided by the factor, and as leave the first at least so many rows, or
    groups where these are the members.

    >>> rung_shares(900, 9, 3, 20)
    [0.1111111111111111, 0.3333333333333333, 1.0]
    >>> rung_shares(900, 9, 3, 200)
    [0.3333333333333333, 1.0]
    """
    rungs = 1
    while settings >= factor**rungs and members // factor**rungs >= least:
        rungs += 1
    return [1 / factor**k for k in reversed(range(rungs))]


def best_settings(rung: HalvingRung, factor: int) -> list[int]:
    """Return the numbers of the settings that go on, the best first."""
    best = np.argsort(-rung.scores.mean(axis=0), kind="stable")
    return [rung.settings[i] for i in best[: -(-len(best) // factor)]]


def _nested_places(problem: AssessedProblem, folds: Array, rng: np.random.RandomState) -> Array:
    """Return a place between 0 and 1 for each row (n,): rows below a share have that share of each class and fold."""
    if problem.groups is not None:
        _, first, of = np.unique(problem.groups, return_index=True, return_inverse=True)
        return _dealt_places(np.zeros(len(first), dtype=np.intp), folds[first], rng)[of]
    classes = problem.classes
    codes = np.zeros(len(folds), dtype=np.intp) if classes is None else np.searchsorted(classes, problem.y)
    return _dealt_places(codes, folds, rng)


def _dealt_places(codes: Array, folds: Array, rng: np.random.RandomState) -> Array:
    """Return places (m,) that go through the folds in turn, class by class."""
    shuffled = rng.permutation(len(codes))
    turn = _numbers_before((codes * (int(folds.max()) + 1) + folds)[shuffled])
    order = shuffled[np.lexsort((folds[shuffled], turn))]
    places = np.empty(len(codes))
    places[order] = (_numbers_before(codes[order]) + 0.5) / np.bincount(codes)[codes[order]]
    return places


def _numbers_before(kinds: Array) -> Array:
    """Return how many of the same kind come before each (m,).

    >>> _numbers_before(np.array([7, 5, 7, 7, 5]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(kinds, kind="stable")
    before = np.empty(len(kinds), dtype=np.intp)
    before[order] = np.arange(len(kinds)) - np.searchsorted(kinds[order], kinds[order])
    return before
