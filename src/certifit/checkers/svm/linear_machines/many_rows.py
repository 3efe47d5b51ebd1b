"""Lower bounds for linear machines of so many rows that nothing is kept row by row: all dual points are sums.

The bound is that of `linear.py`. Its dual point is a = u φₕ'(z(θ)), the slopes of the loss with its kink rounded over
a width h, at any parameters θ. Where θ minimises the rounded objective, Σ a s (x, 1) = (β, ρb), and the bound misses
the minimum by what rounding the kink costs alone. So each machine starts at the fitted θ and takes Newton steps on
the rounded objective until its bound suffices; θ and h may be anything, since slopes lie within the limits wherever
they are taken, and that is counted again in every pass. Where an intercept is free, the sums of the two signs are
scaled to balance, as in `plain.dual_points`.

Each machine is a generator that asks for sums at some θ; one pass over the rows answers all of them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS, DualPenalty, DualSums, lower_bound
from certifit.checkers.plain.hinges import PlainHinge, plain_rounded_hinge
from certifit.checkers.svm.linear_machines.claimed import ClaimedLinearSvm, FittedMachines, ProvedBound
from certifit.checkers.svm.linear_machines.linear_rows import SLACK_ROUNDING, gradient_worth, solve_scaled, targets
from certifit.rows import Array, Block, Sums


@dataclass(frozen=True)
class ManyRowsTuning:
    """Numbers that steer which dual points are tried; no bound is wrong for any of them."""

    widths: tuple[float, ...] = tuple(10.0 ** -np.arange(0.0, 7.0, 0.25))  # of the rounded kink, in sizes of a target
    rounded: float = 0.2  # share of the gap allowed that the rounded kink may cost
    narrower: float = 0.3  # factor on the width where that was not enough
    rounds: int = 4  # widths that are tried
    steps: int = 10  # of Newton's method, with each
    shortest: float = 1e-3  # share of a step that is tried
    most_columns: int = 2000  # beyond which no steps are taken
    target_rows: int = 100_000  # from which the size of a target is learnt


@dataclass(frozen=True)
class MachinesAt(Sums):
    """What the machines (k,) cost where they are, summed over all slacks."""

    loss: Array  # (k,) Σ u φ
    loss_at_zero: Array  # (k,) the same with all parameters 0
    rounding: Array  # (k,) how far the loss can be off
    rounded: Array  # (k, widths) what slopes of the rounded loss lose against the loss itself


@dataclass(frozen=True)
class SlopeSums(Sums):
    """What the slopes a = u φₕ' of machines (k,) sum up to; sums by sign have the positive slacks first."""

    smooth: Array  # (k,) Σ u φₕ
    v: Array  # (k, 2, d) Σ a (x - m)
    v_size: Array  # (k, 2) Σ a |x - m|
    gain: Array  # (k, 2) Σ a (q + e)
    gain_size: Array  # (k, 2)
    soft: Array  # (k, 2) Σ a² / u
    mass: Array  # (k, 2) Σ a
    outside: Array  # (k,) slopes outside their limits
    H: Array  # (k, d1, d1) Hessian of Σ u φₕ

    def of(self, c: int) -> SlopeSums:
        """Those of one machine, without the first axis."""
        return SlopeSums(*(getattr(self, name)[c] for name in self.__dataclass_fields__))

    def slope(self, intercept: bool) -> Array:
        """Σ a s (x - m, 1) of one machine (d1,)."""
        v = self.v[0] - self.v[1]
        return np.append(v, self.mass[0] - self.mass[1]) if intercept else v


class SlopeQuestion(NamedTuple):
    """Where one machine wants to know the sums of slopes."""

    machine: int
    theta: Array  # (d1,) β and, where there is one, b about m
    smooth: PlainHinge


class _Side(NamedTuple):
    """The slacks of one sign, or the first or second ones of all rows."""

    z: Array
    s: Array
    q: Array


