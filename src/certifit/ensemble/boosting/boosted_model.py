"""What fitted boostings say, whatever grew their trees: scores, probabilities, amounts, after all stages or each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certifit.core import Attributes, Estimator, Objective
from certifit.ensemble.boosting.boosted_trees import BoostedTrees
from certifit.exceptions import DataError
from certifit.losses.scores.score_losses import ScoreLoss
from certifit.rows import Array, Block, Rows, apply_class_weight, encode_labels

LOG_LINK = ("poisson", "gamma")  # losses of scores that are logarithms of means


def refuse_negative_targets(loss: str, rows: Rows) -> None:
    """Refuse targets that a loss with a log link cannot have."""
    if loss not in LOG_LINK:
        return
    y, w = rows.map(_float_targets), rows.map(_weights)
    y = y[w > 0]
    if (y.min() <= 0) if loss == "gamma" else (y.min() < 0 or y.sum() <= 0):
        why = " (loss='gamma' requires strictly positive y)" if loss == "gamma" else ""
        wanted = "targets above 0" if loss == "gamma" else "targets of at least 0, some of them above"
        raise DataError(got=f"targets from {y.min():g} to {y.max():g}{why}", wanted=f"{wanted} for loss={loss!r}")


def refuse_several_exponential(loss: str, classes: int) -> None:
    """Refuse more than two classes for the exponential loss."""
    if loss == "exponential" and classes > 2:
        raise DataError(
            got=f"loss='exponential' with {classes} classes", wanted="two classes",
            fix="Please use loss='log_loss' instead.",
        )  # fmt: skip


def _float_targets(block: Block) -> Array:
    return np.asarray(block.y, np.float64)


def _weights(block: Block) -> Array:
    return block.w


class BoostedModel(Estimator):
    """A sum of trees for each score."""

    missing = True

    trees_: BoostedTrees

    def _loss(self, attributes: Attributes) -> ScoreLoss:
        raise NotImplementedError

    def _mean(self, F: Array) -> Array:
        """Predictions of scores (n, k)."""
        raise NotImplementedError

    def _start(self, block: Block) -> Array | float:
        """What trees are added to, beside their baseline."""
        return 0.0

    def _scores(self, block: Block) -> Array:
        return self.trees_.scores(block) + self._start(block)

    def _raw(self, X: Any) -> Array:
        return self._rows(X).map(self._scores)

    def _staged(self, X: Any) -> Iterator[Array]:
        """Scores (n, k) after each stage."""
        rows = self._rows(X)
        blocks, starts = rows.each(self.trees_.staged), rows.each(self._start)
        for s in range(self.trees_.n_trees // self.n_trees_per_iteration_):
            yield np.concatenate([block[:, s] + start for block, start in zip(blocks, starts, strict=True)])

    @property
    def n_trees_per_iteration_(self) -> int:
        check_is_fitted(self)
        return len(self.trees_.baseline)

    def _mean_loss(self, rows: Rows) -> Objective:
        plain = self._loss(vars(self)).plain

        def losses(block: Block) -> Array:
            F = self._scores(block)
            values = plain.value(np.asarray(block.y, np.float64), F if plain.several else F[:, 0])
            return np.array([block.w.sum(), block.w @ values])

        weight, total = rows.sum(losses)
        return Objective(float(total / weight), float(total / weight), 0.0)


class BoostedRegressor(RegressorMixin, BoostedModel):
    """A boosting of amounts."""

    target = "numbers"

    def predict(self, X: Any) -> Array:
        """The predicted amount of each row (n,)."""
        return self._mean(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after each stage."""
        for F in self._staged(X):
            yield self._mean(F)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean loss on these rows."""
        return self._mean_loss(self._rows(X, y, sample_weight, "numbers"))


class BoostedClassifier(ClassifierMixin, BoostedModel):
    """A boosting of classes: one score for two classes, a score for each of several."""

    target = "classes"

    classes_: Array

    def _mean(self, F: Array) -> Array:
        if F.shape[1] > 1:
            return softmax(F, axis=1)
        return np.column_stack([expit(-F[:, 0]), expit(F[:, 0])])

    def decision_function(self, X: Any) -> Array:
        """The score of the second of two classes (n,), or a score for each of several classes (n, k)."""
        F = self._raw(X)
        return F[:, 0] if F.shape[1] == 1 else F

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The same after each stage."""
        for F in self._staged(X):
            yield F[:, 0] if F.shape[1] == 1 else F

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class (n, k)."""
        return self._mean(self._raw(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The same after each stage."""
        for F in self._staged(X):
            yield self._mean(F)

    def predict(self, X: Any) -> Array:
        """The most probable class of each row (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """The same after each stage."""
        for F in self._staged(X):
            yield self.classes_[self._mean(F).argmax(axis=1)]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean loss on these rows, with class weights."""
        rows = self._rows(X, y, sample_weight, "classes")
        labels = encode_labels(rows, self.classes_)
        return self._mean_loss(apply_class_weight(labels, getattr(self, "class_weight", None)))
