"""SAMME: the stages of AdaBoost for any number of classes, by stumps or by any classifier that takes weights.

Reference: Zhu, Zou, Rosset & Hastie, Multi-class AdaBoost, Statistics and Its Interface 2 (2009); for two classes it
is the AdaBoost of Freund & Schapire (1997), and forward stagewise additive modelling with the exponential loss
(Friedman, Hastie & Tibshirani 2000).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from certifit.core.config import config
from certifit.ensemble.adaboost.stump_loops import leaf_class_weights, reweight, weight_missed
from certifit.ensemble.adaboost.stumps import Stumps, StumpSearch, StumpSplit, as_stumps
from certifit.exceptions import CertificateWarning, DataError
from certifit.rows import Array
from certifit.rows.kept_passes import kept


@dataclass(frozen=True)
class SammeRules:
    """How stages are weighed, and how many there are."""

    classes: int
    learning_rate: float
    stages: int

    def strength(self, error: float) -> float:
        """α of a learner that errs on this share of the weight."""
        if error <= 0:
            return 1.0
        return self.learning_rate * (math.log((1 - error) / error) + math.log(self.classes - 1))

    def is_guess(self, error: float, n: int) -> bool:
        """Whether a learner is no better than guessing by more than rounding."""
        # So much can be left of an error of exactly one half, when n weights are added.
        rounding = 8 * (1 + math.log2(n)) * np.finfo(float).eps
        return bool(self.classes > 1 and error >= 1 - 1 / self.classes - rounding)

    def factors(self, strength: float) -> Array:
        """What the weights of rows told right and wrong are multiplied by, before they are divided by their sum."""
        k = self.classes
        if strength > k * math.log(np.finfo(float).max):
            raise DataError(
                got=f"learning_rate={self.learning_rate:g}, by which rows told right lose all of their weight",
                wanted="a smaller one",
                fix="The weights of AdaBoost are those of learning_rate=1 or less.",
            )
        return np.array([math.exp(-strength * (k - 1) / k), math.exp(strength / k)])


class BoostedStage(NamedTuple):
    """A stage as it was fitted."""

    member: Any  # (split, leaf weights, leaf rows) of a stump, or a fitted estimator
    error: float
    strength: float


def boost_stumps(search: StumpSearch, labels: Array, w: Array, rules: SammeRules) -> Iterator[BoostedStage]:
    """Give one stage after another, until one makes no error or is no better than guessing."""
    w = w / w.sum()
    for _ in range(rules.stages):
        split = kept("stump", partial(search.best, w))
        weight, count = leaf_class_weights(split.left, labels, w, rules.classes)
        answers = weight.argmax(axis=1)
        error = weight_missed(split.left, labels, w, answers)
        if rules.is_guess(error, len(w)):
            return
        strength = rules.strength(error)
        # What goes on is only the split; its mark of every row would add up to a table.
        member = (split._replace(left=np.zeros(0, bool)), weight, count)
        yield BoostedStage(member, error, strength)
        if error <= 0:
            return
        reweight(split.left, labels, w, answers, rules.factors(strength))


def boost_estimators(
    learn: Callable[[Array], tuple[Any, Array]], labels: Array, w: Array, rules: SammeRules
) -> Iterator[BoostedStage]:
    """The same for any learner: `learn` gives a fitted estimator and the class numbers that it tells the rows."""
    w = w / w.sum()
    for _ in range(rules.stages):
        w = least_weights(w)
        member, told = learn(w)
        wrong = told != labels
        error = float(w[wrong].sum() / w.sum())
        if rules.is_guess(error, len(w)):
            return
        strength = rules.strength(error)
        yield BoostedStage(member, error, strength)
        if error <= 0:
            return
        right, missed = rules.factors(strength)
        w = w * np.where(wrong, missed, right)
        w /= w.sum()


def fit_learner(member: Any, *data: Any, **weights: Any) -> Any:
    """Fit a learner without a proof or a warning of its own: the whole is proved from its answers."""
    with warnings.catch_warnings(), config(certify="audit"):
        warnings.simplefilter("ignore", CertificateWarning)
        return kept(("learner", type(member).__name__), partial(member.fit, *data, **weights))


def least_weights(w: Array) -> Array:
    """Weights as learners are handed them: none so small that its square vanishes, as in scikit-learn."""
    return np.maximum(w, np.finfo(float).eps)


def collect(stages: list[BoostedStage]) -> Stumps | list[Any]:
    """The members of an ensemble: stumps in one record, or a list of estimators."""
    if stages and isinstance(stages[0].member, tuple) and isinstance(stages[0].member[0], StumpSplit):
        return as_stumps([stage.member for stage in stages])
    return [stage.member for stage in stages]


def make_learner(estimator: Any, random_state: np.random.RandomState) -> Any:
    """An unfitted copy with a seed of its own wherever it takes one."""
    fresh = clone(estimator)
    seeds = {}
    for name in sorted(fresh.get_params(deep=True)):
        if name == "random_state" or name.endswith("__random_state"):
            seeds[name] = random_state.randint(np.iinfo(np.int32).max)
    return fresh.set_params(**seeds) if seeds else fresh


class BestStage:
    """When to stop: the validation loss of every stage, and after how many without a gain."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.losses: list[float] = []

    def enough(self, loss: float) -> bool:
        """Note the loss after one more stage; true where the last stages gained nothing."""
        self.losses.append(loss)
        return len(self.losses) - self.kept >= self.patience

    @property
    def kept(self) -> int:
        """How many stages have the least loss."""
        return int(np.argmin(self.losses)) + 1 if self.losses else 0


def padded(values: list[float], stages: int, rest: float) -> Array:
    """One number for each stage asked for, as scikit-learn has it."""
    return np.array(values + [rest] * (stages - len(values)))


def no_better_than_guessing(learner: str) -> DataError:
    return DataError(
        got=f"a first {learner} that is worse than random on these rows",
        wanted="one that errs less than guessing does, so the ensemble can not be fit",
        fix="Give another estimator, such as a deeper tree.",
    )
