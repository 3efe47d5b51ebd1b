"""Columns as codes of one byte: borders by weighted quantiles, categories by frequency, a code for missing values.

A column with no more distinct values than bins keeps them all apart, and its borders lie midway between neighbours:
nothing is lost. Other columns are cut so that bins have about equal weight; a value that outweighs a whole bin has
one of its own, and the others share what is left. Borders come from all rows, or, of a long table, from a sample that
row numbers alone decide: memory, Parquet and Dask give the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.numerics.compiled.compiling import PlainFirst
from certifit.numerics.compiled.random_bits import random_bits_of
from certifit.rows import Array, Block, Rows
from certifit.rows.block import block_rows
from certifit.rows.threads import parallel_map
from certifit.tree.binned.encode_loops import encode_block

MISSING_CODE = 255  # of every column, whatever its number of bins


@dataclass(frozen=True)
class BinTuning:
    """How many rows borders are learnt from, at most, and how many of a block tell that a column has many values."""

    sample_rows: int = 200_000
    glanced_rows: int = 1024


class CodeTables(NamedTuple):
    """What one row needs to become codes, with columns of one length."""

    keys: Array  # (d, 255) borders, or categories in ascending order; +inf behind the last
    codes: Array  # (d, 256) uint8: the code of each place between keys
    categorical: Array  # (d,) bool: a value must equal its key, or it counts as missing


class CodedRows(NamedTuple):
    """Rows as codes, with their targets and weights."""

    codes: Array  # (n, d) uint8
    y: Array  # (n,) float64; (n, t) of several targets
    w: Array  # (n,)

    def only(self, kept: Array) -> CodedRows:
        """A copy of the rows marked (n,)."""
        return CodedRows(self.codes[kept], self.y[kept], self.w[kept])

    def moved_together(self, kept: Array) -> CodedRows:
        """The rows marked (n,), their codes moved to the front of the same memory; those of the others are lost."""
        at, step = 0, block_rows(self.codes.shape[1])
        for start in range(0, len(kept), step):
            part = self.codes[start : start + step][kept[start : start + step]]
            self.codes[at : at + len(part)] = part
            at += len(part)
        return CodedRows(self.codes[:at], self.y[kept], self.w[kept])


@dataclass(frozen=True, eq=False)
class ColumnBins:
    """The bins of every column.

    The code of x in column j is at most k exactly where x <= borders[j][k]. A category's code is its place among
    categories[j]; one that has no place there, because it is rare or new, counts as missing.
    """

    borders: tuple[Array, ...]  # each (n_bins - 1,) float64, ascending; empty for categories
    categories: tuple[Array, ...]  # each (n_bins,) float64, most frequent first; empty for numbers
    is_categorical: Array  # (d,) bool
    n_bins: Array  # (d,) codes in use, not counting that of missing values
    has_missing: Array  # (d,) bool: whether the rows that were learnt from had any value without a code of its own

    @cached_property
    def tables(self) -> CodeTables:
        """Borders and categories as the compiled loop wants them."""
        d = len(self.borders)
        keys, codes = np.full((d, 255), np.inf), np.tile(np.arange(256, dtype=np.uint8), (d, 1))
        for j in range(d):
            if self.is_categorical[j]:
                order = np.argsort(self.categories[j], kind="stable")
                keys[j, : len(order)] = self.categories[j][order]
                codes[j] = MISSING_CODE
                codes[j, : len(order)] = order
            else:
                keys[j, : len(self.borders[j])] = self.borders[j]
        return CodeTables(keys, codes, np.asarray(self.is_categorical, np.bool_))

    def encode(self, X: Any) -> Array:
        """The codes of rows (n, d), a row after another, uint8."""
        X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) and X.dtype.kind == "f" else dense(X)
        codes = np.empty(X.shape, np.uint8)
        rows = block_rows(X.shape[1])
        runs = [slice(start, start + rows) for start in range(0, len(X), rows)]
        tables = self.tables
        parallel_map(lambda run: _fill_codes(X[run], tables, codes[run]), runs)
        return codes

    def encode_block(self, block: Block) -> Array:
        """The codes of a block's rows."""
        X = block.X if isinstance(block.X, np.ndarray) else dense(block.X)
        codes = np.empty(X.shape, np.uint8)
        _fill_codes(X, self.tables, codes)
        return codes

    def coded_rows(self, rows: Rows, by_column: bool = False, targets: int = 1) -> CodedRows:
        """All rows of a table from any source, which is read once: a byte a value, beside targets and weights.

        `by_column`: the codes of a column lie one after another in memory, not those of a row.
        """
        n = rows.n_rows
        codes = np.empty((n, rows.n_features), np.uint8, order="F" if by_column else "C")
        found = CodedRows(codes, np.empty(n if targets == 1 else (n, targets)), np.empty(n))
        rows.fill(self._coded_block, found)
        return found

    def _coded_block(self, block: Block) -> CodedRows:
        return CodedRows(self.encode_block(block), np.asarray(block.y, np.float64), block.w)

    def decode(self, codes: Array) -> Array:
        """Values (n, d) that have these codes: of a bin its upper border, on the side of its other values.

        Values without a code of their own become missing.
        """
        d = codes.shape[1]
        keys = np.column_stack([self.tables.keys, np.full(d, np.nan)])
        for j, kinds in enumerate(self.categories):
            keys[j, : len(kinds)] = kinds
        values = np.empty(codes.shape)
        for j in range(d):
            np.take(keys[j], codes[:, j], out=values[:, j])
        return values


