"""What trained machines claim, recomputed from their rows by the checker's own kernels.

Training keeps the values of all rows up to date round by round, from kernel values that may be float32 or may have
lost digits: good enough to decide when to stop, but not to make claims.

| machines | what is recomputed |
|---|---|
| few rows, large C or a small tolerance | all values, by `checkers.svm.kernel.certify` |
| many rows and values that may be float32, or too many kernel values | the losses of a sample of rows |
| the same, if the sample shows a difference that matters | all values |
| any, if all values recomputed prove too little | all values once more, of coefficients a last bit larger |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.plain import kernels as plain_kernels
from certifit.checkers.plain.kernels import PlainKernel
from certifit.checkers.svm import joint_kernel
from certifit.checkers.svm import kernel as svm
from certifit.rows import Array
from certifit.svm.kernel import kernels
from certifit.svm.kernel.expansion import evaluate
from certifit.svm.kernel.training import KernelMachineTuning, RecheckTuning, TrainedMachines, TrainingRows

AnyMachine = svm.KernelSvm | joint_kernel.JointKernelSvm
PLAIN_TWINS: dict[type, Callable[[Any], PlainKernel]] = {
    kernels.Linear: lambda k: plain_kernels.PlainLinear(),
    kernels.CentredLinear: lambda k: plain_kernels.PlainLinear(k.origin),
    kernels.RBF: lambda k: plain_kernels.PlainRadial(k.gamma),
    kernels.Polynomial: lambda k: plain_kernels.PlainPolynomial(k.degree, k.gamma, k.coef0),
    kernels.Sigmoid: lambda k: plain_kernels.PlainSigmoid(k.gamma, k.coef0),
}


def recheck(
    data: TrainingRows,
    machines: Sequence[AnyMachine],
    trained: TrainedMachines,
    tol: float,
    tuning: KernelMachineTuning,
) -> TrainedMachines:
    """Replace what training believes of these machines, trained as `trained` says, by what the checker finds."""
    X, kernel = plain_of(data)
    objective, allowed = trained.certificate.objective, tuning.recheck
    if all(_sample_will_do(machine, tol, tuning) for machine in machines):
        off = sum(
            _objective_error(kernel, X, machine, trained.slacks[:, i], allowed) for i, machine in enumerate(machines)
        )
        if off <= allowed.rounding_share * tol * objective:
            return trained
    checker: Any = joint_kernel if isinstance(machines[0], joint_kernel.JointKernelSvm) else svm
    certify = partial(checker.certify, problem=svm.KernelProblem(X, kernel, data.proved, data.why), tol=tol)
    certificate, findings = certify(machines)
    if not certificate.holds:
        larger = [
            _slightly_larger(machine, found.slacks, allowed)
            for machine, found in zip(machines, findings, strict=True)
        ]
        if any(new is not old for new, old in zip(larger, machines, strict=True)):
            other, others = certify(larger)
            if other.gap < certificate.gap:
                machines, certificate, findings = larger, other, others
    return replace(_gather(trained, machines, findings), certificate=certificate)


def _slightly_larger(machine: Any, slacks: Array, tuning: RecheckTuning) -> Any:
    """The machine a last bit larger, if rows miss their margin by rounding alone.

    Next to a small |f|² and with a large C, losses that rounding makes may cost a lot.
    """
    rounding = float(slacks[slacks <= tuning.rounding_slack].max(initial=0.0))
    scale = 1.0 + 2.0 * rounding + 4 * svm.EPS
    if not rounding > 0:
        return machine
    return replace(machine, beta=scale * machine.beta, intercept=scale * machine.intercept)


def _gather(
    trained: TrainedMachines, machines: Sequence[AnyMachine], findings: Sequence[svm.SvmFindings]
) -> TrainedMachines:
    beta, intercept = np.zeros_like(trained.beta), np.zeros_like(trained.intercept)
    slacks, residuals, kinds = (np.zeros_like(a) for a in (trained.slacks, trained.residuals, trained.kinds))
    for i, (machine, found) in enumerate(zip(machines, findings, strict=True)):
        rows, own = machine.rows, slice(i, i + 1) if machine.beta.ndim == 1 else slice(None)
        beta[rows, own], intercept[own] = machine.beta.reshape(len(rows), -1), machine.intercept
        slacks[rows, i], residuals[rows, i], kinds[rows, i] = found.slacks, found.residuals, found.kinds
    return replace(trained, beta=beta, intercept=intercept, slacks=slacks, residuals=residuals, kinds=kinds)


def plain_of(data: TrainingRows) -> tuple[Any, PlainKernel]:
    """Rows, and the kernel as the checker computes it; for a kernel matrix, numbers of rows."""
    if data.kernel is None:
        return np.arange(len(data.y))[:, None], plain_kernels.GivenKernel(data.X)
    twin = PLAIN_TWINS.get(type(data.kernel))
    return data.X, twin(data.kernel) if twin else plain_kernels.ForeignKernel(partial(evaluate, data.kernel))


def _sample_will_do(machine: AnyMachine, tol: float, tuning: KernelMachineTuning) -> bool:
    """Whether there are many rows, and float32 makes little difference or all values are too many."""
    rows = len(machine.rows)
    many_values = rows * int(_support(machine).sum()) > tuning.recheck.most_values
    return rows > tuning.single_from and (tuning.tolerates_single(machine.C, tol) or many_values)


def _support(machine: AnyMachine) -> Array:
    """Which rows are support vectors (m,)."""
    return np.asarray(machine.beta.reshape(len(machine.rows), -1).any(axis=1))


def _objective_error(kernel: PlainKernel, X: Any, machine: AnyMachine, slacks: Array, tuning: RecheckTuning) -> float:
    """How far the objective is off, to the best knowledge of a sample of the rows with losses."""
    slacks = slacks[machine.rows]
    lossy = np.flatnonzero(slacks > 0)
    if not len(lossy):
        return np.inf
    sample = lossy[np.linspace(0, len(lossy) - 1, min(len(lossy), tuning.sampled_rows)).astype(np.int64)]
    errors = machine.losses(kernel, X, sample) - slacks[sample]
    most = float(np.abs(errors.mean()) + tuning.standard_errors * errors.std() / np.sqrt(len(sample)))
    return most * float(machine.C[(slacks > 0) | _support(machine)].sum() + np.abs(machine.beta).sum() / 2)
