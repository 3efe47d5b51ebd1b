"""Sums over rows that feature scores are made of: totals by class, centred products, tables of counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from certifit.exceptions import DataError
from certifit.naive_bayes.class_moments import ClassMoments, measure_class_moments, ratio
from certifit.rows import Array, Block, Matrix, Rows, Sums

CELLS = (
    15  # of a column of measurements that is cut; odd, so that no cut is at the mean, where values are often equal
)


def one_class(_y: Array | None, w: Array) -> tuple[Array | None, Array]:
    """Targets of rows that are to be summed together."""
    return np.zeros(len(w), np.int32), w


def column_moments(rows: Rows) -> ClassMoments:
    """Weight, mean (about a centre) and centred squares of each column over all rows, (1, d)."""
    return measure_class_moments(rows.relabel(one_class), 1)


def as_dense(X: Matrix) -> Array:
    """Rows of a block as a dense array of the type that they have."""
    return X.toarray() if sparse.issparse(X) else X


def with_weight(block: Block) -> tuple[Array, Array, Array]:
    """Dense rows with a positive weight, their targets and weights; no copy where these are all rows."""
    X, y, w = as_dense(block.X), block.y, block.w
    assert y is not None
    used = w > 0
    return (X, y, w) if used.all() else (X[used], y[used], w[used])


def total_weight(rows: Rows) -> float:
    """Σ w."""
    return float(rows.sum(_weight))


def _weight(block: Block) -> float:
    return float(block.w.sum())


# ------------------------------------------------------------------------------------------ totals by class
@dataclass(frozen=True)
class _ScoreTotals(Sums):
    x: Array  # Σ w x  (k, d)
    weight: Array  # Σ w  (k,)


def class_totals(rows: Rows, k: int) -> tuple[Array, Array]:
    """Σ w x by class (k, d), of values that must not be negative, and each class's share of the weight (k,)."""
    s = rows.sum(partial(_totals, k, rows.names))
    return s.x, s.weight / s.weight.sum()


def _totals(k: int, names: Array | None, block: Block) -> _ScoreTotals:
    values = block.X.data if sparse.issparse(block.X) else block.X
    if values.size and values.min() < 0:
        column = int(as_dense(block.X).min(axis=0).argmin())
        raise DataError(
            got=f"a negative value in {column_in_words(column, names)} of X (Negative values in data)",
            wanted="counts or amounts of at least 0 for score_func='chi2'",
            fix="Use score_func='anova' for measurements.",
        )
    one_of = (block.y == np.arange(k)[:, None]) * block.w  # (k, rows)
    return _ScoreTotals(np.asarray((block.X.T @ one_of.T).T, dtype=np.float64), one_of.sum(axis=1))


def column_in_words(column: int, names: Array | None) -> str:
    """A column by its number or, where it has one, its name."""
    return f"column {column}" if names is None else f"column {str(names[column])!r}"


# ---------------------------------------------------------------------------------------- centred products
@dataclass(frozen=True)
class CentredProducts(Sums):
    """Sums of x and y about the centres of a pass; once done, x and y are the means."""

    weight: float  # Σ w
    x: Array  # Σ w x  (d,)
    y: float  # Σ w y
    xx: Array  # Σ w x²  (d,)
    xy: Array  # Σ w x y  (d,)
    yy: float  # Σ w y²


def centred_products(rows: Rows) -> CentredProducts:
    """Sums of squares and products about the means: two passes."""
    first = next(iter(rows))
    assert first.y is not None
    row = int(np.argmax(first.w > 0))
    x0, y0 = as_dense(first.X[row : row + 1])[0].astype(np.float64), float(first.y[row])
    s = rows.sum(partial(_products, x0, y0))
    x0, y0 = x0 + s.x / s.weight, y0 + s.y / s.weight
    s = rows.sum(partial(_products, x0, y0))
    dx, dy = s.x / s.weight, s.y / s.weight  # what rounding left of the means
    return CentredProducts(
        s.weight,
        x0 + dx,
        y0 + dy,
        np.maximum(s.xx - s.weight * dx**2, 0.0),
        s.xy - s.weight * dx * dy,
        max(0.0, s.yy - s.weight * dy**2),
    )


