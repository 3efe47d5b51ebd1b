"""Linear support vector machines of all classes at once, re-checked from the data; see `checkers.svm.joint`.

The dual point comes from the scores: the projection of u z / h onto the loss's domain for several h, at biases where
its sums balance; then, for the rows where that decides, from the proximal method of multipliers (Rockafellar 1976).
Stored dual variables are tried first. The best bound counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.coordinates import centre, no_intercept
from certifit.checkers.plain.blocks import dense
from certifit.checkers.svm.joint import (
    CLAIM,
    EPS,
    Loss,
    Spec,
    feasible,
    lower_bound,
    objective,
    rounding,
    signed,
    slacks,
)
from certifit.checkers.svm.linear import ROUNDING, told
from certifit.checkers.svm.linear_rows import ROUNDS, descend, left, pull, scores, targets, weights
from certifit.core import Certificate
from certifit.rows import Array, Rows

WIDTHS = 10.0 ** -np.arange(0.0, 7.0, 1.0)  # h, in units of the margin
MANY, EACH = 2048, 4  # rows that are solved for: the first, or so many for each parameter
WIDE = 1000  # parameters beyond which no system is solved
NARROWEST = 1e-3  # h of the method of multipliers at first
STIFFER = 2.0  # in each round


def certify(
    coef: Array, intercept: Array, spec: Spec, tol: float, rows: Rows, dual: Array | None = None
) -> Certificate:
    """Check β (k, d) and b (k,), or the differences (1, d) and (1,) of two classes; y are class numbers, w include
    class weights; `dual` (k, n) is α."""
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    m = centre(rows) if spec.rho == 0 else np.zeros(rows.n_features)
    b = intercept + coef @ m
    checks = (no_intercept(b),) if spec.rho is None else ()
    if spec.rho == 0:
        b = b - b.mean()  # common to all classes: changes nothing, and may be large where columns lie far from 0
    F = rows.map(partial(scores, coef, b, m))
    y, u = rows.map(targets).astype(np.int64), spec.C * rows.map(weights)
    value = objective(spec, F, y, u, float((coef**2).sum()), b)
    best = max(_bounds(spec, np.column_stack([coef, b]), F, y, u, m, tol * value, value, rows, dual))
    off = rounding(spec, u, len(coef)) + ROUNDING * float(u.sum()) * float((np.abs(coef) @ np.abs(m)).sum())
    checks = (*checks, told(off, value, float(np.abs(coef).max())))
    return Certificate("optimal", CLAIM, value, min(best, value), tol, (tol + 1e-12) * value + off, checks)


def _bounds(
    spec: Spec, theta: Array, F: Array, y: Array, u: Array, m: Array, tol: float, value: float, rows: Rows,
    dual: Array | None,
) -> Iterator[float]:  # fmt: skip
    """One bound after another, until they prove enough. θ is (k, d + 1)."""

    def proved(alpha: Array) -> float:
        alpha = feasible(spec, alpha, y, u)
        return lower_bound(spec, alpha, y, float((rows.sum(partial(pull, alpha, m)) ** 2).sum()))

    if dual is not None and dual.shape == F.T.shape:
        found = proved(np.asarray(dual, np.float64).T)
        yield found
        if value - found <= tol:
            return
    k = theta.shape[0]
    ones, held = np.ones((len(y), 1)), np.array([0.0])
    best, start, offset = -np.inf, (WIDTHS[0], np.zeros(F.shape)), np.zeros((k, 1))
    for h in WIDTHS * spec.loss.margin:
        smooth = Smooth(spec.loss, y, u, F, h, np.zeros_like(F))
        if spec.rho == 0:  # biases at which the sums balance
            offset = smooth.minimise(ones, held, np.zeros((k, 1)), offset, 0.0)
        q = smooth.at(ones @ offset.T)
        found = proved(signed(q, y))
        if found > best:
            best, start = found, (h, q)
        yield found
    if value - best > tol and theta.size <= WIDE:
        yield proved(_near(spec, theta, F, y, u, m, *start, tol, rows))


class Smooth(NamedTuple):
    """Σ u L, smoothed: max over q in the domain of q·z - h/(2u) |q - old|²."""

    loss: Loss
    y: Array  # (n,)
    u: Array  # (n,)
    F: Array  # (n, k) scores, to which more are added
    h: float
    old: Array  # (n, k)

    def at(self, more: Array) -> Array:
        """The best q."""
        z = slacks(self.loss, self.F + more, self.y)
        return self.loss.project(self.old + self.u[:, None] / self.h * z, self.y, self.u)

    def value(self, more: Array, q: Array) -> float:
        z = slacks(self.loss, self.F + more, self.y)
        counted = self.u > 0
        away = ((q - self.old)[counted] ** 2).sum(axis=1) / self.u[counted]
        return float((q * z).sum()) - 0.5 * self.h * float(away.sum())

    def minimise(self, Z: Array, G: Array, c: Array, theta: Array, tol: float) -> Array:
        """min over θ (k, d1) of this at the scores F + Z θᵀ, plus ½ Σ G θ² - c·θ: Newton's method from θ."""

        def total(theta: Array) -> tuple[float, Array]:
            more = Z @ theta.T
            q = self.at(more)
            return self.value(more, q) + 0.5 * float((G * theta**2).sum()) - float((c * theta).sum()), q

        def gradient(theta: Array, q: Array) -> Array:
            return G * theta - c - signed(q, self.y).T @ Z

        return descend(total, gradient, partial(self._hessian, Z, G), G, theta, tol).theta

    def _hessian(self, Z: Array, G: Array, q: Array) -> Array:
        """Classes j and k pull at each other: (e_j - e_k) (e_j - e_k)ᵀ ⊗ Σ ties z zᵀ, added up over pairs.

        Adding one number to all scores changes nothing: free biases get a spring against that.
        """
        k, d1 = q.shape[1], Z.shape[1]
        H = np.zeros((k, d1, k, d1))
        for i in range(k):
            for j in range(i):
                tie = self.u / self.h * self.loss.ties(q, self.y, self.u, i, j)
                S = (Z * tie[:, None])[tie > 0].T @ Z[tie > 0]
                H[i, :, i] += S
                H[j, :, j] += S
                H[i, :, j] -= S
                H[j, :, i] -= S
        free = np.flatnonzero(G == 0)
        H[:, free[:, None], :, free] += np.mean([H[c, free, c, free].sum() for c in range(k)]) / k + EPS
        flat = H.reshape(k * d1, k * d1)
        flat[np.diag_indices(k * d1)] += np.tile(G, k)
        return flat


