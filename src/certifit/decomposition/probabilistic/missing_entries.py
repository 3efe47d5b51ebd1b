"""Rows with holes under x = μ + W z + ε: what the observed entries say of z, and how likely they are.

With O the observed columns of a row, M = σ² I + W_Oᵀ W_O: the code z is N(M⁻¹ W_Oᵀ (x - μ)_O, σ² M⁻¹). Rows with the
same holes share M. Where fewer entries are missing than observed, M is the matrix of complete rows less what the
missing columns would have added. Matrices (k, k) are packed, see `decomposition.probabilistic.em_loops`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.exceptions import DataError
from certifit.numerics.inverses_loops import invert_packed
from certifit.numerics.missing import has_holes
from certifit.numerics.missing_loops import centre, multiply_packed, outer_packed, sum_unmarked
from certifit.numerics.packed import pack, unpack
from certifit.rows import Array, Block

LOG_2PI = float(np.log(2 * np.pi))
WORK = 2**22  # numbers that matrices of rows with holes may fill at a time


class Point(NamedTuple):
    """The parameters."""

    mean: Array  # μ (d,)
    W: Array  # (d, k)
    noise: float  # σ²


class NoNoise(DataError):
    """Without noise the likelihood has no bound."""


def check_noise(noise: float, square: float, k: int, smallest: float = 1e-13) -> None:
    """Refuse a noise variance that is nothing but rounding beside the entries' mean square."""
    if not noise > smallest * square:
        raise NoNoise(
            got=f"rows that n_components={k} components reproduce without error: the noise variance falls to 0 and "
            "the likelihood grows without bound",
            wanted="fewer components than the rows have independent directions",
            fix="Lower n_components, or leave out columns that repeat others.",
        )


class Patterns(NamedTuple):
    """The distinct sets of holes in some rows."""

    missing: Array  # (m, d) bool
    which: Array  # (rows,) each row's


@dataclass(frozen=True)
class Posterior:
    """Codes of some rows."""

    patterns: Patterns
    Z: Array  # (rows, d) x - μ, 0 where missing
    squares: Array  # (rows,) |Z|²
    z: Array  # (rows, k) E z
    inverse: Array  # (m, (k + 1) (k + 2) / 2) M⁻¹ of each pattern, packed; the last k + 1 columns are left free
    log_likelihood: Array  # (rows,) of the observed entries


def find_patterns(X: Array) -> Patterns:
    if not has_holes(X):
        return Patterns(np.zeros((1, X.shape[1]), bool), np.zeros(len(X), np.intp))
    hole = np.isnan(X)
    bits = np.packbits(hole, axis=1)
    keys = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return Patterns(hole[first], which)


def posterior(at: Point, X: Array) -> Posterior:
    """Of rows X (rows, d) of either float."""
    mean, W, noise = at
    k = W.shape[1]
    patterns = find_patterns(X)
    missing, which = patterns
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
    return Posterior(patterns, Z, squares, z, inverse, -0.5 * (constant[which] + distance / noise))


def _precisions(at: Point, missing: Array) -> Array:
    """M of each pattern, packed, and k + 1 free columns: see `Posterior`."""
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
    """`base` + Σ source[j] over the j that each row of `left_out` (r, m) does not mark, in `out`; `total` is of all.

    Whichever is less work and loses fewer digits: summing those, or the total less the others.
    """
    few = 2 * left_out.sum(axis=1) <= left_out.shape[1]
    sum_unmarked(np.ascontiguousarray(left_out), few, source, total, base, out)
    return out


# ------------------------------------------------------------------------------------------ of a block
def pieces(X: Array, k: int) -> list[slice]:
    """Rows to look at together: all of them, but fewer where each has a large matrix of its own."""
    most = max(64, WORK // ((k + 1) * (k + 2) // 2))
    n = 1 if len(X) <= most or not has_holes(X) else -(-len(X) // most)
    step = max(1, -(-len(X) // n))
    return [slice(i, i + step) for i in range(0, len(X), step)]


def _each(at: Point, X: Array) -> Iterator[tuple[Array, Posterior]]:
    return ((X[piece], posterior(at, X[piece])) for piece in pieces(X, at.W.shape[1]))


def codes(at: Point, block: Block) -> Array:
    """E z (rows, k)."""
    return np.concatenate([found.z for _, found in _each(at, block.X)]).astype(block.X.dtype, copy=False)


def covariances(at: Point, block: Block) -> tuple[Array, Array]:
    """E z (rows, k) and Cov z (rows, k, k)."""
    parts = [
        (found.z, at.noise * unpack(found.inverse, at.W.shape[1])[found.patterns.which])
        for _, found in _each(at, block.X)
    ]
    return np.concatenate([z for z, _ in parts]), np.concatenate([C for _, C in parts])


def impute(at: Point, with_deviations: bool, block: Block) -> tuple[Array, Array]:
    """Rows without holes (rows, d), and the standard deviations of what was filled in (none if not asked for)."""
    rows, deviations = [], []
    for X, found in _each(at, block.X):
        missing, which = found.patterns
        rows.append(np.where(missing[which], at.mean + found.z @ at.W.T, X).astype(X.dtype, copy=False))
        if with_deviations:
            M = unpack(found.inverse, at.W.shape[1])  # of each pattern
            explained = np.einsum("jl,pjl->pj", at.W, at.W @ M)
            deviations.append(np.where(missing, np.sqrt(at.noise * (1 + explained)), 0.0)[which])
    return np.concatenate(rows), np.concatenate(deviations) if deviations else np.empty(0)


def log_likelihood(at: Point, block: Block) -> Array:
    """Of each row's observed entries (rows,)."""
    return np.concatenate([found.log_likelihood for _, found in _each(at, block.X)])


def weighted_likelihood(at: Point, block: Block) -> Array:
    """Σ w log p, and Σ w."""
    some = block.w > 0  # what rows without weight say does not count
    rows = block._replace(X=block.X[some], w=block.w[some])
    return np.array([rows.w @ log_likelihood(at, rows) if some.any() else 0.0, block.w.sum()])
