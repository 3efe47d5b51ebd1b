"""Naive Bayes for counts of a draw, such as the words of a text: multinomial, and by the counts of other classes.

    min over p of  - Σⱼ (Nⱼ + α) log pⱼ,  Σ p = 1      at  p = (N + α) / Σ (N + α)

N are the counts of a class (multinomial) or of all other classes (complement, where a small p speaks for the class).
References: Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), chapter 13; Rennie, Shih,
Teevan & Karger, Tackling the poor assumptions of naive Bayes text classifiers (ICML 2003) for the complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.naive_bayes import moment_equations as checker
from certifit.core import Attributes, Objective
from certifit.exceptions import DataError
from certifit.naive_bayes.column_model import ColumnModel, measure
from certifit.naive_bayes.discrete import DiscreteNB, add_by_class
from certifit.naive_bayes.smoothing import (
    complement_counts,
    log_shares,
    pseudo_count_loss,
    safe_log,
    smoothed_counts,
    sums_of_others,
    weighted_log_sum,
)
from certifit.rows import Array, Block, Matrix, Sums, encode_labels


@dataclass(frozen=True)
class ClassCounts(Sums):
    """Counts of each column in each class."""

    total: Array  # Σ w x  (k, d)


@dataclass(frozen=True)
class CountColumns(ColumnModel):
    """Columns that count how often something was drawn: their sums by class."""

    State = ClassCounts
    sparse = True
    model: ClassVar[str]  # the estimator whose columns these are, for its errors

    alpha: Any  # number or (d,)

    def _check(self, X: Matrix) -> None:
        values = X.data if sparse.issparse(X) else X
        if values.size and values.min() < 0:
            got = f"Negative values in data passed to {self.model} (input X), down to {values.min():g}"
            raise DataError(got=got, wanted="counts of at least 0")

    def sums(self, block: Block, k: int) -> ClassCounts:
        self._check(block.X)
        assert block.y is not None
        return ClassCounts(add_by_class(block.X, block.y, block.w, k))


@dataclass(frozen=True)
class MultinomialColumns(CountColumns):
    """Counts scored by the probabilities of a class."""

    model = "MultinomialNB"

    def params(self, state: ClassCounts) -> Array:
        return log_shares(smoothed_counts(state.total, self.alpha))

    def scores(self, params: Array, X: Matrix) -> Array:
        self._check(X)
        never = np.isinf(params)
        out = X @ np.where(never, 0.0, params).T
        if never.any():
            out[(X > 0).astype(np.float64) @ never.T.astype(np.float64) > 0] = -np.inf
        return out

    def penalty(self, params: Array, state: ClassCounts) -> float:
        return pseudo_count_loss(self.alpha, params)

    def evidence(self, params: Array, state: ClassCounts, tol: float) -> list[checker.MomentEvidence]:
        return [checker.cell_evidence(params, smoothed_counts(state.total, self.alpha), tol)]


class ComplementParams(NamedTuple):
    """How much each word speaks for a class, and how many words the other classes have."""

    weights: Array  # (k, d), +inf for a word that no other class has, if α = 0
    size: Array  # Σ (N + α) over the other classes  (k,)


@dataclass(frozen=True)
class ComplementColumns(CountColumns):
    """Counts scored against the other classes: -log of their probabilities. With α = 0, the limit of α → 0."""

    model = "ComplementNB"

    norm: bool = False  # divide the weights of a class by their sum

    def mass(self, state: ClassCounts) -> Array:
        """Smoothed counts of all other classes (k, d)."""
        return complement_counts(state.total, self.alpha)

    def params(self, state: ClassCounts) -> ComplementParams:
        mass = self.mass(state)
        weights = -log_shares(mass)
        if self.norm:
            infinite = np.isinf(weights)
            weights = np.where(infinite.any(axis=1, keepdims=True), infinite, weights)
            weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return ComplementParams(weights, mass.sum(axis=1))

    def scores(self, params: ComplementParams, X: Matrix) -> Array:
        self._check(X)
        infinite = np.isinf(params.weights)
        out = X @ np.where(infinite, safe_log(params.size)[:, None], params.weights).T
        # As α → 0, -log α exceeds anything finite: only the classes with most of such words remain possible.
        if infinite.any():
            excess = X @ infinite.T.astype(np.float64)
            out[excess < excess.max(axis=1, keepdims=True)] = -np.inf
        return out

    def penalty(self, params: ComplementParams, state: ClassCounts) -> float:
        return pseudo_count_loss(self.alpha, log_shares(self.mass(state)))

    def evidence(self, params: ComplementParams, state: ClassCounts, tol: float) -> list[checker.MomentEvidence]:
        return checker.complement_evidence(params.weights, self.mass(state), self.norm, tol)


class MultinomialNB(DiscreteNB):
    """Naive Bayes for counts of a draw, such as words of a text.

    Parameters
    ----------
    alpha : float or array (d,), default=1.0
        Pseudo-counts of each column. With 0 a class that never had a word cannot produce it.
    force_alpha, fit_prior, class_prior : as in BernoulliNB

    Attributes
    ----------
    feature_log_prob_ : (k, d) log-probability of each column in a draw
    feature_count_ : (k, d) weighted counts
    class_log_prior_, class_count_, classes_ : (k,)
    sums_ : what `partial_fit` adds to
    certificate_ : Certificate

    A missing count is refused: the probabilities of a draw sum to one, so a column cannot be left out.

    Examples
    --------
    >>> from certifit import MultinomialNB
    >>> model = MultinomialNB().fit([[3, 0, 1], [2, 1, 0], [0, 4, 1]], ["sport", "sport", "music"])
    >>> model.predict([[1, 0, 0], [0, 1, 0]]).tolist()
    ['sport', 'music']
    """

    missing = False
    feature_count_: Array

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _column_model(self) -> MultinomialColumns:
        return MultinomialColumns(self._alpha())

    def _publish(self, params: Array, state: ClassCounts, prior: Array) -> Attributes:
        return {"class_log_prior_": safe_log(prior), "feature_count_": state.total, "feature_log_prob_": params}

    def _params(self) -> Array:
        return np.asarray(self.feature_log_prob_)


class ComplementNB(DiscreteNB):
    """Complement naive Bayes: each class is judged by the counts of all the others (Rennie et al. 2003).

    Parameters
    ----------
    alpha : float or array (d,), default=1.0
        Pseudo-counts. With 0 the scores are the limit of alpha → 0.
    force_alpha, fit_prior, class_prior : as in BernoulliNB; the prior does not enter the scores
    norm : bool, default=False
        Divide the weights of each class by their sum.

    Attributes
    ----------
    feature_log_prob_ : (k, d) weights, -log of the share of each column in the other classes
    feature_count_, feature_all_ : (k, d), (d,) weighted counts
    class_log_prior_, class_count_, classes_ : (k,)
    sums_ : what `partial_fit` adds to
    certificate_ : Certificate

    Examples
    --------
    >>> from certifit import ComplementNB
    >>> model = ComplementNB().fit([[3, 0, 1], [2, 1, 0], [0, 4, 1]], ["sport", "sport", "music"])
    >>> model.predict([[1, 0, 0], [0, 1, 0]]).tolist()
    ['sport', 'music']
    """

    missing = False
    feature_count_: Array
    feature_all_: Array

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None, norm=False):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm

    def _column_model(self) -> ComplementColumns:
        return ComplementColumns(self._alpha(), bool(self.norm))

    def _publish(self, params: ComplementParams, state: ClassCounts, prior: Array) -> Attributes:
        return {
            "class_log_prior_": safe_log(prior),
            "feature_count_": state.total,
            "feature_all_": state.total.sum(axis=0),
            "feature_log_prob_": params.weights,
        }

    def _params(self) -> ComplementParams:
        size = self._column_model().mass(ClassCounts(np.asarray(self.feature_count_))).sum(axis=1)
        return ComplementParams(np.asarray(self.feature_log_prob_), size)

    def _joint_prior(self) -> Array:
        return self._log_prior() if len(self.classes_) == 1 else np.zeros(len(self.classes_))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Negative log-likelihood of the other classes' counts, -Σ_c Σ_{yᵢ≠c} wᵢ xᵢ·log p_c, and of the prior."""
        labels = encode_labels(self._rows(X, y, sample_weight, target="classes"), self.classes_)
        columns, own = self._column_model(), ClassCounts(np.asarray(self.feature_count_))
        log_p = log_shares(columns.mass(own)) if self.norm else -np.asarray(self.feature_log_prob_)
        here: ClassCounts = measure(columns, labels.rows, len(self.classes_), self._tuning)
        others = sums_of_others(here.total)
        data = -weighted_log_sum(others, log_p) - weighted_log_sum(labels.weight, self._log_prior())
        penalty = columns.penalty(self._params(), own)
        return Objective(data + penalty, data, penalty)


__all__ = ["ComplementNB", "MultinomialNB"]
