"""Hard margins re-checked: a hyperplane that leaves all rows a margin, against the distance of the two convex hulls.

The largest margin is half the distance of the hulls. A machine that separates has, scaled to min y f = 1, the
objective ½ |f|²; β with y β >= 0 and Σ β = 0 prove that no machine has less than (Σ |β|)² / (2 |Σ β x|²).
With a ridge, rows may miss their margin by ξ: the objective gains Σ ξ² / (2 ridgeᵢ), and |Σ β x|² gains Σ ridgeᵢ βᵢ².
Hulls that meet are shown by shares, of each class's rows, whose two means are the same point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain import kernel_values
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import PlainKernel, as_plain_kernel
from certifit.checkers.svm import kernel as svc
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)

KernelFunction = Callable[[Array, Array], Array]


class HullClaim(StrEnum):
    """What is proved of two hulls whose nearest points are the same to rounding."""

    MEET = "one convex combination of each class meet in one point: no hyperplane separates the classes"
    TOUCH = (
        "one convex combination of each class meet in one point, up to rounding: no margin is large enough to be told"
    )


@dataclass(frozen=True)
class HardMarginCheckTuning:
    """How far numbers may be off, and how many are held at a time."""

    feasible: float = 1e-6  # relative: coefficients of the wrong sign, out of balance, or of columns and not of rows
    hidden: float = 1e-3  # share of the objective that rounding may hide
    lost: float = 0.1  # share of a margin that rounding may hide
    scaled: float = 1e-9  # by which the smallest y f may miss 1; no claim depends on it, objectives are scaled by it
    close: float = 1e-6  # share of the objective: nearer than this to rounding, kernel values get a longer type
    distance: float = 64 * EPS  # of two points, relative to the size of the rows, that may be rounding
    block_entries: int = 4_000_000  # of rows held at a time


@dataclass(frozen=True)
class HardMarginMachine:
    """One machine and the rows it was trained on."""

    rows: Array  # (m,) row numbers in the table
    y: Array  # (m,) ±1
    ridge: Array  # (m,)
    beta: Array  # (m,) coefficients, zero where a row is not a support vector
    intercept: float
    coef: Array | None = None  # (d,) for a linear kernel: the function itself, β only its proof


class HyperplaneValues(NamedTuple):
    """The values of a machine at its rows, and its length."""

    f: Array  # (m,) with the intercept
    error: Array  # (m,) rounding in f
    square: float  # |f|²
    square_error: float  # rounding in it
    feasible: float  # |Σ β x| of feasible coefficients
    feasible_error: float  # rounding in it
    apart: float  # distance of coef from Σ β x, relative


class HardMarginFindings(NamedTuple):
    """What a machine's values prove about it."""

    objective: float
    bound: float
    rounding: float
    lowest: float  # the smallest y f of any row
    lowest_error: float  # rounding in it, if rows are float64
    wrong: float  # the worst coefficient of a wrong sign, as a share of the largest
    unbalanced: float  # |Σ β| / Σ |β|
    apart: float
    margin: float  # 1 / |f|
    margin_error: float  # rounding in it, relative
    slacks: Array  # (m,)
    residuals: Array  # (m,) by how much each row's optimality condition is missed
    kinds: Array  # (m,) NONE or MARGIN of `checkers.svm.kernel`
    soft: bool  # whether there is a ridge


def assess(
    machine: HardMarginMachine,
    X: Any,
    kernel: KernelFunction | None,
    *,
    tuning: HardMarginCheckTuning = HardMarginCheckTuning(),
) -> HardMarginFindings:
    """Find what a machine proves on its rows of X, dense or CSR; without a kernel, by the hyperplane of `coef`."""
    if kernel is None:
        values = _values_by_columns(machine, X, tuning.block_entries)
        return _findings(machine, _feasible_coefficients(machine, np.float64), values)
    return svc.assess_in_enough_digits(_assess_by_kernel, machine, as_plain_kernel(kernel), X, tuning.close)


def _feasible_coefficients(machine: HardMarginMachine, dtype: Any) -> Array:
    """The coefficients (m,), changed as little as y β >= 0 and Σ β = 0 ask for."""
    box = np.full(len(machine.y), np.inf)
    return svc.KernelSvm(machine.rows, machine.y, box, machine.beta, machine.intercept).feasible(dtype)


