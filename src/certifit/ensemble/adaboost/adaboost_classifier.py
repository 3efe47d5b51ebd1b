"""AdaBoost for classes, certified.

Learners are fitted one after another; rows that the last one told wrong weigh more for the next. The ensemble is an
additive model: for two classes f(x) = ½ Σ α h(x) with answers h = ±1 minimises Σ s exp(-y f) stage by stage and
estimates half the log-odds. See `certifit.ensemble.adaboost.samme` for the stages and their references.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit.checkers.ensemble.adaboost_adapter import certify_classifier
from certifit.checkers.ensemble.soft_margin import soft_margin
from certifit.checkers.ensemble.validation_rows import hold_out
from certifit.checkers.fitted import AuditTuning
from certifit.checkers.plain.blocks import dense
from certifit.core import Attributes, Objective, Setting, certified
from certifit.core.settings import Settings
from certifit.ensemble.adaboost.lpboost import corrected_stumps
from certifit.ensemble.adaboost.samme import (
    BestStage,
    BoostedStage,
    SammeRules,
    boost_estimators,
    boost_stumps,
    collect,
    fit_learner,
    make_learner,
    no_better_than_guessing,
    padded,
)
from certifit.ensemble.adaboost.stumps import (
    BinnedStumps,
    SortedStumps,
    Stumps,
    StumpSearch,
    StumpTuning,
    is_stump_learner,
)
from certifit.ensemble.adaboost.weight_boosting import WeightBoosting
from certifit.exceptions import DataError, NotAvailableError
from certifit.rows import Array, ArrayRows, Block, Rows, encode_labels
from certifit.tree.decision_tree import DecisionTreeClassifier


class AdaBoostClassifier(ClassifierMixin, WeightBoosting):
    """An AdaBoost classifier (SAMME).

    Parameters
    ----------
    estimator : classifier whose `fit` takes sample_weight, or None
        The learner. None: a decision tree of depth 1 (a stump), found by columns that are sorted once.
    n_estimators : int
        Most stages; fewer where a stage makes no error, or is no better than guessing.
    learning_rate : float
        Factor on every strength α; below 1 stages are more cautious, and more of them are needed.
    random_state : int, RandomState or None
        Seeds of learners that take one, and of the rows held out.
    max_bins : int from 2 to 255, or None
        With a number, stumps are searched among so many bins of each column, which is quicker for many rows. None:
        all thresholds. Columns with no more values than bins have all their thresholds either way.
    n_iter_no_change : int or None
        With a number, some rows are held out, and boosting ends when their mean exponential loss has not fallen for
        so many stages; the stages up to the least loss are kept.
    validation_fraction : float
        The share of rows held out, if any.
    corrective : 'lpboost' or None
        'lpboost': stumps of two classes are finished by linear programming (HiGHS), which makes their soft margin the
        largest of all combinations of stumps, and proves it. Strengths then add up to 1. For some thousand rows.
    nu : float above 0 and up to 1
        With corrective='lpboost', the share of weight that may lie below the margin.

    Attributes
    ----------
    classes_ : (k,)
    n_classes_ : int
    estimator_ : the learner
    estimators_ : list of the fitted learners
    estimator_weights_ : (n_estimators,) strengths α of the stages, 0 after the last
    estimator_errors_ : (n_estimators,) weighted errors of the stages, 1 after the last
    normalisers_ : (stages,) Z of the stages, whose product is the mean exponential loss
    feature_importances_ : (d,)
    members_ : Stumps or list, what `estimators_` are made from
    validation_seed_ : int, the seed of the rows held out, where there are any
    row_distribution_ : (rows of positive weight,) with corrective='lpboost', the distribution that proves the margin
    certificate_ : Certificate

    `decision_function` is scikit-learn's, the weighted mean of the answers. `log_odds` is the additive logistic
    model, and `predict_proba` follows from it, so that it agrees with `predict`; scikit-learn's probabilities are
    those of the weighted mean, which are all near one half.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certifit import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=20).fit(X, y)
    >>> round(model.score(X, y), 3), model.certificate_.holds
    (0.989, True)
    """

    target = "classes"
    settings: ClassVar[Settings] = {
        **WeightBoosting.settings,
        "max_bins": Setting(int, least=2, most=255, none=True),
        "corrective": Setting(choices=("lpboost",), none=True),
        "nu": Setting(float, above=0, most=1),
    }
    differences: ClassVar[dict[str, str]] = {
        "predict_proba": "Probabilities are those of the additive logistic model, two classes: 1/(1 + exp(-Σ α h)).",
        "estimators_": "The stumps are certifit's decision trees.",
    }
    _tuning: ClassVar[StumpTuning] = StumpTuning()

    classes_: Array
    validation_seed_: int

    def __init__(
        self, estimator=None, *, n_estimators=50, learning_rate=1.0, random_state=None, max_bins=None,
        n_iter_no_change=None, validation_fraction=0.1, corrective=None, nu=0.1,
    ):  # fmt: skip
        self.corrective = corrective
        self.nu = nu
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.max_bins = max_bins
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction

    def _default_learner(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(max_depth=1)

    # Fitting ------------------------------------------------------------------------------------------------

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows, fewest=1)
        data = labels.rows.load()
        found: dict[str, Any] = {"classes_": labels.classes}
        held_out: ArrayRows | None = None
        if self.n_iter_no_change is not None:
            found["validation_seed_"] = self._seed()
            whole = data
            data, out = hold_out(whole, float(self.validation_fraction), found["validation_seed_"])
            held_out = whole.take(np.flatnonzero(out & (whole.w > 0)))
            self._check_parts(data, held_out, labels.classes)
        stages = self._boost(data, held_out, labels.classes)
        found |= {
            "members_": collect(stages),
            "estimator_weights_": padded([stage.strength for stage in stages], self.n_estimators, 0.0),
            "estimator_errors_": padded([stage.error for stage in stages], self.n_estimators, 1.0),
        }
        if self.corrective is not None:
            found |= self._corrected(data, found["members_"], labels.classes)
        claimed = Bunch(**self.get_params(deep=False), **found, n_features_in_=rows.n_features)
        return {**found, "certificate_": certified(certify_classifier, claimed, data, AuditTuning().foreign)}

    def _corrected(self, data: ArrayRows, members: Any, classes: Array) -> Attributes:
        """The attributes that LPBoost changes."""
        if len(classes) != 2 or not isinstance(members, Stumps):
            raise DataError(
                got=f"corrective='lpboost' with {len(classes)} classes and estimator={self.estimator!r}",
                wanted="two classes and stumps (estimator=None)",
            )
        kept = data.w > 0
        s, labels = data.w[kept] / data.w[kept].sum(), np.asarray(data.y)[kept].astype(np.int32)
        best = corrected_stumps(members, dense(data.X[kept]), labels, s, float(self.nu))
        return {
            "members_": best.members,
            "estimator_weights_": best.weights,
            "estimator_errors_": best.errors,
            "row_distribution_": best.distribution,
        }

    def _check_parts(self, kept: ArrayRows, held_out: ArrayRows, classes: Array) -> None:
        seen = np.unique(np.asarray(kept.y)[kept.w > 0])
        if not held_out.n_rows or len(seen) < len(classes):
            raise DataError(
                got=f"{held_out.n_rows} rows for validation and {len(seen)} of {len(classes)} classes in the others",
                wanted="rows in both parts, and every class among those that are fitted",
                fix="Change validation_fraction or random_state, or set n_iter_no_change=None.",
            )

    def _boost(self, data: ArrayRows, held_out: ArrayRows | None, classes: Array) -> list[BoostedStage]:
        """All stages, or those up to the least loss on the rows held out."""
        kept = data.w > 0
        X = data.X if kept.all() else data.X[kept]
        labels, w = np.asarray(data.y)[kept].astype(np.int32), data.w[kept]
        rules = SammeRules(len(classes), float(self.learning_rate), self.n_estimators)
        if is_stump_learner(self.estimator):
            stages = boost_stumps(self._search(X, labels, len(classes), w), labels, w, rules)
        else:
            learn = partial(self._learn, X, labels, classes, check_random_state(self.random_state))
            stages = boost_estimators(self._checked(learn), labels, w, rules)
        found: list[BoostedStage] = []
        best = None if held_out is None else BestStage(int(self.n_iter_no_change))
        margins = np.zeros(0 if held_out is None else held_out.n_rows)
        for stage in stages:
            found.append(stage)
            if best is not None and held_out is not None:
                margins = margins + self._margin_steps(stage, held_out, classes)
                if best.enough(float(np.average(np.exp(-margins), weights=held_out.w))):
                    break
        if not found:
            learner = self._default_learner() if self.estimator is None else self.estimator
            raise no_better_than_guessing(type(learner).__name__)
        return found if best is None else found[: best.kept]

    def _search(self, X: Any, labels: Array, classes: int, w: Array) -> StumpSearch:
        table = X if isinstance(X, np.ndarray) else dense(X)
        if self.max_bins is None:
            return SortedStumps(table, labels, classes, self._tuning)
        return BinnedStumps(table, labels, classes, w, int(self.max_bins), self._tuning)

    def _checked(self, learn: Any) -> Any:
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise DataError(
                got=f"a {type(self.estimator).__name__}, which doesn't support sample_weight",
                wanted="a classifier whose fit takes sample_weight",
                fix="Boosting weights rows: take another learner, or leave estimator=None for stumps.",
            )
        return learn

    def _learn(
        self, X: Any, labels: Array, classes: Array, random_state: np.random.RandomState, w: Array
    ) -> tuple[Any, Array]:
        """A learner fitted to rows with these weights, and the class numbers that it tells them."""
        fresh = make_learner(self.estimator, random_state)
        member = fit_learner(fresh, X, classes[labels], sample_weight=w)
        return member, _class_numbers(member.predict(X), classes)

    def _margin_steps(self, stage: BoostedStage, rows: ArrayRows, classes: Array) -> Array:
        """What one stage adds to the margins of rows (n,)."""
        k, (member,) = len(classes), [collect([stage])]
        told = _told(member, classes, Block(rows.X, rows.y, rows.w, 0), 0)
        return stage.strength * np.where(told == rows.y, (k - 1) / k, -1 / k)

    # What a fitted ensemble says ------------------------------------------------------------------------------

    @property
    def n_classes_(self) -> int:
        check_is_fitted(self)
        return len(self.classes_)

    @property
    def normalisers_(self) -> Array:
        """Z of every stage (stages,): by how much it lowered the mean exponential loss."""
        check_is_fitted(self)
        if self.corrective is not None:
            raise NotAvailableError(got="corrective='lpboost'", wanted="stages, which linear programming has none of")
        k, e, a = len(self.classes_), self.estimator_errors_[: len(self.members_)], self._strengths
        return (1 - e) * np.exp(-a * (k - 1) / k) + e * np.exp(a / k)

    def _member(self, m: int) -> Any:
        if isinstance(self.members_, Stumps):
            return self.members_.classifier(m, self.classes_, self.n_features_in_)
        return self.members_[m]

    def _votes_of(self, first: int, last: int, block: Block) -> Array:
        """The strengths of the stages first … last - 1 that answer each class (n, k)."""
        strengths = self._strengths[first:last]
        if isinstance(self.members_, Stumps):
            return self.members_.part(slice(first, last)).votes(strengths, block)
        votes = np.zeros((len(block.w), len(self.classes_)))
        for m in range(first, last):
            told = _told(self.members_, self.classes_, block, m)
            votes[np.arange(len(told)), told] += self.estimator_weights_[m]
        return votes

    def _votes(self, X: Any) -> Array:
        rows = self._rows(X)
        return rows.map(partial(self._votes_of, 0, len(self.members_)))

    def _staged_votes(self, X: Any) -> Iterator[Array]:
        rows = self._rows(X)
        votes = np.zeros((rows.n_rows, len(self.classes_)))
        for m in range(len(self.members_)):
            votes = votes + rows.map(partial(self._votes_of, m, m + 1))
            yield votes

    def log_odds(self, X: Any) -> Array:
        """The additive logistic model.

        For two classes Σ α h(x), h = ±1, which estimates the log-odds of the second class and is twice the f of the
        exponential loss (n,). For more, the logarithms of `predict_proba` less their mean over the classes (n, k).
        """
        votes = self._votes(X)
        return votes[:, 1] - votes[:, 0] if votes.shape[1] == 2 else votes - votes.mean(axis=1, keepdims=True)

    def decision_function(self, X: Any) -> Array:
        """The weighted mean of the learners' answers, as scikit-learn has it.

        For two classes twice the mean of ±1, between -2 and 2 (n,); for more the mean of answers coded 1 for the
        class told and -1/(k-1) for the others (n, k).
        """
        return self._decision(self._votes(X), float(self._strengths.sum()))

    def _decision(self, votes: Array, size: float) -> Array:
        k = votes.shape[1]
        if k == 1:
            return np.zeros((len(votes), 1))
        if k == 2:
            return 2 * (votes[:, 1] - votes[:, 0]) / size
        return (votes * k / (k - 1) - size / (k - 1)) / size

    def _labels(self, votes: Array) -> Array:
        return self.classes_[votes.argmax(axis=1)]

    def predict(self, X: Any) -> Array:
        """The class with the most votes, by strength (n,)."""
        return self._labels(self._votes(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, k) of the additive logistic model, proportional to exp(votes)."""
        return _softmax(self._votes(X))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`, which do not underflow."""
        votes = self._votes(X)
        votes = votes - votes.max(axis=1, keepdims=True)
        return votes - np.log(np.exp(votes).sum(axis=1, keepdims=True))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after every stage."""
        return (self._labels(votes) for votes in self._staged_votes(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` after every stage."""
        return (_softmax(votes) for votes in self._staged_votes(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after every stage."""
        sizes = np.cumsum(self._strengths)
        return (self._decision(votes, float(size)) for votes, size in zip(self._staged_votes(X), sizes, strict=True))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """The accuracy after every stage."""
        return (float(accuracy_score(y, told, sample_weight=sample_weight)) for told in self.staged_predict(X))

    def margins(self, X: Any, y: Any) -> Array:
        """The normalised margin of every row, between -1 and 1: above 0 where it is told right (n,)."""
        rows = encode_labels(self._rows(X, y, None, "classes"), self.classes_, fewest=1).rows
        return rows.map(self._margins) * 2 / max(float(np.abs(self._strengths).sum()), np.finfo(float).tiny)

    def _margins(self, block: Block) -> Array:
        """Σ α ((k-1)/k where right, -1/k where wrong) (n,)."""
        votes = self._votes_of(0, len(self.members_), block)
        own = votes[np.arange(len(votes)), np.asarray(block.y)]
        return own - float(self._strengths.sum()) / votes.shape[1]

    def _loss(self, block: Block) -> Array:
        return np.array([block.w.sum(), block.w @ np.exp(-self._margins(block))])

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean exponential loss on these rows, but for those that the fit would hold out of them.

        With corrective='lpboost' it is 1 less the soft margin.
        """
        rows = encode_labels(self._rows(X, y, sample_weight, "classes"), self.classes_, fewest=1).rows
        if self.n_iter_no_change is not None:
            rows, _ = hold_out(rows, float(self.validation_fraction), self.validation_seed_)
        if self.corrective is not None:
            margins, w = rows.map(self._margins) * 2, rows.map(_weights)
            value, _ = soft_margin(margins[w > 0], w[w > 0] / w.sum(), float(self.nu))
            return Objective(1 - value, 1 - value, 0.0)
        weight, loss = rows.sum(self._loss)
        return Objective(float(loss / weight), float(loss / weight), 0.0)


def _weights(block: Block) -> Array:
    return block.w


def _class_numbers(told: Any, classes: Array) -> Array:
    """The places of labels among the classes (n,)."""
    return np.searchsorted(classes, np.asarray(told)).astype(np.int32)


def _told(members: Any, classes: Array, block: Block, m: int) -> Array:
    """The class numbers that member m tells the rows of a block."""
    if isinstance(members, Stumps):
        return members.part(slice(m, m + 1)).votes(np.ones(1), block).argmax(axis=1)
    return _class_numbers(members[m].predict(block.X), classes)


def _softmax(votes: Array) -> Array:
    found = np.exp(votes - votes.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)
