"""What logistic regression can be asked to minimise: a penalised likelihood or the likelihood itself.

Each *task* minimises its objective over labelled rows and says what is then proved. Firth's is in `firth`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from certifit.checkers.linear_model import recession
from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.coordinates import ScaledCoordinates, less
from certifit.checkers.linear_model.logistic import proof
from certifit.checkers.linear_model.logistic.dual_point import LogisticClaim, allowed_gap, ridge_error
from certifit.checkers.plain.blocks import float_rows
from certifit.checkers.plain.dual_points import bound_below
from certifit.core import Attributes, Certificate, Solution
from certifit.exceptions import DataError, NoSolutionError
from certifit.linear_model.coefficient_error import (
    CoefficientError,
    PassRounding,
    as_row,
    gap_to_reach,
    largest_entries,
    proved_distance,
    smaller_errors,
)
from certifit.linear_model.column_words import moving_columns
from certifit.linear_model.linear_rows import row_shift
from certifit.linear_model.logistic.block_statistics import LogisticRequest, measure
from certifit.linear_model.logistic.duality import LogisticTotals, duality_gap
from certifit.linear_model.logistic.solve import LogisticLimits, LogisticProblem, Separated, minimise, softmax_proof
from certifit.linear_model.logistic.tuning import LogisticTuning
from certifit.rows import Array, ArrayRows, Block, Rows, apply_class_weight, class_weight_vector, encode_labels
from certifit.rows.sampling import evenly_spaced


@dataclass(frozen=True)
class LogisticRows:
    """Rows with class numbers as y, and the coordinates z = (x - shift, 1) in which θ (k, d1) is sought."""

    rows: Rows
    classes: Array  # (number of classes,) labels, sorted
    weight: float  # Σ w
    intercept: bool
    sample: ArrayRows  # evenly spaced rows
    shift: Array | None  # (d,)
    tuning: LogisticTuning

    @classmethod
    def of(cls, rows: Rows, class_weight: Any, intercept: bool, tuning: LogisticTuning = LogisticTuning()) -> Self:
        """Number the classes, weight their rows and choose the coordinates."""
        labels = encode_labels(rows)
        rows = apply_class_weight(labels, class_weight)
        weight = float(labels.weight @ class_weight_vector(labels.classes, labels.weight, class_weight))
        sample = evenly_spaced(rows, tuning.sample_rows * (1 + (len(labels.classes) == 2)))
        shift = row_shift(sample.X, sample.w) if intercept else None
        return cls(rows, labels.classes, weight, intercept, sample, shift, tuning)

    @classmethod
    def numbered(cls, rows: ArrayRows, k: int, intercept: bool, tuning: LogisticTuning = LogisticTuning()) -> Self:
        """Take rows whose y are numbers of k classes, of which some may have no row."""
        sample = evenly_spaced(rows, tuning.sample_rows * (1 + (k == 2)))
        shift = row_shift(sample.X, sample.w) if intercept else None
        return cls(rows, np.arange(k), float(rows.w.sum()), intercept, sample, shift, tuning)

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d1); two classes have one score."""
        k = len(self.classes)
        return k if k > 2 else 1, self.rows.n_features + self.intercept

    @property
    def chance(self) -> float:
        """The loss at θ = 0."""
        return self.weight * float(np.log(len(self.classes)))

    def loss(self, theta: Array) -> float:
        """The negative log-likelihood at θ."""
        return float(self.rows.sum(partial(data_loss, theta, self.shift, self.intercept)))

    def start(self, previous: Attributes) -> Array:
        """θ of an earlier fit's coefficients; 0 where there are none of the same columns and classes."""
        theta, d = np.zeros(self.shape), self.rows.n_features
        coef = previous.get("coef_")
        if coef is None or coef.shape != (len(theta), d) or not np.array_equal(previous["classes_"], self.classes):
            return theta
        theta[:, :d] = coef
        if self.intercept:
            theta[:, -1] = previous["intercept_"] + (0.0 if self.shift is None else coef @ self.shift)
        return theta

    def own(self, theta: Array) -> Array:
        """θ in the columns' own coordinates."""
        if self.shift is None or not self.intercept:
            return theta
        return np.column_stack([theta[:, :-1], theta[:, -1] - theta[:, :-1] @ self.shift])

    def stored(self, theta: Array) -> Array:
        """θ as the rounded intercepts that are kept have it, which may be far from those found."""
        if self.shift is None or not self.intercept:
            return theta
        b = self.own(theta)[:, -1] + theta[:, :-1].astype(np.longdouble) @ self.shift.astype(np.longdouble)
        return np.column_stack([theta[:, :-1], b.astype(np.float64)])

    def faithful(self, x: Array, value: float, tol: float) -> bool:
        """Whether the intercepts that are kept, rounded where columns lie far from 0, are as good as those found.

        Scores that all move by e move an objective at most `gap` above its minimum by at most gap + Σ w e².
        """
        if self.shift is None or not self.intercept:
            return True
        theta = x.reshape(self.shape).astype(np.longdouble)
        kept = self.own(x.reshape(self.shape))[:, -1]
        off = kept + theta[:, :-1] @ self.shift.astype(np.longdouble) - theta[:, -1]
        return bool(self.weight * float(np.abs(off).max()) ** 2 <= 0.1 * tol * value)

    def attributes(self, symmetric: bool, x: Array) -> Attributes:
        """Fitted attributes at θ; where a vector common to all classes changes nothing, the one that sums to 0."""
        theta, d = self.own(x.reshape(self.shape)), self.rows.n_features
        coef, b = theta[:, :d].copy(), theta[:, -1].copy() if self.intercept else np.zeros(len(theta))
        if len(b) > 1:
            b -= b.mean()
            coef -= coef.mean(axis=0) if symmetric else 0.0
        return {"classes_": self.classes, "coef_": coef, "intercept_": b}


