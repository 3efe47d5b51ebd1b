"""How well a table model predicts rows it has not seen: stratified k-fold cross-validation beside a baseline.

Everything is learnt again in each fold, the encoding of the columns included, so nothing leaks from the test rows.
The baseline knows the class frequencies of the training rows and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
)

from certifit.exceptions import CertificateWarning, DataError
from certifit.rows import Array
from certifit.rows.folds import stratified_folds
from certifit.table.labelled_table import LabelledTable
from certifit.table.table_classifier import TableClassifier


class FoldScore(NamedTuple):
    """Mean over the folds ± its standard error, for the model and for the baseline."""

    name: str
    mean: float
    error: float
    baseline: float
    baseline_error: float


class ClassScore(NamedTuple):
    """Of the rows predicted as this class, the share that is; of its rows, the share found."""

    label: str
    precision: float
    recall: float
    rows: int


@dataclass(frozen=True)
class CrossValidation:
    folds: int
    scores: tuple[FoldScore, ...]
    classes: tuple[ClassScore, ...]
    confusion: Array  # (k, k) rows (or weights) by true and predicted class
    notes: tuple[str, ...]  # what the reader should know


def cross_validate(
    model: TableClassifier,
    data: LabelledTable,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> CrossValidation | str:
    """Cross-validate `model`'s settings on labelled rows; a string says why where it cannot be done.

    `progress(done, of)` is called before the first fold and after each.
    """
    classes, code, counts = np.unique(data.y, return_inverse=True, return_counts=True)
    rarest = int(counts.argmin())
    smallest = int(counts[rarest])
    if smallest < 2:
        return (
            f"not cross-validated: class {str(classes[rarest])!r} has a single row; "
            "merge it with another class or leave it out"
        )
    notes = []
    if smallest < folds:
        notes.append(f"{smallest} folds instead of {folds}: class {str(classes[rarest])!r} has {smallest} rows")
        folds = smallest
    proba = np.zeros((len(data.y), len(classes)))
    prior = np.zeros_like(proba)
    fold_of = np.empty(len(data.y), dtype=int)
    unproved = 0
    tell = progress or (lambda *_: None)
    tell(0, folds)
    splits = stratified_folds(code, folds, seed)
    for fold, (train, test) in enumerate(splits):
        w = None if data.w is None else data.w[train]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CertificateWarning)
                warnings.filterwarnings("ignore", message="TableClassifier: ")  # a test fold may hold rare categories
                fitted = clone(model).fit(data.table.take(train), data.y[train], w)
                proba[test] = fitted.predict_proba(data.table.take(test))
        except DataError as error:
            return f"not cross-validated: fold {fold + 1} of {folds} cannot be fitted. {error}"
        unproved += not fitted.certificate_.holds
        share = np.bincount(code[train], w)
        prior[test] = share / share.sum()
        fold_of[test] = fold
        tell(fold + 1, folds)
    if unproved:
        notes.append(f"in {unproved} of {folds} folds the certificate of the fit does not hold")
    every, predicted = np.arange(len(classes)), proba.argmax(axis=1)
    precision, recall, _, _ = precision_recall_fscore_support(
        code, predicted, labels=every, sample_weight=data.w, zero_division=0.0
    )
    return CrossValidation(
        folds,
        tuple(_score(name, f, code, data.w, (proba, prior), fold_of) for name, f in _METRICS.items()),
        tuple(
            ClassScore(str(c), float(p), float(r), int(n))
            for c, p, r, n in zip(classes, precision, recall, counts, strict=True)
        ),
        confusion_matrix(code, predicted, labels=every, sample_weight=data.w),
        tuple(notes),
    )


def _accuracy(code: Array, proba: Array, w: Array | None) -> float:
    return accuracy_score(code, proba.argmax(axis=1), sample_weight=w)


def _balanced_accuracy(code: Array, proba: Array, w: Array | None) -> float:
    return balanced_accuracy_score(code, proba.argmax(axis=1), sample_weight=w)


def _log_loss(code: Array, proba: Array, w: Array | None) -> float:
    return log_loss(code, proba, labels=np.arange(proba.shape[1]), sample_weight=w)


_METRICS = {"accuracy": _accuracy, "balanced accuracy": _balanced_accuracy, "log loss": _log_loss}


def _score(
    name: str, metric: Any, code: Array, w: Array | None, predictions: tuple[Array, Array], fold_of: Array
) -> FoldScore:
    """Mean and standard error over the folds, for the model's and the baseline's probabilities."""
    out = []
    tests = [fold_of == fold for fold in range(fold_of.max() + 1)]
    for proba in predictions:
        values = np.array([metric(code[t], proba[t], None if w is None else w[t]) for t in tests])
        out += [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]
    return FoldScore(name, *out)
