"""What classifiers made of a network share: classes as targets, and answers from scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target

from certifit.checkers.neural_network.adapter import LABEL_SMOOTHING
from certifit.core import Attributes, Objective
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.neural_network.multilayer_perceptron import MultilayerPerceptron, PerceptronTargets, target_width
from certifit.neural_network.output_losses import (
    OUTPUT_LOSSES,
    LogisticCrossEntropy,
    OutputLoss,
    SoftmaxCrossEntropy,
)
from certifit.rows import Array, Rows, apply_class_weight, encode_labels


def learns_in_minibatches(model: MultilayerPerceptron) -> bool:
    if model.solver == "lbfgs":
        raise AttributeError("partial_fit is only available for solvers that learn in minibatches: sgd, adam, adamw")
    return True


class NetworkClassifier(ClassifierMixin, MultilayerPerceptron):
    """A network whose scores are those of classes, or of labels of which a row has any number."""

    target = "classes"
    settings: ClassVar[Settings] = {**MultilayerPerceptron.settings, "label_smoothing": LABEL_SMOOTHING}
    class_weight: Any
    label_smoothing: float
    classes_: Array
    multilabel_: bool

    @available_if(learns_in_minibatches)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on for one epoch with these rows; the certificate is then about them.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : every class there will be; needed in the first call only
        """
        several = target_width(y)
        if not hasattr(self, "coefs_") and classes is None and several == 1:
            raise DataError(
                got="no classes in the first call to partial_fit",
                wanted="every label there will be",
                fix="classes must be passed on the first call to partial_fit; later calls do not need it.",
            )
        if hasattr(self, "coefs_") and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise DataError(
                got=f"classes={np.unique(classes).tolist()}",
                wanted=f"those of the first call to partial_fit, {self.classes_.tolist()}, or none",
                fix="What is given is not the same as on last call to partial_fit.",
            )
        known = {} if classes is None or several > 1 else {"classes_": np.unique(np.asarray(classes))}
        return self._go_on(X, y, sample_weight, several, known)

    def _targets(self, rows: Rows, several: int, known: Attributes) -> PerceptronTargets:
        if several > 1:
            return self._label_targets(rows, several)
        labels = encode_labels(rows, known.get("classes_"))
        k = len(labels.classes)
        if "coefs_" in known and self.warm_start and not labels.weight.all():
            present = labels.classes[labels.weight > 0]
            raise DataError(
                got=f"y with the classes {present.tolist()}",
                wanted=f"those of the earlier fit, {labels.classes.tolist()}",
                fix="warm_start can only be used where `y` has the same classes as in the previous call to fit.",
            )
        attributes = {"classes_": labels.classes, "multilabel_": False}
        output, outputs = ("softmax", k) if k > 2 else ("logistic", 1)
        return PerceptronTargets(apply_class_weight(labels, self.class_weight), attributes, output, outputs)

    def _label_targets(self, rows: Rows, several: int) -> PerceptronTargets:
        kinds = {type_of_target(block.y) for block in rows}
        if not kinds <= {"multilabel-indicator"}:
            raise DataError(
                got=f"y with {several} columns that are not all 0 and 1",
                wanted="labels that a row has (1) or not (0)",
                fix=f"Unknown label type: {', '.join(sorted(kinds))}. Fit a classifier for each column.",
            )  # fmt: skip
        if self.class_weight is not None:
            raise DataError(got="class_weight for rows of several labels", wanted="sample_weight, or one label a row")
        return PerceptronTargets(rows, {"classes_": np.arange(several), "multilabel_": True}, "logistic", several)

    def _table(self, targets: PerceptronTargets, y: Array) -> Array:
        if targets.output == "softmax":
            found = np.zeros((len(y), targets.outputs), np.float32)
            found[np.arange(len(y)), y] = 1
            return found
        return y.reshape(len(y), -1)

    def _loss(self, output: str) -> OutputLoss:
        found = OUTPUT_LOSSES[output]
        assert isinstance(found, (SoftmaxCrossEntropy, LogisticCrossEntropy))
        return replace(found, smoothing=float(self.label_smoothing))

    def _strata(self, loss: OutputLoss, Y: Array) -> Array | None:
        if isinstance(loss, SoftmaxCrossEntropy):
            return Y.argmax(axis=1)
        return Y[:, 0] if Y.shape[1] == 1 else None

    def _validation_score(self, loss: OutputLoss, scores: Array, Y: Array, w: Array) -> float:
        """Accuracy: the share of rows whose class, or whose every label, is right."""
        if isinstance(loss, SoftmaxCrossEntropy):
            right = scores.argmax(axis=1) == Y.argmax(axis=1)
        else:
            right = ((scores > 0) == (Y > 0.5)).all(axis=1)
        return float(w @ right / w.sum())

    def _output(self) -> str:
        return "logistic" if self.multilabel_ or len(self.classes_) <= 2 else "softmax"

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class (n,), or of each label (n, k); scores of classes about their mean (n, k).

        A number added to all scores of a row changes no probability, so that only their differences are known.
        """
        scores = self._scores(X)
        if self.multilabel_:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores - scores.mean(axis=1, keepdims=True)

    def predict(self, X: Any) -> Array:
        """The most probable class of each row; of rows with several labels, those that are more likely than not."""
        scores = self._scores(X)
        if self.multilabel_:
            return (scores > 0).astype(int)
        return self.classes_[scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, or of each label, (n, k)."""
        scores = self._scores(X)
        if self.multilabel_:
            return expit(scores)
        return softmax(scores, axis=1) if scores.shape[1] > 1 else np.hstack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> Array:
        """Log-probability of each class, or of each label, (n, k)."""
        scores = self._scores(X)
        if self.multilabel_:
            return log_expit(scores)
        if scores.shape[1] > 1:
            return log_softmax(scores, axis=1)
        return np.hstack([log_expit(-scores), log_expit(scores)])

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean cross-entropy of these rows (data term) plus the penalty."""
        several = target_width(y)
        rows = self._rows(X, y, sample_weight, target="classes", targets=several)
        return self._objective_of(self._targets(rows, several, {"classes_": self.classes_}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
