"""Two libraries disagree: which one is right? Audit both on the same data and put the proofs side by side.

A lower bound proved with the help of one model holds for all that minimise the same objective, so each is measured
against the best of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.auditing import audit, unwrap
from certifit.checkers.problem import Problem, unshared_problem
from certifit.checkers.registry import audited_models, find_audited
from certifit.core import Certificate
from certifit.core.text_table import html_table, html_text, text_table
from certifit.exceptions import DataError


def _headings() -> tuple[str, ...]:
    return ("model", "objective", "lower bound", "gap", "relative gap", "holds")


@dataclass(frozen=True)
class Comparison:
    """Certificates by name; prints as a table for each problem, the smallest objective first."""

    certificates: Mapping[str, Certificate]
    problems: Mapping[str, Problem]  # that each model minimises; objectives of different ones cannot be compared

    def table(self) -> list[tuple[str, ...]]:
        """Return a line for each model: name, objective, lower bound, gap, relative gap, whether it holds."""
        return [line for _, names in self._groups() for line in self._lines(names)]

    def differences(self) -> list[str]:
        """Return what tells the problems apart, each against the first; empty where all models solve the same."""
        (first, _), *others = self._groups()
        return [words for problem, _ in others for words in first.differences(problem)]

    def _groups(self) -> list[tuple[Problem, list[str]]]:
        """Names of the models of each problem, in the order in which problems were met."""
        groups: dict[Problem, list[str]] = {}
        for name in self.certificates:
            groups.setdefault(self.problems[name], []).append(name)
        return list(groups.items())

    def _lines(self, names: list[str]) -> list[tuple[str, ...]]:
        ordered = sorted(((name, self.certificates[name]) for name in names), key=lambda item: item[1].objective)
        return [(name, f"{c.objective:.10g}", *_distance(c), _verdict(c)) for name, c in ordered]

    def __str__(self) -> str:
        groups = self._groups()
        if len(groups) == 1:
            return text_table([_headings(), *self.table()], rule=True)
        tables = [
            f"{problem}\n{text_table([_headings(), *self._lines(names)], rule=True)}" for problem, names in groups
        ]
        said = ["Different problems: their objectives cannot be compared.", *self.differences()]
        return "\n\n".join([*tables, "\n  ".join(said)])

    def __repr__(self) -> str:
        # Short, because `compare` has printed the table already.
        return f"<Comparison of {', '.join(self.certificates)}>"

    def _repr_html_(self) -> str:
        groups = self._groups()
        tables = [
            html_table([_headings(), *self._lines(names)], "lrrrrl", str(problem) if len(groups) > 1 else "")
            for problem, names in groups
        ]
        if len(groups) > 1:
            items = "".join(f"<li>{html_text(words)}</li>" for words in self.differences())
            tables.append(f"<p>Different problems: their objectives cannot be compared.</p><ul>{items}</ul>")
        return "".join(tables)

    def to_dict(self) -> dict[str, Any]:
        return {name: c.to_dict() for name, c in self.certificates.items()}


def compare(
    models: Mapping[str, Any] | Sequence[Any],
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    tol: float | None = None,
    show: bool | None = None,
) -> Comparison:
    """Audit several fitted models on the same data, print the table and return it.

    Models are grouped by the problem that they solve: a lower bound proved for one holds for all of its group.

    Parameters
    ----------
    models : fitted models by name, or a list of them, which are then named by their classes
    X, y, sample_weight : the data they were all fitted on
    tol : relative gap to ask for, as in `audit`
    show : whether to print; by default, unless a notebook shows what is returned

    >>> from sklearn.datasets import load_iris
    >>> import certifit, sklearn.decomposition as other
    >>> X, _ = load_iris(return_X_y=True)
    >>> models = {"certifit": certifit.PCA(2).fit(X), "scikit-learn": other.PCA(2).fit(X)}
    >>> table = certifit.compare(models, X, show=False)
    >>> all(c.holds for c in table.certificates.values())
    True
    """
    models = _by_name(models)
    found = {name: audit(model, X, y, sample_weight, tol=tol) for name, model in models.items()}
    problems = {name: _problem(model, X, y) for name, model in models.items()}
    comparison = Comparison({name: _sharpen(name, found, problems) for name in models}, problems)
    if show or (show is None and not _in_notebook()):
        print(comparison)
    return comparison


def _by_name(models: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
    """Models by name; those of a list by their class, with library and number where that alone is not enough."""
    if isinstance(models, list | tuple) and models:
        kinds = [type(model) for model in models]
        names = [kind.__name__ for kind in kinds]
        if len(set(names)) < len(names):
            names = [f"{kind.__module__.partition('.')[0]} {kind.__name__}" for kind in kinds]
        if len(set(names)) < len(names):
            names = [f"{name} ({i})" for i, name in enumerate(names, 1)]
        return dict(zip(names, models, strict=True))
    if not isinstance(models, Mapping) or not models:
        raise DataError(
            got="no models" if isinstance(models, Mapping | list | tuple) else f"a {type(models).__name__}",
            wanted="fitted models by name, or a list of them",
            fix="compare({'mine': mine, 'theirs': theirs}, X, y)",
        )
    return models


def _in_notebook() -> bool:
    """Whether what a cell returns is shown by itself."""
    shell = sys.modules.get("IPython")
    return shell is not None and shell.get_ipython() is not None


def _distance(c: Certificate) -> tuple[str, str, str]:
    """Return bound and gap in words, empty where the claim says nothing about the optimum."""
    known = c.kind in ("optimal", "bounded", "impossible")
    return (f"{c.bound:.10g}", f"{c.gap:.3g}", f"{c.relative_gap:.2g}") if known else ("", "", "")


def _verdict(c: Certificate) -> str:
    if c.kind == "impossible" and c.proved:
        return "no solution exists"
    return "yes" if c.holds else "NO"


def _problem(model: Any, X: Any, y: Any) -> Problem:
    """The problem that a model solved; inside a wrapper, that of its model on the very rows that it was given."""
    inner = unwrap(model, X, y)
    if inner is not None:
        rows = _digest(inner.X, inner.y)
        if rows is None:
            return unshared_problem(model)
        found = _problem(inner.model, inner.X, inner.y)
        as_given = rows == _digest(X, y)
        return found if as_given else replace(found, rows=inner.rows, digest=rows)
    return find_audited(model).problem(model) if type(model).__name__ in audited_models() else unshared_problem(model)


def _digest(X: Any, y: Any) -> str | None:
    """A digest of the numbers of rows in memory, such that equal ones are equal rows; None for any other source."""
    found = sha256()
    for part in (X, y):
        if sparse.issparse(part):
            part = sparse.csr_array(part, copy=True)
            part.sum_duplicates()
            arrays = [part.data, part.indices, part.indptr]
        elif part is None or isinstance(part, np.ndarray) or hasattr(part, "to_numpy"):
            arrays = [np.asarray(part)]
        else:
            return None
        for array in arrays:
            found.update(f"{array.shape}{array.dtype}".encode())
            found.update(repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes())
    return found.hexdigest()


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
