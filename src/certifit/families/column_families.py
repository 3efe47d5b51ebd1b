"""The families of distributions of the columns of a table, each given as a word, a class or a member.

Naive Bayes and mixtures use it: `column_families` turns the user's setting into one member for each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.families import (
    Bernoulli,
    Beta,
    Categorical,
    Exponential,
    Family,
    Gamma,
    Gaussian,
    Geometric,
    InverseGaussian,
    Poisson,
)

# Each family is represented by one of its members, all of whose parameters are to be estimated.
FAMILY_WORDS: dict[str, Family] = {
    "bernoulli": Bernoulli(0.5),
    "beta": Beta(1.0, 1.0),
    "categorical": Categorical(np.ones(1)),
    "exponential": Exponential(1.0),
    "gamma": Gamma(1.0, 1.0),
    "gaussian": Gaussian(0.0, 1.0),
    "geometric": Geometric(0.5),
    "inverse_gaussian": InverseGaussian(1.0, 1.0),
    "poisson": Poisson(1.0),
}


def column_families(
    given: Any, d: int, names: Sequence[str], *, advice: str = "For vectors use GaussianMixture."
) -> list[Family]:
    """Return a member of each column's family, from a family for all, a list, or a dict by column name or number.

    The member carries the known parameters. `advice` ends the message that refuses anything else.

    >>> column_families({"visits": "poisson", "ill": "bernoulli"}, 2, ["ill", "visits"])
    [Bernoulli(p=0.5), Poisson(rate=1.0)]
    """
    if isinstance(given, Mapping):
        found = {names.index(key) if key in names else key: value for key, value in given.items()}
        if sorted(map(str, found)) != sorted(map(str, range(d))):
            raise DataError(
                got=f"families for the columns {list(given)}",
                wanted=f"one for each of the columns {list(names) or list(range(d))}",
            )
        given = [found[j] for j in range(d)]
    elif not isinstance(given, (list, tuple)):
        given = [given] * d
    if len(given) != d:
        raise DataError(got=f"{len(given)} families", wanted=f"one for each of the {d} columns")
    return [_member(value, advice) for value in given]


def only_counts(given: Any) -> bool:
    """Return whether all families are of whole numbers, False where some word is not a family's.

    >>> only_counts("poisson"), only_counts(["poisson", "gamma"])
    (True, False)
    """
    values = given.values() if isinstance(given, Mapping) else given if isinstance(given, (list, tuple)) else [given]
    try:
        return all(_member(value).support.discrete for value in values)
    except DataError:
        return False


def family_name(member: Family) -> str:
    """Return the word for a family: 'inverse_gaussian' for InverseGaussian."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(member).__name__).strip("_")


def _member(value: Any, advice: str = "") -> Family:
    """Return the member that a word, a class or a member stands for."""
    if isinstance(value, type):  # a family whose parameters are all free
        value = next((member for member in FAMILY_WORDS.values() if type(member) is value), value)
    if isinstance(value, str):
        value = FAMILY_WORDS.get(value, value)
    if isinstance(value, Family) and not value.support.vector:
        return value
    raise DataError(
        got=f"family {value.__name__ if isinstance(value, type) else repr(value)}",
        wanted=f"one of {', '.join(FAMILY_WORDS)}, or a family of numbers from certifit.families",
        fix=f"Where parameters are known, give a member: Binomial(0.5, n=10). {advice}".strip(),
    )