PLAIN_FIRST = PlainFirst(encode_block)


def _fill_codes(X: Array, tables: CodeTables, codes: Array) -> None:
    """Fill in the codes (n, d) of rows X; of few rows without the compiled loop, where that is not there yet."""
    if not PLAIN_FIRST.suffices(X.size):
        encode_block(X, tables, codes)
        return
    with PLAIN_FIRST.timed():
        for j, x in enumerate(np.asarray(X, np.float64).T):
            keys = tables.keys[j]
            place = np.searchsorted(keys, x)
            lost = np.isnan(x)
            if tables.categorical[j]:
                lost |= (place == len(keys)) | (keys[np.minimum(place, len(keys) - 1)] != x)
            codes[:, j] = np.where(lost, MISSING_CODE, tables.codes[j, place])


def learn_bins(
    rows: Rows, most_bins: int = 255, categorical: Array | None = None, tuning: BinTuning = BinTuning()
) -> ColumnBins:
    """Learn the bins of every column from the rows with a positive weight; `categorical` (d,) marks categories."""
    is_categorical = np.zeros(rows.n_features, bool) if categorical is None else np.asarray(categorical, bool)
    share = min(1.0, tuning.sample_rows / max(rows.n_rows, 1))
    found = rows.sum(partial(_survey, is_categorical, most_bins, share, tuning.glanced_rows))
    sample, w = found.values(), found.weights()
    whole = [
        (sample[:, j], w, np.empty(0) if is_categorical[j] else found.distinct[j]) for j in range(rows.n_features)
    ]
    numbers = parallel_map(partial(_learnt_borders, most_bins), whole)
    categories = tuple(kinds.most_frequent(most_bins) for kinds in found.categories)
    n_bins = np.where(is_categorical, [len(c) for c in categories], [len(b) + 1 for b in numbers])
    rare = np.array([len(kinds.value) > most_bins for kinds in found.categories])
    return ColumnBins(tuple(numbers), categories, is_categorical, n_bins, found.missing | rare)


@dataclass(frozen=True)
class CategoryWeights:
    """The categories of a column and their weights; `+` merges them."""

    value: Array  # (c,) ascending
    weight: Array  # (c,)

    def __add__(self, other: CategoryWeights) -> CategoryWeights:
        value, place = np.unique(np.concatenate([self.value, other.value]), return_inverse=True)
        return CategoryWeights(value, np.bincount(place, np.concatenate([self.weight, other.weight]), len(value)))

    def most_frequent(self, count: int) -> Array:
        """The heaviest categories, heaviest first; of equal ones the smaller value first."""
        return self.value[np.argsort(-self.weight, kind="stable")[:count]]


