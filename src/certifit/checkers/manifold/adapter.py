"""A fitted locally linear embedding, ours or scikit-learn's: the neighbours and the problem it says it has solved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.manifold import locally_linear as checker
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.manifold.locally_linear import LocallyLinearEmbedding
from certifit.rows import Array


def audit_lle(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """LocallyLinearEmbedding, standard or modified."""
    if sample_weight is not None:
        raise DataError(got="sample_weight", wanted="none: rows of a locally linear embedding have no weights")
    numbers(model, "embedding_")  # refuses what is not finite
    Y, error = np.asarray(model.embedding_), float(model.reconstruction_error_)
    rows = fitted_rows(model, model.n_features_in_, X, None, None, "none")
    if isinstance(model, LocallyLinearEmbedding):
        found = checker.certify(Y, error, np.asarray(model.neighbors_), model.problem_spec(), tol, rows)
        off = np.abs(dense(model.X_fit_) - dense(rows.load().X)).max()
        return replace(found, checks=(*found.checks, Check("rows kept for transform off by", float(off), 0.0)))
    neighbours, spec = _neighbours(model, dense(rows.load().X)), _spec(model)
    found = checker.certify(Y, error, neighbours, spec, tol, rows)
    if found.holds or not spec.modified:
        return found
    # whether the row at the median counts as flat is decided by rounding there
    other = checker.certify(Y, error, neighbours, spec._replace(inclusive=False), tol, rows)
    return other if other.holds else found


def _neighbours(model: Any, X: Array) -> Array:
    """As scikit-learn looks for them: the first found is taken to be the row itself."""
    search = NearestNeighbors(n_neighbors=model.n_neighbors + 1).fit(X)
    return search.kneighbors(X, return_distance=False)[:, 1:]


def _spec(model: Any) -> checker.Spec:
    if model.method not in ("standard", "modified"):
        raise DataError(got=f"method={model.method!r}", wanted="'standard' or 'modified'")
    if model.method == "standard":
        return checker.Spec(False, float(model.reg))
    return checker.Spec(True, 1e-3, float(model.modified_tol))  # scikit-learn's `reg` is for the standard method
