"""A fitted `Mixture` of families, handed to its checker as words and arrays.

The family of each column is read from the setting `family`: a word ('poisson'), a class, or a member whose known
parameters are attributes. `checkers.plain.univariate_families` says which parameters a family has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.mixture import families as checker
from certifit.checkers.mixture.adapter import reported_fit
from certifit.checkers.mixture.column_survey import dense_rows
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.column_families import class_name, given_families
from certifit.checkers.plain.univariate_families import UNIVARIATE_FAMILIES, Theta
from certifit.checkers.problem import Problem
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows
from certifit.rows.checks import TableTerms


def audit_mixture(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted Mixture on these rows, whose entries may be missing."""
    d = model.n_features_in_
    rows = dense_rows(fitted_rows(model, d, X, None, sample_weight, TableTerms(missing=True)))
    names = list(getattr(model, "feature_names_in_", ()))
    given = given_families(model.family, d, names)
    categorical = [j for j, value in enumerate(given) if class_name(value) == "Categorical"]
    sizes = largest_classes(rows) if categorical else np.zeros(d, np.int64)
    columns = [_column(value, int(size)) for value, size in zip(given, sizes, strict=True)]
    fitted = _fitted_mixture(model, columns)
    stored = [class_name(word) for word in model.families_]
    labels = [f"{label} {name}" for label, c in zip(names or range(d), columns, strict=True) for name in _names(c)]
    more = (
        Check("families_ other than family", float(stored != [c.family for c in columns]), 0.0),
        Check("parameter_names_ other than the columns'", float(list(model.parameter_names_) != labels), 0.0),
    )
    return checker.certify(fitted, tol, rows, reported_fit(model), more, model.prior_)


def mixture_problem(model: Any) -> Problem:
    """The same for mixtures of as many components of the same families and the same smoothing."""
    families = ", ".join(map(str, model.families_))
    return Problem(
        f"log-likelihood of {len(model.weights_)} components of {families}", f"smoothing={model.smoothing}"
    )


def _fitted_mixture(model: Any, columns: list[checker.FamilyColumn]) -> checker.FittedFamilyMixture:
    """Return the fitted attributes; an error where their shapes are not those of settings and columns."""
    widths = [len(_names(column)) for column in columns]
    parameters, weights, k = numbers(model, "parameters_"), numbers(model, "weights_"), int(model.n_components)
    if parameters.shape != (k, sum(widths)) or weights.shape != (k,):
        raise DataError(
            got=f"weights_ and parameters_ of shapes {weights.shape} and {parameters.shape}",
            wanted=f"{(k,)} and {(k, sum(widths))}, as n_components, family and the rows say",
            fix="Fit it again: settings were changed after the fit, or attributes were, or these are other rows.",
        )
    parts = np.split(parameters, np.cumsum(widths)[:-1], axis=1)
    theta = [[_parameters(column, part[i]) for column, part in zip(columns, parts, strict=True)] for i in range(k)]
    return checker.FittedFamilyMixture(weights, columns, theta, float(model.smoothing))


def _names(column: checker.FamilyColumn) -> list[str]:
    """Return the names of the free parameters of a column."""
    if column.family == "Categorical":
        return [f"p{v}" for v in range(column.known["k"])]
    return list(UNIVARIATE_FAMILIES[column.family].free)


def largest_classes(rows: Rows) -> Array:
    """Return one more than the largest entry of each column (d,) among rows that count."""
    found = np.fmax.reduce(rows.each(_largest_entries), axis=0)
    return np.floor(np.clip(found, -1, 1e9)).astype(np.int64) + 1


def _largest_entries(block: Block) -> Array:
    return np.fmax.reduce(dense(block.X)[block.w > 0], axis=0, initial=-1.0)


def _column(given: Any, classes: int) -> checker.FamilyColumn:
    name = class_name(given)
    if name not in UNIVARIATE_FAMILIES:
        raise DataError(got=f"family {given!r}", wanted=f"one of {', '.join(UNIVARIATE_FAMILIES)}")
    known = {key: getattr(given, key) for key in UNIVARIATE_FAMILIES[name].known}
    return checker.FamilyColumn(name, {"k": classes} if name == "Categorical" else known)


def _parameters(column: checker.FamilyColumn, values: Array) -> Theta:
    if column.family == "Categorical":
        return {"p": values}
    return dict(zip(UNIVARIATE_FAMILIES[column.family].free, values.tolist(), strict=True))
