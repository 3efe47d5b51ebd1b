"""What the compiled loops of exact trees share: records, entries of sorted columns, thresholds and random numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops_uncounted, written_into_loops_uncounted
from certifit.rows import Array


class SortedTable(NamedTuple):
    """Every column's rows in the order of their values; `entries` are rearranged while a tree grows.

    An entry is the rank of a value among the column's distinct ones, and below it (32 bits) the number of its row: a
    node is read from its start to its end, where values looked up by row would be misses of the cache.
    """

    entries: Array  # (d, n) int64: rank << 32 | row; missing values have the rank after the last
    values: Array  # (v,) float64: the distinct values of one column after another, ascending
    first: Array  # (d + 1,) where those of each column begin
    labels: Array  # (n, t) int32: channels that a row's weight enters; t = 0 for amounts
    moments: Array  # (n, c) int64: what a row adds to each channel; c = 0 for classes
    weight: Array  # (n,) int64
    left: Array  # (n,) uint8: scratch, whether a row goes left
    monotone: Array  # (d,) int8: -1, 0 or 1


class SplitRules(NamedTuple):
    """What a split must satisfy, and how it is scored."""

    score: int  # QUADRATIC, LOGARITHMIC, POSITIVE or ABSOLUTE
    channels: int
    leaf_rows: int  # fewest rows of a child
    leaf_weight: float  # least weight of a child, in the statistics' unit
    columns: int  # how many columns that vary are looked at; all of them if as many as there are
    random: bool  # thresholds drawn between a node's extremes instead of the best
    seed: int


class NodeToSplit(NamedTuple):
    """A node: its run of entries and what its rows add up to."""

    start: int
    end: int
    total: Array  # (c,) int64
    weight: int
    limits: Array  # (2,) values that monotone columns allow
    key: Any  # int64: random bits of this node
    room: Any  # NodeRoom; None where it is not needed


class NodeCentre(NamedTuple):
    """What sums of amounts are scored about: the mean of the node, in units of the sums for one of weight."""

    whole: Array  # (c,) int64: its next whole number
    part: Array  # (c,) float64: the rest


class NodeRoom(NamedTuple):
    """Room in which one thread works on nodes of at most m rows: loops that make no arrays are sooner compiled."""

    columns: Array  # (d,) int64: the columns that a node looks at
    kept: Array  # (2, m) int64: entries that wait for their place, and a second such list
    sums: Array  # (3, c) int64: of the left child, of the right one, and the whole part of the node's centre
    part: Array  # (c,) float64: the rest of the node's centre
    # (3, m) int64: rows in the order in which they enter a side, borders after them, and where borders are
    walk: Array
    entered: Array  # (2, m + 1) int64: Fenwick trees
    errors: Array  # (3, m) float64: at every border, the errors of both sides and the medians of each


def node_room(columns: int, channels: int, rows: int, medians: bool) -> NodeRoom:
    """Room for nodes of at most so many rows, and for their medians where these are looked for."""
    m = rows if medians else 0
    return NodeRoom(
        np.empty(columns, np.int64),
        np.empty((2, rows), np.int64),
        np.empty((3, channels), np.int64),
        np.empty(channels),
        np.empty((3, m), np.int64),
        np.empty((2, m + 1), np.int64),
        np.empty((3, m)),
    )


class Split(NamedTuple):
    """The best split of a node; `column` is -1 where there is none."""

    score: float
    column: int
    position: int  # number of the node's rows with a value that go left, in the column's order
    missing_left: bool
    met_missing: bool  # whether any of the node's rows lacks a value in the column
    threshold: float
    order: int  # the channel by whose means categories are in order; -1 for numbers


@called_by_loops_uncounted
def _threshold_between(low, high):
    """Return a number t with low <= t < high: the middle, or the lower value where the middle rounds to the upper."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


# Some are written into their callers: to hand a named tuple of arrays over for every row costs more than the sums.
@written_into_loops_uncounted
def _add_row(labels, moments, weight, r, sums):
    """Add a row's statistics to the sums of a child."""
    for t in range(labels.shape[1]):
        sums[labels[r, t]] += weight[r]
    for c in range(moments.shape[1]):
        sums[c] += moments[r, c]


@called_by_loops_uncounted
def _row_of(entry):
    return entry & 0xFFFFFFFF


@called_by_loops_uncounted
def _rank_of(entry):
    return entry >> 32
