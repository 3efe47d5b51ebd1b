"""From targets to slacks: every row becomes one slack z = q - s η of its score η, or two in regression.

A row of class y = ±1 has the slack 1 - y η. A number y that is to be met within ε has the slacks (y - ε) - η and
(-y - ε) + η, of which at most one is positive.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from certifit.rows import Array


class SlackSide(NamedTuple):
    """One slack z = q - s η for each row."""

    s: Array  # (rows,) ±1
    q: Array  # (rows,)


class SlackRule(Protocol):
    """How the targets y (rows,) of a block become slacks: one `SlackSide`, or two in regression."""

    def __call__(self, y: Array) -> tuple[SlackSide, ...]: ...


class OneAgainstRest(NamedTuple):
    """Classification of one class, by its number, against all others."""

    code: int

    def __call__(self, y: Array) -> tuple[SlackSide, ...]:
        return (SlackSide(np.where(y == self.code, 1.0, -1.0), np.ones(len(y))),)


class EpsilonTube(NamedTuple):
    """Regression: numbers are to be met within epsilon."""

    epsilon: float

    def __call__(self, y: Array) -> tuple[SlackSide, ...]:
        ones = np.ones(len(y))
        return SlackSide(ones, y - self.epsilon), SlackSide(-ones, -y - self.epsilon)


def one_against_rest(k: int) -> tuple[SlackRule, ...]:
    """One machine for each of k classes, or a single one, for class 1, where there are two classes."""
    return tuple(OneAgainstRest(code) for code in range(k)) if k > 2 else (OneAgainstRest(1),)
