"""Integrals over the real line by adaptive Gauss-Legendre quadrature, with many pieces evaluated at a time.

The integral over a piece is compared with the sum over its two halves; where they disagree, the halves are halved
again. Next to a finite end of a support the variable is the logarithm of the distance from it, in which even a
density like x^(-0.9) is smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

from certifit.rows import Array

NODES, WEIGHTS = roots_legendre(16)


@dataclass(frozen=True)
class QuadratureTuning:
    """The numbers that decide when pieces are fine enough."""

    tol: float = 1e-13  # share of the integral of |f| by which a piece and its halves may differ
    levels: int = 45  # how often a piece may be halved
    most_pieces: int = 2_000  # at once: where there are more, halves disagree by rounding, not by the shape of f
    slope_length: float = 8.0  # log-distance over which the power of a density at the end of its support is measured


class Nodes(NamedTuple):
    """The points at which a function was evaluated, its values, and the weights of the integral."""

    x: Array  # (n,)
    dx: Array  # (n,) weights: ∫ f is about Σ dx f(x)
    f: Array  # (n, m)
    error: Array  # (m,) estimate of the error of Σ dx f(x)


class QuadraturePieces(NamedTuple):
    """Intervals (a, b) of a variable t, where x = t (side 0), end + exp t (side 1) or end - exp t (side -1)."""

    a: Array  # (k,)
    b: Array  # (k,)
    side: Array  # (k,)
    end: Array  # (k,)

    def at(self, chosen: Array) -> QuadraturePieces:
        """Return the chosen pieces."""
        return QuadraturePieces(*(field[chosen] for field in self))

    def nodes(self) -> tuple[Array, Array]:
        """Return x (k, 16) and dx (k, 16)."""
        half = 0.5 * (self.b - self.a)[:, None]
        t = 0.5 * (self.a + self.b)[:, None] + half * NODES
        side, end = self.side[:, None], self.end[:, None]
        distance = np.exp(np.where(side == 0, 0.0, t))
        x = np.where(side == 0, t, end + side * distance)
        return x, half * WEIGHTS * distance

    def rounding(self) -> Array:
        """Return the relative rounding error (k,) of the distance to the end of a support in x = end ± exp t."""
        plain = self.side == 0
        return np.where(plain, 0.0, np.spacing(np.abs(self.end)) * np.exp(-np.where(plain, 0.0, self.a)))

    def halves(self) -> QuadraturePieces:
        """Return all left halves, then all right halves (2k)."""
        middle = 0.5 * (self.a + self.b)
        a, b = np.concatenate([self.a, middle]), np.concatenate([middle, self.b])
        return QuadraturePieces(a, b, np.tile(self.side, 2), np.tile(self.end, 2))


class PieceValues(NamedTuple):
    """The values of a function at the 16 nodes of each of k pieces."""

    x: Array  # (k, 16)
    dx: Array  # (k, 16)
    f: Array  # (k, 16, m)
    total: Array  # (k, m)


def _evaluate(f: Callable[[Array], Array], pieces: QuadraturePieces) -> PieceValues:
    x, dx = pieces.nodes()
    values = f(x.ravel()).reshape(*x.shape, -1)
    return PieceValues(x, dx, values, np.einsum("kn,knm->km", dx, values))


def integrate(f: Callable[[Array], Array], pieces: QuadraturePieces, tuning: QuadratureTuning) -> Nodes:
    """Return nodes on which every column of f (n,) -> (n,) or (n, m) is integrated to the tolerance."""
    first, whole = pieces, _evaluate(f, pieces).total
    scale = np.abs(whole).sum(axis=0)  # (m,)
    error = np.zeros_like(scale)
    done: list[PieceValues] = []
    for level in range(tuning.levels):
        halves = pieces.halves()
        found = _evaluate(f, halves)
        left, right = np.split(found.total, 2)
        scale = np.maximum(scale, np.abs(found.total).sum(axis=0))
        parts = left + right  # (k, m)
        finite = np.isfinite(parts)  # an infinite piece counts as settled: halving would not change it
        with np.errstate(invalid="ignore"):
            apart = np.where(finite, np.abs(parts - whole), 0.0)
            rounding = np.where(finite, pieces.rounding()[:, None] * np.abs(parts), 0.0)
        give_up = level == tuning.levels - 1 or len(whole) > max(tuning.most_pieces, 4 * len(first.a))
        settled = (apart <= tuning.tol * scale + rounding).all(axis=1) | give_up
        error += apart[settled].sum(axis=0)
        keep = np.tile(settled, 2)
        done.append(PieceValues(*(field[keep] for field in found)))
        if settled.all():
            break
        pieces, whole = halves.at(~keep), found.total[~keep]
    error += _end_integrals(f, first, scale, tuning)
    x, dx, values, _ = (np.concatenate(column) for column in zip(*done, strict=True))
    return Nodes(x.ravel(), dx.ravel(), values.reshape(x.size, -1), error)


def _end_integrals(
    f: Callable[[Array], Array], pieces: QuadraturePieces, scale: Array, tuning: QuadratureTuning
) -> Array:
    """Return the integral (m,) nearer to the ends of supports than the pieces reach, inf where it diverges.

    f is continued there as a power of the distance. The result is doubled, since f may also have logarithmic factors.
    """
    ends = sorted({(side, end) for side, end in zip(pieces.side.tolist(), pieces.end.tolist(), strict=True) if side})
    rest = np.zeros_like(scale)
    for side, end in ends:
        t = nearest(end) + np.array([0.0, tuning.slope_length])
        here, further = np.abs(f(end + side * np.exp(t)).reshape(2, -1)) * np.exp(t)[:, None]  # (m,) each
        matters = (here > tuning.tol * scale) | np.isinf(here)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = np.log(further / here) / tuning.slope_length
            rest += np.where(matters, np.where(power > 0, 2 * here / power, np.inf), 0.0)
    return rest


def cut_pieces(
    lower: float, upper: float, ends: Iterable[float], places: Iterable[tuple[float, float]]
) -> QuadraturePieces:
    """Pieces of (lower, upper) around `places` (mean, standard deviation), apart at the `ends` of supports.

    >>> cut_pieces(0.0, np.inf, [], [(1.0, 1.0)]).a.min()
    np.float64(-700.0)
    """
    multiples = 2.0 ** np.arange(-1, 11)  # standard deviations from the mean at which pieces are cut
    steps = np.concatenate([-multiples, [0.0], multiples])
    marks = np.unique(np.concatenate([mean + sd * steps for mean, sd in places]))
    finite = sorted({e for e in (lower, upper, *ends) if np.isfinite(e) and lower <= e <= upper})
    borders = [*([] if np.isfinite(lower) else [-np.inf]), *finite, *([] if np.isfinite(upper) else [np.inf])]
    out: list[tuple[float, float, int, float]] = []
    for left, right in pairwise(borders):
        inside = marks[(marks > left) & (marks < right)]
        if len(inside) == 0:
            if not (np.isfinite(left) and np.isfinite(right)):
                continue  # a tail beyond a thousand standard deviations
            inside = np.array([0.5 * (left + right)])
        out += [(a, b, 0, 0.0) for a, b in pairwise(inside)]
        if np.isfinite(left):
            out += [(a, b, 1, left) for a, b in _logarithmic(inside[0] - left, nearest(left))]
        if np.isfinite(right):
            out += [(a, b, -1, right) for a, b in _logarithmic(right - inside[-1], nearest(right))]
    return QuadraturePieces(*(np.array(column) for column in zip(*out, strict=True)))


def nearest(end: float) -> float:
    """Return the logarithm of the smallest distance at which floats still differ from the end of a support."""
    return -700.0 if end == 0 else float(np.log(4 * np.spacing(abs(end))))


def _logarithmic(distance: float, bottom: float) -> list[tuple[float, float]]:
    """Return intervals of t = log x from `bottom` to log(distance) whose lengths double away from the top."""
    top = float(np.log(distance))
    t = np.unique(np.append(np.maximum(top - (2.0 ** np.arange(11) - 1), bottom), bottom))
    return list(pairwise(t.tolist()))
