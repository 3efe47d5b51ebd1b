"""What happens before and after the loop that fits a generalised linear model: its start, its end, its proof."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.linear_model import glm as checker
from certifit.checkers.linear_model import recession
from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.collinear import LeftOutColumns
from certifit.checkers.plain.dual_points import EPS, bound_below, summation_error
from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.core import Attributes, Certificate, Solution
from certifit.exceptions import NoSolutionError
from certifit.linear_model.coefficient_error import (
    CoefficientError,
    ProvedDistance,
    as_row,
    largest_entries,
    proved_distance,
)
from certifit.linear_model.column_words import moving_columns
from certifit.linear_model.glm.block_statistics import GlmRequest, measure
from certifit.linear_model.glm.coordinates import GlmCoordinates, choose_coordinates
from certifit.linear_model.glm.refinement import refine
from certifit.linear_model.glm.solve import (
    ElasticNetPenalty,
    GlmProblem,
    SubsampleSeed,
    minimise,
    refuse_start,
)
from certifit.linear_model.glm.start import least_squares_start
from certifit.linear_model.glm.working_columns import WorkingSetSquares
from certifit.rows import Array, ArrayRows, Block, Rows


def start_from(problem: GlmProblem, sample: ArrayRows, null: float) -> tuple[GlmProblem, Array]:
    """Where to start without an earlier fit; for long tables at the subsample's solution.

    The subsample's Hessian then stands in for that of all rows. `null` is about the score of a constant model.
    """
    coordinates, loss, tuning, d = problem.coordinates, problem.loss, problem.tuning, sample.n_features
    if _is_negligible(problem, sample):
        return problem, _unpenalised_start(problem, sample, null)
    if coordinates.intercept:
        theta = coordinates.theta(np.zeros(d), null)
    elif loss.positive:
        theta = least_squares_start(coordinates, sample, loss, problem.layout)
    else:
        theta = np.zeros(coordinates.size(d))
    if problem.rows.n_rows < tuning.long_table:
        return problem, theta
    times = problem.rows.n_rows / sample.n_rows
    penalty = problem.penalty
    if not penalty.per_row:
        penalty = penalty._replace(alpha=penalty.alpha / times)
    part = replace(problem, rows=sample, penalty=penalty, tol=tuning.sample_tol)
    part, theta = _solve_sample(part, sample, theta)
    # Least squares needs one Hessian, that of all rows, and then nothing else.
    if penalty.alpha * penalty.l1_ratio > 0 or not loss.concordance:
        return problem, theta
    H: Any = part.data_hessian(theta)
    if H is None:
        H = sample.sum(partial(measure, theta, coordinates, loss, problem.layout, GlmRequest(hessian=True))).H
    assert part.totals is not None
    assert isinstance(H, np.ndarray)
    return replace(problem, seed=SubsampleSeed(theta, H, part.totals.weight, times)), theta


def _solve_sample(part: GlmProblem, sample: ArrayRows, theta: Array) -> tuple[GlmProblem, Array]:
    """The problem of a subsample and its solution, from that of every `sample_stride`-th row of it.

    Newton's first steps, which are far from the solution, then cost next to nothing.
    """
    tuning = part.tuning
    few = sample.thin(tuning.sample_stride)
    if part.loss.concordance and few.n_rows >= tuning.rows_per_column * (sample.n_features + 1) and few.w.any():
        share = few.n_rows / sample.n_rows
        penalty = part.penalty if part.penalty.per_row else part.penalty._replace(alpha=part.penalty.alpha * share)
        first = replace(part, rows=few, penalty=penalty, tol=tuning.first_tol)
        found = minimise(first, theta, max_iter=tuning.sample_passes)
        theta = found.params.x if np.isfinite(found.objective) else theta
    return part, minimise(part, theta, max_iter=tuning.sample_passes).params.x


def _is_negligible(problem: GlmProblem, sample: ArrayRows) -> bool:
    """Whether a ridge penalty beside squares is so weak that rounding of the Hessian may hide it."""
    if not (problem.penalty.smooth and problem.loss.concordance == 0):
        return False
    part = abs(problem.coordinates.rows(sample.X[: problem.tuning.first_rows]))
    size = float(part.max()) if part.shape[0] else 0.0
    _, lam2 = problem.penalty.strengths(float(sample.w.sum()) * problem.rows.n_rows / max(1, sample.n_rows))
    with np.errstate(over="ignore"):  # the square of a huge column is beyond any penalty
        return bool(lam2 <= problem.tuning.negligible * problem.rows.n_rows * np.square(size))


def _unpenalised_start(problem: GlmProblem, sample: ArrayRows, null: float) -> Array:
    """The shortest least squares, which a vanishing ridge penalty tends to: no digit of it is lost to the penalty."""
    d, intercept = sample.n_features, problem.coordinates.intercept
    coordinates = choose_coordinates(problem.rows, sample, intercept, penalised=False, shortest=True)
    free = replace(problem, coordinates=coordinates, penalty=ElasticNetPenalty(0.0))
    start = coordinates.theta(np.zeros(d), null if intercept else 0.0)
    best = minimise(free, start, max_iter=problem.tuning.sample_passes)
    return problem.coordinates.theta(*coordinates.coefficients(best.params.x, d))


def finish(problem: GlmProblem, best: Solution[Any]) -> Attributes:
    """The loop's answer as coefficients, after a last refined step where least squares needs it."""
    loss, coordinates, rows = problem.loss, problem.coordinates, problem.rows
    if not np.isfinite(best.objective):
        refuse_start(loss)
    fitted = coefficients(coordinates, best.params.x, rows.n_features)
    squares = loss.concordance == 0 and not problem.penalty.biased
    few = rows.n_rows * rows.n_features <= problem.tuning.refined_entries
    if best.status == "converged" and squares and (coordinates.R is not None or few):
        assert problem.proof.anchor is not None
        solve = problem.proof.anchor.factor.solve
        coef, b = refine(rows, coordinates, problem.layout, fitted["coef_"], float(fitted["intercept_"]), solve)
        return {"coef_": coef, "intercept_": np.float64(b)}
    return fitted


