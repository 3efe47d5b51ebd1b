"""Ridge regression on labels of ±1, ours or scikit-learn's: each class is a ridge regression of its own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.fitted import chosen_or_set, exact_shape, fitted_rows, numbers, setting
from certifit.checkers.linear_model.glm import certify
from certifit.checkers.linear_model.several_targets import joint_certificate, target_columns
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.checkers.problem import Problem
from certifit.core import Certificate, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms


def sign_problems(classes: int) -> list[int]:
    """Numbers of the classes that have a score: the second of two, else all."""
    return [1] if classes == 2 else list(range(classes))


def label_signs(number: int, y: Array | None, w: Array) -> tuple[Array, Array]:
    """Targets 1 for the rows of a class and -1 for all others, from class numbers y, and the weights."""
    assert y is not None
    return np.where(y == number, 1.0, -1.0), w


def column_signs(number: int, y: Array | None, w: Array) -> tuple[Array, Array]:
    """Targets 1 for the rows that have a label and -1 for all others, from columns of 0 and 1, and the weights."""
    assert y is not None
    column = y[:, number]
    if not np.isin(column, (0, 1)).all():
        raise DataError(
            got=f"column {number} of y with other numbers than 0 and 1",
            wanted="1 for each row that has the column's label, and 0 for others",
            fix="Multioutput target data is not supported: fit one model for each column.",
        )
    return np.where(column == 1, 1.0, -1.0), w


def ridge_claim(model: Any) -> GlmClaim:
    """The problem that each class's coefficients claim to have solved."""
    alpha = float(setting(model, chosen_or_set(model, "alpha"), Setting(float, least=0, below=np.inf)))
    claim = GlmClaim("gaussian", "identity", alpha, 0.0, False, bool(getattr(model, "fit_intercept", True)))
    return claim._replace(positive=bool(getattr(model, "positive", False)))


def ridge_classifier_problem(model: Any) -> Problem:
    """The same in words, by which models can be compared."""
    claim, weights = ridge_claim(model), getattr(model, "class_weight", None)
    return Problem(
        f"squared residuals of labels ±1, {len(np.atleast_2d(numbers(model, 'coef_')))} scores",
        f"alpha={claim.alpha!r} in all",
        weights="none" if weights is None else f"class_weight={weights!r}",
        further=("free intercept" if claim.intercept else "no intercept") + ", β >= 0" * claim.positive,
    )


def audit_ridge_classifier(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every class's coefficients as a ridge regression on its labels of ±1."""
    claim, coef, intercept = ridge_claim(model), numbers(model, "coef_"), numbers(model, "intercept_").ravel()
    several = target_columns(y) or 1
    labels = len(np.ravel(model.classes_))
    if bool(getattr(model, "multilabel_", several > 1)) != (several > 1):
        raise DataError(got=f"y with {several} columns", wanted="targets like those that the model was fitted on")
    if several > 1 and not np.array_equal(np.ravel(model.classes_), np.arange(several)):
        raise DataError(got=f"classes_ of {labels} labels for {several} columns of y", wanted="their numbers from 0")
    scores = [*range(several)] if several > 1 else sign_problems(labels)
    exact_shape(model, "intercept_", (len(scores),))
    coef = np.atleast_2d(coef)  # (d,) for two classes
    if coef.ndim != 2 or len(coef) != len(scores) or len(intercept) not in (1, len(scores)):
        raise DataError(
            got=f"coef_ of shape {coef.shape} and {len(intercept)} intercepts for {labels} classes",
            wanted=f"coefficients of {len(scores)} scores, and as many intercepts",
        )
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, TableTerms("classes", several))
    signs = column_signs if several > 1 else label_signs
    if several == 1:
        weight = getattr(model, "class_weight", None)
        rows = apply_class_weight(encode_labels(rows, np.asarray(model.classes_)), weight)
    each = np.broadcast_to(intercept, len(scores))
    found = [
        certify(coef[place], float(each[place]), claim, tol, rows.relabel(partial(signs, k)))
        for place, k in enumerate(scores)
    ]
    return joint_certificate(found)