def _findings(machine: HardMarginMachine, feasible: Array, at: HyperplaneValues) -> HardMarginFindings:
    """What follows from the values of a machine and from its feasible coefficients (m,)."""
    y, beta, ridge = machine.y, machine.beta, machine.ridge
    margins = y * at.f
    total, signed, soft = float(np.abs(beta).sum()), y * beta, float(ridge.max()) > 0
    lowest, slacks, error = float(margins.min()), np.maximum(0.0, 1.0 - margins), float(at.error.max())
    if soft:
        objective = 0.5 * at.square + 0.5 * float((slacks**2 / ridge).sum())
        larger = np.maximum(0.0, 1.0 - margins + at.error)
        rounding = 0.5 * at.square_error + 0.5 * float(((larger - slacks) * (larger + slacks) / ridge).sum())
    else:
        objective = 0.5 * at.square / lowest**2 if lowest > 0 else np.inf
        most = 0.5 * (at.square + at.square_error) / (lowest - error) ** 2 if lowest > error else np.inf
        rounding = most - objective if lowest > 0 else 0.0
    bound, sharp = (
        0.5 * (float(np.abs(feasible).sum()) / max(float(np.sqrt(z**2 + ridge @ feasible**2)), TINY)) ** 2
        for z in (at.feasible + at.feasible_error, at.feasible)
    )
    kinds = np.where(signed <= 0, svc.RowKind.NONE, svc.RowKind.MARGIN).astype(np.int8)
    miss = 1.0 - margins - ridge * signed
    return HardMarginFindings(
        float(objective),
        bound,
        float(rounding) + sharp - bound + 64 * EPS * bound,
        lowest,
        error * EPS / float(np.finfo(at.f.dtype).eps),
        float(np.maximum(-signed, 0.0).max() / np.abs(beta).max(initial=TINY)),
        abs(float(beta.sum())) / total if total > 0 else 0.0,
        at.apart,
        *_margin(at),
        slacks.astype(np.float64),
        np.where(kinds == svc.RowKind.NONE, np.maximum(miss, 0.0), np.abs(miss)).astype(np.float64),
        kinds,
        soft,
    )


def _margin(at: HyperplaneValues) -> tuple[float, float]:
    """1 / |f|, and how much of it may be rounding; where rounding is all there is of |f|², the least it can be."""
    square = at.square if at.square > at.square_error else max(at.square, 0.0) + at.square_error
    return 1.0 / max(float(np.sqrt(square)), TINY), float(at.square_error) / max(float(square), TINY)


def combined_certificate(
    found: Sequence[HardMarginFindings],
    tol: float,
    proved: bool,
    why: str,
    *,
    tuning: HardMarginCheckTuning = HardMarginCheckTuning(),
) -> Certificate:
    """Make one certificate for all machines.

    `proved` says whether the kernel is positive semidefinite, and `why` how so.
    """
    objective, bound = sum(j.objective for j in found), sum(j.bound for j in found)
    rounding = sum(j.rounding for j in found)
    checks = [
        Check("coefficients of the wrong sign, relative", max(j.wrong for j in found), tuning.feasible),
        Check("coefficients out of balance, relative", max(j.unbalanced for j in found), tuning.feasible),
        Check("rounding in the objective, relative", max(j.rounding / j.objective for j in found), tuning.hidden),
        Check(
            "coefficients of columns that are not those of rows, relative",
            max(j.apart for j in found),
            tuning.feasible,
        ),
    ]
    soft, hard = [j for j in found if j.soft], [j for j in found if not j.soft]
    if soft:  # else margins are as far off as the objective
        checks.append(Check("rounding in a margin, relative", max(j.margin_error for j in soft), tuning.lost))
    if hard:
        missed = [(abs(j.lowest - 1.0), max(tuning.scaled, 4 * j.lowest_error)) for j in hard]
        checks.append(Check("smallest y f(x) differs from 1 by", *max(missed, key=lambda m: m[0] - m[1])))
    facts: dict[str, float | str] = {
        "smallest margin": min(j.margin for j in found),
        "largest residual of a row": max(float(j.residuals.max()) for j in found),
        "rows on the margin": float(sum(int((j.kinds == svc.RowKind.MARGIN).sum()) for j in found)),
        "kernel": why,
    }
    limit = tol * objective + 2 * min(rounding, tuning.hidden * objective) if objective < np.inf else rounding
    if proved:
        claim = "half the squared norm, with every row at its margin, within gap of the smallest: no margin is larger"
        if soft:
            claim = "half the squared norm, and slacks as the ridge prices them, within gap of the smallest"
        return Certificate("optimal", claim, objective, bound - rounding, tol, limit, tuple(checks), facts)
    checks.append(Check("complementary slackness", objective - bound, limit))
    claim = "complementary slackness holds row by row; the kernel is not proved positive semidefinite"
    return Certificate("stationary", claim, objective, np.nan, tol, limit, tuple(checks), facts)


class HullWitness(NamedTuple):
    """Convex combinations of the rows of either class that are claimed to be the same point."""

    rows: Array  # (s,) row numbers in the table
    sign: Array  # (s,) 1 for rows of the first class, -1 for those of the second
    share: Array  # (s,)


