"""The adapter of `NaiveBayes` for mixed tables, which hands the columns of each family to the checker of that family.

Its attribute `parameters_` holds, for every family in use, its name, its columns and the parameters of each class;
`sums_` holds, in the same order, the sums that `partial_fit` adds to. Which columns a family has follows from the
setting `family`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.families.moment_matching import certify_family, log_likelihood
from certifit.checkers.naive_bayes import moment_equations as equations
from certifit.checkers.naive_bayes import running_sums
from certifit.checkers.naive_bayes.adapter import ClassRows, category_evidence, class_evidence, class_rows
from certifit.checkers.naive_bayes.class_statistics import (
    category_counts,
    class_moments,
    seen_categories,
    threshold_counts,
)
from certifit.checkers.naive_bayes.moment_equations import GaussianRules, MomentEvidence, safe_log
from certifit.checkers.naive_bayes.running_sums import FamilyTotals, shaped
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.column_families import class_name, given_families
from certifit.checkers.plain.exponential_families import parameter_names
from certifit.checkers.plain.univariate_families import UNIVARIATE_FAMILIES, Theta
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows

ANY_CLASS = -1


class _SomeColumns:
    """Some columns of rows, summed as `Rows` are; given a class (or any), only rows without missing entries there."""

    def __init__(self, rows: Rows, columns: Any, c: int | None = None) -> None:
        self.rows, self.columns, self.c = rows, columns, c
        self.n_features = len(columns)

    def sum(self, f: Callable[[Block], Any]) -> Any:
        return self.rows.sum(partial(_apply_to_columns, self.columns, self.c, f))


def _apply_to_columns(columns: Any, c: int | None, f: Callable[[Block], Any], block: Block) -> Any:
    X, y, w = dense(block.X[:, columns]), block.y, block.w
    assert y is not None
    if c is not None:
        kept = ((y == c) | (c == ANY_CLASS)) & (w > 0) & ~np.isnan(X).any(axis=1)
        X, y, w = X[kept], y[kept], w[kept]
    return f(Block(X, y, w, block.start))


def audit_naive_bayes(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the moment equations of every class and column of a NaiveBayes."""
    data = class_rows(model, X, y, sample_weight)
    _check_columns(model, data.rows.n_features)
    prior = shaped(model.class_prior_, "class_prior_", (data.k,))
    evidence = class_evidence(model, data, safe_log(prior), model.priors, tol)
    for found, kept in zip(model.parameters_, model.sums_, strict=True):
        parts = _group_evidence(model, found, kept, data, tol)
        evidence += [equations.with_prefix(found["family"], part) for part in parts]
    return equations.assemble(evidence, tol)


def _check_columns(model: Any, d: int) -> None:
    """Refuse parameters of other families or other columns than the setting says."""
    given = given_families(model.family, d, list(getattr(model, "feature_names_in_", ())))
    words = [class_name(value) for value in given]
    groups = [np.asarray(found["columns"]) for found in model.parameters_]
    columns = np.concatenate(groups) if groups else np.zeros(0)
    stored = {int(j): class_name(f["family"]) for f in model.parameters_ for j in np.ravel(f["columns"])}
    ordered = all((np.diff(g) > 0).all() for g in groups) and (np.diff([g[0] for g in groups]) > 0).all()
    fine = ordered and np.array_equal(np.sort(columns), np.arange(d)) and len(model.parameters_) == len(model.sums_)
    if not fine or [stored[j] for j in range(d)] != words or [class_name(f) for f in model.families_] != words:
        raise DataError(
            got=f"parameters_ and families_ of other columns or families than family={model.family!r} says",
            wanted="those of the fit",
            fix="Fit the model again.",
        )
    for found in model.parameters_:
        _check_known(found, [given[j] for j in found["columns"]])


def _check_known(found: Mapping[str, Any], given: list[Any]) -> None:
    """Refuse members whose known parameters are not those that the setting gives."""
    family = class_name(found["family"])
    if "members" not in found:
        return
    known, names = UNIVARIATE_FAMILIES[family].known, parameter_names(family)
    for row in found["members"]:
        for like, values in zip(given, row, strict=True):
            theta = dict(zip(names, values, strict=True))
            if any(theta[name] != getattr(like, name) for name in known):
                raise DataError(got=f"a {family} with {theta}", wanted=f"the known parameters of {like!r}")


def _group_evidence(
    model: Any, found: Mapping[str, Any], kept: Mapping[str, Any], data: ClassRows, tol: float
) -> list[MomentEvidence]:
    """Return the evidence of the columns of one family, of their parameters and of their running sums."""
    some: Any = _SomeColumns(data.rows, found["columns"])
    group = data._replace(rows=some)
    match found["family"]:
        case "gaussian":
            return _gaussian_group(found, kept, group, float(model.var_smoothing), tol)
        case "bernoulli":
            return _bernoulli_group(found, kept, group, float(model.alpha), tol)
        case "categorical":
            return _categorical_group(found, kept, group, float(model.alpha), tol)
        case _:
            return _family_group(found, kept, data, tol)


