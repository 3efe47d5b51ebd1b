"""How well a table model predicts rows it has not seen: k-fold cross-validation beside a baseline.

Everything is learnt again in each fold, the encoding of the columns included, so nothing leaks from the test rows;
only which columns tell the rows apart is known from all of them. The folds of a classifier are stratified by class.
The baseline knows the class frequencies or the mean of the training rows and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)

from certifit.exceptions import CertificateWarning, DataError, NoSolutionError
from certifit.rows import Array
from certifit.rows.folds import shuffled_folds, stratified_folds
from certifit.table.labelled_table import LabelledTable
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_model import TableModel


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
    notes: tuple[str, ...]  # what the reader should know
    classes: tuple[ClassScore, ...] = ()
    confusion: Array | None = None  # (k, k) rows (or weights) by true and predicted class
    predicted: Array | None = None  # (n,) or (n, k) what is said of each row by the model fitted to the other folds
    probable: bool = True  # whether `predicted` are probabilities of classes, not zeros and ones made from labels
    rows: Array | None = None  # (n,) numbers of these rows where they are part of the table; None: all of it


class HeldOutAnswers(NamedTuple):
    """What the model and the baseline say of each row, learnt from the other folds."""

    model: Array  # (n, k) probabilities, or (n,) means
    baseline: Array
    fold: Array  # (n,) number of each row's fold
    notes: list[str]


def cross_validate(
    model: TableModel,
    data: LabelledTable,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> CrossValidation | str:
    """Cross-validate `model`'s settings on labelled rows; a string says why where it cannot be done.

    `progress(done, of)` is called before the first fold and after each.
    """
    tell = progress or (lambda *_: None)
    if isinstance(model, TableClassifier):
        return _cross_validate_classes(model, data, folds, seed, tell)
    n = len(data.y)
    if n < 4:
        return f"not cross-validated: {n} rows are too few"
    notes = [f"{n // 2} folds instead of {folds}: there are {n} rows"] if 2 * folds > n else []
    splits = shuffled_folds(n, min(folds, n // 2), seed)
    held = _hold_out(model, data, splits, tell)
    if isinstance(held, str):
        return held
    scores = tuple(_score(name, f, data.y, data.w, held) for name, f in _DISTANCES.items())
    return CrossValidation(len(splits), scores, (*notes, *held.notes), predicted=held.model)


def _cross_validate_classes(
    model: TableClassifier, data: LabelledTable, folds: int, seed: int, tell: Callable[[int, int], Any]
) -> CrossValidation | str:
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
    held = _hold_out(model, data, stratified_folds(code, folds, seed), tell)
    return held if isinstance(held, str) else _assess_classes(data, held, folds, notes, classes)


def assess_answers(
    data: LabelledTable, answers: Mapping[str, Array], splits: Sequence[tuple[Array, Array]], notes: Sequence[str]
) -> CrossValidation:
    """The cross-validation of a model whose answers (n, …) for the rows of every split's test are known.

    A classifier without probabilities has no log loss. Rows that no split tests are left out, and `rows` says so.
    """
    tested = np.sort(np.concatenate([test for _, test in splits]))
    rows = tested if len(tested) < len(data.y) else None
    part = replace(
        data, table=data.table.take(tested), y=data.y[tested], w=None if data.w is None else data.w[tested]
    )
    classes, code = np.unique(data.y, return_inverse=True)
    baseline, fold = np.zeros((len(data.y), len(classes))), np.zeros(len(data.y), dtype=np.intp)
    mean = np.zeros(len(data.y))
    for number, (train, test) in enumerate(splits):
        fold[test] = number
        if data.choice.task == "classification":
            baseline[test] = _shares(code, train, data.weights[train], len(test), len(classes))
        else:
            mean[test] = np.average(data.y[train], weights=data.weights[train])
    if data.choice.task == "regression":
        held = HeldOutAnswers(answers["predict"][tested], mean[tested], fold[tested], [])
        scores = tuple(_score(name, f, part.y, part.w, held) for name, f in _DISTANCES.items())
        return CrossValidation(len(splits), scores, tuple(notes), predicted=held.model, rows=rows)
    said = answers.get("predict_proba")
    if said is None or len(classes) != said.shape[1]:
        said = (answers["predict"][:, None] == classes).astype(np.float64)
    held = HeldOutAnswers(said[tested], baseline[tested], fold[tested], [])
    probable = "predict_proba" in answers
    found = _assess_classes(part, held, len(splits), notes, classes, probable)
    return replace(found, predicted=held.model, probable=probable, rows=rows)


def _assess_classes(
    data: LabelledTable,
    held: HeldOutAnswers,
    folds: int,
    notes: Sequence[str],
    classes: Array,
    probable: bool = True,
) -> CrossValidation:
    code = np.searchsorted(classes, data.y)
    counts = np.bincount(code, minlength=len(classes))
    every, predicted = np.arange(len(classes)), held.model.argmax(axis=1)
    precision, recall, _, _ = precision_recall_fscore_support(
        code, predicted, labels=every, sample_weight=data.w, zero_division=0.0
    )
    return CrossValidation(
        folds,
        tuple(_score(name, f, code, data.w, held) for name, f in _METRICS.items() if probable or f is not _log_loss),
        (*notes, *held.notes),
        tuple(
            ClassScore(str(c), float(p), float(r), int(n))
            for c, p, r, n in zip(classes, precision, recall, counts, strict=True)
        ),
        confusion_matrix(code, predicted, labels=every, sample_weight=data.w),
    )


def _hold_out(
    model: TableModel, data: LabelledTable, splits: Sequence[tuple[Array, Array]], tell: Callable[[int, int], Any]
) -> HeldOutAnswers | str:
    """Fit to all folds but one and predict that one, for each; a string says why where a fold cannot be fitted."""
    # Part of the rows may have numbers with gaps: what tells rows apart is judged by all of them.
    table = data.table.drop_columns([c.name for c in data.columns if c.identifies])
    settings = {"keep": [c.name for c in data.columns if c.kind != "left out"]}
    code = np.unique(data.y, return_inverse=True)[1]
    k = int(code.max()) + 1
    said: list[tuple[Array, Array, Array]] = []
    unproved = 0
    tell(0, len(splits))
    for fold, (train, test) in enumerate(splits):
        w = data.weights[train]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CertificateWarning)
                warnings.filterwarnings("ignore", message="Table(Classifier|Regressor): ")  # rare categories, say
                given = None if data.w is None else w
                fitted = clone(model).set_params(**settings).fit(table.take(train), data.y[train], given)
                if isinstance(fitted, TableClassifier):
                    said.append((test, fitted.predict_proba(table.take(test)), _shares(code, train, w, len(test), k)))
                else:
                    mean = np.full(len(test), np.average(data.y[train], weights=w))
                    said.append((test, fitted.predict(table.take(test)), mean))
        except (DataError, NoSolutionError) as error:
            return f"not cross-validated: fold {fold + 1} of {len(splits)} cannot be fitted. {error}"
        unproved += not fitted.certificate_.holds
        tell(fold + 1, len(splits))
    order = np.argsort(np.concatenate([test for test, _, _ in said]))
    fold_of = np.repeat(np.arange(len(said)), [len(test) for test, _, _ in said])
    notes = [f"in {unproved} of {len(splits)} folds the certificate of the fit does not hold"] if unproved else []
    ours, base = (np.concatenate([part[i] for part in said])[order] for i in (1, 2))
    return HeldOutAnswers(ours, base, fold_of[order], notes)


def _shares(code: Array, train: Array, w: Array, rows: int, k: int) -> Array:
    """The class frequencies (rows, k) of the training rows, the same for every row."""
    share = np.bincount(code[train], w, k)
    return np.tile(share / share.sum(), (rows, 1))


def _accuracy(code: Array, proba: Array, sample_weight: Array | None) -> float:
    return accuracy_score(code, proba.argmax(axis=1), sample_weight=sample_weight)


def _balanced_accuracy(code: Array, proba: Array, sample_weight: Array | None) -> float:
    """The mean recall of the classes among these rows; a fold of later rows may lack some."""
    w = np.ones(len(code)) if sample_weight is None else sample_weight
    right, all_rows = (np.bincount(code, part, proba.shape[1]) for part in (w * (proba.argmax(axis=1) == code), w))
    return float((right[all_rows > 0] / all_rows[all_rows > 0]).mean())


def _log_loss(code: Array, proba: Array, sample_weight: Array | None) -> float:
    return log_loss(code, proba, labels=np.arange(proba.shape[1]), sample_weight=sample_weight)


_METRICS = {"accuracy": _accuracy, "balanced accuracy": _balanced_accuracy, "log loss": _log_loss}


_DISTANCES = {
    "R²": r2_score,
    "mean absolute error": mean_absolute_error,
    "root mean squared error": root_mean_squared_error,
}


def _score(name: str, metric: Any, truth: Array, w: Array | None, held: HeldOutAnswers) -> FoldScore:
    """Mean and standard error over the folds, for the model and the baseline."""
    out = []
    tests = [held.fold == fold for fold in range(held.fold.max() + 1)]
    for said in (held.model, held.baseline):
        values = np.array([_measure(metric, truth[t], said[t], None if w is None else w[t]) for t in tests])
        out += [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]
    return FoldScore(name, *out)


def _measure(metric: Any, truth: Array, said: Array, w: Array | None) -> float:
    return float(metric(truth, said, sample_weight=w))
