"""Linear support vector machines for all classes at once: dual ascent on rows in memory.

    min over β, b of   ½ Σ_k |β_k|² + ρ/2 Σ_k b_k² + C Σᵢ wᵢ L(margin + f_k - f_y for k ≠ y),     f = β x + b

L is the sum of the positive parts (Weston-Watkins, margin 2) or the largest of them (Crammer-Singer, margin 1). The
dual has a q_ik for each row and class, β_k = Σᵢ α_ik xᵢ with α_ik = -q_ik for k ≠ y and α_iy the sum of these q. From
where a smoother problem ends (`models.joint_svm_start`), one row's q after the other is set to its best value; then
all that are within their limits are moved at once (`models.joint_svm_face`). Free biases are multipliers of
Σᵢ α_ik = 0: the term |b - b₀|² / (2τ) is added, and b₀ becomes b after every move. Where α is nearly in balance, a
mixture with a point that is well within all limits is in balance exactly, and its dual value is the bound. The dual's
β is no good primal point until late: the answer is the best on the way from the last answer to it.
References: Weston & Watkins, "Support vector machines for multi-class pattern recognition" (1999); Crammer & Singer,
"On the algorithmic implementation of multiclass kernel-based vector machines" (2001); Keerthi, Sundararajan, Chang,
Hsieh & Lin, "A sequential dual method for large scale multi-class linear SVMs" (2008).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from certifit.core import Array, ArrayRows, Block, Matrix, Objective, Rows, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.kernels.joint_svm import LANES, loss_rows, slopes, sweep
from certifit.models.joint_svm_face import Face, adjoint_rows, score_rows, signed
from certifit.models.joint_svm_start import smooth_start
from certifit.models.linear_rows import row_shift, shift_rows

SWEEPS = 5  # rounds over the rows that may still move, before each move of all that are free
CYCLES, COST = (
    30,
    12,
)  # of both, between two looks at the gap: so many, or as much work as so many rounds over all rows
FEWEST, MOST = 10, 100  # steps on a face
WIDTH = 0.1  # in units of the margin, over which a smoother problem's answer decides what is within limits
NARROW = 0.3  # free biases' τ, relative to the mean |x|²
ROUNDING = 8 * np.finfo(float).eps  # of a slack, relative to the margin
LEAST = 1e-10  # |x|², relative to its mean, that a row without entries is given


class Shape(NamedTuple):
    """A loss: its margin, and whether a row's slacks share one limit."""

    margin: float
    shared: bool


SHAPES = {"weston-watkins": Shape(2.0, False), "crammer-singer": Shape(1.0, True)}


@dataclass(frozen=True)
class State:
    """Where an ascent is, and the best answer so far."""

    q: Array  # (n, k) dual variables
    V: Array  # (d1, k) Σ x α, with √τ Σ α in the last row where there are biases
    offset: Array  # (k,) b₀
    theta: Array  # (d1, k) the best answer: β and, unless they are penalised or there are none, b in the last row
    F: Array = field(repr=False)  # (n, k) its scores
    value: float  # its objective
    bound: float  # proved
    steps: int  # on a face
    rounds: int  # looks at the gap


