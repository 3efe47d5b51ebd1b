"""Fits on the rows of a fold that lack a class: those of the other classes, which is what a fit then tends to.

The intercept of a class without rows goes to -∞, its probability to 0, and its coefficients to 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.cross_validated.logistic import LogisticSearch
from certifit.rows import Array


class PresentProblem(NamedTuple):
    """What to fit to the classes that are there."""

    search: LogisticSearch
    l1_ratio: float


def present_problem(search: LogisticSearch, ratio: float, there: Array) -> PresentProblem:
    """The same penalty for the classes that are there.

    Two classes have one score, β = β₂ - β₁: where β₂ = -β₁ their penalty is λ₁ |β|₁ + (λ₂/2) |β|²/2.
    """
    if len(there) > 2:
        return PresentProblem(search, ratio)
    return PresentProblem(search._replace(Cs=2 * search.Cs / (1 + ratio)), 2 * ratio / (1 + ratio))


def with_absent(coef: Array, intercept: Array, there: Array, k: int) -> tuple[Array, Array]:
    """Coefficients (m, k, d) and intercepts (m, k) of all classes, from those of the classes that are there."""
    full, b = np.zeros((len(coef), k, coef.shape[2])), np.full((len(coef), k), -np.inf)
    if len(there) == 2:
        coef, intercept = (np.concatenate([-part, part], axis=1) / 2 for part in (coef, intercept))
    full[:, there], b[:, there] = coef, intercept
    return full, b


def only_class(there: Array, k: int, m: int, d: int) -> tuple[Array, Array]:
    """The fits (m, …) to rows of a single class: certain of it, whatever the row; one score for two classes."""
    if k == 2:
        return np.zeros((m, 1, d)), np.full((m, 1), np.inf if there[0] == 1 else -np.inf)
    b = np.full((m, k), -np.inf)
    b[:, there] = 0.0
    return np.zeros((m, k, d)), b
