"""What LinearSVC and LinearSVR share: the settings of the problem, the choice of a solver, and the certificate.

Tables with up to 2000 columns, from any source, are solved by Newton's method on sums over rows (`svm.linear.solve`),
wider ones in memory by dual coordinate ascent (`svm.linear.dual_solver`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from certifit.checkers.svm.linear_machines.claimed import CLAIM, ClaimedLinearSvm
from certifit.checkers.svm.linear_machines.linear import certify
from certifit.checkers.svm.linear_machines.linear_rows import SLACK_ROUNDING, coefficient_error, rounding_check
from certifit.core import Attributes, Certificate, Estimator, Objective, Solution
from certifit.core.settings import LOOP, Setting, Settings
from certifit.linear_model.linear_rows import row_shift
from certifit.losses.hinges import HingeLoss
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.rows.sampling import evenly_spaced
from certifit.svm.linear.dual_solver import DualSvmProblem, DualSvmState, solve_dual
from certifit.svm.linear.primal_state import PrimalSvmGoal, PrimalSvmState
from certifit.svm.linear.primal_sums import SvmObjective
from certifit.svm.linear.slacks import SlackRule
from certifit.svm.linear.solve import PrimalSvmProblem, minimise_svm
from certifit.svm.linear.tuning import LinearSvmTuning

T = TypeVar("T")


class TargetSizes(NamedTuple):
    """What is known of the slacks before anything is fitted."""

    unit: float  # the size of a typical slack
    intercept: float  # to start from
    total: float  # Σ w |q|


def row_targets(block: Block) -> Array:
    """The targets of a block (rows,)."""
    assert block.y is not None
    return np.asarray(block.y)


def row_weights(block: Block) -> Array:
    """The weights of a block (rows,)."""
    return block.w


def _scores_about(shift: Array | None, coef: Array, b: Array, block: Block) -> Array:
    """Scores (rows, k) of coef (k, d) and b (k,); of dense rows about a shift: far from zero they lose digits."""
    if shift is None or sparse.issparse(block.X):
        return np.asarray(block.X @ coef.T + b)
    return np.asarray((block.X - shift) @ coef.T + (b + coef @ shift))


def shift_error(shift: Array | None, mass: float, coef: Array) -> float:
    """By how much rounding the intercept, as the shift is taken out of it, may change losses of weight `mass`."""
    return 0.0 if shift is None else SLACK_ROUNDING * mass * float((np.abs(coef) @ np.abs(shift)).sum())


class LinearSvmProof(NamedTuple):
    """What a certificate needs to know besides the solution."""

    rho: float | None  # weight of b²/2
    bound_rounding: Callable[[Any, float], float]  # of the bound, given solution and objective
    rounding: float = 0.0  # of the objective, to which
    intercept_error: Callable[[Array], float] = lambda _: 0.0  # adds its own, given coef_ (k, d)
    score_error: Callable[[Array], float] = lambda _: 0.0  # and that of scores, which the checker knows by rows
    claim: str = CLAIM
    convexity: float = 1.0  # by which a gap is multiplied before it bounds ½ |coef_ - minimiser|²
    # the attributes with the middle one of several best intercepts, and their objective
    settle: Callable[[Attributes, float], tuple[Attributes, float]] = lambda found, objective: (found, objective)
    checked: Callable[[Attributes], Certificate] | None = None  # the checker's own certificate of these attributes
    small: bool = False  # whether that takes no time to speak of


class LinearSvmEstimator(Estimator):
    """A linear support vector machine for classification or regression; a subclass names its losses and slacks."""

    sparse = True
    diagnostics: ClassVar[tuple[str, ...]] = (*Estimator.diagnostics, "dual_coef_")
    losses: ClassVar[Mapping[str, HingeLoss]]
    single: ClassVar[bool]  # whether there is one machine, whose coefficients are (d,)
    settings: ClassVar[Settings] = {
        **LOOP,
        "C": Setting(float, above=0, below=np.inf),
        "intercept_scaling": Setting(float, above=0, below=np.inf),
    }
    _tuning: ClassVar[LinearSvmTuning] = LinearSvmTuning()

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

    def _svm_objective(self) -> SvmObjective:
        """What the settings say is minimised, with columns as they are."""
        return SvmObjective(self.losses[self.loss].shape, float(self.C), self.intercept_weight(), shift=None)

    def intercept_weight(self) -> float | None:
        """The weight of b²/2 in the objective: 0 where the intercept is free, None where there is none."""
        if not self.fit_intercept:
            return None
        return float(self.intercept_scaling) ** -2 if self.penalize_intercept else 0.0

    def _minimise(self, rows: Rows, rules: tuple[SlackRule, ...], fixed: Attributes) -> Attributes:
        """Fitted attributes, the `fixed` ones among them."""
        narrow = rows.n_features <= self._tuning.newton_columns
        return (self._solve_primal if narrow else self._solve_dual)(rows, rules, fixed)

    def _solve_primal(
        self,
        rows: Rows,
        rules: tuple[SlackRule, ...],
        fixed: Attributes,
        make_problem: Callable[..., PrimalSvmProblem] = PrimalSvmProblem,
    ) -> Attributes:
        sample = evenly_spaced(rows)
        sizes, svm = self._slack_sizes(sample), self._svm_objective()
        if svm.rho == 0:
            svm = svm._replace(shift=row_shift(sample.X, sample.w))
        rounding = SLACK_ROUNDING * svm.C * sizes.total * len(rules) * rows.n_rows / sample.n_rows
        problem = make_problem(rows, PrimalSvmGoal(svm, float(self.tol), rounding, self._tuning))
        attributes = partial(self._attributes, svm, rows.n_features, fixed)
        mass = svm.C * float(sample.w.sum()) * rows.n_rows / sample.n_rows
        intercept_error = partial(shift_error, svm.shift, (1 + self.single) * mass)
        solve = partial(minimise_svm, problem, rules, sizes.unit, sizes.intercept)
        checked = partial(self._checked, rows)
        small = rows.in_memory and rows.n_rows * rows.n_features <= self._tuning.small_entries
        settle = partial(self._settled, rows, rules, svm.shift, sizes.unit)
        proof = LinearSvmProof(
            svm.rho, problem.bound_rounding, rounding, intercept_error, settle=settle, checked=checked, small=small
        )
        return self._solve_and_certify(solve, attributes, proof)

    def _solve_dual(self, rows: Rows, rules: tuple[SlackRule, ...], fixed: Attributes) -> Attributes:
        svm, rows = self._svm_objective(), rows.load()
        seed = int(check_random_state(self.random_state or 0).randint(2**31))
        problem = DualSvmProblem(rows, rules, svm, float(self.tol), seed, self._tuning.ascent)

        def attributes(machines: tuple[DualSvmState, ...]) -> Attributes:
            found = self._attributes(svm, rows.n_features, fixed, machines)
            return {**found, "dual_coef_": problem.dual_coef(machines)}

        solve = partial(solve_dual, problem, self._slack_sizes(rows).intercept)
        sizes, checked = self._slack_sizes(rows), partial(self._checked, rows)
        settle = partial(self._settled, rows, rules, None, sizes.unit)
        proof = LinearSvmProof(svm.rho, problem.bound_rounding, settle=settle, checked=checked)
        return self._solve_and_certify(solve, attributes, proof)

    def _claimed(self) -> ClaimedLinearSvm:
        """The problem as the checker has it."""
        hinge, epsilon = self.losses[self.loss].shape, getattr(self, "epsilon", None)
        return ClaimedLinearSvm(*hinge, float(self.C), self.intercept_weight(), epsilon, settled=True)

    def _settled(
        self,
        rows: Rows,
        rules: tuple[SlackRule, ...],
        shift: Array | None,
        unit: float,
        found: Attributes,
        objective: float,
    ) -> tuple[Attributes, float]:
        """The attributes with the middle one of several best intercepts, and their objective."""
        claimed, coef, b = self._claimed(), np.atleast_2d(found["coef_"]), found["intercept_"].copy()
        penalty = 0.5 * float(np.square(coef).sum())
        only_one = np.isfinite(claimed.kappa) and objective > (1 + 1e-9) * penalty  # beside a smooth loss
        if only_one or not claimed.settles(rows.n_rows * len(rules)):
            return found, objective
        scores, y, w = rows.map(partial(_scores_about, shift, coef, b)), rows.map(row_targets), rows.map(row_weights)
        losses = 0.0
        for c, rule in enumerate(rules):
            sides = rule(y)
            s, u = np.concatenate([side.s for side in sides]), np.tile(float(self.C) * w, len(sides))
            z = np.concatenate([side.q - side.s * scores[:, c] for side in sides])
            step, before = claimed.best_step(s * (z + claimed.e), s, u), b[c]
            if abs(step) > self._tuning.settled * unit:
                b[c] += step
            losses += float(u @ claimed.hinge.value(z - s * (b[c] - before)))
        moved = bool((b != found["intercept_"]).any())
        return ({**found, "intercept_": b}, penalty + losses) if moved else (found, objective)

    def _checked(self, rows: Rows, found: Attributes) -> Certificate:
        """The checker's certificate of these attributes."""
        claimed = self._claimed()
        coef, dual = np.atleast_2d(found["coef_"]), found.get("dual_coef_")
        return certify(coef, found["intercept_"], claimed, float(self.tol), rows, dual)

    def _solve_and_certify(
        self,
        solve: Callable[..., Solution[T]],
        attributes: Callable[[T], Attributes],
        proof: LinearSvmProof,
    ) -> Attributes:
        """Solve under watch; return the attributes of the best solution that was found, and its certificate."""
        with self._watch.loop("passes", self.max_iter, attributes) as watch:
            best = solve(max_iter=self.max_iter, max_time=self.max_time, watcher=watch)
        (found, value), tol = proof.settle(attributes(best.params), best.objective), float(self.tol)
        coef = np.atleast_2d(found["coef_"])
        rounding = proof.rounding + proof.intercept_error(coef) + proof.score_error(coef)
        rounding += proof.bound_rounding(best.params, value)
        bound, limit = (1 - best.gain) * best.objective - rounding, (tol + 1e-12) * value + rounding
        # The gap of all machines together is no smaller than that of each.
        gaps = np.full(len(coef), proof.convexity * (value - bound))
        certificate = Certificate(
            "optimal",
            proof.claim,
            value,
            bound,
            tol,
            limit,
            (rounding_check(rounding, value, coef),),
            # Where no row is missed and nothing is penalised, 0 is the smallest there is.
            scale=value if value > 0 else limit,
            parameter_error=coefficient_error(coef, gaps, proof.rho),
        )
        # More than was asked for, or than leaves six digits, which the checker knows row by row.
        hidden = rounding > min(tol, 1e-6) * value
        if proof.checked is not None and (hidden or ((best.gain <= tol or proof.small) and not certificate.holds)):
            # It also tries more dual points.
            again = proof.checked(found)
            certificate = again if again.holds or hidden else certificate
        return {**found, "n_iter_": best.n_iter, "history_": best.history, "certificate_": certificate}

    def _attributes(
        self, svm: SvmObjective, d: int, fixed: Attributes, machines: tuple[PrimalSvmState | DualSvmState, ...]
    ) -> Attributes:
        """Fitted attributes in the columns' own coordinates."""
        theta = np.stack([m.coefficients for m in machines])
        coef, b = theta[:, :d].copy(), theta[:, d].copy() if svm.intercept else np.zeros(len(theta))
        if svm.shift is not None:
            b -= coef @ svm.shift
        return {**fixed, "coef_": coef[0] if self.single else coef, "intercept_": b}

    @abstractmethod
    def _slack_sizes(self, sample: ArrayRows) -> TargetSizes: ...

    def _fitted_objective(self, rows: Rows, rules: tuple[SlackRule, ...]) -> Objective:
        svm = self._svm_objective()
        theta = np.atleast_2d(self.coef_)
        if svm.intercept:
            theta = np.column_stack([theta, self.intercept_])
        problem = PrimalSvmProblem(rows, PrimalSvmGoal(svm, 0.0, 0.0))
        data, penalty = problem.loss_and_penalty(rules, theta)
        return Objective(data + penalty, data, penalty)