class JointProblem:
    """Rows in memory and what is asked of them; y are class numbers."""

    def __init__(
        self,
        rows: ArrayRows,
        k: int,
        shape: Shape,
        C: float,
        rho: float | None,
        shift: Array | None,
        tol: float,
        seed: int,
    ) -> None:
        self.k, self.all = k, rows.n_rows
        self.counted = np.flatnonzero(rows.w > 0)  # what rows without weight say does not matter
        rows = rows.take(self.counted)
        assert rows.y is not None
        self.shape, self.rho, self.shift, self.tol, self.seed = shape, rho, shift, tol, seed
        self.y, self.u, self.n = rows.y.astype(np.int64), C * rows.w, rows.n_rows
        X: Matrix = sparse.csr_array(shift_rows(rows.X, shift)).astype(np.float64, copy=False)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        self.tau = 0.0 if rho is None else 1 / rho if rho else NARROW * float(squares.mean()) or 1.0
        if rho is not None:
            X = sparse.csr_array(sparse.hstack([X, np.full((self.n, 1), np.sqrt(self.tau))], format="csr"))
        self.norms = squares + self.tau
        self.norms = np.maximum(self.norms, LEAST * float(self.norms.mean()) or 1.0)
        self.rows = ArrayRows(X, self.y, self.u)
        self.rounding = ROUNDING * shape.margin * (self.k - 1) * float(self.u.sum())
        self.table = X.data, _unsigned(X.indices), _unsigned(X.indptr)
        self.middle = self._middle()

    def start(self) -> State:
        """From the solution of a smoother problem."""
        theta = smooth_start(self.rows, self.k, self.shape)
        F, q = self.scores(theta), np.empty((self.n, self.k))
        slopes(F, self.y, self.u, self.shape.margin, self.shape.shared, WIDTH * self.shape.margin, q)
        V = self.rows.sum(partial(adjoint_rows, signed(q, self.y)))
        value = self._loss(F) + self._penalty(theta)
        return State(q, V, np.zeros(self.k), theta, F, value, 0.0, FEWEST, 0)

    def look(self, at: State) -> tuple[float, float]:
        return at.value, at.bound

    def update(self, at: State, found: tuple[float, float]) -> Step[State]:
        value, bound = found
        gap = max(0.0, value - bound - self.rounding)
        gain = gap / value if gap else 0.0
        return Step(at if gain <= self.tol else self._answer(self._climb(at)), value, gain)

    def _climb(self, at: State) -> State:
        """Cycles of rounds row by row and a move of all that are free, until that has cost some looks at all rows."""
        q, k, steps, offset = at.q.copy(), self.k, at.steps, at.offset
        V = np.zeros((len(at.V), -(-k // LANES) * LANES))
        V[:, :k] = at.V
        rng = np.random.default_rng([self.seed, at.rounds])
        moving, (margin, shared) = np.arange(self.n), self.shape
        cost = 0
        for _ in range(CYCLES):
            for _ in range(SWEEPS):
                before = q[moving]
                order = _unsigned(rng.permutation(moving))
                sweep(*self.table, self.y, self.u, self.norms, order, margin, shared, offset, q, V)
                cost += len(moving)
                # what is at a limit and did not move waits for the next look
                moving = moving[(q[moving] != before).any(axis=1) | self._free(q, moving).any(axis=1)]
            face = Face(self.rows, self.shape, offset, q, moving, self._free(q, moving))
            V[:, :k], steps, spent = face.climb(V[:, :k], steps)
            steps, cost = int(np.clip(steps, FEWEST, MOST)), cost + spent
            if self.rho == 0:
                offset = offset + np.sqrt(self.tau) * V[-1, :k]
                moving = np.arange(self.n)  # other biases may move others
            if cost > COST * self.n or not len(moving):
                break
        return replace(at, q=q, V=V[:, :k].copy(), offset=offset, steps=steps, rounds=at.rounds + 1)

    def _free(self, q: Array, rows: Array) -> Array:
        """Where q is within its limits, and has another to move against."""
        q, u = q[rows], self.u[rows][:, None]
        if not self.shape.shared:
            return (q > 0) & (q < u)
        inner = q > 0
        return inner & (inner.sum(axis=1) > 1)[:, None]

    def _answer(self, at: State) -> State:
        """The best point between the last answer and the dual's β, and the bound that the dual proves."""
        V = at.V.copy()
        if self.rho == 0:
            V[-1] = at.offset / np.sqrt(self.tau)
        F = self.scores(V)
        dF, dV = F - at.F, V - at.theta

        def value(t: float) -> float:
            return self._loss(at.F + t * dF) + self._penalty(at.theta + t * dV)

        t = float(minimize_scalar(value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-3}).x)
        here, t = min((value(t), t), (value(1.0), 1.0), (at.value, 0.0))
        bound = max(at.bound, self.lower_bound(at.q, at.V))
        return replace(at, theta=at.theta + t * dV, F=at.F + t * dF, value=here, bound=bound)

    def scores(self, V: Array) -> Array:
        """(n, k)."""
        return self.rows.map(partial(score_rows, V))

    def _loss(self, F: Array) -> float:
        return float(loss_rows(F, self.y, self.u, *self.shape))

    def _penalty(self, V: Array) -> float:
        square = float((V**2).sum())
        return 0.5 * (square - float((V[-1] ** 2).sum()) if self.rho == 0 else square)

    # ------------------------------------------------------------------------------------------------- the bound
    def _middle(self) -> tuple[Array, Array, float]:
        """Σ u x (k, d1) and Σ u (k,) of each class, and the size of a flow between each two that is well within the
        limits: each row of class c bears u / Σ u of it."""
        onehot = sparse.csr_array((self.u, (self.y, np.arange(self.n))), shape=(self.k, self.n))
        mass = np.bincount(self.y, self.u, self.k)
        sharing = self.k - 1 if self.shape.shared else 1
        return np.asarray((onehot @ self.rows.X).toarray()), mass, float(mass.min()) / (2 * sharing)

    def lower_bound(self, q: Array, V: Array) -> float:
        """The dual value of q (at its best multiple) or, where biases are free, of a mixture that is in balance.

        A flow of (r_k - r_c) / 2k from class c to class k takes off the imbalance r = Σᵢ αᵢ; mixed with enough of an
        even flow between all classes, it is nowhere negative and nowhere beyond a limit.
        """
        linear = float(q.sum()) - float(q[np.arange(self.n), self.y].sum())
        if self.rho == 0:
            sums, mass, even = self.middle
            r = V[-1] / np.sqrt(self.tau)
            flow = (r - r[:, None]) / (2 * self.k)
            part = float(np.abs(flow).max()) / even if even > 0 else 1.0
            if part >= 1:
                return 0.0
            flow = (1 - part) * flow + part * even * (1 - np.eye(self.k))
            linear = (1 - part) * linear + float(flow.sum())
            V = (1 - part) * V[:-1] - (sums[:, :-1] / mass[:, None]).T @ (flow - np.diag(flow.sum(axis=1)))
        linear, square = self.shape.margin * linear, float((V**2).sum())
        t = min(1.0, linear / square) if square > 0 else 1.0
        return max(0.0, t * linear - 0.5 * t * t * square)

    # ---------------------------------------------------------------------------------------------- the answer
    def coefficients(self, at: State) -> tuple[Array, Array]:
        """β (k, d) and b (k,) of the best answer, in the columns' own coordinates."""
        if self.rho is None:
            return at.theta.T.copy(), np.zeros(self.k)
        beta, b = at.theta[:-1].T.copy(), np.sqrt(self.tau) * at.theta[-1]
        return beta, b if self.shift is None else b - beta @ self.shift

    def dual_coef(self, at: State) -> Array:
        """α (k, n) of all rows given."""
        alpha = np.zeros((self.k, self.all))
        alpha[:, self.counted] = signed(at.q, self.y).T
        return alpha


def ascend_jointly(
    problem: JointProblem, *, max_iter: int, max_time: float | None = None, watcher: Watcher | None = None
) -> Solution[State]:
    """Solve to relative gap `problem.tol`. Each pass is some rounds over the rows and a look at the gap."""
    return fixed_point(
        problem.look,
        problem.update,
        problem.start(),
        tol=problem.tol,
        max_iter=max_iter,
        max_time=max_time,
        watcher=watcher,
    )


def joint_shift(rows: ArrayRows) -> Array | None:
    """What free biases let us subtract: the means, far from which ascent is slow, unless that would fill CSR rows."""
    if sparse.issparse(rows.X):
        return row_shift(rows.X, rows.w)
    return np.asarray(rows.w / rows.w.sum() @ np.where(rows.w[:, None] > 0, rows.X, 0.0), dtype=np.float64)


def _both_machines(coef: Array, intercept: Array) -> tuple[Array, Array]:
    """β (k, d) and b (k,); two classes have one machine, their difference, and their sum is 0."""
    if len(coef) > 1:
        return coef, intercept
    return np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2


def joint_objective(
    rows: Rows, shape: Shape, coef: Array, intercept: Array, C: float, rho: float | None
) -> Objective:
    """Of fitted coefficients, on any rows."""
    beta, b = _both_machines(coef, intercept)
    data = rows.sum(partial(_joint_loss, shape, beta, b, C))
    penalty = 0.5 * float((beta**2).sum()) + 0.5 * (rho or 0.0) * float(b @ b)
    return Objective(data + penalty, data, penalty)


def _joint_loss(shape: Shape, beta: Array, b: Array, C: float, block: Block) -> float:
    """C Σ w L over a block."""
    assert block.y is not None
    return float(loss_rows(np.asarray(block.X @ beta.T + b, np.float64), block.y, C * block.w, *shape))


def _unsigned(index: Array) -> Array:
    """The same numbers as a type that cannot be negative: a compiled loop then need not ask whether they are."""
    return index.view(f"u{index.dtype.itemsize}")
