"""The checker of kernel PCA: eigenpairs of the centred Gram matrix, which is made anew from the rows.

Claim: no k directions of feature space leave a smaller mean squared distance of the rows to their span, and each
eigenvalue is in its place (`checkers.linalg.eigenpairs`: residuals, and no larger eigenvalue outside the span). The
kernel's own rounding, which `PlainKernel.reach` bounds, is allowed on top of the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.linalg import eigenpairs
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import PlainKernel, PlainLinear
from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class KernelPCACheckTuning:
    """Numbers that the checker of kernel PCA shares with nobody."""

    zero: float = 1e-12  # eigenvalues below this share of the largest count as zero
    reach_rows: int = 64  # rows whose bound on rounding is computed at a time


@dataclass(frozen=True, eq=False)
class PlainCosine(PlainLinear):
    """x·z / (|x| |z|), 0 where a row is 0."""

    def __call__(self, A: Any, B: Any) -> Array:
        return np.asarray(_unit(A) @ _unit(B).T)

    def reach(self, A: Any) -> Array:
        return np.full(A.shape[0], np.sqrt(2.0 * A.shape[1] + 12))


def _unit(A: Any) -> Array:
    A = dense(A)
    length = np.linalg.norm(A, axis=1, keepdims=True)
    return A / np.where(length > 0, length, 1.0)


@dataclass(frozen=True)
class PlainPairs(PlainKernel):
    """A user's function of two rows, taken to compute what it is meant to up to a few roundings for each column."""

    function: Callable[..., Any]
    params: dict[str, Any] = field(default_factory=dict)

    def __call__(self, A: Any, B: Any) -> Array:
        A, B = dense(A), dense(B)
        return np.array([[float(self.function(x, z, **self.params)) for z in B] for x in A]).reshape(len(A), len(B))

    def reach(self, A: Any) -> Array:
        own = np.array([float(self.function(x, x, **self.params)) for x in dense(A)])
        return np.sqrt((A.shape[1] + 8) * np.abs(own))


@dataclass(frozen=True)
class KernelPCAClaim:
    """The fitted attributes of a kernel PCA."""

    values: Array  # (k,)
    vectors: Array  # (n, k)
    means: Array | None  # (n,) of the Gram matrix's columns, as kept for new rows


class ComponentTerms(NamedTuple):
    """What the settings say of the number of components, and whether signs are those of our fits."""

    n_components: int | None
    without_zeros: bool
    signed: bool


class GramMeasured(NamedTuple):
    """The centred Gram matrix of the rows."""

    K: Array  # (n, n)
    means: Array  # (n,) of its columns before
    rounding: float  # how far the kernel's rounding may move its eigenvalues


def rounding_of(kernel: PlainKernel, X: Any, tuning: KernelPCACheckTuning = KernelPCACheckTuning()) -> float:
    """eps Σ reach(x)², which bounds the norm of what rounding adds to a Gram matrix."""
    step = tuning.reach_rows
    parts = [X[i : i + step].astype(np.float64) for i in range(0, X.shape[0], step)]
    return float(np.finfo(np.float64).eps) * float(sum((kernel.reach(part) ** 2).sum() for part in parts))


def measure_gram(K: Array, rounding: float) -> GramMeasured:
    """Centre the Gram matrix (n, n) of the rows."""
    means = K.mean(axis=0)
    C = K - means - (K - means).mean(axis=1)[:, None]
    return GramMeasured((C + C.T) / 2, means, rounding)


