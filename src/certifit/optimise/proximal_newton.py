"""Newton steps for a smooth function plus Σ lam_j |x_j|: the quadratic model is minimised with the penalty in it.

Coordinates without a penalty (intercepts) are eliminated from that model first. Coordinate descent on the others then
takes the same steps wherever the columns lie; beside the intercept, columns 100 standard deviations from 0 would be
collinear to four digits, and each sweep would gain a ten-thousandth of what is left.

Under a strong penalty most coefficients are 0 and stay there. With `working` the Hessian is therefore measured only
in a working set: where coefficients are not 0, or their gradients are nearly as large as the penalty. The gap, which
needs all gradients and no Hessian, shows when that was enough.
References: Lee, Sun & Saunders, "Proximal Newton-type methods for minimizing composite functions" (2014);
Tibshirani et al., "Strong rules for discarding predictors in lasso-type problems" (2012).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from certifit.numerics.factor import factor
from certifit.optimise.coordinate_descent_loops import shrink_quadratic
from certifit.optimise.line_search import DescentPoint, Move
from certifit.optimise.newton import NewtonTuning
from certifit.optimise.sign_search import search_signs
from certifit.optimise.sparse_curvature import SparseCurvature, SweepGoals
from certifit.rows import Array


@dataclass(frozen=True)
class ProximalTuning:
    """How exactly each step's own problem is solved, and which coordinates enter it."""

    inner_share: float = 1e-3  # share of the gap to which each step's own problem is solved
    sweeps: int = 2000  # most sweeps of coordinate descent in one step
    creeping: int = 100  # sweeps after which what they found is only a start: signs are searched for
    candidate_share: float = 0.9  # a gradient of this share of its penalty puts a coordinate into the working set
    coarsest_gap: float = 1e-2  # relative gap from which on a step's own problem is solved no less exactly
    first_share: float = 0.0  # times √gap: the share of the first sweep's gain below which sweeps end
    candidates: int = 512  # at most so many at once, or as many as are not 0 already: those of the largest gradients
    newton: NewtonTuning = field(default_factory=NewtonTuning)

    @classmethod
    def of_columns(cls, columns: int, many: int = 2000) -> ProximalTuning:
        """Of many columns working sets are large: signs are dear to search for, and sweeps are long, so that steps
        need few digits; of the columns whose gradients are nearly as large as the penalty few are used in the end."""
        few_digits = cls(1e-2, creeping=500, candidate_share=0.98, coarsest_gap=1.0, first_share=0.1, candidates=1024)
        return few_digits if columns > many else cls()


