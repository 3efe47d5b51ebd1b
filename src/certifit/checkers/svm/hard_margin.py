"""Hard margins re-checked: a hyperplane that leaves all rows a margin, against the distance of the two convex hulls.

The largest margin is half the distance of the hulls. A machine that separates has, scaled to min y f = 1, the
objective ½ |f|²; β with y β >= 0 and Σ β = 0 prove that no machine has less than (Σ |β|)² / (2 |Σ β x|²).
With a ridge, rows may miss their margin by ξ: the objective gains Σ ξ² / (2 ridgeᵢ), and |Σ β x|² gains Σ ridgeᵢ βᵢ².
Hulls that meet are shown by shares, of each class's rows, whose two means are the same point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain import kernel_values
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import PlainKernel, as_plain_kernel
from certifit.checkers.svm import kernel as svc
from certifit.core import Certificate, Check
from certifit.rows import Array

CLAIM = "half the squared norm, with every row at its margin, within gap of the smallest: no margin is larger"
STATIONARY = "complementary slackness holds row by row; the kernel is not proved positive semidefinite"
MEET = "one convex combination of each class meet in one point: no hyperplane separates the classes"
TOUCH = "one convex combination of each class meet in one point, up to rounding: no margin is large enough to be told"
EPS, TINY = svc.EPS, float(np.finfo(float).tiny)
FEASIBLE = svc.SvmCheckTuning().feasible
HIDDEN = 1e-3  # most of the objective that rounding may hide
SCALED = 1e-9  # by which y f of the nearest row may miss 1: no claim depends on it, objectives are scaled by it
CLOSE = 1e-6  # of the objective: kernel values are computed in a longer type where rounding nears it
APART = 64 * EPS  # distance of two points, relative to the size of the rows, that may be rounding

KernelValues = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Machine:
    """One machine and the rows it was trained on."""

    rows: Array  # (m,) row numbers in the table
    y: Array  # (m,) ±1
    ridge: Array  # (m,)
    beta: Array  # (m,) coefficients, zero where a row is not a support vector
    intercept: float
    coef: Array | None = None  # (d,) for a linear kernel: the function itself, β only its proof


class Values(NamedTuple):
    """A machine on its rows."""

    f: Array  # (m,) with the intercept
    error: Array  # (m,) rounding in f
    square: float  # |f|²
    hidden: float  # rounding in it
    least: float  # |Σ β x| of feasible coefficients
    fuzz: float  # rounding in it
    apart: float  # distance of coef from Σ β x, relative


class Judged(NamedTuple):
    """What a machine's values prove about it."""

    objective: float
    bound: float
    rounding: float
    lowest: float  # y f, of all rows
    blur: float  # rounding in it, if rows are float64
    wrong: float  # the worst coefficient of a wrong sign, as a share of the largest
    unbalanced: float  # |Σ β| / Σ |β|
    apart: float
    margin: float  # 1 / |f|
    slacks: Array  # (m,)
    residuals: Array  # (m,) by how much each row's optimality condition is missed
    kinds: Array  # (m,) as svc numbers them


def judge(machine: Machine, X: Any, kernel: KernelValues | None) -> Judged:
    """On its rows of X, dense or CSR; without a kernel, for the hyperplane of `coef`."""
    if kernel is None:
        return _weigh(machine, _feasible(machine, np.float64), _by_columns(machine, X))
    return svc.assess_in_enough_digits(_by_kernel, machine, as_plain_kernel(kernel), X, CLOSE)


def _feasible(machine: Machine, dtype: Any) -> Array:
    box = np.full(len(machine.y), np.inf)
    return svc.KernelSvm(machine.rows, machine.y, box, machine.beta, machine.intercept).feasible(dtype)


