"""What the rows of a generalised linear model sum up to at a point, with the sizes that rounding is relative to.

A score η = β·x + b is off by a few eps of the sizes summed in it: its *slack* s. That moves φ by |φ'| s and the
gradient by Σ w φ" s z, which is at most sqrt(Σ w φ" s²) in the norm of the inverse Hessian.

Least squares with a free intercept takes the targets about their mean y₀ where that is far from 0 for their spread:
y - y₀ is rounded by a share of itself, and b - y₀ is taken in the longest numbers that there are, so that the size
of the targets costs no digit of the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.coordinates import (
    CheckedColumnMoments,
    ScaledCoordinates,
    column_moments,
    coordinates_from,
    less,
    origin_of,
)
from certifit.checkers.plain.blocks import dense, dense_rows, float_rows, row_squares
from certifit.checkers.plain.dual_points import EPS, DualSums
from certifit.checkers.plain.response_columns import response_columns
from certifit.checkers.plain.response_conjugates import gain, has_conjugate
from certifit.checkers.plain.response_likelihoods import constant_score
from certifit.checkers.plain.response_losses import GlmClaim, LossTerms, loss, score_rounding, term_size
from certifit.rows import Array, Block, Largest, Matrix, Rows, Sums


class GlmPoint(NamedTuple):
    """A model's coefficients, for columns less their centre m and targets less theirs."""

    claim: GlmClaim
    beta: Array  # (d,)
    b: float
    m: Array  # (d,)
    b_slack: float  # how far rounding may have moved b
    y0: float = 0.0  # what the targets, and b, are less
    null: float = 0.0  # score of a constant model, or about that beside an offset; 0 without an intercept

    @classmethod
    def of(
        cls, coef: Array, intercept: float, claim: GlmClaim, m: Array, y0: float = 0.0, null: float = 0.0
    ) -> GlmPoint:
        # Far from 0 the intercept and β·m cancel: the sum is taken in the longest numbers that there are.
        beta, far = np.asarray(coef, dtype=np.float64).ravel(), np.asarray(m, dtype=np.longdouble)
        b = float(np.longdouble(intercept) + (beta * far).sum() - np.longdouble(y0))
        size = abs(float(intercept)) + float(np.abs(beta) @ np.abs(m)) + abs(y0)
        slack = EPS * abs(b) + float(np.finfo(np.longdouble).eps) * (len(beta) + 4) * size
        return cls(claim, beta, b, m, slack, y0, null)


class RowTerms(NamedTuple):
    """What the rows with a positive weight contribute at a point."""

    Z: Matrix  # (rows, d) centred; CSR where that is wide
    times: Array  # (rows,) row weights
    w: Array  # (rows,) row weights times trials
    y: Array  # (rows,)
    offset: Array  # (rows,)
    eta: Array  # (rows,) scores with the offset
    at: LossTerms

    def slope_size(self, moved: Array) -> Array:
        """What the rounding of φ', at the scores as they are, is a few eps of (rows,); `moved`: `score_rounding`."""
        with np.errstate(all="ignore"):  # what is not finite proves nothing
            return self.at.u_size + np.abs(self.at.h) * moved / EPS


def row_terms(at: GlmPoint, block: Block) -> RowTerms:
    """The terms of a block's rows."""
    y, offset, w = response_columns(at.claim.layout, block)
    y, used, times = y - at.y0, w > 0, block.w
    if not used.all():
        y, w, offset, times = y[used], w[used], offset[used], times[used]
    Z = less(float_rows(block.X if used.all() else block.X[used]), at.m)
    with np.errstate(all="ignore"):
        eta = Z @ at.beta + at.b + offset
    return RowTerms(Z, times, w, y, offset, eta, loss(at.claim, eta, y))


@dataclass(frozen=True)
class GradientSize(Sums):
    """What the rounding of a gradient Σ w φ' z is a few eps of: Σ s |z| with the size s of each row's w φ'.

    Where every |z| <= 1 and Σ w z² is known it is at most sqrt(Σ s²/w) sqrt(Σ w z²), which needs no pass over the z.
    """

    total: float  # Σ s
    squared: float  # Σ s² / w
    direct: Array  # (m,) Σ s |z|, or 0-d where that is not formed

    @classmethod
    def of(cls, size: Array, times: Array, Z: Matrix, coordinates: ScaledCoordinates) -> GradientSize:
        direct = size @ abs(Z) if not coordinates.plain or coordinates.squares is None else np.zeros(())
        return cls(float(size.sum()), float((size / times) @ size), direct)

    def without(self, kept: Array) -> GradientSize:
        return self if self.direct.ndim == 0 else replace(self, direct=self.direct[kept])

    def bound(self, coordinates: ScaledCoordinates) -> Array:
        """For each entry of the gradient (m,)."""
        if self.direct.ndim or coordinates.squares is None:
            return self.direct
        product = np.sqrt(self.squared) * np.sqrt(coordinates.squares) * (1 + 1e-9)
        return np.where(product < self.total, product, self.total)  # no |z| is above 1


