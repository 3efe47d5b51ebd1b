"""Probability vectors: checks of what a user gives, and exactly rounded sums over their entries."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np

from certifit.divergence.terms import Terms, log_ratio
from certifit.divergence.value import Estimate
from certifit.exceptions import DataError
from certifit.rows import Array


def probability_vector(p: Any, name: str = "p") -> Array:
    """Return `p` as float64 (k,), checked but not normalised: a sum other than one is usually a mistake."""
    p = np.asarray(p)
    if p.ndim != 1 or p.dtype.kind not in "biuf" or len(p) == 0:
        shape = "no entries" if p.size == 0 else f"shape {p.shape} of type {p.dtype}"
        raise DataError(got=f"{name} with {shape}", wanted="a vector of probabilities")
    eps = float(np.finfo(p.dtype).eps) if p.dtype.kind == "f" else 0.0
    p = p.astype(np.float64)
    if not (p >= 0).all() or not np.isfinite(p).all():
        bad = int(np.argmin((p >= 0) & np.isfinite(p)))
        raise DataError(got=f"{name}[{bad}] = {p[bad]:g}", wanted="probabilities: finite, none below 0")
    total = fsum(p)
    if abs(total - 1) > max(1e-12, (16 + len(p)) * eps):
        raise DataError(
            got=f"{name} that sums to {total:.12g}",
            wanted="probabilities that sum to one, up to rounding",
            fix=f"Divide by the sum if that is what you mean: {name} / {name}.sum().",
        )
    return p


def vector_pair(p: Any, q: Any) -> tuple[Array, Array]:
    """Return two probability vectors over the same entries."""
    p, q = probability_vector(p, "p"), probability_vector(q, "q")
    if len(p) != len(q):
        raise DataError(
            got=f"p with {len(p)} entries and q with {len(q)}",
            wanted="two vectors over the same entries",
            fix="Give entries that one of them lacks the probability 0.",
        )
    return p, q


def vector_total(terms: Terms, p: Array, q: Array) -> Estimate:
    """Return the sum of the terms, exactly rounded."""
    return _with_note(fsum(terms(p, q, log_ratio(p, q))), p, q)


def _with_note(value: float, p: Array, q: Array) -> Estimate:
    """Return the value, with a note where it is due to supports that differ."""
    lacking, note = np.flatnonzero((p > 0) & (q == 0)), ""
    if not ((p > 0) & (q > 0)).any():
        note = "disjoint supports: p and q share no entry"
    elif value == np.inf and len(lacking):
        note = f"supports differ: p[{lacking[0]}] = {p[lacking[0]]:.6g}, q[{lacking[0]}] = 0"
    return Estimate(value, method="sum over the entries", note=note)


def vector_cross_entropy(p: Array, q: Array) -> Estimate:
    """Return -Σ p log q, with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(p > 0, -p * np.log(q), 0.0)
    return _with_note(fsum(each), p, q)
