"""Leaving out one row at a time of a penalised logistic regression or squared-hinge machine, each row with a proof.

Without row i the minimum moves by a little. From the minimum of all rows, Newton's steps with the Hessian H without
the row (Sherman & Morrison) are taken for many rows at once: a product of matrices makes the margins of all rows by
all of these models. How far each of them still is from its own minimum follows from its gradient r:

- logistic: |x'(w* - w)| <= |x|_K t, K = H⁻¹ with the curvatures at w, and t = -log(1 - ρν) / ρ, where ν = |r|_K and ρ
  bounds |x_j|_K over rows (self-concordance: curvatures change by at most exp of the change of a margin; Bach,
  Self-concordant analysis for logistic regression, 2010);
- squared hinge, with a penalised intercept: the objective is 1-strongly convex, so |w* - w| <= |r|.

Rows whose class this does not settle are fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.plans import SingleRows
from certifit.rows import Array


@dataclass(frozen=True)
class LeftOutTuning:
    """When a row is settled."""

    rows_at_once: int = 64  # models that are moved together: their margins of all rows fit in a cache
    rough_steps: int = 2  # that are taken first, with gradients in single precision: nothing is proved of them
    most_steps: int = 30
    margin_error: float = 1e-8  # proved distance of a row's margin from that of its own minimum
    agreement: float = 0.02  # of a margin with that of a fit, which has its own tolerance
    newton_steps: int = 50
    most_refits: float = 0.2  # share of the rows; beyond, all are fitted


class LossOfMargins(NamedTuple):
    """A loss of margins m = y x'w, with its slope and curvature."""

    slope: Callable[[Array], Array]
    curvature: Callable[[Array], Array]
    self_concordant: bool


def _logistic_slope(m: Array) -> Array:
    """Return -1 / (1 + exp m), in one array."""
    with np.errstate(over="ignore"):
        out = np.exp(m)
    out += 1
    return np.divide(-1.0, out, out=out)


_LOGISTIC = LossOfMargins(_logistic_slope, lambda m: expit(m) * expit(-m), True)
_SQUARED_HINGE = LossOfMargins(lambda m: -2 * np.maximum(1 - m, 0), lambda m: 2.0 * (m < 1), False)


@dataclass(frozen=True)
class MarginProblem:
    """½ Σ ridge w² + C Σ loss(y x'w), with a column of ones for the intercept."""

    X: Array  # (n, p)
    y: Array  # (n,) 1 or -1
    C: float
    ridge: Array  # (p,) 1, and 0 for an intercept that is not penalised
    loss: LossOfMargins

    def gradient(self, w: Array) -> Array:
        """Return the gradient at w (p,)."""
        return self.ridge * w + self.C * (self.X.T @ (self.y * self.loss.slope(self.y * (self.X @ w))))

    def hessian(self, w: Array) -> Array:
        """Return the Hessian at w (p, p)."""
        curvature = self.C * self.loss.curvature(self.y * (self.X @ w))
        return np.diag(self.ridge) + (self.X.T * curvature) @ self.X


def hold_out_by_proof(
    problem: AssessedProblem, splits: Any, tuning: LeftOutTuning = LeftOutTuning()
) -> tuple[UnseenAnswers, int] | None:
    """Return what the model without each row answers for it, and how many were fitted; None where all have to be."""
    known = isinstance(splits, SingleRows) and problem.weights is None
    found = margin_problem(problem) if known else None
    if found is None:
        return None
    w = minimum_of_all(found, tuning)
    if w is None:
        return None
    margins, errors = left_out_margins(found, w, tuning)
    # A class is settled where the margin is farther from 0 than its error, and a probability by that error.
    open_rows = np.flatnonzero(~(errors <= tuning.margin_error) | ~(np.abs(margins) > errors))
    rows = np.union1d(open_rows, [0])
    if len(open_rows) > tuning.most_refits * len(margins):
        return None
    fitted = problem.hold_out([splits[int(i)] for i in rows])
    answers = _answers(problem, found, margins)
    for place, one in zip(rows, fitted, strict=True):
        if set(one.answers) != set(answers):
            return None
        decision = float(np.ravel(one.answers["decision_function"])[0])
        told = float(answers["decision_function"][place])
        if place not in open_rows and abs(told - decision) > tuning.agreement * (1 + abs(decision)):
            return None
        if place in open_rows:
            for method, values in one.answers.items():
                answers[method][place] = values[0]
    return UnseenAnswers(np.arange(len(margins)), len(margins) - 1, answers), len(rows)