def data_loss(theta: Array, shift: Array | None, intercept: bool, block: Block) -> float:
    """The negative log-likelihood of a block at θ (k, d1)."""
    return measure(theta, shift, intercept, LogisticRequest(hessian=False), block).loss


class LogisticTask(Protocol):
    """Something that logistic regression can be asked to minimise."""

    symmetric: bool  # whether taking the mean over the classes off their coefficients never raises the objective
    errors: bool  # whether the inverse information is the estimates' covariance
    likelihood: bool  # whether the objective is the negative log-likelihood

    def minimise(self, data: LogisticRows, theta: Array, limits: LogisticLimits) -> Solution[Any]: ...

    def certificate(self, data: LogisticRows, best: Solution[Any], tol: float) -> Certificate: ...

    def penalty(self, rows: Rows, theta: Array, intercept: bool) -> float:
        """The penalty at θ (k, d1) in the columns' own coordinates."""


class LastPass(NamedTuple):
    """What gradient and Hessian prove of the last point of a two-class fit."""

    gap: float  # to the minimum; infinite where nothing is proved
    off: float  # how far rounding of the scores may move the objective
    errors: CoefficientError

    @classmethod
    def of(cls, problem: LogisticProblem, x: Array, value: float, weight: float) -> Self:
        """At the last point x (d1,) of the loop, where the objective has this value."""
        assert problem.proof.anchor is not None
        d = problem.shape[1] - problem.intercept
        shift = np.zeros(d) if problem.shift is None else problem.shift
        penalty = np.append(problem.lam2 * np.abs(x[:d]), np.zeros(len(x) - d))
        # Σ w (p - y)² is at most the loss, and no curvature is above 1/4. The coefficients bound the scores.
        rounding = PassRounding(problem.rows.n_rows, float(np.sqrt(value * weight)), weight / 4, 0.0, penalty)
        off = rounding.of_loss(x, largest_entries(problem.proof, problem.proof.anchor))
        found = proved_distance(problem.proof, x, rounding)
        if found is None:
            return cls(np.inf, off, ())
        J = ScaledCoordinates(shift, np.ones(d), problem.intercept).to_columns
        return cls(found.gap, off, as_row(found.errors(J, x), problem.intercept))


def softmax_errors(problem: LogisticProblem, x: Array, value: float, weight: float) -> CoefficientError:
    """How far the coefficients of several classes can be from the minimiser's, and intercepts less their mean."""
    proof = softmax_proof(problem)
    if proof is None:
        return ()
    (k, d1), d = problem.shape, problem.shape[1] - problem.intercept
    theta = np.abs(x).reshape(problem.shape)
    penalty = problem.lam2 * theta
    penalty[:, d:] = 0.0
    # Σ w Σ (p - y)² is at most twice the loss, and no row's curvatures sum up to more than 1.
    slope = float(np.sqrt(2 * value * weight))
    found = proved_distance(proof, x, PassRounding(problem.rows.n_rows, slope, weight, 0.0, penalty.ravel()))
    if found is None:
        return ()
    shift = np.zeros(d) if problem.shift is None else problem.shift
    columns = ScaledCoordinates(shift, np.ones(d), problem.intercept).to_columns
    errors = found.errors(np.kron(np.eye(k) - 1 / k, columns), x).reshape(k, d1)
    errors[:, :d] += np.abs(x.reshape(k, d1)[:, :d].mean(axis=0))  # the minimiser's coefficients sum to 0
    return tuple(as_row(row, problem.intercept)[0] for row in errors)


