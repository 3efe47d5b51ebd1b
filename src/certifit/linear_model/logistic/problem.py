"""What logistic regression can be asked to minimise: a penalised likelihood or the likelihood itself.

Each *task* knows how to minimise its objective over labelled rows and what is then proved; Firth's is in `firth`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from certifit.checkers.linear_model import likelihood
from certifit.checkers.linear_model.logistic import CLAIM
from certifit.core import Attributes, Certificate, Solution
from certifit.core.loop import Watcher
from certifit.exceptions import NoSolutionError
from certifit.linear_model.linear_rows import row_shift
from certifit.linear_model.logistic.block_statistics import Totals, Want, duality_gap, measure
from certifit.linear_model.logistic.solve import SAMPLE, Problem, Separated, minimise, subsample
from certifit.rows import Array, ArrayRows, Block, Rows, apply_class_weight, class_weight_vector, encode_labels

LONG = 2**18  # rows from which Newton starts at the subsample's solution
CLOSE = 1e-6  # maximum likelihood is solved to this share of the standard errors, where those are asked for


class Limits(NamedTuple):
    tol: float
    max_iter: int
    max_time: float | None = None
    watcher: Watcher | None = None


@dataclass(frozen=True)
class Labelled:
    """Rows with class numbers as y, and the coordinates z = (x - shift, 1) in which θ (k, d1) is sought."""

    rows: Rows
    classes: Array
    weight: float  # Σ w
    intercept: bool
    sample: ArrayRows  # evenly spaced rows
    shift: Array | None

    @classmethod
    def of(cls, rows: Rows, class_weight: Any, intercept: bool) -> Self:
        labels = encode_labels(rows)
        rows = apply_class_weight(labels, class_weight)
        weight = float(labels.weight @ class_weight_vector(labels.classes, labels.weight, class_weight))
        sample = subsample(rows, SAMPLE * (1 + (len(labels.classes) == 2)))
        shift = row_shift(sample.X, sample.w) if intercept else None
        return cls(rows, labels.classes, weight, intercept, sample, shift)

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
        return float(self.rows.sum(partial(data_loss, theta, self.shift, self.intercept)))

    def start(self, previous: Attributes) -> Array:
        """θ of an earlier fit's coefficients; 0 where there are none that would fit."""
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

    def attributes(self, symmetric: bool, x: Array) -> Attributes:
        """Fitted attributes at θ; where a vector common to all classes changes nothing, the one that sums to 0."""
        theta, d = self.own(x.reshape(self.shape)), self.rows.n_features
        coef, b = theta[:, :d].copy(), theta[:, -1].copy() if self.intercept else np.zeros(len(theta))
        if len(b) > 1:
            b -= b.mean()
            coef -= coef.mean(axis=0) if symmetric else 0.0
        return {"classes_": self.classes, "coef_": coef, "intercept_": b}


def data_loss(theta: Array, shift: Array | None, intercept: bool, block: Block) -> float:
    return measure(theta, shift, intercept, Want(hessian=False, totals=False), block).loss


class Task(Protocol):
    symmetric: bool  # the objective does not tell a vector common to all classes
    errors: bool  # the inverse information is the estimates' covariance
    likelihood: bool  # the objective is the negative log-likelihood

    def minimise(self, data: Labelled, theta: Array, limits: Limits) -> Solution[Any]: ...

    def certificate(self, data: Labelled, best: Solution[Any], tol: float) -> Certificate: ...

    def penalty(self, rows: Rows, theta: Array, intercept: bool) -> float:
        """At θ (k, d1) in the columns' own coordinates."""


