"""Logistic and softmax regression without a penalty: does the maximum-likelihood fit exist, and how far is it?

Along any line the negative log-likelihood satisfies |f"'| <= R f", R the largest range of a row's scores per unit
step. With H the Hessian, g the gradient, ν = sqrt(g·H⁻¹g) and c the largest row in the norm of H⁻¹: if νc < 1 the
minimum exists and  P - P* <= (νc + (1 - νc) log(1 - νc)) / c²,  about ν²/2 (Bach 2010, "Self-concordant analysis for
logistic regression"). If the classes can be separated there is no minimum, and the direction is the witness.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import linprog

from certifit.certificates.logistic import both_scores, centre, dense, log_probabilities, onehot
from certifit.core import Array, Block, Certificate, Check, Rows, Sums

CLAIM = "negative log-likelihood within gap of its minimum, which exists"
CLAIM_GRADIENT = "the gradient is small; with this many parameters and no penalty no distance is proved"
HESSIAN_LIMIT = 2000  # parameters beyond which no Hessian is formed


@dataclass(frozen=True)
class _Quadratic(Sums):
    """Sums in the parameters of classes 1 … k-1 relative to class 0."""

    loss: float
    g: Array  # (k-1, d1)
    H: Array  # (k-1, d1, k-1, d1), or 0-d where not formed


class _Largest(float):
    """A float whose `+` is the maximum."""

    def __add__(self, other: float) -> _Largest:
        return _Largest(max(self, other))


def _rows(m: Array, fit_intercept: bool, block: Block) -> Array:
    Z = dense(block.X) - m
    return np.column_stack([Z, np.ones(len(Z))]) if fit_intercept else Z


def _quadratic(beta: Array, b: Array, m: Array, fit_intercept: bool, hessian: bool, block: Block) -> _Quadratic:
    Z, w = _rows(m, fit_intercept, block), block.w
    log_p = log_probabilities(beta, b, dense(block.X) - m)
    Y, p = onehot(block.y, len(b)), np.exp(log_p)[:, 1:]
    H = np.zeros(())
    if hessian:
        curvature = np.einsum("ia,ab->iab", p, np.eye(p.shape[1])) - p[:, :, None] * p[:, None, :]
        H = np.einsum("i,iab,ij,il->ajbl", w, curvature, Z, Z, optimize=True)
    loss = -float(w @ np.where(Y > 0, log_p, 0.0).sum(axis=1))
    return _Quadratic(loss, (w[:, None] * (p - Y[:, 1:])).T @ Z, H)


def _reach(inverse: Array, m: Array, fit_intercept: bool, block: Block) -> _Largest:
    """max over rows and pairs of classes of |(e_a - e_c) ⊗ z|² in the norm of H⁻¹ (k-1, d1, k-1, d1)."""
    Z = _rows(m, fit_intercept, block)[block.w > 0]
    largest = 0.0
    for a in range(len(inverse)):
        for c in range(a + 1):
            M = inverse[a, :, a]
            if a != c:
                M = M + inverse[c, :, c] - inverse[a, :, c] - inverse[c, :, a]
            largest = max(largest, float((Z @ M * Z).sum(axis=1).max(initial=0.0)))
    return _Largest(largest)


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


def certify(coef: Array, intercept: Array, fit_intercept: bool, tol: float, rows: Rows) -> Certificate:
    """Check an unpenalised fit; y are class numbers, w include class weights."""
    beta, b = both_scores(coef, intercept)
    m = centre(rows) if fit_intercept else np.zeros(rows.n_features)
    k, d1 = len(b), rows.n_features + fit_intercept
    hessian = (k - 1) * d1 <= HESSIAN_LIMIT
    s = rows.sum(partial(_quadratic, beta, b + beta @ m, m, fit_intercept, hessian))
    if not hessian:
        check = Check("gradient norm relative to the objective", float(np.linalg.norm(s.g)) / s.loss, tol)
        return Certificate("stationary", CLAIM_GRADIENT, s.loss, tol=tol, checks=(check,))
    size = (k - 1) * d1
    H = s.H.reshape(size, size)
    scale = 1 / np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
    values, vectors = np.linalg.eigh(H * scale * scale[:, None])
    keep = values > 1e-12 * max(float(values[-1]), 0.0)  # collinear columns: directions no row tells apart
    root = vectors[:, keep] / np.sqrt(values[keep]) * scale[:, None]
    nu = float(np.linalg.norm(root.T @ s.g.ravel()))
    inverse = (root @ root.T).reshape(k - 1, d1, k - 1, d1)
    c = float(np.sqrt(rows.sum(partial(_reach, inverse, m, fit_intercept))))
    gap = self_concordant_gap(nu, c)
    check = Check("decrement times reach, at most 1", nu * c, 1.0)
    return Certificate("optimal", CLAIM, s.loss, s.loss - gap, tol, (tol + 1e-12) * s.loss, (check,))


def separation(rows: Rows, k: int, fit_intercept: bool) -> Array | None:
    """v (k, d1) with z·(v_y - v_c) >= 0 for every row and every class c, > 0 for some; None if there is none.

    One linear program over all rows: for tables that fit in memory comfortably.
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
    if not found.success or (A @ found.x).min() < -1e-9 or (A @ found.x).max() < 1e-6:
        return None
    v = found.x.reshape(k, -1)
    v[:, : len(spread)] /= spread
    if fit_intercept:
        v[:, -1] -= v[:, : len(spread)] @ low
    return v


def impossible(v: Array) -> Certificate:
    """The certificate that no maximum-likelihood fit exists, with the separating direction (k, d1)."""
    return Certificate(
        "impossible",
        "the classes are separable: the likelihood rises for ever along the separating direction and has no maximum",
        facts={"separating direction": np.array2string(v, precision=4, threshold=20, max_line_width=10**6)},
    )
