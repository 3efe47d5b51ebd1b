"""Fitted SVC and SVR, ours or others', as the problem they claim to have solved.

| step | function |
|---|---|
| coefficients `dual_coef_` of a model, as machines on their rows | `_two_sided_machines`, `_joint_machine` |
| its kernel in plain NumPy, and whether it is one | `_kernel_problem`, `checkers.svm.kernel_adapter` |
| objective, bound and rows of all machines | `checkers.svm.kernel`, `checkers.svm.joint_kernel` |
| everything else that the model keeps: support vectors, slacks, kinds of rows, probabilities | the checks below |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, setting
from certifit.checkers.kernel_approximation.kernel_error import row_difference, same
from certifit.checkers.plain.best_intercepts import middle_of_quantile
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.plain.kernels import GivenKernel, PlainLinear, as_plain_kernel
from certifit.checkers.problem import Problem
from certifit.checkers.svm import joint_kernel, kernel, one_class
from certifit.checkers.svm.joint_kernel import JointKernelSvm
from certifit.checkers.svm.kernel import KernelProblem, KernelSvm, NuClassMachine, NuTubeMachine, SvmCheckTuning
from certifit.checkers.svm.kernel_adapter import PROVED, GramCheckTuning, kernel_of, semidefinite_on
from certifit.checkers.svm.probability_adapter import ProbabilityClaim, with_probabilities
from certifit.core import Certificate, Check, Estimator, Setting, rounding_within
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, class_weight_vector, encode_labels


@dataclass(frozen=True)
class SvmAuditTuning:
    """What the auditor of a kernel machine allows, and how much of it it looks at."""

    close: float = 1e-5  # relative: numbers of rows may come from kernel values in float32
    same: float = 1e-8  # relative: values of float64 rows
    exact_rows: int = 2000  # rows up to which fits of ours compute kernel values in float64
    check: SvmCheckTuning = field(default_factory=SvmCheckTuning)
    gram: GramCheckTuning = field(default_factory=GramCheckTuning)


class FittedSvm(NamedTuple):
    """A fitted model and the rows it was fitted on."""

    model: Any
    data: ArrayRows
    support: Array  # (s,) row numbers of its support vectors
    box: Array  # (n,) C times the weight of each row: the largest size of its coefficients
    machines: list[Any]  # KernelSvm, or one JointKernelSvm

    @property
    def precomputed(self) -> bool:
        return isinstance(self.model.kernel, str) and self.model.kernel == "precomputed"


def audit_svc(
    model: Any, X: Any, y: Any, sample_weight: Any, tol: float, *, tuning: SvmAuditTuning = SvmAuditTuning()
) -> Certificate:
    """SVC: a machine for each pair of classes, in scikit-learn's layout, for each class, or for all of them."""
    rows = fitted_rows(model, table_width(model), X, y, counted(sample_weight), "classes")
    classes = np.asarray(model.classes_)
    labels = encode_labels(rows, classes)
    data = labels.rows.load()
    code, k = np.asarray(data.y), len(classes)
    # scikit-learn's balance counts every row alike
    total = labels.weight if isinstance(model, Estimator) else np.bincount(code, minlength=k)
    factor = class_weight_vector(classes, total, getattr(model, "class_weight", None))
    weight = data.w * factor[code]
    nu = _nu(model)
    box = (_price(model) if nu is None else 1.0) * weight
    support, intercepts = support_rows(model, data), numbers(model, "intercept_").ravel()
    exact_shape(model, "intercept_", intercepts.shape)
    scheme = str(getattr(model, "multi_class", "ovo"))
    scheme = "ovo" if scheme == "ovr" and k == 2 else scheme
    coef = _checked_coefficients(model, len(support), len(intercepts), (k, scheme))
    make = partial(_machines, scheme, k, code)
    make = make if nu is None else partial(_nu_machines, make, nu)
    machines = make(coef, support, box, intercepts)
    more = [class_order_check(model, code[support], k), *_no_loss_checks(model, support, coef.T, box)]
    if hasattr(model, "class_weight_"):
        more.append(same("weights of classes differ from their meaning", numbers(model, "class_weight_"), factor))
    fitted = FittedSvm(model, data, support, box, machines)
    problem, checks = _kernel_problem(fitted, tuning)
    found = _certificate(fitted, problem, tol, [*checks, *more], tuning)
    if not hasattr(model, "probability_slopes_"):
        return found
    values = partial(_values, machines, problem)
    parts = _parts_left_out(fitted, problem, make, code, tol, tuning)
    claim = ProbabilityClaim(model, X, code, weight, scheme == "ovo", values)
    return with_probabilities(replace(found, checks=(*found.checks, *parts)), claim)


