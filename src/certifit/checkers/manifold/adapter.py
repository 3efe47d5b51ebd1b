"""A fitted locally linear embedding, ours or scikit-learn's: the neighbours and the problem it says it has solved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.manifold import locally_linear as checker
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array


def audit_lle(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a LocallyLinearEmbedding, standard or modified; ours has its neighbours as `neighbors_`."""
    if sample_weight is not None:
        raise DataError(got="sample_weight", wanted="none: rows of a locally linear embedding have no weights")
    numbers(model, "embedding_")  # refuses what is not finite
    Y, error, spec = np.asarray(model.embedding_), float(model.reconstruction_error_), embedding_spec(model)
    rows = fitted_rows(model, model.n_features_in_, X, None, None, "none")
    if _is_ours(model):
        claimed = checker.ClaimedEmbedding(Y, error, np.asarray(model.neighbors_))
        found = checker.certify(claimed, spec, tol, rows)
        off = np.abs(dense(model.X_fit_) - dense(rows.load().X)).max()
        return replace(found, checks=(*found.checks, Check("rows kept for transform off by", float(off), 0.0)))
    claimed = checker.ClaimedEmbedding(Y, error, _nearest_others(dense(rows.load().X), int(model.n_neighbors)))
    found = checker.certify(claimed, spec, tol, rows)
    if found.holds or not spec.modified:
        return found
    # Whether the row at the median counts as flat is decided by rounding there.
    other = checker.certify(claimed, spec._replace(inclusive=False), tol, rows)
    return other if other.holds else found


def embedding_spec(model: Any) -> checker.EmbeddingSpec:
    """The problem that a model is set to solve, by its parameters."""
    if model.method not in ("standard", "modified"):
        raise DataError(got=f"method={model.method!r}", wanted="'standard' or 'modified'")
    modified = model.method == "modified"
    if _is_ours(model):
        approximate = model.neighbors_algorithm == "pynndescent" or model.disconnected == "join"
        return checker.EmbeddingSpec(modified, float(model.reg), float(model.modified_tol), approximate)
    # scikit-learn's `reg` is for the standard method only
    return checker.EmbeddingSpec(modified, 1e-3 if modified else float(model.reg), float(model.modified_tol))


def _is_ours(model: Any) -> bool:
    """Whether the model says what to do with a neighbour graph in parts, which scikit-learn's does not."""
    return hasattr(model, "disconnected")


def _nearest_others(X: Array, k: int, distances: int = 2**23) -> Array:
    """The k nearest other rows of each row of X (n, d), nearest first; so many distances are held at a time."""
    X = X - X.mean(axis=0)
    n, squares, found = len(X), (X**2).sum(axis=1), []
    step = max(1, distances // n)
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        distance = squares - 2 * (X[rows] @ X.T)  # less the row's own square, which does not change the order
        distance[np.arange(len(rows)), rows] = np.inf
        # products lose digits: some more rows than wanted are ranked by differences
        near = np.argpartition(distance, min(k + 10, n - 2), axis=1)[:, : min(k + 10, n - 1)]
        exact = ((X[near] - X[rows, None]) ** 2).sum(axis=2)
        found.append(np.take_along_axis(near, np.argsort(exact, axis=1, kind="stable")[:, :k], axis=1))
    return np.concatenate(found)