@dataclass(frozen=True)
class GlmQuadratic(Sums):
    """Loss, gradient and Hessian in scaled coordinates."""

    loss: float
    loss_size: float  # what the rounding of the loss is a few eps of
    loss_slack: float  # Σ w |φ'| s, but for the intercept's part of s, which all rows share
    g: Array  # (m,)
    g_size: GradientSize  # the same of the gradient
    slack: float  # Σ w φ" s²
    H: Array  # (m, m), or 0-d where not formed
    weight: float  # Σ w
    y: float  # Σ w y
    offset: float  # Σ w offset
    curvature: float  # Σ w φ"
    null: float  # loss of the constant model
    null_size: float  # what its rounding is a few eps of
    terms: float  # Σ w of the terms that half a deviance is usually computed from
    outside: int  # rows whose score belongs to no mean


def quadratic(at: GlmPoint, coordinates: ScaledCoordinates, hessian: bool, block: Block) -> GlmQuadratic:
    """Sum a block's part."""
    terms = row_terms(at, block)
    w, (phi, u, h, phi_size, _) = terms.w, terms.at
    d, Z = len(at.beta), coordinates.scaled(terms.Z)
    with np.errstate(all="ignore"):  # sums that are not finite prove nothing
        moved = score_rounding(at.claim, terms.eta, terms.y)
        slack = EPS * ((d + 4) * _summed(at, coordinates, terms, Z) + np.abs(terms.offset) + 2 * np.abs(terms.eta))
        slack = slack + moved + (EPS * np.abs(terms.y) if at.y0 else 0.0)
        size, g = w * terms.at.u_size, (w * u) @ Z  # an error of the score is part of the slack
        null = loss(at.claim, at.null + terms.offset, terms.y)
        return GlmQuadratic(
            float(w @ phi),
            float(w @ phi_size),
            float(w @ (np.abs(u) * slack)),
            g,
            GradientSize.of(size, terms.times, Z, coordinates),
            float(w @ (np.abs(h) * (slack + at.b_slack) ** 2)),
            _weighted_gram(Z, w * h) if hessian else np.zeros(()),
            float(w.sum()),
            float(w @ terms.y),
            float(w @ terms.offset),
            float(w @ np.abs(h)),
            float(w @ null.phi),
            float(w @ null.phi_size),
            float(w @ term_size(at.claim, terms.y)),
            int(np.isinf(phi).sum()),
        )


def _summed(at: GlmPoint, coordinates: ScaledCoordinates, terms: RowTerms, Z: Matrix) -> Array:
    """At least the sum of the sizes of the terms in β·z of each row (rows,)."""
    if coordinates.kept is not None or not coordinates.plain:
        return abs(terms.Z) @ np.abs(at.beta)
    lengths = np.sqrt(row_squares(Z))  # Cauchy and Schwarz
    return lengths * (float(np.linalg.norm(at.beta * coordinates.scale)) * (1 + 1e-9))


def _weighted_gram(Z: Array, h: Array) -> Array:
    """Σ h z zᵀ (m, m) of weights h, none of which is negative but by rounding; Z is overwritten."""
    Z *= np.sqrt(np.maximum(h, 0.0))[:, None]
    return Z.T @ Z


class GlmMeasure(NamedTuple):
    """A model's coefficients, and what the rows sum up to at them: everything that is proved starts here."""

    coordinates: ScaledCoordinates
    at: GlmPoint
    sums: GlmQuadratic

    def without(self, left_out: Array) -> GlmMeasure:
        """The same without these columns."""
        if not len(left_out):
            return self
        kept, s = np.setdiff1d(np.arange(len(self.sums.g)), left_out), self.sums
        H = s.H[np.ix_(kept, kept)] if s.H.ndim else s.H
        sums = replace(s, g=s.g[kept], g_size=s.g_size.without(kept), H=H)
        return GlmMeasure(self.coordinates.without(kept), self.at, sums)


