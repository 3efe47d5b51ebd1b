"""The sums over rows from which feature scores are computed: totals by class, centred products, tables of counts.

Each kind needs one or two passes over the rows, from any source; only the sums are held in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from certifit.exceptions import DataError
from certifit.feature_selection.column_scaling import measure_in_range
from certifit.naive_bayes.class_moments import ClassMoments, measure_class_moments, ratio
from certifit.rows import Array, Block, Matrix, Rows, Sums, transpose

CELLS = 15  # into which measurements are cut; odd, so that no cut is at the mean, where values are often equal


def one_class(_y: Array | None, w: Array) -> tuple[Array | None, Array]:
    """Return targets that put all rows into one class, so that they are summed together."""
    return np.zeros(len(w), np.int32), w


def column_moments(rows: Rows) -> ClassMoments:
    """Return weight, mean (about a centre) and centred squares of each column over all rows, (1, d)."""
    return measure_class_moments(rows.relabel(one_class), 1)


def class_moments(rows: Rows, k: int) -> ClassMoments:
    """Return the moments of each column within each class, of columns scaled where their squares would vanish."""
    return measure_in_range(partial(measure_class_moments, k=k), moment_sizes, rows)[1]


def moment_sizes(m: ClassMoments) -> Array:
    """Return the largest root mean square of each column in any class (d,)."""
    return (np.abs(m.mean) + np.sqrt(ratio(m.ssd, m.weight))).max(axis=0)


def as_dense(X: Matrix) -> Array:
    """Return the rows of a block as a dense array of unchanged type."""
    return X.toarray() if sparse.issparse(X) else X


def with_weight(block: Block) -> tuple[Array, Array, Array]:
    """Return the rows with a positive weight, dense, with targets and weights; no copy where these are all rows."""
    X, y, w = as_dense(block.X), block.y, block.w
    assert y is not None
    used = w > 0
    return (X, y, w) if used.all() else (X[used], y[used], w[used])


def total_weight(rows: Rows) -> float:
    """Return Σ w."""
    return float(rows.sum(_weight))


def _weight(block: Block) -> float:
    return float(block.w.sum())


# ------------------------------------------------------------------------------------------ totals by class
@dataclass(frozen=True)
class _ScoreTotals(Sums):
    """The sums of values and weights by class."""

    x: Array  # Σ w x  (k, d)
    weight: Array  # Σ w  (k,)


def class_totals(rows: Rows, k: int) -> tuple[Array, Array]:
    """Return Σ w x by class (k, d) and each class's share of the weight (k,), and refuse negative values."""
    s = rows.sum(partial(_sum_by_class, k, rows.names))
    return s.x, s.weight / s.weight.sum()


def _sum_by_class(k: int, names: Array | None, block: Block) -> _ScoreTotals:
    values = block.X.data if sparse.issparse(block.X) else block.X
    if values.size and values.min() < 0:
        column = int(as_dense(block.X).min(axis=0).argmin())
        raise DataError(
            got=f"a negative value in {column_in_words(column, names)} of X (Negative values in data)",
            wanted="counts or amounts of at least 0 for score_func='chi2'",
            fix="Use score_func='anova' for measurements.",
        )
    class_weights = (block.y == np.arange(k)[:, None]) * block.w  # (k, rows)
    sums = np.asarray((transpose(block.X) @ class_weights.T).T, dtype=np.float64)
    return _ScoreTotals(sums, class_weights.sum(axis=1))


def column_in_words(column: int, names: Array | None) -> str:
    """Return words for a column: its name if it has one, else its number."""
    return f"column {column}" if names is None else f"column {str(names[column])!r}"


# ---------------------------------------------------------------------------------------- centred products
@dataclass(frozen=True)
class CentredProducts(Sums):
    """The sums of x and y about the centres of a pass; in the final result x and y are the means."""

    weight: float  # Σ w
    x: Array  # Σ w x  (d,)
    y: float  # Σ w y
    xx: Array  # Σ w x²  (d,)
    xy: Array  # Σ w x y  (d,)
    yy: float  # Σ w y²


def centred_products(rows: Rows) -> CentredProducts:
    """Return sums of squares and products about the means, scaled where they would vanish, in two passes."""
    return measure_in_range(_products_about_means, _product_sizes, rows)[1]


def _product_sizes(s: CentredProducts) -> Array:
    """Return the root mean squares of every column and of the target (d + 1,)."""
    return np.append(np.abs(s.x) + np.sqrt(s.xx / s.weight), abs(s.y) + np.sqrt(s.yy / s.weight))


def _products_about_means(rows: Rows) -> CentredProducts:
    first = next(iter(rows))
    assert first.y is not None
    row = int(np.argmax(first.w > 0))
    x0, y0 = as_dense(first.X[row : row + 1])[0].astype(np.float64), float(first.y[row])
    s = rows.sum(partial(_products_about, x0, y0))
    x0, y0 = x0 + s.x / s.weight, y0 + s.y / s.weight
    s = rows.sum(partial(_products_about, x0, y0))
    dx, dy = s.x / s.weight, s.y / s.weight  # the rounding errors of the means
    return CentredProducts(
        s.weight,
        x0 + dx,
        y0 + dy,
        np.maximum(s.xx - s.weight * dx**2, 0.0),
        s.xy - s.weight * dx * dy,
        max(0.0, s.yy - s.weight * dy * dy),
    )