def meeting_certificate(
    witness: HullWitness,
    X: Any,
    members: Array,
    kernel: KernelFunction | None,
    names: Array,
    *,
    tuning: HardMarginCheckTuning = HardMarginCheckTuning(),
) -> Certificate:
    """Make the certificate that two hulls meet.

    `members` are the rows of both classes, whose size says how large rounding is; `names` what the rows of X are
    called. The certificate's witness is the names and shares of the first class, then those of the second.
    """
    rows, sign, share = witness
    same = len(rows) == 2 and bool((abs(X[rows[0]] - X[rows[1]])).max() == 0)
    if same:
        name, distance, proved = "distance of the two rows", 0.0, True
    elif kernel is None:
        V, size = _about_centre(X, rows, members, tuning.block_entries)
        z = (sign * share) @ V
        name = "distance of the two points, relative to the size of the rows"
        distance = float(np.linalg.norm(z)) / size
        proved = _proves_overlap(sign, share, V / size, distance)
    else:
        K = kernel(dense(X[rows]), dense(X[rows]))
        name = "squared distance of the two points, relative to the size of the rows"
        size = float(K.diagonal().max())
        if not size > 0:
            raise DataError(
                got="rows whose kernel values are all 0, as squares of tiny numbers are",
                wanted="values that differ",
                fix="Rescale the columns, for instance to unit variance.",
            )
        distance = float((sign * share) @ K @ (sign * share)) / size
        proved = False
    sums = [float(share[sign == side].sum()) for side in (1.0, -1.0)]
    return Certificate(
        "impossible",
        (HullClaim.MEET if proved else HullClaim.TOUCH).value,
        checks=(
            Check(name, distance, tuning.distance),
            Check("shares below zero", max(0.0, -float(share.min())), 0.0),
            Check("sums of shares differ from 1 by", max(abs(s - 1.0) for s in sums), tuning.distance),
        ),
        witness=tuple(
            tuple(float(v) for v in part[sign == side]) for side in (1.0, -1.0) for part in (names[rows], share)
        ),
    )


def _proves_overlap(sign: Array, share: Array, V: Array, distance: float) -> bool:
    """Whether there are proved to be exact shares, near those given, that make the two points equal.

    Moving the shares by δ moves (p - q, Σ share of either class) by A δ. If A has full row rank, a δ no longer than
    (distance + rounding) / (smallest singular value) closes the distance, and no share falls below zero on the way.
    """
    A = np.vstack([(sign[:, None] * V).T, sign > 0, sign < 0])  # (d + 2, s)
    if A.shape[1] < A.shape[0]:
        return False
    smallest = float(np.linalg.svd(A, compute_uv=False)[-1]) - EPS * A.size
    return smallest > 0 and float(share.min()) * smallest > distance + EPS * A.size


def _about_centre(X: Any, rows: Array, members: Array, block_entries: int) -> tuple[Array, float]:
    """These rows (s, d) about their mean, and the length of the longest row of all members about it."""
    V = dense(X[rows])
    centre = V.mean(axis=0)
    size = max(float(np.linalg.norm(part - centre, axis=1).max()) for part in _row_blocks(X, members, block_entries))
    return V - centre, size if size > 0 else 1.0


def _row_blocks(X: Any, rows: Array, entries: int) -> Iterator[Array]:
    """These rows of X, dense, so many entries at a time."""
    step = max(1, entries // X.shape[1])
    return (dense(X[rows[i : i + step]]) for i in range(0, len(rows), step))


def _values_by_columns(machine: HardMarginMachine, X: Any, block_entries: int) -> HyperplaneValues:
    """The values of the hyperplane of `coef`."""
    assert machine.coef is not None
    feasible = _feasible_coefficients(machine, np.float64)
    support = np.flatnonzero((machine.beta != 0) | (feasible != 0))
    V = dense(X[machine.rows[support]])
    centre = V.mean(axis=0) if len(V) else np.zeros(X.shape[1])
    V = V - centre
    coef, z = machine.coef, feasible[support] @ V
    own = machine.beta[support] @ V + machine.beta.sum() * centre
    offset = machine.intercept + float(coef @ centre)
    scale = abs(machine.intercept) + float(np.abs(coef) @ np.abs(centre))
    f, error = [], []
    for block in _row_blocks(X, machine.rows, block_entries):
        part = block - centre
        f.append(part @ coef + offset)
        error.append(8 * EPS * (np.abs(part) @ np.abs(coef) + scale))
    feasible_error = 8 * EPS * float(np.linalg.norm(np.abs(feasible[support]) @ np.abs(V)))
    size = float(np.linalg.norm(coef))
    apart = max(0.0, float(np.linalg.norm(coef - own)) - feasible_error)
    return HyperplaneValues(
        np.concatenate(f),
        np.concatenate(error),
        size**2,
        8 * EPS * size**2,
        float(np.linalg.norm(z)),
        feasible_error,
        apart / max(size, TINY),
    )


def _assess_by_kernel(machine: HardMarginMachine, kernel: PlainKernel, X: Any, dtype: Any) -> HardMarginFindings:
    """Findings from kernel values of this float type."""
    beta = _feasible_coefficients(machine, dtype)
    seen = kernel_values.MachineValues.of(
        kernel, X, machine.rows, machine.rows, np.column_stack([machine.beta, beta]), dtype
    )
    (intercept,), error = seen.intercept(kernel, machine.intercept)
    square = max(0.0, float(beta @ seen.f[:, 1]))
    feasible_error = float(np.sqrt(square + float(np.abs(beta) @ seen.error)) - np.sqrt(square))
    own, own_error = float(machine.beta @ seen.f[:, 0]), float(np.abs(machine.beta) @ seen.error)
    at = HyperplaneValues(seen.f[:, 0] + intercept, error, own, own_error, np.sqrt(square), feasible_error, 0.0)
    return _findings(machine, beta.astype(np.float64), at)
