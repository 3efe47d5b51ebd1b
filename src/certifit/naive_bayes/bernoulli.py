"""Naive Bayes for yes/no columns: x above or below a threshold, a Bernoulli variable in every class and column.

    min over p of  - Σ [(N_yes + α) log p + (N_no + α) log (1 - p)]      at  p = (N_yes + α) / (N_yes + N_no + 2α)

Reference: Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), chapter 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.naive_bayes import moment_equations as checker
from certifit.core import Attributes, Setting
from certifit.exceptions import DataError
from certifit.naive_bayes.class_sums_loops import (
    RowsByClass,
    add_threshold_counts,
    add_whole_counts,
    group_rows_by_class,
    threshold_products,
    threshold_scores_of_entries,
)
from certifit.naive_bayes.column_model import ColumnModel, refuse_infinities
from certifit.naive_bayes.discrete import DiscreteNB, add_by_class
from certifit.naive_bayes.smoothing import pseudo_count_loss, safe_log, smoothed_counts
from certifit.rows import Array, Block, Matrix, Sums


@dataclass(frozen=True)
class ThresholdCounts(Sums):
    """Weight of the rows on either side of the threshold; rows with a missing entry are on neither."""

    above: Array  # Σ w [x > t]  (k, d)
    below: Array  # Σ w [x <= t]  (k, d)


class BernoulliParams(NamedTuple):
    """Log-probabilities of both sides, each kept so that neither loses digits next to 0."""

    log_p: Array  # log p(x > t)  (k, d)
    log_q: Array  # log p(x <= t)  (k, d)

    @classmethod
    def of(cls, log_p: Array) -> BernoulliParams:
        """From the log-probabilities of a yes."""
        return cls(log_p, safe_log(-np.expm1(log_p)))


@dataclass(frozen=True)
class BernoulliColumns(ColumnModel):
    """Columns of which only x > t matters."""

    State = ThresholdCounts
    Params = BernoulliParams
    sparse = True

    alpha: Any  # number or (d,)
    threshold: float
    binary: bool = False  # x must be 0 or 1
    whole_entries: int = 2**16  # of a block, from which on whole weights are added up by a loop of their own

    def _check(self, X: Matrix) -> None:
        values = X.data if sparse.issparse(X) else X
        if self.binary and not ((values == 0) | (values == 1) | np.isnan(values)).all():
            odd = values[(values != 0) & (values != 1) & ~np.isnan(values)].flat[0]
            raise DataError(
                got=f"{odd:g} with binarize=None", wanted="0 or 1", fix="Set binarize to the threshold of a 1."
            )

    def sums(self, block: Block, k: int) -> ThresholdCounts:
        self._check(block.X)
        assert block.y is not None
        if sparse.issparse(block.X):
            return self._sparse_sums(block.X, block.y, block.w, k)
        X, w = block.X, block.w
        groups = group_rows_by_class(block.y, w, k)
        if X.size >= self.whole_entries and (found := self._whole_sums(X, block.y, w, groups)) is not None:
            return found
        above, below = np.zeros((2, k, X.shape[1]))
        odd = np.zeros(X.shape[1])
        # Where the loops run as plain Python, NumPy would warn of ∞ - ∞, which is how they tell that one is there.
        with np.errstate(invalid="ignore"):
            add_threshold_counts(X, w, groups, self.threshold, above, below, odd)
        if np.isnan(odd).any():
            refuse_infinities(X)
        refuse_infinities(X[w == 0])  # the loops pass over rows without weight
        return ThresholdCounts(above, below)

    def _whole_sums(self, X: Array, y: Array, w: Array, groups: RowsByClass) -> ThresholdCounts | None:
        """The same of whole weights and entries that are all there, by half the work; None of others."""
        k = len(groups.start) - 1
        weight = np.bincount(y, w, k)
        if not (w == np.floor(w)).all() or weight.sum() >= 2**53:
            return None
        above = np.zeros((k, X.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # where the loop runs as plain Python
            total = add_whole_counts(X, w, groups, self.threshold, above)
        if not np.isfinite(total):
            return None
        refuse_infinities(X[w == 0])  # the loop passes over rows without weight
        return ThresholdCounts(above, weight[:, None] - above)

    def _sparse_sums(self, X: Matrix, y: Array, w: Array, k: int) -> ThresholdCounts:
        """The same from stored entries alone; entries that are not stored are 0, above any negative threshold."""
        refuse_infinities(X)
        weight = np.bincount(y, w, k)[:, None]
        above = add_by_class(_with_values(X, X.data > self.threshold), y, w, k)
        if self.threshold < 0:
            above += weight - add_by_class(_with_values(X, np.ones(len(X.data))), y, w, k)
        return ThresholdCounts(above, weight - add_by_class(_with_values(X, np.isnan(X.data)), y, w, k) - above)

    def params(self, state: ThresholdCounts) -> BernoulliParams:
        yes, no = (smoothed_counts(counts, self.alpha) for counts in (state.above, state.below))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p = np.where(yes + no > 0, -np.log1p(no / yes), -np.log(2.0))
        return BernoulliParams.of(log_p)

    def scores(self, params: BernoulliParams, X: Matrix) -> Array:
        self._check(X)
        return self._sparse_scores(params, X) if sparse.issparse(X) else self._dense_scores(params, X)

    def _sparse_scores(self, params: BernoulliParams, X: Matrix) -> Array:
        """The score of a row of zeros, plus what stored entries on the other side of the threshold change.

        Infinite log-probabilities cannot be subtracted: they are left out of the sums, and rows that meet one are
        set to -inf afterwards.
        """
        refuse_infinities(X)
        zero, other = (params.log_p, params.log_q) if self.threshold < 0 else (params.log_q, params.log_p)
        missing = np.isnan(X.data)
        changed = _with_values(X, ((X.data > self.threshold) != (self.threshold < 0)) & ~missing)
        absent = _with_values(X, missing)

        def total(zero: Array, other: Array) -> Array:
            return zero.sum(axis=1) + changed @ (other - zero).T - absent @ zero.T

        never = [np.isinf(a).astype(np.float64) for a in (zero, other)]
        out = total(*(np.where(n > 0, 0.0, a) for n, a in zip(never, (zero, other), strict=True)))
        if any(n.any() for n in never):
            out[total(*never) > 0.5] = -np.inf
        return out

    def _dense_scores(self, params: BernoulliParams, X: Array) -> Array:
        out = np.empty((len(X), len(params.log_p)))
        if np.isinf(params.log_p).any() or np.isinf(params.log_q).any():
            refuse_infinities(X)
            threshold_scores_of_entries(X, self.threshold, *params, out)
            return out
        with np.errstate(invalid="ignore"):  # as in `sums`
            threshold_products(X, self.threshold, params.log_p - params.log_q, out)
        odd = np.isnan(out[:, 0])
        out += params.log_q.sum(axis=1)
        if odd.any():
            refuse_infinities(X[odd])
            again = np.empty((int(odd.sum()), out.shape[1]))
            threshold_scores_of_entries(X[odd], self.threshold, *params, again)
            out[odd] = again
        return out

    def penalty(self, params: BernoulliParams, state: ThresholdCounts) -> float:
        return pseudo_count_loss(self.alpha, params.log_p) + pseudo_count_loss(self.alpha, params.log_q)

    def evidence(self, params: BernoulliParams, state: ThresholdCounts, tol: float) -> list[checker.MomentEvidence]:
        mass = np.stack([smoothed_counts(counts, self.alpha) for counts in (state.below, state.above)], axis=-1)
        return [checker.cell_evidence(np.stack([params.log_q, params.log_p], axis=-1), mass, tol)]


def _with_values(X: Matrix, data: Array) -> Matrix:
    """A CSR matrix with other values in the same places."""
    return sparse.csr_array((data.astype(np.float64), X.indices, X.indptr), shape=X.shape)


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(float(value))


class BernoulliNB(DiscreteNB):
    """Naive Bayes for yes/no columns.

    Parameters
    ----------
    alpha : float or array (d,), default=1.0
        Pseudo-counts of a yes and of a no. With 0 a class that never had a value cannot produce it.
    force_alpha : bool, default=True
        False raises alpha to 1e-10 at least.
    binarize : float or None, default=0.0
        Values above are yes. None: the columns hold 0 and 1.
    fit_prior : bool, default=True
        Learn the class priors; False: uniform.
    class_prior : array (k,) or None
        Class priors, not learnt.

    Attributes
    ----------
    feature_log_prob_ : (k, d) log p(yes | class)
    feature_count_ : (k, d) weight of the yes rows
    class_log_prior_, class_count_, classes_ : (k,)
    sums_ : what `partial_fit` adds to
    certificate_ : Certificate

    A missing entry (NaN) is left out of the counts and of a row's score.

    Examples
    --------
    >>> from certifit import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1], [0, 0]], ["a", "a", "b", "b"])
    >>> model.predict([[1, 0], [0, 0]]).tolist()
    ['a', 'b']
    >>> model.certificate_.kind
    'exact'
    """

    settings: ClassVar[Any] = {
        **DiscreteNB.settings,
        "binarize": Setting(none=True, other=_is_finite_number, other_words="a finite number"),
    }
    positive = False
    finite = False
    feature_count_: Array

    def __init__(self, *, alpha=1.0, force_alpha=True, binarize=0.0, fit_prior=True, class_prior=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _column_model(self) -> BernoulliColumns:
        t = self.binarize
        return BernoulliColumns(self._alpha(), 0.5 if t is None else float(t), t is None)

    def _publish(self, params: BernoulliParams, state: ThresholdCounts, prior: Array) -> Attributes:
        return {
            "class_log_prior_": safe_log(prior),
            "feature_count_": state.above,
            "feature_log_prob_": params.log_p,
        }

    def _params(self) -> BernoulliParams:
        return BernoulliParams.of(np.asarray(self.feature_log_prob_))


__all__ = ["BernoulliNB"]
