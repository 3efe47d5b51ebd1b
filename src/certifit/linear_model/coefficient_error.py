"""How far each coefficient can be from the minimiser's, from what the last pass of a fit proved.

The proof by self-concordance has a Hessian H₀ at an earlier point (or a smaller one), r with H >= e⁻ʳ H₀ at the last
point, and the decrement of the gradient there, in the norm of H₀⁻¹. With ν² = eʳ times its square and c² = eʳ R²
reach the minimiser is no further than e^(r/2) · -log(1 - νc) / c in the norm of H₀.

Rounding of the scores and of the sums is added to ν, as in `checkers.linear_model.logistic.likelihood`; an error of
H₀ by a share ρ makes its inverse larger by at most 1 / (1 - ρ).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.coordinates import error_of
from certifit.checkers.linear_model.newton_bound import self_concordant_distance, self_concordant_gap
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.optimise.self_concordance import ConcordanceProof, HessianPoint
from certifit.rows import Array

CoefficientError = tuple[tuple[float, ...], ...]


def gap_to_reach(tol: float, usual: float = 1e-6, least: float = 1e-12) -> float:
    """The relative gap at which a smooth penalised fit stops, of which `tol` is to be proved.

    Whoever asks for less than the usual gap wants digits of the coefficients: the gap is about the square of their
    error.

    >>> gap_to_reach(1e-4), gap_to_reach(1e-7), gap_to_reach(1e-13)
    (0.0001, 1e-12, 1e-13)
    """
    return min(tol, max(tol**2, least)) if tol < usual else tol


class PassRounding(NamedTuple):
    """What rounding may have done to a pass over the rows."""

    n_rows: int
    slope: float  # at least the sum of the sizes of w φ'
    curvature: float  # at least Σ w φ"
    score: float  # largest score, offset included
    penalty: Array  # (m,) size of the penalty's gradient

    def of_score(self, x: Array, extent: Array) -> float:
        """How far a score may be off at x (m,), where no |z| is above `extent` (m,)."""
        return 2 * (len(x) + 4) * EPS * (float(np.abs(x) @ extent) + 2 * self.score)

    def of_loss(self, x: Array, extent: Array) -> float:
        """How far an error of the scores may move Σ w φ."""
        score = self.of_score(x, extent)
        return score * self.slope + score**2 * self.curvature


class ProvedDistance(NamedTuple):
    """What gradient and Hessian prove of the last point of a fit, with all that rounding may hide."""

    nu: float  # ν
    c: float
    grown: float  # 1 / (1 - ρ) eʳ
    inverse: Array  # (m, m) H₀⁻¹

    @property
    def gap(self) -> float:
        """How far the objective can be above its minimum."""
        return self_concordant_gap(self.nu, self.c) if self.nu * self.c <= 0.9 else np.inf

    def errors(self, J: Array, x: Array) -> Array:
        """How far each of J x (d1,) can be from the minimiser's: J takes x (m,) to the coefficients."""
        distance = float(np.sqrt(self.grown)) * self_concordant_distance(self.nu, self.c)
        return error_of(J, self.inverse, distance) * (1 + 1e-9) + (len(x) + 4) * EPS * (np.abs(J) @ np.abs(x))


def proved_distance(proof: ConcordanceProof, x: Array, rounding: PassRounding) -> ProvedDistance | None:
    """What is proved of the last point x (m,) of a loop; None where nothing is."""
    anchor, share = proof.anchor, summation_error(rounding.n_rows)
    if anchor is None or anchor.inverse is None or proof.last is None or not np.array_equal(proof.last.theta, x):
        return None
    reach, extent = proof.reach if proof.R > 0 else 0.0, largest_entries(proof, anchor)
    lost = len(x) * (share + 8 * EPS) * float(np.diag(anchor.H) @ np.diag(anchor.inverse))
    if not (np.isfinite(reach) and np.isfinite(extent).all() and lost < 0.5):
        return None
    step = x - anchor.theta
    r = proof.R * np.sqrt(reach * max(0.0, float(step @ anchor.H @ step))) if step.any() else 0.0
    grown = float(np.exp(min(r, 50.0))) / (1 - lost)
    off = share * rounding.slope * extent + 4 * EPS * rounding.penalty
    off_norm = np.sqrt(float(off @ np.abs(anchor.inverse) @ off))
    nu = np.sqrt(grown) * (np.sqrt(anchor.decrement(proof.last.g)) + off_norm)
    nu += rounding.of_score(x, extent) * np.sqrt(rounding.curvature)
    found = ProvedDistance(float(nu), proof.R * float(np.sqrt(grown * reach)), grown, anchor.inverse)
    return found if np.isfinite(found.gap) else None


def largest_entries(proof: ConcordanceProof, anchor: HessianPoint) -> Array:
    """At least the largest |z| of each column (m,): where it was not measured, the reach bounds it."""
    if proof.extent is not None:
        return proof.extent
    with np.errstate(invalid="ignore"):
        return np.sqrt(proof.reach * np.diag(anchor.H))


def as_row(error: Array, intercept: bool) -> CoefficientError:
    """Errors of one score's coefficients, and of its intercept, which is 0 where there is none."""
    return (tuple(map(float, error if intercept else np.append(error, 0.0))),)


def smaller_errors(first: CoefficientError, second: CoefficientError) -> CoefficientError:
    """The smaller of two proved errors, coefficient by coefficient; () where neither is."""
    if not (first and second):
        return first or second
    return tuple(map(tuple, np.minimum(first, second).tolist()))