def _products_about(x0: Array, y0: float, block: Block) -> CentredProducts:
    X, y, w = with_weight(block)
    with np.errstate(over="ignore", invalid="ignore"):  # rows whose squares overflow are scaled and measured again
        Z, v = X - x0, y - y0
        xx = np.einsum("i,ij,ij->j", w, Z, Z)  # without a copy of Z
        return CentredProducts(float(w.sum()), w @ Z, float(w @ v), xx, (w * v) @ Z, float(w @ v**2))


# ------------------------------------------------------------------------------------------------- ranges
class ColumnRanges:
    """The smallest and largest value of each column where it is not missing; `+` is the range of both."""

    def __init__(self, low: Array, high: Array) -> None:
        self.low, self.high = low, high  # (d,) each

    def __add__(self, other: ColumnRanges) -> ColumnRanges:
        return ColumnRanges(np.fmin(self.low, other.low), np.fmax(self.high, other.high))

    @property
    def width(self) -> Array:
        """Return largest less smallest value (d,), NaN for a column that is missing throughout."""
        with np.errstate(over="ignore"):
            return self.high - self.low


def column_ranges(rows: Rows) -> ColumnRanges:
    """Return the range of each column over the rows with a positive weight."""
    return rows.sum(_block_ranges)


def _block_ranges(block: Block) -> ColumnRanges:
    X = as_dense(block.X[block.w > 0]).astype(np.float64, copy=False)
    if not len(X):
        return ColumnRanges(*np.full((2, X.shape[1]), np.nan))
    return ColumnRanges(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))


# --------------------------------------------------------------------------------------- tables of counts
@dataclass(frozen=True)
class ValueTables:
    """The distinct values of each column, with their weights in each class; `+` merges two tables."""

    values: tuple[Array, ...]  # d times (m,), sorted
    counts: tuple[Array, ...]  # d times (m, k)
    names: Array | None

    def __add__(self, other: ValueTables) -> ValueTables:
        values, counts = [], []
        for j, (a, b) in enumerate(zip(self.values, other.values, strict=True)):
            v, code = np.unique(np.concatenate([a, b]), return_inverse=True)
            _check_discrete(j, len(v), self.names)
            total = np.zeros((len(v), self.counts[j].shape[1]))
            total[code[: len(a)]] += self.counts[j]
            total[code[len(a) :]] += other.counts[j]
            values.append(v)
            counts.append(total)
        return ValueTables(tuple(values), tuple(counts), self.names)


def value_tables(rows: Rows, k: int) -> list[Array]:
    """Return the weight of every distinct value in every class, (m, k) for each column."""
    return list(rows.sum(partial(_tabulate_values, k, rows.names)).counts)


def _tabulate_values(k: int, names: Array | None, block: Block) -> ValueTables:
    X, y, w = with_weight(block)
    values, counts = [], []
    for j in range(X.shape[1]):
        v, code = np.unique(X[:, j], return_inverse=True)
        _check_discrete(j, len(v), names)
        values.append(v)
        counts.append(_cell_weights(code, y, w, len(v), k))
    return ValueTables(tuple(values), tuple(counts), names)


def _check_discrete(column: int, values: int, names: Array | None) -> None:
    """Refuse a column with too many distinct values for a discrete one."""
    if values > 1000:
        raise DataError(
            got=f"{values} or more different values in {column_in_words(column, names)}",
            wanted="at most 1000: each value is a category of its own",
            fix="Use score_func='binned_information', which cuts columns of measurements into cells.",
        )


def _cell_weights(code: Array, y: Array, w: Array, m: int, k: int) -> Array:
    """Return the weight of every value, 0 … m-1, in every class (m, k)."""
    return np.bincount(code * k + y, w, m * k).reshape(m, k)


@dataclass(frozen=True)
class NormalCuts:
    """Cuts of measurements at the quantiles of a normal distribution with the mean and variance of each column."""

    centre: Array  # (d,)
    delta: Array  # (d,) mean - centre
    sd: Array  # (d,)

    @classmethod
    def of(cls, m: ClassMoments) -> NormalCuts:
        return cls(m.centre[0], m.delta[0], np.sqrt(ratio(m.ssd, m.weight))[0])

    def code(self, X: Array) -> Array:
        """Return the cell, 0 … CELLS - 1, of each entry of X (rows, d)."""
        cuts = ndtri(np.arange(1, CELLS) / CELLS)  # (CELLS - 1,)
        Z = (X - self.centre) - self.delta
        return np.searchsorted(cuts, np.divide(Z, self.sd, out=np.zeros(Z.shape), where=self.sd > 0))


def cut_tables(rows: Rows, k: int) -> list[Array]:
    """Return for each column the weight of its cells in every class (CELLS, k)."""
    rows, m = measure_in_range(column_moments, moment_sizes, rows)
    return list(rows.sum(partial(_tabulate_cells, NormalCuts.of(m), None, k)))


def cut_pairs(rows: Rows) -> list[Array]:
    """Return for each column the weight of its cells in every cell of the target (CELLS, CELLS)."""
    rows, s = measure_in_range(_products_about_means, _product_sizes, rows)
    target = NormalCuts(np.array([s.y]), np.zeros(1), np.array([np.sqrt(s.yy / s.weight)]))
    return list(rows.sum(partial(_tabulate_cells, NormalCuts.of(column_moments(rows)), target, CELLS)))


def _tabulate_cells(cuts: NormalCuts, y_cuts: NormalCuts | None, k: int, block: Block) -> Array:
    X, y, w = with_weight(block)
    codes = cuts.code(X)
    y = y if y_cuts is None else y_cuts.code(y[:, None])[:, 0]
    return np.stack([_cell_weights(codes[:, j], y, w, CELLS, k) for j in range(codes.shape[1])])
