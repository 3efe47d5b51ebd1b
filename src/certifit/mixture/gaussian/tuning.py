"""Numbers that steer how a Gaussian mixture is fitted; they change speed, memory and warnings, not the maximum."""

from __future__ import annotations

from dataclasses import dataclass

from certifit.mixture.starting_groups import StartTuning


@dataclass(frozen=True)
class GaussianMixtureTuning(StartTuning):
    """Numbers of the EM steps, then of the first components, then of what counts as collapsed."""

    # EM steps
    far: float = 100.0  # standard deviations from the shift beyond which a component has features about its own mean
    batch_numbers: int = 2**17  # numbers in a batch's features: what a processor's own cache holds
    least_batch_rows: int = 256
    most_batch_rows: int = 2048
    pattern_numbers: int = 2**22  # numbers at most in the inverses that one batch's missing patterns need
    fewest: float = 1e-15  # share of all weight below which a component has no rows
    mean_rounding: float = 1e-8  # nats that storing a mean rounded may cost its rows before the fit is measured again
    # first components
    empty_share: float = 1e-12  # share of all weight that a group without rows counts with, among pooled covariances
    # collapsed components
    negligible: float = 0.05  # of the floor, or of `tiny`: a variance this small is none
    tiny: float = 1e-6  # squared spreads
    no_weight: float = 1e-9  # weight of a component without rows
    rows_named: int = 5  # rows of a component that a warning lists
    reach: float = (
        10.0  # spreads from the median at which rows are cut off, so that a few wild ones fill no direction
    )