def _near(
    spec: Spec, theta: Array, F: Array, y: Array, u: Array, m: Array, h: float, q: Array, tol: float, rows: Rows
) -> Array:
    """α that is exact for the rows where the loss bends near their scores, the others being where it is linear."""
    loss, n = spec.loss, len(y)
    count = min(n, max(MANY, EACH * theta.size))
    narrow = max(NARROWEST * loss.margin, h)
    bends = Smooth(loss, y, u, F, narrow, np.zeros_like(F)).at(np.zeros_like(F))
    inner = np.minimum(bends, u[:, None] - bends).max(axis=1) / np.where(u > 0, u, 1.0)
    top = np.sort(slacks(loss, F, y), axis=1)
    closeness = np.where(inner > 0, 1 + inner, -np.abs(np.diff(top, axis=1)).min(axis=1))
    near = np.sort(np.argpartition(np.where(u > 0, -closeness, np.inf), count - 1)[:count])
    far = signed(Smooth(loss, y, u, F, EPS, np.zeros_like(F)).at(np.zeros_like(F)), y)
    far[near] = 0.0
    Z, G = dense(rows.take(near).X) - m, np.ones(rows.n_features)
    c = rows.sum(partial(pull, far, m))
    if spec.rho is not None:
        Z, G, c = np.column_stack([Z, np.ones(count)]), np.append(G, spec.rho), np.column_stack([c, far.sum(axis=0)])
    theta = theta[:, : len(G)]
    far[near] = _multipliers(loss, y[near], u[near], Z, G, c, theta, q[near], narrow, tol)
    return far


def _multipliers(
    loss: Loss, y: Array, u: Array, Z: Array, G: Array, c: Array, theta: Array, q: Array, h: float, tol: float
) -> Array:
    """α for these rows at the minimum of their losses + ½ Σ G θ² - c·θ, from q: each round adds h/2u |q - q'|² to the
    dual, q' the last q."""
    none, best = np.zeros(q.shape), (np.inf, signed(q, y))
    for _ in range(ROUNDS):
        smooth = Smooth(loss, y, u, none, h, q)
        theta = smooth.minimise(Z, G, c, theta, tol)
        F = Z @ theta.T
        q = smooth.at(F)
        alpha = signed(q, y)
        z = slacks(loss, F, y)
        gap = float(u @ loss.value(z) - (q * z).sum()) + left(G * theta - c - alpha.T @ Z, G, theta)
        best = min(best, (gap, alpha), key=lambda found: found[0])
        if gap <= 0.1 * tol:
            break
        h /= STIFFER
    return best[1]
