"""Eigenpairs of a symmetric matrix re-checked: they solve A v = λ v, and nothing larger was missed.

With Q an orthonormal basis of the vectors' span, H = QᵀAQ with eigenvalues θ, C = (I - QQᵀ) A Q and `rest` an upper
bound on the eigenvalues of A outside the span, the i-th largest eigenvalue of A is at least θ_i, and at most
θ_i + (rest - θ_i)₊ + |C|₂; where rest < θ_i also at most θ_i + |C|₂² / (θ_i - rest). The sum of the k largest is at
most tr H + k (rest - θ_k)₊ + |C|_* (Ky Fan), and where rest < θ_k at most tr H + |C|_F² / (θ_k - rest).
`rest` is proved by a Cholesky factor that exists, or for large sparse matrices and operators holds with probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh, eigvalsh, svdvals

from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue, sharpened
from certifit.core import Certificate, Check
from certifit.core.certificate import Kind
from certifit.rows import Array

EPS = float(np.finfo(np.float64).eps)
PROOF = 2000  # up to this order a Cholesky factor proves it
STEPS = 100  # of Lanczos, beyond
MISSED = 0.03  # what 100 steps tell of a spectrum without gaps, as a share of |A|
FAILURE = 1e-9
CLAIM = (
    "minus the sum of the values within gap of the least that any {k} directions reach, and each value in its place"
)
LIKELY = "the vectors are eigenvectors, and with probability {p} no other eigenvalue exceeds {upper:.6g}"


def certify(A: Any, values: Array, vectors: Array, tol: float = 1e-8) -> Certificate:
    """Check the k largest eigenvalues (k,) and their vectors (d, k) of a symmetric A: array, sparse or operator.

    >>> A = np.diag([3.0, 2.0, 1.0])
    >>> certify(A, np.array([3.0, 2.0]), np.eye(3)[:, :2]).holds
    True
    >>> certify(A, np.array([3.0, 1.0]), np.eye(3)[:, [0, 2]]).holds
    False
    """
    values, V = np.asarray(values, np.float64), np.asarray(vectors, np.float64)
    d, k = V.shape
    if k == 0:
        return Certificate("exact", "no eigenvalues were asked for", 0.0, 0.0)
    if sparse.issparse(A) and d <= PROOF:
        A = A.toarray()
    A, unit, size = _in_units(A, V)
    values = values / unit
    Q, AV = orthonormal(V), A @ V
    AQ = AV if Q is V else A @ Q
    inner = (Q.T @ AQ + AQ.T @ Q) / 2
    C = AQ - Q @ inner
    theta = eigvalsh(inner)[::-1]
    smallest, size = float(theta[-1]), max(size, most(theta))
    proof = isinstance(A, np.ndarray) and d <= PROOF
    loose = max(tol, 8 * d * (d if proof else 8) * EPS)
    checks = [
        Check("vectors orthonormal to", most(V.T @ V - np.eye(k)), max(1e-10, min(loose, 1e-6))),
        Check("residual |Av - λv| at most", longest(AV - V * values) * unit, loose * size * unit),
        Check("values not descending by", most(np.maximum(np.diff(values), 0.0)) * unit, 8 * EPS * size * unit),
    ]
    rest, seen = _left_out(A, Q, AQ, inner, size, smallest, proof)
    sigma = svdvals(C) if k < d else np.zeros(k)
    more = ky_fan_excess(k, rest, smallest, sigma)
    rounding = 8 * k * d * EPS * size
    facts: dict[str, float | str] = {}
    kind: Kind
    if proof:
        off = np.abs(values - theta) + excess(rest, theta, most(sigma))
        checks.append(Check("values off their eigenvalues by at most", most(off) * unit, loose * size * unit))
        kind, claim = "optimal", CLAIM.format(k=k)
    else:
        upper = max(rest, -size) if k < d else smallest
        checks += [
            Check("left out, at least", max(seen, -size) * unit, (smallest + loose * size) * unit),
            Check("left out, at most", upper * unit, (smallest + max(loose, MISSED) * size) * unit),
        ]
        facts["assumes"] = "products accurate to rounding, and a random start of Lanczos that A does not know"
        kind, claim = "statistical", LIKELY.format(p=f"1 - {FAILURE:g}", upper=upper * unit)
    return Certificate(
        kind,
        claim,
        -float(values.sum()) * unit,
        -float(theta.sum() + more + rounding) * unit,
        tol,
        k * loose * size * unit,
        tuple(checks),
        facts,
    )


def _in_units(A: Any, V: Array) -> tuple[Any, float, float]:
    """A in units in which nothing over- or underflows, that unit, and the size of A in it (its longest column)."""
    if isinstance(A, np.ndarray):
        unit = most(A) or 1.0
        A = A / unit
        return A, unit, float(np.sqrt((A**2).sum(axis=0)).max(initial=0.0)) or 1.0
    if sparse.issparse(A):
        unit = most(A.data) or 1.0
        A = A / unit
        return A, unit, float(np.sqrt(A.multiply(A).sum(axis=0)).max(initial=0.0)) or 1.0
    image = np.asarray(A @ V, np.float64)  # an operator shows its size on the vectors at hand
    unit = most(image) or 1.0
    return _Scaled(A, unit), unit, longest(image / unit) or 1.0


@dataclass(frozen=True)
class _Scaled:
    """A / unit."""

    A: Any
    unit: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.A.shape

    def __matmul__(self, X: Array) -> Array:
        return np.asarray(self.A @ X, np.float64) / self.unit


@dataclass(frozen=True)
class _Outside:
    """(I - QQᵀ) A (I - QQᵀ) - c QQᵀ: what A does outside the span of Q, and nothing to find inside it."""

    A: Any
    Q: Array  # (d, k)
    c: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.A.shape

    def __matmul__(self, x: Array) -> Array:
        inside = self.Q.T @ x
        image = self.A @ (x - self.Q @ inside)
        return image - self.Q @ (self.Q.T @ image) - self.Q @ (self.c * inside)


def _left_out(
    A: Any, Q: Array, AQ: Array, inner: Array, size: float, smallest: float, proof: bool
) -> tuple[float, float]:
    """Of the largest eigenvalue of A outside the span of Q, an upper bound and what was seen of it, if anything."""
    d, k = Q.shape
    if k == d:
        return -np.inf, -np.inf
    if not proof:
        outside = _Outside(A, Q, size)
        found = largest_eigenvalue(outside, failure=FAILURE, steps=STEPS, enough=smallest)
        return found.upper, sharpened(outside, found).value if found.upper > smallest else found.value
    E = A - Q @ AQ.T - AQ @ Q.T + Q @ (inner - size * np.eye(k)) @ Q.T
    return proved_largest((E + E.T) / 2) + 8 * d * EPS * size, -np.inf


def proved_largest(E: Array) -> float:
    """A number that no eigenvalue of E (d, d) exceeds: τ I - E has a Cholesky factor.

    Where the factorisation of M in floating point runs through, the eigenvalues of M are no less than
    -(d + 2) eps tr M (Rump, "Verification of positive definiteness", 2006).

    >>> bool(0 <= proved_largest(np.array([[1.0, 2.0], [2.0, 1.0]])) - 3 < 1e-13)
    True
    """
    d = len(E)
    tau = top_eigenvalue(E)
    slack = 2 * (d + 2) * EPS * (d * abs(tau) + float(np.abs(np.diag(E)).sum())) + np.finfo(float).tiny
    while not _definite((tau + slack) * np.eye(d) - E):
        slack *= 2
    return tau + 2 * slack


def top_eigenvalue(E: Array) -> float:
    """The largest eigenvalue of E as LAPACK computes it."""
    last = len(E) - 1
    try:
        return float(eigh(E, eigvals_only=True, subset_by_index=[last, last])[0])
    except LinAlgError:  # LAPACK's selective driver can fail where eigenvalues coincide
        return float(np.linalg.eigvalsh(E)[-1])


def _definite(M: Array) -> bool:
    try:
        cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def excess(rest: float, theta: Array, leak: float) -> Array:
    """By how much the i-th eigenvalue can exceed θ_i, (k,)."""
    room = theta - rest
    linear = np.maximum(-room, 0.0) + leak
    return np.where(room > leak, leak * (leak / np.where(room > 0, room, 1.0)), linear)


def ky_fan_excess(k: int, rest: float, smallest: float, sigma: Array) -> float:
    """By how much the sum of the k largest eigenvalues can exceed tr H; sigma are the singular values of C."""
    more = k * max(0.0, rest - smallest) + float(sigma.sum())
    return min(more, float((sigma**2).sum()) / (smallest - rest)) if smallest > rest else more


def orthonormal(V: Array) -> Array:
    """V (d, k) itself where its columns are orthonormal to rounding, else an orthonormal basis of their span."""
    off = most(V.T @ V - np.eye(V.shape[1]))
    return V if off <= 8 * len(V) * EPS else np.linalg.qr(V)[0]


def most(X: Array) -> float:
    return float(np.abs(X).max(initial=0.0))


def longest(X: Array) -> float:
    """The length of the longest column."""
    return float(np.sqrt((X**2).sum(axis=0)).max(initial=0.0))
