"""Class labels of any type as codes 0 … k-1, and class weights. One pass over the rows finds the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows.block import Array, Block
from certifit.rows.checks import check_classes
from certifit.rows.rows import ArrayRows, Rows
from certifit.rows.sums import tree_sum


@dataclass(frozen=True)
class _ClassWeights:
    """The distinct labels of some rows, and the total weight of each."""

    labels: Array  # (k,) sorted
    weight: Array  # (k,) Σ w

    def __add__(self, other: _ClassWeights) -> _ClassWeights:
        if np.array_equal(self.labels, other.labels):  # most blocks have rows of every class
            return _ClassWeights(self.labels, self.weight + other.weight)
        labels, code = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        return _ClassWeights(labels, np.bincount(code, np.concatenate([self.weight, other.weight]), len(labels)))


def _count_classes(block: Block) -> _ClassWeights:
    assert block.y is not None
    span = _span(block.y)
    if span is not None:
        places = block.y.astype(np.int64) - span[0]
        there = np.flatnonzero(np.bincount(places, minlength=1))
        return _ClassWeights((there + span[0]).astype(block.y.dtype), np.bincount(places, block.w)[there])
    labels, code = np.unique(block.y, return_inverse=True)
    return _ClassWeights(labels, np.bincount(code, block.w, len(labels)))


def _span(y: Array, few: int = 1000) -> tuple[int, int] | None:
    """The least and the largest of labels that are whole numbers and lie close together: counting beats sorting."""
    if y.dtype.kind not in "iu" or not y.size:
        return None
    low, high = int(y.min()), int(y.max())
    near = abs(low) < 2**62 and abs(high) < 2**62 and high - low < few
    return (low, high) if near else None


@dataclass(frozen=True)
class Labels:
    """Rows whose labels were replaced by codes, and the classes that the codes stand for."""

    classes: Array  # (k,) sorted; those of positive weight
    weight: Array  # (k,) Σ w of each class
    rows: Rows  # the rows, with y replaced by codes 0 … k-1


@dataclass(frozen=True)
class _EncodeLabels:
    classes: Array

    def __call__(self, y: Array | None, w: Array) -> tuple[Array | None, Array]:
        assert y is not None
        # Rows of other classes have weight 0, so that their codes do not matter.
        return _codes(self.classes, y).astype(np.int32), w


def encode_labels(rows: Rows, classes: Array | None = None, fewest: int = 2) -> Labels:
    """Replace labels by codes; classes are those given, or those of positive weight (at least `fewest`)."""
    # Threads take longer to begin than whole numbers in memory take to be counted.
    at_hand = isinstance(rows, ArrayRows) and rows.in_memory and rows.y is not None and rows.y.dtype.kind in "biu"
    found = tree_sum(map(_count_classes, rows)) if at_hand else rows.sum(_count_classes)
    if found.labels.dtype.kind not in "biu":
        # Each twice: scikit-learn takes labels that occur once for numbers, and warns of them.
        check_classes(np.repeat(found.labels, 2))
    labels, weight = found.labels[found.weight > 0], found.weight[found.weight > 0]
    if classes is not None:
        unknown = np.setdiff1d(labels, classes)
        if len(unknown):
            raise DataError(
                got=f"labels that the model was not fitted on: {unknown.tolist()}",
                wanted=f"labels among {classes.tolist()}",
                fix=f"The target labels {unknown.tolist()} in y do not exist in the initial classes.",
            )
        total = np.zeros(len(classes))
        total[_codes(classes, labels)] = weight
        return Labels(classes, total, rows.relabel(_EncodeLabels(classes)))
    if len(labels) < fewest:
        raise DataError(
            got=f"a target with one class: {labels.tolist()} (a classifier cannot learn from 1 class)",
            wanted="at least two classes, each with a row of positive weight",
            fix="Check that the right column is the target and that no filter removed the others.",
        )
    return Labels(labels, weight, rows.relabel(_EncodeLabels(labels)))


def _codes(classes: Array, y: Array) -> Array:
    """Return the place of each label in `classes`, which need not be sorted."""
    order = np.argsort(classes)
    span = _span(y) if y.size > 1000 and classes.dtype.kind in "iu" else None
    if span is not None:  # a table of the codes of all labels in between
        return _codes(classes, np.arange(span[0], span[1] + 1))[y.astype(np.int64) - span[0]]
    return np.asarray(order[np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)])


@dataclass(frozen=True)
class LabelColumns:
    """Rows with several columns of labels, each replaced by codes, and the classes of each column."""

    classes: list[Array]  # of each target (k,), sorted
    weight: list[Array]  # Σ w of each class
    rows: Rows  # the rows, with y replaced by codes (n, targets)


@dataclass(frozen=True)
class _ColumnClassWeights:
    """The distinct labels of every column of y, with the total weight of each."""

    columns: tuple[_ClassWeights, ...]

    def __add__(self, other: _ColumnClassWeights) -> _ColumnClassWeights:
        return _ColumnClassWeights(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))


def _count_column_classes(block: Block) -> _ColumnClassWeights:
    assert block.y is not None
    return _ColumnClassWeights(tuple(_count_classes(block._replace(y=column)) for column in block.y.T))


@dataclass(frozen=True)
class _EncodeColumns:
    classes: list[Array]

    def __call__(self, y: Array | None, w: Array) -> tuple[Array | None, Array]:
        assert y is not None
        columns = zip(self.classes, y.T, strict=True)
        return np.column_stack([_codes(classes, column) for classes, column in columns]).astype(np.int32), w


def encode_label_columns(rows: Rows, classes: list[Array] | None = None) -> LabelColumns:
    """Replace labels (n, targets) by codes; classes are those given for each target, or those of positive weight."""
    found = rows.sum(_count_column_classes).columns
    labels = [one.labels[one.weight > 0] for one in found]
    known = labels if classes is None else classes
    if len(known) != len(labels):
        raise DataError(got=f"y with {len(labels)} columns", wanted=f"the {len(known)} that the model was fitted on")
    weight = []
    for mine, column, one in zip(known, labels, found, strict=True):
        check_classes(np.repeat(one.labels, 2))
        unknown = np.setdiff1d(column, mine)
        if len(unknown):
            raise DataError(
                got=f"labels that the model was not fitted on: {unknown.tolist()}",
                wanted=f"labels among {mine.tolist()}",
            )
        total = np.zeros(len(mine))
        total[_codes(mine, column)] = one.weight[one.weight > 0]
        weight.append(total)
    return LabelColumns(known, weight, rows.relabel(_EncodeColumns(known)))


@dataclass(frozen=True)
class _MultiplyColumnWeights:
    factors: tuple[Array, ...]

    def __call__(self, y: Array | None, w: Array) -> tuple[Array | None, Array]:
        assert y is not None
        for factor, column in zip(self.factors, y.T, strict=True):
            w = w * factor[column]
        return y, w


def apply_class_weights(labels: LabelColumns, class_weight: Any) -> Rows:
    """Multiply row weights by those of the classes of every target: 'balanced', None, or a mapping for each."""
    if class_weight is None:
        return labels.rows
    return labels.rows.relabel(_MultiplyColumnWeights(tuple(class_weights_of_targets(labels, class_weight))))


def class_weights_of_targets(labels: LabelColumns, class_weight: Any) -> list[Array]:
    """Return the factors of each target's classes, by scikit-learn's `class_weight`; of one target a mapping."""
    same = class_weight is None or isinstance(class_weight, str)
    each = [class_weight] * len(labels.classes) if same else class_weight
    each = [each] if len(labels.classes) == 1 and isinstance(each, dict) else each
    if not isinstance(each, (list, tuple)) or len(each) != len(labels.classes):
        raise DataError(
            got=f"class_weight={class_weight!r} for {len(labels.classes)} targets",
            wanted="'balanced', or a list with a mapping for each target",
            fix="The number of elements in class_weight should match number of outputs.",
        )
    return [class_weight_vector(*part) for part in zip(labels.classes, labels.weight, each, strict=True)]


@dataclass(frozen=True)
class _MultiplyWeights:
    factor: Array  # (k,)

    def __call__(self, y: Array | None, w: Array) -> tuple[Array | None, Array]:
        return y, w * self.factor[y]


def apply_class_weight(labels: Labels, class_weight: Any) -> Rows:
    """Multiply row weights by the weight of their class: a mapping, 'balanced' (equal total weight) or None."""
    if class_weight is None:
        return labels.rows
    return labels.rows.relabel(_MultiplyWeights(class_weight_vector(labels.classes, labels.weight, class_weight)))


def class_weight_vector(classes: Array, weight: Array, class_weight: Any) -> Array:
    """Return a factor for each class (k,), as scikit-learn defines `class_weight`."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise DataError(got=f"class_weight={class_weight!r}", wanted="'balanced', a mapping or None")
        return weight.sum() / (len(classes) * np.where(weight > 0, weight, 1.0))
    unknown = [label for label in class_weight if label not in set(classes.tolist())]
    if unknown:
        raise DataError(
            got=f"class_weight for {unknown}, which the target does not contain",
            wanted=f"labels among {classes.tolist()}",
        )
    factor = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    if not ((factor > 0) & np.isfinite(factor)).all():
        raise DataError(
            got=f"class_weight {dict(zip(classes.tolist(), factor.tolist(), strict=True))}",
            wanted="positive, finite weights",
            fix="To ignore a class, leave its rows out.",
        )
    return factor