@dataclass
class Penalised:
    """The penalised loss Σ w φ + λ₁ |β|₁ + λ₂/2 |β|²."""

    lam1: float
    lam2: float
    newton: bool  # whether the Hessian is formed
    proved: bool = field(default=False, init=False)  # whether the last gain is a bound, penalty or not
    problem: LogisticProblem | None = field(default=None, init=False)  # with what its last pass proved
    symmetric: bool = field(init=False)
    errors = False
    likelihood = False

    def __post_init__(self) -> None:
        # The mean over the classes changes no probability, and without it |β|² is smaller.
        self.symmetric = self.lam1 == 0

    def minimise(self, data: LogisticRows, theta: Array, limits: LogisticLimits) -> Solution[Any]:
        """Solve from θ if that is better than 0; long tables from the subsample's solution."""
        if theta.any() and data.loss(theta) > data.chance:
            theta = np.zeros_like(theta)
        if self.newton and not theta.any() and data.rows.n_rows >= data.tuning.long_table:
            share = float(data.sample.w.sum()) / data.weight
            part = self._problem(data, data.sample, share, data.tuning.sample_tol)
            with suppress(Separated):  # a separable sample proves nothing about all rows
                ends = LogisticLimits(data.tuning.sample_tol, limits.max_iter)
                start = minimise(part, theta, True, data.sample, ends, data.tuning)
                theta = start.params.x.reshape(theta.shape)
        smooth = self.lam2 > 0 and self.lam1 == 0
        problem = self._problem(data, data.rows, 1.0, gap_to_reach(limits.tol) if smooth else limits.tol)
        best = minimise(problem, theta, self.newton, data.sample, limits, data.tuning)
        self.proved, self.problem = problem.proved and best.status == "converged", problem
        return best

    def _problem(self, data: LogisticRows, rows: Rows, share: float, tol: float) -> LogisticProblem:
        lam1, lam2 = share * self.lam1, share * self.lam2
        return LogisticProblem(rows, lam1, lam2, data.intercept, data.shift, data.shape, max(tol, 1e-14))

    def certificate(self, data: LogisticRows, best: Solution[Any], tol: float) -> Certificate:
        """From the last pass where that proves it, else from the checker."""
        x, value, n_rows = best.params.x, best.objective, data.rows.n_rows
        errors: CoefficientError = ()
        gap, off = best.gain * value, 0.0
        promised = self.problem is not None and self.problem.concordant and not self.proved
        if best.status != "converged" or promised:  # the gain need not be a bound
            gap = self._dual_gap(data, x.reshape(data.shape))
        elif self.proved and self.problem is not None:
            gap, off, errors = LastPass.of(self.problem, x, value, data.weight)
        elif self.problem is not None and self.problem.several:
            errors = softmax_errors(self.problem, x, value, data.weight)
        bound = bound_below(value, gap + off, value, n_rows)
        value -= self._saved(x.reshape(data.shape)[:, : data.rows.n_features])
        limit = allowed_gap(value, tol, n_rows, off)
        fitted = data.attributes(self.symmetric, x)
        claim = LogisticClaim(self.lam1, self.lam2, data.intercept)
        error = smaller_errors(errors, ridge_error(fitted["coef_"], value - bound, claim))
        words = LinearModelClaims.penalised
        found = Certificate("optimal", words, value, bound, tol, limit, parameter_error=error)
        # Beyond some entries the Hessian that the checker forms for the errors of coefficients takes too long.
        large = n_rows * x.size > data.tuning.checked_entries
        faithful = data.faithful(x, value, tol)
        # Beside a weak L1 penalty the digits of slopes count, which the checker knows better.
        strict = self.lam1 > 0 and ((tol < data.tuning.strict_tol and not large) or self._rounds_slopes(data, tol))
        enough = bool(errors) or self.proved or not self.newton or self.lam1 > 0 or large
        if not strict and found.holds and faithful and enough:
            return found
        return proof.certify(fitted["coef_"], fitted["intercept_"], claim, tol, data.rows)

    def _rounds_slopes(self, data: LogisticRows, tol: float) -> bool:
        """Whether rounding of slopes, of columns far from 0, takes more of λ₁ than a tenth of the tolerance."""
        if self.lam2 > 0:
            return False
        X = data.sample.X if data.shift is None else less(float_rows(data.sample.X), data.shift)
        with np.errstate(over="ignore", invalid="ignore"):
            rounding = np.finfo(np.float64).eps * data.weight * float(abs(X).mean(axis=0).max())
        return not rounding <= 0.1 * tol * self.lam1

    def _saved(self, beta: Array) -> float:
        """By how much the objective falls when the mean over the classes is taken off β (k, d)."""
        if not self.symmetric or len(beta) == 1:
            return 0.0
        return 0.5 * self.lam2 * len(beta) * float((beta.mean(axis=0) ** 2).sum())

    def _dual_gap(self, data: LogisticRows, theta: Array) -> float:
        """A bound at any point, from one more pass."""
        request = LogisticRequest(hessian=False, totals=True)
        s = data.rows.sum(partial(measure, theta, data.shift, data.intercept, request))
        return duality_gap(theta, (self.lam1, self.lam2), data.intercept, s, LogisticTotals.of(s))

    def penalty(self, rows: Rows, theta: Array, intercept: bool) -> float:
        beta = theta[:, : rows.n_features]
        return self.lam1 * float(np.abs(beta).sum()) + 0.5 * self.lam2 * float((beta**2).sum())


