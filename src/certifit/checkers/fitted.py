"""What every auditor reads of a fitted object: its numbers, and the rows it was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


def chosen_or_set(model: Any, name: str) -> str:
    """The attribute that holds a setting: `alpha_` where a search chose it, else `alpha`.

    Of ours only a search leaves it; any other model that has one got it from somebody else.
    """
    searched = not isinstance(model, Estimator) or type(model).__name__.endswith("CV")
    return f"{name}_" if searched and hasattr(model, f"{name}_") else name


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
