"""What machines claim once they are trained, recomputed from their rows by the checker's own kernels.

Training keeps the values of all rows up to date round by round, from kernel values that may be float32 or may have
lost digits: good enough to stop by, and not to make claims by. Where a machine has many rows and modest coefficients
(or too many kernel values), its values are recomputed at a sample of the rows, and at all only if that shows a
difference that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.plain import kernels as plain_kernels
from certifit.checkers.svm import joint_kernel
from certifit.checkers.svm import kernel as svc
from certifit.rows import Array
from certifit.svm.kernel import kernels as svm_kernels
from certifit.svm.kernel.gram import evaluate
from certifit.svm.kernel.training import LOOSE, MODEST, PRECISE, Trained, Training

SAMPLE, SURE = 512, 4.0  # rows of a machine with many; standard errors that their mean is taken to be off
VALUES = 50_000_000  # kernel values that are computed again, whatever the coefficients
SLIGHT = 1e-2  # of the tolerance: what rounding may take of it
TRIFLE = 1e-9  # largest slack that may be rounding alone

Machine = svc.Machine | joint_kernel.Machine
PLAIN: dict[type, Callable[[Any], plain_kernels.Plain]] = {
    svm_kernels.Linear: lambda k: plain_kernels.Linear(),
    svm_kernels.LinearFrom: lambda k: plain_kernels.Linear(k.origin),
    svm_kernels.RBF: lambda k: plain_kernels.Radial(k.gamma),
    svm_kernels.Polynomial: lambda k: plain_kernels.Polynomial(k.degree, k.gamma, k.coef0),
    svm_kernels.Sigmoid: lambda k: plain_kernels.Sigmoid(k.gamma, k.coef0),
}


def rechecked(data: Training, machines: Sequence[Machine], trained: Trained, tol: float) -> Trained:
    """With what is true of these machines, whose coefficients and intercepts are those that were trained."""
    X, kernel = plain_of(data)
    objective = trained.certificate.objective
    if all(_many(machine, tol) for machine in machines):
        off = sum(_off(kernel, X, machine, trained.slacks[:, i]) for i, machine in enumerate(machines))
        if off <= SLIGHT * tol * objective:
            return trained
    checker: Any = joint_kernel if isinstance(machines[0], joint_kernel.Machine) else svc
    certify = partial(checker.certify, kernel=kernel, X=X, tol=tol, proved=data.proved, why=data.why)
    certificate, judged = certify(machines)
    if not certificate.holds:
        nudged = [_nudged(machine, found.slacks) for machine, found in zip(machines, judged, strict=True)]
        if any(new is not old for new, old in zip(nudged, machines, strict=True)):
            other, others = certify(nudged)
            if other.gap < certificate.gap:
                machines, certificate, judged = nudged, other, others
    return replace(_gathered(trained, machines, judged), certificate=certificate)


def _nudged(machine: Any, slacks: Array) -> Any:
    """A last bit larger, where rows miss their margin by rounding alone: next to a small |f|² that may cost a lot."""
    trifle = float(slacks[slacks <= TRIFLE].max(initial=0.0))
    scale = 1.0 + 2.0 * trifle + 4 * svc.EPS
    return replace(machine, beta=scale * machine.beta, intercept=scale * machine.intercept) if trifle > 0 else machine


def _gathered(trained: Trained, machines: Sequence[Machine], judged: Sequence[svc.Judged]) -> Trained:
    beta, intercept = np.zeros_like(trained.beta), np.zeros_like(trained.intercept)
    slacks, residuals, kinds = (np.zeros_like(a) for a in (trained.slacks, trained.residuals, trained.kinds))
    for i, (machine, found) in enumerate(zip(machines, judged, strict=True)):
        rows, own = machine.rows, slice(i, i + 1) if machine.beta.ndim == 1 else slice(None)
        beta[rows, own], intercept[own] = machine.beta.reshape(len(rows), -1), machine.intercept
        slacks[rows, i], residuals[rows, i], kinds[rows, i] = found.slacks, found.residuals, found.kinds
    return replace(trained, beta=beta, intercept=intercept, slacks=slacks, residuals=residuals, kinds=kinds)


def plain_of(data: Training) -> tuple[Any, plain_kernels.Plain]:
    """Rows, and the kernel as the checker computes it; for a kernel matrix, numbers of rows."""
    if data.kernel is None:
        return np.arange(len(data.y))[:, None], plain_kernels.Given(data.X)
    known = PLAIN.get(type(data.kernel))
    return data.X, known(data.kernel) if known else plain_kernels.Foreign(partial(evaluate, data.kernel))


def _many(machine: Machine, tol: float) -> bool:
    rows, modest = len(machine.rows), tol >= LOOSE and bool(machine.C.max() <= MODEST)
    return rows > PRECISE and (modest or rows * int(_support(machine).sum()) > VALUES)


def _support(machine: Machine) -> Array:
    return np.asarray(machine.beta.reshape(len(machine.rows), -1).any(axis=1))


def _off(kernel: plain_kernels.Plain, X: Any, machine: Machine, slacks: Array) -> float:
    """How far the objective is off, to the best knowledge of a sample of the rows that have losses."""
    slacks = slacks[machine.rows]
    lossy = np.flatnonzero(slacks > 0)
    if not len(lossy):
        return np.inf
    sample = lossy[np.linspace(0, len(lossy) - 1, min(len(lossy), SAMPLE)).astype(np.int64)]
    errors = machine.losses(kernel, X, sample) - slacks[sample]
    most = float(np.abs(errors.mean()) + SURE * errors.std() / np.sqrt(len(sample)))
    return most * float(machine.C[(slacks > 0) | _support(machine)].sum() + np.abs(machine.beta).sum() / 2)
