"""Linear support vector machines re-checked from the data: a feasible dual point and the gap it proves.

    P(β, b) = ½ |β|² + ρ/2 b² + Σ uᵢ φ(zᵢ),   zᵢ = qᵢ - sᵢ (β·xᵢ + b),   φ(z) = max 0 <= a <= top of a (z+e) - a²/2κ
    P >= Σ [aᵢ (qᵢ + e) - aᵢ² / (2κuᵢ)] - ½ |v|² - v_b² / (2ρ),   v = Σ aᵢ sᵢ xᵢ,   v_b = Σ aᵢ sᵢ

for all 0 <= aᵢ <= top uᵢ, u = C w, with v_b = 0 where the intercept is free (ρ = 0). Labels ±1 are s with q = 1;
numbers y within ε give each row two sides. The dual point comes from the slacks: φ' where the loss is smooth; for the
hinge that of its kink rounded over some width. Where that does not prove enough, the rows near the kink are solved
for by the proximal method of multipliers (Rockafellar 1976). Stored dual variables are tried too. The best bound
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, lsq_linear

from certifit.checkers.linear_model.coordinates import centre, no_intercept
from certifit.checkers.plain.blocks import dense
from certifit.checkers.svm.linear_rows import ROUNDS, descend, left, pull, scores, targets, weights
from certifit.core import Certificate, Check
from certifit.rows import Array, Rows

CLAIM = "losses and penalty within gap of their minimum"
WIDTHS = 10.0 ** -np.arange(0.0, 7.0, 0.5)  # of the rounded kink, in units of the targets
MANY = 2048  # rows near the kink that are solved for, or so many for each column:
EACH = 8
WIDE = 4000  # columns beyond which no system is solved
NARROWEST = 1e-3  # width, in the same units, of what the method of multipliers adds at first
ROUNDING = 8 * np.finfo(float).eps  # of a slack, relative to its target and to what the intercept makes up for
HIDDEN = 1e-2  # most of the objective that rounding may be
TINY = float(np.finfo(float).tiny)
STIFFER = 2.0  # in each round


class Spec(NamedTuple):
    """The problem that a model says it has solved."""

    kappa: float
    e: float
    top: float
    C: float
    rho: float | None  # None: no intercept; 0: a free one
    epsilon: float | None = None  # None: classes, one against the rest


class Slacks(NamedTuple):
    """One side of each row after the other; where rows have two sides, the second ones after all first ones."""

    z: Array
    s: Array
    q: Array
    u: Array


class Dual(NamedTuple):
    """A dual point, as it enters the bound."""

    a: Array
    v: Array  # (d,)


def certify(
    coef: Array, intercept: Array, spec: Spec, tol: float, rows: Rows, dual: Array | None = None
) -> Certificate:
    """Check β (k, d) and b (k,); y are class numbers or numbers, w include class weights; `dual` (k, n) is Σ s a
    of each row's sides."""
    m = centre(rows) if spec.rho == 0 else np.zeros(rows.n_features)
    b = intercept + coef @ m
    checks = (no_intercept(b),) if spec.rho is None else ()
    eta = rows.map(partial(scores, coef, b, m))
    y, w = rows.map(targets), rows.map(weights)
    objective = bound = rounding = 0.0
    for c in range(len(coef)):
        at = _slacks(eta[:, c], y, w, spec, c if len(coef) > 1 else 1)
        losses = float(at.u @ _loss(at.z, spec))
        value = losses + 0.5 * float(coef[c] @ coef[c]) + 0.5 * (spec.rho or 0.0) * float(b[c] ** 2)
        given = [] if dual is None else [at.s * np.tile(dual[c], len(at.s) // rows.n_rows)]
        points = _dual_points(given, at, spec, m, rows)
        best = max(_bounds(at, spec, coef[c], b[c], m, value, tol, points, rows))
        objective, bound = objective + value, bound + min(best, value)
        rounding += ROUNDING * float(at.u @ np.abs(at.q) + at.u.sum() * (np.abs(coef[c]) @ np.abs(m)))
    checks = (*checks, told(rounding, objective, float(np.abs(coef).max())))
    return Certificate("optimal", CLAIM, objective, bound, tol, (tol + 1e-12) * objective + rounding, checks)


def told(rounding: float, objective: float, steepest: float) -> Check:
    """A proof that rounding could undo is none; but a flat function that misses nothing may cost nothing."""
    share = rounding / max(objective, TINY) if steepest > 0 else 0.0
    return Check("rounding in the objective, relative", share, HIDDEN)


def _slacks(eta: Array, y: Array, w: Array, spec: Spec, code: int) -> Slacks:
    u = spec.C * w
    if spec.epsilon is None:
        s, q = np.where(y == code, 1.0, -1.0), np.ones(len(y))
    else:
        s, u, eta = np.repeat([1.0, -1.0], len(y)), np.tile(u, 2), np.tile(eta, 2)
        q = s * np.tile(y, 2) - spec.epsilon
    return Slacks(q - s * eta, s, q, u)


def _slope(z: Array, spec: Spec) -> Array:
    if np.isinf(spec.kappa):
        return np.where(z + spec.e > 0, spec.top, 0.0)
    return np.clip(spec.kappa * (z + spec.e), 0.0, spec.top)


def _loss(z: Array, spec: Spec) -> Array:
    a = _slope(z, spec)
    return a * (z + spec.e) - a * a / (2 * spec.kappa)


def _bound(p: Dual, at: Slacks, spec: Spec) -> float:
    """The bound above at the best multiple of this dual point."""
    counted = at.u > 0
    linear = float(p.a @ (at.q + spec.e))
    square = float(p.v @ p.v) + float((p.a[counted] ** 2 / at.u[counted]).sum()) / spec.kappa
    if spec.rho:
        square += float(p.a @ at.s) ** 2 / spec.rho
    if linear <= 0 or square <= 0:
        return max(0.0, linear)
    t = linear / square
    if np.isfinite(spec.top):
        t = min(t, 1.0)
    return t * linear - 0.5 * t * t * square


def _dual_points(found: Iterable[Array], at: Slacks, spec: Spec, m: Array, rows: Rows) -> list[Dual]:
    """Feasible points from these: within their limits, and with sides that balance where the intercept is free."""
    points = []
    for a in found:
        a = np.clip(a, 0.0, spec.top * at.u if np.isfinite(spec.top) else np.inf)
        if spec.rho == 0:
            plus, minus = float(a[at.s > 0].sum()), float(a[at.s < 0].sum())
            less = min(plus, minus)
            a = a * np.where(at.s > 0, less / plus if plus > 0 else 0.0, less / minus if minus > 0 else 0.0)
        points.append(a)
    if not points:
        return []
    signed = np.stack(points, axis=1) * at.s[:, None]  # (sides, points)
    v = rows.sum(partial(pull, signed.reshape(-1, rows.n_rows, len(points)).sum(axis=0), m))
    return [Dual(a, v[j]) for j, a in enumerate(points)]


def _bounds(
    at: Slacks, spec: Spec, beta: Array, b: float, m: Array, value: float, tol: float, points: list[Dual], rows: Rows
) -> Iterator[float]:
    """Bounds that the slacks suggest, better ones only where these do not reach the tolerance."""
    target = at.s * at.q if spec.epsilon is not None else np.zeros(1)
    unit = float(np.abs(target - np.median(target)).mean()) or 1.0
    shapes = [spec] if np.isfinite(spec.kappa) else [spec._replace(kappa=0.5 / h, e=h) for h in unit * WIDTHS]
    offsets = [_balance(at, shape) for shape in shapes]
    slopes = (at.u * _slope(at.z - at.s * t, shape) for shape, t in zip(shapes, offsets, strict=True))
    points = [*_dual_points(slopes, at, spec, m, rows), *points]
    found = [_bound(p, at, spec) for p in points]
    yield from found
    if value - max(found) <= tol * value or rows.n_features > WIDE:
        return
    theta, G = beta, np.ones(rows.n_features)
    if spec.rho is not None:
        theta, G = np.append(beta, b), np.append(G, spec.rho)

    def solved(near: Array, multipliers: Callable[[Array, Array], Array]) -> float:
        """The bound with exact multipliers for the sides `near`, the others being on their side of the bend."""
        a = _completed(near, at, spec, m, rows, multipliers)
        return _bound(_dual_points([a], at, spec, m, rows)[0], at, spec)

    if np.isinf(spec.kappa):
        near = _nearest(at, rows.n_rows, len(theta))
        at_bend = solved(near, lambda A, c: _balancing(A, G * theta - c, at.u[near]))
        yield at_bend
        if value - at_bend <= tol * value:
            return
    best = int(np.argmax(found[: len(shapes)]))
    width = max(shapes[best].e, NARROWEST * unit)
    near = _around(at, spec, max(MANY, EACH * len(theta)))
    q, u, a = at.q[near], at.u[near], points[best].a[near]
    yield solved(near, lambda A, c: _multipliers(A, q, u, spec, a, G, c, theta, width, tol * value))


def _balance(at: Slacks, spec: Spec) -> float:
    """How much to add to a free intercept so that Σ u φ' s = 0."""
    if spec.rho != 0 or not at.u.any():
        return 0.0

    def excess(t: float) -> float:
        return float((at.u * at.s) @ _slope(at.z - at.s * t, spec))

    reach = 1.0 + float(np.abs(at.z[at.u > 0]).max()) + spec.e + (1 / spec.kappa if np.isfinite(spec.top) else 0.0)
    low, high = -reach, reach
    if not excess(low) >= 0 >= excess(high):
        return 0.0
    return float(brentq(excess, low, high, xtol=1e-15 * reach, rtol=1e-15))


def _nearest(at: Slacks, n: int, count: int) -> Array:
    """The sides where so many rows' losses bend."""
    away = np.where(at.u > 0, np.abs(at.z), np.inf)
    of_rows = away.reshape(-1, n).min(axis=0)
    return np.flatnonzero(away <= np.partition(of_rows, min(n, count) - 1)[min(n, count) - 1])


def _around(at: Slacks, spec: Spec, count: int) -> Array:
    """So many sides, those nearest to where the loss is curved."""
    away = np.maximum(-spec.e - at.z, at.z + spec.e - spec.top / spec.kappa)  # negative where φ is curved
    count = min(len(at.z), count)
    return np.sort(np.argpartition(np.where(at.u > 0, away, np.inf), count - 1)[:count])


def _completed(
    near: Array, at: Slacks, spec: Spec, m: Array, rows: Rows, multipliers: Callable[[Array, Array], Array]
) -> Array:
    """Slopes of the losses, but for the sides `near`: multipliers(A, c) of A, s (x, 1) of these, and of c, the sum of
    all others' a s (x, 1)."""
    a = at.u * _slope(at.z, spec)
    a[near] = 0.0
    signed = (a * at.s).reshape(-1, rows.n_rows).sum(axis=0)
    c = rows.sum(partial(pull, signed[:, None], m))[0]
    row, place = np.unique(near % rows.n_rows, return_inverse=True)
    A = at.s[near][:, None] * (dense(rows.take(row).X) - m)[place]  # (sides, d)
    if spec.rho is not None:
        A, c = np.column_stack([A, at.s[near]]), np.append(c, signed.sum())
    a[near] = multipliers(A, c)
    return a


def _balancing(A: Array, rest: Array, u: Array) -> Array:
    """a with Aᵀa = rest, as near as can be: at the minimum, rows where the loss bends hold what the others leave."""
    size = np.abs(A).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    return u * lsq_linear((A / size * u[:, None]).T, rest / size, (0.0, 1.0), "bvls", max_iter=10).x


def _multipliers(
    A: Array, q: Array, u: Array, spec: Spec, a: Array, G: Array, c: Array, theta: Array, width: float, tol: float
) -> Array:
    """max over 0 <= a <= top u of a·(q + e) - a²/2κu - ½ |c + Aᵀa|² in the norm of G⁻¹, from a.

    Each round adds width/u (a - a')² to the dual, a' the last a. What is left is smooth in θ: Newton's method.
    """
    top = spec.top * u if np.isfinite(spec.top) else np.full(len(u), np.inf)
    u = np.where(u > 0, u, 1.0)
    soft, firm = 1 / (spec.kappa * u), 2 * width / u

    def at(theta: Array) -> tuple[float, Array]:
        z = q + spec.e - A @ theta
        a = np.clip((firm * old + z) / (firm + soft), 0.0, top)
        value = 0.5 * float(G @ theta**2) - float(c @ theta)
        return value + float((a * z - 0.5 * soft * a**2 - 0.5 * firm * (a - old) ** 2).sum()), a

    def gradient(theta: Array, a: Array) -> Array:
        return G * theta - c - A.T @ a

    def hessian(a: Array) -> Array:
        free = (a > 0) & (a < top)
        return np.diag(G) + (A[free] / (firm + soft)[free][:, None]).T @ A[free]

    best = np.inf, a
    for _ in range(ROUNDS):
        old = a
        theta, a, stuck = descend(at, gradient, hessian, G, theta, tol)
        z = q + spec.e - A @ theta
        gap = float((u * _loss(z - spec.e, spec))[top > 0].sum() - (a * z - 0.5 * soft * a**2).sum())
        gap += left(gradient(theta, a), G, theta)
        best = min(best, (gap, a), key=lambda found: found[0])
        if gap <= 0.1 * tol:
            break
        firm = firm * STIFFER if stuck else firm / STIFFER
    return best[1]