@dataclass(frozen=True)
class ResponseMoments(Sums):
    """Weighted sums of the columns, and of the targets about one of them."""

    columns: CheckedColumnMoments
    weight: float  # Σ w, times trials
    y: float  # Σ w (y - about)
    yy: float  # Σ w (y - about)²
    offset: float  # Σ w offset

    def centre(self, about: float) -> float:
        """The mean of targets that lie far from 0 for their spread, 0 for others."""
        with np.errstate(all="ignore"):
            far = np.float64(self.y) / self.weight
            mean, variance = about + far, self.yy / self.weight - far**2
            return float(mean) if np.isfinite(mean) and mean**2 > 64 * variance else 0.0

    def null_score(self, claim: GlmClaim, about: float, y0: float) -> float:
        """The score of a constant model of the targets less y0, or about that beside an offset.

        Without an intercept it is 0, unless that belongs to no mean; squares are taken about the mean all the same,
        since a column of ones may stand for the intercept.
        """
        squares = (claim.family, claim.link) == ("gaussian", "identity")
        with np.errstate(all="ignore"):
            if not (claim.intercept or squares) and np.isfinite(loss(claim, np.zeros(1), np.ones(1)).phi[0]):
                return 0.0
            mean = (about - y0) + np.float64(self.y) / self.weight
            return float(constant_score(claim, float(mean), self.weight) - self.offset / self.weight)


def _is_shifted(claim: GlmClaim) -> bool:
    """Whether targets may be shifted, since the intercept takes it up."""
    return claim.intercept and (claim.family, claim.link) == ("gaussian", "identity")


def _first_target(claim: GlmClaim, rows: Rows) -> float:
    """The target of the first row with a weight of the first block, 0 where there is none."""
    y, _, w = response_columns(claim.layout, next(iter(rows)))
    return float(y[np.argmax(w > 0)]) if (w > 0).any() and _is_shifted(claim) else 0.0


def _response_moments(claim: GlmClaim, origin: Array, about: float, block: Block) -> ResponseMoments:
    y, offset, w = response_columns(claim.layout, block)
    used = w > 0
    y, offset, w = y[used] - about, offset[used], w[used]
    with np.errstate(over="ignore"):
        sums = float(w.sum()), float(w @ y), float(w @ y**2), float(w @ offset)
    return ResponseMoments(column_moments(origin, block), *sums)


def measured(coef: Array, intercept: float, claim: GlmClaim, rows: Rows, most: int) -> GlmMeasure:
    """The sums at these coefficients (d,), with the Hessian of up to `most` parameters."""
    origin, about = origin_of(rows, claim.intercept), _first_target(claim, rows)
    s = rows.sum(partial(_response_moments, claim, origin, about))
    coordinates = coordinates_from(s.columns, origin, claim.intercept)
    y0 = s.centre(about) if _is_shifted(claim) else 0.0
    at = GlmPoint.of(coef, intercept, claim, coordinates.m, y0, s.null_score(claim, about, y0))
    hessian = len(at.beta) + claim.intercept <= most
    return GlmMeasure(coordinates, at, rows.sum(partial(quadratic, at, coordinates, hessian)))


@dataclass(frozen=True)
class LongGradient(Sums):
    """The gradient in scaled coordinates, in the longest numbers that there are."""

    g: Array  # (m,)
    size: Array  # (m,) sum of the sizes of its terms


def long_gradient(at: GlmPoint, coordinates: ScaledCoordinates, block: Block) -> LongGradient:
    """Sum a block's part; where columns are nearly collinear, what rounding does to a row counts many times."""
    terms = row_terms(at, block)
    w = response_columns(at.claim.layout, block)[2]
    exact = dense(block.X)[w > 0].astype(np.longdouble) - at.m
    Z, wu = coordinates.scaled(exact), (terms.w * terms.at.u).astype(np.longdouble)
    return LongGradient(wu @ Z, np.abs(wu) @ np.abs(Z))


def reach(inverse: Array, coordinates: ScaledCoordinates, block: Block) -> Largest:
    """The largest row, squared, in the norm of H⁻¹ (m, m)."""
    Z = coordinates.scaled(less(dense_rows(block.X, block.w > 0), coordinates.m))
    return Largest(float(np.einsum("ij,ij->i", Z @ inverse, Z).max(initial=0.0)))


# Dual points. --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InterceptSlope(Sums):
    """The data term along the intercept."""

    loss: float
    rise: float  # Σ w φ' over the rows where that is positive
    fall: float  # Σ w |φ'| over the others
    h: float  # Σ w φ"

    @property
    def u(self) -> float:
        return self.rise - self.fall


