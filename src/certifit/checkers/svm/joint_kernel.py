"""One kernel machine for all classes, re-checked: its scores, a feasible dual point, and the gap row by row.

The machine is f_c = Σᵢ β_ic k(·, xᵢ) and a bias b_c for every class c. Problem, dual and bound are those of
`checkers.svm.joint`, with |f_c|² = β_cᵀ K β_c: if k is positive semidefinite, every feasible β proves a bound,
and the machine's own coefficients, moved into the feasible set, are one. A row is optimal if no class that may get
more of its coefficients misses more of its score than one that may give some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.checkers.plain.hinges import PLAIN_MULTICLASS_HINGES
from certifit.checkers.plain.kernel_values import Values
from certifit.checkers.plain.kernels import Plain, plain
from certifit.checkers.svm import kernel as svc
from certifit.checkers.svm.joint import ClaimedJointSvm, feasible, lower_bound, slacks
from certifit.checkers.svm.kernel import BEYOND, EPS, MARGIN, NONE, Judged
from certifit.core import Certificate, Check
from certifit.rows import Array

AT = 1e-12  # of C: coefficients this close to a limit are at it


@dataclass(frozen=True)
class Machine:
    """A machine and the rows it was trained on."""

    rows: Array  # (m,) row numbers in the table
    y: Array  # (m,) class numbers
    C: Array  # (m,) > 0, price of each row's loss
    beta: Array  # (m, k) coefficients; those of a row sum to 0
    intercept: Array  # (k,)
    loss: str  # one of PLAIN_MULTICLASS_HINGES

    @property
    def spec(self) -> ClaimedJointSvm:
        return ClaimedJointSvm(PLAIN_MULTICLASS_HINGES[self.loss], 1.0, 0.0)

    def losses(self, kernel: Plain, X: Any, some: Array) -> Array:
        """Of some of its rows."""
        F = self.values(kernel, X, self.rows[some])
        return self.spec.loss.value(slacks(self.spec.loss, F, self.y[some]))

    def values(self, kernel: Plain, X: Any, at: Array) -> Array:
        """Scores (m, k) at these rows of X."""
        seen = Values.of(kernel, X, at, self.rows, self.beta, np.float64)
        return seen.f + seen.intercept(kernel, self.intercept)[0]

    def limits(self) -> tuple[Array, Array]:
        """The smallest and the largest coefficients (m, k) that are feasible."""
        return LIMITS[self.loss](self.y[:, None] == np.arange(self.beta.shape[1]), self.C[:, None])


# coefficients of rivals are minus a >= 0, that of the own class is Σ a
LIMITS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "weston-watkins": lambda own, C: (np.where(own, -np.inf, -C), np.where(own, np.inf, 0.0)),
    "crammer-singer": lambda own, C: (np.full(own.shape, -np.inf), np.where(own, C, 0.0)),
}


def judge(machine: Machine, f: Array, alpha: Array, g: Array, lengths: Array) -> Judged:
    """As `weigh`, for scores that are good to rounding; lengths (m,) are √k(x, x)."""
    weight = np.abs(machine.beta).sum(axis=1)
    return weigh(machine, f, alpha, g, 8 * EPS * float(lengths @ weight) * lengths)


def weigh(machine: Machine, f: Array, alpha: Array, g: Array, error: Array) -> Judged:
    """f (m, k) are the machine's scores without biases, g those of the feasible coefficients `alpha`.

    error (m,) is how far any of them may be off.
    """
    y, C, beta, b, spec = machine.y, machine.C, machine.beta, machine.intercept, machine.spec
    own = np.arange(len(y)), y
    low, high = machine.limits()
    F = f + b
    z = slacks(spec.loss, F, y)
    losses = spec.loss.value(z)
    square, linear = (beta * f).sum(), spec.loss.margin * beta[own]
    objective = 0.5 * square + C @ losses
    slackness = C * losses - linear + (beta * F).sum(axis=1)
    gap = objective - linear.sum() + 0.5 * square
    astray = slackness.sum() - gap - b @ beta.sum(axis=0, dtype=f.dtype)
    sizes = np.abs(beta * F).sum() + np.abs(alpha * g).sum() + np.abs(linear).sum() + C @ losses
    weight = np.abs(beta).sum(axis=1)
    most = z + 2 * error[:, None]  # a rival's score may rise by as much as the own one falls
    most[own] = 0.0
    hidden = error @ (weight + np.abs(alpha).sum(axis=1)) / 2 + C @ (spec.loss.value(most) - losses)
    hidden += np.abs(b) @ np.abs(alpha.sum(axis=0))  # which is 0 to rounding, as the bound asks for
    total = float(weight.sum())
    outside = max(np.maximum(low - beta, beta - high).max(), np.abs(beta.sum(axis=1)).max())
    at_low, at_high = beta <= low + AT * C[:, None], beta >= high - AT * C[:, None]
    full = (at_low | (at_high & (high > 0))).any(axis=1)  # some slack may be above 0
    missing = -F
    missing[own] += spec.loss.margin
    above = np.where(at_high, -np.inf, missing).max(axis=1)
    below = np.where(at_low, np.inf, missing).min(axis=1)
    rounding = float(64 * np.finfo(f.dtype).eps * sizes + hidden + EPS * abs(objective))
    return Judged(
        float(objective),
        lower_bound(spec, alpha, y, float((alpha * g).sum())),
        rounding,
        float(outside / C.max()),
        float(np.abs(beta.sum(axis=0)).max()) / total if total > 0 else 0.0,
        max(0.0, abs(float(astray)) - rounding) / max(float(objective), svc.TINY),
        losses.astype(np.float64),
        np.maximum(above - below, 0.0).astype(np.float64),
        np.where((beta == 0).all(axis=1), NONE, np.where(full, BEYOND, MARGIN)).astype(np.int8),
    )


def assemble(
    machines: Sequence[Machine], judged: Sequence[Judged], tol: float, proved: bool, why: str
) -> Certificate:
    """As `svc.assemble`; and no score has more bias than its rivals have less, which no loss would notice."""
    found = svc.assemble(judged, tol, proved, why)
    off = max(abs(float(m.intercept.sum())) / (1.0 + float(np.abs(m.intercept).max())) for m in machines)
    return replace(found, checks=(*found.checks, Check("biases sum to, relative", off, svc.FEASIBLE)))


def certify(
    machines: Sequence[Machine], kernel: Callable[[Any, Any], Any], X: Any, tol: float, proved: bool, why: str
) -> tuple[Certificate, list[Judged]]:
    """Recompute every machine's scores on its rows of X (dense or CSR)."""
    judged = [svc.closely(_judged, machine, plain(kernel), X, tol) for machine in machines]
    return assemble(machines, judged, tol, proved, why), judged


def _judged(machine: Machine, kernel: Plain, X: Any, dtype: Any) -> Judged:
    alpha, k = feasible(machine.spec, machine.beta, machine.y, machine.C), machine.beta.shape[1]
    seen = Values.of(kernel, X, machine.rows, machine.rows, np.hstack([machine.beta, alpha]), dtype)
    b, error = seen.intercept(kernel, machine.intercept)
    return weigh(replace(machine, intercept=b), seen.f[:, :k], alpha, seen.f[:, k:], error)
