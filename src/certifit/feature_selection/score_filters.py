"""scikit-learn's filters: each column is scored by itself, and a rule keeps the best of them.

    k best          the k largest scores
    percentile      the largest scores, a share of the columns
    fpr             p < α                          (false positive rate)
    fdr             p <= p₍ᵢ₎ for the largest i with p₍ᵢ₎ <= α i / d    (false discovery rate)
    fwe             p < α / d                      (family-wise error)

A score function that is known (`score_functions`) is computed from sums over rows, from any source; any other
function of (X, y) is called once, on all rows. Which columns are kept follows from the scores and the settings
whenever it is asked for, as in scikit-learn: among equal scores `SelectKBest` keeps the last, `SelectPercentile` the
first.
Reference: Benjamini & Hochberg, Controlling the false discovery rate (1995).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from certifit.checkers.feature_selection import univariate as checker
from certifit.core import Attributes, Objective, Setting
from certifit.exceptions import DataError
from certifit.feature_selection.score_functions import f_classif, known_score, warn_of_constants
from certifit.feature_selection.scores import FUNCTION_SCORES, score_columns
from certifit.feature_selection.selector import Selector
from certifit.rows import Array, ArrayRows, Rows
from certifit.rows.checks import Target

SHARE = Setting(float, least=0, most=1)  # a probability


class ScoreFilter(Selector):
    """What all filters by a score function have in common."""

    settings: ClassVar[Any] = {"score_func": Setting(other=callable, other_words="a function of (X, y)")}
    sparse = True
    tol: ClassVar[float] = 1e-9  # relative difference of a score up to which it counts as exact
    differences: ClassVar[dict[str, str]] = {
        "pvalues_": "A constant column scores 0 with p-value 1 by f_classif and chi2; in scikit-learn both are NaN.",
    }

    score_func: Any
    scores_: Array
    pvalues_: Array | None

    @property
    def target(self) -> Target:  # type: ignore[override]
        """Return the kind of y that `fit` needs."""
        name = known_score(self.score_func)
        return "none" if name is None else FUNCTION_SCORES[name].target

    @property
    def support_(self) -> Array:  # type: ignore[override]
        """Return the columns that the settings keep (d,), by the scores and p-values of the fit."""
        if "scores_" not in vars(self):
            raise AttributeError("support_ is known once the selector is fitted")
        return self._choose(np.where(np.isnan(self.scores_), -np.inf, self.scores_), self.pvalues_)

    @abstractmethod
    def _choose(self, scores: Array, pvalues: Array | None) -> Array:
        """Return the columns to keep (d,); a score that is NaN counts as the smallest."""

    def _check_width(self, d: int) -> None:
        """Warn of settings that do not fit a table of d columns."""

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return self.support_

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> Rows:
        """Return the rows to score; for a function that is not known, all of them, with y as it was given."""
        if known_score(self.score_func) is not None:
            return super()._rows_to_fit(X, y, sample_weight, reset, targets)
        data = self._as_rows(X, None, sample_weight, "none", targets, reset).load()
        if (data.w != 1).any():
            raise DataError(
                got="sample_weight, and a score function that takes none",
                wanted="a score function of certifit's or scikit-learn's, such as f_classif",
                fix="Repeat rows instead, or leave the weights out.",
            )
        if y is None:
            return data
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(data.X, y)
        return ArrayRows(data.X, y, data.w, data.names)

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        self._check_width(rows.n_features)
        name = known_score(self.score_func)
        if name is None:
            assert isinstance(rows, ArrayRows)
            scores, p = call_score_function(self.score_func, rows)
            certificate = checker.certify_function(scores, p, self._mask(scores, p), self.tol)
        else:
            found = score_columns(FUNCTION_SCORES[name], rows)
            scores, p = found.scores, found.pvalues
            warn_of_constants(name, scores, rows)
            claim = checker.FilterClaim(name, scores, p, self._mask(scores, p), None, False, False)
            certificate = checker.certify_sums(claim, found.weight, found.k, self.tol)
        return {"scores_": scores, "pvalues_": p, "certificate_": certificate}

    def _mask(self, scores: Array, pvalues: Array | None) -> Array:
        return self._choose(np.where(np.isnan(scores), -np.inf, scores), pvalues)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the sum of the scores, on these rows, of the columns that were left out."""
        check_is_fitted(self)
        rows, name = self._rows_to_fit(X, y, sample_weight, reset=False), known_score(self.score_func)
        if name is None:
            assert isinstance(rows, ArrayRows)
            scores = call_score_function(self.score_func, rows)[0]
        else:
            scores = score_columns(FUNCTION_SCORES[name], rows).scores
        total = float(np.nansum(scores[~self.support_]))
        return Objective(total, total, 0.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.positive_only = known_score(self.score_func) == "chi2"
        return tags


def call_score_function(function: Any, rows: ArrayRows) -> tuple[Array, Array | None]:
    """Return the scores, and the p-values if there are any, that a function of (X, y) returns."""
    found = function(rows.X, rows.y)
    scores, p = found if isinstance(found, (list, tuple)) else (found, None)
    scores, p = np.asarray(scores), None if p is None else np.asarray(p)
    for word, values in (("scores", scores), ("p-values", p)):
        if values is not None and (values.shape != (rows.n_features,) or values.dtype.kind not in "biuf"):
            raise DataError(
                got=f"{word} of shape {values.shape} and type {values.dtype} from {function!r}",
                wanted=f"a number for each of the {rows.n_features} columns",
            )
    return scores, p


def _known_pvalues(pvalues: Array | None, name: str) -> Array:
    """Return p-values, or refuse a score function that has none."""
    if pvalues is None:
        raise DataError(
            got=f"a score function without p-values for {name}",
            wanted="one that returns scores and p-values",
            fix="Use SelectKBest or SelectPercentile.",
        )
    return pvalues


class SelectKBest(ScoreFilter):
    """Keep the k columns with the largest scores.

    Parameters
    ----------
    score_func : callable, default=f_classif
        A function of (X, y) that returns scores (d,), or scores and p-values. Known ones, ours or scikit-learn's
        `f_classif`, `f_regression`, `r_regression` and `chi2`, are computed from sums over rows of any source.
    k : int or 'all', default=10

    Attributes
    ----------
    scores_ : (d,)
    pvalues_ : (d,), or None where the function returns none
    support_ : (d,) bool, the columns kept, from the scores and k
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SelectKBest(f_classif, k=2).fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['petal length (cm)', 'petal width (cm)']
    >>> model.certificate_.kind, model.certificate_.holds
    ('exact', True)
    """

    settings: ClassVar[Any] = {**ScoreFilter.settings, "k": Setting(int, least=0, choices=("all",))}

    def __init__(self, score_func=f_classif, *, k=10):
        self.score_func = score_func
        self.k = k

    def _check_width(self, d: int) -> None:
        if not isinstance(self.k, str) and self.k > d:
            warnings.warn(
                f"k={self.k} is greater than n_features={d}. All the features will be returned.", stacklevel=2
            )

    def _choose(self, scores: Array, pvalues: Array | None) -> Array:
        mask = np.zeros(len(scores), bool)
        wanted = len(scores) if isinstance(self.k, str) else min(int(self.k), len(scores))
        mask[np.argsort(scores, kind="stable")[len(scores) - wanted :]] = True
        return mask


class SelectPercentile(ScoreFilter):
    """Keep a percentage of the columns, those with the largest scores.

    Parameters
    ----------
    score_func : callable, default=f_classif
        As in `SelectKBest`.
    percentile : float, default=10

    Attributes
    ----------
    scores_ : (d,)
    pvalues_ : (d,), or None where the function returns none
    support_ : (d,) bool, the columns kept, from the scores and the percentile
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> SelectPercentile(f_classif, percentile=50).fit(*load_iris(return_X_y=True)).get_support()
    array([False, False,  True,  True])
    """

    settings: ClassVar[Any] = {**ScoreFilter.settings, "percentile": Setting(float, least=0, most=100)}

    def __init__(self, score_func=f_classif, *, percentile=10):
        self.score_func = score_func
        self.percentile = percentile

    def _choose(self, scores: Array, pvalues: Array | None) -> Array:
        if self.percentile in (0, 100):
            return np.full(len(scores), self.percentile == 100)
        # Infinite scores have no percentile between them.
        finite = np.nan_to_num(scores, posinf=np.finfo(np.float64).max, neginf=np.finfo(np.float64).min)
        least = np.percentile(finite, 100 - self.percentile)
        mask = finite > least
        ties = np.flatnonzero(finite == least)
        mask[ties[: max(0, int(len(scores) * self.percentile / 100) - int(mask.sum()))]] = True
        return mask


class SelectFpr(ScoreFilter):
    """Keep the columns whose p-values are below α: each test by itself errs with this probability.

    Parameters
    ----------
    score_func : callable, default=f_classif
        As in `SelectKBest`; it must return p-values.
    alpha : float, default=0.05

    Attributes
    ----------
    scores_, pvalues_ : (d,)
    support_ : (d,) bool, the columns kept, from the p-values and alpha
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> SelectFpr(f_classif, alpha=0.01).fit_transform(*load_breast_cancer(return_X_y=True)).shape
    (569, 25)
    """

    settings: ClassVar[Any] = {**ScoreFilter.settings, "alpha": SHARE}

    def __init__(self, score_func=f_classif, *, alpha=5e-2):
        self.score_func = score_func
        self.alpha = alpha

    def _choose(self, scores: Array, pvalues: Array | None) -> Array:
        return _known_pvalues(pvalues, type(self).__name__) < self.alpha


class SelectFdr(ScoreFilter):
    """Keep columns so that at most a share α of those kept is expected to be there by chance.

    Parameters
    ----------
    score_func : callable, default=f_classif
        As in `SelectKBest`; it must return p-values.
    alpha : float, default=0.05

    Attributes
    ----------
    scores_, pvalues_ : (d,)
    support_ : (d,) bool, the columns kept, from the p-values and alpha
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> SelectFdr(f_classif, alpha=0.01).fit_transform(*load_breast_cancer(return_X_y=True)).shape
    (569, 25)
    """

    settings: ClassVar[Any] = {**ScoreFilter.settings, "alpha": SHARE}

    def __init__(self, score_func=f_classif, *, alpha=5e-2):
        self.score_func = score_func
        self.alpha = alpha

    def _choose(self, scores: Array, pvalues: Array | None) -> Array:
        p = _known_pvalues(pvalues, type(self).__name__)
        ordered = np.sort(p)
        passed = ordered[ordered <= float(self.alpha) / len(p) * np.arange(1, len(p) + 1)]
        return p <= passed.max() if len(passed) else np.zeros(len(p), bool)


class SelectFwe(ScoreFilter):
    """Keep the columns whose p-values are below α / d: all tests together err with at most probability α.

    Parameters
    ----------
    score_func : callable, default=f_classif
        As in `SelectKBest`; it must return p-values.
    alpha : float, default=0.05

    Attributes
    ----------
    scores_, pvalues_ : (d,)
    support_ : (d,) bool, the columns kept, from the p-values and alpha
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> SelectFwe(f_classif, alpha=0.01).fit_transform(*load_breast_cancer(return_X_y=True)).shape
    (569, 25)
    """

    settings: ClassVar[Any] = {**ScoreFilter.settings, "alpha": SHARE}

    def __init__(self, score_func=f_classif, *, alpha=5e-2):
        self.score_func = score_func
        self.alpha = alpha

    def _choose(self, scores: Array, pvalues: Array | None) -> Array:
        return _known_pvalues(pvalues, type(self).__name__) < self.alpha / len(scores)


# by the words of GenericUnivariateSelect, the filter and its setting
MODES: dict[str, tuple[type[ScoreFilter], str]] = {
    "percentile": (SelectPercentile, "percentile"),
    "k_best": (SelectKBest, "k"),
    "fpr": (SelectFpr, "alpha"),
    "fdr": (SelectFdr, "alpha"),
    "fwe": (SelectFwe, "alpha"),
}


class GenericUnivariateSelect(ScoreFilter):
    """Keep columns by one of the rules above, named by a setting so that a search can choose it.

    Parameters
    ----------
    score_func : callable, default=f_classif
        As in `SelectKBest`.
    mode : 'percentile', 'k_best', 'fpr', 'fdr' or 'fwe', default='percentile'
    param : float, int or 'all', default=1e-5
        The percentile, k or α of the rule.

    Attributes
    ----------
    scores_ : (d,)
    pvalues_ : (d,), or None where the function returns none
    support_ : (d,) bool, the columns kept, from the scores and the settings
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> GenericUnivariateSelect(f_classif, mode="k_best", param=1).fit(*load_iris(return_X_y=True)).get_support()
    array([False, False,  True, False])
    """

    settings: ClassVar[Any] = {
        **ScoreFilter.settings,
        "mode": Setting(choices=tuple(MODES)),
        "param": Setting(float, least=0, choices=("all",)),
    }

    def __init__(self, score_func=f_classif, *, mode="percentile", param=1e-5):
        self.score_func = score_func
        self.mode = mode
        self.param = param

    def _filter(self) -> ScoreFilter:
        """Return the filter that does the same."""
        cls, name = MODES[self.mode]
        return cls(self.score_func, **{name: self.param})

    def _check_settings(self) -> None:
        super()._check_settings()
        cls, name = MODES[self.mode]
        cls.settings[name].check("param", self.param)

    def _check_width(self, d: int) -> None:
        self._filter()._check_width(d)

    def _choose(self, scores: Array, pvalues: Array | None) -> Array:
        return self._filter()._choose(scores, pvalues)
