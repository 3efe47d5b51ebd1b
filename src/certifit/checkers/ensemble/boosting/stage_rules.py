"""What fits and checks of boosting agree on: first scores, values of leaves, lengths of steps, and rows drawn."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit

from certifit.checkers.ensemble.forest.plain_bootstrap import GOLDEN, finished, mixed
from certifit.checkers.ensemble.score_losses import PlainHuber, PlainQuantile, PlainQuantiles, PlainScoreLoss
from certifit.checkers.plain.best_intercepts import middle_of_quantile
from certifit.rows import Array


def weighted_quantile(x: Array, w: Array, alpha: float) -> float:
    """The middle of the α-quantiles of x with weights w."""
    return middle_of_quantile(x, w, alpha * float(w.sum()))


def huber_centre(x: Array, w: Array, delta: float) -> float:
    """The c with the least Σ w huber(x - c): where Σ w clip(c - x, ±δ), which rises piece by piece, is 0."""
    if delta <= 0:
        return weighted_quantile(x, w, 0.5)
    corners = np.concatenate([x - delta, x + delta])
    order = np.argsort(corners, kind="stable")
    corners, bends = corners[order], np.concatenate([w, -w])[order]
    steep = np.cumsum(bends)[:-1]
    slope = -delta * float(w.sum()) + np.append(0.0, np.cumsum(steep * np.diff(corners)))
    at = min(int(np.searchsorted(slope, 0.0)), len(corners) - 1)
    centre = float(corners[at])
    if at > 0 and steep[at - 1] > 0:
        centre = min(centre, float(corners[at - 1] - slope[at - 1] / steep[at - 1]))
    # What cumulative sums have rounded away comes back by one Newton step.
    away = np.clip(centre - x, -delta, delta)
    free = float(w[np.abs(centre - x) < delta].sum())
    return centre - float(w @ away) / free if free > 0 else centre


def best_constant(y: Array, w: Array, loss: PlainScoreLoss, scores: int) -> Array:
    """The one score for all rows with the least loss (scores,); those of several classes sum up to 0.

    Huber's loss, whose δ follows from residuals, begins at the median.
    """
    name = type(loss).__name__
    if isinstance(loss, PlainQuantile | PlainHuber):
        return np.array([weighted_quantile(y, w, loss.alpha if isinstance(loss, PlainQuantile) else 0.5)])
    if isinstance(loss, PlainQuantiles):
        return np.array([weighted_quantile(y, w, alpha) for alpha in loss.alphas])
    if loss.several:
        log_share = np.log(np.bincount(y.astype(np.int64), w, scores) / w.sum())
        return log_share - log_share.mean()
    mean = float(y[0] + w @ (y - y[0]) / w.sum())
    # Once more from there: where one row outweighs all others, the first sum has only the digits of a distant y[0].
    mean += float(w @ (y - mean) / w.sum())
    if name == "PlainSquaredError":
        return np.array([mean])
    if name in ("PlainPoisson", "PlainGamma"):
        return np.array([np.log(mean)])
    share = float(w[y > 0.5].sum() / w.sum())
    return np.array([logit(share) * (0.5 if name == "PlainExponential" else 1.0)])


def longest_step(loss: str, learning_rate: float) -> float:
    """The longest step of a score that surely lowers the loss, given that it is at most a share of Newton's.

    Where |φ"'| <= φ", a step δ raises the loss by at most g δ + h δ² ψ(|δ|) / 2 with ψ(t) = 2 (exp t - 1 - t) / t².
    It is at most `learning_rate` times -g / h, so the loss falls while learning_rate ψ <= 2. Of several classes, the
    curvature is at most twice its diagonal, and scores may move apart by twice a step.
    """
    if loss in ("squared_error", "absolute_error", "quantile", "quantiles", "huber"):
        return np.inf
    times, most = (2.0, 1.0 / learning_rate) if loss == "multinomial" else (1.0, 2.0 / learning_rate)
    if most <= 1:
        return np.inf
    with np.errstate(over="ignore"):
        return float(brentq(lambda t: 2 * (np.expm1(t) - t) / t**2 - most, 1e-6, 700.0)) / times


def learning_rate_of(asked: float | str, n: int) -> float:
    """The learning rate; 'auto' is the fourth root of n, from 0.04 for 200 rows to 0.2 for 130,000 and more.

    With the usual 100 stages, held-out losses of simulated tables were least near it (docs/guides/trees.md).
    """
    return min(0.2, 0.0105 * max(n, 1) ** 0.25) if isinstance(asked, str) else float(asked)


def held_out_rows(y: Array | None, w: Array, share: float, seed: int) -> Array:
    """Which rows are kept for validation (n,): of each class (all rows if y is None) those with the smallest hash."""
    z = finished(np.arange(len(w), dtype=np.uint64) * GOLDEN + np.uint64(seed))
    out = np.zeros(len(w), bool)
    for c in [None] if y is None else np.unique(y):
        here = np.flatnonzero((w > 0) & (True if c is None else y == c))
        count = int(share) if share >= 1 else round(share * len(here))
        out[here[np.argsort(z[here], kind="stable")[:count]]] = True
    return out


def bag_rows(kept: Array, share: float, seed: int, stage: int) -> Array:
    """Which rows a stage sees (n,): of those kept the share with the smallest hash of their place among them."""
    rows = np.flatnonzero(kept)
    z = mixed(mixed(seed, stage), np.arange(len(rows)))
    out = np.zeros(len(kept), bool)
    out[rows[np.argsort(z, kind="stable")[: max(1, int(share * len(rows)))]]] = True
    return out
