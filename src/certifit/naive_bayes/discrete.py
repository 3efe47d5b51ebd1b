"""Naive Bayes for columns that are counted, by scikit-learn's names: Bernoulli, multinomial, complement, categorical.

Each is a front of a part in `naive_bayes_counts`, where the problems and references stand.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from certifit.core import Attributes, Objective
from certifit.exceptions import DataError
from certifit.naive_bayes.base import NaiveBayesClassifier, check_amount, check_prior, log, measure
from certifit.naive_bayes.counts import (
    BernoulliParams,
    BernoulliPart,
    CategoricalParams,
    CategoricalPart,
    CategoryCounts,
    ComplementParams,
    ComplementPart,
    MultinomialPart,
    ThresholdCounts,
    Totals,
    log_shares,
    starts,
    weigh,
)
from certifit.rows import Array, encode_labels

LEAST_ALPHA = 1e-10  # what force_alpha=False raises alpha to, as in scikit-learn


class _DiscreteNB(NaiveBayesClassifier):
    """Prior and smoothing as scikit-learn's discrete models have them."""

    positive = True  # takes no negative values

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    class_log_prior_: Array
    feature_log_prob_: Any

    def _alpha(self) -> Any:
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and alpha.shape != (self.n_features_in_,):
            raise DataError(got=f"alpha of shape {alpha.shape}", wanted=f"a number, or {self.n_features_in_} of them")
        if not ((alpha >= 0) & np.isfinite(alpha)).all():
            raise DataError(got=f"alpha={self.alpha!r}", wanted="finite pseudo-counts of at least 0")
        alpha = alpha if self.force_alpha else np.maximum(alpha, LEAST_ALPHA)
        return alpha if alpha.ndim else float(alpha)

    def _given_prior(self, k: int) -> Array | None:
        if self.class_prior is None and not self.fit_prior:
            return np.full(k, 1.0 / k)
        return check_prior(self.class_prior, k, "class_prior")

    def _log_prior(self) -> Array:
        return np.asarray(self.class_log_prior_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.input_tags.positive_only = self.positive
        return tags


class BernoulliNB(_DiscreteNB):
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

    positive = False
    finite = False
    feature_count_: Array

    def __init__(self, *, alpha=1.0, force_alpha=True, binarize=0.0, fit_prior=True, class_prior=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _part(self) -> BernoulliPart:
        t = self.binarize
        if t is not None and not (isinstance(t, Real) and np.isfinite(float(t))):
            raise DataError(got=f"binarize={t!r}", wanted="a finite number or None")
        return BernoulliPart(self._alpha(), 0.5 if t is None else float(t), t is None)

    def _publish(self, params: BernoulliParams, state: ThresholdCounts, prior: Array) -> Attributes:
        return {
            "class_log_prior_": log(prior), "feature_count_": state.above, "feature_log_prob_": params.log_p
        }  # fmt: skip

    def _params(self) -> BernoulliParams:
        return BernoulliParams.of(np.asarray(self.feature_log_prob_))


class MultinomialNB(_DiscreteNB):
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

    def _part(self) -> MultinomialPart:
        return MultinomialPart(self._alpha())

    def _publish(self, params: Array, state: Totals, prior: Array) -> Attributes:
        return {"class_log_prior_": log(prior), "feature_count_": state.total, "feature_log_prob_": params}

    def _params(self) -> Array:
        return np.asarray(self.feature_log_prob_)


class ComplementNB(_DiscreteNB):
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

    def _part(self) -> ComplementPart:
        return ComplementPart(self._alpha(), bool(self.norm))

    def _publish(self, params: ComplementParams, state: Totals, prior: Array) -> Attributes:
        return {
            "class_log_prior_": log(prior),
            "feature_count_": state.total,
            "feature_all_": state.total.sum(axis=0),
            "feature_log_prob_": params.weights,
        }

    def _params(self) -> ComplementParams:
        size = self._part().mass(Totals(np.asarray(self.feature_count_))).sum(axis=1)
        return ComplementParams(np.asarray(self.feature_log_prob_), size)

    def _joint_prior(self) -> Array:
        return self._log_prior() if len(self.classes_) == 1 else np.zeros(len(self.classes_))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Negative log-likelihood of the other classes' counts, -Σ_c Σ_{yᵢ≠c} wᵢ xᵢ·log p_c, and of the prior."""
        labels = encode_labels(self._rows(X, y, sample_weight, target="classes"), self.classes_)
        part, own = self._part(), Totals(np.asarray(self.feature_count_))
        log_p = log_shares(part.mass(own)) if self.norm else -np.asarray(self.feature_log_prob_)
        here: Totals = measure(part, labels.rows, len(self.classes_))
        data = -weigh(here.total.sum(axis=0) - here.total, log_p) - weigh(labels.weight, self._log_prior())
        penalty = part.penalty(self._params(), own)
        return Objective(data + penalty, data, penalty)


class CategoricalNB(_DiscreteNB):
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
    n_categories_ : (d,)
    class_log_prior_, class_count_, classes_ : (k,)
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

    category_count_: list[Array]
    n_categories_: Array

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None, min_categories=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def _part(self) -> CategoricalPart:
        least = np.asarray(0 if self.min_categories is None else self.min_categories)
        if least.dtype.kind not in "iu" or (least.ndim and least.shape != (self.n_features_in_,)):
            raise DataError(
                got=f"min_categories={self.min_categories!r}",
                wanted=f"a whole number, {self.n_features_in_} of them, or None",
            )
        check_amount(self.alpha, "alpha")
        return CategoricalPart(self._alpha(), least, whole=False)

    def _publish(self, params: CategoricalParams, state: CategoryCounts, prior: Array) -> Attributes:
        cut = starts(params.sizes)[1:]
        return {
            "class_log_prior_": log(prior),
            "category_count_": np.split(state.widen(params.sizes), cut, axis=1),
            "feature_log_prob_": [np.ascontiguousarray(table.T) for table in np.split(params.table, cut)],
            "n_categories_": params.sizes,
        }

    def _params(self) -> CategoricalParams:
        table = np.concatenate(self.feature_log_prob_, axis=1).T
        return CategoricalParams(np.asarray(self.n_categories_), np.ascontiguousarray(table))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB"]
