"""The checker of diagonalisability: a basis of eigenvectors proves it, a Jordan chain refutes it.

Yes: A P = P diag(λ) to rounding, and the smallest singular value of P is above rounding.

No: diagonalisable matrices lie arbitrarily close to all others, so that in floating point a no is about a matrix
within rounding of A. With u = (A - λI)v and r = (A - λI)u, the matrix A + E with E [v u] = [0 -r] has the eigenvector
u ≠ 0 and v above it: (A + E - λI)v = u, a Jordan chain. So A + E is not diagonalisable, and |E|₂ is its distance from
A. The link |u| / |v| must be above rounding, because else every multiple eigenvalue would be a counterexample.
"""

from __future__ import annotations

import numpy as np

from certifit.checkers.linalg.eigenvalue_bounds import EPS
from certifit.core import Certificate, Check
from certifit.rows import Array


def certify_basis(A: Array, values: Array, P: Array) -> Certificate:
    """Check that A P = P diag(values), with P (n, n) invertible to rounding.

    >>> A, P = np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> certify_basis(A, np.array([1.0, 2.0]), P).holds
    True
    """
    n = len(A)
    unit = float(np.abs(A).max()) or 1.0
    A, values = A / unit, values / unit
    P = P / np.linalg.norm(P, axis=0)
    size = float(np.linalg.norm(A, 2)) or 1.0
    least = float(np.linalg.svd(P, compute_uv=False)[-1])
    residual = float(np.linalg.norm(A @ P - P * values, axis=0).max())
    checks = (
        Check("|AP - PD|, longest column", residual * unit, 16 * n * EPS * size * unit),
        Check("rounding, against the smallest singular value of P", 8 * n * EPS, least),
    )
    facts: dict[str, float | str] = {"condition of P": float(np.sqrt(n)) / least if least else np.inf}
    return Certificate("exact", "the columns of P are a basis of eigenvectors", checks=checks, facts=facts)


def certify_chain(A: Array, value: complex, v: Array, tol: float) -> Certificate:
    """Check that a matrix with a Jordan chain (v above an eigenvector) lies within tol |A|₂ of A.

    >>> certify_chain(np.array([[3.0, 1.0], [0.0, 3.0]]), 3.0, np.array([0.0, 1.0]), 1e-15).proved
    True
    >>> certify_chain(np.array([[3.0, 1.0], [0.0, 4.0]]), 3.5, np.array([0.0, 1.0]), 1e-3).proved
    False
    """
    unit = float(np.abs(A).max()) or 1.0
    A, value = A / unit, value / unit
    size = float(np.linalg.norm(A, 2))
    distance = distance_to_defective(A, value, v)
    claim = "not diagonalisable to rounding: a matrix without a basis of eigenvectors lies within "
    claim += f"{distance * unit:.3g}"
    link = float(np.linalg.norm(A @ v - value * v) / (np.linalg.norm(v) or 1.0))
    checks = (
        Check("distance to a matrix that is not diagonalisable", distance * unit, tol * size * unit),
        Check("tolerance, against the link |(A - λI)v| / |v|", 4 * tol * size * unit, link * unit),
    )
    witness = (tuple(np.real(v).tolist()), tuple(np.imag(v).tolist()))
    facts: dict[str, float | str] = {"eigenvalue": f"{complex(value * unit):.10g}"}
    return Certificate("impossible", claim, checks=checks, facts=facts, witness=witness)


def distance_to_defective(A: Array, value: complex, v: Array) -> float:
    """Return |E|₂ of an E for which A + E has a Jordan chain that ends in v; inf where v is an eigenvector or 0."""
    B = A - value * np.eye(len(A))
    length = float(np.linalg.norm(v))
    u = B @ v
    image_length = float(np.linalg.norm(u))
    if not (length > 0 and image_length > 0):
        return np.inf
    # E [v/|v|  u/|u|] = [0  -Bu/|u|]
    basis = np.column_stack([v / length, u / image_length])
    if np.linalg.svd(basis, compute_uv=False)[-1] < 8 * EPS:
        return np.inf
    E = np.column_stack([np.zeros(len(A)), -(B @ u) / image_length]) @ np.linalg.pinv(basis)
    return float(np.linalg.norm(E, 2))
