"""Fitted hard-margin machines as the problem they claim to have solved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.fitted import exact_shape, fitted_rows, numbers
from certifit.checkers.kernel_approximation.kernel_error import same
from certifit.checkers.svm import hard_margin as checker
from certifit.checkers.svm.adapter import (
    class_order_check,
    pair_coefficients,
    row_checks,
    support_checks,
    support_rows,
    table_width,
)
from certifit.checkers.svm.kernel_adapter import PROVED, kernel_of, semidefinite_on
from certifit.core import Certificate, Check
from certifit.rows import Array, encode_labels


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
    rows = fitted_rows(model, table_width(model), X, y, sample_weight, "classes")
    data = encode_labels(rows, np.asarray(model.classes_)).rows.load()
    code, k, used = np.asarray(data.y), len(model.classes_), data.w > 0
    support, (kernel, meant) = support_rows(model, data), kernel_of(model, data)
    given, linear = (isinstance(model.kernel, str) and model.kernel == name for name in ("precomputed", "linear"))
    table = np.arange(data.n_rows)[:, None] if given else data.X
    proved, why = (True, PROVED) if kernel.valid else semidefinite_on(kernel, table, used)
    ridge = np.divide(float(model.ridge), data.w, out=np.zeros(len(code)), where=used)
    pairs = k * (k - 1) // 2
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
        machine = checker.HardMarginMachine(member, sign, ridge[member], beta[member], float(intercepts[i]), slope)
        machines.append(machine)
        findings.append(checker.assess(machine, table, None if linear else kernel, tuning=tuning))
    found = checker.combined_certificate(findings, float(model.ridge) > 0, tol, proved, why, tuning=tuning)
    checks = [
        *found.checks,
        *row_checks(model, machines, findings),
        _margin_check(exact_shape(model, "margin_", (pairs,)), findings),
        *meant,
        class_order_check(model, code[support], k),
        *support_checks(model, support, used, None if given else data.X),
    ]
    if given:
        own = table[support]
        checks.append(same("kernel values kept differ", numbers(model, "support_gram_"), kernel(own, own)))
    return replace(found, checks=tuple(checks))


def _margin_check(margin: Array, findings: list[checker.HardMarginFindings]) -> Check:
    off = [abs(m / found.margin - 1.0) - found.margin_error for m, found in zip(margin, findings, strict=True)]
    return Check("margins off by, relative", float(np.max([0.0, *off])), 1e-6)  # NaN stays
