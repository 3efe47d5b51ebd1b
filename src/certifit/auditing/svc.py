"""Fitted kernel machines, ours or others', as the problem they claim to have solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from certifit.auditing.fitted import fitted_rows, numbers
from certifit.auditing.kernels import PROVED, KernelValues, by_number, kernel_of, tried
from certifit.certificates import joint_kernel
from certifit.certificates import svc as checker
from certifit.certificates.calibration import calibrated
from certifit.certificates.plain import dense
from certifit.core import Array, ArrayRows, Certificate, Check, DataError, class_weight_vector, encode_labels

CLOSE = 1e-5  # rows' numbers from kernel values in float32 may differ by this much


def audit_svc(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """SVC: a machine for each pair of classes, in scikit-learn's layout, for each class, or for all of them."""
    rows = fitted_rows(model, table_width(model), X, y, sample_weight, "classes")
    classes = np.asarray(model.classes_)
    labels = encode_labels(rows, classes)
    data = labels.rows.load()
    factor = getattr(model, "class_weight_", None)
    if factor is None or len(factor) != len(classes):
        factor = class_weight_vector(classes, labels.weight, getattr(model, "class_weight", None))
    code, k = np.asarray(data.y), len(classes)
    weight = data.w * np.asarray(factor)[code]
    box = float(model.C) * weight
    support, intercepts = support_rows(model, data), numbers(model, "intercept_").ravel()
    scheme = str(getattr(model, "multi_class", "ovo"))
    scheme = "ovo" if scheme == "ovr" and k == 2 else scheme
    machines = MACHINES[scheme](numbers(model, "dual_coef_"), support, code, box, intercepts)
    counted = np.bincount(code[support], minlength=k)
    said = np.ravel(getattr(model, "n_support_", counted))
    off = np.abs(counted - said).max() if len(said) == k else abs(counted.sum() - said.sum())
    more = [Check("support vectors of a class miscounted by", float(off), 0.0)]
    if hasattr(model, "probability_slopes_"):
        used, slopes = weight > 0, numbers(model, "probability_slopes_")
        values = numbers(model, "held_out_values_")[used]
        more += calibrated(values, code[used], weight[used], slopes, k, scheme == "ovo")
    return _certificate(model, data, support, box, machines, tol, more)


Coefficients = Iterator[tuple[int, Sequence[int], Array]]  # class, the others it is told from, of support vectors


def _of_pairs(coef: Array, kinds: Array, k: int) -> Coefficients:
    """From the layout (k - 1, s) of LIBSVM, for support vectors of these classes (s,)."""
    for first, second in [(1, 0)] if k == 2 else combinations(range(k), 2):
        beta = np.zeros(len(kinds))
        for own, other in ((first, second), (second, first)):
            here = kinds == own
            beta[here] = coef[0 if k == 2 else other - (other > own), here]
        yield first, [second], beta


def _against_the_rest(coef: Array, kinds: Array, k: int) -> Coefficients:  # noqa: ARG001
    for first in range(k):
        yield first, [c for c in range(k) if c != first], coef[first]


SCHEMES: dict[str, Callable[[Array, Array, int], Coefficients]] = {"ovo": _of_pairs, "ovr": _against_the_rest}


def _two_sided(
    coefficients: Callable[[Array, Array, int], Coefficients],
    coef: Array,
    support: Array,
    code: Array,
    box: Array,
    intercepts: Array,
) -> list[checker.Machine]:
    machines = []
    for i, (first, others, found) in enumerate(coefficients(coef, code[support], int(code.max()) + 1)):
        beta = np.zeros(len(code))
        beta[support] = found
        member = np.flatnonzero(np.isin(code, [first, *others]) & (box > 0))
        sign = np.where(code[member] == first, 1.0, -1.0)
        machines.append(checker.Machine(member, sign, box[member], beta[member], float(intercepts[i])))
    return machines


def _joint(
    loss: str, coef: Array, support: Array, code: Array, box: Array, intercepts: Array
) -> list[joint_kernel.Machine]:
    beta, member = np.zeros((len(code), len(coef))), np.flatnonzero(box > 0)
    beta[support] = coef.T
    return [joint_kernel.Machine(member, code[member], box[member], beta[member], intercepts, loss)]


MACHINES: dict[str, Callable[..., list[Any]]] = {
    **{name: partial(_two_sided, coefficients) for name, coefficients in SCHEMES.items()},
    **{loss: partial(_joint, loss) for loss in joint_kernel.LIMITS},
}


