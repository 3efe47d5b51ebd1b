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

MOST_VALUES = 1000  # distinct values up to which a column counts as discrete
BINS = 15  # cells of a column that is cut; odd, so that no cut is at the mean, where values are often equal
CUTS = ndtri(np.arange(1, BINS) / BINS)  # (14,) quantiles of the standard normal law


def one_class(_y: Array | None, w: Array) -> tuple[Array | None, Array]:
    """Targets of rows that are to be summed together."""
    return np.zeros(len(w), np.int32), w


def column_moments(rows: Rows) -> ClassMoments:
    """Weight, mean (about a centre) and centred squares of each column over all rows, (1, d)."""
    return measure_class_moments(rows.relabel(one_class), 1)


def as_dense(X: Matrix) -> Array:
    return X.toarray() if sparse.issparse(X) else X


def with_weight(block: Block) -> tuple[Array, Array, Array]:
    """Dense rows that have weight, their targets and weights; no copy where that is all of them."""
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
class _Totals(Sums):
    x: Array  # Σ w x  (k, d)
    weight: Array  # Σ w  (k,)


def class_totals(rows: Rows, k: int) -> tuple[Array, Array]:
    """Σ w x by class (k, d), of values that must not be negative, and each class's share of the weight (k,)."""
    s = rows.sum(partial(_totals, k, rows.names))
    return s.x, s.weight / s.weight.sum()


def _totals(k: int, names: Array | None, block: Block) -> _Totals:
    values = block.X.data if sparse.issparse(block.X) else block.X
    if values.size and values.min() < 0:
        column = int(as_dense(block.X).min(axis=0).argmin())
        raise DataError(
            got=f"a negative value in {place(column, names)} of X (Negative values in data)",
            wanted="counts or amounts of at least 0 for score_func='chi2'",
            fix="Use score_func='anova' for measurements.",
        )
    one_of = (block.y == np.arange(k)[:, None]) * block.w  # (k, rows)
    return _Totals(np.asarray((block.X.T @ one_of.T).T, dtype=np.float64), one_of.sum(axis=1))


def place(column: int, names: Array | None) -> str:
    """A column in words."""
    return f"column {column}" if names is None else f"column {str(names[column])!r}"


# ---------------------------------------------------------------------------------------- centred products
@dataclass(frozen=True)
class Products(Sums):
    """Sums about the centres of a pass."""

    weight: float
    x: Array  # Σ w x  (d,)
    y: float
    xx: Array  # Σ w x²  (d,)
    xy: Array  # Σ w x y  (d,)
    yy: float


def centred_products(rows: Rows) -> Products:
    """Sums of squares and products about the means: two passes."""
    first = next(iter(rows))
    assert first.y is not None
    row = int(np.argmax(first.w > 0))
    x0, y0 = as_dense(first.X[row : row + 1])[0].astype(np.float64), float(first.y[row])
    s = rows.sum(partial(_products, x0, y0))
    x0, y0 = x0 + s.x / s.weight, y0 + s.y / s.weight
    s = rows.sum(partial(_products, x0, y0))
    dx, dy = s.x / s.weight, s.y / s.weight  # what rounding left of the means
    return Products(
        s.weight,
        x0 + dx,
        y0 + dy,
        np.maximum(s.xx - s.weight * dx**2, 0.0),
        s.xy - s.weight * dx * dy,
        max(0.0, s.yy - s.weight * dy**2),
    )


def _products(x0: Array, y0: float, block: Block) -> Products:
    X, y, w = with_weight(block)
    Z, v = X - x0, y - y0
    xx = np.einsum("i,ij,ij->j", w, Z, Z)  # without a copy of Z
    return Products(float(w.sum()), w @ Z, float(w @ v), xx, (w * v) @ Z, float(w @ v**2))


# --------------------------------------------------------------------------------------- tables of counts
@dataclass(frozen=True)
class Tables:
    """For each column its distinct values and the weight of each beside each class; `+` merges values."""

    values: tuple[Array, ...]  # d times (m,), sorted
    counts: tuple[Array, ...]  # d times (m, k)
    names: Array | None

    def __add__(self, other: Tables) -> Tables:
        values, counts = [], []
        for j, (a, b) in enumerate(zip(self.values, other.values, strict=True)):
            v, code = np.unique(np.concatenate([a, b]), return_inverse=True)
            if len(v) > MOST_VALUES:
                raise _not_discrete(j, len(v), self.names)
            total = np.zeros((len(v), self.counts[j].shape[1]))
            total[code[: len(a)]] += self.counts[j]
            total[code[len(a) :]] += other.counts[j]
            values.append(v)
            counts.append(total)
        return Tables(tuple(values), tuple(counts), self.names)


def value_tables(rows: Rows, k: int) -> list[Array]:
    """Weight of every distinct value beside every class, (m, k) for each column."""
    return list(rows.sum(partial(_values, k, rows.names)).counts)


def _values(k: int, names: Array | None, block: Block) -> Tables:
    X, y, w = with_weight(block)
    values, counts = [], []
    for j in range(X.shape[1]):
        v, code = np.unique(X[:, j], return_inverse=True)
        if len(v) > MOST_VALUES:
            raise _not_discrete(j, len(v), names)
        values.append(v)
        counts.append(_cells(code, y, w, len(v), k))
    return Tables(tuple(values), tuple(counts), names)


def _not_discrete(column: int, values: int, names: Array | None) -> DataError:
    return DataError(
        got=f"{values} or more different values in {place(column, names)}",
        wanted=f"at most {MOST_VALUES}: each value is a category of its own",
        fix="Use score_func='binned_information', which cuts columns of measurements into cells.",
    )


def _cells(code: Array, y: Array, w: Array, m: int, k: int) -> Array:
    return np.bincount(code * k + y, w, m * k).reshape(m, k)


@dataclass(frozen=True)
class Cuts:
    """Where numbers are cut: at normal quantiles of their own mean and variance."""

    centre: Array  # (d,)
    delta: Array  # (d,) mean - centre
    sd: Array  # (d,)

    @classmethod
    def of(cls, m: ClassMoments) -> Cuts:
        return cls(m.centre[0], m.delta[0], np.sqrt(ratio(m.ssd, m.weight))[0])

    def code(self, X: Array) -> Array:
        """The cell, 0 … BINS - 1, of each entry of X (rows, d)."""
        Z = (X - self.centre) - self.delta
        return np.searchsorted(CUTS, np.divide(Z, self.sd, out=np.zeros(Z.shape), where=self.sd > 0))


def cut_tables(rows: Rows, k: int, y_cuts: Cuts | None = None) -> list[Array]:
    """Weight of every cell of every column beside every class, or beside every cell of y: (BINS, k) for each."""
    return list(rows.sum(partial(_cut, Cuts.of(column_moments(rows)), y_cuts, k)))


def target_cuts(rows: Rows) -> Cuts:
    """Where the target is cut."""
    s = centred_products(rows)
    return Cuts(np.array([s.y]), np.zeros(1), np.array([np.sqrt(s.yy / s.weight)]))


def _cut(cuts: Cuts, y_cuts: Cuts | None, k: int, block: Block) -> Array:
    X, y, w = with_weight(block)
    codes = cuts.code(X)
    y = y if y_cuts is None else y_cuts.code(y[:, None])[:, 0]
    return np.stack([_cells(codes[:, j], y, w, BINS, k) for j in range(codes.shape[1])])
