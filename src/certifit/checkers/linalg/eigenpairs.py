"""The checker of eigenpairs of a symmetric matrix: they solve A v = λ v, and no larger eigenvalue was missed.

Claim: minus the sum of the k values is within the gap of the least that any k directions reach, and each value is
near its eigenvalue. Recomputed from A and the vectors V: residuals Av - λv, an orthonormal basis Q of V's span,
H = QᵀAQ, the leak C = (I - QQᵀ) A Q, and `rest`, an upper bound on the eigenvalues of A outside the span. The
claim follows by the inequalities of `eigenvalue_bounds`.

| A | `rest` | kind of certificate |
|---|---|---|
| array, or sparse of order up to 2000 | proved: a Cholesky factor exists | `optimal` |
| large sparse matrix or operator | Lanczos from a random start, fails with probability 1e-9 | `statistical` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh, svdvals

from certifit.checkers.linalg.eigenvalue_bounds import (
    EPS,
    eigenvalue_excess,
    ky_fan_excess,
    largest_entry,
    longest_column,
    orthonormal_basis,
    proved_largest,
    worst_entry,
)
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue, sharpen
from certifit.core import Certificate, Check
from certifit.core.certificate import Kind
from certifit.rows import Array


@dataclass(frozen=True)
class SpectralCheckTuning:
    """Numbers that steer how eigenvalues and singular values are checked."""

    proof_order: int = 2000  # up to this order a Cholesky factor proves the bound
    lanczos_steps: int = 100  # beyond that order
    failure: float = 1e-9  # probability with which the bound by Lanczos may be too small
    resolution: float = 0.03  # error after these steps for a spectrum without gaps, as a share of |A|
    dense_rows: int = 1024  # rows of a sparse matrix that are made dense at a time


def certify(
    A: Any, values: Array, vectors: Array, tol: float = 1e-8, *, tuning: SpectralCheckTuning = SpectralCheckTuning()
) -> Certificate:
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
    if sparse.issparse(A) and d <= tuning.proof_order:
        A = A.toarray()
    A, unit, size = _in_units(A, V)
    values = values / unit
    Q, AV = orthonormal_basis(V), A @ V
    AQ = AV if Q is V else A @ Q
    inner = (Q.T @ AQ + AQ.T @ Q) / 2
    C = AQ - Q @ inner
    theta = eigvalsh(inner)[::-1]
    smallest, size = float(theta[-1]), max(size, largest_entry(theta))
    proof = isinstance(A, np.ndarray) and d <= tuning.proof_order
    rounding = 8 * d * (d if proof else 8) * EPS * size
    allowed = tol + rounding / size
    rises = np.maximum(np.diff(values), 0.0)
    checks = [
        Check("vectors orthonormal to", largest_entry(V.T @ V - np.eye(k)), max(1e-10, min(allowed, 1e-6))),
        Check("residual |Av - λv| at most", longest_column(AV - V * values) * unit, allowed * size * unit),
        Check("values not descending by", largest_entry(rises) * unit, 8 * EPS * size * unit),
    ]
    if proof:
        rest, seen = _proved_rest(A, Q, AQ, inner, size), -np.inf
    else:
        rest, seen = _likely_rest(A, Q, size, smallest, tuning)
    sigma = svdvals(C) if k < d else np.zeros(k)
    more = ky_fan_excess(k, rest, smallest, sigma)
    facts: dict[str, float | str] = {}
    kind: Kind
    if proof:
        off = np.abs(values - theta) + eigenvalue_excess(rest, theta, largest_entry(sigma))
        # Each value is right relative to itself.
        checks.append(
            worst_entry(
                "values off their eigenvalues by at most", off * unit, unit * (tol * np.abs(theta) + rounding)
            )
        )
        kind = "optimal"
        claim = f"minus the sum of the values within gap of the least that any {k} directions reach, "
        claim += "and each value in its place"
    else:
        upper = max(rest, -size) if k < d else smallest
        above = max(0.0, seen - smallest), max(0.0, upper - smallest)
        checks += check_left_out(above, allowed, size, unit, tuning)
        facts["assumes"] = "products accurate to rounding, and a random start of Lanczos that A does not know"
        kind = "statistical"
        claim = f"the vectors are eigenvectors, and with probability 1 - {tuning.failure:g} "
        claim += f"no other eigenvalue exceeds {upper * unit:.6g}"
    objective, bound = -float(values.sum()) * unit, -float(theta.sum() + more + 8 * k * d * EPS * size) * unit
    limit = (tol * float(np.abs(theta).sum()) + k * rounding) * unit
    return Certificate(kind, claim, objective, bound, tol, limit, tuple(checks), facts, scale=k * size * unit)


def check_left_out(
    above: tuple[float, float], allowed: float, size: float, unit: float, tuning: SpectralCheckTuning
) -> list[Check]:
    """Check that what was left out exceeds the smallest value kept by next to nothing, at least and at most."""
    blurred = max(allowed, tuning.resolution)
    return [
        Check("left out, at least, above the smallest value by", above[0] * unit, allowed * size * unit),
        Check("left out, at most, above the smallest value by", above[1] * unit, blurred * size * unit),
    ]


def _in_units(A: Any, V: Array) -> tuple[Any, float, float]:
    """Return A / unit, whose squares neither overflow nor vanish, the unit, and the size of A / unit."""
    if isinstance(A, np.ndarray):
        unit = largest_entry(A) or 1.0
        A = A / unit
        return A, unit, longest_column(A) or 1.0
    if sparse.issparse(A):
        unit = largest_entry(A.data) or 1.0
        A = A / unit
        return A, unit, float(np.sqrt(A.multiply(A).sum(axis=0)).max(initial=0.0)) or 1.0
    # The size of an operator is that of its products with the vectors.
    image = np.asarray(A @ V, np.float64)
    unit = largest_entry(image) or 1.0
    return _ScaledOperator(A, unit), unit, longest_column(image / unit) or 1.0


@dataclass(frozen=True)
class _ScaledOperator:
    """The operator A / unit."""

    A: Any
    unit: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.A.shape

    def __matmul__(self, X: Array) -> Array:
        return np.asarray(self.A @ X, np.float64) / self.unit


@dataclass(frozen=True)
class _OutsideSpan:
    """The operator (I - QQᵀ) A (I - QQᵀ) - c QQᵀ: A outside the span of Q, with eigenvalues -c inside it."""

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


def _proved_rest(A: Array, Q: Array, AQ: Array, inner: Array, size: float) -> float:
    """Return a number that no eigenvalue of A outside the span of Q exceeds, proved by a Cholesky factor."""
    d, k = Q.shape
    if k == d:
        return -np.inf
    E = A - Q @ AQ.T - AQ @ Q.T + Q @ (inner - size * np.eye(k)) @ Q.T
    return proved_largest((E + E.T) / 2) + 8 * d * EPS * size


def _likely_rest(A: Any, Q: Array, size: float, smallest: float, tuning: SpectralCheckTuning) -> tuple[float, float]:
    """Return a likely upper bound on the eigenvalues of A outside the span of Q, and the largest one seen."""
    if Q.shape[0] == Q.shape[1]:
        return -np.inf, -np.inf
    outside = _OutsideSpan(A, Q, size)
    found = largest_eigenvalue(outside, failure=tuning.failure, steps=tuning.lanczos_steps, enough=smallest)
    return found.upper, sharpen(outside, found).value if found.upper > smallest else found.value
