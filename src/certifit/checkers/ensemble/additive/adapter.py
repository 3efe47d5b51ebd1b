"""Reads fitted additive models for their checker."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from certifit.checkers.ensemble.additive.dual_point import (
    CLAIM,
    CLAIM_OF_PAIRS,
    AdditiveClaim,
    PlainShape,
    certify_additive,
)
from certifit.checkers.ensemble.additive.pair_boxes import asked_pairs, plain_pair, wrong_pairs
from certifit.checkers.fitted import fitted_rows
from certifit.checkers.linear_model.several_targets import joint_certificate
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms


def audit_additive(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted AdditiveClassifier or AdditiveRegressor."""
    classes = getattr(model, "classes_", None)
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    rows: Rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        rows = apply_class_weight(encode_labels(rows, np.asarray(classes)), model.class_weight)
        k = len(np.asarray(classes))
        if k > 2:
            return joint_of_classes(
                [certify_additive(c, rows.relabel(partial(_against_others, i)), tol)
                 for i, c in enumerate(_claims_of_classes(model, k))]
            )  # fmt: skip
        if k != 2:
            raise DataError(got=f"classes_={classes!r} of an additive model", wanted="two classes or more")
    return certify_additive(additive_claim(model), rows, tol)


def _against_others(label: int, y: Array | None, w: Array) -> tuple[Array | None, Array]:
    """Targets that are 1 for the rows of one class and 0 for all others."""
    return np.asarray(y == label).astype(np.int32), w


def _claims_of_classes(model: Any, k: int) -> list[AdditiveClaim]:
    """What a model of several classes says of each of them."""
    names = ("shape_functions_", "intercept_", "alpha_", "pair_functions_")
    parts = [getattr(model, name) for name in names[:3]]
    parts.append(getattr(model, "pair_functions_", [()] * k))
    if any(np.ndim(part) == 0 or len(part) != k for part in parts[1:3]) or not len(parts[0]) == len(parts[3]) == k:
        raise DataError(got=f"an additive model that is not of {k} classes", wanted="functions for each of classes_")
    if model.monotonic_cst is not None:
        raise DataError(got=f"monotonic_cst with {k} classes", wanted="two classes")
    found = []
    for one in zip(*parts, strict=True):
        settings = {
            name: getattr(model, name) for name in ("alpha", "monotonic_cst", "interactions", "n_features_in_")
        }
        settings["feature_names_in_"] = getattr(model, "feature_names_in_", None)
        found.append(additive_claim(SimpleNamespace(**settings, **dict(zip(names, one, strict=True)))))
    return found


def joint_of_classes(found: list[Certificate]) -> Certificate:
    """One certificate of all classes, each against the others: objectives and bounds are added."""
    joint = joint_certificate(found)
    claim = CLAIM_OF_PAIRS if any(one.claim == CLAIM_OF_PAIRS for one in found) else CLAIM
    return replace(joint, claim=f"{claim}, for each of {len(found)} classes against the others")


def additive_claim(model: Any) -> AdditiveClaim:
    """What a fitted model says, in plain arrays."""
    d = int(model.n_features_in_)
    if len(model.shape_functions_) != d:
        raise DataError(got=f"{len(model.shape_functions_)} shape functions", wanted=f"one for each of {d} columns")
    directions = np.zeros(d, int) if model.monotonic_cst is None else np.asarray(model.monotonic_cst)
    if directions.shape != (d,) or not np.isin(directions, (-1, 0, 1)).all():
        raise DataError(got=f"monotonic_cst={model.monotonic_cst!r}", wanted=f"-1, 0 or 1 for each of {d} columns")
    intercept = np.asarray(model.intercept_)
    if intercept.shape != () or intercept.dtype.kind not in "iuf" or not np.isfinite(intercept):
        raise DataError(got=f"intercept_={model.intercept_!r}", wanted="a finite number")
    alpha = float(model.alpha_)
    # The problem is that of the strength asked for, whatever the model says it was.
    solved = alpha if model.alpha == "auto" else float(model.alpha)
    plain = [_plain_shape(shape, int(way)) for shape, way in zip(model.shape_functions_, directions, strict=True)]
    shapes, counts = tuple(shape for shape, _ in plain), tuple(count for _, count in plain)
    pairs = tuple(plain_pair(term, d) for term in getattr(model, "pair_functions_", ()))
    asked = asked_pairs(getattr(model, "interactions", 0), d, getattr(model, "feature_names_in_", None))
    return AdditiveClaim(
        shapes, counts, float(intercept), getattr(model, "loss", "log_loss"), solved, alpha, pairs,
        wrong_pairs(pairs, asked, directions),
    )  # fmt: skip


def _plain_shape(shape: Any, direction: int) -> tuple[PlainShape, Array]:
    thresholds, values = np.asarray(shape.thresholds), np.asarray(shape.values)
    counts, lost = np.asarray(shape.counts), int(shape.missing_count)
    k = len(values)
    right = thresholds.shape == (k - 1,) and counts.shape == (k,) and values.shape == (k,) and k >= 1
    arrays = (thresholds, values)
    if (
        not right
        or any(a.dtype != np.float64 or not np.isfinite(a).all() for a in arrays)
        or counts.dtype.kind != "i"
    ):
        raise DataError(got="a shape function with arrays of other lengths or types", wanted="those that fit left")
    if not (np.diff(thresholds) > 0).all() or not np.isfinite(shape.missing) or lost < 0:
        raise DataError(got="a shape function whose thresholds do not rise", wanted="those that fit left")
    if lost == 0 and shape.missing != 0:
        raise DataError(got="a value for missing entries that the fit did not meet", wanted="0, the mean")
    plain = PlainShape(thresholds, values, float(shape.missing) if lost else None, direction)
    return plain, np.append(lost, counts) if lost else counts
