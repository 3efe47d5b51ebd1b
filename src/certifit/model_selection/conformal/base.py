"""What conformal regressors and classifiers share: calibration on rows that the model has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.model_selection.conformal import (
    ConformalClaim,
    answers_of,
    by_group,
    certify_conformal,
    plain_scores,
    rows_needed,
    smallest_rank,
)
from certifit.checkers.model_selection.copies import copied_share
from certifit.checkers.model_selection.splits import Split
from certifit.core import Certificate, Setting
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.model_selection.assessment.held_out import take_rows, with_rows
from certifit.model_selection.assessment.intervals import clopper_pearson
from certifit.model_selection.conformal.summary import CalibrationSummary
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array


@dataclass(frozen=True)
class ConformalTuning:
    """How much is answered at once."""

    votes_at_once: int = 4_000_000  # of calibration rows for new rows


class ConformalModel(MetaEstimatorMixin, BaseEstimator):
    """Fits copies of an estimator and keeps the scores of rows that they have not seen."""

    settings: ClassVar[Settings] = {
        "method": Setting(choices=("split", "cv+", "jackknife+", "prefit")),
        "coverage": Setting(float, above=0, below=1),
        "calibration_size": Setting(float, above=0, below=1),
        "n_splits": Setting(int, least=2),
    }

    _tuning: ClassVar[ConformalTuning] = ConformalTuning()

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

    def fit(self, X: Any, y: Any, groups: Any = None, **unused: Any) -> Self:
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
        self._refuse_weights(unused)
        self._check_estimator()
        X, n = with_rows(X), count_rows(X)
        target, members = np.asarray(y), None if groups is None else np.asarray(groups)
        target = target.ravel() if target.shape == (n, 1) else target
        for name, values in (("y", target), ("groups", members)):
            if values is not None and values.shape != (n,):
                raise DataError(got=f"{name} of shape {values.shape}", wanted=f"one for each of the {n} rows")
        if members is not None:
            self._check_groups(members)
        target = self._checked_target(target)
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
        self._calibrate(target, copied_share(X, target, self.calibration_rows_, self.calibration_folds_))
        if self.n_folds_:
            self.estimator_ = self._seeded(check_random_state(self.random_state)).fit(X, target)
        else:
            self.estimator_ = self.estimators_[0]
        return self

    def _check_estimator(self) -> None:
        """Refuse what cannot be wrapped, and a coverage of which folds prove nothing."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "predict"):
            raise DataError(
                got=f"the estimator {self.estimator!r}", wanted="an estimator with predict",
                fix="Pass an instance, such as ConformalRegressor(LinearRegression()).",
            )  # fmt: skip
        if self.method in ("cv+", "jackknife+") and self.coverage <= 0.5:
            raise DataError(
                got=f"coverage={self.coverage:g} with method={self.method!r}",
                wanted="a coverage above 0.5: that of folds is proved up to twice the chance of a miss",
                fix="method='split' proves any coverage.",
            )  # fmt: skip

    def _refuse_weights(self, unused: dict[str, Any]) -> None:
        """Refuse weights that differ, and whatever else no fit takes."""
        weights = unused.pop("sample_weight", None)
        if unused:
            raise DataError(got=f"{', '.join(sorted(unused))} in fit", wanted="X, y and groups")
        if weights is not None and np.unique(np.asarray(weights)).size != 1:
            raise DataError(
                got="sample_weight with different weights",
                wanted="rows that count alike: coverage is proved by counting rows that were drawn like new ones",
                fix="Fit the estimator with its weights first, and calibrate it on other rows with method='prefit'.",
            )

    def _check_groups(self, groups: Array) -> None:
        if self.method in ("cv+", "jackknife+"):
            raise DataError(
                got=f"groups with method={self.method!r}", wanted="method='split' or 'prefit' for groups of their own"
            )
        missing = [i for i, name in enumerate(groups.tolist()) if name is None or name != name]
        if missing:
            raise DataError(
                got=f"row {missing[0]} without a group", wanted="the group of each row",
                fix="Give such rows a group of their own.",
            )  # fmt: skip

    def _checked_target(self, y: Array) -> Array:
        """Return the target (n,) as it is calibrated on."""
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
        rng, found = check_random_state(self.random_state), []
        for number, (train, _) in enumerate(splits):
            copy = self._seeded(rng)
            try:
                found.append(copy.fit(take_rows(X, train), y[train]))
            except Exception as error:
                if number == 0:  # that of any fit, more likely than not
                    raise
                raise DataError(
                    got=f"{type(copy).__name__} that fails on fold {number + 1} of {len(splits)} "
                    f"({type(error).__name__}: {error})",
                    wanted="an estimator that can be fitted without any of the folds",
                ) from error
        return found

    def _seeded(self, rng: np.random.RandomState) -> Any:
        """Return a copy whose chance is settled, so that it can be fitted again to the same."""
        copy = clone(self.estimator)
        names = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
        # A generator would go on where the fit has left it.
        seeds = {name: int(rng.randint(2**31)) for name in names if not _is_whole(copy.get_params()[name])}
        return copy.set_params(**seeds)

    def _calibrate(self, y: Array, copied: float) -> None:
        """Set the radius of every group, and the certificate."""
        self.calibration_strata_ = self._calibration_strata(y)
        scores = by_group(self.scores_, self.calibration_strata_)
        if not np.isfinite(self.scores_).all():
            at = int(self.calibration_rows_[~np.isfinite(self.scores_)][0])
            raise DataError(
                got=f"predictions that are no numbers, of row {at}", wanted="finite ones for all calibration rows"
            )
        for group, values in scores.items():
            self._check_enough(group, len(values))
        self.radius_ = {} if self.n_folds_ else {g: _radius(s, self.coverage) for g, s in scores.items()}
        claim = ConformalClaim(self.coverage, scores, self.radius_, self.n_folds_, self.method == "prefit", copied)
        self.certificate_ = certify_conformal(claim)

    def _check_enough(self, group: Any, n: int) -> None:
        needed = rows_needed(self.coverage)
        if n < needed:
            of = "" if group is None else f" in group {group!r}"
            fix = "Give more rows"
            if self.method == "split":
                share = f"calibration_size={self.calibration_size:g} keeps too few"
                fix = f"{share}: give more rows, keep a larger share for calibration"
            less = f", or ask for a coverage of at most {n / (n + 1):.4g}." if n else "."
            raise DataError(
                got=f"{n} calibration rows{of} for a coverage of {self.coverage:g}", wanted=f"at least {needed}",
                fix=fix + less,
            )  # fmt: skip

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

    def _said(self, fitted: Any, X: Any) -> Array:
        """Return what a copy answers for new rows; what is no number has no interval and no set."""
        said = answers_of(self, fitted, X)
        lost = ~np.isfinite(said.reshape(len(said), -1)).all(axis=1)
        if lost.any():
            raise DataError(
                got=f"a prediction that is no number, of row {int(np.flatnonzero(lost)[0])}",
                wanted="finite predictions of new rows",
            )
        return said

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


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer)


def _radius(scores: Array, coverage: float) -> float:
    """Return the k-th smallest score."""
    k = smallest_rank(len(scores), coverage)
    return float(np.partition(scores, k - 1)[k - 1])
