"""The checker of positive definiteness, vᵀAv > 0 for all v ≠ 0: a factor of A proves it, one vector v refutes it.

The matrix is first scaled, exactly, by powers of two to a diagonal between 1 and 4.

| answer | proof |
|---|---|
| yes, definite | A - s I has a Cholesky factor: no eigenvalue of A is below s - (n + 2) eps tr A (Rump 2006) |
| yes, semidefinite to rounding | A = FFᵀ + R with a small R: no eigenvalue is below -|R| |
| no | a witness v with vᵀAv <= 0, summed exactly from products split into rounded value and rounding error |
| either, n <= 32, where floating point cannot decide | elimination in rational numbers |

Reference: Rump, "Verification of positive definiteness" (2006).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from certifit.checkers.linalg.eigenvalue_bounds import EPS
from certifit.core import Certificate, Check
from certifit.rows import Array


def _equilibrate(A: Array) -> tuple[Array, Array]:
    """Return D A D with a diagonal from 1 to 4 (where positive), exactly, and the diagonal of D, powers of two."""
    exponent = np.frexp(np.where(np.diag(A) > 0, np.diag(A), np.abs(A).max() or 1.0))[1] - 1
    half = -(exponent // 2)
    return np.ldexp(np.ldexp(A, half), half[:, None]), np.ldexp(1.0, half)


def certify_factor(A: Array, factor: Array, strict: bool = True) -> Certificate:
    """Check that A (n, n) is positive definite, or semidefinite to rounding, given F (n, n) with FFᵀ = A.

    >>> A = np.array([[4.0, 2.0], [2.0, 3.0]])
    >>> certify_factor(A, np.linalg.cholesky(A)).holds
    True
    """
    S, D = _equilibrate(A)
    F = D[:, None] * factor
    n = len(S)
    rounding = 2 * (n + 2) * EPS * float(np.trace(np.abs(S))) + np.finfo(float).tiny
    away = float(np.linalg.norm(F @ F.T - S))
    checks = [Check("|FFᵀ - A|, scaled to a diagonal of about 1", away, rounding)]
    if strict:
        shift = _proved_shift(S)
        checks.append(Check("rounding, against a shift that leaves a Cholesky factor", 1.01 * rounding, shift))
        claim = f"positive definite: vᵀAv >= {shift - rounding:.3g} Σ A_ii v_i² / 4 for every v"
    else:
        claim = f"positive semidefinite to rounding: vᵀAv >= -{away + rounding:.3g} Σ A_ii v_i² for every v"
    return Certificate("exact", claim, checks=tuple(checks))


def _proved_shift(S: Array) -> float:
    """Return half the smallest eigenvalue s if S - s / 2 I has a Cholesky factor, else 0."""
    shift = float(eigvalsh(S, subset_by_index=[0, 0])[0]) / 2
    try:
        cholesky(S - shift * np.eye(len(S)), lower=True, overwrite_a=True)
    except LinAlgError:
        return 0.0
    return max(0.0, shift)


def certify_witness(A: Array, v: Array, strict: bool = True) -> Certificate:
    """Check vᵀAv <= 0 (strict: A is not positive definite), or < 0 (A is not positive semidefinite).

    >>> certify_witness(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1.0, -1.0]), strict=False).proved
    True
    """
    S, D = _equilibrate(A)
    form = quadratic_form(S, v / D)
    name, sign = ("definite", "<= 0") if strict else ("semidefinite", "< 0")
    claim = f"not positive {name}: the witness v has vᵀAv {sign}"
    wrong = form > 0 if strict else form >= 0
    checks = (
        Check(f"vᵀAv {sign} fails in exact arithmetic (1: yes)", float(wrong or not np.isfinite(form)), 0.0),
        Check("v is 0 (1: yes)", float(not np.abs(v).max(initial=0.0) > 0), 0.0),
    )
    facts = {"vᵀAv, an upper bound": form}
    return Certificate("impossible", claim, checks=checks, facts=facts, witness=(tuple(float(x) for x in v),))


def quadratic_form(A: Array, v: Array) -> float:
    """Return an upper bound on vᵀAv that is exact but for the rounding of one sum for each row.

    >>> tiny = 2.0**-53
    >>> quadratic_form(np.array([[1.0, 1.0], [1.0, 1.0 - tiny]]), np.array([1.0, -1.0])) <= -0.99 * tiny
    True
    """
    sums = []
    for a, x in zip(A, v, strict=True):
        high, low = _two_product(v, np.full_like(v, x))
        terms = np.concatenate([*_two_product(a, high), *_two_product(a, low)])
        sums.append(math.fsum(terms.tolist()))
    return math.fsum(sums) + EPS / 2 * math.fsum(map(abs, sums))


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return p and e with a b = p + e exactly (Dekker 1971)."""
    p = a * b
    a_high, b_high = (2.0**27 + 1) * a, (2.0**27 + 1) * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


class RationalElimination(NamedTuple):
    """The result of elimination in rational numbers."""

    definite: bool
    semidefinite: bool
    witness: Array | None  # (n,) with vᵀAv <= 0, or < 0 where A is not semidefinite


def eliminate(A: Array) -> RationalElimination:
    """Decide definiteness by elimination in rational numbers.

    After eliminating [A | I] by rows, row j of the right half is a vector v with vᵀAv = pivot j.

    >>> eliminate(np.array([[1.0, 1.0], [1.0, 1.0]]))
    RationalElimination(definite=False, semidefinite=True, witness=array([-1.,  1.]))
    """
    n = len(A)
    S = [[Fraction(float(x)) for x in row] for row in A]
    rows = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    null_vector: Array | None = None
    for j in range(n):
        pivot = S[j][j]
        if pivot < 0:
            return RationalElimination(False, False, _scale_to_floats(rows[j]))
        below = [i for i in range(j + 1, n) if S[i][j] != 0]
        if pivot == 0:
            if below:
                # The form [[0, b], [b, a]] is negative for this combination of two rows.
                i, b, a = below[0], S[below[0]][j], S[below[0]][below[0]]
                t = -a / b if a > 0 else (-1 if b > 0 else 1)
                return RationalElimination(
                    False, False, _scale_to_floats([x + t * y for x, y in zip(rows[i], rows[j], strict=True)])
                )
            null_vector = _scale_to_floats(rows[j]) if null_vector is None else null_vector
            continue
        for i in below:
            ratio = S[i][j] / pivot
            S[i] = [x - ratio * y for x, y in zip(S[i], S[j], strict=True)]
            rows[i] = [x - ratio * y for x, y in zip(rows[i], rows[j], strict=True)]
    return RationalElimination(null_vector is None, True, null_vector)


def _scale_to_floats(v: list[Fraction]) -> Array:
    size = max(abs(x) for x in v)
    return np.array([float(x / size) for x in v])


def certify_elimination(A: Array, strict: bool = True, refuse: bool = False) -> Certificate:
    """Check by elimination in rational numbers that A is positive (semi)definite, or (`refuse`) that it is not."""
    found = eliminate(A)
    answer = found.definite if strict else found.semidefinite
    name = "definite" if strict else "semidefinite"
    claim = f"{'not ' * refuse}positive {name}, by elimination in rational numbers"
    checks = (Check("pivots that say otherwise", float(answer == refuse), 0.0),)
    return Certificate("impossible" if refuse else "exact", claim, checks=checks)
