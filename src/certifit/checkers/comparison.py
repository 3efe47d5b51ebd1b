"""Two libraries disagree: which one is right? Audit both on the same data and put the proofs side by side.

A lower bound proved with the help of one model holds for all that minimise the same objective, so each is measured
against the best of them.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from certifit.checkers.auditing import audit
from certifit.checkers.problem import Problem, unshared_problem
from certifit.checkers.registry import audited_models, find_audited
from certifit.core import Certificate, text_table


def _headings() -> tuple[str, ...]:
    return ("model", "objective", "lower bound", "gap", "relative gap", "holds")


@dataclass(frozen=True)
class Comparison:
    """Certificates by name; prints as a table, the smallest objective first."""

    certificates: Mapping[str, Certificate]

    def table(self) -> list[tuple[str, ...]]:
        ordered = sorted(self.certificates.items(), key=lambda item: item[1].objective)
        return [(name, f"{c.objective:.10g}", *_distance(c), _verdict(c)) for name, c in ordered]

    def __str__(self) -> str:
        return text_table([_headings(), *self.table()], rule=True)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{h}</th>" for h in _headings())
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in self.table()
        )
        return f"<table><tr>{head}</tr>{body}</table>"

    def to_dict(self) -> dict[str, Any]:
        return {name: c.to_dict() for name, c in self.certificates.items()}


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    tol: float | None = None,
    show: bool = True,
) -> Comparison:
    """Audit several fitted models on the same data; print the table (unless show=False) and return it.

    >>> from sklearn.datasets import load_iris
    >>> import certifit, sklearn.decomposition as other
    >>> X, _ = load_iris(return_X_y=True)
    >>> models = {"certifit": certifit.PCA(2).fit(X), "scikit-learn": other.PCA(2).fit(X)}
    >>> table = certifit.compare(models, X, show=False)
    >>> all(c.holds for c in table.certificates.values())
    True
    """
    found = {name: audit(model, X, y, sample_weight, tol=tol) for name, model in models.items()}
    problems = {name: _problem(model) for name, model in models.items()}
    comparison = Comparison({name: _sharpen(name, found, problems) for name in models})
    if show:
        print(comparison)
    return comparison


def _distance(c: Certificate) -> tuple[str, str, str]:
    """Return bound and gap in words, empty where the claim says nothing about the optimum."""
    known = c.kind in ("optimal", "bounded", "impossible")
    return (f"{c.bound:.10g}", f"{c.gap:.3g}", f"{c.relative_gap:.2g}") if known else ("", "", "")


def _verdict(c: Certificate) -> str:
    if c.kind == "impossible" and c.proved:
        return "no solution exists"
    return "yes" if c.holds else "NO"


def _problem(model: Any) -> Problem:
    """The problem that a model solved; that of a wrapper, whose steps are part of it, is shared by no other."""
    return find_audited(model).problem(model) if type(model).__name__ in audited_models() else unshared_problem(model)


def _sharpen(name: str, found: Mapping[str, Certificate], problems: Mapping[str, Problem]) -> Certificate:
    """The certificate with the best bound that any model proved for the same problem.

    A bound above another model's objective would be wrong, whatever proved it: then none is lent.
    """
    mine = found[name]
    same = [c for other, c in found.items() if problems[other] == problems[name] and c.kind == "optimal"]
    bounds = [c.bound for c in same if math.isfinite(c.bound) and not c.bound <= mine.bound]
    if mine.kind != "optimal" or not bounds or max(bounds) > min(c.objective for c in same):
        return mine
    return replace(mine, bound=max(bounds), parameter_error=())
