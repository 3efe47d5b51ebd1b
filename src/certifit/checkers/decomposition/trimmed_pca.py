"""The checker of trimmed PCA: the rows kept are those nearest to the plane, and the plane is their PCA.

Claim: neither keeping other rows nor, for the rows kept, another basis lowers the objective by more than the
tolerance. With e the squared distances to the plane and h the weight to keep, no weights 0 <= v <= w of total h have
a smaller sum than those that take rows in ascending order of e; and no plane is nearer to the kept rows than their
principal axes, which the PCA checker proves. Nothing is claimed about changing both at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.decomposition import pca
from certifit.checkers.linalg.eigenvalue_bounds import EPS
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows
from certifit.rows.reweighted import ReweightedRows


@dataclass(frozen=True)
class TrimmedPCAParts:
    """A fitted trimmed PCA, as plain arrays."""

    keep: float  # share of the total weight that is kept
    weights: Array  # (n,) v, the weight with which each row is kept
    errors: Array  # (n,) e
    plane: pca.PCAClaim  # of the rows kept


def certify(parts: TrimmedPCAParts, tol: float, rows: Rows, more: tuple[Check, ...] = ()) -> Certificate:
    """Check a fitted trimmed PCA on these rows; `more` are further checks for the certificate."""
    v, B, m = parts.weights, parts.plane.components, parts.plane.mean
    if len(v) != rows.n_rows or len(parts.errors) != rows.n_rows:
        raise DataError(
            got=f"weights of {len(v)} rows, errors of {len(parts.errors)} and a table of {rows.n_rows}",
            wanted="the rows that the model was fitted on",
        )
    e, z, w = rows.map(partial(_measure, B, m)).T
    h = parts.keep * float(w.sum())
    smallest = _smallest_sum(e, w, h)
    digits = 64 * float(np.finfo(rows.dtype).eps)
    # The sums below use weights within their limits, even where the model's are not.
    kept = np.clip(v, 0.0, w)
    # Rows are converted to float64 before distances are computed; rows within their own digits of the plane are
    # all taken to lie in it.
    distance, last = np.sqrt(e), 64 * EPS * (np.sqrt(z) + float(np.linalg.norm(m)))
    rounding = float(kept @ (distance * last + last**2)) + digits**2 * float(kept @ z)
    # Errors whose relative difference is below 1e-10 share the border.
    gain = Check(
        "gain from keeping other rows", max(float(kept @ e) - smallest, 0.0), (tol + 2e-10) * smallest + rounding
    )
    checks = [
        Check("weights outside 0 to sample_weight by", float(np.abs(v - kept).max()), 1e-9 * float(w.max())),
        Check("weight kept minus weight to keep, relative", abs(float(v.sum()) - h) / h, 1e-9),
        gain,
        pca.worst("errors off by", parts.errors - e, tol * e + distance * last + last**2 + np.finfo(float).tiny),
        *more,
    ]
    if not kept.sum() > 1:
        raise DataError(got=f"a weight of {kept.sum():g} kept", wanted="more than 1: a variance needs two rows")
    found = pca.certify(parts.plane, tol, ReweightedRows(rows, kept, m))
    checks += [
        *found.checks,
        Check("reconstruction error above the smallest for the rows kept", found.gap, found.limit),
    ]
    facts = {"rows left out": float((v == 0).sum())}
    claim = (
        "neither choosing other rows nor, for the rows kept, another basis lowers the mean squared reconstruction "
        "error of the rows kept by more than tol (relative); changing both at once may"
    )
    return Certificate("stationary", claim, smallest / h, 0.0, tol, checks=tuple(checks), facts=facts)


def _smallest_sum(e: Array, w: Array, h: float) -> float:
    """Return the least Σ v e over 0 <= v <= w with Σ v = h: rows are taken in ascending order of e."""
    order = np.argsort(e, kind="stable")
    before = np.cumsum(w[order]) - w[order]
    return float(np.clip(h - before, 0.0, w[order]) @ e[order])


def _measure(B: Array, m: Array, block: Block) -> Array:
    """Return the squared distance to the plane, that to the mean, and the weight of each row (rows, 3)."""
    # Sparse rows are made dense a few at a time.
    step = max(1, 2**21 // len(m))
    parts = [_distances(B, m, dense(block.X[i : i + step])) for i in range(0, len(block.w), step)]
    return np.column_stack([np.concatenate(parts), block.w])


def _distances(B: Array, m: Array, X: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        Z = X - m
        found = np.column_stack([((Z - Z @ B.T @ B) ** 2).sum(axis=1), (Z**2).sum(axis=1)])
    # A distance whose square overflows becomes a very large one.
    return np.nan_to_num(found, nan=1e300, posinf=1e300)
