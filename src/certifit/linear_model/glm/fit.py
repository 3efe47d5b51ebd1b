"""Fitting a generalised linear model, around the loop: where it starts, how it ends, what is then proved."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.linear_model import glm as checker
from certifit.checkers.linear_model import recession
from certifit.checkers.plain.response_losses import Spec
from certifit.core import Attributes, Certificate, Solution
from certifit.exceptions import DataError, NoSolutionError
from certifit.linear_model.glm.block_statistics import Want, measure
from certifit.linear_model.glm.coordinates import Frame
from certifit.linear_model.glm.refinement import refine
from certifit.linear_model.glm.solve import Problem, Seed, minimise
from certifit.linear_model.glm.start import least_squares_start
from certifit.linear_model.glm.target import Layout
from certifit.rows import Array, ArrayRows, Block

LONG = 2**18  # rows from which the start is the subsample's solution
SMALL = 2**18  # entries up to which least squares ends with a refined step, needed or not
EXTREME = {"logit": 12.0, "log": 12.0, "probit": 4.0, "cloglog": 2.5}  # scores beyond which a mean is nearly certain


def start_from(problem: Problem, sample: ArrayRows, null: float) -> tuple[Problem, Array]:
    """Where to start without an earlier fit; for long tables at the subsample's solution.

    The subsample's Hessian also replaces the whole's there, see `Seed`. `null` is about a constant's score.
    """
    frame, loss, d = problem.frame, problem.loss, sample.n_features
    if frame.intercept:
        theta = frame.theta(np.zeros(d), null)
    elif loss.positive:
        theta = least_squares_start(frame, sample, loss, problem.layout)
    else:
        theta = np.zeros(frame.size(d))
    if problem.rows.n_rows < LONG:
        return problem, theta
    times = problem.rows.n_rows / sample.n_rows
    penalty = problem.penalty
    if not penalty.per_row:
        penalty = penalty._replace(alpha=penalty.alpha / times)
    part = Problem(sample, loss, frame, problem.layout, penalty, 1e-3)
    theta = minimise(part, theta, max_iter=20).params.x
    if penalty.alpha * penalty.l1_ratio > 0 or not loss.concordance:  # squares need their own Hessian, and it alone
        return problem, theta
    s = sample.sum(partial(measure, theta, frame, loss, problem.layout, Want(hessian=True, totals=False)))
    assert part.totals is not None
    assert isinstance(s.H, np.ndarray)
    return replace(problem, seed=Seed(theta, s.H, part.totals.weight, times)), theta


def finish(problem: Problem, best: Solution[Any]) -> Attributes:
    """The loop's answer as coefficients, after a last refined step where least squares needs it."""
    loss, frame, rows = problem.loss, problem.frame, problem.rows
    if not np.isfinite(best.objective):
        raise DataError(
            got=f"no coefficients for which every mean is in the range of the {loss.family.name} family",
            wanted=f"a start for the {loss.link.name} link",
            fix="Use link='log', or fit an intercept.",
        )
    fitted = coefficients(frame, best.params.x, rows.n_features)
    squares = loss.concordance == 0 == problem.penalty.alpha
    if best.status == "converged" and squares and (frame.R is not None or rows.n_rows * rows.n_features <= SMALL):
        assert problem.proof.anchor is not None
        solve = problem.proof.anchor.factor.solve
        coef, b = refine(rows, frame, problem.layout, fitted["coef_"], float(fitted["intercept_"]), solve)
        return {"coef_": coef, "intercept_": np.float64(b)}
    return fitted


def prove(problem: Problem, best: Solution[Any], fitted: Attributes, spec: Spec, tol: float) -> Certificate:
    """From the last pass where that proves it, else from the checker; an error where there is no solution."""
    if problem.proved and best.status == "converged":
        assert problem.totals is not None
        unit = max(best.objective, problem.totals.floor)  # what gaps are relative to
        claim = checker.PENALISED if spec.alpha > 0 else checker.LIKELIHOOD
        bound = best.objective - best.gain * unit
        return Certificate("optimal", claim, best.objective, bound, tol, (tol + 1e-12) * unit)
    found = checker.certify(fitted["coef_"], fitted["intercept_"], spec, tol, problem.rows)
    if spec.alpha == 0 and not (found.holds and found.kind == "optimal"):
        _refuse_unbounded(problem, fitted, spec)
    return found


def _refuse_unbounded(problem: Problem, fitted: Attributes, spec: Spec) -> None:
    """An error with its proof, if the likelihood has no maximum; some score is extreme then."""
    scores = problem.rows.map(partial(scores_of, fitted["coef_"], fitted["intercept_"], problem.layout))
    if not np.abs(scores).max() > EXTREME.get(spec.link, np.inf):
        return
    direction = recession.find(problem.rows, spec)
    certificate = None if direction is None else recession.impossible(direction, spec, problem.rows)
    if certificate is not None and certificate.holds:
        raise NoSolutionError(
            "The likelihood has no maximum: it rises for ever along a direction (separable classes, or a group "
            "without a single event). Use a penalty (alpha > 0), or leave out the columns with non-zero entries in "
            f"the direction (intercept last): {certificate.facts['direction']}",
            certificate,
        )


def coefficients(frame: Frame, theta: Array, d: int) -> Attributes:
    coef, intercept = frame.coefficients(theta, d)
    return {"coef_": coef.copy(), "intercept_": np.float64(intercept)}


def scores_of(coef: Array, intercept: float, layout: Layout, block: Block) -> Array:
    """β·x + b + offset of every row, rows without weight too."""
    eta = block.X @ coef + intercept
    if layout.offset is not None:
        eta = eta + _beside(block, layout.offset)
    if layout.exposure is not None:
        eta = eta + np.log(_beside(block, layout.exposure))
    return eta


def _beside(block: Block, place: int) -> Array:
    assert block.y is not None
    return block.y if block.y.ndim == 1 else block.y[:, place]
