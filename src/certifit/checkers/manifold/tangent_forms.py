"""Local forms of the methods that fit a tangent space to the neighbours of each row, computed again plainly.

With U the leading directions of the centred neighbours (orthonormal, orthogonal to 1) and P the projector on a span:

* 'ltsa', local tangent space alignment: yᵀ(I - P[1, U])y, what of the neighbours' coordinates y is not an affine
  function of their tangent coordinates (Zhang & Zha 2004);
* 'hessian', Hessian eigenmaps: yᵀ(P[1, U, UU] - P[1, U])y, UU all products of two of them: the quadratic part
  alone (Donoho & Grimes 2003).

The neighbourhood of a row are its neighbours; a row that is no other's neighbour belongs to its own, or its
coordinates would be free. `TangentRule` decides what the methods leave open; where there is no tangent space of the
size wanted, or no quadratic part, 'hessian' counts what 'ltsa' does, or coordinates would be free there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from certifit.checkers.manifold.local_systems import EPS, LocalErrors, LocalForms
from certifit.rows import Array

TangentMethod = Literal["", "ltsa", "hessian"]


@dataclass(frozen=True)
class TangentRule:
    """Which directions span a tangent space, where variances (which add up to 1) are equal or vanish."""

    equal: float = 1e-8  # variances that differ by no more are equal: their directions are left out together
    flat: float = 1e-6  # length, of a unit product of two directions, below which it is a function of the others


def lone_rows(neighbours: Array) -> Array:
    """Whether each row (n,) is no other row's neighbour."""
    n = len(neighbours)
    return np.bincount(neighbours.ravel(), minlength=n) == 0


def count_tangents(values: Array, components: int, rule: TangentRule) -> Array:
    """How many leading directions of each row (n,) are taken, by their variances (n, m), descending, of sum 1."""
    padded = np.column_stack([values, np.zeros(len(values))])
    border = padded[:, :components] - padded[:, 1 : components + 1] > rule.equal
    return np.asarray(np.where(border, np.arange(1, components + 1), 0).max(axis=1))


def tangent_errors(size: int, gap: Array, shortest: Array) -> LocalErrors:
    """Bound how far rounding moves the local forms: by gaps of variances (n,), and by the shortest product (n,)."""
    n = len(gap)
    turned = 4 * size * EPS / gap  # the tangent space as a whole (Davis & Kahan 1970)
    moved = (turned + 4 * size * EPS) * (1 + 4 * np.sqrt(size) / shortest)
    # There are no plain weights: no system passes on its own rounding.
    return LocalErrors(np.zeros((n, size)), 1.0, np.zeros(n), np.zeros(n), moved)


def tangent_forms(
    X: Array, neighbours: Array, components: int, method: TangentMethod, rule: TangentRule = TangentRule()
) -> LocalForms:
    """Return the local forms of rows X (n, d) with these neighbours (n, size), row by row."""
    n, size = neighbours.shape
    lone = lone_rows(neighbours)
    B, gap, shortest = np.empty((n, size, size)), np.empty(n), np.ones(n)
    left_open, off = 0, 0.0
    for i in range(n):
        Z = X[neighbours[i]] - X[i]
        Z = np.vstack([Z, np.zeros(X.shape[1])]) if lone[i] else Z
        left, sigma, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
        variances = sigma**2 / ((sigma**2).sum() or 1.0)
        kept = int(count_tangents(variances[None], components, rule)[0])
        gap[i] = _gap(variances, kept)
        affine = np.column_stack([np.full(len(Z), len(Z) ** -0.5), left[:, :kept]])
        form, dropped = np.eye(len(Z)) - _projector(affine), 0
        if method == "hessian" and kept == components:
            quadratic, length, dropped = _quadratic_form(affine, rule)
            if quadratic.any():
                form, shortest[i] = quadratic, length
        off = max(off, float(np.abs(form.sum(axis=1)).max()))
        left_open += kept < components or dropped > 0
        B[i] = form[:size, :size]
    return LocalForms(B, off, tangent_errors(size, gap, shortest), left_open)


def _gap(variances: Array, kept: int) -> float:
    if kept == 0:
        return np.inf
    return float(variances[kept - 1] - (variances[kept] if kept < len(variances) else 0.0))


def _projector(basis: Array) -> Array:
    """The projector on the span of a basis (s, m) of full rank."""
    Q = np.linalg.qr(basis)[0]
    return Q @ Q.T


def _quadratic_form(affine: Array, rule: TangentRule) -> tuple[Array, float, int]:
    """P[1, U, UU] - P[1, U], the shortest product that is used, and how many are functions of the others."""
    size, tangents = len(affine), affine[:, 1:]
    Q = np.linalg.qr(affine)[0]
    shortest, dropped, form = 1.0, 0, np.zeros((size, size))
    for a in range(tangents.shape[1]):
        for b in range(a, tangents.shape[1]):
            product = tangents[:, a] * tangents[:, b]
            rest = product / (np.linalg.norm(product) or 1.0)
            for _ in range(2):
                rest = rest - Q @ (Q.T @ rest)
            length = float(np.linalg.norm(rest))
            if length <= rule.flat:
                dropped += 1
                continue
            shortest = min(shortest, length)
            rest = rest / length
            Q, form = np.column_stack([Q, rest]), form + np.outer(rest, rest)
    return form, shortest, dropped
