"""Class labels of any type as whole numbers 0 … k-1, found in one pass over any source of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from certifit.exceptions import DataError
from certifit.rows.block import Array, Block
from certifit.rows.rows import Rows


@dataclass(frozen=True)
class _Classes:
    """The distinct labels seen, and the weight of each."""

    labels: Array
    weight: Array  # Σ w of each label

    def __add__(self, other: _Classes) -> _Classes:
        labels, code = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        return _Classes(labels, np.bincount(code, np.concatenate([self.weight, other.weight]), len(labels)))


def _classes(block: Block) -> _Classes:
    assert block.y is not None
    labels, code = np.unique(block.y, return_inverse=True)
    return _Classes(labels, np.bincount(code, block.w, len(labels)))


@dataclass(frozen=True)
class Labels:
    classes: Array  # (k,) sorted; those that have weight
    weight: Array  # (k,) Σ w of each class
    rows: Rows  # the rows, with y replaced by codes 0 … k-1


@dataclass(frozen=True)
class _Encode:
    classes: Array

    def __call__(self, y: Array | None, w: Array) -> tuple[Array | None, Array]:
        assert y is not None
        return _places(self.classes, y).astype(np.int32), w  # rows of other classes have weight 0


def encode_labels(rows: Rows, classes: Array | None = None, fewest: int = 2) -> Labels:
    """Find the classes that have weight (`fewest` at least), or expect those given; replace labels by numbers."""
    found = rows.sum(_classes)
    check_classification_targets(found.labels)
    labels, weight = found.labels[found.weight > 0], found.weight[found.weight > 0]
    if classes is not None:
        unknown = np.setdiff1d(labels, classes)
        if len(unknown):
            raise DataError(
                got=f"labels that the model was not fitted on: {unknown.tolist()}",
                wanted=f"labels among {classes.tolist()}",
            )
        total = np.zeros(len(classes))
        total[_places(classes, labels)] = weight
        return Labels(classes, total, rows.relabel(_Encode(classes)))
    if len(labels) < fewest:
        raise DataError(
            got=f"a target with one class: {labels.tolist()} (a classifier cannot learn from 1 class)",
            wanted="at least two classes, each with a row of positive weight",
            fix="Check that the right column is the target and that no filter removed the others.",
        )
    return Labels(labels, weight, rows.relabel(_Encode(labels)))


def _places(classes: Array, y: Array) -> Array:
    """Where in `classes` each label is; a model's own may be in any order."""
    order = np.argsort(classes)
    return np.asarray(order[np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)])


@dataclass(frozen=True)
class _Reweight:
    factor: Array  # (k,)

    def __call__(self, y: Array | None, w: Array) -> tuple[Array | None, Array]:
        return y, w * self.factor[y]


def apply_class_weight(labels: Labels, class_weight: Any) -> Rows:
    """Multiply each row's weight by its class's: a mapping, 'balanced' (equal total weight), or None."""
    if class_weight is None:
        return labels.rows
    return labels.rows.relabel(_Reweight(class_weight_vector(labels.classes, labels.weight, class_weight)))


def class_weight_vector(classes: Array, weight: Array, class_weight: Any) -> Array:
    """One factor per class, as scikit-learn's `class_weight` means it."""
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
