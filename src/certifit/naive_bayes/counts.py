"""Columns that are counted: yes or no, counts of a draw, categories. Smoothed counts give the log-probabilities.

    min over p of  - Σ_cells (N + α) log p,  Σ p = 1      at  p = (N + α) / Σ (N + α)

With α = 0 a cell that was never seen has log p = -inf, and 0 · log 0 = 0.
References: Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), chapter 13; Rennie, Shih,
Teevan & Karger, Tackling the poor assumptions of naive Bayes text classifiers (ICML 2003) for the complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.naive_bayes import moments as checker
from certifit.exceptions import DataError
from certifit.naive_bayes.base import Part, log, refuse_infinities
from certifit.naive_bayes.class_sums_loops import (
    by_class,
    category_scores,
    class_category_counts,
    class_threshold_counts,
    threshold_products,
    threshold_scores,
)
from certifit.rows import Array, Block, Matrix, Sums

WANTED = "category numbers 0, 1, 2, …"
ENCODE = "Encode categories with sklearn.preprocessing.OrdinalEncoder."
MOST_CELLS = 2**27  # classes x categories that a table of counts may have


def class_sums(X: Matrix, y: Array, w: Array, k: int) -> Array:
    """Σ w x by class (k, d) in float64, for dense and CSR."""
    rows = sparse.csc_array((w, y, np.arange(len(y) + 1)), shape=(k, len(y)))
    total = rows @ X
    return total.toarray() if sparse.issparse(total) else total


def log_shares(mass: Array) -> Array:
    """log(mass / Σ mass) over the last axis; equal shares where there is no mass."""
    total = mass.sum(axis=-1, keepdims=True)
    return np.where(total > 0, log(mass) - np.log(np.where(total > 0, total, 1.0)), -np.log(mass.shape[-1]))


def weigh(mass: Array, log_p: Array) -> float:
    """Σ mass log p with 0 log 0 = 0."""
    some = mass > 0
    return float((mass[some] * log_p[some]).sum())


# ------------------------------------------------------------------------------------------------ yes or no
@dataclass(frozen=True)
class ThresholdCounts(Sums):
    above: Array  # Σ w [x > t]  (k, d)
    below: Array  # Σ w [x <= t]  (k, d)


class BernoulliParams(NamedTuple):
    log_p: Array  # log p(x > t)  (k, d)
    log_q: Array  # log p(x <= t)  (k, d)

    @classmethod
    def of(cls, log_p: Array) -> BernoulliParams:
        return cls(log_p, log(-np.expm1(log_p)))


@dataclass(frozen=True)
class BernoulliPart(Part):
    """Columns of which only x > t matters."""

    State = ThresholdCounts
    Params = BernoulliParams
    sparse = True

    alpha: Any  # number or (d,)
    threshold: float
    binary: bool = False  # x must be 0 or 1

    def _check(self, X: Matrix) -> None:
        values = X.data if sparse.issparse(X) else X
        if self.binary and not ((values == 0) | (values == 1) | np.isnan(values)).all():
            odd = values[(values != 0) & (values != 1) & ~np.isnan(values)].flat[0]
            raise DataError(
                got=f"{odd:g} with binarize=None", wanted="0 or 1", fix="Set binarize to the threshold of a 1."
            )

    def sums(self, block: Block, k: int) -> ThresholdCounts:
        X, y, w, t = block.X, block.y, block.w, self.threshold
        self._check(X)
        assert y is not None
        if sparse.issparse(X):
            refuse_infinities(X)
            weight = np.bincount(y, w, k)[:, None]
            above = class_sums(_with(X, X.data > t), y, w, k)
            if t < 0:
                above += weight - class_sums(_with(X, np.ones(len(X.data))), y, w, k)
            return ThresholdCounts(above, weight - class_sums(_with(X, np.isnan(X.data)), y, w, k) - above)
        above, below = np.zeros((2, k, X.shape[1]))
        order, start = by_class(y, w, k)
        odd = np.zeros(X.shape[1])
        with np.errstate(invalid="ignore"):  # where kernels run as plain Python: ∞ - ∞ says that one is there
            class_threshold_counts(X, w, order, start, t, above, below, odd)
        if np.isnan(odd).any():
            refuse_infinities(X)
        return ThresholdCounts(above, below)

    def params(self, state: ThresholdCounts) -> BernoulliParams:
        yes, no = state.above + self.alpha, state.below + self.alpha
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p = np.where(yes + no > 0, -np.log1p(no / yes), -np.log(2.0))
        return BernoulliParams.of(log_p)

    def scores(self, params: BernoulliParams, X: Matrix) -> Array:
        self._check(X)
        if not sparse.issparse(X):
            return self._dense_scores(params, X)
        refuse_infinities(X)
        zero, other = (params.log_p, params.log_q) if self.threshold < 0 else (params.log_q, params.log_p)
        missing = np.isnan(X.data)
        moved = _with(X, ((X.data > self.threshold) != (self.threshold < 0)) & ~missing)
        holes = _with(X, missing)

        def total(zero: Array, other: Array) -> Array:
            return zero.sum(axis=1) + moved @ (other - zero).T - holes @ zero.T

        never = [np.isinf(a).astype(np.float64) for a in (zero, other)]
        out = total(*(np.where(n > 0, 0.0, a) for n, a in zip(never, (zero, other), strict=True)))
        if any(n.any() for n in never):
            out[total(*never) > 0.5] = -np.inf
        return out

    def _dense_scores(self, params: BernoulliParams, X: Array) -> Array:
        out = np.empty((len(X), len(params.log_p)))
        if np.isinf(params.log_p).any() or np.isinf(params.log_q).any():
            refuse_infinities(X)
            threshold_scores(X, self.threshold, *params, out)
            return out
        with np.errstate(invalid="ignore"):  # where kernels run as plain Python: ∞ - ∞ says that one is there
            threshold_products(X, self.threshold, params.log_p - params.log_q, out)
        holes = np.isnan(out[:, 0])
        out += params.log_q.sum(axis=1)
        if holes.any():
            refuse_infinities(X[holes])
            rows = np.empty((int(holes.sum()), out.shape[1]))
            threshold_scores(X[holes], self.threshold, *params, rows)
            out[holes] = rows
        return out

    def penalty(self, params: BernoulliParams, state: ThresholdCounts) -> float:
        alpha = np.broadcast_to(self.alpha, state.above.shape)
        return -weigh(alpha, params.log_p) - weigh(alpha, params.log_q)

    def evidence(self, params: BernoulliParams, state: ThresholdCounts, tol: float) -> list[checker.Evidence]:
        mass = np.stack([state.below + self.alpha, state.above + self.alpha], axis=-1)
        return [checker.cells(np.stack([params.log_q, params.log_p], axis=-1), mass, tol)]


def _with(X: Matrix, data: Array) -> Matrix:
    """A CSR matrix with other values in the same places."""
    return sparse.csr_array((data.astype(np.float64), X.indices, X.indptr), shape=X.shape)


# ------------------------------------------------------------------------------------------- counts of a draw
@dataclass(frozen=True)
class Totals(Sums):
    total: Array  # Σ w x  (k, d)


@dataclass(frozen=True)
class CountPart(Part):
    """Columns that count what was drawn: their sums."""

    State = Totals
    sparse = True

    alpha: Any  # number or (d,)

    def _check(self, X: Matrix) -> None:
        values = X.data if sparse.issparse(X) else X
        if values.size and values.min() < 0:
            raise DataError(got=f"Negative values in data (down to {values.min():g})", wanted="counts of at least 0")

    def sums(self, block: Block, k: int) -> Totals:
        self._check(block.X)
        assert block.y is not None
        return Totals(class_sums(block.X, block.y, block.w, k))


@dataclass(frozen=True)
class MultinomialPart(CountPart):
    """Counts scored by what a class expects."""

    def params(self, state: Totals) -> Array:
        return log_shares(state.total + self.alpha)

    def scores(self, params: Array, X: Matrix) -> Array:
        self._check(X)
        never = np.isinf(params)
        out = X @ np.where(never, 0.0, params).T
        if never.any():
            out[(X > 0).astype(np.float64) @ never.T.astype(np.float64) > 0] = -np.inf
        return out

    def penalty(self, params: Array, state: Totals) -> float:
        return -weigh(np.broadcast_to(self.alpha, params.shape), params)

    def evidence(self, params: Array, state: Totals, tol: float) -> list[checker.Evidence]:
        return [checker.cells(params, state.total + self.alpha, tol)]


class ComplementParams(NamedTuple):
    weights: Array  # (k, d), +inf for a word that no other class has, if α = 0
    size: Array  # Σ (N + α) over the other classes  (k,)


@dataclass(frozen=True)
class ComplementPart(CountPart):
    """Counts scored against the other classes: -log of what they expect. With α = 0, the limit of α → 0."""

    norm: bool = False

    def mass(self, state: Totals) -> Array:
        """Smoothed counts of all other classes (k, d)."""
        return np.maximum(state.total.sum(axis=0) - state.total, 0.0) + self.alpha

    def params(self, state: Totals) -> ComplementParams:
        mass = self.mass(state)
        weights = -log_shares(mass)
        if self.norm:
            sure = np.isinf(weights)
            weights = np.where(sure.any(axis=1, keepdims=True), sure, weights)
            weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return ComplementParams(weights, mass.sum(axis=1))

    def scores(self, params: ComplementParams, X: Matrix) -> Array:
        self._check(X)
        sure = np.isinf(params.weights)
        out = X @ np.where(sure, log(params.size)[:, None], params.weights).T
        if sure.any():  # -log α is larger than anything finite: whoever has most of it wins
            excess = X @ sure.T.astype(np.float64)
            out[excess < excess.max(axis=1, keepdims=True)] = -np.inf
        return out

    def penalty(self, params: ComplementParams, state: Totals) -> float:
        return -weigh(np.broadcast_to(self.alpha, state.total.shape), log_shares(self.mass(state)))

    def evidence(self, params: ComplementParams, state: Totals, tol: float) -> list[checker.Evidence]:
        return checker.complement(params.weights, self.mass(state), self.norm, tol)


# ----------------------------------------------------------------------------------------------- categories
@dataclass(frozen=True)
class CategoryCounts:
    """Weights of the categories seen, column after column; `+` makes room for those only one side has seen."""

    sizes: Array  # categories of each column  (d,)
    counts: Array  # (k, Σ sizes)

    def __add__(self, other: CategoryCounts) -> CategoryCounts:
        sizes = np.maximum(self.sizes, other.sizes)
        return CategoryCounts(sizes, self.widen(sizes) + other.widen(sizes))

    def widen(self, sizes: Array) -> Array:
        """The counts with room for `sizes` categories."""
        if np.array_equal(sizes, self.sizes):
            return self.counts
        out = np.zeros((len(self.counts), int(sizes.sum())))
        moved = np.repeat(starts(sizes) - starts(self.sizes), self.sizes) + np.arange(self.counts.shape[1])
        out[:, moved] = self.counts
        return out


def starts(sizes: Array) -> Array:
    """Where each column's categories begin (d,)."""
    return np.cumsum(sizes) - sizes


