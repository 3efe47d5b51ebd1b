"""Numbers that steer how a mixture of families is fitted; they change speed, memory and warnings, not the maximum."""

from __future__ import annotations

from dataclasses import dataclass

from certifit.mixture.starting_groups import StartTuning


@dataclass(frozen=True)
class FamilyMixtureTuning(StartTuning):
    """Numbers of the EM steps, then of the first components, then of what counts as degenerate."""

    # EM steps
    batch_statistics: int = 2**19  # statistics held at a time
    least_batch_rows: int = 64
    rounding: float = 1e-10  # by which stored parameters may differ before the fit is measured again
    most_classes: int = 10_000  # classes of one column at most
    # first components
    sample_rows: int = 2**16  # rows at most that groups are sought in
    sample_statistics: int = 2**23  # statistics of these rows at most
    shared: float = (
        0.1  # part of every row that all groups share: what a start finds impossible, EM never finds possible
    )
    reach: float = 5.0  # standard deviations at which statistics are cut off while groups are sought
    # degenerate components
    fewest_rows: float = 0.5  # rows below which a component has none of its own
    same: float = 1e-3  # relative difference of parameters below which two components are the same
