"""Fitted kernel machines, ours or others', as the problem they claim to have solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.kernel_approximation.kernel_error import row_difference, same
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import Given, Linear, Plain
from certifit.checkers.svm import joint_kernel
from certifit.checkers.svm import kernel as checker
from certifit.checkers.svm.kernel_adapter import PROVED, kernel_of, tried
from certifit.checkers.svm.probability_adapter import with_probabilities
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, class_weight_vector, encode_labels

CLOSE = 1e-5  # rows' numbers from kernel values in float32 may differ by this much


def audit_svc(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """SVC: a machine for each pair of classes, in scikit-learn's layout, for each class, or for all of them."""
    rows = fitted_rows(model, table_width(model), X, y, sample_weight, "classes")
    classes = np.asarray(model.classes_)
    labels = encode_labels(rows, classes)
    data = labels.rows.load()
    code, k = np.asarray(data.y), len(classes)
    # scikit-learn's balance counts every row alike
    total = labels.weight if isinstance(model, Estimator) else np.bincount(code, minlength=k)
    factor = class_weight_vector(classes, total, getattr(model, "class_weight", None))
    weight = data.w * factor[code]
    box = float(model.C) * weight
    support, intercepts = support_rows(model, data), numbers(model, "intercept_").ravel()
    scheme = str(getattr(model, "multi_class", "ovo"))
    scheme = "ovo" if scheme == "ovr" and k == 2 else scheme
    machines = MACHINES[scheme](numbers(model, "dual_coef_"), support, code, box, intercepts)
    more = [placed(model, code[support], k)]
    if getattr(model, "class_weight_", None) is not None:
        more.append(same("weights of classes differ from their meaning", numbers(model, "class_weight_"), factor))
    problem = _problem(model, data, box, machines)
    found = _certificate(model, data, support, box, machines, problem, tol, more)
    if not hasattr(model, "probability_slopes_"):
        return found
    return with_probabilities(found, model, X, code, weight, scheme == "ovo", partial(_values, machines, problem))


Coefficients = Iterator[tuple[int, Sequence[int], Array]]  # class, the others it is told from, of support vectors


def _of_pairs(coef: Array, kinds: Array, k: int) -> Coefficients:
    """From the layout (k - 1, s) of LIBSVM, for support vectors of these classes (s,)."""
    for first, second in [(1, 0)] if k == 2 else combinations(range(k), 2):
        beta = np.zeros(len(kinds))
        for own, other in ((first, second), (second, first)):
            here = kinds == own
            beta[here] = coef[0 if k == 2 else other - (other > own), here]
        yield first, [second], beta


def _against_the_rest(coef: Array, _kinds: Array, k: int) -> Coefficients:
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
    more = [placed(model, np.zeros_like(support), 1)]
    return _certificate(model, data, support, box, [machine], _problem(model, data, box, [machine]), tol, more)


def machine_problem(model: Any) -> tuple[str, ...]:
    """What a fitted machine minimises: equal for two machines if a bound proved for one holds for the other."""
    names = ("kernel", "gamma", "degree", "coef0", "C", "epsilon", "class_weight", "classes_")
    ours = (getattr(model, "multi_class", "ovo"), getattr(model, "indefinite", "refuse"))
    return (*(repr(getattr(model, name, None)) for name in names), *map(repr, ours))


def table_width(model: Any) -> int:
    """Of the rows it was fitted on; scikit-learn keeps no support vectors with a kernel of the user's."""
    seen = getattr(model, "shape_fit_", np.shape(model.support_vectors_))
    return int(getattr(model, "n_features_in_", seen[1]))


def support_rows(model: Any, data: ArrayRows) -> Array:
    support = np.asarray(model.support_)
    rows = getattr(model, "shape_fit_", (data.n_rows,))[0]
    if data.n_rows != rows or support.max(initial=0) >= rows or support.min(initial=0) < 0:
        raise DataError(
            got=f"{data.n_rows} rows, support vectors from {support.min(initial=0)} to {support.max(initial=0)}",
            wanted=f"the {rows} rows that the {type(model).__name__} was fitted on",
        )
    return support


def placed(model: Any, kinds: Array, k: int) -> Check:
    """Support vectors of these classes (s,) must come class after class: by that, coefficients belong to pairs."""
    said = np.ravel(getattr(model, "n_support_", np.bincount(kinds, minlength=k)))
    off = abs(len(kinds) - int(said.sum()))
    if len(said) == k and not off:  # else a number of all, not of each class
        off = int((np.repeat(np.arange(k), np.maximum(said, 0))[: len(kinds)] != kinds).sum())
    return Check("support vectors out of the order of their classes", float(off), 0.0)