def _weigh(machine: Machine, feasible: Array, at: Values) -> Judged:
    y, beta, ridge = machine.y, machine.beta, machine.ridge
    reach = y * at.f
    total, signed, soft = float(np.abs(beta).sum()), y * beta, float(ridge.max()) > 0
    lowest, slacks, blur = float(reach.min()), np.maximum(0.0, 1.0 - reach), float(at.error.max())
    if soft:
        objective = 0.5 * at.square + 0.5 * float((slacks**2 / ridge).sum())
        larger = np.maximum(0.0, 1.0 - reach + at.error)
        rounding = 0.5 * at.hidden + 0.5 * float(((larger - slacks) * (larger + slacks) / ridge).sum())
    else:
        objective = 0.5 * at.square / lowest**2 if lowest > 0 else np.inf
        most = 0.5 * (at.square + at.hidden) / (lowest - blur) ** 2 if lowest > blur else np.inf
        rounding = most - objective if lowest > 0 else 0.0
    bound, sharp = (
        0.5 * (float(np.abs(feasible).sum()) / max(float(np.sqrt(z**2 + ridge @ feasible**2)), TINY)) ** 2
        for z in (at.least + at.fuzz, at.least)
    )
    kinds = np.where(signed <= 0, svc.RowKind.NONE, svc.RowKind.MARGIN).astype(np.int8)
    miss = 1.0 - reach - ridge * signed
    return Judged(
        float(objective),
        bound,
        float(rounding) + sharp - bound + 64 * EPS * bound,
        lowest,
        blur * EPS / float(np.finfo(at.f.dtype).eps),
        float(np.maximum(-signed, 0.0).max() / np.abs(beta).max(initial=TINY)),
        abs(float(beta.sum())) / total if total > 0 else 0.0,
        at.apart,
        1.0 / max(float(np.sqrt(at.square)), TINY),
        slacks.astype(np.float64),
        np.where(kinds == svc.RowKind.NONE, np.maximum(miss, 0.0), np.abs(miss)).astype(np.float64),
        kinds,
    )


def assemble(judged: Sequence[Judged], soft: bool, tol: float, proved: bool, why: str) -> Certificate:
    """One certificate for all machines; `proved` says whether the kernel is positive semidefinite, `why` how so."""
    objective, bound = sum(j.objective for j in judged), sum(j.bound for j in judged)
    rounding = sum(j.rounding for j in judged)
    checks = [
        Check("coefficients of the wrong sign, relative", max(j.wrong for j in judged), FEASIBLE),
        Check("coefficients out of balance, relative", max(j.unbalanced for j in judged), FEASIBLE),
        Check("rounding in the objective, relative", max(j.rounding / j.objective for j in judged), HIDDEN),
        Check("coefficients of columns that are not those of rows, relative", max(j.apart for j in judged), FEASIBLE),
    ]
    if not soft:
        missed = [(abs(j.lowest - 1.0), max(SCALED, 4 * j.blur)) for j in judged]
        checks.append(Check("smallest y f(x) differs from 1 by", *max(missed, key=lambda m: m[0] - m[1])))
    facts: dict[str, float | str] = {
        "smallest margin": min(j.margin for j in judged),
        "largest residual of a row": max(float(j.residuals.max()) for j in judged),
        "rows on the margin": float(sum(int((j.kinds == svc.RowKind.MARGIN).sum()) for j in judged)),
        "kernel": why,
    }
    limit = tol * objective + 2 * min(rounding, HIDDEN * objective) if objective < np.inf else rounding
    if proved:
        return Certificate("optimal", CLAIM, objective, bound - rounding, tol, limit, tuple(checks), facts)
    checks.append(Check("complementary slackness", objective - bound, limit))
    return Certificate("stationary", STATIONARY, objective, np.nan, tol, limit, tuple(checks), facts)


def meeting(
    rows: Array,
    sign: Array,
    share: Array,
    X: Any,
    members: Array,
    kernel: KernelValues | None,
    names: Array,
) -> Certificate:
    """The certificate that the hulls meet: shares (s,) of these rows, sign says of which class.

    `members` are the rows of both classes, whose size says how large rounding is; `names` what the rows of X are
    called. The witness is the rows and shares of the first class (sign 1), then those of the second.
    """
    same = len(rows) == 2 and bool((abs(X[rows[0]] - X[rows[1]])).max() == 0)
    if same:
        name, distance, proved = "distance of the two rows", 0.0, True
    elif kernel is None:
        V, size = _about_centre(X, rows, members)
        z = (sign * share) @ V
        name = "distance of the two points, relative to the size of the rows"
        distance = float(np.linalg.norm(z)) / size
        proved = _overlap(sign, share, V / size, distance)
    else:
        K = kernel(dense(X[rows]), dense(X[rows]))
        name = "squared distance of the two points, relative to the size of the rows"
        distance = float((sign * share) @ K @ (sign * share)) / float(K.diagonal().max())
        proved = False
    sums = [float(share[sign == side].sum()) for side in (1.0, -1.0)]
    return Certificate(
        "impossible",
        MEET if proved else TOUCH,
        checks=(
            Check(name, distance, APART),
            Check("shares below zero", max(0.0, -float(share.min())), 0.0),
            Check("sums of shares differ from 1 by", max(abs(s - 1.0) for s in sums), APART),
        ),
        witness=tuple(
            tuple(float(v) for v in part[sign == side]) for side in (1.0, -1.0) for part in (names[rows], share)
        ),
    )