def audit_svr(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """SVR: one machine for numbers."""
    rows = fitted_rows(model, table_width(model), X, y, sample_weight, "numbers")
    data = rows.load()
    box = float(model.C) * data.w
    support, beta = support_rows(model, data), np.zeros(data.n_rows)
    beta[support] = numbers(model, "dual_coef_")[0]
    member = np.flatnonzero(box > 0)
    intercept = float(numbers(model, "intercept_").ravel()[0])
    target = np.asarray(data.y)[member]
    machine = checker.Machine(member, target, box[member], beta[member], intercept, float(model.epsilon))
    return _certificate(model, data, support, box, [machine], tol, [])


def machine_problem(model: Any) -> tuple[str, ...]:
    """What a fitted machine minimises: equal for two machines if a bound proved for one holds for the other."""
    names = ("kernel", "gamma", "degree", "coef0", "C", "epsilon", "class_weight", "classes_")
    ours = (getattr(model, "multi_class", "ovo"), getattr(model, "indefinite", "refuse"))
    return (*(repr(getattr(model, name, None)) for name in names), *map(repr, ours))


def table_width(model: Any) -> int:
    return int(getattr(model, "n_features_in_", np.shape(model.support_vectors_)[1]))


def support_rows(model: Any, data: ArrayRows) -> Array:
    support = np.asarray(model.support_)
    rows = getattr(model, "shape_fit_", (data.n_rows,))[0]
    if data.n_rows != rows or support.max(initial=0) >= rows:
        raise DataError(
            got=f"{data.n_rows} rows", wanted=f"the {rows} rows that the {type(model).__name__} was fitted on"
        )
    return support


def _certificate(
    model: Any,
    data: ArrayRows,
    support: Array,
    box: Array,
    machines: list[Any],
    tol: float,
    more: Sequence[Check],
) -> Certificate:
    X, kernel = data.X, kernel_of(model, data.X)
    given = isinstance(model.kernel, str) and model.kernel == "precomputed"
    table = np.arange(data.n_rows)[:, None] if given else X
    proved, why = kernel.valid, PROVED
    if hasattr(model, "expansion_coef_"):
        used = np.flatnonzero(box > 0)
        G = np.zeros((data.n_rows, data.n_rows))
        G[np.ix_(used, used)], onto = _projected(kernel.values(dense(table[used]), dense(table[used])))
        table, kernel = np.arange(data.n_rows)[:, None], KernelValues(partial(by_number, G), True)
        proved, why = True, "projected: eigenvalues below 0 became 0"
        more = [*more, *_expanded(model, X, used, onto, machines, given)]
    if isinstance(model.kernel, str) and model.kernel == "linear" and not sparse.issparse(X):
        origin = dense(X).mean(axis=0)
        machines = [_about(origin, X, machine) for machine in machines]
        kernel = KernelValues(partial(checker.linear_from, origin), True)
    if not proved:
        proved, why = tried(kernel.values, table, box > 0)
    certify = joint_kernel.certify if isinstance(machines[0], joint_kernel.Machine) else checker.certify
    found, judged = certify(machines, kernel.values, table, tol, proved, why)
    checks = [*found.checks, *more, Check("support vectors without weight", float((box[support] == 0).sum()), 0.0)]
    if not given:
        off = np.abs(dense(model.support_vectors_) - dense(X[support])).max(initial=0.0)
        size = float(abs(X).max()) or 1.0
        checks.append(Check("support vectors differ from their rows, relative", float(off) / size, 1e-6))
    if hasattr(model, "support_codes_"):
        checks += row_checks(model, machines, judged)
    return replace(found, checks=tuple(checks))


def _about(origin: Array, X: Any, machine: Any) -> Any:
    """A linear machine whose kernel is that of rows measured from another origin."""
    slopes = machine.beta.T @ (dense(X[machine.rows]) - origin)  # (d,) or (k, d)
    return replace(machine, intercept=machine.intercept + slopes @ origin)


def _projected(G: Any) -> tuple[Array, Array]:
    """A kernel matrix without its negative part, and the projection onto what is left."""
    G = np.asarray(G.toarray() if sparse.issparse(G) else G, np.float64)
    values, vectors = np.linalg.eigh((G + G.T) / 2)
    kept = values > 1e-8 * np.abs(values).max()  # as far as rounding lets vectors be known
    return (vectors[:, kept] * values[kept]) @ vectors[:, kept].T, vectors[:, kept] @ vectors[:, kept].T


def _expanded(model: Any, X: Any, used: Array, onto: Array, machines: list[Any], given: bool) -> list[Check]:
    """Whether a projected model predicts by the machines that were certified."""
    columns = [np.zeros((X.shape[0], *machine.beta.shape[1:])) for machine in machines]
    for column, machine in zip(columns, machines, strict=True):
        column[machine.rows] = machine.beta
    expected = onto @ np.column_stack(columns)[used]
    rows, size = (used if given else dense(X[used])), float(np.abs(expected).max()) or 1.0
    off = np.abs(numbers(model, "expansion_coef_") - expected).max() / size
    astray = np.abs(dense(model.expansion_) - rows).max() if np.shape(model.expansion_) == rows.shape else np.inf
    return [
        Check("coefficients of the projection off by, relative", float(off), 1e-4),
        Check("rows of the projection differ from those given", float(astray), 0.0),
    ]


def row_checks(model: Any, machines: list[Any], judged: list[Any]) -> list[Check]:
    """What a model of ours says of each row, against what the checker found."""
    wrong, off = 0, 0.0
    for i, (machine, found) in enumerate(zip(machines, judged, strict=True)):
        codes, slacks, residuals = (
            np.asarray(values).reshape(-1, len(machines))[machine.rows, i]
            for values in (model.support_codes_, model.slacks_, model.kkt_residuals_)
        )
        wrong += int((codes != found.kinds).sum())
        scale = 1.0 + float(found.slacks.max(initial=0.0))
        off = max(off, np.abs(slacks - found.slacks).max() / scale, np.abs(residuals - found.residuals).max() / scale)
    return [
        Check("rows of another kind than their coefficients say", float(wrong), 0.0),
        Check("slacks and residuals of rows off by, relative", float(off), CLOSE),
    ]
