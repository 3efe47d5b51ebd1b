"""Bins of columns and the candidates that they offer: borders between bins, and thresholds somewhere inside one.

A bin whose values are all equal has no threshold inside. A threshold inside another bin sends the bins below to the
left and those above to the right; of the rows in the bin nothing is known, so a lower bound gives them away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block, Rows
from certifit.rows.threads import parallel_map
from certifit.tree.optimal.scan_loops import ColumnCandidates, code_columns


@dataclass(frozen=True)
class CodedColumns:
    """Every value as the number of its bin, and the least and largest value of every bin."""

    borders: list[
        Array
    ]  # of each column, ascending: a value x lies in the bin whose number is that of borders below x
    codes: Array  # (d, n) uint8 or uint16; missing values have the number after the last bin
    least: list[Array]  # of each bin of a column; inf of one without rows
    largest: list[Array]

    def bins(self, j: int) -> int:
        return len(self.borders[j]) + 1

    def open_bins(self, j: int) -> Array:
        """Which bins of a column hold several values."""
        return self.least[j] < self.largest[j]

    @cached_property
    def has_missing(self) -> Array:
        """Which columns lack values (d,)."""
        return np.array([bool((codes == self.bins(j)).any()) for j, codes in enumerate(self.codes)])

    def threshold(self, j: int, border: int) -> float:
        """A number between the bins up to a border and those above it: the middle, where it lies between them."""
        below, above = self.largest[j][: border + 1], self.least[j][border + 1 :]
        low = float(below.max(initial=-np.inf, where=np.isfinite(below)))
        high = float(above.min(initial=np.inf, where=np.isfinite(above)))
        middle = low / 2 + high / 2
        return middle if low <= middle < high else low


@dataclass(frozen=True)
class SplitCandidates:
    """The candidates of all columns, one after another."""

    column: Array  # (c,)
    bin: Array  # (c,) the bin inside which the threshold lies, or below whose upper border
    opened: Array  # (c,) bool: a threshold inside the bin
    low: Array
    high: Array
    missing_left: Array
    first: Array  # (d + 1,)

    def of(self, j: int) -> ColumnCandidates:
        a, b = int(self.first[j]), int(self.first[j + 1])
        return ColumnCandidates(self.low[a:b], self.high[a:b], self.missing_left[a:b], a)


def split_candidates(coded: CodedColumns, relaxed: bool) -> SplitCandidates:
    """All borders; or, if `relaxed`, what is better than any threshold: inside bins, and borders of closed ones."""
    rows: list[tuple[int, ...]] = []
    counts = [0]
    for j in range(len(coded.codes)):
        m, inside = coded.bins(j), coded.open_bins(j) & relaxed
        sides = (False, True) if coded.has_missing[j] else (False,)
        for missing_left in sides:
            rows += [(j, b, True, b, b + 1, missing_left) for b in np.flatnonzero(inside).tolist()]
            closed = [b for b in range(m - 1) if not (inside[b] or inside[b + 1])]
            rows += [(j, b, False, b + 1, b + 1, missing_left) for b in closed]
        if coded.has_missing[j]:  # all that is known to the left
            rows.append((j, m - 1, False, m, m, False))
        counts.append(len(rows))
    column, number, opened, low, high, lost = np.array(rows, dtype=np.int64).reshape(-1, 6).T.copy()
    return SplitCandidates(column, number, opened > 0, low, high, lost > 0, np.array(counts))


def first_borders(sample: Array, w: Array, most: int) -> list[Array]:
    """Borders of at most so many bins of about equal weights; every value is a bin where there are few."""

    def of_column(x: Array) -> Array:
        x, mass = _in_order(x, w)
        values = x[np.append(True, x[1:] > x[:-1])] if len(x) else x
        if len(values) > most:
            values = np.unique(np.append(_quantiles(x, mass, most), values[-1]))
        return values[:-1]

    return parallel_map(of_column, np.asarray(sample, np.float64).T)


def _in_order(x: Array, w: Array) -> tuple[Array, Array]:
    """The known values of a column, ascending, and their weights."""
    known = ~np.isnan(x)
    x, w = x[known], w[known]
    if len(w) and (w == w[0]).all():  # to sort values alone is many times faster
        return np.sort(x), w
    order = np.argsort(x, kind="stable")
    return x[order], w[order]


def _quantiles(x: Array, w: Array, parts: int) -> Array:
    """The values, of ascending ones, up to which 1, 2, … of so many parts of the weight lie."""
    reached = np.cumsum(w)
    return x[np.searchsorted(reached, reached[-1] * np.arange(1, parts) / parts)]


def finer_borders(coded: CodedColumns, sample: Array, w: Array, marked: list[Array], parts: int) -> list[Array]:
    """Borders with every marked bin cut into parts: by the values of the sample, or in the middle if it has none."""
    found = []
    for j, bins in enumerate(marked):
        if not len(bins):
            found.append(coded.borders[j])
            continue
        x, mass = _in_order(np.asarray(sample[:, j], np.float64), w)
        ends = np.concatenate([[0], np.searchsorted(x, coded.borders[j], side="right"), [len(x)]])
        new = []
        for b in bins:
            least, largest = coded.least[j][b], coded.largest[j][b]
            inside = slice(ends[b], ends[b + 1])
            cuts = _quantiles(x[inside], mass[inside], parts) if ends[b] < ends[b + 1] else np.zeros(0)
            cuts = np.unique(cuts[(cuts >= least) & (cuts < largest)])
            if not len(cuts):
                middle = least / 2 + largest / 2
                cuts = np.array([middle if least <= middle < largest else least])
            new.append(cuts)
        found.append(np.unique(np.concatenate([coded.borders[j], *new])))
    return found


def code_rows(rows: Rows, borders: list[Array]) -> CodedColumns:
    """The codes of all rows with a positive weight, and the ranges of the bins, in one pass."""
    most = max(map(len, borders))
    keys = np.full((len(borders), (1 << most.bit_length()) - 1), np.inf)
    for own, key in zip(borders, keys, strict=True):
        key[: len(own)] = own
    bins = np.array([len(own) + 1 for own in borders])
    parts = rows.each(partial(_code_block, keys, bins, np.uint8 if most < 254 else np.uint16))
    least, largest = (np.array([part[1][side] for part in parts]) for side in (0, 1))
    low, high = least.min(axis=0), largest.max(axis=0)
    parts.reverse()  # each is let go when it is copied
    codes = np.empty((len(borders), sum(part[0].shape[1] for part in parts)), parts[0][0].dtype)
    start = 0
    while parts:
        part = parts.pop()[0]
        codes[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    ends = [[own[:m] for own, m in zip(side, bins, strict=True)] for side in (low, high)]
    return CodedColumns(borders, codes, *ends)


def _code_block(keys: Array, bins: Array, kind: type, block: Block) -> tuple[Array, Array]:
    """The codes (d, rows) of a block, and the least and largest value of every bin (2, d, bins)."""
    X = dense(block.X)
    kept = block.w > 0
    X = X if kept.all() else X[kept]
    codes: Array = np.empty((len(keys), len(X)), kind)
    ranges = np.empty((2, len(keys), int(bins.max())))
    ranges[0], ranges[1] = np.inf, -np.inf
    code_columns(X, keys, bins, codes, ranges)
    return codes, ranges