def _products(x0: Array, y0: float, block: Block) -> CentredProducts:
    X, y, w = with_weight(block)
    Z, v = X - x0, y - y0
    xx = np.einsum("i,ij,ij->j", w, Z, Z)  # without a copy of Z
    return CentredProducts(float(w.sum()), w @ Z, float(w @ v), xx, (w * v) @ Z, float(w @ v**2))


# --------------------------------------------------------------------------------------- tables of counts
@dataclass(frozen=True)
class ValueTables:
    """For each column its distinct values and the weight of each beside each class; `+` merges values."""

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
    """Weight of every distinct value beside every class, (m, k) for each column."""
    return list(rows.sum(partial(_values, k, rows.names)).counts)


def _values(k: int, names: Array | None, block: Block) -> ValueTables:
    X, y, w = with_weight(block)
    values, counts = [], []
    for j in range(X.shape[1]):
        v, code = np.unique(X[:, j], return_inverse=True)
        _check_discrete(j, len(v), names)
        values.append(v)
        counts.append(_cells(code, y, w, len(v), k))
    return ValueTables(tuple(values), tuple(counts), names)


def _check_discrete(column: int, values: int, names: Array | None) -> None:
    """Refuse a column with more distinct values than a discrete one has."""
    if values > 1000:
        raise DataError(
            got=f"{values} or more different values in {column_in_words(column, names)}",
            wanted="at most 1000: each value is a category of its own",
            fix="Use score_func='binned_information', which cuts columns of measurements into cells.",
        )


def _cells(code: Array, y: Array, w: Array, m: int, k: int) -> Array:
    """Weight of every value, 0 … m-1, beside every class (m, k)."""
    return np.bincount(code * k + y, w, m * k).reshape(m, k)


@dataclass(frozen=True)
class NormalCuts:
    """Where measurements are cut: at the quantiles of a normal distribution with their own mean and variance."""

    centre: Array  # (d,)
    delta: Array  # (d,) mean - centre
    sd: Array  # (d,)

    @classmethod
    def of(cls, m: ClassMoments) -> NormalCuts:
        return cls(m.centre[0], m.delta[0], np.sqrt(ratio(m.ssd, m.weight))[0])

    def code(self, X: Array) -> Array:
        """The cell, 0 … CELLS - 1, of each entry of X (rows, d)."""
        cuts = ndtri(np.arange(1, CELLS) / CELLS)  # (CELLS - 1,)
        Z = (X - self.centre) - self.delta
        return np.searchsorted(cuts, np.divide(Z, self.sd, out=np.zeros(Z.shape), where=self.sd > 0))


def cut_tables(rows: Rows, k: int, y_cuts: NormalCuts | None = None) -> list[Array]:
    """Weight of every cell of every column beside every class, or beside every cell of y: (CELLS, k) for each."""
    return list(rows.sum(partial(_cut, NormalCuts.of(column_moments(rows)), y_cuts, k)))


def target_cuts(rows: Rows) -> NormalCuts:
    """Where the target is cut."""
    s = centred_products(rows)
    return NormalCuts(np.array([s.y]), np.zeros(1), np.array([np.sqrt(s.yy / s.weight)]))


def _cut(cuts: NormalCuts, y_cuts: NormalCuts | None, k: int, block: Block) -> Array:
    X, y, w = with_weight(block)
    codes = cuts.code(X)
    y = y if y_cuts is None else y_cuts.code(y[:, None])[:, 0]
    return np.stack([_cells(codes[:, j], y, w, CELLS, k) for j in range(codes.shape[1])])
