"""Numbers that steer how generalised linear models are solved, never what they compute."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GlmTuning:
    """Sizes at which another way is taken, and how exactly maximum likelihood is solved."""

    sample_rows: int = 2**16  # of the subsample that gives the shift and, for long tables, the start
    long_table: int = 2**18  # rows from which the start is the subsample's solution
    sample_tol: float = 1e-3  # relative gap to which the subsample is solved
    sample_passes: int = 20  # most updates in solving the subsample
    sample_stride: int = 16  # one row of so many of the subsample is solved before it
    first_tol: float = 1e-2  # relative gap to which these rows are solved
    rows_per_column: int = 20  # with fewer of these rows for each parameter the subsample is solved at once
    first_rows: int = 256  # whose largest entry tells the size of the columns
    negligible: float = 1e-12  # share of the rows' squares up to which a ridge penalty is found from least squares
    refined_entries: int = 2**18  # entries up to which least squares ends with a refined step, needed or not
    # Maximum likelihood is solved until each coefficient is this share of its standard error from it:
    error_share: float = 1e-7
    error_share_long: float = 1e-5  # in long tables, where a pass takes time
    error_share_squares: float = 1e-12  # by least squares, where it costs nothing
    checked_entries: int = 2**17  # entries up to which the checker proves a fit of nearly collinear columns
    rounding_share: float = 0.1  # of the gap asked for: with more rounding in it, the checker proves a fit
    hessian_columns: int = 2000  # columns beyond which squares beside an L1 penalty are solved in working sets
    strict_tol: float = 1e-7  # below which the checker is asked whether such a fit is proved
    caution: float = 1e4  # where nothing is proved, a step must promise this many times less than `tol`