NO_CATEGORIES = CategoryWeights(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class BinSurvey:
    """What a run of rows teaches about the columns; `+` joins the runs, in the order of the rows."""

    sample: tuple[Array, ...]  # runs of (rows, d)
    weight: tuple[Array, ...]  # runs of (rows,)
    distinct: tuple[Array | None, ...]  # of each column, its distinct values; None where they are too many
    categories: tuple[CategoryWeights, ...]  # empty for numbers
    missing: Array  # (d,) bool
    most_bins: int

    def __add__(self, other: BinSurvey) -> BinSurvey:
        pairs = zip(self.distinct, other.distinct, strict=True)
        kinds = zip(self.categories, other.categories, strict=True)
        return BinSurvey(
            self.sample + other.sample, self.weight + other.weight,
            tuple(None if a is None or b is None else _few(np.union1d(a, b), self.most_bins) for a, b in pairs),
            tuple(a + b for a, b in kinds),
            self.missing | other.missing, self.most_bins,
        )  # fmt: skip

    def values(self) -> Array:
        """The sampled rows, all in one array."""
        return np.concatenate(self.sample)

    def weights(self) -> Array:
        return np.concatenate(self.weight)


def _survey(is_categorical: Array, most_bins: int, share: float, glanced: int, block: Block) -> BinSurvey:
    """What a block teaches about the columns."""
    kept = block.w > 0
    X, w = dense(block.X), block.w
    number = block.start + np.arange(len(w))
    if not kept.all():
        X, w, number = X[kept], w[kept], number[kept]
    drawn = slice(None) if share >= 1 else random_bits_of(number) < np.uint64(share * 2.0**64)
    # Of a short table everything is in the sample, and nothing has to be counted block by block.
    few = [
        None if c or share >= 1 else _few_distinct(x, most_bins, glanced)
        for c, x in zip(is_categorical, X.T, strict=True)
    ]
    categories = [_category_weights(x, w) if c else NO_CATEGORIES for c, x in zip(is_categorical, X.T, strict=True)]
    missing = np.asarray(np.isnan(X).any(axis=0))
    return BinSurvey((X[drawn],), (w[drawn],), tuple(few), tuple(categories), missing, most_bins)


def _few(values: Array, most: int) -> Array | None:
    return values if len(values) <= most else None


def _few_distinct(x: Array, most: int, glanced: int) -> Array | None:
    """The distinct values of a column of a block, or None where there are more than `most`."""
    if len(np.unique(x[:glanced])) > most + 1:  # one may be NaN
        return None
    found = np.unique(x)
    return _few(found[~np.isnan(found)], most)


def _category_weights(x: Array, w: Array) -> CategoryWeights:
    known = ~np.isnan(x)
    value, place = np.unique(x[known], return_inverse=True)
    return CategoryWeights(value, np.bincount(place, w[known], len(value)))


def _learnt_borders(most_bins: int, column: tuple[Array, Array, Array | None]) -> Array:
    """The borders of a column, from a sample with weights and its distinct values, where these are few."""
    x, w, few = column
    if few is not None:
        return midpoints(few)
    value, weight = _weighted_values(x, w)
    return midpoints(value) if len(value) <= most_bins else quantile_borders(value, weight, most_bins)


def _weighted_values(x: Array, w: Array) -> tuple[Array, Array]:
    """The distinct values of a sample, ascending, and the weight of each."""
    known = ~np.isnan(x)
    if not known.all():
        x, w = x[known], w[known]
    if len(x) and (w == w[0]).all():
        value, count = np.unique(x, return_counts=True)
        return value, count * float(w[0])
    value, place = np.unique(x, return_inverse=True)
    return value, np.bincount(place, w, len(value))


def midpoints(value: Array) -> Array:
    """A number t with low <= t < high between each two neighbours: the middle, or low where that rounds to high."""
    low, high = value[:-1], value[1:]
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def quantile_borders(value: Array, weight: Array, most_bins: int) -> Array:
    """Borders between distinct values, ascending, that cut their weight into at most so many about equal parts."""
    heavy = weight >= weight.sum() / most_bins
    rest, bins = float(weight[~heavy].sum()), most_bins - int(heavy.sum())
    # Where the next bin begins: a heavy value fills a bin of its own, the others one together.
    size = np.where(heavy, 1.0, weight * (bins / rest) if rest > 0 else 0.0)
    full = np.floor(np.cumsum(size))
    ends = np.flatnonzero(np.diff(full, prepend=0.0)[:-1] > 0)[: most_bins - 1]
    return midpoints(value)[ends]
