"""A fitted locally linear embedding, ours or scikit-learn's: the neighbours and the problem it says it has solved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers, setting
from certifit.checkers.manifold import locally_linear as checker
from certifit.checkers.manifold.tangent_forms import TangentMethod, lone_rows
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Rows


def audit_lle(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a LocallyLinearEmbedding, standard or modified; ours has its neighbours as `neighbors_`."""
    if sample_weight is not None:
        raise DataError(got="sample_weight", wanted="none: rows of a locally linear embedding have no weights")
    rows = fitted_rows(model, model.n_features_in_, X, None, None, "none")
    spec = embedding_spec(model)
    Y, error = _coordinates(model, rows), float(numbers(model, "reconstruction_error_"))
    if _is_ours(model):
        claimed = checker.ClaimedEmbedding(Y, error, _neighbours(model, rows))
        found = checker.certify(claimed, spec, tol, rows)
        return replace(found, checks=(*found.checks, _kept_rows(model, rows)))
    spec = spec._replace(eps=float(np.finfo(rows.dtype).eps))
    nearest = _nearest_others(dense(rows.load().X), int(model.n_neighbors))
    claimed = checker.ClaimedEmbedding(Y, error, nearest)
    found = checker.certify(claimed, spec, tol, rows)
    if spec.tangent:
        free = float(lone_rows(nearest).sum())
        check = Check("rows that are no other's neighbour: their coordinates are free", free, 0.0)
        found = replace(found, checks=(*found.checks, check))
    if model.method == "hessian":
        words = "all directions outside of the tangent space, as 'ltsa' has them, not the quadratic ones alone"
        found = replace(found, facts={**found.facts, "scikit-learn's 'hessian' minimises": words})
    if found.holds or not spec.modified:
        return found
    # Whether the row at the median counts as flat is decided by rounding there.
    other = checker.certify(claimed, spec._replace(inclusive=False), tol, rows)
    return other if other.holds else found


def embedding_spec(model: Any) -> checker.EmbeddingSpec:
    """The problem that a model is set to solve, by its parameters."""
    choices = ("standard", "modified", "hessian", "ltsa")
    method = setting(model, "method", Setting(choices=choices))
    modified = method == "modified"
    tangent: TangentMethod = method if method in ("hessian", "ltsa") else ""
    reg = float(setting(model, "reg", Setting(float, least=0, below=np.inf)))
    if _is_ours(model):
        any_rows = model.neighbors_algorithm == "pynndescent"
        neighbours: checker.NeighbourKind = (
            "any" if any_rows else "joined" if model.disconnected == "join" else "nearest"
        )
        return checker.EmbeddingSpec(
            modified, reg, neighbours, by_parts=model.disconnected == "embed", tangent=tangent
        )
    # scikit-learn's 'hessian' counts every direction outside of the tangent space, not the quadratic ones alone: it
    # minimises what 'ltsa' does.
    tangent = "ltsa" if tangent else ""
    # scikit-learn's `reg` is for the standard method only
    return checker.EmbeddingSpec(modified, 1e-3 if modified else reg, by_parts=False, signed=False, tangent=tangent)


def _is_ours(model: Any) -> bool:
    """Whether the model says what to do with a neighbour graph in parts, which scikit-learn's does not."""
    return hasattr(model, "disconnected")


def _coordinates(model: Any, rows: Rows) -> Array:
    """The embedding (n, k), as its settings and the rows say it must be."""
    Y = numbers(model, "embedding_")
    k = int(setting(model, "n_components", Setting(int, least=1)))
    if Y.shape != (rows.n_rows, k):
        raise DataError(
            got=f"an embedding of {Y.shape[0] if Y.ndim else 0} rows and a table of {rows.n_rows}"
            if Y.ndim != 2 or len(Y) != rows.n_rows
            else f"n_components={k} and an embedding of {Y.shape[1]} coordinates",
            wanted="the rows it was fitted on and the settings it was fitted with",
        )
    return Y


def _neighbours(model: Any, rows: Rows) -> Array:
    """The neighbours (n, n_neighbors) as row numbers."""
    near = np.asarray(model.neighbors_)
    wanted = (rows.n_rows, int(model.n_neighbors))
    if near.shape != wanted or near.dtype.kind not in "iu":
        raise DataError(
            got=f"neighbors_ of shape {near.shape} and type {near.dtype}",
            wanted=f"whole numbers of shape {wanted}: n_neighbors={model.n_neighbors} for each of the rows",
        )
    if near.min() < 0 or near.max() >= rows.n_rows:
        raise DataError(
            got=f"neighbors_ from {near.min()} to {near.max()}",
            wanted=f"row numbers from 0 to {rows.n_rows - 1}",
        )
    return near


def _kept_rows(model: Any, rows: Rows) -> Check:
    """Compare the rows that `transform` uses with those given."""
    kept, given = numbers(model, "X_fit_"), dense(rows.load().X)
    if kept.shape != given.shape:
        raise DataError(got=f"X_fit_ of shape {kept.shape}", wanted=f"the rows it was fitted on, {given.shape}")
    return Check("rows kept for transform off by", float(np.abs(kept - given).max()), 0.0)


def _nearest_others(X: Array, k: int, distances: int = 2**23) -> Array:
    """The k nearest other rows of each row of X (n, d), nearest first; so many distances are held at a time."""
    if not 1 <= k < len(X):
        raise DataError(got=f"n_neighbors={k} for {len(X)} rows", wanted="at least 1, and fewer neighbours than rows")
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