def counted(sample_weight: Any) -> Any:
    """Weights in memory with 0 in the place of negative ones: kernel machines leave such rows out, as LIBSVM does."""
    if not isinstance(sample_weight, list | tuple | np.ndarray):
        return sample_weight
    w = np.asarray(sample_weight)
    mixed = w.dtype.kind in "if" and (w < 0).any() and (w > 0).any()
    return np.maximum(w, 0) if mixed else sample_weight


def _price(model: Any) -> float:
    return kernel.price(float(setting(model, "C", Setting(float, above=0))))


def _no_loss_checks(model: Any, support: Array, coef: Array, box: Array) -> list[Check]:
    """Of C=inf, by what the model itself states."""
    return [] if _nu(model) is not None else kernel.no_loss_checks(float(model.C), coef, box[support])


def _nu(model: Any) -> float | None:
    """The setting nu of a machine that has one; scikit-learn's others carry one of no use."""
    if not type(model).__name__.startswith(("Nu", "OneClass")):
        return None
    return float(setting(model, "nu", Setting(float, above=0, most=1)))


def _nu_machines(make: Callable[..., list[Any]], nu: float, *data: Any) -> list[Any]:
    """Machines of nu as machines of C: they are divided by their margin, which their coefficients and nu give.

    With C = weight / margin and Σ |β| = nu Σ C, the gap of the problem of nu is margin² times that of the one of C.
    """
    out = []
    for m in make(*data):
        own, weight = min(nu, kernel.largest_nu(m.y, m.C)), float(m.C.sum())
        share = float(np.abs(m.beta).sum()) / (own * weight)
        out.append(NuClassMachine(m.rows, m.y, share * m.C, m.beta, m.intercept, None, own, weight))
    return out


def audit_one_class(
    model: Any, X: Any, _y: Any, sample_weight: Any, tol: float, *, tuning: SvmAuditTuning = SvmAuditTuning()
) -> Certificate:
    """OneClassSVM: one machine and its level."""
    data = fitted_rows(model, table_width(model), X, None, counted(sample_weight), "none").load()
    support, beta, nu = support_rows(model, data), np.zeros(data.n_rows), _nu(model)
    assert nu is not None
    coef = numbers(model, "dual_coef_")
    if coef.shape != (1, len(support)):
        raise DataError(got=f"dual_coef_ of shape {coef.shape}", wanted=f"(1, {len(support)})")
    beta[support] = coef[0]
    member = np.flatnonzero(data.w > 0)
    intercept = float(exact_shape(model, "intercept_", (1,)).ravel()[0])
    machine = one_class.OneClassMachine(member, data.w[member], beta[member], intercept, nu)
    fitted = FittedSvm(model, data, support, data.w, [machine])
    problem, checks = _kernel_problem(fitted, tuning)
    found, findings = one_class.certify(machine, problem, tol, tuning.check)
    order = class_order_check(model, np.zeros_like(support), 1)
    more = [*checks, order, *_kept_checks(fitted, problem, [findings], tuning)]
    if not isinstance(model, Estimator):
        level = Check("offset_ is not minus the intercept, by", abs(float(model.offset_[0]) + intercept), 1e-9)
        more.append(level)
    return replace(found, checks=(*found.checks, *more))


