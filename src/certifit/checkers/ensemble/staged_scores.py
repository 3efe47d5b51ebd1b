"""Checks a boosting by what it publicly says of its training rows after each stage, where its trees cannot be read.

What a stage adds to the scores has one value for each leaf: rows with the same one are taken together, and their
slopes and curvatures say what that value should be. A stage of a stump adds two values, whose difference is its |β|.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from certifit.checkers.ensemble.boosting.stage_rules import best_constant
from certifit.checkers.ensemble.boosting.stages import CLAIM
from certifit.checkers.ensemble.score_losses import plain_score_loss
from certifit.checkers.ensemble.stump_gap import stump_gap
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows


def staged_scores(model: Any, X: Array, loss: str) -> Array:
    """Scores after each stage (stages, n, k), from the model's public methods."""
    if hasattr(model, "staged_decision_function"):
        stages = [np.array(F, np.float64) for F in model.staged_decision_function(X)]
    else:
        stages = [np.array(F, np.float64) for F in model.staged_predict(X)]
        if loss in ("poisson", "gamma"):
            stages = [np.log(F) for F in stages]
    return np.stack([F.reshape(len(X), -1) for F in stages])


def certify_staged_scores(
    model: Any, rows: ArrayRows, loss_name: str, tol: float, digits: float = 1e-5
) -> Certificate:
    """Check each stage's leaves and the fall of the loss, to the `digits` that single precision leaves."""
    if getattr(model, "do_early_stopping_", False) or loss_name in ("absolute_error", "quantile"):
        raise DataError(
            got=f"a {type(model).__name__} that kept rows for validation, or whose leaves are quantiles",
            wanted="early_stopping=False and a loss with a curvature: its trees are no public attributes",
            fix=f"certifit.{type(model).__name__} takes the same settings and is audited.",
        )
    kept = rows.w > 0
    X, y, w = dense(rows.X[kept]), np.asarray(rows.y, np.float64)[kept], rows.w[kept]
    loss = plain_score_loss(loss_name)
    with warnings.catch_warnings():  # the rows have lost the names of their columns, which were checked before
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        after = staged_scores(model, X, loss_name)
    k = after.shape[2]
    F = np.tile(best_constant(y, w, loss, k), (len(y), 1))
    off, many, rose, size = 0.0, 0, 0.0, 0.0
    shaped = (lambda F: F) if loss.several else (lambda F: F[:, 0])
    least = np.zeros(F.shape)  # of several classes, 1 is taken off the stored probability of a row's own: that rounds
    if loss.several:
        least[y[:, None] == np.arange(k)] = np.finfo(np.float32).eps / 2 / digits
    before = float(w @ loss.value(y, shaped(F)))
    for stage in after:
        slope, curve = loss.slope(y, shaped(F)).reshape(F.shape), loss.curvature(y, shaped(F)).reshape(F.shape)
        for c in range(k):
            leaf, value = _leaves(stage[:, c] - F[:, c], 1 + np.abs(F[:, c]).max())
            if not value.any() and not can_split(X, w * curve[:, c], model.min_samples_leaf):
                continue  # a root that is not split adds nothing
            G, H, scale = (np.bincount(leaf, w * part[:, c]) for part in (slope, curve, np.abs(slope) + least))
            newton = -model.learning_rate * G / (H + model.l2_regularization)
            free = model.monotonic_cst is None
            off = max(off, float((np.abs(value - newton) / (scale / H)).max()) if free else 0.0)
            many, size = max(many, len(value)), size + float(value.max() - value.min())
        F = stage
        now = float(w @ loss.value(y, shaped(F)))
        rose, before = max(rose, (now - before) / (abs(before) + abs(now) or 1.0)), now
    most = math.inf if model.max_leaf_nodes is None else model.max_leaf_nodes
    checks = (
        Check("values of leaves off by, of their gradients", off, digits),
        Check("leaves beyond the number allowed", max(0.0, many - most), 0.0),
        Check("rise of the training loss in a stage, relative", rose, 1e-9),
    )
    total, facts = float(w.sum()), {"read from": "scores of the training rows after each stage"}
    floor = float(w @ loss.gain(y, np.zeros(shaped(F).shape)))
    if many > 2:
        return Certificate("greedy", CLAIM, before / total, floor / total, tol, checks=checks, facts=facts)
    gap = stump_gap(X, y, w, shaped(F), size, loss)
    words = f"{CLAIM}; no additive model of the same size has a loss below the bound"
    return Certificate("bounded", words, before / total, gap.bound / total, tol, checks=checks, facts=facts)


def can_split(X: Array, curve: Array, least_rows: int, least_curve: float = 1e-3) -> bool:
    """Whether a threshold leaves rows and curvature (n,) enough on both sides, as scikit-learn asks.

    >>> X = np.array([[0.0], [1.0], [1.0], [2.0]])
    >>> can_split(X, np.ones(4), 1), can_split(X, np.ones(4), 2), can_split(X, np.array([1e-4, 1, 1, 1e-4]), 1)
    (True, False, False)
    """
    order = np.argsort(X, axis=0)
    ranked, below = np.take_along_axis(X, order, axis=0), np.cumsum(curve[order], axis=0)[:-1]
    rows = np.arange(1, len(X))[:, None]
    enough = (np.minimum(rows, len(X) - rows) >= least_rows) & (np.minimum(below, curve.sum() - below) >= least_curve)
    between = (ranked[1:] != ranked[:-1]) & ~np.isnan(ranked[:-1])
    return bool((enough & between).any())


def _leaves(added: Array, size: float) -> tuple[Array, Array]:
    """The leaf of each row by what was added to its score, and what each leaf adds."""
    order = np.argsort(added, kind="stable")
    new = np.diff(added[order], prepend=added[order[0]]) > 1e-11 * size
    leaf = np.empty(len(added), np.int64)
    leaf[order] = np.cumsum(new)
    return leaf, np.bincount(leaf, added) / np.bincount(leaf)
