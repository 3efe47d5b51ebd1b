"""A fitted `NaiveBayes` for mixed tables, checked family by family with the checkers of the single families."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.families import moment_matching as families
from certifit.checkers.naive_bayes import moments as checker
from certifit.checkers.naive_bayes.adapter import Data, class_evidence, log
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate
from certifit.families import Family
from certifit.rows import Block, Rows


class _View:
    """Some columns of rows; of one class, only its rows that have them. Sums, as `Rows` do."""

    def __init__(self, rows: Rows, columns: Any, c: int | None = None) -> None:
        self.rows, self.columns, self.c = rows, columns, c
        self.n_features = len(columns)

    def sum(self, f: Callable[[Block], Any]) -> Any:
        return self.rows.sum(partial(_narrow, self.columns, self.c, f))


def _narrow(columns: Any, c: int | None, f: Callable[[Block], Any], block: Block) -> Any:
    X, y, w = dense(block.X[:, columns]), block.y, block.w
    assert y is not None
    if c is not None:
        some = (y == c) & (w > 0) & ~np.isnan(X).any(axis=1)
        X, y, w = X[some], y[some], w[some]
    return f(Block(X, y, w, block.start))


def audit_naive_bayes(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """NaiveBayes: the moment equations of every class and column."""
    data = Data(model, X, y, sample_weight)
    evidence = class_evidence(model, data, log(np.asarray(model.class_prior_)), model.priors, tol)
    for side, found in zip(model._part().sides, model.parameters_, strict=True):
        check = _CHECKS.get(side.name, _check_family)
        parts = check(side, found, _View(data.rows, found["columns"]), data.k, float(model.alpha), tol)
        evidence += [checker.named(side.name, part) for part in parts]
    return checker.assemble(evidence, tol)


def _check_gaussian(_side: Any, found: Any, view: Any, k: int, _alpha: float, tol: float) -> list[checker.Evidence]:
    moments = checker.moments(view, k)
    return [checker.gaussian(found["theta"], found["var"], found["epsilon"], False, moments, tol)]


def _check_bernoulli(_side: Any, found: Any, view: Any, k: int, alpha: float, tol: float) -> list[checker.Evidence]:
    mass = checker.threshold_counts(view, k, 0.5) + alpha
    return [checker.cells(np.stack([found["log_q"], found["log_p"]], axis=-1), mass, tol)]


def _check_categorical(_side: Any, found: Any, view: Any, k: int, alpha: float, tol: float) -> list[checker.Evidence]:
    sizes = found["sizes"]
    tables = np.split(found["table"].T, np.cumsum(sizes)[:-1], axis=1)
    mass = checker.category_counts(view, k, sizes)
    pairs = list(zip(tables, mass, strict=True))
    return [
        checker.columns(checker.counts("unknown categories", m[:, -1], np.zeros(k), 0.0) for _, m in pairs),
        checker.columns(checker.cells(t, m[:, :-1] + alpha, tol) for t, m in pairs),
    ]


def _check_family(side: Any, found: Any, view: Any, k: int, _alpha: float, _tol: float) -> list[checker.Evidence]:
    """Each class and column by the checker of its family; no bound is claimed where it does not hold."""
    parts = []
    for c in range(k):
        for column, values in zip(view.columns, found["members"][c], strict=True):
            rows: Any = _View(view.rows, [column], c)
            if rows.sum(_weight) > 0:
                member = type(side.part.like)(*values)
                value = rows.sum(partial(_log_likelihood, member))
                checked = families.certify(type(member).__name__, member.parameters, rows, value)
                parts.append(checker.Evidence(-value, -value if checked.holds else -math.inf, checked.checks))
    return [checker.columns(parts)] if parts else []


def _weight(block: Block) -> float:
    return float(block.w.sum())


def _log_likelihood(member: Family, block: Block) -> float:
    return float(block.w @ member.log_density(block.X[:, 0]))


_CHECKS = {"gaussian": _check_gaussian, "bernoulli": _check_bernoulli, "categorical": _check_categorical}
