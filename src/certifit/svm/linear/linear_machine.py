"""What linear support vector machines share: the settings of the problem and its minimisation, under watch.

Newton's method on sums over rows, from any source (`svm.linear.solve`); for tables with more than 2000 columns
dual coordinate ascent in memory (`svm.linear.dual_ascent`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import ClassVar, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from certifit.checkers.svm.linear import CLAIM, told
from certifit.core import Attributes, Certificate, Estimator, Objective, Solution
from certifit.core.settings import check_choices, check_settings
from certifit.exceptions import DataError
from certifit.linear_model.linear_rows import evenly_spaced, row_shift
from certifit.rows import Array, ArrayRows, Rows
from certifit.svm.linear.block_statistics import Ramp, Split
from certifit.svm.linear.dual_ascent import Ascent, DualProblem, ascend
from certifit.svm.linear.solve import Aim, Machine, Problem, minimise

WIDE = 2000  # columns beyond which no Hessian is formed
ROUNDING = 8 * np.finfo(float).eps  # of a slack, relative to its target

T = TypeVar("T")


def shift_error(shift: Array | None, mass: float, coef: Array) -> float:
    """By how much rounding the intercept, as the shift is taken out of it, may change losses of weight `mass`."""
    return 0.0 if shift is None else ROUNDING * mass * float((np.abs(coef) @ np.abs(shift)).sum())


class LinearMachine(Estimator):
    """Classification or regression, of the losses and slacks that it names."""

    sparse = True
    losses: ClassVar[dict[str, Ramp]]
    flat: ClassVar[bool]  # one machine, whose coefficients are (d,)

    def __init__(
        self, C, loss, penalize_intercept, intercept_scaling, fit_intercept, tol, max_iter, max_time, random_state
    ):
        self.C = C
        self.loss = loss
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def _aim(self) -> Aim:
        """The objective, from checked settings."""
        check_settings(self, max_iter=0)
        check_choices(self, loss=self.losses)
        for name in ("C", "intercept_scaling"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise DataError(got=f"{name}={value!r}", wanted="a positive, finite number")
        return Aim(self.losses[self.loss], float(self.C), self.intercept_weight(), shift=None)

    def intercept_weight(self) -> float | None:
        """Of b²/2 in the objective: 0 where the intercept is free, None where there is none."""
        if not self.fit_intercept:
            return None
        return float(self.intercept_scaling) ** -2 if self.penalize_intercept else 0.0

    def _minimise(self, rows: Rows, splits: tuple[Split, ...], fixed: Attributes) -> Attributes:
        return (self._by_newton if rows.n_features <= WIDE else self._by_ascent)(rows, splits, fixed)

    def _by_newton(
        self, rows: Rows, splits: tuple[Split, ...], fixed: Attributes, pose: Callable[..., Problem] = Problem
    ) -> Attributes:
        sample = evenly_spaced(rows)
        unit, b, size = self._sizes(sample)
        aim = self._aim()
        if aim.rho == 0:
            aim = aim._replace(shift=row_shift(sample.X, sample.w))
        rounding = ROUNDING * aim.C * size * len(splits) * rows.n_rows / sample.n_rows
        problem = pose(rows, aim, float(self.tol), rounding)
        attributes = partial(self._attributes, aim, rows.n_features, fixed)
        mass = aim.C * float(sample.w.sum()) * rows.n_rows / sample.n_rows
        moved = partial(shift_error, aim.shift, (1 + self.flat) * mass)
        return self._solved(partial(minimise, problem, splits, unit, b), attributes, rounding, moved)

    def _by_ascent(self, rows: Rows, splits: tuple[Split, ...], fixed: Attributes) -> Attributes:
        aim, rows = self._aim(), rows.load()
        seed = int(check_random_state(self.random_state or 0).randint(2**31))
        problem = DualProblem(rows, splits, aim.loss, aim.C, aim.rho, float(self.tol), seed)

        def attributes(at: tuple[Ascent, ...]) -> Attributes:
            found = self._attributes(aim, rows.n_features, fixed, at)
            return {**found, "dual_coef_": problem.dual_coef(at)}

        return self._solved(partial(ascend, problem, self._sizes(rows)[1]), attributes)

    def _solved(
        self,
        solve: Callable[..., Solution[T]],
        attributes: Callable[[T], Attributes],
        rounding: float = 0.0,
        moved: Callable[[Array], float] = lambda _: 0.0,
        claim: str = CLAIM,
    ) -> Attributes:
        """Solve under watch: the attributes of the best that was found, and what is proved of it.

        `rounding` is that of the objective, to which `moved` adds that of the intercepts; a function of coef_.
        """
        with self._watch.loop("passes", self.max_iter, attributes) as watch:
            best = solve(max_iter=self.max_iter, max_time=self.max_time, watcher=watch)
        found, value, tol = attributes(best.params), best.objective, float(self.tol)
        rounding += moved(found["coef_"])
        bound, limit = (1 - best.gain) * value - rounding, (tol + 1e-12) * value + rounding
        checks = (told(rounding, value, float(np.abs(found["coef_"]).max(initial=0.0))),)
        certificate = Certificate("optimal", claim, value, bound, tol, limit, checks)
        return {**found, "n_iter_": best.n_iter, "history_": best.history, "certificate_": certificate}

    def _attributes(self, aim: Aim, d: int, fixed: Attributes, machines: tuple[Machine | Ascent, ...]) -> Attributes:
        """Fitted attributes in the columns' own coordinates."""
        theta = np.stack([m.here for m in machines])
        coef, b = theta[:, :d].copy(), theta[:, d].copy() if aim.intercept else np.zeros(len(theta))
        if aim.shift is not None:
            b -= coef @ aim.shift
        return {**fixed, "coef_": coef[0] if self.flat else coef, "intercept_": b}

    @abstractmethod
    def _sizes(self, sample: ArrayRows) -> tuple[float, float, float]:
        """The size of a slack, an intercept to start from, and Σ w |q| over these rows."""

    def _objective(self, rows: Rows, splits: tuple[Split, ...]) -> Objective:
        aim = self._aim()
        theta = np.atleast_2d(self.coef_)
        if aim.intercept:
            theta = np.column_stack([theta, self.intercept_])
        problem = Problem(rows, aim, 0.0, 0.0)
        data, penalty = problem.parts(splits, theta)
        return Objective(data + penalty, data, penalty)
