"""EM for probabilistic PCA on the observed entries, one pass over the rows a step.

E: the codes' means and second moments given each row's observed entries. M: each column's regression on the codes and
a constant, over the rows that observe it (W and μ jointly), then σ². The prior of the codes is kept free during the
step, z ~ N(ν, Γ), and folded back into W and μ: the same likelihood, larger steps (parameter-expanded EM).

With automatic relevance determination each column w_j of W has a prior N(0, I / α_j), α_j = d / |w_j|². That is a
penalty d/2 log det WᵀW; α_j |w_j|² / 2 touches it from above, so one regression with α fixed lowers both.

The objective never rises, and falls by at least what its expectation gains: the gain promised. Pairs of steps are
followed by a jump along their path, taken back where it does not help.
References: Tipping & Bishop (1999); Liu, Rubin & Wu, Parameter expansion to accelerate EM (1998); Ilin & Raiko,
Practical approaches to PCA in the presence of missing values (2010); Bishop, Bayesian PCA (1999).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from certifit.core import Step
from certifit.decomposition.probabilistic.missing_entries import Point, check_noise, pieces, posterior, sums_without
from certifit.exceptions import DataError
from certifit.numerics.missing import has_holes
from certifit.numerics.missing_loops import add_outer
from certifit.numerics.packed import unpack
from certifit.rows import Array, Block, Rows, Sums, tree_sum

SMALLEST = 1e-11  # noise variance relative to the mean square of the entries at which EM gives up
LARGEST = 2**28  # numbers in the sums of one pass
FARTHEST = 3.0  # that a jump changes log σ²
IRRELEVANT = 1e-4  # |w_j|² relative to the noise variance at which a column is on its way to 0


@dataclass(frozen=True)
class Expected(Sums):
    """Sums of one E step. u = (z, 1); second moments are packed (p,), p = (k + 1) (k + 2) / 2."""

    log_likelihood: float
    weight: float  # Σ w of rows that observe something
    entries: float  # Σ w over observed entries
    squares: float  # Σ w (x - μ)² over them
    cross: Array  # (d, k + 1) Σ w (x - μ) E u
    moment: Array  # (p,) Σ w E u uᵀ over all rows
    by_column: Array  # (d, p) the same over the rows that observe a column; (p,) as long as no entry is missing


def expect(at: Point, block: Block) -> Expected:
    """The E step on a block."""
    seen = block.w > 0
    if has_holes(block.X):
        seen &= ~np.isnan(block.X).all(axis=1)
    X, w = (block.X, block.w) if seen.all() else (block.X[seen], block.w[seen])
    parts = [_expect(at, X[piece], w[piece]) for piece in pieces(X, at.W.shape[1])]
    return tree_sum(parts or [_expect(at, X, w)])


def _expect(at: Point, X: Array, w: Array) -> Expected:
    k = at.W.shape[1]
    found = posterior(at, X)
    missing, which = found.patterns
    weight = np.bincount(which, w, len(missing))  # of each pattern
    moments = found.inverse  # whose memory this takes over
    moments[:, : -k - 1] *= at.noise * weight[:, None]
    moments[:, -k - 1 :] = 0.0
    add_outer(which, w, found.z, moments)
    moment = moments.sum(axis=0)
    by_column = moment
    if missing.any():
        by_column = np.empty((len(at.W), len(moment)))
        sums_without(missing.T, moments, moment, np.zeros_like(moment), by_column)
    return Expected(
        float(w @ found.log_likelihood),
        float(w.sum()),
        float(weight @ (~missing).sum(axis=1)),
        float(w @ found.squares),
        found.Z.T @ (w[:, None] * np.column_stack([found.z, np.ones(len(w))])),
        moment,
        by_column,
    )


def check_memory(d: int, k: int) -> None:
    """Refuse what would not fit: with holes every column has a regression, and its matrix, of its own."""
    size = d * (k + 1) * (k + 2) // 2
    if size > LARGEST:
        raise DataError(
            got=f"{k} components of {d} columns with missing entries: {8 * size / 1e9:.0f} GB of sums",
            wanted=f"at most {8 * LARGEST / 1e9:.1g} GB",
            fix="Ask for fewer components (n_components), or fill the holes.",
        )


def measure(rows: Rows, at: Point) -> Expected:
    """The E step on all rows."""
    return rows.sum(partial(expect, at))


def update(weight: float, at: Point, e: Expected) -> Step[Point]:
    """The M step for the likelihood; objective and gain per row, in nats. `weight` is that of all rows."""
    k = at.W.shape[1]
    W, shift, noise, gain = _regress(at, e, np.zeros(k))
    U = unpack(e.moment, k + 1) / e.weight
    nu, gamma = U[:k, k], U[:k, :k] - np.outer(U[:k, k], U[:k, k])
    values, vectors = eigh(gamma) if k else (np.zeros(0), np.zeros((0, 0)))
    gain += 0.5 * e.weight * float(np.trace(U[:k, :k]) - k - np.log(values).sum())
    point = Point(at.mean + shift + W @ nu, W @ ((vectors * np.sqrt(values)) @ vectors.T), noise)
    return Step(point, -e.log_likelihood / weight, max(0.0, gain) / weight)


def update_relevant(weight: float, at: Point, e: Expected) -> Step[Point]:
    """The M step with automatic relevance determination; W has orthogonal columns before and after.

    Where a column is on its way to 0 the step promises nothing more: see `prune`.
    """
    d, k = at.W.shape
    sizes = (at.W**2).sum(axis=0)
    objective = penalty(at.W) - e.log_likelihood
    if prune(at).W.shape[1] < k:
        return Step(at, objective / weight, 0.0)
    W, shift, noise, gain = _regress(at, e, d / sizes)
    gain += 0.5 * float(d / sizes @ (sizes - (W**2).sum(axis=0)))
    point = Point(at.mean + shift, _orthogonal(W), noise)
    return Step(point, objective / weight, max(0.0, gain) / weight)


def _orthogonal(W: Array) -> Array:
    """W turned so that its columns are orthogonal, each on the side where it was."""
    left, lengths, _ = np.linalg.svd(W, full_matrices=False)
    return left * lengths * np.where((left * W).sum(axis=0) < 0, -1.0, 1.0)


def penalty(W: Array) -> float:
    """d/2 log det WᵀW, in nats over all rows, of W with orthogonal columns."""
    return 0.5 * len(W) * float(np.log((W**2).sum(axis=0)).sum())


def prune(at: Point) -> Point:
    """Without the columns of W that say nothing."""
    return at._replace(W=at.W[:, (at.W**2).sum(axis=0) > IRRELEVANT * at.noise])


# ------------------------------------------------------------------------------------------ longer steps
class Trail(NamedTuple):
    """A point, and how EM came there."""

    point: Point
    last: Point | None = None  # one EM step before
    plan_b: Point | None = None  # where plain EM would be, if `point` was reached by a jump
    limit: float = np.inf  # objective that a jump must not exceed


def accelerate(step: Callable[[Point, Expected], Step[Point]], at: Trail, e: Expected) -> Step[Trail]:
    """Every second EM step goes on to a jump along the path of the last two; a jump that climbs is taken back."""
    found = step(at.point, e)
    if at.plan_b is not None and not found.objective <= at.limit:
        return Step(Trail(at.plan_b), found.objective, np.inf)
    if at.last is None:
        return Step(Trail(found.params, last=at.point), found.objective, found.gain)
    jump = _jump(at.last, at.point, found.params)
    return Step(Trail(jump, plan_b=found.params, limit=found.objective), found.objective, found.gain)


def _jump(a: Point, b: Point, c: Point) -> Point:
    """From three points of a path that nears its end geometrically (Varadhan & Roland, SQUAREM, 2008)."""
    scale, (d, k) = np.sqrt(a.noise), a.W.shape
    x, y, z = (np.concatenate([(p.mean - a.mean) / scale, p.W.ravel() / scale, [np.log(p.noise)]]) for p in (a, b, c))
    first, bend = y - x, (z - y) - (y - x)
    size = float(np.linalg.norm(bend))
    reach = max(1.0, float(np.linalg.norm(first)) / size) if size > 0 else 1.0
    far = x + 2 * reach * first + reach**2 * bend
    noise = c.noise * float(np.exp(np.clip(far[-1] - z[-1], -FARTHEST, FARTHEST)))
    return Point(a.mean + scale * far[:d], _orthogonal(scale * far[d:-1].reshape(d, k)), noise)


def _regress(at: Point, e: Expected, alpha: Array) -> tuple[Array, Array, float, float]:
    """W, the change of μ, σ², and what they gain in expected log-likelihood."""
    k = len(alpha)
    G = unpack(e.by_column, k + 1)  # (d, k + 1, k + 1), or one matrix for all columns
    old = np.column_stack([at.W, np.zeros(len(at.W))])
    penalised = G + at.noise * np.diag(np.append(alpha, 0.0))
    if G.ndim == 3:
        new = np.linalg.solve(penalised, e.cross[..., None])[..., 0]
    else:
        new = np.linalg.solve(penalised, e.cross.T).T
    before, after = _residual(old, e, G), _residual(new, e, G)
    noise = after / e.entries
    check_noise(noise, e.squares / e.entries, k, SMALLEST)
    gain = 0.5 * (e.entries * (np.log(at.noise / noise) - 1.0) + before / at.noise)
    return new[:, :k], new[:, k], noise, float(gain)


def _residual(theta: Array, e: Expected, G: Array) -> float:
    """Σ w E (x - μ - θ·u)² over observed entries, θ (d, k + 1)."""
    fitted = np.einsum("ji,jil,jl->", theta, G, theta) if G.ndim == 3 else ((theta @ G) * theta).sum()
    return float(e.squares - 2 * (theta * e.cross).sum() + fitted)