def _overlap(sign: Array, share: Array, V: Array, distance: float) -> bool:
    """Whether exact shares that make the two points equal are proved to be near those given.

    Moving the shares by δ moves (p - q, Σ share of either class) by A δ. If A has full row rank, a δ no longer than
    (distance + rounding) / (smallest singular value) closes the distance, and no share falls below zero on the way.
    """
    A = np.vstack([(sign[:, None] * V).T, sign > 0, sign < 0])  # (d + 2, s)
    if A.shape[1] < A.shape[0]:
        return False
    smallest = float(np.linalg.svd(A, compute_uv=False)[-1]) - EPS * A.size
    return smallest > 0 and float(share.min()) * smallest > distance + EPS * A.size


def _about_centre(X: Any, rows: Array, members: Array) -> tuple[Array, float]:
    """These rows about their mean, and the length of the longest row of all members about it."""
    V = dense(X[rows])
    centre = V.mean(axis=0)
    size = max(float(np.linalg.norm(part - centre, axis=1).max()) for part in _parts(X, members))
    return V - centre, size if size > 0 else 1.0


def _parts(X: Any, rows: Array) -> list[Array]:
    step = max(1, kernel_values.PlainValueTuning().block_entries // X.shape[1])
    return [dense(X[rows[i : i + step]]) for i in range(0, len(rows), step)]


def _by_columns(machine: Machine, X: Any) -> Values:
    assert machine.coef is not None
    feasible = _feasible(machine, np.float64)
    support = np.flatnonzero((machine.beta != 0) | (feasible != 0))
    V = dense(X[machine.rows[support]])
    centre = V.mean(axis=0) if len(V) else np.zeros(X.shape[1])
    V = V - centre
    w, z = machine.coef, feasible[support] @ V
    own = machine.beta[support] @ V + machine.beta.sum() * centre
    offset = machine.intercept + float(w @ centre)
    scale = abs(machine.intercept) + float(np.abs(w) @ np.abs(centre))
    f, error = [], []
    for part in _parts(X, machine.rows):
        part = part - centre
        f.append(part @ w + offset)
        error.append(8 * EPS * (np.abs(part) @ np.abs(w) + scale))
    fuzz = 8 * EPS * float(np.linalg.norm(np.abs(feasible[support]) @ np.abs(V)))
    size = float(np.linalg.norm(w))
    apart = max(0.0, float(np.linalg.norm(w - own)) - fuzz)
    return Values(
        np.concatenate(f),
        np.concatenate(error),
        size**2,
        8 * EPS * size**2,
        float(np.linalg.norm(z)),
        fuzz,
        apart / max(size, TINY),
    )


def _by_kernel(machine: Machine, kernel: PlainKernel, X: Any, dtype: Any) -> Judged:
    beta = _feasible(machine, dtype)
    seen = kernel_values.MachineValues.of(
        kernel, X, machine.rows, machine.rows, np.column_stack([machine.beta, beta]), dtype
    )
    (intercept,), error = seen.intercept(kernel, machine.intercept)
    square = max(0.0, float(beta @ seen.f[:, 1]))
    fuzz = float(np.sqrt(square + float(np.abs(beta) @ seen.error)) - np.sqrt(square))
    own, hidden = float(machine.beta @ seen.f[:, 0]), float(np.abs(machine.beta) @ seen.error)
    at = Values(seen.f[:, 0] + intercept, error, own, hidden, np.sqrt(square), fuzz, 0.0)
    return _weigh(machine, beta.astype(np.float64), at)
