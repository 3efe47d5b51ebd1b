"""The posterior of the codes z given a row's observed entries under x = μ + W z + ε, and the entries' likelihood.

With O the observed columns of a row and M = σ² I + W_Oᵀ W_O, the code z is N(M⁻¹ W_Oᵀ (x - μ)_O, σ² M⁻¹). Rows with
the same missing columns share M. Where fewer entries are missing than observed, M is the matrix of complete rows
minus what the missing columns would have added. Matrices (k, k) are packed, see `numerics.packed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.decomposition.probabilistic.parameters import PPCAParameters, PPCATuning
from certifit.numerics.missing import has_missing
from certifit.numerics.missing_loops import centre
from certifit.numerics.packed import pack, unpack
from certifit.numerics.packed.inverses_loops import invert_packed
from certifit.numerics.packed.packed_loops import multiply_packed, outer_packed, sum_unmarked
from certifit.rows import Array, Block

LOG_2PI = float(np.log(2 * np.pi))


class MissingColumnSets(NamedTuple):
    """The distinct sets of columns that are missing in some rows."""

    missing: Array  # (m, d) bool
    which: Array  # (rows,) the number of each row's set


@dataclass(frozen=True)
class CodePosterior:
    """The posterior of the codes of some rows."""

    sets: MissingColumnSets
    Z: Array  # (rows, d) x - μ, 0 where missing
    squares: Array  # (rows,) |Z|²
    z: Array  # (rows, k) E z
    inverse: Array  # (m, (k + 1) (k + 2) / 2) M⁻¹ of each set, packed; the last k + 1 columns are not set
    log_likelihood: Array  # (rows,) of the observed entries


def missing_column_sets(X: Array) -> MissingColumnSets:
    """Find the distinct sets of missing columns of the rows of X."""
    if not has_missing(X):
        return MissingColumnSets(np.zeros((1, X.shape[1]), bool), np.zeros(len(X), np.intp))
    missing = np.isnan(X)
    bits = np.packbits(missing, axis=1)
    keys = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return MissingColumnSets(missing[first], which)


def posterior(at: PPCAParameters, X: Array) -> CodePosterior:
    """Return the posterior of the codes of rows X (rows, d), float32 or float64."""
    mean, W, noise = at
    k = W.shape[1]
    sets = missing_column_sets(X)
    missing, which = sets
    Z = np.empty(X.shape)
    centre(X, mean, Z)
    inverse = _precisions(at, missing)
    log_det = np.empty(len(missing))
    invert_packed(inverse, k, log_det)
    b = Z @ W
    z = np.empty_like(b)
    if len(missing) == 1:
        z = b @ unpack(inverse[0], k)
    else:
        multiply_packed(inverse, which, b, z)
    observed = (~missing).sum(axis=1)
    constant = observed * LOG_2PI + (observed - k) * np.log(noise) + log_det
    squares = np.einsum("ij,ij->i", Z, Z)
    distance = squares - np.einsum("ij,ij->i", b, z)
    return CodePosterior(sets, Z, squares, z, inverse, -0.5 * (constant[which] + distance / noise))


def _precisions(at: PPCAParameters, missing: Array) -> Array:
    """Return M of each set of missing columns, packed, with k + 1 more columns: see `CodePosterior`."""
    k = at.W.shape[1]
    whole, diagonal = pack(at.W.T @ at.W), at.noise * pack(np.eye(k))
    M = np.empty((len(missing), len(whole) + k + 1))
    if not missing.any():
        M[:, : len(whole)] = whole + diagonal
        return M
    outer = np.empty((len(at.W), len(whole)))
    outer_packed(at.W, outer)
    return sums_without(missing, outer, whole, diagonal, M)


def sums_without(left_out: Array, source: Array, total: Array, base: Array, out: Array) -> Array:
    """Write base + Σ source[j], over the j that a row of `left_out` (r, m) does not mark, to each row of `out`.

    `total` is the sum over all j. Either the unmarked ones are added or the marked ones are subtracted from the
    total, whichever are fewer: that is faster and more accurate.
    """
    few = 2 * left_out.sum(axis=1) <= left_out.shape[1]
    sum_unmarked(np.ascontiguousarray(left_out), few, source, total, base, out)
    return out


# ------------------------------------------------------------------------------------------ of a block
def pieces(X: Array, k: int, tuning: PPCATuning) -> list[slice]:
    """Cut rows into runs: one, or several where entries are missing and the rows' matrices need much memory."""
    most = max(64, tuning.matrix_numbers // ((k + 1) * (k + 2) // 2))
    n = 1 if len(X) <= most or not has_missing(X) else -(-len(X) // most)
    step = max(1, -(-len(X) // n))
    return [slice(i, i + step) for i in range(0, len(X), step)]


def _posteriors(at: PPCAParameters, tuning: PPCATuning, X: Array) -> Iterator[tuple[Array, CodePosterior]]:
    return ((X[piece], posterior(at, X[piece])) for piece in pieces(X, at.W.shape[1], tuning))


def codes(at: PPCAParameters, tuning: PPCATuning, block: Block) -> Array:
    """Return the posterior means E z (rows, k)."""
    z = np.concatenate([found.z for _, found in _posteriors(at, tuning, block.X)])
    return z.astype(block.X.dtype, copy=False)


def covariances(at: PPCAParameters, tuning: PPCATuning, block: Block) -> tuple[Array, Array]:
    """Return the posterior means E z (rows, k) and covariances (rows, k, k)."""
    parts = [
        (found.z, at.noise * unpack(found.inverse, at.W.shape[1])[found.sets.which])
        for _, found in _posteriors(at, tuning, block.X)
    ]
    return np.concatenate([z for z, _ in parts]), np.concatenate([C for _, C in parts])


def impute(at: PPCAParameters, tuning: PPCATuning, with_deviations: bool, block: Block) -> tuple[Array, Array]:
    """Return rows (rows, d) with missing entries filled in, and their standard deviations where asked for."""
    rows, deviations = [], []
    for X, found in _posteriors(at, tuning, block.X):
        missing, which = found.sets
        rows.append(np.where(missing[which], at.mean + found.z @ at.W.T, X).astype(X.dtype, copy=False))
        if with_deviations:
            M = unpack(found.inverse, at.W.shape[1])
            explained = np.einsum("jl,pjl->pj", at.W, at.W @ M)
            deviations.append(np.where(missing, np.sqrt(at.noise * (1 + explained)), 0.0)[which])
    return np.concatenate(rows), np.concatenate(deviations) if deviations else np.empty(0)


def log_likelihood(at: PPCAParameters, tuning: PPCATuning, block: Block) -> Array:
    """Return the log-likelihood of each row's observed entries (rows,)."""
    return np.concatenate([found.log_likelihood for _, found in _posteriors(at, tuning, block.X)])


def weighted_likelihood(at: PPCAParameters, tuning: PPCATuning, block: Block) -> Array:
    """Return Σ w log p and Σ w of a block."""
    # Rows of weight 0 are left out: their likelihood may be 0, and 0 times minus infinity is NaN.
    some = block.w > 0
    rows = block._replace(X=block.X[some], w=block.w[some])
    return np.array([rows.w @ log_likelihood(at, tuning, rows) if some.any() else 0.0, block.w.sum()])
