"""The numbers that steer how linear support vector machines are solved, never what is solved."""

from __future__ import annotations

from dataclasses import dataclass, field

from certifit.svm.linear.coordinate_ascent import CoordinateAscentTuning
from certifit.svm.linear.interior_point import InteriorPointTuning


@dataclass(frozen=True)
class LinearSvmTuning:
    """Fields in the order of the phases of `svm.linear.solve`; d1 is the number of columns and the intercept."""

    newton_columns: int = 2000  # columns up to which Hessians are formed; beyond, `svm.linear.dual_solver` is used
    small_entries: int = 10_000  # of a table for which the checker is asked wherever a fit has not proved enough
    settled: float = 1e-7  # in sizes of a target: so near to the middle of the best ones an intercept stays

    # start on some rows
    sample_rows: int = 8192  # rows of the sample, or
    sample_rows_per_column: int = 64  # so many times d1 rows, if that is more
    sample_ratio: int = 3  # table rows for each row of the sample, from which the start saves time
    sample_tol: float = 1e-2  # relative gap on the sample
    # of the time allowed: spent on this start even where less is left, since one pass from 0 proves nothing of use
    sample_time_share: float = 0.25

    # start by dual coordinate ascent
    dual_start_entries: int = 2**22  # n d1 above which other tables in memory start this way
    dual_start_gap: float = 0.05  # relative gap at which it ends, and without which it is ignored
    dual_start_passes: int = 7  # measurements of the gap at most
    dual_start_rows_per_column: int = 3  # slacks in the first working set, times d1
    dual_start_width: float = 0.3  # of the rounded kink afterwards, in units of a typical slack

    # smoothed Newton
    solved_share: float = 0.5  # of the true gap: a smoothed problem with a smaller gap of its own counts as solved
    width_fastest: float = 0.1  # smallest and
    width_slowest: float = 0.7  # largest factor by which the width shrinks
    thinned_gap: float = 0.5  # relative gap above which some rows suffice for the Hessian
    hessian_rows_per_column: int = 10  # so many times d1, then
    full_hessian_entries: int = 2**22  # n d1 up to which all rows enter the Hessian anyway
    refused_steps: int = 6  # steps that were too long, after which the working set is tried

    # working set
    working_rows_per_column: int = 4  # curved slacks, times d1, up to which they are solved for exactly, or
    working_rows: int = 256  # so many, if that is more
    working_entries: int = 2**22  # entries of the working set up to which it is tried where Newton's steps fail
    exact_entries: int = 2**18  # entries of the working set up to which all digits are computed
    inexact_share: float = 0.02  # of the tolerance that is enough for larger ones
    radius_factor: float = 4.0  # by which the radius grows where a slack beyond it has crossed the bend

    interior_point: InteriorPointTuning = field(default_factory=InteriorPointTuning)
    ascent: CoordinateAscentTuning = field(default_factory=CoordinateAscentTuning)