@dataclass
class Likelihood:
    """The loss Σ w φ alone. Where the classes are separable it has no minimum: an error that carries the proof."""

    newton: bool  # whether the Hessian is formed
    close: bool  # whether to go on until the coefficients are close in standard errors
    proved: bool = field(default=False, init=False)  # whether the last gain is a bound
    problem: LogisticProblem | None = field(default=None, init=False)  # with what its last pass proved
    symmetric = True
    errors = True
    likelihood = True

    def minimise(self, data: LogisticRows, theta: Array, limits: LogisticLimits) -> Solution[Any]:
        tol = 0.5 * limits.tol  # a Newton step promises half of what is provable
        if self.newton and self.close:
            tol = min(tol, 0.5 * data.tuning.error_share**2 / data.chance)
        free = Penalised(0.0, 0.0, self.newton)
        try:
            best = free.minimise(data, theta, limits._replace(tol=tol))
        except Separated as found:
            certificate = recession.separated(data.own(found.theta), data.intercept, data.rows)
            if not certificate.proved:  # by less than rounding: a linear program may find a better direction
                certificate = recession.separable(data.rows, len(data.classes), data.intercept) or certificate
            if not certificate.proved:
                raise DataError(
                    got="classes of which rounding hides whether they are separable",
                    wanted="columns whose spread is more than the last digits of their numbers",
                    fix="Subtract each column's mean, or use a penalty.",
                ) from None
            raise _no_solution(certificate, data.rows) from None
        self.proved, self.problem = free.proved, free.problem
        return best

    def certificate(self, data: LogisticRows, best: Solution[Any], tol: float) -> Certificate:
        """From the last pass where that proves it, else from the checker."""
        if self.proved and self.problem is not None:
            x, value, n_rows = best.params.x, best.objective, data.rows.n_rows
            last = LastPass.of(self.problem, x, value, data.weight)
            bound = bound_below(value, last.gap + last.off, value, n_rows)
            limit = allowed_gap(value, tol, n_rows, last.off)
            words = LinearModelClaims.likelihood
            found = Certificate("optimal", words, value, bound, tol, limit, parameter_error=last.errors)
            if found.holds and data.faithful(x, value, tol):
                return found
        fitted, claim = data.attributes(self.symmetric, best.params.x), LogisticClaim(intercept=data.intercept)
        again = proof.certify(fitted["coef_"], fitted["intercept_"], claim, tol, data.rows)
        if again.kind == "impossible":
            raise _no_solution(again, data.rows)
        return again

    def penalty(self, rows: Rows, theta: Array, intercept: bool) -> float:
        return 0.0


def _no_solution(certificate: Certificate, rows: Rows) -> NoSolutionError:
    return NoSolutionError(
        f"The classes are separable along a direction of {moving_columns(certificate, rows)}: without a penalty "
        "the likelihood has no maximum. Use penalty='l2' with some C, penalty='firth' (two classes), or leave such "
        "columns out.",
        certificate,
    )
