"""The values that the settings of an estimator may have, declared in its class and checked before every fit.

    class KMeans(Estimator):
        settings = {**LOOP, "n_clusters": Setting(int, least=1), "init": Setting(choices=("k-means++", "random"))}

A wrong setting is an error that says what was got and what was wanted. As in scikit-learn, `__init__` checks nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any

from certifit.exceptions import DataError


@dataclass(frozen=True)
class Setting:
    """The values that a setting may have: numbers between limits, words, or whatever `other` accepts.

    >>> Setting(int, least=1).wanted
    'a whole number of at least 1'
    >>> Setting(float, above=0, below=math.inf).wanted
    'a finite number above 0'
    >>> Setting(float, least=0, choices=("scale", "auto")).wanted
    "'scale', 'auto' or a number of at least 0"
    >>> Setting(choices=("hinge", "squared_hinge")).wanted
    "one of 'hinge', 'squared_hinge'"
    """

    kind: type | None = None  # int, float or bool; None where no number is allowed
    least: float | None = None  # the smallest number allowed
    above: float | None = None  # all numbers are larger than this
    most: float | None = None  # the largest number allowed
    below: float | None = None  # all numbers are smaller than this; inf for finite numbers
    choices: Collection[str] = ()  # words that are allowed too
    none: bool = False  # whether None is allowed
    other: Callable[[Any], bool] | None = None  # whether some further value is allowed
    other_words: str = ""  # what `other` accepts, in words
    path: bool = False  # whether the name of a file is allowed
    fix: str = ""  # what to do about a wrong value

    def accepts(self, value: Any) -> bool:
        if self.path and isinstance(value, (str, os.PathLike)):
            return bool(os.fspath(value))
        if value is None or isinstance(value, str):
            return self.none if value is None else value in self.choices
        return self._is_number(value) or (self.other is not None and bool(self.other(value)))

    def _is_number(self, value: Any) -> bool:
        if self.kind is None or self.kind is bool:
            return self.kind is bool and (isinstance(value, bool) or type(value).__name__ == "bool")
        if self.kind is float and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
            value = value.item()  # a number as NumPy may hand it out
        if isinstance(value, bool) and self.kind is int:
            return False
        if not isinstance(value, Integral if self.kind is int else Real):
            return False
        number: Any = value  # as it is: a whole number may be too large for a float
        return bool(
            number == number  # NaN is not
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
            and (self.below is None or number < self.below)
        )

    @property
    def wanted(self) -> str:
        """The values allowed, in words."""
        words = [*map(repr, self.choices)]
        if self.kind is None and words and not (self.none or self.other):
            return f"one of {', '.join(words)}"
        if self.kind is not None:
            words.append(self._number_words())
        if self.other_words:
            words.append(self.other_words)
        if self.path:
            words.append("the path of a file")
        if self.none:
            words.append("None")
        return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]

    def _number_words(self) -> str:
        if self.kind is bool:
            return "True or False"
        name = "whole number" if self.kind is int else "number"
        if self.below == math.inf:
            name = f"finite {name}"
        low, high = self.least, self.most
        if low is not None and high is not None:
            return f"a {name} between {low:g} and {high:g}"
        limits = [
            f"of at least {low:g}" if low is not None else "",
            f"above {self.above:g}" if self.above is not None else "",
            f"of at most {high:g}" if high is not None else "",
            f"below {self.below:g}" if self.below not in (None, math.inf) else "",
        ]
        return " ".join([f"a {name}", " and ".join(limit for limit in limits if limit)]).rstrip()

    def check(self, name: str, value: Any) -> None:
        if not self.accepts(value):
            meant = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            raise DataError(got=f"{name}={value!r}", wanted=self.wanted, fix=f"{meant} {self.fix}".strip())


def did_you_mean(word: str, words: Collection[str]) -> str:
    """A question that names the word most like a misspelt one; empty where none is like it.

    >>> did_you_mean("n_cluster", ("n_clusters", "init"))
    "Did you mean 'n_clusters'?"
    """
    folded = {known.casefold(): known for known in words}
    near = get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return f"Did you mean {folded[near[0]]!r}?" if near else ""


def refusing_unknown(init: Callable[..., None]) -> Callable[..., None]:
    """`init`, with a sentence of its own for a parameter that it does not have."""
    parameters = signature(init).parameters
    if any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values()):
        return init

    @wraps(init)
    def checked(self: Any, *arguments: Any, **settings: Any) -> None:
        for name in settings:
            if name not in parameters:
                raise TypeError("Got {got}; wanted {wanted}. {fix}".format(**unknown_parameter(type(self), name)))
        init(self, *arguments, **settings)

    return checked


def unknown_parameter(kind: Any, name: str) -> dict[str, str]:
    """What was got, what was wanted and what to do about a parameter that this class does not have."""
    known = kind._get_param_names()
    why = kind.differences.get(name) or did_you_mean(name, known) or "Leave it out."
    return {
        "got": f"the parameter {name!r}, which {kind.__name__} does not have",
        "wanted": f"one of {', '.join(known)}" if known else "no parameter",
        "fix": why,
    }


Settings = Mapping[str, Setting]
TOL = Setting(float, least=0)
MAX_TIME = Setting(float, least=0, none=True)  # seconds; None for no limit
LOOP: Settings = {"tol": TOL, "max_iter": Setting(int, least=0), "max_time": MAX_TIME}
