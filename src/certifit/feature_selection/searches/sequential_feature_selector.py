"""scikit-learn's sequential selection: the search of `SequentialSelector` with its counts and its stopping rule."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.feature_selection.searches.sequential_selector import SequentialSelector
from certifit.feature_selection.searches.subset_search import SubsetTrial


def _is_share(value: Any) -> bool:
    return not isinstance(value, Integral) and 0 < float(value) <= 1


class SequentialFeatureSelector(SequentialSelector):
    """Add or remove columns one by one, by the cross-validated score of any estimator.

    Parameters
    ----------
    estimator : estimator with `fit`, and `score` unless `scoring` is given; it sees arrays without names
    n_features_to_select : 'auto', int or float, default='auto'
        How many columns to keep, or which share of them, rounded down; 'auto' is half of them, or with `tol` as many
        as gain enough.
    tol : float or None, default=None
        With 'auto': the gain in score without which no further step is taken. Going backward, a negative number
        allows a loss.
    direction : 'forward' or 'backward'
    scoring : str, callable or None
        As in scikit-learn; None is the estimator's own score.
    cv : int, splitter, iterable or None, default=5
        The folds, made once and used for every candidate; None makes five.
    n_jobs : int or None
        Candidates fitted at a time.

    Attributes
    ----------
    support_ : (d,) bool, the columns kept
    n_features_to_select_ : int, how many are kept
    path_ : dict of arrays (steps,): the 'column' taken, mean 'score' and its standard 'error' over the folds
    candidate_scores_ : (steps, d) mean score of every candidate of each step, NaN for columns that were none; one
        row more where a step was looked at and not taken
    start_score_ : float, -inf: scikit-learn compares the first step with nothing
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SequentialFeatureSelector(KNeighborsClassifier(3), n_features_to_select=3).fit(X, y)
    >>> model.get_support()
    array([ True, False,  True,  True])
    >>> model.certificate_.kind, model.certificate_.holds
    ('greedy', True)
    """

    settings: ClassVar[Any] = {
        "direction": SequentialSelector.settings["direction"],
        "tol": Setting(float, none=True),
        "n_features_to_select": Setting(
            int, least=1, choices=("auto",), other=_is_share, other_words="a share above 0 and at most 1.0"
        ),
    }
    differences: ClassVar[dict[str, str]] = {
        "fit": "There is no metadata routing: weights are sample_weight, and `cv` may be a list of folds by group.",
    }
    max_time: Any = None  # which SequentialSelector has as a setting

    def __init__(
        self,
        estimator,
        *,
        n_features_to_select="auto",
        tol=None,
        direction="forward",
        scoring=None,
        cv=5,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.direction = direction
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.tol is not None and self.tol < 0 and self.direction == "forward":
            raise DataError(
                got=f"tol={self.tol!r} with direction='forward'",
                wanted="a positive number (tol must be strictly positive when doing forward selection)",
                fix="A negative tol allows a loss, which only a backward search needs.",
            )

    def _splits(self) -> Any:
        return 5 if self.cv is None else self.cv

    @property
    def n_features_to_select_(self) -> int:
        """Return how many columns are kept."""
        return int(self.support_.sum())

    def _steps(self, d: int) -> int:
        asked = self.n_features_to_select
        if d < 2:
            raise DataError(
                got=f"{d} feature(s) (shape=(n, {d})) while a minimum of 2 is required.",
                wanted="columns to choose from",
            )
        if isinstance(asked, str) and self.tol is not None:
            return d - 1
        if isinstance(asked, Integral) and int(asked) >= d:
            raise DataError(
                got=f"n_features_to_select={asked} of {d} columns",
                wanted=f"at most {d - 1} (n_features_to_select must be < n_features)",
            )
        keep = d // 2 if isinstance(asked, str) else int(asked) if isinstance(asked, Integral) else int(d * asked)
        return keep if self.direction == "forward" else d - keep

    def _start(self, _trial: SubsetTrial) -> float:
        return -np.inf

    def _least_gain(self) -> float | None:
        return None if self.tol is None or not isinstance(self.n_features_to_select, str) else float(self.tol)

    def _tolerance(self) -> float:
        return 0.0 if self.tol is None else float(self.tol)