def support_checks(model: Any, support: Array, used: Array, X: Any) -> list[Check]:
    """Whether support vectors are rows that count, each once; X is None where there are but kernel values."""
    checks = [
        Check("support vectors without weight", float((~used[support]).sum()), 0.0),
        Check("support vectors named twice", float(len(support) - len(np.unique(support))), 0.0),
    ]
    kept = model.support_vectors_.shape[0] or isinstance(model, Estimator)
    if X is not None and kept:
        off = row_difference(dense(model.support_vectors_), dense(X[support]))
        limit = 0.0 if isinstance(model, Estimator) else CLOSE  # others may have float32
        checks.append(Check("support vectors differ from their rows, relative", off, limit))
    return checks


class Problem(NamedTuple):
    """What a model's machines are functions of."""

    table: Any  # rows, or row numbers
    kernel: Plain
    proved: bool  # positive semidefinite
    why: str
    checks: tuple[Check, ...]  # that the kernel is the model's


def _problem(model: Any, data: ArrayRows, box: Array, machines: list[Any]) -> Problem:
    X, (kernel, checks) = data.X, kernel_of(model, data)
    given = isinstance(model.kernel, str) and model.kernel == "precomputed"
    numbered = np.arange(data.n_rows)[:, None]
    table = numbered if given else X
    if hasattr(model, "expansion_coef_"):
        used = np.flatnonzero(box > 0)
        G = np.zeros((data.n_rows, data.n_rows))
        G[np.ix_(used, used)], onto = _projected(kernel.values(dense(table[used]), dense(table[used])))
        checks = (*checks, *_expanded(model, X, used, onto, machines, given))
        return Problem(numbered, Given(G), True, "projected: eigenvalues below 0 became 0", checks)
    if isinstance(kernel.values, Linear) and not sparse.issparse(X):
        return Problem(X, Linear(dense(X).mean(axis=0)), True, PROVED, checks)
    proved, why = (True, PROVED) if kernel.valid else tried(kernel.values, table, box > 0)
    return Problem(table, kernel.values, proved, why, checks)


def _values(machines: list[Any], problem: Problem, rows: Array) -> Array:
    """(m, machines) at these rows."""
    return np.hstack([machine.values(problem.kernel, problem.table, rows) for machine in machines])


def _certificate(
    model: Any,
    data: ArrayRows,
    support: Array,
    box: Array,
    machines: list[Any],
    problem: Problem,
    tol: float,
    more: Sequence[Check],
) -> Certificate:
    table, kernel, proved, why, meant = problem
    certify = joint_kernel.certify if isinstance(machines[0], joint_kernel.Machine) else checker.certify
    found, judged = certify(machines, kernel, table, tol, proved, why)
    rows = None if isinstance(model.kernel, str) and model.kernel == "precomputed" else data.X
    checks = [*found.checks, *meant, *more, *support_checks(model, support, box > 0, rows)]
    if hasattr(model, "support_codes_"):
        checks += row_checks(model, machines, judged)
    if hasattr(model, "support_gram_") and len(support):
        own = dense(table[support])
        checks.append(same("kernel values kept differ", numbers(model, "support_gram_"), kernel(own, own)))
    return replace(found, checks=tuple(checks))


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
    said = np.stack([model.support_codes_, model.slacks_, model.kkt_residuals_])
    said = said.reshape(3, -1, len(machines))  # (3, n, machines)
    wrong, off = 0, 0.0
    for i, (machine, found) in enumerate(zip(machines, judged, strict=True)):
        expected = np.zeros(said.shape[:2])  # nothing is said of rows that a machine was not trained on
        expected[:, machine.rows] = found.kinds, found.slacks, found.residuals
        miss = np.abs(said[:, :, i] - expected)
        wrong += int((miss[0] > 0).sum())
        unit = 1.0 if getattr(machine, "epsilon", None) is None else float(np.ptp(machine.y)) + machine.epsilon
        size = unit + float(found.slacks.max(initial=0.0)) or 1.0
        off = float(np.maximum(off, miss[1:].max() / size))  # NaN stays
    return [
        Check("rows of another kind than their coefficients say", float(wrong), 0.0),
        Check("slacks and residuals of rows off by, relative", float(off), CLOSE),
    ]
