"""Fitted hard-margin machines as the problem they claim to have solved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, setting
from certifit.checkers.kernel_approximation.kernel_error import same
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import PlainKernel
from certifit.checkers.svm import hard_margin as checker
from certifit.checkers.svm.adapter import (
    class_order_check,
    counted,
    pair_coefficients,
    row_checks,
    support_checks,
    support_rows,
    table_width,
)
from certifit.checkers.svm.kernel_adapter import PROVED, kernel_of, semidefinite_on
from certifit.core import Certificate, Check, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, encode_labels


def audit_hard_margin(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    tol: float,
    *,
    tuning: checker.HardMarginCheckTuning = checker.HardMarginCheckTuning(),
) -> Certificate:
    """Check a HardMarginSVC: one machine for each pair of classes."""
    rows = fitted_rows(model, table_width(model), X, y, counted(sample_weight), "classes")
    data = encode_labels(rows, np.asarray(model.classes_)).rows.load()
    code, k, used = np.asarray(data.y), len(model.classes_), data.w > 0
    support, (kernel, meant) = support_rows(model, data), kernel_of(model, data)
    given, linear = (isinstance(model.kernel, str) and model.kernel == name for name in ("precomputed", "linear"))
    table = np.arange(data.n_rows)[:, None] if given else data.X
    proved, why = (True, PROVED) if kernel.valid else semidefinite_on(kernel, table, used)
    pairs = k * (k - 1) // 2
    ridge = _ridges(model, pairs)
    intercepts = exact_shape(model, "intercept_", (pairs,))
    coef = exact_shape(model, "coef_", (pairs, data.n_features)) if linear else None
    dual = exact_shape(model, "dual_coef_", (k - 1, len(support)))
    machines: list[Any] = []
    findings: list[checker.HardMarginFindings] = []
    for i, (first, others, values) in enumerate(pair_coefficients(dual, code[support], k)):
        beta = np.zeros(len(code))
        beta[support] = values
        member = np.flatnonzero(np.isin(code, [first, *others]) & used)
        sign = np.where(code[member] == first, 1.0, -1.0)
        slope = None if coef is None else coef[i]
        per_row = ridge[i] / data.w[member]
        machine = checker.HardMarginMachine(member, sign, per_row, beta[member], float(intercepts[i]), slope)
        machines.append(machine)
        findings.append(checker.assess(machine, table, None if linear else kernel, tuning=tuning))
    found = checker.combined_certificate(findings, tol, proved, why, tuning=tuning)
    checks = [
        *found.checks,
        *row_checks(model, machines, findings),
        _margin_check(exact_shape(model, "margin_", (pairs,)), findings),
        *meant,
        *_ridge_checks(model, ridge, machines, data, None if linear else (kernel, table)),
        class_order_check(model, code[support], k),
        *support_checks(model, support, used, None if given else data.X),
    ]
    if given:
        own = table[support]
        checks.append(same("kernel values kept differ", numbers(model, "support_gram_"), kernel(own, own)))
    return replace(found, checks=tuple(checks))


def _ridges(model: Any, pairs: int) -> Array:
    """The ridge of each machine (pairs,): the number that is set, or with 'auto' what the fit states."""
    asked = setting(model, "ridge", Setting(float, least=0, below=np.inf, choices=("auto",)))
    if not isinstance(asked, str):
        return np.full(pairs, float(asked))
    ridge = exact_shape(model, "ridge_", (pairs,))
    if not (np.isfinite(ridge) & (ridge >= 0)).all():
        raise DataError(got=f"ridge_ = {ridge}", wanted="finite numbers, at least 0")
    return ridge


def _ridge_checks(
    model: Any, ridge: Array, machines: list[Any], data: ArrayRows, kernel: tuple[PlainKernel, Any] | None
) -> list[Check]:
    """Whether ridges are what they are set to be: with 'auto' none, or the share of the rows' mean square."""
    if not isinstance(model.ridge, str):
        # Model files of older versions do not have ridge_.
        stated = exact_shape(model, "ridge_", ridge.shape) if hasattr(model, "ridge_") else ridge
        return [same("ridges differ from the one set", stated, ridge)]
    wanted = ridge.copy()
    for i in np.flatnonzero(ridge):
        wanted[i] = _small_ridge(data, machines[i].rows, kernel)
    return [same("ridges differ from a share of the rows' squares", ridge, wanted)]


def _small_ridge(data: ArrayRows, rows: Array, kernel: tuple[PlainKernel, Any] | None) -> float:
    """A thousandth of the mean k(x, x) of these rows, or of their mean square about their mean."""
    w = data.w[rows] / data.w[rows].sum()
    if kernel is None:
        X = sparse.csc_array(data.X[rows]) if sparse.issparse(data.X) else data.X[rows]
        mean = 0.0
        for j in range(X.shape[1]):
            column = dense(X[:, [j]])[:, 0].astype(np.float64)
            away = column - w @ column
            mean += float(w @ away**2 - (w @ away) ** 2)  # what the mean lost to rounding counts far from 0
    else:
        function, table = kernel
        own = [function(dense(table[i : i + 1]), dense(table[i : i + 1]))[0, 0] for i in rows.tolist()]
        mean = float(w @ np.array(own, np.float64))
    return 1e-3 * mean if mean > 0 else 1.0


def _margin_check(margin: Array, findings: list[checker.HardMarginFindings]) -> Check:
    off = [abs(m / found.margin - 1.0) - found.margin_error for m, found in zip(margin, findings, strict=True)]
    return Check("margins off by, relative", float(np.max([0.0, *off])), 1e-6)  # NaN stays