def certify(
    claim: KernelPCAClaim,
    found: GramMeasured,
    terms: ComponentTerms,
    tol: float,
    tuning: KernelPCACheckTuning = KernelPCACheckTuning(),
) -> Certificate:
    """Check eigenvalues and eigenvectors of the centred Gram matrix."""
    K, V = found.K, claim.vectors
    n, k = V.shape
    trace, top = float(np.trace(K)), float(claim.values.max(initial=0.0))
    size = max(top, float(np.abs(K).max()))
    zero = 2 * tuning.zero * top + found.rounding
    quotients = (V * (K @ V)).sum(axis=0)
    # A value that was called zero is compared with its quotient, which must be next to nothing.
    values = np.where((claim.values == 0) & (np.abs(quotients) <= zero), quotients, claim.values)
    allowed = tol + (found.rounding / size if size else 0.0)
    spectral = eigenpairs.certify(K, values, V, allowed)
    # No eigenvalue, however small, moves by more than the norm of what rounding adds to the matrix (Weyl).
    moved = [
        replace(c, limit=c.limit + found.rounding) if c.name.startswith("values off") else c for c in spectral.checks
    ]
    # Of values called zero the quotients are rounding, in no order.
    rise = float(np.diff(claim.values).max(initial=0.0))
    moved = [replace(c, residual=rise) if c.name.startswith("values not descending") else c for c in moved]
    checks = [*moved, *_count_checks(claim, terms, trace, zero, n)]
    scale = float(np.abs(found.means).max()) + float(np.abs(np.diag(K)).max())
    if claim.means is not None:
        off = float(np.abs(claim.means - found.means).max())
        checks.append(Check("means of the Gram matrix, off by", off, tol * scale + found.rounding))
    if terms.signed and k:
        absolute = np.abs(V)
        first = np.argmax(absolute >= (1 - 1e-6) * absolute.max(axis=0), axis=0)
        checks.append(Check("vectors of the wrong sign", float((V[first, np.arange(k)] < 0).sum()), 0.0))
    claim_words = f"no {k} directions leave a smaller mean squared distance in feature space, "
    claim_words += "and each eigenvalue is in its place"
    if spectral.kind == "statistical":
        claim_words += ", with probability 1 - 1e-09"
    objective = (trace + (spectral.objective if k else 0.0)) / n
    bound = (trace + (spectral.bound if k else 0.0) - zero) / n
    limit = ((spectral.limit if k else 0.0) + 2 * zero) / n
    if not size:  # no direction captures anything of a Gram matrix of zeros
        bound = objective
    kind = "optimal" if spectral.kind == "exact" else spectral.kind
    return Certificate(
        kind, claim_words, objective, bound, tol, limit, tuple(checks), spectral.facts,
        scale=max(spectral.scale / n if k else 0.0, scale, limit if not size else 0.0),
    )  # fmt: skip


def _count_checks(claim: KernelPCAClaim, terms: ComponentTerms, trace: float, zero: float, n: int) -> list[Check]:
    """Check the number of components; where zeros are left out, that nothing else is."""
    asked = n if terms.n_components is None else min(n, terms.n_components)
    k = len(claim.values)
    if not terms.without_zeros:
        return [Check("components beyond or short of n_components", float(abs(k - asked)), 0.0)]
    checks = [
        Check("components beyond n_components", float(max(0, k - asked)), 0.0),
        Check("eigenvalues that are not positive", float((claim.values <= 0).sum()), 0.0),
    ]
    if k < asked:
        left = trace - float(claim.values.sum())
        checks.append(Check("sum of the eigenvalues left out", left, n * zero))
    return checks


@dataclass(frozen=True)
class InverseClaim:
    """A ridge regression of rows on their coordinates."""

    coef: Array  # (n, d)
    Z: Array  # (n, k)
    X: Array  # (n, d)
    alpha: float


def with_inverse(certificate: Certificate, claim: InverseClaim, kernel: PlainKernel) -> Certificate:
    """Add the check that the coefficients solve (k(Z, Z) + α I) C = X."""
    G = kernel(claim.Z, claim.Z) + claim.alpha * np.eye(len(claim.Z))
    X = dense(claim.X)
    residual = float(np.abs(G @ claim.coef - X).max())
    size = float(np.abs(G).sum(axis=1).max() * np.abs(claim.coef).max()) + float(np.abs(X).max())
    rounding = 64 * len(G) * float(np.finfo(np.float64).eps)
    # Never more than a hundredth of the rows: coefficients that rounding has made would solve any equations.
    limit = min((certificate.tol + rounding) * size, 1e-2 * float(np.abs(X).max()))
    check = Check("inverse transform, residual of its equations", residual, limit)
    return replace(certificate, checks=(*certificate.checks, check))
