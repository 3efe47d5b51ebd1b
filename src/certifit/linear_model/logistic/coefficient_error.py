"""How far each coefficient can be from the minimiser's, from what the last pass of a fit proved.

The proof by self-concordance has a Hessian H₀ at an earlier point, r with H >= e⁻ʳ H₀ at the last one, and a gap,
which is at least ν²/2. The minimiser is then no further than e^(r/2) · -log(1 - νc) / c in the norm of H₀, c² = eʳ
reach. Rounding of the scores and of the sums is added to ν, as in `checkers.linear_model.likelihood`.
"""

from __future__ import annotations

import numpy as np

from certifit.checkers.linear_model.coordinates import ScaledCoordinates
from certifit.checkers.linear_model.newton_bound import self_concordant_distance
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.linear_model.logistic.solve import LogisticProblem
from certifit.rows import Array

CoefficientError = tuple[tuple[float, ...], ...]


def concordance_error(
    problem: LogisticProblem, x: Array, gap: float, value: float, weight: float
) -> CoefficientError:
    """The errors of (β, b), in one row, at the last point x (d1,) of a two-class fit; none where none are proved."""
    anchor, extent, reach = problem.proof.anchor, problem.proof.extent, problem.proof.reach
    if anchor is None or anchor.inverse is None or extent is None or not np.isfinite(reach):
        return ()
    d = problem.shape[1] - problem.intercept
    shift = np.zeros(d) if problem.shift is None else problem.shift
    step = x - anchor.theta
    r = np.sqrt(reach * max(0.0, float(step @ anchor.H @ step))) if step.any() else 0.0
    grown = float(np.exp(min(r, 50.0)))
    score = 2 * (len(x) + 4) * EPS * (float(np.abs(x) @ extent) + 2 * float(np.abs(x[:d]) @ np.abs(shift)))
    # Σ w (p - y)² is at most the loss, and Σ w z² at most the weight times the largest z².
    off = summation_error(problem.rows.n_rows) * np.sqrt(value * weight) * extent
    off[:d] += 4 * EPS * problem.lam2 * np.abs(x[:d])
    rounding = np.sqrt(grown * float(off @ np.abs(anchor.inverse) @ off)) + 0.5 * score * np.sqrt(weight)
    nu, c = float(np.sqrt(2 * max(0.0, gap)) + rounding), float(np.sqrt(grown * reach))
    distance = float(np.sqrt(grown)) * self_concordant_distance(nu, c)
    if not np.isfinite(distance):
        return ()
    own = ScaledCoordinates(shift, np.ones(d), problem.intercept)
    error = own.parameter_error(anchor.inverse, distance) + 4 * EPS * np.abs(x)
    return ((*error[:d].tolist(), float(error[d]) + score if problem.intercept else 0.0),)


def smaller_errors(first: CoefficientError, second: CoefficientError) -> CoefficientError:
    """The smaller of two proved errors, coefficient by coefficient; () where neither is."""
    if not (first and second):
        return first or second
    return tuple(map(tuple, np.minimum(first, second).tolist()))
