"""An optimiser and copies of it for other threads, all of which take every step.

What one core wrote another one fetches slowly: to move two hundred thousand parameters on one core, and to read them
from there on the next, took a third of a minibatch's time. Where every thread moves a copy of its own, by the same
slopes, only slopes travel, and all copies have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from certifit.neural_network.training.optimisers import Optimiser, PlannedStep
from certifit.rows import Array


@dataclass(frozen=True)
class TeamTuning:
    """When threads have copies of their own."""

    most_threads: int = 2  # of more, each would have to fetch the slopes of all others


class OptimiserTeam:
    """An optimiser whose planned step is taken by every thread when it begins the next minibatch."""

    def __init__(self, optimiser: Optimiser, threads: int, tuning: TeamTuning = TeamTuning()) -> None:
        copies = threads - 1 if threads <= tuning.most_threads else 0
        self.members = [optimiser, *(optimiser.copy() for _ in range(copies))]
        self.squares = optimiser.squared_weights()
        self._planned: PlannedStep | None = None
        self._behind = [False] * len(self.members)  # who has yet to take it

    @property
    def copies(self) -> list[Array]:
        """The parameters (p,) of each member."""
        return [one.params for one in self.members]

    def plan(self, slopes: Array, weight: float, factor: float) -> None:
        """Note the next step, by the slopes of a minibatch of this weight, at `factor` times the rate."""
        self._planned = self.members[0].plan(slopes, weight, factor)
        self._behind = [True] * len(self.members)
        if len(self.members) == 1:
            self.move(0)  # threads that share parameters find them moved

    def move(self, thread: int) -> None:
        """Take the planned step with this thread's copy, if it has one that has not."""
        if thread < len(self.members) and self._behind[thread] and self._planned is not None:
            self._behind[thread] = False
            self.members[thread].move(self._planned)
            if thread == 0:
                self.squares = self.members[0].squared_weights()

    def settle(self) -> None:
        """Take the planned step with every copy."""
        for k in range(len(self.members)):
            self.move(k)