def audit_svr(
    model: Any, X: Any, y: Any, sample_weight: Any, tol: float, *, tuning: SvmAuditTuning = SvmAuditTuning()
) -> Certificate:
    """SVR: one machine for numbers."""
    rows = fitted_rows(model, table_width(model), X, y, counted(sample_weight), "numbers")
    data = rows.load()
    box, nu = _price(model) * data.w, _nu(model)
    epsilon = 0.0 if nu is not None else float(setting(model, "epsilon", Setting(float, least=0, below=np.inf)))
    support, beta = support_rows(model, data), np.zeros(data.n_rows)
    coef = numbers(model, "dual_coef_")
    if coef.shape != (1, len(support)):
        raise DataError(got=f"dual_coef_ of shape {coef.shape}", wanted=f"(1, {len(support)})")
    beta[support] = coef[0]
    member = np.flatnonzero(box > 0)
    intercept = float(exact_shape(model, "intercept_", (1,)).ravel()[0])
    target = np.asarray(data.y)[member]
    machine = KernelSvm(member, target, box[member], beta[member], intercept, epsilon)
    fitted = FittedSvm(model, data, support, box, [machine])
    problem, checks = _kernel_problem(fitted, tuning)
    order = class_order_check(model, np.zeros_like(support), 1)
    checks = [*checks, *_no_loss_checks(model, support, coef.T, box)]
    if nu is not None:
        machine, more = _with_tube(machine, nu, problem, model)
        fitted, checks = fitted._replace(machines=[machine]), [*checks, *more]
    return _certificate(fitted, problem, tol, [*checks, order], tuning)


def _with_tube(machine: KernelSvm, nu: float, problem: KernelProblem, model: Any) -> tuple[KernelSvm, list[Check]]:
    """A machine of nu with its tube, or the best where it states none, and whether that is the best.

    Whether Σ |β| is what nu asks for needs no check of its own: what is missing costs its share of the tube in the
    gap (see `NuTubeMachine`), and what is too much its share of the bound.
    """
    values, error = machine.values_and_errors(as_plain_kernel(problem.kernel), problem.table, machine.rows)
    values = values[:, 0]
    epsilon = max(0.0, -middle_of_quantile(-np.abs(machine.y - values), machine.C, nu * float(machine.C.sum())))
    checks, moved = [], 0.0
    if isinstance(model, Estimator):
        stated = float(numbers(model, "epsilon_"))
        moved = abs(stated - epsilon)
        size = max(epsilon, float(np.ptp(machine.y)), 1e-300)
        # The tube is a quantile of the residuals, which both fit and audit know up to their rounding.
        rounded = rounding_within(2 * float(error.max(initial=0.0)) / size, 1.0, 0.01)
        checks.append(Check("tube differs from the best one by, relative", moved / size, 1e-5 + rounded))
        # Any tube has an objective. Next to a heavy row the last digit of this one is worth as much as other rows.
        epsilon = max(0.0, stated)
    m = machine
    return NuTubeMachine(m.rows, m.y, m.C, m.beta, m.intercept, epsilon, nu, moved), checks


def machine_problem(model: Any) -> Problem:
    """What a fitted machine minimises: equal for two machines if a bound proved for one holds for the other."""
    nu, weights = _nu(model), getattr(model, "class_weight", None)
    loss = "hinge loss" if nu is None else f"hinge loss of {type(model).__name__}, nu={nu!r}"
    # scikit-learn's classifiers carry an epsilon of no use, and its NuSVR one that is found by the fit
    if hasattr(model, "classes_"):
        loss += f", classes {model.classes_.tolist()}, multi_class={getattr(model, 'multi_class', 'ovo')!r}"
    elif nu is None:
        loss += f", epsilon={model.epsilon!r}"
    return Problem(
        loss,
        f"l2, C={getattr(model, 'C', 1.0)!r}",
        weights="none" if weights is None else f"class_weight={weights!r}",
        further=_kernel_in_words(model) + ", projected" * hasattr(model, "expansion_coef_"),
    )


