"""Tangent spaces of the rows' neighbourhoods, and the matrix F of local errors that they give.

F Y holds what of the neighbours' coordinates is no affine function of tangent coordinates ('ltsa': all of it;
'hessian': its quadratic part). The neighbourhood of a row are its neighbours; a row that is no other's neighbour
belongs to its own. `TangentRule` of the checker decides what the methods leave open.
References: Zhang & Zha, Principal manifolds and nonlinear dimensionality reduction via tangent space alignment
(2004); Donoho & Grimes, Hessian eigenmaps (2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.manifold.tangent_forms import TangentRule, count_tangents, lone_rows, tangent_errors
from certifit.manifold.reconstruction_weights import LocalSystems
from certifit.rows import Array
from certifit.rows.threads import parallel_map


@dataclass(frozen=True)
class TangentTuning:
    """How many neighbourhoods are looked at at a time, and which directions are tangent."""

    entries: int = 2**19  # of the differences between rows and their neighbours
    rule: TangentRule = field(default_factory=TangentRule)


class TangentErrors(NamedTuple):
    """Local errors of some rows."""

    errors: Array  # (rows, s, q) columns of F over the neighbourhood, padded by columns of zeros
    gap: Array  # (rows,) of variances at the border of the tangent space
    shortest: Array  # (rows,) length of the shortest product of directions that is used
    open: int  # rows for which the rule decided


def tangent_systems(
    X: Array, neighbours: Array, components: int, hessian: bool, tuning: TangentTuning = TangentTuning()
) -> LocalSystems:
    """Fit a tangent space to the neighbourhood of each row of X (n, d): several rows of F for each."""
    n, size = neighbours.shape
    lone = lone_rows(neighbours)
    gap, shortest = np.empty(n), np.empty(n)
    parts, owners, left_open, off = [], [], 0, 0.0
    for alone in (False, True):
        rows = np.flatnonzero(lone == alone)
        step = max(1, tuning.entries // (size * max(size, X.shape[1])))
        some = [rows[i : i + step] for i in range(0, len(rows), step)]
        find = partial(_tangent_errors, X, neighbours, alone, components, hessian, tuning.rule)
        for here, found in zip(some, parallel_map(find, some), strict=True):
            gap[here], shortest[here] = found.gap, found.shortest
            left_open += found.open
            off = max(off, float(np.abs(found.errors.sum(axis=1)).max(initial=0.0)))
            columns = np.column_stack([neighbours[here], here]) if alone else neighbours[here]
            F, owner = _sparse_errors(found.errors, columns, here, n)
            parts.append(F)
            owners.append(owner)
    F, owner = sparse.vstack(parts, format="csr"), np.concatenate(owners)
    F.sort_indices()
    return LocalSystems(F, owner, off, tangent_errors(size, gap, shortest), left_open)


def _sparse_errors(errors: Array, columns: Array, rows: Array, n: int) -> tuple[Any, Array]:
    """The rows of F (m, n) for neighbourhoods `columns` (rows, s), and whose they are; columns of zeros are none."""
    place, column = np.nonzero(errors.any(axis=1))
    data = errors[place, :, column]
    m, s = data.shape
    F = sparse.csr_array((data.ravel(), columns[place].ravel(), np.arange(0, m * s + 1, s)), shape=(m, n))
    return F, rows[place]


def _tangent_errors(
    X: Array, neighbours: Array, alone: bool, components: int, hessian: bool, rule: TangentRule, rows: Array
) -> TangentErrors:
    Z = X[neighbours[rows]] - X[rows, None]
    if alone:
        Z = np.concatenate([Z, np.zeros((len(rows), 1, X.shape[1]))], axis=1)
    Z -= Z.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    values, vectors = np.maximum(values[:, ::-1], 0.0), vectors[:, :, ::-1]
    total = values.sum(axis=1, keepdims=True)
    values = values / np.where(total > 0, total, 1.0)
    kept = count_tangents(values, components, rule)
    every = np.arange(len(rows))
    below = values[every, np.minimum(kept, values.shape[1] - 1)]
    gap = np.where(kept == 0, np.inf, values[every, np.maximum(kept - 1, 0)] - below)
    s = Z.shape[1]
    U = vectors[:, :, :components] * (np.arange(components) < kept[:, None])[:, None]
    affine = np.concatenate([np.full((len(rows), s, 1), s**-0.5), U], axis=2)
    outside = np.arange(s) > kept[:, None]  # a column of zeros among U leaves one more outside
    errors = np.linalg.qr(affine, mode="complete")[0] * outside[:, None]
    shortest, left_open = np.ones(len(rows)), kept < components
    if hessian:
        quadratic, length, dropped = _quadratic_errors(affine, rule)
        there = ~left_open & quadratic.any(axis=(1, 2))
        left_open |= dropped > 0
        errors[there] = 0.0
        errors[there, :, : quadratic.shape[2]] = quadratic[there]
        shortest = np.where(there, length, 1.0)
    return TangentErrors(errors, gap, shortest, int(left_open.sum()))


def _quadratic_errors(affine: Array, rule: TangentRule) -> tuple[Array, Array, Array]:
    """Products of two directions, orthonormal to 1, the directions and each other, by Gram-Schmidt twice.

    Those shorter than the rule says are functions of the others, and 0 here.
    """
    m, k = len(affine), affine.shape[2] - 1
    basis = affine
    found, shortest, dropped = [], np.ones(m), np.zeros(m, int)
    for a in range(k):
        for b in range(a, k):
            product = affine[:, :, 1 + a] * affine[:, :, 1 + b]
            used = product.any(axis=1)
            size = np.linalg.norm(product, axis=1, keepdims=True)
            rest = product / np.where(size > 0, size, 1.0)
            for _ in range(2):
                rest = rest - (basis @ (basis.transpose(0, 2, 1) @ rest[:, :, None]))[:, :, 0]
            length = np.linalg.norm(rest, axis=1)
            long = length > rule.flat
            shortest = np.where(long, np.minimum(shortest, length), shortest)
            dropped += used & ~long
            rest = np.where(long[:, None], rest / np.where(long, length, 1.0)[:, None], 0.0)
            basis = np.concatenate([basis, rest[:, :, None]], axis=2)
            found.append(rest)
    return np.stack(found, axis=2), shortest, dropped