def prove(problem: GlmProblem, best: Solution[Any], fitted: Attributes, claim: GlmClaim, tol: float) -> Certificate:
    """By the last pass where that proves it, else by the checker; an error where there is no solution."""
    rows = problem.rows
    if problem.proved and best.status == "converged":
        if isinstance(problem, WorkingSetSquares):
            proof = problem.certificate(best, tol)
        else:
            proof = _proved_by_the_loop(problem, best, fitted, claim, tol)
        if proof is not None and proof.holds:
            return proof
    shortest = problem.coordinates.shortest is not None
    left_out = LeftOutColumns(problem.coordinates.left_out(rows.n_features), shortest)
    found = checker.certify(fitted["coef_"], fitted["intercept_"], claim, tol, rows, left_out)
    if claim.alpha == 0 and (not found.holds or (found.kind == "stationary" and _is_extreme(problem, fitted))):
        _refuse_unbounded(rows, claim)
    return found


def _proved_by_the_loop(
    problem: GlmProblem, best: Solution[Any], fitted: Attributes, claim: GlmClaim, tol: float
) -> Certificate | None:
    """From the last pass; None where that leaves too much to rounding."""
    assert problem.totals is not None
    assert problem.rounding is not None
    assert problem.proof.anchor is not None
    x, n_rows = best.params.x, problem.rows.n_rows
    errors: CoefficientError = ()
    size = best.objective + abs(problem.totals.constant) + problem.totals.floor
    off = problem.rounding.of_loss(x, largest_entries(problem.proof, problem.proof.anchor))
    gap = best.gain * max(best.objective, problem.totals.floor)
    rotated = problem.coordinates.R is not None  # nearly collinear columns, of which rounding has moved the rows
    if rotated and n_rows * (problem.rows.n_features + 1) <= problem.tuning.checked_entries:
        return None
    if not rotated:
        found = proved_distance(problem.proof, x, problem.rounding)
        if found is None:
            return None
        gap = found.gap
        errors = _parameter_error(problem, found, x, fitted, gap + 2 * off)
    bound = bound_below(best.objective, gap + off, size, n_rows)
    rounding = 2 * (summation_error(n_rows) * size + off) + _lost_in_storage(problem, fitted)
    # The checker knows better what rounding may excuse, and what the objective is.
    if not rounding <= problem.tuning.rounding_share * min(tol, 1e-6) * best.objective:
        return None
    limit = tol * best.objective + rounding
    words = LinearModelClaims.of_deviance(claim.alpha > 0, claim.positive)
    return Certificate("optimal", words, best.objective, bound, tol, limit, parameter_error=errors)