def _gaussian_group(
    found: Mapping[str, Any], kept: Mapping[str, Any], group: ClassRows, var_smoothing: float, tol: float
) -> list[MomentEvidence]:
    moments = class_moments(group.rows, group.k)
    epsilon = var_smoothing * moments.largest_variance()
    theta, var = (shaped(found[name], name, group.shape) for name in ("theta", "var"))
    return [
        equations.gaussian_evidence(theta, var, GaussianRules(epsilon), moments, tol),
        equations.epsilon_evidence(float(found["epsilon"]), epsilon, var, tol),
        running_sums.moment_sums_evidence(kept, moments, epsilon, tol),
    ]


def _bernoulli_group(
    found: Mapping[str, Any], kept: Mapping[str, Any], group: ClassRows, alpha: float, tol: float
) -> list[MomentEvidence]:
    mass = threshold_counts(group.rows, group.k, 0.5)
    log_p = np.stack([shaped(found[name], name, group.shape) for name in ("log_q", "log_p")], axis=-1)
    return [
        equations.cell_evidence(log_p, mass + alpha, tol),
        running_sums.count_sums_evidence(kept, {"below": mass[..., 0], "above": mass[..., 1]}, tol),
    ]


def _categorical_group(
    found: Mapping[str, Any], kept: Mapping[str, Any], group: ClassRows, alpha: float, tol: float
) -> list[MomentEvidence]:
    sizes = shaped(found["sizes"], "sizes", (group.shape[1],)).astype(np.int64)
    table = shaped(found["table"], "table", (int(sizes.sum()), group.k))
    tables = np.split(table.T, np.cumsum(sizes)[:-1], axis=1)
    mass = category_counts(group.rows, group.k, sizes)
    wanted = np.maximum(seen_categories(mass), 1).astype(np.float64)
    return [
        *category_evidence(tables, mass, alpha, tol),
        equations.count_evidence("numbers of categories", sizes, wanted, 0.0),
        running_sums.category_sums_evidence(kept, mass, tol),
    ]


# ------------------------------------------------------------------------------------------ exponential families
def _family_group(
    found: Mapping[str, Any], kept: Mapping[str, Any], data: ClassRows, tol: float
) -> list[MomentEvidence]:
    """Check each class and column by the checker of its family; where that fails, the bound is -inf."""
    family, columns = class_name(found["family"]), found["columns"]
    parts, totals = [], []
    for c in range(data.k):
        for column, values in zip(columns, found["members"][c], strict=True):
            theta = dict(zip(parameter_names(family), values, strict=True))
            rows: Any = _SomeColumns(data.rows, [column], c)
            totals.append(_plain_totals(family, theta, rows))
            parts += _member_evidence(family, theta, rows, _SomeColumns(data.rows, [column], ANY_CLASS))
    shape = (data.k, len(columns))
    sums = FamilyTotals(*(np.stack(each).reshape(*shape, *np.shape(each[0])) for each in zip(*totals, strict=True)))
    checked = [running_sums.family_sums_evidence(kept, sums, tol)]
    return [equations.worst_of_columns(parts), *checked] if parts else checked


def _member_evidence(family: str, theta: Theta, rows: Any, every: Any) -> list[MomentEvidence]:
    """Check a member on the rows of its class, or on `every` row where its class has none."""
    if rows.sum(_block_weight) > 0:
        checked = certify_family(family, theta, rows, None)
        value = log_likelihood(family, theta, rows)
        return [MomentEvidence(-value, -value if checked.holds else -math.inf, checked.checks)]
    if every.sum(_block_weight) > 0:
        checked = certify_family(family, theta, every, None)
        return [MomentEvidence(0.0, 0.0 if checked.holds else -math.inf, checked.checks)]
    return []


def _plain_totals(family: str, theta: Theta, rows: Any) -> tuple[float, Array, Array, float]:
    """Return Σ w, Σ w T (m,), Σ w T² (m,) and Σ w log h over rows of one column."""
    textbook = UNIVARIATE_FAMILIES[family]
    known = {name: theta[name] for name in textbook.known}
    sums = rows.sum(partial(_statistics, family, known))
    n, m = sums[0], (len(sums) - 1) // 2
    total = sums[1 : 1 + m]
    # log p = log h + η·T - A(η) whatever the parameters are
    log_h = log_likelihood(family, theta, rows) - n * textbook.score(theta, total / n) if n > 0 else 0.0
    return n, total, sums[1 + m :], log_h


def _statistics(family: str, known: Theta, block: Block) -> Array:
    T = UNIVARIATE_FAMILIES[family].T(dense(block.X)[:, 0], known)
    return np.concatenate([[block.w.sum()], block.w @ T, block.w @ T**2])


def _block_weight(block: Block) -> float:
    return float(block.w.sum())