@dataclass(frozen=True)
class Proximal:
    """Direction rule: x + step minimises g·(x' - x) + ½ |x' - x|²_H + Σ lam |x'|."""

    working: bool = False  # whether the Hessian is measured in a working set only
    columns: Array | None = None  # coordinates in which the Hessian is (to be) measured; None: all
    hessian: Array | SparseCurvature | None = None  # (c, c) the last one measured, in those columns
    wants_hessian: bool = True
    quadratic: bool = False  # whether the Hessian is the same everywhere
    gap: float = np.inf  # at the last accepted point
    tuning: ProximalTuning = ProximalTuning()

    def accept(self, point: DescentPoint) -> tuple[Proximal, Move]:
        """Minimise the quadratic model with the penalty in it; enlarge the working set where it was too small."""
        H = self.hessian if point.hessian is None else point.hessian
        lam = np.broadcast_to(point.lam, point.x.shape).astype(np.float64)
        screen = point.gradient if point.screen is None else point.screen
        stale = point.hessian is None and (H is None or self.quadratic)
        if stale:  # the gradient says where the Hessian is needed
            columns = self._candidates(point.x, screen, lam)
            if H is None or self.columns is None or not _contains(self.columns, columns, len(point.x)):
                return replace(self, columns=columns, wants_hessian=True), Move(np.zeros_like(point.x), 0.0)
        assert H is not None
        here = np.arange(len(point.x)) if self.columns is None else self.columns
        gap = min(point.gap, self.tuning.coarsest_gap) if np.isfinite(point.gap) else 1e-6
        # The gap is of first order in the error of the inner problem, the decrease that ends its loop of second.
        goal = (self.tuning.inner_share * gap) ** 2 * abs(point.value) / len(here)
        goals = SweepGoals(goal, self.tuning.first_share * gap**0.5, self.tuning.sweeps)
        trial = point.x.copy()
        trial[here] = minimise_penalised_quadratic(
            H, point.gradient[here], lam[here], trial[here], goals, self.tuning
        )
        step = trial - point.x
        slope = float(point.gradient @ step + lam @ (np.abs(trial) - np.abs(point.x)))
        next_columns, again = self.columns, False
        if not self.quadratic:
            again = self.tuning.newton.needs_hessian(point, slope, self.gap)
            if self.working:
                wanted = self._candidates(trial, screen, lam)
                grown = not _contains(here, wanted, len(point.x))
                next_columns = self._grown(wanted, here) if grown else here
                again = again or grown
        return replace(self, columns=next_columns, hessian=H, wants_hessian=again, gap=point.gap), Move(step, slope)

    def _grown(self, wanted: Array, here: Array) -> Array:
        """The next working set: what is no longer wanted leaves a large one."""
        return wanted if len(here) > self.tuning.candidates else np.union1d(wanted, here)

    def _candidates(self, x: Array, gradient: Array, lam: Array) -> Array:
        """Numbers of the coordinates that are not 0 or may not stay 0."""
        used, size = (x != 0) | (lam == 0), np.abs(gradient)
        new = np.flatnonzero(~used & (size >= self.tuning.candidate_share * lam))
        most = max(self.tuning.candidates, int(used.sum()))
        if self.working and len(new) > most:
            new = new[np.argsort(lam[new] - size[new], kind="stable")[:most]]
        used[new] = True
        return np.flatnonzero(used)


def _contains(columns: Array, others: Array, size: int) -> bool:
    """Whether the others, numbers below `size`, are all among the columns."""
    among = np.zeros(size, bool)
    among[columns] = True
    return bool(among[others].all())


def minimise_penalised_quadratic(
    H: Array | SparseCurvature, g: Array, lam: Array, x: Array, goals: SweepGoals, tuning: ProximalTuning
) -> Array:
    """The x' that minimises g·(x' - x) + ½ |x' - x|²_H + Σ lam |x'| (m,)."""
    if isinstance(H, SparseCurvature):
        return H.minimise(g, lam, x, goals)
    free, shrunk = np.flatnonzero(lam == 0), np.flatnonzero(lam)
    m, out, S, q = len(shrunk), x.copy(), H, g[shrunk]
    if len(free):
        inner = H[:m, :m] if free[0] == m else H[np.ix_(shrunk, shrunk)]
        border, solve = H[np.ix_(free, shrunk)], factor(H[np.ix_(free, free)]).solve
        less, S = solve(border), np.empty((m, m))
        for i in range(0, m, 64):  # a large product is not made whole
            np.subtract(inner[i : i + 64], border[:, i : i + 64].T @ less, out=S[i : i + 64])
        q = q - border.T @ solve(g[free])
    z = x[shrunk]
    linear = q - S @ z
    if shrink_quadratic(S, linear, lam[shrunk], z, goals.move, goals.sweeps) > tuning.creeping:
        exact = search_signs(S, -linear, lam[shrunk], z)
        z = z if exact is None else exact
    out[shrunk] = z
    if len(free):
        out[free] -= solve(g[free] + border @ (z - x[shrunk]))
    return out


def subgradient(gradient: Array, lam: Array, x: Array) -> Array:
    """The smallest gradient + lam s with s in the subdifferential of Σ |x|: 0 exactly at the minimum."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - lam, 0.0)
    return np.where(x == 0, at_zero, gradient + lam * np.sign(x))
