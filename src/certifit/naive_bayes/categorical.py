"""Naive Bayes for columns of category numbers 0, 1, 2, …: a table of probabilities in every class and column.

    min over p of  - Σ_categories (N + α) log p,  Σ p = 1      at  p = (N + α) / Σ (N + α)

The tables of all columns stand side by side in one array, of which `first_cells` says where each column's begins.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 4.2.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from certifit.checkers.naive_bayes import moment_equations as checker
from certifit.core import Attributes, Setting
from certifit.exceptions import DataError
from certifit.naive_bayes.class_sums_loops import add_category_counts, category_scores
from certifit.naive_bayes.column_model import ColumnModel, NaiveBayesTuning
from certifit.naive_bayes.discrete import DiscreteNB
from certifit.naive_bayes.smoothing import log_shares, pseudo_count_loss, safe_log, smoothed_counts
from certifit.rows import Array, Block, Matrix


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
        moved = np.repeat(first_cells(sizes) - first_cells(self.sizes), self.sizes) + np.arange(self.counts.shape[1])
        out[:, moved] = self.counts
        return out


def first_cells(sizes: Array) -> Array:
    """Where each column's categories begin in the table of all columns (d,)."""
    return np.cumsum(sizes) - sizes


class CategoricalParams(NamedTuple):
    """Log-probabilities of the categories, column after column."""

    sizes: Array  # categories of each column (d,)
    table: Array  # log-probabilities (Σ sizes, k)


@dataclass(frozen=True)
class CategoricalColumns(ColumnModel):
    """Columns of category numbers 0, 1, 2, …"""

    State = CategoryCounts
    Params = CategoricalParams

    alpha: float
    at_least: Any = 0  # categories of a column, seen or not: number or (d,)
    whole: bool = True  # refuse fractions; else they are cut off
    columns: tuple[int, ...] = ()
    most_cells: int = NaiveBayesTuning.most_cells  # classes x categories that a table may have

    def sums(self, block: Block, k: int) -> CategoryCounts:
        X = np.where((block.w > 0)[:, None], block.X, np.nan)
        self._check(X)
        largest = np.fmax.reduce(X, axis=0, initial=-1.0)
        # Summed as floats: a category number beyond whole numbers must not wrap around.
        if (largest + 1).sum() * k > self.most_cells:
            raise _wrong_category(
                f"category number {largest.max():g}",
                f"numbers 0, 1, 2, … without large gaps (at most {self.most_cells // k} in all columns)",
            )
        sizes = largest.astype(np.int64) + 1
        counts = np.zeros((k, int(sizes.sum())))
        add_category_counts(X, block.y, block.w, first_cells(sizes), counts)
        return CategoryCounts(sizes, counts)

    def _check(self, X: Array) -> None:
        if (X < 0).any():
            raise _wrong_category(
                f"Negative values in data passed to CategoricalNB (input X), down to {np.nanmin(X):g}"
            )
        odd = (np.floor(X) != X) & ~np.isnan(X)
        if self.whole and odd.any():
            row, j = (int(i) for i in np.argwhere(odd)[0])
            raise _wrong_category(f"{X[row, j]:g} in column {self.column_number(j)}")

    def smoothed(self, state: CategoryCounts) -> tuple[Array, list[Array]]:
        """The number of categories (d,), and the smoothed counts (k, categories) of each column."""
        sizes = np.maximum(np.maximum(state.sizes, self.at_least), 1)
        return sizes, np.split(smoothed_counts(state.widen(sizes), self.alpha), first_cells(sizes)[1:], axis=1)

    def params(self, state: CategoryCounts) -> CategoricalParams:
        sizes, mass = self.smoothed(state)
        return CategoricalParams(sizes, np.ascontiguousarray(np.concatenate([log_shares(m) for m in mass], axis=1).T))

    def scores(self, params: CategoricalParams, X: Matrix) -> Array:
        self._check(X)
        unknown = params.sizes <= X  # never true of NaN
        if unknown.any():
            row, j = (int(i) for i in np.argwhere(unknown)[0])
            raise DataError(
                got=f"category {X[row, j]:g} in column {self.column_number(j)}",
                wanted=f"one of the {params.sizes[j]} categories known from the fit, 0 to {params.sizes[j] - 1}",
                fix="Say how many there are with min_categories, or mark it as missing (NaN).",
            )
        out = np.zeros((len(X), params.table.shape[1]))
        category_scores(X, first_cells(params.sizes), params.table, out)
        return out

    def penalty(self, params: CategoricalParams, state: CategoryCounts) -> float:
        return pseudo_count_loss(self.alpha, params.table)

    def evidence(self, params: CategoricalParams, state: CategoryCounts, tol: float) -> list[checker.MomentEvidence]:
        sizes, mass = self.smoothed(state)
        tables = np.split(params.table, first_cells(sizes)[1:])
        each = (checker.cell_evidence(t.T, m, tol) for t, m in zip(tables, mass, strict=True))
        return [checker.worst_of_columns(each)]


