"""Reads clusterings by centres: scikit-learn's KMeans, MiniBatchKMeans and BisectingKMeans, faiss.Kmeans, and ours.

All claim to make the same sum small, so all are measured by it. Mini-batches leave centres beside the means of their
rows, and bisection leaves rows beside their nearest centre: the certificate then does not hold, and says by how much.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.cluster.kmeans import ClusterCheckTuning, certify
from certifit.checkers.cluster.semidefinite_bound import ProofInFit
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows


def centres(model: Any) -> Array:
    """Return the centres (k, d) of a fitted clustering."""
    name = "cluster_centers_" if hasattr(model, "cluster_centers_") else "centroids"
    if getattr(model, name, None) is None:  # as faiss leaves them until it is trained
        raise DataError(
            got=f"a {type(model).__name__} without {name}", wanted="a fitted model", fix="Train it first."
        )
    found = numbers(model, name)
    if found.ndim != 2:
        raise DataError(got=f"{name} of shape {found.shape}", wanted="one row for each centre")
    return found


def audit_clusters(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float, effort: int = 1) -> Certificate:
    """Check a clustering from the data.

    `effort` above 1 improves the lower bound of tables of up to some thousands of rows for longer; with 1, as much
    work is done for our own fits as they did themselves, so that fit and audit say the same.
    """
    if effort < 1:
        raise DataError(got=f"effort={effort!r}", wanted="a whole number of at least 1")
    if getattr(getattr(model, "cp", None), "spherical", False):
        raise DataError(
            got="a spherical faiss.Kmeans", wanted="one that minimises squared distances", fix="Set spherical=False."
        )
    C = centres(model)
    asked = getattr(model, "n_clusters", getattr(model, "k", len(C)))  # faiss calls it k
    if asked != len(C):
        raise DataError(
            got=f"{len(C)} centres in a {type(model).__name__} that was asked for {asked}",
            wanted="as many centres as clusters",
            fix="Fit it again: the number was changed after the fit, or centres were.",
        )
    rows = fitted_rows(model, C.shape[1], X, None, sample_weight, "none")
    labels = getattr(model, "labels_", None)
    target, inertia = (getattr(model, name, None) for name in ("target_ratio", "inertia_"))
    tuning = ClusterCheckTuning().with_effort(effort)
    if effort == 1 and isinstance(model, Estimator):
        tuning = replace(tuning, gram=ProofInFit().work(rows.n_rows, target))
    found = certify(C, labels, tol, rows, target, inertia, tuning=tuning)
    if not (isinstance(model, Estimator) and hasattr(model, "counts_")):
        return found
    return replace(found, checks=(*found.checks, _check_counts(numbers(model, "counts_"), C, labels, rows)))


def _check_counts(counts: Array, C: Array, labels: Any, rows: Rows) -> Check:
    """Check the weights of the clusters, by which the next batch is held against all rows before it."""
    if counts.shape != (len(C),):
        raise DataError(got=f"counts_ of shape {counts.shape}", wanted=f"one for each of {len(C)} centres")
    weight = rows.sum(partial(_weights_of_clusters, np.asarray(labels), len(C)))
    off = float(np.abs(counts - weight).max() / (weight.sum() or 1.0))
    return Check("counts_ off the weights of the clusters, relative", off, 1e-9)


def _weights_of_clusters(labels: Array, k: int, block: Block) -> Array:
    here = labels[block.start : block.start + len(block.w)]
    return np.bincount(np.clip(here, 0, k - 1), block.w, k)  # labels that name no centre fail a check of their own