def margin_problem(problem: AssessedProblem) -> MarginProblem | None:
    """Return the problem that an estimator solves, where it is one of two classes that is known here."""
    X, classes, name = problem.X, problem.classes, type(problem.estimator).__name__
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "iuf" or not np.isfinite(X).all():
        return None
    if classes is None or len(classes) != 2 or np.bincount(np.searchsorted(classes, problem.y)).min() < 2:
        return None
    settings = problem.estimator.get_params()
    C: Any = settings.get("C")
    if settings.get("class_weight") is not None or not isinstance(C, int | float) or not 0 < C < np.inf:
        return None
    intercept, penalised = bool(settings["fit_intercept"]), False
    if name == "LogisticRegression":
        plain = settings.get("penalty") in ("l2", "deprecated") and not settings.get("l1_ratio")
        loss = _LOGISTIC
        if not plain or settings.get("solver") == "liblinear":
            return None
    elif name == "LinearSVC":
        # scikit-learn's penalises the intercept; ours says so.
        penalised, loss = bool(settings.get("penalize_intercept", True)), _SQUARED_HINGE
        scaled = settings.get("intercept_scaling", 1) != 1
        if (
            settings["loss"] != "squared_hinge"
            or settings["penalty"] != "l2"
            or scaled
            or (intercept and not penalised)
        ):
            return None
    else:
        return None
    columns = X.astype(np.float64)
    ridge = np.ones(X.shape[1] + intercept)
    if intercept:
        columns = np.column_stack([columns, np.ones(len(X))])
        ridge[-1] = float(penalised)
    return MarginProblem(columns, np.where(problem.y == classes[1], 1.0, -1.0), float(C), ridge, loss)


def minimum_of_all(problem: MarginProblem, tuning: LeftOutTuning, start: Array | None = None) -> Array | None:
    """Return the minimum of all rows (p,) by Newton's method with halved steps, or None where it is not found."""
    origin = np.zeros(problem.X.shape[1])
    first = float(np.linalg.norm(problem.gradient(origin)))
    w = origin if start is None else start
    gradient = problem.gradient(w)
    for _ in range(tuning.newton_steps):
        size = float(np.linalg.norm(gradient))
        if size <= 1e-12 * first:
            return w
        try:
            step = np.linalg.solve(problem.hessian(w), gradient)
        except np.linalg.LinAlgError:
            return None
        share = 1.0
        while share > 1e-6:
            new = w - share * step
            slope = problem.gradient(new)
            if np.linalg.norm(slope) < size or (new == w).all():
                break
            share /= 2
        else:
            return w if size <= 1e-9 * first else None
        w, gradient = new, slope
    return w if float(np.linalg.norm(gradient)) <= 1e-9 * first else None