def _wrong_category(got: str, wanted: str = "category numbers 0, 1, 2, …") -> DataError:
    return DataError(got=got, wanted=wanted, fix="Encode categories with sklearn.preprocessing.OrdinalEncoder.")


def _are_whole_numbers(value: Any) -> bool:
    given = np.asarray(value)
    return given.ndim > 0 and given.dtype.kind in "iu" and bool((given >= 0).all())


class CategoricalNB(DiscreteNB):
    """Naive Bayes for columns of category numbers 0, 1, 2, …

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-counts of each category. With 0 a class that never had a category cannot produce it.
    force_alpha, fit_prior, class_prior : as in BernoulliNB
    min_categories : int, array (d,) or None
        Categories each column has at least, seen or not.

    Attributes
    ----------
    feature_log_prob_, category_count_ : for each column an array (k, categories)
    n_categories_ : (d,) the widths of these tables
    class_log_prior_, class_count_, classes_ : (k,)
    sums_ : what `partial_fit` adds to
    certificate_ : Certificate

    A missing entry (NaN) is left out of the counts and of a row's score. Fractions are cut off, as scikit-learn does.
    A category that the fit did not know is refused.

    Examples
    --------
    >>> from certifit import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 2], [0, 1], [1, 0], [1, 1]], ["a", "a", "b", "b"])
    >>> model.n_categories_.tolist(), model.predict([[1, 2]]).tolist()
    ([2, 3], ['b'])
    """

    settings: ClassVar[Any] = {
        "alpha": Setting(float, least=0, below=math.inf),
        "min_categories": Setting(int, least=1, none=True, other=_are_whole_numbers, other_words="an array of them"),
    }

    category_count_: list[Array]

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None, min_categories=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def _column_model(self) -> CategoricalColumns:
        least = np.asarray(0 if self.min_categories is None else self.min_categories)
        if least.ndim and least.shape != (self.n_features_in_,):
            raise DataError(
                got=f"min_categories={self.min_categories!r}",
                wanted=f"a whole number, {self.n_features_in_} of them, or None",
                fix=f"'min_categories' should have shape ({self.n_features_in_},) if it is an array.",
            )
        return CategoricalColumns(self._alpha(), least, whole=False, most_cells=self._tuning.most_cells)

    def _publish(self, params: CategoricalParams, state: CategoryCounts, prior: Array) -> Attributes:
        cut = first_cells(params.sizes)[1:]
        return {
            "class_log_prior_": safe_log(prior),
            "category_count_": np.split(state.widen(params.sizes), cut, axis=1),
            "feature_log_prob_": [np.ascontiguousarray(table.T) for table in np.split(params.table, cut)],
        }

    @property
    def n_categories_(self) -> Array:
        return np.array([table.shape[1] for table in self.feature_log_prob_])

    def _params(self) -> CategoricalParams:
        table = np.concatenate(self.feature_log_prob_, axis=1).T
        return CategoricalParams(np.asarray(self.n_categories_), np.ascontiguousarray(table))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


__all__ = ["CategoricalNB"]
