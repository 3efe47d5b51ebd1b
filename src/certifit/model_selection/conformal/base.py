"""What conformal regressors and classifiers share: calibration on rows that the model has not seen."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.model_selection.conformal import (
    ConformalClaim,
    by_group,
    certify_conformal,
    plain_scores,
    rows_needed,
    smallest_rank,
)
from certifit.checkers.model_selection.splits import Split
from certifit.core import Certificate, Setting
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.model_selection.assessment.held_out import take_rows
from certifit.model_selection.assessment.intervals import clopper_pearson
from certifit.model_selection.conformal.summary import CalibrationSummary
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array


class ConformalModel(MetaEstimatorMixin, BaseEstimator):
    """Fits copies of an estimator and keeps the scores of rows that they have not seen."""

    settings: ClassVar[Settings] = {
        "method": Setting(choices=("split", "cv+", "jackknife+", "prefit")),
        "coverage": Setting(float, above=0, below=1),
        "calibration_size": Setting(float, above=0, below=1),
        "n_splits": Setting(int, least=2),
    }

    estimator: Any
    method: str
    coverage: float
    calibration_size: float
    n_splits: int
    random_state: Any

    estimators_: list[Any]
    calibration_rows_: Array
    calibration_folds_: Array
    calibration_groups_: Array | None
    calibration_strata_: Array | None  # groups, or classes where each has a radius of its own
    scores_: Array
    radius_: dict[Any, float]
    n_folds_: int
    certificate_: Certificate

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit the estimator and calibrate it.

        Parameters
        ----------
        X, y : table and target
        groups : the group of each row (n,): each then has a radius of its own, and its own coverage

        Returns
        -------
        self : `certificate_` says how many new rows are covered
        """
        for name, setting in self.settings.items():
            setting.check(name, getattr(self, name))
        # A fit that fails leaves no certificate of an earlier one.
        self.__dict__.pop("certificate_", None)
        n = count_rows(X)
        target = np.asarray(y)
        members = None if groups is None else np.asarray(groups)
        for name, values in (("y", target), ("groups", members)):
            if values is not None and values.shape != (n,):
                raise DataError(got=f"{name} of shape {values.shape}", wanted=f"one for each of the {n} rows")
        if members is not None and self.method in ("cv+", "jackknife+"):
            raise DataError(
                got=f"groups with method={self.method!r}", wanted="method='split' or 'prefit' for groups of their own"
            )
        self._note_target(target)
        splits = self._splits(n)
        self.estimators_ = self._fit_copies(X, target, splits)
        self.calibration_rows_ = np.concatenate([test for _, test in splits])
        self.calibration_folds_ = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
        self.n_folds_ = 0 if self.method in ("split", "prefit") else len(splits)
        self.calibration_groups_ = None if members is None else members[self.calibration_rows_]
        if members is not None:
            for group in np.setdiff1d(members, members[self.calibration_rows_]).tolist():
                self._check_enough(group, 0)
        self.scores_ = np.concatenate(
            [
                plain_scores(self, fitted, take_rows(X, test), target[test])
                for fitted, (_, test) in zip(self.estimators_, splits, strict=True)
            ]
        )
        self._calibrate(target)
        if self.n_folds_:
            self.estimator_ = self._seeded(check_random_state(self.random_state)).fit(X, target)
        else:
            self.estimator_ = self.estimators_[0]
        return self

    def _note_target(self, y: Array) -> None:
        raise NotImplementedError

    def _calibration_strata(self, y: Array) -> Array | None:
        """Return the group of each calibration row (n,), or None."""
        del y
        return self.calibration_groups_

    def _splits(self, n: int) -> list[Split]:
        """Return (rows to fit, rows to calibrate on) for every copy."""
        everything = np.arange(n)
        if self.method == "prefit":
            return [(everything[:0], everything)]
        seed = check_random_state(self.random_state).randint(2**31)
        if self.method == "split":
            if n < 2:
                raise DataError(got=f"{n} rows", wanted="rows to fit and rows to calibrate on")
            train, test = next(ShuffleSplit(1, test_size=self.calibration_size, random_state=seed).split(everything))
            return [(np.sort(train), np.sort(test))]
        folds = n if self.method == "jackknife+" else self.n_splits
        if folds > n:
            raise DataError(got=f"{n} rows for {folds} folds", wanted="at least one for each fold")
        shuffle = {"shuffle": True, "random_state": seed} if self.method == "cv+" else {}
        return [*KFold(folds, **shuffle).split(everything)]

    def _fit_copies(self, X: Any, y: Array, splits: list[Split]) -> list[Any]:
        if self.method == "prefit":
            check_is_fitted(self.estimator)
            return [self.estimator]
        rng = check_random_state(self.random_state)
        return [self._seeded(rng).fit(take_rows(X, train), y[train]) for train, _ in splits]

    def _seeded(self, rng: np.random.RandomState) -> Any:
        """Return a copy whose chance is settled, so that it can be fitted again to the same."""
        copy = clone(self.estimator)
        names = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
        seeds = {name: int(rng.randint(2**31)) for name in names if copy.get_params()[name] is None}
        return copy.set_params(**seeds)

    def _calibrate(self, y: Array) -> None:
        """Set the radius of every group, and the certificate."""
        self.calibration_strata_ = self._calibration_strata(y)
        scores = by_group(self.scores_, self.calibration_strata_)
        if not np.isfinite(self.scores_).all():
            raise DataError(got="predictions that are no numbers", wanted="finite ones for all calibration rows")
        for group, values in scores.items():
            self._check_enough(group, len(values))
        self.radius_ = {} if self.n_folds_ else {g: _radius(s, self.coverage) for g, s in scores.items()}
        self.certificate_ = certify_conformal(ConformalClaim(self.coverage, scores, self.radius_, self.n_folds_))

    def _check_enough(self, group: Any, n: int) -> None:
        needed = rows_needed(self.coverage)
        if n < needed:
            of = "" if group is None else f" in group {group!r}"
            share = "" if self.method == "prefit" else f" calibration_size={self.calibration_size:g} keeps too few:"
            raise DataError(
                got=f"{n} calibration rows{of} for a coverage of {self.coverage:g}",
                wanted=f"at least {needed}",
                fix=f"{share} give more rows, keep a larger share for calibration, or ask for a coverage of at most "
                f"{n / (n + 1):.4g}.".strip(),
            )

    def _radii(self, X: Any, groups: Any) -> Array:
        """Return the radius of each row's group (m,)."""
        m = count_rows(X)
        if self.calibration_groups_ is None:
            if groups is not None:
                raise DataError(
                    got="groups", wanted="none: the model was calibrated without", fix="fit(X, y, groups)"
                )
            return np.full(m, self.radius_[None])
        if groups is None or np.shape(groups) != (m,):
            raise DataError(got=f"groups of shape {np.shape(groups)}", wanted=f"the group of each of the {m} rows")
        names = np.asarray(groups).tolist()
        unknown = [name for name in names if name not in self.radius_]
        if unknown:
            known = ", ".join(map(repr, [*self.radius_][:10]))
            raise DataError(got=f"a row of group {unknown[0]!r}", wanted=f"groups with calibration rows: {known}")
        return np.array([self.radius_[name] for name in names])

    def predict(self, X: Any) -> Array:
        """Return what the estimator says of each row (m,)."""
        check_is_fitted(self, "certificate_")
        return np.asarray(self.estimator_.predict(X))

    def summary(self, confidence: float = 0.95) -> CalibrationSummary:
        """Return radius and coverage of every group; prints as a table, plots and turns into a data frame.

        Parameters
        ----------
        confidence : of the coverage of this very model
        """
        check_is_fitted(self, "certificate_")
        Setting(float, above=0, below=1).check("confidence", confidence)
        return CalibrationSummary(
            type(self.estimator).__name__, by_group(self.scores_, self.calibration_strata_), self.radius_,
            self.coverage, confidence, self.certificate_,
        )  # fmt: skip

    def _share(self, covered: Array, confidence: float) -> tuple[float, float, float]:
        low, high = clopper_pearson(np.count_nonzero(covered), len(covered), confidence)
        return float(np.mean(covered)), float(low), float(high)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")


def _radius(scores: Array, coverage: float) -> float:
    """Return the k-th smallest score."""
    k = smallest_rank(len(scores), coverage)
    return float(np.partition(scores, k - 1)[k - 1])
