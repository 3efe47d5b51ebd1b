"""AdaBoost for amounts (AdaBoost.R2), certified.

Learners are fitted one after another; rows that the last one predicted badly weigh more for the next. The prediction
is the median of the learners', weighted by their strengths.
Reference: Drucker, Improving regressors using boosting techniques (ICML 1997).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import has_fit_parameter

from certifit.checkers.ensemble.boosted_median import certify_regressor
from certifit.checkers.ensemble.validation_rows import hold_out
from certifit.checkers.fitted import AuditTuning
from certifit.core import Attributes, Objective, Setting, certified
from certifit.core.settings import Settings
from certifit.ensemble.adaboost.samme import BestStage, BoostedStage, fit_learner, least_weights, make_learner, padded
from certifit.ensemble.adaboost.weight_boosting import WeightBoosting
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.tree.decision_tree import DecisionTreeRegressor


class AdaBoostRegressor(RegressorMixin, WeightBoosting):
    """An AdaBoost regressor (AdaBoost.R2).

    Parameters
    ----------
    estimator : regressor or None
        The learner. None: a decision tree of depth 3.
    n_estimators : int
        Most stages; fewer where one makes no error, or has a mean loss of one half or more.
    learning_rate : float
        Factor on every strength.
    loss : 'linear', 'square' or 'exponential'
        How distances from the target, as shares of the largest, become losses.
    random_state : int, RandomState or None
        Seeds of learners that take one, of rows drawn, and of the rows held out.
    resample : bool or None
        True: every learner is fitted to as many rows drawn by their weights, with replacement. False: it is fitted
        to all rows with their weights, so that nothing is drawn. None: weights where its `fit` takes sample_weight.
    n_iter_no_change : int or None
        With a number, some rows are held out, and boosting ends when their mean absolute error has not fallen for so
        many stages; the stages up to the least one are kept.
    validation_fraction : float
        The share of rows held out, if any.

    Attributes
    ----------
    estimator_ : the learner
    estimators_ : list of the fitted learners
    estimator_weights_ : (n_estimators,) strengths of the stages, 0 after the last
    estimator_errors_ : (n_estimators,) mean losses of the stages, 1 after the last
    feature_importances_ : (d,)
    members_ : list, as `estimators_`
    validation_seed_ : int, the seed of the rows held out, where there are any
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import AdaBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AdaBoostRegressor(n_estimators=10).fit(X, y)
    >>> model.score(X, y) > 0.5, model.certificate_.holds
    (True, True)
    """

    target = "numbers"
    settings: ClassVar[Settings] = {
        **WeightBoosting.settings,
        "loss": Setting(choices=("linear", "square", "exponential")),
        "resample": Setting(bool, none=True),
    }
    differences: ClassVar[dict[str, str]] = {
        "fit": "Learners that take sample_weight are fitted to weights, without chance; resample=True draws rows.",
        "estimators_": "The trees are certifit's.",
    }

    validation_seed_: int

    def __init__(
        self, estimator=None, *, n_estimators=50, learning_rate=1.0, loss="linear", random_state=None, resample=None,
        n_iter_no_change=None, validation_fraction=0.1,
    ):  # fmt: skip
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.loss = loss
        self.random_state = random_state
        self.resample = resample
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction

    def _default_learner(self) -> DecisionTreeRegressor:
        return DecisionTreeRegressor(max_depth=3)

    # Fitting ------------------------------------------------------------------------------------------------

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        data = rows.load()
        found: dict[str, Any] = {}
        held_out: ArrayRows | None = None
        if self.n_iter_no_change is not None:
            found["validation_seed_"] = self._seed()
            whole = data
            data, out = hold_out(whole, float(self.validation_fraction), found["validation_seed_"])
            held_out = whole.take(np.flatnonzero(out & (whole.w > 0)))
            if not (held_out.n_rows and data.w.any()):
                raise DataError(
                    got=f"{held_out.n_rows} rows for validation of {rows.n_rows}", wanted="rows in both parts",
                    fix="Change validation_fraction or random_state, or set n_iter_no_change=None.",
                )  # fmt: skip
        stages = self._boost(data, held_out)
        found |= {
            "members_": [stage.member for stage in stages],
            "estimator_weights_": padded([stage.strength for stage in stages], self.n_estimators, 0.0),
            "estimator_errors_": padded([stage.error for stage in stages], self.n_estimators, 1.0),
        }
        claimed = Bunch(**self.get_params(deep=False), **found, n_features_in_=rows.n_features)
        return {**found, "certificate_": certified(certify_regressor, claimed, data, AuditTuning().foreign)}

    def _boost(self, data: ArrayRows, held_out: ArrayRows | None) -> list[BoostedStage]:
        """All stages, or those up to the least error on the rows held out."""
        kept = data.w > 0
        X, y, w = data.X if kept.all() else data.X[kept], np.asarray(data.y)[kept], data.w[kept]
        found: list[BoostedStage] = []
        best = None if held_out is None else BestStage(int(self.n_iter_no_change))
        told: list[Array] = []
        for stage in self._stages(X, y, w / w.sum()):
            found.append(stage)
            if best is not None and held_out is not None:
                told.append(np.asarray(stage.member.predict(held_out.X)))
                median = _weighted_median(np.stack(told, axis=1), np.array([s.strength for s in found]))
                if best.enough(float(np.average(np.abs(median - held_out.y), weights=held_out.w))):
                    break
        return found if best is None else found[: best.kept]

    def _stages(self, X: Any, y: Array, w: Array) -> Iterator[BoostedStage]:
        """Give one stage after another."""
        learner = self._default_learner() if self.estimator is None else self.estimator
        draws = self._draws(learner)
        random_state = check_random_state(self.random_state)
        rate = float(self.learning_rate)
        for m in range(self.n_estimators):
            w = least_weights(w)
            member = make_learner(learner, random_state)
            if draws:
                drawn = random_state.choice(len(y), size=len(y), replace=True, p=w / w.sum())
                member = fit_learner(member, X[drawn], y[drawn])
            else:
                member = fit_learner(member, X, y, sample_weight=w)
            away = np.abs(np.asarray(member.predict(X)) - y)
            largest = float(away.max())
            share = away / largest if largest > 0 else away
            loss = {"linear": share, "square": share**2, "exponential": 1 - np.exp(-share)}[self.loss]
            error = float((w * loss).sum())
            if error >= 0.5:
                # A first learner this poor is all there is; as scikit-learn, it is kept with strength 0.
                if m == 0:
                    yield BoostedStage(member, 1.0, 0.0)
                return
            if error <= 0:
                yield BoostedStage(member, 0.0, 1.0)
                return
            yield BoostedStage(member, error, rate * math.log((1 - error) / error))
            w = w * (error / (1 - error)) ** (rate * (1 - loss))
            w = w / w.sum()

    def _draws(self, learner: Any) -> bool:
        """Whether learners are fitted to rows drawn, not to weights."""
        takes = has_fit_parameter(learner, "sample_weight")
        if self.resample is None:
            return not takes
        if not self.resample and not takes:
            raise DataError(
                got=f"resample=False with a {type(learner).__name__}, which doesn't support sample_weight",
                wanted="a regressor whose fit takes sample_weight",
                fix="resample=True draws rows by their weights instead.",
            )
        return bool(self.resample)

    # What a fitted ensemble says ------------------------------------------------------------------------------

    def _median_of(self, stages: int, block: Block) -> Array:
        told = np.stack([np.asarray(member.predict(block.X)) for member in self.members_[:stages]], axis=1)
        return _weighted_median(told, self.estimator_weights_[:stages])

    def predict(self, X: Any) -> Array:
        """The median of the learners' predictions, weighted by their strengths (n,)."""
        return self._rows(X).map(partial(self._median_of, len(self.members_)))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after every stage."""
        rows = self._rows(X)
        told = np.stack([rows.map(partial(_predictions, member)) for member in self.members_], axis=1)
        for m in range(1, len(self.members_) + 1):
            yield _weighted_median(told[:, :m], self.estimator_weights_[:m])

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """R² after every stage."""
        return (float(r2_score(y, told, sample_weight=sample_weight)) for told in self.staged_predict(X))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean absolute error on these rows, but for those that the fit would hold out of them."""
        rows: Rows = self._rows(X, y, sample_weight, "numbers")
        if self.n_iter_no_change is not None:
            rows, _ = hold_out(rows, float(self.validation_fraction), self.validation_seed_)
        weight, loss = rows.sum(self._losses)
        return Objective(float(loss / weight), float(loss / weight), 0.0)

    def _losses(self, block: Block) -> Array:
        away = np.abs(self._median_of(len(self.members_), block) - np.asarray(block.y))
        return np.array([block.w.sum(), block.w @ away])


def _predictions(member: Any, block: Block) -> Array:
    return np.asarray(member.predict(block.X))


def _weighted_median(told: Array, strengths: Array) -> Array:
    """The lowest prediction of each row (n, stages) at which half of the strength is reached (n,)."""
    order = np.argsort(told, axis=1, kind="stable")
    reached = np.cumsum(strengths[order], axis=1)
    at = (reached >= 0.5 * reached[:, -1:]).argmax(axis=1)
    rows = np.arange(len(told))
    return told[rows, order[rows, at]]
