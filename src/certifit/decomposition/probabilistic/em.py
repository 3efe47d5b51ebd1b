"""EM for probabilistic PCA on the observed entries; each step is one pass over the rows.

E step: means and second moments of the codes given each row's observed entries. M step: the regression of each column
on the codes and a constant over the rows that observe it, which gives W and μ, then σ². During a step the prior of
the codes is free, z ~ N(ν, Γ); afterwards W and μ are changed so that it is N(0, I) again. The likelihood is the
same, but steps are larger (parameter-expanded EM).

With automatic relevance determination each column w_j of W has a prior N(0, I / α_j), α_j = d / |w_j|². That is a
penalty d/2 log det WᵀW. α_j |w_j|² / 2 is an upper bound that touches it, so a regression with α fixed lowers both.

A step lowers the objective by at least the gain in expected log-likelihood, which is the gain reported. After every
second step a jump extrapolates the path (SQUAREM); it is undone where the objective rises.
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
from certifit.decomposition.probabilistic.parameters import PPCAParameters, PPCATuning, check_noise
from certifit.decomposition.probabilistic.posterior import pieces, posterior, sums_without
from certifit.exceptions import DataError
from certifit.numerics.missing import has_missing
from certifit.numerics.packed import unpack
from certifit.numerics.packed.packed_loops import add_outer
from certifit.rows import Array, Block, Rows, Sums, tree_sum


@dataclass(frozen=True)
class PPCAExpectedSums(Sums):
    """The sums of an E step, with u = (z, 1); second moments are packed (p,), p = (k + 1) (k + 2) / 2."""

    log_likelihood: float
    weight: float  # Σ w of rows with an observed entry
    entries: float  # Σ w over observed entries
    squares: float  # Σ w (x - μ)² over them
    cross: Array  # (d, k + 1) Σ w (x - μ) E u
    moment: Array  # (p,) Σ w E u uᵀ over all rows
    by_column: Array  # (d, p) the same over the rows that observe a column; (p,) where no entry is missing


def expect(at: PPCAParameters, tuning: PPCATuning, block: Block) -> PPCAExpectedSums:
    """Return the sums of the E step on a block."""
    seen = block.w > 0
    if has_missing(block.X):
        seen &= ~np.isnan(block.X).all(axis=1)
    X, w = (block.X, block.w) if seen.all() else (block.X[seen], block.w[seen])
    parts = [_expect_piece(at, X[piece], w[piece]) for piece in pieces(X, at.W.shape[1], tuning)]
    return tree_sum(parts or [_expect_piece(at, X, w)])


def _expect_piece(at: PPCAParameters, X: Array, w: Array) -> PPCAExpectedSums:
    k = at.W.shape[1]
    found = posterior(at, X)
    missing, which = found.sets
    # Σ w of the rows with each set of missing columns.
    weight = np.bincount(which, w, len(missing))
    # The moments are written over the inverses, which saves memory.
    moments = found.inverse
    moments[:, : -k - 1] *= at.noise * weight[:, None]
    moments[:, -k - 1 :] = 0.0
    add_outer(which, w, found.z, moments)
    moment = moments.sum(axis=0)
    by_column = moment
    if missing.any():
        by_column = np.empty((len(at.W), len(moment)))
        sums_without(missing.T, moments, moment, np.zeros_like(moment), by_column)
    return PPCAExpectedSums(
        float(w @ found.log_likelihood),
        float(w.sum()),
        float(weight @ (~missing).sum(axis=1)),
        float(w @ found.squares),
        found.Z.T @ (w[:, None] * np.column_stack([found.z, np.ones(len(w))])),
        moment,
        by_column,
    )


def check_memory(d: int, k: int, most: int) -> None:
    """Refuse sums of more than `most` numbers: with missing entries every column has its own regression."""
    size = d * (k + 1) * (k + 2) // 2
    if size > most:
        raise DataError(
            got=f"{k} components of {d} columns with missing entries: {8 * size / 1e9:.0f} GB of sums",
            wanted=f"at most {8 * most / 1e9:.1g} GB",
            fix="Ask for fewer components (n_components), or fill in the missing entries.",
        )


def measure(rows: Rows, at: PPCAParameters, tuning: PPCATuning = PPCATuning()) -> PPCAExpectedSums:
    """Return the sums of the E step on all rows."""
    return rows.sum(partial(expect, at, tuning))


def update(
    weight: float, at: PPCAParameters, e: PPCAExpectedSums, tuning: PPCATuning = PPCATuning()
) -> Step[PPCAParameters]:
    """Take the M step; objective and gain are in nats per row, and `weight` is that of all rows."""
    k = at.W.shape[1]
    W, shift, noise, gain = _regress(at, e, np.zeros(k), tuning)
    U = unpack(e.moment, k + 1) / e.weight
    nu, gamma = U[:k, k], U[:k, :k] - np.outer(U[:k, k], U[:k, k])
    values, vectors = eigh(gamma) if k else (np.zeros(0), np.zeros((0, 0)))
    gain += 0.5 * e.weight * float(np.trace(U[:k, :k]) - k - np.log(values).sum())
    following = PPCAParameters(at.mean + shift + W @ nu, W @ ((vectors * np.sqrt(values)) @ vectors.T), noise)
    return Step(following, -e.log_likelihood / weight, max(0.0, gain) / weight)


def update_relevant(
    weight: float, at: PPCAParameters, e: PPCAExpectedSums, tuning: PPCATuning = PPCATuning()
) -> Step[PPCAParameters]:
    """Take the M step with automatic relevance determination; W has orthogonal columns before and after.

    Where a column of W is nearly 0 the gain is set to 0, so that the loop ends and `prune` drops the column.
    """
    d, k = at.W.shape
    sizes = (at.W**2).sum(axis=0)
    objective = penalty(at.W) - e.log_likelihood
    if prune(at, tuning).W.shape[1] < k:
        return Step(at, objective / weight, 0.0)
    W, shift, noise, gain = _regress(at, e, d / sizes, tuning)
    gain += 0.5 * float(d / sizes @ (sizes - (W**2).sum(axis=0)))
    following = PPCAParameters(at.mean + shift, _rotate_to_orthogonal(W), noise)
    return Step(following, objective / weight, max(0.0, gain) / weight)


def _rotate_to_orthogonal(W: Array) -> Array:
    """Return W rotated so that its columns are orthogonal, with signs that keep each near its column of W."""
    left, lengths, _ = np.linalg.svd(W, full_matrices=False)
    return left * lengths * np.where((left * W).sum(axis=0) < 0, -1.0, 1.0)


def penalty(W: Array) -> float:
    """Return the penalty d/2 log det WᵀW of W with orthogonal columns, in nats over all rows."""
    return 0.5 * len(W) * float(np.log((W**2).sum(axis=0)).sum())


def prune(at: PPCAParameters, tuning: PPCATuning = PPCATuning()) -> PPCAParameters:
    """Return the parameters without the columns of W that are nearly 0."""
    return at._replace(W=at.W[:, (at.W**2).sum(axis=0) > tuning.irrelevant * at.noise])


# ------------------------------------------------------------------------------------------ longer steps
class EMPath(NamedTuple):
    """Parameters, and the steps that led to them."""

    parameters: PPCAParameters
    last: PPCAParameters | None = None  # the parameters one EM step before
    fallback: PPCAParameters | None = None  # the result of plain EM, where `parameters` come from a jump
    limit: float = np.inf  # the objective above which a jump is undone


MStep = Callable[[PPCAParameters, PPCAExpectedSums], Step[PPCAParameters]]


def accelerate(step: MStep, longest: float, at: EMPath, e: PPCAExpectedSums) -> Step[EMPath]:
    """Take an EM step, and after every second one a jump, which is undone where the objective rises."""
    found = step(at.parameters, e)
    if at.fallback is not None and not found.objective <= at.limit:
        return Step(EMPath(at.fallback), found.objective, np.inf)
    if at.last is None:
        return Step(EMPath(found.params, last=at.parameters), found.objective, found.gain)
    jump = _extrapolate(at.last, at.parameters, found.params, longest)
    return Step(EMPath(jump, fallback=found.params, limit=found.objective), found.objective, found.gain)


def _extrapolate(a: PPCAParameters, b: PPCAParameters, c: PPCAParameters, longest: float) -> PPCAParameters:
    """Extrapolate three points of a path that converges linearly (Varadhan & Roland, SQUAREM, 2008)."""
    scale, (d, k) = np.sqrt(a.noise), a.W.shape
    x, y, z = (np.concatenate([(p.mean - a.mean) / scale, p.W.ravel() / scale, [np.log(p.noise)]]) for p in (a, b, c))
    first, bend = y - x, (z - y) - (y - x)
    size = float(np.linalg.norm(bend))
    reach = max(1.0, float(np.linalg.norm(first)) / size) if size > 0 else 1.0
    far = x + 2 * reach * first + reach**2 * bend
    noise = c.noise * float(np.exp(np.clip(far[-1] - z[-1], -longest, longest)))
    return PPCAParameters(a.mean + scale * far[:d], _rotate_to_orthogonal(scale * far[d:-1].reshape(d, k)), noise)


def _regress(
    at: PPCAParameters, e: PPCAExpectedSums, alpha: Array, tuning: PPCATuning
) -> tuple[Array, Array, float, float]:
    """Regress columns on codes: return W, the change of μ, σ², and the gain in expected log-likelihood."""
    k = len(alpha)
    # (d, k + 1, k + 1), or one matrix for all columns
    G = unpack(e.by_column, k + 1)
    old = np.column_stack([at.W, np.zeros(len(at.W))])
    penalised = G + at.noise * np.diag(np.append(alpha, 0.0))
    if G.ndim == 3:
        new = np.linalg.solve(penalised, e.cross[..., None])[..., 0]
    else:
        new = np.linalg.solve(penalised, e.cross.T).T
    before, after = _residual(old, e, G), _residual(new, e, G)
    noise = after / e.entries
    check_noise(noise, e.squares / e.entries, k, tuning.smallest_noise)
    gain = 0.5 * (e.entries * (np.log(at.noise / noise) - 1.0) + before / at.noise)
    return new[:, :k], new[:, k], noise, float(gain)


def _residual(theta: Array, e: PPCAExpectedSums, G: Array) -> float:
    """Return Σ w E (x - μ - θ·u)² over observed entries, θ (d, k + 1)."""
    fitted = np.einsum("ji,jil,jl->", theta, G, theta) if G.ndim == 3 else ((theta @ G) * theta).sum()
    return float(e.squares - 2 * (theta * e.cross).sum() + fitted)