def _lost_in_storage(problem: GlmProblem, fitted: Attributes) -> float:
    """How far the rounding of the stored intercept, and of what it cancels, may move the objective."""
    assert problem.rounding is not None
    shift = problem.coordinates.shift
    size = abs(float(fitted["intercept_"]))
    size += 0.0 if shift is None else float(np.abs(fitted["coef_"]) @ np.abs(shift))
    return problem.rounding.curvature * (4 * EPS * size) ** 2


def _parameter_error(
    problem: GlmProblem, found: ProvedDistance, x: Array, fitted: Attributes, gap: float
) -> CoefficientError:
    """How far each coefficient and the intercept can be from the minimiser's; () where that need not be unique."""
    coordinates, d = problem.coordinates, problem.rows.n_features
    assert problem.totals is not None
    lam1, lam2 = problem.penalty.strengths(problem.totals.weight)
    if lam1 > 0 and lam2 == 0:
        return ()
    errors = found.errors(coordinates.to_columns(d), x)
    if lam2 > 0:
        errors[:d] = np.minimum(errors[:d], np.sqrt(2 * gap / lam2) * (1 + 1e-9))
    coef, b = coordinates.coefficients(x, d)  # a refined step may have followed
    errors[:d] += np.abs(coef - fitted["coef_"])
    errors[d:] += abs(b - float(fitted["intercept_"]))
    return as_row(errors, coordinates.intercept)


def refuse_one_way(rows: Rows, sample: ArrayRows, claim: GlmClaim) -> None:
    """An error with its proof, if an intercept that goes one way for ever lowers every row's deviance."""
    if recession.one_way(sample, claim) is None:  # some of the rows tell that there is no such way
        return
    certificate = recession.one_way(rows, claim)
    if certificate is not None:
        raise NoSolutionError(
            "There is no minimum: every target lies at the same end of the family's range (no event at all, say), so "
            "that the deviance falls for ever as the intercept goes that way, and no penalty holds the intercept. "
            "Look at the target column, or use fit_intercept=False with a penalty.",
            certificate,
        )


def _is_extreme(problem: GlmProblem, fitted: Attributes) -> bool:
    """Whether some score is as far out as those of a likelihood that rises for ever come to be."""
    scores = problem.rows.map(partial(scores_of, fitted["coef_"], fitted["intercept_"], problem.layout))
    return bool(np.abs(scores).max() > problem.loss.link.extreme_score)


def _refuse_unbounded(rows: Rows, claim: GlmClaim) -> None:
    """An error with its proof, if the likelihood has no maximum."""
    certificate = recession.unbounded(rows, claim)
    if certificate is not None:
        columns = moving_columns(certificate, rows)
        raise NoSolutionError(
            f"The likelihood has no maximum: it rises for ever along a direction of {columns} (separable classes, or "
            "a group without a single event). Use a penalty (alpha > 0), or leave such columns out.",
            certificate,
        )


def coefficients(coordinates: GlmCoordinates, theta: Array, d: int) -> Attributes:
    """Fitted attributes at θ (m,)."""
    coef, intercept = coordinates.coefficients(theta, d)
    return {"coef_": coef.copy(), "intercept_": np.float64(intercept)}


def scores_of(coef: Array, intercept: float, layout: ResponseLayout, block: Block) -> Array:
    """β·x + b + offset of every row, rows without weight too; (rows, k) of k targets."""
    eta = block.X @ coef.T + intercept
    if layout.offset is not None:
        eta = eta + _beside(block, layout.offset)
    if layout.exposure is not None:
        eta = eta + np.log(_beside(block, layout.exposure))
    return eta


def _beside(block: Block, place: int) -> Array:
    assert block.y is not None
    return block.y if block.y.ndim == 1 else block.y[:, place]
