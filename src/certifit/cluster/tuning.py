"""Numbers that steer how k-means is solved."""

from __future__ import annotations

from dataclasses import dataclass

from certifit.checkers.cluster.semidefinite_bound import ProofInFit


@dataclass(frozen=True)
class KMeansTuning(ProofInFit):
    """When k-means takes which way, and how much work it does there and for its proof."""

    # Lloyd passes
    compiled_above: int = 2**22  # rows x columns x centres up to which compiling costs more than it saves
    plain_answers: int = 2**9  # columns x centres up to which products find the nearest centre as fast as bounds
    # starts
    sample_rows: int = 2**16  # rows that starts are drawn from at most; larger tables are thinned at random first
    sample_entries: int = 2**24  # entries (rows x columns) of these rows at most
    # swaps of a centre
    most_swaps: int = 32  # tried from each start with swaps='auto'
    swapped_up_to: int = 2**16  # rows x columns x clusters up to which swaps='auto' tries any
    places: int = 8  # rows on offer for each swap
    # a single column
    compiled_numbers: int = 512  # distinct numbers up to which compiling costs more than it saves
    most_cells: int = 2**20  # distinct numbers x clusters that are solved exactly; more are first merged to fewer
    most_intervals: int = 1024  # clusters beyond which even that takes too long
    most_sorted: int = 2**23  # rows that are sorted at all
