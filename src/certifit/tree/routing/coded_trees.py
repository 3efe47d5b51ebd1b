"""Trees whose questions are asked of codes of one byte: how many of its column's thresholds a value is above.

With at most 254 different thresholds of a column, `x <= threshold` is `code <= place of the threshold`, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.rows import Array
from certifit.tree.binned.bins import ColumnBins
from certifit.tree.routing.packed_trees import PackedTrees
from certifit.tree.routing.route_loops import COLUMN, LEAF, MISSING_LEFT


@dataclass(frozen=True)
class CodingTuning:
    """When to turn rows into codes pays: for many rows, and enough trees for the columns."""

    fewest_rows: int = 500
    shares: int = 16  # that threads have of the rows of a table, if each has as many rows
    columns_per_tree: int = 16
    most_thresholds: int = 254  # of a column


class CodedTrees(NamedTuple):
    """Nodes of 8 bytes, in the places of packed trees."""

    steps: Array  # (m,) uint64: left child << 32 | column << 16 | code << 8 | certain << 1 | missing values go left
    first: Array  # (T + 1,) int64


def coded_trees(
    trees: PackedTrees, d: int, value: Array, tuning: CodingTuning = CodingTuning()
) -> tuple[CodedTrees, ColumnBins] | None:
    """The trees and the bins that rows (n, d) are coded by; None with sets, or too many thresholds of a column.

    value (m, k), by place, are those of the leaves: of one that is certain of its class the node says which it is.
    """
    if len(trees.sets) or d > 2**16:
        return None
    packed, places = trees.steps["column"], np.arange(len(trees.steps))
    inner = np.flatnonzero(packed & LEAF == 0)
    column, threshold = (packed[inner] & COLUMN).astype(np.int64), trees.steps["threshold"][inner]
    # By column and, within one, by threshold; few columns are sorted by counting.
    order = np.argsort(threshold)
    order = order[np.argsort(column[order].astype(np.uint16), kind="stable")]
    column, threshold = column[order], threshold[order]
    new = np.append(True, (column[1:] != column[:-1]) | (threshold[1:] != threshold[:-1]))[: len(inner)]
    counts = np.bincount(column[new], minlength=d)
    if counts.max(initial=0) > tuning.most_thresholds:
        return None
    borders = np.split(threshold[new], np.cumsum(counts)[:-1])
    code = np.cumsum(new) - 1 - (np.cumsum(counts) - counts)[column]
    # A leaf leads to itself: no code is above 255.
    steps = places.astype(np.uint64) << np.uint64(32) | np.uint64(255 << 8 | 1)
    steps |= _certain_class(value) << np.uint64(1)
    at = inner[order]
    children = trees.steps["left"][at].astype(np.uint64) << np.uint64(32) | column.astype(np.uint64) << np.uint64(16)
    lost = (packed[at] & MISSING_LEFT != 0).astype(np.uint64)
    steps[at] = children | code.astype(np.uint64) << np.uint64(8) | lost
    no = np.zeros(d, bool)
    bins = ColumnBins(tuple(borders), (np.zeros(0),) * d, no, counts + 1, no)
    return CodedTrees(steps, trees.first), bins


def _certain_class(value: Array) -> Array:
    """(m,) uint64: the number of the only value that is not 0, plus 1, where that is a 1 and among the first 127."""
    found = np.zeros(len(value), np.uint64)
    alone = np.count_nonzero(value, axis=1) == 1
    for c in range(min(127, value.shape[1])):
        found[alone & (value[:, c] == 1.0)] = c + 1
    return found
