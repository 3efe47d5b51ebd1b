"""The sums that `partial_fit` adds to, compared with those of the rows.

A model of ours keeps them as `sums_`. Nothing is predicted from them before the next call of `partial_fit`, which
takes them as they are: wrong ones would spoil the model then. Other libraries' models have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.naive_bayes.class_statistics import PlainClassMoments, safe_ratio, seen_categories
from certifit.checkers.naive_bayes.moment_equations import MomentEvidence, count_evidence
from certifit.exceptions import DataError
from certifit.rows import Array


class FamilyTotals(NamedTuple):
    """The sums over the rows of each class that an exponential family needs."""

    weight: Array  # (k, d)
    total: Array  # Σ w T  (k, d, m)
    squares: Array  # Σ w T²  (k, d, m)
    log_h: Array  # Σ w log h  (k, d)


def shaped(values: Any, name: str, shape: tuple[int, ...]) -> Array:
    """Return fitted numbers as float64; an error where they are not of the shape that rows and classes say."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != shape:
        raise DataError(
            got=f"{name} of shape {found.shape}",
            wanted=f"{shape}, as the classes and the columns say",
            fix="Fit the model again, on the data given here.",
        )
    return found


def moment_sums_evidence(
    kept: Mapping[str, Any], found: PlainClassMoments, floor: float, tol: float
) -> MomentEvidence:
    """Compare weights, means (in standard deviations) and squares (relative); `floor` is added to variances."""
    weight, centre, delta, ssd = (shaped(kept[f], f"sums_ {f}", found.weight.shape) for f in _MOMENTS)
    some = found.weight > 0
    squares = found.ssd + found.weight * max(floor, 1e-300)
    off = (centre - found.centre) + (delta - found.delta)
    off = np.where(np.abs(off) <= 8 * np.finfo(np.float64).eps * np.abs(found.mean), 0.0, off)
    parts = [
        (weight - found.weight) / max(float(found.weight.max()), 1e-300),
        np.where(some, off / np.sqrt(safe_ratio(squares, found.weight) + ~some), 0.0),
        np.where(some, (ssd - found.ssd) / (squares + ~some), ssd),
    ]
    return count_evidence("sums that partial_fit adds to", np.stack(parts), np.zeros((3, *weight.shape)), tol, 1.0)


_MOMENTS = ("weight", "centre", "delta", "ssd")


def count_sums_evidence(kept: Mapping[str, Any], found: Mapping[str, Array], tol: float) -> MomentEvidence:
    """Compare weighted counts, by name, relative to the largest of all."""
    stored = [shaped(kept[name], f"sums_ {name}", values.shape).ravel() for name, values in found.items()]
    wanted = [values.ravel() for values in found.values()]
    return count_evidence("sums that partial_fit adds to", np.concatenate(stored), np.concatenate(wanted), tol)


def category_sums_evidence(kept: Mapping[str, Any], mass: list[Array], tol: float) -> MomentEvidence:
    """Compare the number of categories seen in each column, and their weights by class."""
    seen = seen_categories(mass)
    sizes = shaped(kept["sizes"], "sums_ sizes", seen.shape)
    if not np.array_equal(sizes, seen) or np.asarray(kept["sizes"]).dtype.kind not in "iu":
        raise DataError(
            got=f"sums_ sizes {np.asarray(kept['sizes'])}",
            wanted=f"{seen}, one more than the largest category of each column",
            fix="Fit the model again, on the data given here.",
        )
    counts = np.concatenate([m[:, :n] for m, n in zip(mass, seen, strict=True)], axis=1)
    return count_sums_evidence(kept, {"counts": counts}, tol)


def family_sums_evidence(kept: Mapping[str, Any], found: FamilyTotals, tol: float) -> MomentEvidence:
    """Compare sums of statistics, each relative to the root of the sum of its squares."""
    stored = FamilyTotals(*(shaped(kept[f], f"sums_ {f}", getattr(found, f).shape) for f in FamilyTotals._fields))
    size = np.sqrt(found.squares * found.weight[..., None])
    heaviest = max(float(found.weight.max()), 1e-300)
    parts = [
        (stored.weight - found.weight) / heaviest,
        safe_ratio(stored.total - found.total, size) + np.where(size > 0, 0.0, stored.total),
        safe_ratio(stored.squares - found.squares, found.squares) + np.where(size > 0, 0.0, stored.squares),
        (stored.log_h - found.log_h) / (heaviest + np.abs(found.log_h) + np.abs(found.total).sum(axis=2)),
    ]
    off = np.concatenate([part.ravel() for part in parts])
    return count_evidence("sums that partial_fit adds to", off, np.zeros(len(off)), tol, 1.0)
