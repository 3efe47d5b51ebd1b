"""What a fitted selector states: the columns it keeps, numbers of a shape, how many columns its settings ask for."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array


def asked_columns(asked: Any, d: int, name: str) -> int:
    """Return a number of columns that is given as such or as a share of all d columns, rounded up."""
    whole = isinstance(asked, Integral) and not isinstance(asked, bool)
    if not (whole and 1 <= int(asked) <= d) and not (isinstance(asked, Real) and not whole and 0 < float(asked) <= 1):
        raise DataError(
            got=f"{name}={asked!r} for {d} columns",
            wanted=f"a whole number from 1 to {d}, or a share above 0 and at most 1.0",
        )
    return int(asked) if whole else int(np.ceil(float(asked) * d))


def support_of(model: Any) -> Array:
    """The columns kept (d,), as the mask that it must be."""
    support = np.asarray(model.support_)
    if support.dtype != bool or support.shape != (model.n_features_in_,):
        raise DataError(
            got=f"support_ of shape {support.shape} and type {support.dtype}",
            wanted=f"True or False for each of {model.n_features_in_} columns",
        )
    return support


def shaped(model: Any, name: str, values: Any, shape: tuple[int | None, ...]) -> Array:
    """A fitted array of this shape (None: any length), refused otherwise."""
    found = np.asarray(values)
    fits = found.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, found.shape, strict=True))
    if not fits or found.dtype.kind not in "iufb":
        raise DataError(
            got=f"{name} of shape {found.shape} and type {found.dtype} in a fitted {type(model).__name__}",
            wanted=f"numbers of shape ({', '.join('…' if n is None else str(n) for n in shape)})",
        )
    return found