def _slope(at: GlmPoint, block: Block) -> InterceptSlope:
    terms = row_terms(at, block)
    w, u = terms.w, terms.at.u
    with np.errstate(all="ignore"):
        return InterceptSlope(
            float(w @ terms.at.phi),
            float(w @ np.maximum(u, 0.0)),
            float(w @ np.maximum(-u, 0.0)),
            float(w @ np.abs(terms.at.h)),
        )


class DualCandidate(NamedTuple):
    """The dual point u = φ' at a point, its two signs scaled so that it is in balance."""

    at: GlmPoint
    rise: float = 1.0  # factor of the positive u
    fall: float = 1.0  # factor of the negative ones


def balanced_candidate(at: GlmPoint, rows: Rows, close: float = 1e-11) -> DualCandidate | None:
    """The dual point at the intercept where Σ w φ' is about 0, scaled into balance; None where there is none.

    Newton's method with step control: wherever it ends, the heavier side is scaled down.
    """
    if not at.claim.intercept:
        return DualCandidate(at)
    here = rows.sum(partial(_slope, at))
    for _ in range(60):
        if not np.isfinite(here.loss) or abs(here.u) <= close * (here.rise + here.fall):
            break
        step = float(np.clip(here.u / here.h if here.h > 0 else np.copysign(np.inf, here.u), -2.0, 2.0))
        if at.claim.family == "gaussian":  # a parabola
            step = here.u / here.h
        for _ in range(30):
            trial = rows.sum(partial(_slope, at._replace(b=at.b - step)))
            if np.isfinite(trial.loss) and abs(trial.u) < abs(here.u):
                break
            step /= 2
        else:
            break
        at, here = at._replace(b=float(at.b - step)), trial
    less = min(here.rise, here.fall)
    if not (np.isfinite(here.loss) and less > 0):
        return None
    return DualCandidate(at, less / here.rise, less / here.fall)


@dataclass(frozen=True)
class GlmDualSums(Sums):
    """What a dual point sums up to."""

    sums: DualSums
    u_size: float  # what the rounding of Σ w u is a few eps of

    @property
    def rounded(self) -> DualSums:
        """The same, with the rounding of the dual numbers themselves as imbalance: 64 eps are far more than a few."""
        lost = 64 * EPS * max(0.0, self.u_size - float(self.sums.mass))
        return replace(self.sums, balance=np.abs(self.sums.balance) + lost)

    @property
    def unrounded(self) -> DualSums:
        """The same as if sums were exact."""
        s = self.sums
        return replace(s, gain_size=0.0, v_size=0 * s.v_size, balance=0 * s.balance)


def dual_sums(candidate: DualCandidate, block: Block) -> GlmDualSums:
    """What a block adds to the lower bound of a candidate."""
    with np.errstate(all="ignore"):
        return _dual_sums(candidate, block)


def _dual_sums(candidate: DualCandidate, block: Block) -> GlmDualSums:
    claim = candidate.at.claim
    terms = row_terms(candidate.at, block)
    factor = np.where(terms.at.u > 0, candidate.rise, candidate.fall)
    u = factor * terms.at.u
    if has_conjugate(claim):  # u itself is the dual number, however it came about
        return explicit_dual_sums(claim, u, terms)
    # The dual number is φ' exactly; g(τu) >= τ g(u), since g is concave and g(0) >= 0.
    size = factor * terms.slope_size(score_rounding(claim, terms.eta, terms.y))
    value = factor * terms.at.phi - u * (terms.eta - terms.offset)
    value_size = factor * terms.at.phi_size + size * (np.abs(terms.eta) + np.abs(terms.offset))
    return _sums(terms, u, size, (value, value_size))


def explicit_dual_sums(claim: GlmClaim, u: Array, terms: RowTerms) -> GlmDualSums:
    """The sums of dual numbers u (rows,) by the conjugate, which is -inf where u is outside its range."""
    value, size = gain(claim, u, terms.y)
    return _sums(terms, u, np.abs(u), (value + u * terms.offset, size + np.abs(u * terms.offset)))


def _sums(terms: RowTerms, u: Array, u_size: Array, gains: tuple[Array, Array]) -> GlmDualSums:
    w, (value, value_size) = terms.w, gains
    v, v_size = (w * u) @ terms.Z, (w * u_size) @ abs(terms.Z)
    balance, mass = np.asarray(float(w @ u)), np.asarray(float(w @ np.abs(u)))
    return GlmDualSums(DualSums(float(w @ value), float(w @ value_size), v, v_size, balance, mass), float(w @ u_size))