def _kernel_in_words(model: Any) -> str:
    """A kernel's name with the settings that it has: those of other kernels make no difference."""
    kernel = model.kernel if isinstance(model.kernel, str) else None
    settings = {"linear": (), "precomputed": (), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
    named = settings.get(kernel or "", ("gamma", "degree", "coef0"))
    return ", ".join([f"kernel={model.kernel!r}", *(f"{name}={getattr(model, name, None)!r}" for name in named)])


# ------------------------------------------------------------------------------------ coefficients of each machine
MachineCoefficients = Iterator[tuple[int, Sequence[int], Array]]  # class of y = +1, classes of -1, coefficients (s,)


def pair_coefficients(coef: Array, kinds: Array, k: int) -> MachineCoefficients:
    """A machine for each pair of classes, from LIBSVM's layout (k - 1, s), for support vectors of classes (s,)."""
    for first, second in [(1, 0)] if k == 2 else combinations(range(k), 2):
        beta = np.zeros(len(kinds))
        for own, other in ((first, second), (second, first)):
            here = kinds == own
            beta[here] = coef[0 if k == 2 else other - (other > own), here]
        yield first, [second], beta


def _rest_coefficients(coef: Array, _kinds: Array, k: int) -> MachineCoefficients:
    """A machine for each class against all others."""
    for first in range(k):
        yield first, [c for c in range(k) if c != first], coef[first]


def _checked_coefficients(model: Any, s: int, machines: int, scheme: tuple[int, str]) -> Array:
    """`dual_coef_`, refused where it does not have a column for each support vector, or machines are missing."""
    k, name = scheme
    wanted = (k - 1 if name == "ovo" else k, s)
    coef = numbers(model, "dual_coef_")
    needed = k * (k - 1) // 2 if name == "ovo" else k
    if coef.shape != wanted or machines != needed:
        raise DataError(
            got=f"dual_coef_ of shape {coef.shape} and {machines} intercepts, for {k} classes with '{name}'",
            wanted=f"shape {wanted} for {s} support vectors, and {needed} intercepts",
            fix="Leave its settings and attributes as the fit left them.",
        )
    return coef


def _machines(
    scheme: str, k: int, code: Array, coef: Array, support: Array, box: Array, intercepts: Array
) -> list[Any]:
    """The machines of k classes with coefficients in the layout of `dual_coef_`, on the rows whose box is above 0."""
    if scheme in joint_kernel.LIMITS:
        return [_joint_machine(scheme, coef, support, code, box, intercepts)]
    coefficients = {"ovo": pair_coefficients, "ovr": _rest_coefficients}[scheme]
    return _two_sided_machines(coefficients(coef, code[support], k), support, code, box, intercepts)


def _two_sided_machines(
    coefficients: MachineCoefficients, support: Array, code: Array, box: Array, intercepts: Array
) -> list[KernelSvm]:
    machines = []
    for i, (first, others, found) in enumerate(coefficients):
        beta = np.zeros(len(code))
        beta[support] = found
        member = np.flatnonzero(np.isin(code, [first, *others]) & (box > 0))
        sign = np.where(code[member] == first, 1.0, -1.0)
        machines.append(KernelSvm(member, sign, box[member], beta[member], float(intercepts[i])))
    return machines


def _joint_machine(
    loss: str, coef: Array, support: Array, code: Array, box: Array, intercepts: Array
) -> JointKernelSvm:
    beta, member = np.zeros((len(code), len(coef))), np.flatnonzero(box > 0)
    beta[support] = coef.T
    return JointKernelSvm(member, code[member], box[member], beta[member], intercepts, loss)


# -------------------------------------------------------------------------------------------- the kernel of a model
def _kernel_problem(fitted: FittedSvm, tuning: SvmAuditTuning) -> tuple[KernelProblem, list[Check]]:
    """The rows and the kernel of a model, and whether they are what it says they are."""
    model, data, X, box = fitted.model, fitted.data, fitted.data.X, fitted.box
    plain, meant = kernel_of(model, data)
    checks = list(meant)
    numbered = np.arange(data.n_rows)[:, None]
    table = numbered if fitted.precomputed else X
    if hasattr(model, "expansion_coef_"):
        used = np.flatnonzero(box > 0)
        G = np.zeros((data.n_rows, data.n_rows))
        G[np.ix_(used, used)], onto = _projected(plain(dense(table[used]), dense(table[used])))
        checks += _projection_checks(fitted, used, onto)
        return KernelProblem(numbered, GivenKernel(G), True, "projected: eigenvalues below 0 became 0"), checks
    balanced = not isinstance(fitted.machines[0], one_class.OneClassMachine)  # coefficients of sum 0
    if isinstance(plain, PlainLinear) and balanced and not sparse.issparse(X):
        middle = dense(X[box > 0]).mean(axis=0)  # a row without weight may lie anywhere
        return KernelProblem(X, PlainLinear(middle), True, PROVED), checks
    proved, why = (True, PROVED) if plain.valid else semidefinite_on(plain, table, box > 0, tuning.gram)
    return KernelProblem(table, plain, proved, why), checks


def _projected(G: Array) -> tuple[Array, Array]:
    """A kernel matrix without its negative part, and the projection onto what is left."""
    values, vectors = np.linalg.eigh((G + G.T) / 2)
    kept = values > 1e-8 * np.abs(values).max()  # as far as rounding lets vectors be known
    return (vectors[:, kept] * values[kept]) @ vectors[:, kept].T, vectors[:, kept] @ vectors[:, kept].T


def _projection_checks(fitted: FittedSvm, used: Array, onto: Array) -> list[Check]:
    """Whether a model with a projected kernel predicts by the machines that were certified."""
    model, X, machines = fitted.model, fitted.data.X, fitted.machines
    columns = [np.zeros((X.shape[0], *machine.beta.shape[1:])) for machine in machines]
    for column, machine in zip(columns, machines, strict=True):
        column[machine.rows] = machine.beta
    expected = onto @ np.column_stack(columns)[used]
    rows, size = (used if fitted.precomputed else dense(X[used])), float(np.abs(expected).max()) or 1.0
    off = np.abs(numbers(model, "expansion_coef_") - expected).max() / size
    moved = np.abs(dense(model.expansion_) - rows).max() if np.shape(model.expansion_) == rows.shape else np.inf
    return [
        Check("coefficients of the projection off by, relative", float(off), 1e-4),
        Check("rows of the projection differ from those given", float(moved), 0.0),
    ]


# ------------------------------------------------------------------------------------------------- rows left out
def _parts_left_out(
    fitted: FittedSvm,
    problem: KernelProblem,
    machines_of: Callable[..., list[Any]],
    code: Array,
    tol: float,
    tuning: SvmAuditTuning,
) -> list[Check]:
    """Whether `held_out_values_` are those of machines that are optimal for the rows of all other parts.

    The machines of each part are certified like the model's own, on the rows that they may have seen.
    """
    model, box = fitted.model, fitted.box
    if not hasattr(model, "held_out_dual_coef_"):
        raise DataError(
            got=f"a {type(model).__name__} without the machines behind its held_out_values_",
            wanted="held_out_dual_coef_ and what belongs to it",
            fix="Fit it again: models of older versions do not keep them.",
        )
    part, claimed = np.asarray(model.held_out_part_), numbers(model, "held_out_values_")
    b = numbers(model, "held_out_intercept_")
    expected, failed, names = np.zeros_like(claimed), 0, np.unique(part[(part >= 0) & (box > 0)])
    kept = list(zip(names, model.held_out_support_, model.held_out_dual_coef_, b, strict=True))
    for name, support, coef, intercepts in kept:
        support = check_row_numbers(model, np.asarray(support), len(part))
        machines = machines_of(np.asarray(coef, np.float64), support, np.where(part == name, 0.0, box), intercepts)
        strangers = np.isin(support, np.flatnonzero((part == name) | (box <= 0))).any()
        joint = isinstance(machines[0], JointKernelSvm)
        found, _ = (joint_kernel.certify if joint else kernel.certify)(machines, problem, tol, tuning.check)
        failed += bool(strangers or not found.holds)
        held = np.flatnonzero((part == name) & (box > 0))
        expected[held] = _values(machines, problem, held)
    close = tuning.same if fitted.data.dtype == np.float64 else tuning.close
    size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return [
        Check("parts left out whose machines are not within tolerance", float(failed), 0.0),
        Check("values of rows left out differ by, relative", float(np.abs(claimed - expected).max() / size), close),
        Check("rows in the wrong part", float(_misplaced(fitted, part, code)), 0.0),
    ]


def _misplaced(fitted: FittedSvm, part: Array, code: Array) -> int:
    """How many rows with weight are never left out, or have an equal row of their class in another part.

    Rows that are all there is of a class are in no part: without them there would be no such class.
    """
    used = np.flatnonzero(fitted.box > 0)
    seen: dict[tuple[int, bytes], int] = {}
    distinct, wrong = np.zeros(int(code.max()) + 1, np.int64), 0
    for i in used:
        row = dense(fitted.data.X[i : i + 1])[0]
        key = int(code[i]), ((row[used] if fitted.precomputed else row) + 0.0).tobytes()
        distinct[code[i]] += key not in seen
        wrong += seen.setdefault(key, int(part[i])) != part[i]
    alone = distinct[code[used]] == 1
    return wrong + int((alone != (part[used] == -1)).sum())


# -------------------------------------------------------------------------------------------------- certificates
def _values(machines: list[Any], problem: KernelProblem, rows: Array) -> Array:
    """(m, machines) at these rows."""
    return np.hstack([machine.values(problem.kernel, problem.table, rows) for machine in machines])


def _certificate(
    fitted: FittedSvm, problem: KernelProblem, tol: float, more: Sequence[Check], tuning: SvmAuditTuning
) -> Certificate:
    joint = isinstance(fitted.machines[0], JointKernelSvm)
    certify: Callable[..., Any] = joint_kernel.certify if joint else kernel.certify
    found, findings = certify(fitted.machines, problem, tol, tuning.check)
    return replace(found, checks=(*found.checks, *more, *_kept_checks(fitted, problem, findings, tuning)))


def _kept_checks(
    fitted: FittedSvm, problem: KernelProblem, findings: list[Any], tuning: SvmAuditTuning
) -> list[Check]:
    """What a model keeps of its rows and support vectors, against what the checker found."""
    model, support = fitted.model, fitted.support
    rows = None if fitted.precomputed else fitted.data.X
    checks = support_checks(model, support, fitted.box > 0, rows, tuning.close)
    if hasattr(model, "support_codes_"):
        checks += row_checks(model, fitted.machines, findings, tuning)
    if hasattr(model, "support_gram_") and len(support):
        own = dense(problem.table[support])
        checks.append(same("kernel values kept differ", numbers(model, "support_gram_"), problem.kernel(own, own)))
    return checks


def table_width(model: Any) -> int:
    """Columns of the rows it was fitted on; scikit-learn keeps no support vectors with a kernel of the user's."""
    seen = getattr(model, "shape_fit_", np.shape(model.support_vectors_))
    return int(getattr(model, "n_features_in_", seen[1]))


def support_rows(model: Any, data: ArrayRows) -> Array:
    """Row numbers of the support vectors, refused where these are not the rows of the fit."""
    support = np.asarray(model.support_)
    rows = getattr(model, "shape_fit_", (data.n_rows,))[0]
    if data.n_rows != rows:
        raise DataError(
            got=f"{data.n_rows} rows", wanted=f"the {rows} rows that the {type(model).__name__} was fitted on"
        )
    support = check_row_numbers(model, support, data.n_rows)
    if not isinstance(model, Estimator):
        return _among_all_rows(model, support, data)
    kept, wanted = np.shape(model.support_vectors_), (len(support), data.n_features)
    if kept != wanted and model.kernel != "precomputed":
        raise DataError(got=f"support_vectors_ of shape {kept}", wanted=f"shape {wanted}, a row for each of support_")
    return support


def _among_all_rows(model: Any, support: Array, data: ArrayRows) -> Array:
    """Row numbers of another library's support vectors; LIBSVM counts rows with a weight only.

    Where it keeps support vectors they say which count it is, and it predicts by them; else by `support_`.
    """
    used, kept = np.flatnonzero(data.w > 0), model.support_vectors_
    if len(used) == data.n_rows or not kept.shape[0] or support.max(initial=0) >= len(used):
        return support
    both = (support, used[support])
    off = [row_difference(dense(kept), dense(data.X[rows])) for rows in both]
    return both[1] if off[1] < off[0] else support


def check_row_numbers(model: Any, support: Array, rows: int) -> Array:
    """Numbers of support vectors, refused where they are no whole numbers or no rows have them."""
    if support.dtype.kind not in "iu" or support.ndim != 1:
        raise DataError(
            got=f"support vectors of type {support.dtype}, {support.ndim}-d", wanted="a list of row numbers"
        )
    if support.max(initial=0) >= rows or support.min(initial=0) < 0:
        raise DataError(
            got=f"support vectors from {support.min(initial=0)} to {support.max(initial=0)}",
            wanted=f"numbers of the {rows} rows that the {type(model).__name__} was fitted on",
        )
    return support


def class_order_check(model: Any, kinds: Array, k: int) -> Check:
    """Support vectors of these classes (s,) must come class after class: by that, coefficients belong to pairs."""
    if isinstance(model, Estimator):
        exact_shape(model, "n_support_", (k,))
    counts = np.ravel(getattr(model, "n_support_", np.bincount(kinds, minlength=k)))
    off = abs(len(kinds) - int(counts.sum()))
    if len(counts) == k and not off:  # else a number of all, not of each class
        off = int((np.repeat(np.arange(k), np.maximum(counts, 0))[: len(kinds)] != kinds).sum())
    return Check("support vectors out of the order of their classes", float(off), 0.0)


def support_checks(model: Any, support: Array, used: Array, X: Any, close: float = 1e-5) -> list[Check]:
    """Whether support vectors are rows with a positive weight, each once; X is None for a precomputed kernel."""
    checks = [
        Check("support vectors without weight", float((~used[support]).sum()), 0.0),
        Check("support vectors named twice", float(len(support) - len(np.unique(support))), 0.0),
    ]
    kept = model.support_vectors_.shape[0] or isinstance(model, Estimator)
    if X is not None and kept:
        own, rows = isinstance(model, Estimator), X[support]
        # Ours are the rows themselves, in their precision, in which it predicts; others may have float32.
        off = np.inf if own and model.support_vectors_.dtype != rows.dtype else 0.0
        off += row_difference(dense(model.support_vectors_), dense(rows))
        limit = 0.0 if own else close
        checks.append(Check("support vectors differ from their rows, relative", off, limit))
    return checks


def row_checks(
    model: Any, machines: list[Any], findings: list[Any], tuning: SvmAuditTuning = SvmAuditTuning()
) -> list[Check]:
    """What a model of ours says of each row, against what the checker found."""
    if np.asarray(model.support_codes_).dtype.kind not in "iu":
        raise DataError(got="support_codes_ that are no whole numbers", wanted="0, 1 or 2 for each row and machine")
    names, n = ("support_codes_", "slacks_", "kkt_residuals_"), int(model.shape_fit_[0])
    shape = (n,) if len(machines) == 1 else (n, len(machines))
    claimed = np.stack([exact_shape(model, name, shape) for name in names])
    claimed = claimed.reshape(3, -1, len(machines))  # (3, n, machines)
    wrong, off, aside = 0, 0.0, 0.0
    for i, (machine, found) in enumerate(zip(machines, findings, strict=True)):
        expected = np.zeros(claimed.shape[:2])  # all is 0 for rows that a machine was not trained on
        expected[:, machine.rows] = found.kinds, found.slacks, found.residuals
        miss = np.abs(claimed[:, :, i] - expected)
        wrong += int((miss[0] > 0).sum())
        unit = 1.0 if getattr(machine, "epsilon", None) is None else float(np.ptp(machine.y)) + machine.epsilon
        size = unit + float(found.slacks.max(initial=0.0)) or 1.0
        off = float(np.maximum(off, miss[1:].max() / size))  # NaN stays
        # An intercept far from 0 is stored with as many digits fewer; one beside a tube is as far off as that.
        stored = 4 * EPS * float(np.abs(np.asarray(model.intercept_)).max(initial=0.0))
        stored += getattr(machine, "moved", 0.0)
        aside = float(np.maximum(aside, max(0.0, getattr(found, "aside", 0.0) - stored) / size))
    return [
        Check("rows of another kind than their coefficients say", float(wrong), 0.0),
        Check("slacks and residuals of rows off by, relative", float(off), tuning.close),
        # Where all values are near 0, or all numbers within the tube, nothing but the intercept predicts.
        Check(
            "intercepts off the middle of the best ones by, relative",
            aside,
            tuning.same if n <= tuning.exact_rows else tuning.close,
        ),
    ]
