"""Logistic and softmax regression without a penalty: does the maximum-likelihood fit exist, and how far is it?

Along any line the negative log-likelihood satisfies |f"'| <= R f", R the largest range of a row's scores per unit
step. With H the Hessian, g the gradient, ν = sqrt(g·H⁻¹g) and c the largest row in the norm of H⁻¹: if νc < 1 the
minimum exists and  P - P* <= (νc + (1 - νc) log(1 - νc)) / c²,  about ν²/2 (Bach 2010, "Self-concordant analysis for
logistic regression"). If the classes can be separated there is no minimum, and the direction is the witness.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.optimize import linprog

from certifit.checkers.linear_model.logistic import (
    both_scores,
    centre,
    log_probabilities,
    no_intercept,
    onehot,
    residuals,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums

CLAIM = "negative log-likelihood within gap of its minimum, which exists"
PENALISED = "penalised negative log-likelihood within gap of its minimum"
CLAIM_GRADIENT = "the gradient is small; with this many parameters and no penalty no distance is proved"
HESSIAN_LIMIT = 2000  # parameters beyond which no Hessian is formed
DEFINITE = 1e-11  # smallest eigenvalue relative to the largest from which the Hessian counts as positive definite
UNDERFLOW = 1e-280  # curvature below which the inverse would overflow
SEPARATION_LIMIT = 2**22  # entries (rows x parameters) up to which a linear program looks for a separating direction
SAFE = 0.9  # the bound needs νc < 1; the distance to 1 covers rounding
ROUNDING = 256 * np.finfo(float).eps  # of a row's score, relative to the sizes summed


@dataclass(frozen=True)
class _Quadratic(Sums):
    """Sums in the parameters of classes 1 … k-1 relative to class 0."""

    loss: float
    g: Array  # (k-1, d1)
    H: Array  # (k-1, d1, k-1, d1), or 0-d where not formed


@dataclass(frozen=True)
class Triangle:
    """Triangular factor of some rows; `+` stacks two and factors again."""

    R: Array  # (<= d1, d1)

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle(qr(np.vstack([self.R, other.R]), mode="r")[0][: self.R.shape[1]])


class Coordinates(NamedTuple):
    """Coordinates z = ((x - m) / scale, 1) in which nothing cancels, over- or underflows."""

    m: Array  # (d,)
    scale: Array  # (d,)
    intercept: bool

    def rows(self, block: Block) -> Array:
        return self.scaled(dense(block.X) - self.m)

    def scaled(self, Z: Array) -> Array:
        """Centred rows in these coordinates."""
        Z = Z / self.scale
        return np.column_stack([Z, np.ones(len(Z))]) if self.intercept else Z


def largest_extent(m: Array, block: Block) -> Largest:
    return Largest(np.abs(dense(block.X)[block.w > 0] - m).max(axis=0, initial=0.0))


def _quadratic(beta: Array, b: Array, frame: Coordinates, hessian: bool, block: Block) -> _Quadratic:
    Z, w, k = frame.rows(block), block.w, len(b)
    log_p = log_probabilities(beta, b, dense(block.X) - frame.m)
    Y, P = onehot(block.y, k), np.exp(log_p)
    H = np.zeros(())
    if hessian:
        p, rest = P[:, 1:], P @ (1 - np.eye(k))  # 1 - p, summed from the others
        curvature = -p[:, :, None] * p[:, None, :]
        curvature[:, np.arange(k - 1), np.arange(k - 1)] = p * rest[:, 1:]
        H = np.einsum("i,iab,ij,il->ajbl", w, curvature, Z, Z, optimize=True)
    loss = -float(w @ np.where(Y > 0, log_p, 0.0).sum(axis=1))
    return _Quadratic(loss, (w[:, None] * residuals(P, Y)[:, 1:]).T @ Z, H)


def triangle_of(frame: Coordinates, block: Block) -> Triangle:
    Z = frame.rows(block) * np.sqrt(block.w)[:, None]
    return Triangle(qr(Z, mode="r")[0][: Z.shape[1]])


def _reach(inverse: Array, frame: Coordinates, kept: Array, block: Block) -> Largest:
    """max over rows and pairs of classes of |(e_a - e_c) ⊗ z|² in the norm of H⁻¹ (k-1, d1, k-1, d1)."""
    Z = frame.rows(block)[block.w > 0][:, kept]
    largest = 0.0
    for a in range(len(inverse)):
        for c in range(a + 1):
            M = inverse[a, :, a]
            if a != c:
                M = M + inverse[c, :, c] - inverse[a, :, c] - inverse[c, :, a]
            largest = max(largest, float((Z @ M * Z).sum(axis=1).max(initial=0.0)))
    return Largest(largest)


def self_concordant_gap(nu: float, c: float) -> float:
    """(νc + (1 - νc) log(1 - νc)) / c², or infinity where νc >= 1.

    >>> round(self_concordant_gap(0.5, 1.0), 6), self_concordant_gap(2.0, 1.0)
    (0.153426, inf)
    """
    t = nu * c
    if not t < 1:
        return np.inf
    if t < 1e-4:
        return 0.5 * nu**2 * (1 + t)  # the series, rounded up
    return float((t + (1 - t) * np.log1p(-t)) / c**2)


def certify(
    coef: Array, intercept: Array, fit_intercept: bool, tol: float, rows: Rows, lam: float = 0.0
) -> Certificate:
    """Check a fit by its Hessian, unpenalised or with λ/2 |β|²; y are class numbers, w include class weights.

    A quadratic penalty has no third derivative, so the bound stands with it. In the coefficients γ of classes
    1 … k-1 relative to class 0 it is λ/2 (Σ |γ|² - |Σ γ|²/k): the best that a common shift of all classes leaves.
    """
    beta, b = both_scores(coef, intercept)
    m = centre(rows) if fit_intercept else np.zeros(rows.n_features)
    own = () if fit_intercept else (no_intercept(b),)
    extent = rows.sum(partial(largest_extent, m)).value
    frame = Coordinates(m, np.where(extent > 0, extent, 1.0), fit_intercept)
    k, d1 = len(b), rows.n_features + fit_intercept
    hessian = (k - 1) * d1 <= HESSIAN_LIMIT
    s = rows.sum(partial(_quadratic, beta, b + beta @ m, frame, hessian))
    objective = s.loss + 0.5 * lam * float((beta**2).sum())
    excess = 0.0  # penalty that a common shift would save
    if lam > 0 and hessian:
        gamma = beta[1:] - beta[0]
        tie = np.eye(k - 1) - (1 / k if len(coef) > 1 else 0.0)
        excess = objective - s.loss - 0.5 * lam * float((gamma * (tie @ gamma)).sum())
        d = rows.n_features
        s.g[:, :d] += lam * (tie @ gamma) / frame.scale
        s.H[:, np.arange(d), :, np.arange(d)] += (lam / frame.scale**2)[:, None, None] * tie
    if not hessian:
        check = Check("gradient norm relative to the objective", float(np.linalg.norm(s.g)) / objective, tol)
        return Certificate("stationary", CLAIM_GRADIENT, objective, tol=tol, checks=(check, *own))
    kept = np.arange(d1)
    inverse = inverse_of(s.H)
    if inverse is None and lam == 0:  # no curvature somewhere: collinear columns, or rows that are fitted perfectly
        kept = independent(rows.sum(partial(triangle_of, frame)).R)
        inverse = inverse_of(s.H[:, kept][..., kept])
    nu = c = np.inf
    if inverse is not None and all(check.passed for check in own):
        g = s.g[:, kept]
        nu = float(np.sqrt(np.einsum("aj,ajbl,bl", g, inverse, g)))
        c = float(np.sqrt(rows.sum(partial(_reach, inverse, frame, kept)).value))
    reach = nu * c
    gap = max(0.0, excess) + (self_concordant_gap(nu, c) if reach <= SAFE else np.inf)
    checks = (Check("decrement times reach", reach, SAFE), *own)
    claim = CLAIM if lam == 0 else PENALISED
    return Certificate("optimal", claim, objective, objective - gap, tol, (tol + 1e-12) * objective, checks)


def inverse_of(H: Array) -> Array | None:
    """H⁻¹ (k-1, d1, k-1, d1), or None where H is not positive definite beyond rounding."""
    shape, size = H.shape, H.shape[0] * H.shape[1]
    H = H.reshape(size, size)
    if not (np.diag(H) > UNDERFLOW).all():
        return None
    scale = 1 / np.sqrt(np.diag(H))
    values, vectors = np.linalg.eigh(H * scale * scale[:, None])
    if size and not values[0] > DEFINITE * values[-1]:
        return None
    root = vectors / np.sqrt(values) * scale[:, None]
    return (root @ root.T).reshape(shape)


def independent(R: Array) -> Array:
    """Numbers of linearly independent columns that span all; R is the triangular factor of the rows."""
    size = np.linalg.norm(R, axis=0)
    scaled = R / np.where(size > 0, size, 1.0)
    _, triangle, order = qr(scaled, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    rank = int((pivots > 16 * R.shape[1] * np.finfo(float).eps * pivots.max(initial=0.0)).sum())
    return np.sort(order[:rank])


def separation(rows: Rows, k: int, fit_intercept: bool) -> Array | None:
    """v (k, d1) with z·(v_y - v_c) >= 0 for every row and every class c, > 0 for some; None if there is none.

    Two classes have one score: v is (1, d1). One linear program over all rows, for tables that fit in memory
    comfortably; `impossible` checks its answer.
    """
    data = rows.load()
    Z, y = dense(data.X)[data.w > 0], np.asarray(data.y)[data.w > 0]
    low = Z.min(axis=0) if fit_intercept else np.zeros(Z.shape[1])
    spread = np.abs(Z - low).max(axis=0)
    spread[spread == 0] = 1.0
    scaled = (Z - low) / spread
    if fit_intercept:
        scaled = np.column_stack([scaled, np.ones(len(scaled))])
    leads = []
    for c in range(k):  # each row's lead over class c, as a linear function of v
        lead = np.zeros((int((y != c).sum()), k, scaled.shape[1]))
        lead[np.arange(len(lead)), y[y != c]] = scaled[y != c]
        lead[:, c] = -scaled[y != c]
        leads.append(lead.reshape(len(lead), -1))
    A = np.concatenate(leads)
    found = linprog(-A.sum(axis=0), A_ub=-A, b_ub=np.zeros(len(A)), bounds=(-1, 1))
    if not found.success or (A @ found.x).max() < 1e-6:
        return None
    v = found.x.reshape(k, -1)
    if k == 2:
        v = v[1:] - v[:1]
    v[np.abs(v) < 1e-12] = 0.0  # rounding of the program, whose unknowns are of size 1
    with np.errstate(over="ignore", invalid="ignore"):
        v[:, : len(spread)] /= spread
        if fit_intercept:
            v[:, -1] -= v[:, : len(spread)] @ low
    return v if np.isfinite(v).all() else None


def separable(rows: Rows, k: int, fit_intercept: bool) -> Certificate | None:
    """`impossible`, if a linear program finds the classes separable; None if not, or if the table is too large."""
    if rows.n_rows * (rows.n_features + fit_intercept) * (k if k > 2 else 1) > SEPARATION_LIMIT:
        return None
    direction = separation(rows, k, fit_intercept)
    certificate = None if direction is None else impossible(direction, fit_intercept, rows)
    return certificate if certificate is not None and certificate.holds else None


@dataclass(frozen=True)
class _Sides(Sums):
    """Where the rows stand along a direction."""

    wrong: Largest  # how far a row is on the wrong side, relative to the sizes summed in its score
    strict: int  # rows that are strictly on their side


def _sides(beta: Array, b: Array, block: Block) -> _Sides:
    Z, y = dense(block.X)[block.w > 0], np.asarray(block.y)[block.w > 0]
    scores = Z @ beta.T + b
    own = np.take_along_axis(scores, y[:, None].astype(int), axis=1)
    rivals = np.where(onehot(y, len(b)) > 0, -np.inf, scores)
    size = (np.abs(Z) @ np.abs(beta).T + np.abs(b)).max(axis=1, initial=np.finfo(float).tiny)
    lead = (own[:, 0] - rivals.max(axis=1)) / size
    return _Sides(Largest(max(0.0, float(-lead.min(initial=0.0)))), int((lead > ROUNDING).sum()))


def impossible(v: Array, fit_intercept: bool, rows: Rows) -> Certificate:
    """The certificate that no maximum-likelihood fit exists; the witness v is (k, d1), or (1, d1) for two classes."""
    d = rows.n_features
    sides = rows.sum(partial(_sides, *both_scores(v[:, :d], v[:, d] if fit_intercept else np.zeros(len(v)))))
    return Certificate(
        "impossible",
        "the classes are separable: the likelihood rises for ever along the separating direction and has no maximum",
        checks=(
            Check("rows on the wrong side by", float(sides.wrong.value), ROUNDING),
            Check("direction separates no row (1: yes)", float(sides.strict == 0), 0.0),
        ),
        facts={
            "rows that it separates strictly": sides.strict,
            "separating direction": np.array2string(v, precision=4, threshold=20, max_line_width=10**6),
        },
        witness=tuple(map(tuple, v.tolist())),
    )
