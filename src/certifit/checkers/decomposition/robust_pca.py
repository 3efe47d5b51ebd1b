"""The checker of robust PCA: L + S = X, and a dual point proves a lower bound on |L|_* + λ|S|_1.

Claim: the objective is within the gap of the smallest. With row weights w, Z = X - centre and A_w = diag(√w) A, the
objective is |L_w|_* + λ Σ wᵢ |S_ij|. For any Y with |diag(1/√w) Y|₂ <= 1 and |Y_ij| <= λ wᵢ it is at least <Y, Z>
(weak duality: nuclear and spectral norm are dual to each other). A Y outside this set is first scaled into it, so
that every Y gives a valid bound. Where a model has none, the checker looks for one near U Vᵀ + λ w sign(S), as in the
optimality conditions of Candès et al. (2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.decomposition.pca import worst
from certifit.checkers.linalg.eigenvalue_bounds import EPS
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class RobustPCAParts:
    """A fitted robust PCA, as plain arrays."""

    low_rank: Array  # (n, d), centre included
    sparse: Array  # (n, d)
    components: Array  # (k, d)
    singular_values: Array  # (k,)
    centre: Array  # (d,)
    dual: Array | None  # (n, d)
    lam: float
    median: bool  # whether the centre must be the columns' medians; else it must be zero
    lam_asked: float | str | None = "any"  # the setting; None is 1 / √max(n, d), 'any' is not looked at
    explained_variance: Array | None = None  # (k,) divided by Σ w - 1, checked where given


def certify(parts: RobustPCAParts, tol: float, rows: Rows) -> Certificate:
    """Check the low-rank and sparse parts of these rows."""
    shape = rows.n_rows, rows.n_features
    if parts.low_rank.shape != shape or parts.sparse.shape != shape:
        raise DataError(
            got=f"parts of {parts.low_rank.shape[0]} rows and a table of {rows.n_rows}",
            wanted="the rows that the model was fitted on",
        )
    data = rows.load()
    X, w = dense(data.X), data.w
    used = w > 0
    root = np.sqrt(w[used])[:, None]
    Z, L = X[used] - parts.centre, root * (parts.low_rank[used] - parts.centre)
    S = X[used] - parts.low_rank[used]
    sigma = np.linalg.svd(L, compute_uv=False)
    sizes = float(w[used] @ np.abs(S).sum(axis=1))
    objective = float(sigma.sum()) + parts.lam * sizes
    Y = _find_dual_point(root * Z, L, parts.lam * root) if parts.dual is None else parts.dual[used] / root
    excess = _excess(Y, parts.lam * root)
    terms = Y * (root * Z) / max(1.0, excess)
    rounding = 64 * EPS * float(np.abs(terms).sum())
    off = _median_error(parts, X[used], w[used])
    # With another centre the problem is another one, for which the bound does not hold.
    bound = 0.0 if off else max(0.0, float(terms.sum()) - rounding)
    checks = [
        _check_sum(parts, X),
        Check("centre off, as a share of the rows", off, 0.0),
        *_check_axes(parts, L, sigma, float(np.linalg.norm(root) * np.linalg.norm(parts.centre))),
    ]
    checks += _check_settings(parts, float(w.sum()))
    if parts.dual is not None:
        checks.append(Check("dual point outside its set by", max(excess - 1.0, 0.0), 1e-9))
    claim = "nuclear norm of the low-rank part plus lam times the sum of the sparse part's sizes within gap of the "
    claim += "smallest"
    # Without a low-rank part the objective is this; what is split cannot be larger.
    scale = parts.lam * float(w[used] @ np.abs(Z).sum(axis=1))
    limit = tol * objective + 2 * rounding
    return Certificate("optimal", claim, objective, bound, tol, limit, tuple(checks), scale=max(scale, objective))


def _check_settings(parts: RobustPCAParts, weight: float) -> list[Check]:
    """Check λ against the setting, and the variances against the singular values."""
    checks = []
    if not isinstance(parts.lam_asked, str):
        usual = 1 / np.sqrt(max(weight, parts.low_rank.shape[1]))
        asked = usual if parts.lam_asked is None else float(parts.lam_asked)
        checks.append(Check("lam_ off what lam asks for by", abs(parts.lam - asked), 1e-12 * asked))
    if parts.explained_variance is not None:
        off = np.asarray(parts.explained_variance) - parts.singular_values**2 / (weight - 1)
        limit = 1e-10 * parts.singular_values**2 / (weight - 1)
        checks.append(worst("variances off by", off, limit))
    return checks


def _excess(Y: Array, t: Array) -> float:
    """Return by which factor Y is too large for |Y|₂ <= 1 and |Y_ij| <= tᵢ, including rounding of the norm."""
    spectral = float(np.linalg.norm(Y, 2)) * (1 + 8 * min(Y.shape) * EPS)
    return max(spectral, float((np.abs(Y) / t).max()))


def _check_sum(parts: RobustPCAParts, X: Array) -> Check:
    """Check that the two parts add up to X."""
    size = np.abs(parts.low_rank) + np.abs(parts.sparse) + np.abs(X)
    off = np.abs(parts.low_rank + parts.sparse - X)
    worst = float((off / np.where(size > 0, size, 1.0)).max())
    return Check("low-rank plus sparse part minus X, relative", worst, 8 * EPS)


def _median_error(parts: RobustPCAParts, X: Array, w: Array) -> float:
    """Return by how much more than half of the rows lie above, or below, the centre of a column, as a share."""
    if not parts.median:
        return float(np.any(parts.centre != 0))
    half = w.sum() / 2
    beyond = np.maximum(w @ (parts.centre < X), w @ (parts.centre > X)) - half
    return float(max(beyond.max() / w.sum() - 1e-12, 0.0))


def _check_axes(parts: RobustPCAParts, L: Array, sigma: Array, offset: float) -> tuple[Check, ...]:
    """Check that the components are the right singular vectors of L and span its rows.

    `offset` is the size of the centre, which was added to L and subtracted again.
    """
    B, k = parts.components, len(parts.components)
    largest = float(sigma.max(initial=0.0)) or 1.0
    L, sigma, found = L / largest, sigma / largest, parts.singular_values / largest
    # For singular vectors, its columns are orthogonal and their lengths are the singular values.
    rotated = L @ B.T
    # Every component is right relative to itself, but for rounding of the largest entries.
    rounding = 16 * max(L.shape) * EPS + 4 * EPS * offset / largest
    inner = rotated.T @ rotated - np.diag(found**2)
    near = 1e-10 * np.multiply.outer(found, found) + rounding * (np.add.outer(found, found) + rounding)
    rest = float(np.linalg.norm(L - rotated @ B))
    places = Check("singular values off by, relative", np.inf, 0.0)
    if k <= len(sigma):
        places = worst("singular values off by, relative", found - sigma[:k], 1e-10 * sigma[:k] + rounding)
    return (
        Check("components orthonormal to", float(np.abs(B @ B.T - np.eye(k)).max(initial=0.0)), 1e-10),
        Check("low-rank part outside the components, relative", rest, rounding * np.sqrt(min(L.shape)) + 1e-14),
        worst("components not singular vectors by, relative", inner.ravel(), near.ravel()),
        places,
    )


def _find_dual_point(Z: Array, L: Array, t: Array, rounds: int = 200) -> Array:
    """Look for a dual point: alternate between U Vᵀ on L's tangent space and t sign(S) where S is not 0."""
    U, sigma, V = np.linalg.svd(L, full_matrices=False)
    r = int((sigma > 1e-9 * sigma[0]).sum())
    U, V = U[:, :r], V[:r]
    S = Z - L
    known = np.abs(S) > 1e-6 * np.abs(S).max(initial=0.0)
    fixed = t * np.sign(S)
    Y = U @ V
    for _ in range(rounds):
        Y = np.where(known, fixed, np.clip(Y, -t, t))
        D = Y - U @ V
        left = U @ (U.T @ D)
        Y = Y - left - (D - left) @ V.T @ V
    return np.where(known, fixed, np.clip(Y, -t, t))
