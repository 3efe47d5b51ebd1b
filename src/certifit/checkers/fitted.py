"""What every auditor reads of a fitted object: its numbers, and the rows it was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.core import Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, as_rows
from certifit.rows.checks import TableTerms, Target


@dataclass(frozen=True)
class AuditTuning:
    """The tolerance of an auditor who names none: never the model's alone, which anybody may set."""

    foreign: float = 1e-4  # for other libraries' models, whose own `tol` means something else
    loosest: float = 1e-2  # for ours: what the fit asked of itself, up to this


def numbers(model: Any, name: str) -> Array:
    """A fitted attribute as float64, finite."""
    stored = getattr(model, name)
    try:
        values = np.asarray(stored.toarray() if sparse.issparse(stored) else stored, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _no_numbers(model, name, stored) from error
    if stored is None:
        raise _no_numbers(model, name, stored)
    if not np.isfinite(values).all():
        raise DataError(
            got=f"{name} with NaN or infinity in a fitted {type(model).__name__}",
            wanted="finite numbers",
            fix="The fit failed: nothing can be proved about it.",
        )
    return values


def _no_numbers(model: Any, name: str, stored: Any) -> DataError:
    got = "None" if stored is None else f"a {type(stored).__name__} that is no table of numbers"
    fix = "Leave its attributes as the fit left them."
    return DataError(got=f"{name}, {got}, in a {type(model).__name__}", wanted="finite numbers", fix=fix)


def exact_shape(model: Any, name: str, shape: tuple[int, ...]) -> Array:
    """The same; of our own models refused in any other shape, since they predict by it as it is."""
    values = numbers(model, name)
    if isinstance(model, Estimator) and values.shape != shape:
        raise DataError(
            got=f"{name} of shape {values.shape} in a {type(model).__name__}",
            wanted=f"shape {shape}",
            fix="Leave its attributes as the fit left them.",
        )
    return values


def check_plain_attributes(model: Any) -> None:
    """Refuse fitted attributes of our own models that are not what a fit leaves: plain arrays of real numbers.

    Masked arrays, matrices, complex numbers and text have the values that an audit reads, and other answers from
    every method that computes with them.
    """
    _check_class_order(model)
    words = ("classes_", "feature_names_in_", "parameter_names_", "families_", "proved_zero_", "undecided_")
    optional = ("covariance_", "pvalues_", "weight_", "target_")
    width = vars(model).get("n_features_in_", 0)
    if type(width) is not int:
        raise DataError(got=f"n_features_in_ = {width!r}", wanted="a whole number of columns", fix="Fit it again.")
    for name, value in vars(model).items():
        if not name.endswith("_") or name.startswith("_") or name in (*model.diagnostics, *words):
            continue
        odd = isinstance(value, np.ndarray) and (
            type(value) not in (np.ndarray, np.memmap) or value.dtype.kind not in "biufV"
        )
        if odd or (value is None and name not in optional) or isinstance(value, complex):
            kind = f"{type(value).__name__} of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
            raise DataError(
                got=f"{name} as {kind} in a fitted {type(model).__name__}",
                wanted="plain arrays of real numbers, as fit leaves them",
                fix="Fit it again.",
            )
        for part in value if isinstance(value, (list, tuple)) else (value,):
            _check_parts(model, name, part)


def _check_parts(model: Any, name: str, value: Any) -> None:
    """The same for the arrays of which a fitted attribute, such as a tree, is made."""
    if not is_dataclass(value) or isinstance(value, type):
        return
    for one in fields(value):
        part = getattr(value, one.name)
        plain = type(part) in (np.ndarray, np.memmap) and part.dtype.kind in "biuf"
        if one.type in ("Array", Array) and not plain:
            kind = f"{type(part).__name__} of {part.dtype}" if isinstance(part, np.ndarray) else type(part).__name__
            raise DataError(
                got=f"{name}.{one.name} as {kind} in a fitted {type(model).__name__}",
                wanted="plain arrays of real numbers, as fit leaves them",
                fix="Fit it again.",
            )


def _check_class_order(model: Any) -> None:
    """Refuse classes that do not ascend, as every fit leaves them: where scores tie, their order decides."""
    found = getattr(model, "classes_", ())
    each = [np.asarray(one) for one in (found if isinstance(found, list) else [found])]  # a list of several targets'
    if not all(one.ndim == 1 and (one[:-1] < one[1:]).all() for one in each):
        raise DataError(
            got=f"classes_ that do not ascend in a fitted {type(model).__name__}",
            wanted="the sorted labels, each once",
            fix="Leave its attributes as the fit left them.",
        )


def setting(model: Any, name: str, allowed: Setting, default: Any = None) -> Any:
    """A setting of a fitted model, ours or another library's, refused where no fit could have had it."""
    value = getattr(model, name, default)
    allowed.check(f"{type(model).__name__}.{name}", value)
    return value


def fitted_rows(
    model: Any, width: int, X: Any, y: Any, sample_weight: Any, terms: Target | TableTerms = "none"
) -> Rows:
    """The rows a model was fitted on, with the columns it knows; `terms` may be the word for what y is."""
    terms = TableTerms(terms) if isinstance(terms, str) else terms
    alike = hasattr(model, "n_features_in_") and hasattr(model, "__sklearn_tags__")
    estimator = model if alike else None
    rows = as_rows(
        X,
        y,
        sample_weight,
        estimator=estimator,
        target=terms.target,
        targets=terms.targets,
        sparse=True,
        missing=terms.missing,
        reset=estimator is None,
    )
    if rows.n_features != width:
        raise DataError(
            got=f"rows of {rows.n_features} features",
            wanted=f"the {width} that the {'model' if model is None else type(model).__name__} was fitted on",
            fix="statsmodels counts its constant column: leave X out, or add it." if model is None else "",
        )
    return rows


def row_counts(rows: Rows, kinds: Sequence[int]) -> list[Array]:
    """How many rows each class of each target has, whatever they weigh: most libraries balance classes by these."""
    found = rows.sum(partial(_count_rows, tuple(kinds)))
    return np.split(found, np.cumsum(kinds)[:-1])


def _count_rows(kinds: tuple[int, ...], block: Block) -> Array:
    targets = np.asarray(block.y).reshape(len(block.w), -1).T
    return np.concatenate([np.bincount(codes, minlength=k) for codes, k in zip(targets, kinds, strict=True)])