@dataclass(frozen=True)
class ManyRowsCheck:
    """How the minima of fitted machines are bounded."""

    fitted: FittedMachines
    tuning: ManyRowsTuning

    @property
    def claimed(self) -> ClaimedLinearSvm:
        return self.fitted.claimed

    @property
    def intercept(self) -> bool:
        return self.claimed.rho is not None

    @property
    def penalty(self) -> Array:
        """(k,) ½ |β|² + ρ/2 b² of each machine."""
        return 0.5 * np.square(self.fitted.coef).sum(axis=1) + 0.5 * (self.claimed.rho or 0.0) * self.fitted.b**2

    def widths(self) -> Array:
        """The widths that are considered, in units of the targets."""
        if self.claimed.epsilon is None:
            return np.array(self.tuning.widths)
        stride = max(1, self.fitted.rows.n_rows // self.tuning.target_rows)
        y = self.fitted.rows.thin(stride).map(targets)
        return np.array(self.tuning.widths) * (float(np.abs(y - np.median(y)).mean()) or 1.0)

    def costs(self, widths: Array) -> MachinesAt:
        """One pass: what the machines cost where they are."""
        return self.fitted.rows.sum(partial(self._costs, widths))

    def bounds(self, allowed: Array, at: MachinesAt, widths: Array) -> list[ProvedBound]:
        """A lower bound on each machine's minimum; `allowed` (k,) gaps suffice."""
        machines = [_prove(self, c, float(allowed[c]), at, widths) for c in range(len(self.fitted.coef))]
        proved = [ProvedBound(0.0, 0.0)] * len(machines)
        questions = [next(machine) for machine in machines]
        while questions:
            found, following = self.fitted.rows.sum(partial(self._slopes, tuple(questions))), []
            for i, question in enumerate(questions):
                try:
                    following.append(machines[question.machine].send(found.of(i)))
                except StopIteration as end:
                    proved[question.machine] = end.value
            questions = following
        return proved

    # ------------------------------------------------------------------------------------------- sums of one block
    def _sides(self, eta: Array, y: Array, c: int) -> list[_Side]:
        if self.claimed.epsilon is None:
            s = np.where(y == (c if len(self.fitted.coef) > 1 else 1), 1.0, -1.0)
            return [_Side(1.0 - s * eta, s, np.ones(len(y)))]
        both = [(sign, sign * y - self.claimed.epsilon) for sign in (1.0, -1.0)]
        return [_Side(q - sign * eta, np.full(len(y), sign), q) for sign, q in both]

    def _costs(self, widths: Array, block: Block) -> MachinesAt:
        Z, u, y, hinge = dense(block.X) - self.fitted.m, self.claimed.C * block.w, targets(block), self.claimed.hinge
        eta, length = Z @ self.fitted.coef.T + self.fitted.b, np.sqrt(np.einsum("ij,ij->i", Z, Z))
        k = len(self.fitted.coef)
        loss, zero, rounding, rounded = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros((k, len(widths)))
        for c in range(k):
            beta = self.fitted.coef[c]
            score = (
                float(np.linalg.norm(beta)) * length
                + float(np.abs(beta) @ np.abs(self.fitted.m))
                + abs(self.fitted.b[c])
            )
            for z, _, q in self._sides(eta[:, c], y, c):
                off = SLACK_ROUNDING * np.abs(q) + (SLACK_ROUNDING + EPS * len(beta)) * score
                value = hinge.value(z)
                loss[c] += u @ value
                zero[c] += u @ hinge.value(q)
                rounding[c] += u @ (hinge.slope(z + off) * off)
                if np.isinf(hinge.kappa):
                    # Beyond the width the slopes are the loss's own.
                    rounded[c] += [_lost(z, u, value, h) for h in widths]
        return MachinesAt(loss, zero, rounding, rounded)

    def _slopes(self, questions: tuple[SlopeQuestion, ...], block: Block) -> SlopeSums:
        Z, u, y = dense(block.X) - self.fitted.m, self.claimed.C * block.w, targets(block)
        d = Z.shape[1]
        eta = Z @ np.stack([question.theta[:d] for question in questions]).T
        if self.intercept:
            eta += np.array([question.theta[d] for question in questions])
        length = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        found = [self._machine_slopes(Z, eta[:, i], length, u, y, q) for i, q in enumerate(questions)]
        return SlopeSums(*(np.stack([f[name] for f in found]) for name in SlopeSums.__dataclass_fields__))

    def _machine_slopes(
        self, Z: Array, eta: Array, length: Array, u: Array, y: Array, question: SlopeQuestion
    ) -> dict[str, Array]:
        d1, hinge, smooth = Z.shape[1] + self.intercept, self.claimed.hinge, question.smooth
        limit = hinge.largest_dual(u)
        sums = {name: np.zeros(2) for name in ("v_size", "gain", "gain_size", "soft", "mass")}
        v, H = np.zeros((2, Z.shape[1])), np.zeros((d1, d1))
        total, outside = 0.0, 0
        for z, s, q in self._sides(eta, y, question.machine):
            a = np.clip(u * smooth.slope(z), 0.0, limit)
            total += float(u @ smooth.value(z))
            outside += int(np.count_nonzero(~((a >= 0) & (a <= limit))))
            terms = {
                "v_size": a * length,
                "gain": a * (q + hinge.e),
                "gain_size": a * np.abs(q + hinge.e),
                "soft": np.divide(a * a, u, out=np.zeros_like(a), where=u > 0),
                "mass": a,
            }
            by_sign = np.stack([s > 0, s < 0]).astype(float)
            v += (by_sign * a) @ Z
            for name, term in terms.items():
                sums[name] += by_sign @ term
            H += self._hessian(Z, z, u, smooth)
        return {**sums, "smooth": np.array(total), "v": v, "outside": np.array(outside), "H": H}

    def _hessian(self, Z: Array, z: Array, u: Array, smooth: PlainHinge) -> Array:
        """Σ u φₕ'' (x - m, 1)(x - m, 1)ᵀ (d1, d1); zeros where no step will be taken."""
        d1 = Z.shape[1] + self.intercept
        slope = smooth.kappa * (z + smooth.e)
        curved = np.flatnonzero((slope > 0) & (slope < smooth.top) & (u > 0))
        if d1 > self.tuning.most_columns or not len(curved):
            return np.zeros((d1, d1))
        A = np.column_stack([Z[curved], np.ones(len(curved))]) if self.intercept else Z[curved]
        A *= np.sqrt(smooth.kappa * u[curved])[:, None]
        return A.T @ A

    # ---------------------------------------------------------------------------------------- what has to be right
    def bound(self, sums: SlopeSums) -> ProvedBound:
        """The bound that one machine's slopes prove, at the best feasible multiple of them; never below 0."""
        claimed, share = self.claimed, np.ones(2)
        if sums.outside.any():
            return ProvedBound(0.0, 0.0)
        if claimed.rho == 0:
            lighter = float(sums.mass.min())
            share = np.divide(lighter, sums.mass, out=np.zeros(2), where=sums.mass > 0)
        v, balance = share @ np.stack([sums.v[0], -sums.v[1]]), float(share @ (sums.mass * [1.0, -1.0]))
        gain, soft = float(share @ sums.gain), float(share**2 @ sums.soft) / (2 * claimed.kappa)
        t = self._best_multiple(
            gain, float(v @ v) + 2 * soft + (balance * balance / claimed.rho if claimed.rho else 0.0)
        )
        square = t * float(np.linalg.norm(v))
        found = lower_bound(
            DualSums(
                gain=t * gain - t * t * soft,
                gain_size=t * float(share @ sums.gain_size) + t * t * soft,
                v=np.array([square]),
                v_size=np.array([t * float(share @ sums.v_size)]),
                balance=np.array(t * balance),
                mass=np.array(t * float(share @ sums.mass)),
            ),
            DualPenalty(0.0, 1.0, claimed.rho),
            self.fitted.slacks,
        )
        exact = t * gain - t * t * soft - 0.5 * square * square
        exact -= t * balance * t * balance / (2 * claimed.rho) if claimed.rho else 0.0
        return ProvedBound(found, max(0.0, exact - found)) if found > 0 else ProvedBound(0.0, 0.0)

    def _best_multiple(self, gain: float, square: float) -> float:
        """The t >= 0 for which t gain - t²/2 square is largest; at most 1 where slopes have upper limits."""
        if not (gain > 0 and np.isfinite(square)):
            return 0.0
        most = 1.0 if np.isfinite(self.claimed.top) or square <= 0 else np.inf
        return min(most, gain / square if square > 0 else 1.0)


def _lost(z: Array, u: Array, value: Array, h: float) -> float:
    """Σ u [φ(z) - (a z)] for the slopes a of the hinge with its kink rounded over ±h: what complementarity loses."""
    near = np.abs(z) < h
    z, u, value = z[near], u[near], value[near]
    return float(u @ (value - plain_rounded_hinge(h).slope(z) * z))


def _prove(
    check: ManyRowsCheck, c: int, allowed: float, at: MachinesAt, widths: Array
) -> Generator[SlopeQuestion, SlopeSums, ProvedBound]:
    """Ask for slopes at the fitted θ and along Newton's steps from it, until the bound suffices."""
    tuning, hinge, intercept = check.tuning, check.claimed.hinge, check.intercept
    theta = np.append(check.fitted.coef[c], check.fitted.b[c]) if intercept else check.fitted.coef[c]
    G = np.ones(len(theta))
    if intercept:
        G[-1] = check.claimed.rho or 0.0
    value = float(at.loss[c] + check.penalty[c])
    kink = np.isinf(hinge.kappa)
    cheap = np.flatnonzero(at.rounded[c] <= tuning.rounded * allowed)
    width = float(widths[cheap[0]] if len(cheap) else widths[-1])
    best = ProvedBound(0.0, 0.0)
    for _ in range(tuning.rounds if kink else 1):
        smooth = plain_rounded_hinge(width) if kink else hinge
        sums = yield SlopeQuestion(c, theta, smooth)
        best = max(best, check.bound(sums))
        for _ in range(tuning.steps):
            gradient = G * theta - sums.slope(intercept)
            here = float(sums.smooth) + 0.5 * float(G @ theta**2)
            enough = value - best.value <= allowed or len(theta) > tuning.most_columns
            if enough or gradient_worth(gradient, G, theta) <= 0.01 * allowed:
                break
            step = -solve_scaled(np.diag(G) + sums.H, gradient)
            t, after = 1.0, sums
            while t >= tuning.shortest:
                after = yield SlopeQuestion(c, theta + t * step, smooth)
                best = max(best, check.bound(after))
                reached = float(after.smooth) + 0.5 * float(G @ (theta + t * step) ** 2)
                if reached <= here + 1e-4 * t * float(gradient @ step) or value - best.value <= allowed:
                    break
                t *= 0.5
            else:
                break
            theta, sums = theta + t * step, after
        if value - best.value <= allowed or len(theta) > tuning.most_columns:
            break
        width *= tuning.narrower
    return best