@dataclass
class Penalised:
    """Σ w φ + λ₁ |β|₁ + λ₂/2 |β|²."""

    lam1: float
    lam2: float
    newton: bool
    proved: bool = field(default=False, init=False)  # whether the last gain is a bound, penalty or not
    symmetric = False
    errors = False
    likelihood = False

    def minimise(self, data: Labelled, theta: Array, limits: Limits) -> Solution[Any]:
        """From θ if that is better than 0."""
        if theta.any() and data.loss(theta) > data.chance:
            theta = np.zeros_like(theta)
        if self.newton and not theta.any() and data.rows.n_rows >= LONG:
            share = float(data.sample.w.sum()) / data.weight
            part = self._problem(data, data.sample, share, 1e-3)
            with suppress(Separated):  # separable in the sample says nothing of the whole
                start = minimise(part, theta, newton=True, sample=data.sample, max_iter=limits.max_iter)
                theta = start.params.x.reshape(theta.shape)
        problem = self._problem(data, data.rows, 1.0, limits.tol)
        best = minimise(
            problem,
            theta,
            newton=self.newton,
            sample=data.sample,
            max_iter=limits.max_iter,
            max_time=limits.max_time,
            watcher=limits.watcher,
        )
        self.proved = problem.proved and best.status == "converged"
        return best

    def _problem(self, data: Labelled, rows: Rows, share: float, tol: float) -> Problem:
        lam1, lam2 = share * self.lam1, share * self.lam2
        return Problem(rows, lam2, data.intercept, data.shift, data.shape, max(tol, 1e-14), lam1)

    def certificate(self, data: Labelled, best: Solution[Any], tol: float) -> Certificate:
        gap = best.gain * best.objective
        if best.status != "converged":  # the gain need not be a bound
            gap = self._dual_gap(data, best.params.x.reshape(data.shape))
        return Certificate(
            "optimal", CLAIM, best.objective, best.objective - gap, tol, (tol + 1e-12) * best.objective
        )

    def _dual_gap(self, data: Labelled, theta: Array) -> float:
        """A bound at any point, from one more pass."""
        want = Want(hessian=False, totals=True)
        s = data.rows.sum(partial(measure, theta, data.shift, data.intercept, want))
        totals = Totals(s.expected - s.g, np.asarray(s.total))
        return duality_gap(theta, self.lam2, data.intercept, s, totals, self.lam1)

    def penalty(self, rows: Rows, theta: Array, intercept: bool) -> float:
        beta = theta[:, : rows.n_features]
        return self.lam1 * float(np.abs(beta).sum()) + 0.5 * self.lam2 * float((beta**2).sum())


@dataclass
class Likelihood:
    """Σ w φ alone. It has no minimum where the classes are separable: an error that carries the proof."""

    newton: bool
    close: bool  # go on until the coefficients are close in standard errors
    proved: bool = field(default=False, init=False)
    symmetric = True
    errors = True
    likelihood = True

    def minimise(self, data: Labelled, theta: Array, limits: Limits) -> Solution[Any]:
        tol = 0.5 * limits.tol  # a Newton step promises half of what is provable
        if self.newton and self.close:
            tol = min(tol, 0.5 * CLOSE**2 / data.chance)
        free = Penalised(0.0, 0.0, self.newton)
        try:
            best = free.minimise(data, theta, limits._replace(tol=tol))
        except Separated as found:
            v = data.own(found.theta)
            raise _no_solution(likelihood.impossible(v, data.intercept, data.rows)) from None
        self.proved = free.proved
        return best

    def certificate(self, data: Labelled, best: Solution[Any], tol: float) -> Certificate:
        """From the last pass where that proves it, else from the checker."""
        if self.proved:
            value = best.objective
            return Certificate(
                "optimal", likelihood.CLAIM, value, value * (1 - best.gain), tol, (tol + 1e-12) * value
            )
        fitted = data.attributes(self.symmetric, best.params.x)
        found = likelihood.certify(fitted["coef_"], fitted["intercept_"], data.intercept, tol, data.rows)
        if not np.isfinite(found.gap):
            separable = likelihood.separable(data.rows, len(data.classes), data.intercept)
            if separable is not None:
                raise _no_solution(separable)
        return found

    def penalty(self, rows: Rows, theta: Array, intercept: bool) -> float:
        return 0.0


def _no_solution(certificate: Certificate) -> NoSolutionError:
    return NoSolutionError(
        "The classes are separable and there is no penalty: the likelihood has no maximum (coefficients grow without "
        "limit). Use penalty='l2' with some C, penalty='firth' (two classes), or drop the columns that separate. "
        f"Separating direction: {certificate.facts['separating direction']}",
        certificate,
    )
