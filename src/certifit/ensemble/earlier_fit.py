"""What a fit with `warm_start` goes on from: an earlier fit to a table of the same columns and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.core import Attributes
from certifit.exceptions import DataError


def earlier_fit(model: Any, previous: Attributes, n_features: int, classes: Any = None) -> Attributes:
    """The attributes of the fit before, or none without `warm_start`; other columns or classes are refused."""
    if not model.warm_start or "certificate_" not in previous:
        return {}
    before = int(previous["n_features_in_"])
    if before != n_features:
        raise _other_table(f"{n_features} columns", f"the {before} of the fit before")
    known = previous.get("classes_")
    if not _are_same(known, classes):
        raise _other_table(f"the classes {_words(classes)}", f"those of the fit before, {_words(known)}")
    return previous


def _other_table(got: str, wanted: str) -> DataError:
    return DataError(got=f"{got} with warm_start=True", wanted=wanted, fix="warm_start=False begins anew.")


def _columns(classes: Any) -> list[Any]:
    """The classes of each target, of which there may be several, or none."""
    if classes is None:
        return []
    return list(classes) if isinstance(classes, list) else [classes]


def _are_same(one: Any, other: Any) -> bool:
    a, b = _columns(one), _columns(other)
    return len(a) == len(b) and all(map(np.array_equal, a, b))


def _words(classes: Any) -> str:
    return "; ".join(str(np.asarray(column).tolist()) for column in _columns(classes))
