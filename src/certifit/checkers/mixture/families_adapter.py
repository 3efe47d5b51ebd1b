"""A fitted `Mixture` of families, handed to its checker as words and arrays.

The family of each column is read from the setting `family`: a word ('poisson'), a class, or a member whose known
parameters are attributes. `checkers.plain.univariate_families` says which parameters a family has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.mixture import families as checker
from certifit.checkers.mixture.adapter import reported_fit
from certifit.checkers.mixture.column_survey import dense_rows
from certifit.checkers.plain.univariate_families import UNIVARIATE_FAMILIES, Theta
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.checks import TableTerms


def audit_mixture(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted Mixture on these rows, whose entries may be missing."""
    d = model.n_features_in_
    rows = dense_rows(fitted_rows(model, d, X, None, sample_weight, TableTerms(missing=True)))
    given = _given_families(model.family, d, list(getattr(model, "feature_names_in_", ())))
    columns = [_column(value, int(size)) for value, size in zip(given, model.prior_["sizes"], strict=True)]
    widths = [column.known.get("k", len(UNIVARIATE_FAMILIES[column.family].free)) for column in columns]
    parts = np.split(numbers(model, "parameters_"), np.cumsum(widths)[:-1], axis=1)
    weights = numbers(model, "weights_")
    theta = [
        [_parameters(column, part[i]) for column, part in zip(columns, parts, strict=True)]
        for i in range(len(weights))
    ]
    fitted = checker.FittedFamilyMixture(weights, columns, theta, float(model.smoothing))
    other = sum(_class_name(word) != column.family for word, column in zip(model.families_, columns, strict=True))
    more = (Check("families_ other than family", float(other), 0.0),)
    return checker.certify(fitted, tol, rows, reported_fit(model), more)


def _given_families(family: Any, d: int, names: Sequence[str]) -> list[Any]:
    """Return what the setting says of each column: one value for all, a list, or a dict by name or number."""
    if isinstance(family, Mapping):
        by_number = {names.index(key) if key in names else key: value for key, value in family.items()}
        return [by_number[j] for j in range(d)]
    return list(family) if isinstance(family, (list, tuple)) else [family] * d


def _class_name(family: Any) -> str:
    """Return 'InverseGaussian' for the word 'inverse_gaussian', for the class, and for its members."""
    if isinstance(family, str):
        return "".join(part.capitalize() for part in family.split("_"))
    return (family if isinstance(family, type) else type(family)).__name__


def _column(given: Any, classes: int) -> checker.FamilyColumn:
    name = _class_name(given)
    if name not in UNIVARIATE_FAMILIES:
        raise DataError(got=f"family {given!r}", wanted=f"one of {', '.join(UNIVARIATE_FAMILIES)}")
    known = {key: getattr(given, key) for key in UNIVARIATE_FAMILIES[name].known}
    return checker.FamilyColumn(name, {"k": classes} if name == "Categorical" else known)


def _parameters(column: checker.FamilyColumn, values: Array) -> Theta:
    if column.family == "Categorical":
        return {"p": values}
    return dict(zip(UNIVARIATE_FAMILIES[column.family].free, values.tolist(), strict=True))