class CategoricalParams(NamedTuple):
    sizes: Array  # (d,)
    table: Array  # log-probabilities (Σ sizes, k)


@dataclass(frozen=True)
class CategoricalPart(Part):
    """Columns of category numbers 0, 1, 2, …"""

    State = CategoryCounts
    Params = CategoricalParams

    alpha: float
    at_least: Any = 0  # categories of a column, seen or not: number or (d,)
    whole: bool = True  # refuse fractions; else they are cut off
    columns: tuple[int, ...] = ()

    def sums(self, block: Block, k: int) -> CategoryCounts:
        X = np.where((block.w > 0)[:, None], block.X, np.nan)
        self._check(X)
        sizes = np.fmax.reduce(X, axis=0, initial=-1.0).astype(np.int64) + 1
        if sizes.sum() * k > MOST_CELLS:
            raise DataError(
                got=f"category number {int(sizes.max()) - 1}",
                wanted=f"numbers 0, 1, 2, … without large gaps (at most {MOST_CELLS // k} in all columns)",
                fix=ENCODE,
            )
        counts = np.zeros((k, int(sizes.sum())))
        class_category_counts(X, block.y, block.w, starts(sizes), counts)
        return CategoryCounts(sizes, counts)

    def _check(self, X: Array) -> None:
        if (X < 0).any():
            raise DataError(got=f"Negative values in data (down to {np.nanmin(X):g})", wanted=WANTED, fix=ENCODE)
        odd = (np.floor(X) != X) & ~np.isnan(X)
        if self.whole and odd.any():
            row, j = (int(i) for i in np.argwhere(odd)[0])
            raise DataError(got=f"{X[row, j]:g} in column {self.place(j)}", wanted=WANTED, fix=ENCODE)

    def smoothed(self, state: CategoryCounts) -> tuple[Array, list[Array]]:
        """Sizes, and smoothed counts (k, size) of each column."""
        sizes = np.maximum(np.maximum(state.sizes, self.at_least), 1)
        return sizes, np.split(state.widen(sizes) + self.alpha, starts(sizes)[1:], axis=1)

    def params(self, state: CategoryCounts) -> CategoricalParams:
        sizes, mass = self.smoothed(state)
        return CategoricalParams(sizes, np.ascontiguousarray(np.concatenate([log_shares(m) for m in mass], axis=1).T))

    def scores(self, params: CategoricalParams, X: Matrix) -> Array:
        self._check(X)
        unknown = params.sizes <= X  # never true of NaN
        if unknown.any():
            row, j = (int(i) for i in np.argwhere(unknown)[0])
            raise DataError(
                got=f"category {X[row, j]:g} in column {self.place(j)}",
                wanted=f"one of the {params.sizes[j]} categories known from the fit, 0 to {params.sizes[j] - 1}",
                fix="Say how many there are with min_categories, or mark it as missing (NaN).",
            )
        out = np.zeros((len(X), params.table.shape[1]))
        category_scores(X, starts(params.sizes), params.table, out)
        return out

    def penalty(self, params: CategoricalParams, state: CategoryCounts) -> float:
        return -weigh(np.full(params.table.shape, self.alpha), params.table)

    def evidence(self, params: CategoricalParams, state: CategoryCounts, tol: float) -> list[checker.Evidence]:
        sizes, mass = self.smoothed(state)
        tables = np.split(params.table, starts(sizes)[1:])
        return [checker.columns(checker.cells(t.T, m, tol) for t, m in zip(tables, mass, strict=True))]
