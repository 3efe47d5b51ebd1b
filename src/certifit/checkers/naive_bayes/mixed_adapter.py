"""The adapter of `NaiveBayes` for mixed tables, which hands the columns of each family to the checker of that family.

Its attribute `parameters_` holds, for every family in use, its name, its columns and the parameters of each class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.families.moment_matching import certify_family, log_likelihood
from certifit.checkers.naive_bayes import moment_equations as equations
from certifit.checkers.naive_bayes.adapter import ClassRows, category_evidence, class_evidence, class_rows
from certifit.checkers.naive_bayes.class_statistics import category_counts, class_moments, threshold_counts
from certifit.checkers.naive_bayes.moment_equations import MomentEvidence, safe_log
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.exponential_families import parameter_names
from certifit.core import Certificate
from certifit.rows import Block, Rows


class _SomeColumns:
    """Some columns of rows, summed as `Rows` are; given a class, only its rows without missing entries there."""

    def __init__(self, rows: Rows, columns: Any, c: int | None = None) -> None:
        self.rows, self.columns, self.c = rows, columns, c
        self.n_features = len(columns)

    def sum(self, f: Callable[[Block], Any]) -> Any:
        return self.rows.sum(partial(_apply_to_columns, self.columns, self.c, f))


def _apply_to_columns(columns: Any, c: int | None, f: Callable[[Block], Any], block: Block) -> Any:
    X, y, w = dense(block.X[:, columns]), block.y, block.w
    assert y is not None
    if c is not None:
        kept = (y == c) & (w > 0) & ~np.isnan(X).any(axis=1)
        X, y, w = X[kept], y[kept], w[kept]
    return f(Block(X, y, w, block.start))


def audit_naive_bayes(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the moment equations of every class and column of a NaiveBayes."""
    data = class_rows(model, X, y, sample_weight)
    evidence = class_evidence(model, data, safe_log(np.asarray(model.class_prior_)), model.priors, tol)
    for found in model.parameters_:
        parts = _group_evidence(found, data, float(model.alpha), tol)
        evidence += [equations.with_prefix(found["family"], part) for part in parts]
    return equations.assemble(evidence, tol)


def _group_evidence(found: Mapping[str, Any], data: ClassRows, alpha: float, tol: float) -> list[MomentEvidence]:
    """Return the evidence of the columns of one family; counted families have pseudo-counts α."""
    rows: Any = _SomeColumns(data.rows, found["columns"])
    match found["family"]:
        case "gaussian":
            moments = class_moments(rows, data.k)
            return [equations.gaussian_evidence(found["theta"], found["var"], found["epsilon"], False, moments, tol)]
        case "bernoulli":
            mass = threshold_counts(rows, data.k, 0.5) + alpha
            return [equations.cell_evidence(np.stack([found["log_q"], found["log_p"]], axis=-1), mass, tol)]
        case "categorical":
            sizes = found["sizes"]
            tables = np.split(found["table"].T, np.cumsum(sizes)[:-1], axis=1)
            return category_evidence(tables, category_counts(rows, data.k, sizes), alpha, tol)
        case _:
            return _family_evidence(found, data)


def _family_evidence(found: Mapping[str, Any], data: ClassRows) -> list[MomentEvidence]:
    """Check each class and column by the checker of its family; where that fails, the bound is -inf."""
    family = found["family"].replace("_", " ").title().replace(" ", "")  # inverse_gaussian -> InverseGaussian
    parts = []
    for c in range(data.k):
        for column, values in zip(found["columns"], found["members"][c], strict=True):
            rows: Any = _SomeColumns(data.rows, [column], c)
            if rows.sum(_block_weight) > 0:
                theta = dict(zip(parameter_names(family), values, strict=True))
                checked = certify_family(family, theta, rows, None)
                value = log_likelihood(family, theta, rows)
                bound = -value if checked.holds else -math.inf
                parts.append(MomentEvidence(-value, bound, checked.checks))
    return [equations.worst_of_columns(parts)] if parts else []


def _block_weight(block: Block) -> float:
    return float(block.w.sum())
