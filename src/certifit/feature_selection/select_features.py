"""Selection of the columns that score best by themselves (a filter), from any source of rows.

    max over sets of k columns of  Σ score(column),     scores as in `feature_selection.scores`

It takes one or two passes over the rows and fits no model. A column that helps only together with others is not found
this way: see `SequentialSelector` and `L1Selector`.
Reference: Guyon & Elisseeff, An introduction to variable and feature selection (2003).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from certifit.checkers.feature_selection import univariate as checker
from certifit.core import Attributes, Objective, Setting
from certifit.exceptions import DataError
from certifit.feature_selection.scores import SCORES, find_score, score_columns, score_setting
from certifit.feature_selection.selector import Selector, best_first, column_count
from certifit.rows import Array, Rows
from certifit.rows.checks import Target


class SelectFeatures(Selector):
    """Keep the columns with the best scores, each column scored by itself.

    Parameters
    ----------
    score_func : str, default='anova'
        Of classes: 'anova' (F), 'chi2' (counts), 'information' (mutual information of discrete columns),
        'binned_information' (of measurements, cut into 15 cells), 'jeffreys' (symmetric KL between classes).
        Of numbers: 'correlation' (F), 'regression_information'. Without a target: 'variance'.
    k : int or float, default=0.5
        How many columns to keep, or which share of them (rounded up).
    threshold : float or None, default=None
        Keep only columns that score above this, of these the k best.

    Attributes
    ----------
    scores_ : (d,)
    pvalues_ : (d,) or None where the score has none
    support_ : (d,) bool, the columns kept; among equal scores the first
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SelectFeatures("anova", k=2).fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['petal length (cm)', 'petal width (cm)']
    >>> model.certificate_.kind, model.certificate_.holds
    ('exact', True)
    """

    settings: ClassVar[Any] = {"score_func": score_setting(), "threshold": Setting(float, none=True)}
    sparse = True
    tol: ClassVar[float] = 1e-9  # relative difference of a score up to which it counts as exact

    scores_: Array
    pvalues_: Array | None

    def __init__(self, score_func="anova", k=0.5, *, threshold=None):
        self.score_func = score_func
        self.k = k
        self.threshold = threshold

    @property
    def target(self) -> Target:  # type: ignore[override]
        """Return the kind of y that `fit` needs."""
        return SCORES[self.score_func].target if self.score_func in [*SCORES] else "none"

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        found = score_columns(find_score(self.score_func), rows)
        support = self._choose(found.scores)
        claim = checker.FilterClaim(
            self.score_func, found.scores, found.pvalues, support, self._wanted_columns(found.scores)
        )
        return {
            "scores_": found.scores,
            "pvalues_": found.pvalues,
            "support_": support,
            "certificate_": checker.certify_sums(claim, found.weight, found.k, self.tol),
        }

    def _wanted_columns(self, scores: Array) -> int:
        """Return how many columns the settings ask for, given these scores."""
        least = -np.inf if self.threshold is None else self.threshold
        return min(column_count(self.k, len(scores), "k"), int((scores > least).sum()))

    def _choose(self, scores: Array) -> Array:
        wanted = self._wanted_columns(scores)
        if wanted == 0:
            raise DataError(
                got=f"threshold={self.threshold!r} and no column that scores above it (the best: {scores.max():.6g})",
                wanted="a threshold that some column passes",
                fix="Lower the threshold, or use k alone.",
            )
        support = np.zeros(len(scores), bool)
        support[best_first(scores)[:wanted]] = True
        return support

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the sum of the scores, on these rows, of the columns that were left out."""
        rows = self._rows(X, y, sample_weight, target=self.target)
        total = float(score_columns(find_score(self.score_func), rows).scores[~self.support_].sum())
        return Objective(total, total, 0.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.score_func == "chi2"
        return tags
