"""Columns that are combinations of others: what a fit may say of them, and what it has to choose.

With R the triangular factor of the rows, R_left = R_kept C says that the scores do not change along the directions
(-C, 1). A fit either gives the columns left out the coefficient 0, or takes the *shortest* coefficients β, those that
have no part along such a direction: of all with the same scores they have the smallest |β|, without the intercept.

Either way the coefficients are unique, though the data alone do not determine them. A coefficient is determined if no
such direction moves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from certifit.checkers.linear_model.coordinates import ScaledCoordinates, error_of
from certifit.checkers.linear_model.newton_bound import triangle_of
from certifit.checkers.plain.dual_points import EPS
from certifit.core import Check
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class CollinearTuning:
    """What rounding may do to combinations of columns."""

    combination: float = 256.0  # what a column left out may differ from a combination of the others by, in m eps
    noise: float = 64.0  # entries of C up to this, in m eps and the columns' condition, are nothing but rounding
    most: float = 1e-6  # share of the coefficients that changes no score up to which rounding may excuse it
    moved: float = 1e-7  # share of a direction with which a coefficient certainly moves
    still: float = 1e-11  # share below which it certainly does not
    loose: float = 1e4  # times the smallest coefficients with the same scores: larger ones are absurd


class LeftOutColumns(NamedTuple):
    """Columns that a fit says are combinations of others, and which coefficients it gives them."""

    numbers: Array  # (l,)
    shortest: bool = False  # the shortest coefficients; else 0


class SameScores(NamedTuple):
    """Directions (-C, 1) along which no score changes, one for each column left out, in the given columns."""

    kept: Array  # (r,) numbers of the columns kept
    left: Array  # (l,) and of those left out
    C: Array  # (r, l)
    intercept: Array  # (l,) by which each direction moves the intercept
    intercept_noise: Array  # (l,) how much of that may be rounding
    share: Array  # (d1,) the largest part that each parameter is of a direction, where columns have unit length
    noise: float  # how much of that may be rounding
    apart: float  # largest distance of a column left out from those kept before it, relative to its length
    Q: Array  # (d, r) an orthonormal basis of all coefficients without a part along these directions
    T: Array  # (r, r) triangular: Q Tᵀ⁻¹ takes coefficients of the columns kept, over `unit`, to the shortest
    unit: Array  # (r,) lengths of the rows of (1, C)
    loose: float  # how far rounding may have turned Q

    def along(self, beta: Array) -> Array:
        """The part (d,) of coefficients (d,) along these directions."""
        return beta - self.Q @ (self.Q.T @ beta)

    def shortest(self, J: Array) -> Array:
        """The rows of J (d1, c), coefficients of the columns kept and the intercept, as the shortest coefficients."""
        d, out = len(self.Q), J.copy()
        out[:d] = self.Q @ solve_triangular(self.T, J[self.kept] / self.unit[:, None], trans="T")
        out[d:] += self.intercept @ out[self.left]
        return out

    def errors(self, beta: Array) -> Array:
        """How far (β, b) (d + 1,) may be from the shortest with their scores: their part along, and its rounding."""
        moving = np.zeros(len(beta), dtype=bool)
        moving[self.kept], moving[self.left] = self.C.any(axis=1), True
        free = np.abs(self.along(beta)) + np.where(moving, self.loose * float(np.linalg.norm(beta)), 0.0)
        shift = np.abs(self.intercept) @ free[self.left] + self.intercept_noise @ np.abs(beta[self.left])
        return np.append(free, shift)


def same_scores(
    numbers: Array, coordinates: ScaledCoordinates, rows: Rows, tuning: CollinearTuning = CollinearTuning()
) -> SameScores:
    """The directions for these columns (l,), from the rows."""
    R = rows.sum(partial(triangle_of, coordinates)).R
    d, m, scale = len(coordinates.scale), coordinates.m, coordinates.scale
    kept = np.setdiff1d(np.arange(R.shape[1]), numbers)
    lengths = np.linalg.norm(R, axis=0)
    unit = np.where(lengths > 0, lengths, 1.0)
    C, noise = _combinations(R / unit, kept, numbers, tuning)
    apart = _apart(R / unit, kept, numbers, d)
    rounded = np.where(C != 0, noise * np.maximum(1.0, np.abs(C).max(axis=0, initial=0.0)), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        # In the given columns, each direction so that the column left out has the weight 1.
        inner = np.append(unit[:d] * scale, unit[d:])
        C, rounded = (A / inner[kept, None] * inner[numbers] for A in (C, rounded))
        slopes = kept < d
        terms = np.vstack([-C[~slopes], m[kept[slopes], None] * C[slopes], -m[None, numbers]])
        lost = rounded[~slopes].sum(axis=0) + np.abs(m[kept[slopes]]) @ rounded[slopes]
        lost = lost + 4 * EPS * np.abs(terms).sum(axis=0)
        share = _shares(kept, numbers, C, terms, np.hypot(lengths[:d] * scale, m * lengths[-1]))
        Q, T, row, loose = _row_space(kept[slopes], numbers, C[slopes], rounded[slopes])
    return SameScores(
        kept[slopes], numbers, C[slopes], terms.sum(axis=0), lost, share, noise, apart, Q, T, row, loose
    )


def _shares(kept: Array, left: Array, C: Array, terms: Array, lengths: Array) -> Array:
    """The largest part (d + 1,) that each parameter is of a direction, for columns of these lengths (d,)."""
    d = len(lengths)
    parts = np.zeros((d + 1, len(left)))
    slopes = kept < d
    parts[kept[slopes]] = np.abs(C[slopes]) * lengths[kept[slopes], None]
    parts[left, np.arange(len(left))] = lengths[left]
    parts /= np.maximum(parts.max(axis=0, initial=0.0), 1e-300)
    parts[left, np.arange(len(left))] = 1.0
    parts[d] = np.abs(terms.sum(axis=0)) / np.maximum(np.abs(terms).sum(axis=0), 1e-300)
    return parts.max(axis=1)


def _row_space(kept: Array, left: Array, C: Array, rounded: Array) -> tuple[Array, Array, Array, float]:
    """Factors of (1, C)ᵀ, its rows of unit length first, and how far rounding may have turned them."""
    d = len(kept) + len(left)
    unit = np.sqrt(1 + (C**2).sum(axis=1))
    W = np.zeros((d, len(kept)))
    W[kept, np.arange(len(kept))] = 1 / unit
    W[left] = (C / unit[:, None]).T
    if not (len(kept) and np.isfinite(W).all()):
        return np.zeros((d, 0)), np.zeros((0, 0)), unit[:0], np.inf if len(kept) else 0.0
    Q, T = qr(W, mode="economic")
    smallest = np.linalg.svd(T, compute_uv=False)[-1]
    turned = min(float(np.linalg.norm(rounded)), float(np.linalg.norm(rounded / unit[:, None])) / smallest)
    return Q, T, unit, 2 * turned + 8 * d * EPS / smallest


def _apart(scaled: Array, kept: Array, left: Array, d: int) -> float:
    """The largest distance of a column left out from combinations of those kept before it, the intercept first."""
    order = np.roll(kept, 1) if len(kept) and kept[-1] == d else kept
    Q = qr(scaled[:, order], mode="economic")[0] if len(order) else np.zeros((len(scaled), 0))
    largest = 0.0
    for j in left:
        before = Q[:, : int(((order < j) | (order == d)).sum())]
        rest = scaled[:, j] - before @ (before.T @ scaled[:, j])
        largest = max(largest, float(np.linalg.norm(rest - before @ (before.T @ rest))))
    return largest


def _combinations(scaled: Array, kept: Array, left: Array, tuning: CollinearTuning) -> tuple[Array, float]:
    """C (m, l) of columns of unit length, and its rounding relative to its columns.

    Entries that are nothing but rounding are 0, where the columns left out are such combinations too.
    """
    size = max(scaled.shape)
    if not len(kept):
        return np.zeros((0, len(left))), 0.0
    C, _, _, values = np.linalg.lstsq(scaled[:, kept], scaled[:, left], rcond=EPS)
    noise = tuning.noise * size * EPS * (values[0] / values[-1] if values[-1] > 0 else np.inf)
    apart = np.linalg.norm(scaled[:, left] - scaled[:, kept] @ C, axis=0)
    used = np.abs(C) > noise * np.maximum(1.0, np.abs(C).max(axis=0, initial=0.0))
    for j in np.flatnonzero(~used.all(axis=0)):
        few = np.zeros(len(kept))
        few[used[:, j]] = np.linalg.lstsq(scaled[:, kept[used[:, j]]], scaled[:, left[j]], rcond=EPS)[0]
        if np.linalg.norm(scaled[:, left[j]] - scaled[:, kept] @ few) <= max(apart[j], tuning.noise * size * EPS):
            C[:, j] = few
    return C, noise


def left_out_checks(
    left: LeftOutColumns, beta: Array, found: SameScores, size: int, tuning: CollinearTuning = CollinearTuning()
) -> tuple[Check, ...]:
    """Columns that were left out must be combinations of the others, and coefficients (d,) those that were chosen."""
    apart = Check(
        "distance of those columns from combinations of those before them",
        found.apart,
        tuning.combination * size * EPS,
    )
    if not left.shortest:
        largest = float(np.abs(beta[left.numbers]).max(initial=0.0))
        return Check("coefficients of columns that were left out, which must be 0", largest, 0.0), apart
    length = float(np.linalg.norm(beta))
    part = float(np.linalg.norm(found.along(beta))) / length if length > 0 else 0.0
    limit = min(tuning.combination * size * EPS + found.loose, tuning.most)
    return Check("part of the coefficients that changes no score, which must be 0", part, limit), apart


def loose_check(
    beta: Array, b: Array, coordinates: ScaledCoordinates, R: Array, tuning: CollinearTuning = CollinearTuning()
) -> Check:
    """How much larger β (k, d) and b (k,), intercepts of centred rows, are than the smallest with the same scores.

    R (r, d1) is the triangular factor of the rows in these coordinates. A fit that says nothing of collinear
    columns may give any of the minimisers, but none that is nearly all a direction along which no score changes.
    """
    theta = beta * coordinates.scale
    theta = np.column_stack([theta, b]) if coordinates.intercept else theta
    theta = theta if coordinates.kept is None else theta[:, coordinates.kept]
    _, values, vectors = np.linalg.svd(R)
    seen = vectors[: len(values)][values > 16 * R.shape[1] * EPS * values.max(initial=0.0)]
    needed, there = float(np.linalg.norm(theta @ seen.T)), float(np.linalg.norm(theta))
    ratio = there / needed if needed > 0 else (np.inf if there > 0 else 1.0)
    return Check("coefficients of collinear columns, times the smallest", ratio, tuning.loose)


def shortest_errors(found: SameScores, J: Array, inverse: Array, distance: float, beta: Array) -> Array:
    """How far each of (β, b) can be from the shortest minimiser's, where θ is this near in the norm of H.

    J (d1, m) takes θ to (β, b) of the columns kept, `inverse` is H⁻¹.
    """
    return error_of(found.shortest(J), inverse, distance) + found.errors(beta)[: len(J)]


def are_undetermined(stated: Array, found: SameScores, tuning: CollinearTuning = CollinearTuning()) -> bool:
    """Whether these parameters (d + 1,), the intercept as the last, are those that the directions move.

    At the edge, where a direction hardly moves a parameter, either answer is right.
    """
    must = found.share > max(tuning.moved, 100 * found.noise)
    may = found.share > (tuning.still if found.noise < tuning.still else 0.0)
    return bool((stated >= must).all() and (stated <= may).all())
