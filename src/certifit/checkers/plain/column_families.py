"""Which family each column has, as the setting `family` of mixtures and naive Bayes says it.

A family is a word ('inverse_gaussian'), a class of that name, or a member, whose known parameters are attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certifit.exceptions import DataError


def given_families(family: Any, d: int, names: Sequence[str]) -> list[Any]:
    """Return what the setting says of each column: one value for all, a list, or a dict by name or number."""
    if isinstance(family, Mapping):
        by_number = {names.index(key) if key in names else key: value for key, value in family.items()}
        given = [by_number[j] for j in range(d) if j in by_number]
    else:
        given = list(family) if isinstance(family, (list, tuple)) else [family] * d
    if len(given) != d:
        raise DataError(got=f"families for {len(given)} columns", wanted=f"one for each of the {d} columns")
    return given


def class_name(family: Any) -> str:
    """Return 'InverseGaussian' for the word 'inverse_gaussian', for the class, and for its members."""
    if isinstance(family, str):
        return "".join(part.capitalize() for part in family.split("_"))
    return (family if isinstance(family, type) else type(family)).__name__
