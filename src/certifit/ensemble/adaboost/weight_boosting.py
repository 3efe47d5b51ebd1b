"""What AdaBoost for classes and for amounts share: its learners, their strengths, and the stages one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.core import Estimator, Setting
from certifit.core.settings import Settings
from certifit.ensemble.adaboost.stumps import Stumps
from certifit.exceptions import NotAvailableError
from certifit.rows import Array


def _is_learner(value: Any) -> bool:
    return hasattr(value, "fit") and hasattr(value, "predict") and not isinstance(value, type)


class WeightBoosting(Estimator):
    """An ensemble whose learners are fitted one after another to rows weighted anew."""

    sparse = True
    missing = True
    settings: ClassVar[Settings] = {
        "estimator": Setting(none=True, other=_is_learner, other_words="an estimator with fit and predict"),
        "n_estimators": Setting(int, least=1),
        "learning_rate": Setting(float, above=0, below=np.inf),
        "n_iter_no_change": Setting(int, least=1, none=True),
        "validation_fraction": Setting(float, above=0, below=1),
    }

    members_: Any  # Stumps, or a list of fitted estimators
    estimator_weights_: Array
    estimator_errors_: Array

    def _default_learner(self) -> Any:
        raise NotImplementedError

    @property
    def estimator_(self) -> Any:
        """The learner that is fitted again and again."""
        check_is_fitted(self)
        return self._default_learner() if self.estimator is None else self.estimator

    @property
    def estimators_(self) -> list[Any]:
        """The fitted learners; stumps are made into decision trees when they are asked for."""
        check_is_fitted(self)
        return [self._member(m) for m in range(len(self.members_))]

    def _member(self, m: int) -> Any:
        return self.members_[m]

    def __len__(self) -> int:
        return len(self.members_)

    def __getitem__(self, index: int) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    @property
    def _strengths(self) -> Array:
        return self.estimator_weights_[: len(self.members_)]

    @property
    def feature_importances_(self) -> Array:
        """How much the learners' splits on each column lower the impurity, weighted by their strengths (d,)."""
        check_is_fitted(self)
        if isinstance(self.members_, Stumps):
            trees = [self.members_.tree(m, self.n_features_in_) for m in range(len(self.members_))]
            found = [tree.compute_feature_importances() for tree in trees]
        else:
            if not all(hasattr(member, "feature_importances_") for member in self.members_):
                raise NotAvailableError(
                    got=f"learners of type {type(self.members_[0]).__name__} without feature_importances_",
                    wanted="learners that have them, such as trees",
                )
            found = [member.feature_importances_ for member in self.members_]
        return np.average(found, axis=0, weights=self._strengths)

    def _seed(self) -> int:
        """The seed by which rows are held out for validation."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))
