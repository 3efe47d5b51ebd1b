"""What naive Bayes models of counted columns share: pseudo-counts `alpha` and class priors, as in scikit-learn."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from certifit.core import Setting
from certifit.exceptions import warn_caller
from certifit.naive_bayes.classifier import NaiveBayesClassifier, check_prior
from certifit.naive_bayes.smoothing import LEAST_PSEUDO_COUNT, are_pseudo_counts, pseudo_counts
from certifit.rows import Array, Matrix


def add_by_class(X: Matrix, y: Array, w: Array, k: int) -> Array:
    """Σ w x by class (k, d) in float64, for dense and CSR rows."""
    rows = sparse.csc_array((w, y, np.arange(len(y) + 1)), shape=(k, len(y)))
    total = rows @ X
    return total.toarray() if sparse.issparse(total) else total


class DiscreteNB(NaiveBayesClassifier):
    """Prior and smoothing as scikit-learn's models of counts have them."""

    settings: ClassVar[Any] = {
        "alpha": Setting(
            float,
            least=0,
            below=math.inf,
            other=are_pseudo_counts,
            other_words="an array of them, one for each column",
        )
    }
    positive: ClassVar[bool] = True  # takes no negative values

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    class_log_prior_: Array
    feature_log_prob_: Any

    def _check_settings(self) -> None:
        super()._check_settings()
        if not self.force_alpha and np.min(self.alpha) < LEAST_PSEUDO_COUNT:
            warn_caller(
                "alpha too small will result in numeric errors, setting alpha = 1.0e-10; force_alpha=True keeps it"
            )

    def _alpha(self) -> Any:
        """Pseudo-counts, a number or (d,)."""
        return pseudo_counts(self.alpha, self.n_features_in_, self.force_alpha)

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