def left_out_margins(problem: MarginProblem, w: Array, tuning: LeftOutTuning) -> tuple[Array, Array]:
    """Return the margin of each row by the minimum without it (n,), and a proved bound on its error (n,)."""
    n = len(problem.y)
    hessian = problem.hessian(w)
    inverse = np.linalg.inv(hessian)
    spread = problem.X @ inverse  # (n, p)
    leverage = np.einsum("ij,ij->i", spread, problem.X)
    margins, errors = np.empty(n), np.full(n, np.inf)
    at_minimum = problem.y * (problem.X @ w)
    curvature = problem.C * problem.loss.curvature(at_minimum)
    signed = problem.y[:, None] * problem.X
    move = LeftOutMove(problem, signed.astype(np.float32), w, hessian, inverse, spread, leverage, curvature)
    for start in range(0, n, tuning.rows_at_once):
        rows = np.arange(start, min(n, start + tuning.rows_at_once))
        first = -problem.C * problem.loss.slope(at_minimum[rows])[:, None] * signed[rows]
        models = w - move.steps(first, rows)
        for _ in range(tuning.rough_steps):
            models -= move.steps(move.gradients(models, rows, move.rough), rows)
        active = np.arange(len(rows))
        for _ in range(tuning.most_steps):
            here = rows[active]
            gradient = move.gradients(models[active], here, signed)
            bound = move.errors(gradient, move.reach(models[active]), here)
            margins[here] = problem.y[here] * np.einsum("ij,ij->i", problem.X[here], models[active])
            errors[here] = bound
            going = bound > tuning.margin_error
            active, gradient = active[going], gradient[going]
            if not len(active):
                break
            models[active] -= move.steps(gradient, rows[active])
    return margins, errors


class LeftOutMove(NamedTuple):
    """What moves models of rows left out towards their minima."""

    problem: MarginProblem
    rough: Array  # (n, p) y X in single precision
    minimum: Array  # (p,) the model of all rows
    hessian: Array  # (p, p) of all rows at their minimum
    inverse: Array  # (p, p) of it
    spread: Array  # (n, p) X times the inverse
    leverage: Array  # (n,) x'H⁻¹x
    curvature: Array  # (n,) C times the loss's at the minimum

    def gradients(self, models: Array, rows: Array, signed: Array) -> Array:
        """Return the gradient (b, p) of every model's objective without its row, in the precision of y X."""
        problem = self.problem
        slopes = problem.loss.slope(models.astype(signed.dtype, copy=False) @ signed.T)
        slopes[np.arange(len(rows)), rows] = 0.0
        return problem.ridge * models + problem.C * (slopes @ signed)

    def reach(self, models: Array) -> Array:
        """Return a bound on how far any margin has moved (b,): |x'Δ| <= |x|_K |Δ|_H needs no look at every row."""
        moved = models - self.minimum
        return np.sqrt(np.einsum("ij,ij->i", moved @ self.hessian, moved) * self.leverage.max())

    def steps(self, gradients: Array, rows: Array) -> Array:
        """Return Newton's steps (b, p) with the Hessian at the minimum of all rows, without the row."""
        plain = gradients @ self.inverse
        along = np.einsum("ij,ij->i", plain, self.problem.X[rows])
        share = self.curvature[rows] / np.maximum(1 - self.curvature[rows] * self.leverage[rows], 1e-12)
        return plain + (share * along)[:, None] * self.spread[rows]

    def errors(self, gradients: Array, reach: Array, rows: Array) -> Array:
        """Return a bound on the distance of each row's margin from that of its own minimum (b,)."""
        if not self.problem.loss.self_concordant:
            return np.linalg.norm(gradients, axis=1) * np.linalg.norm(self.problem.X[rows], axis=1)
        decrement = np.einsum("ij,ij->i", gradients, self.steps(gradients, rows))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            room = np.exp(reach) / np.maximum(1 - self.curvature[rows] * self.leverage[rows], 0.0)
            nu = np.sqrt(np.maximum(decrement, 0.0) * np.exp(reach))
            rho = np.sqrt(room * self.leverage.max())
            t = np.where(rho * nu < 1, -np.log1p(-rho * nu) / rho, np.inf)
            return np.sqrt(room * self.leverage[rows]) * t


def _answers(problem: AssessedProblem, found: MarginProblem, margins: Array) -> dict[str, Array]:
    decision = found.y * margins
    assert problem.classes is not None
    answers = {"predict": problem.classes[(decision > 0).astype(int)], "decision_function": decision}
    if found.loss.self_concordant:
        answers["predict_proba"] = np.column_stack([expit(-decision), expit(decision)])
    return answers
