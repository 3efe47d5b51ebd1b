"""The values that the settings of an estimator may have, declared in its class and checked before every fit.

    class KMeans(Estimator):
        settings = {**LOOP, "n_clusters": Setting(int, least=1), "init": Setting(choices=("k-means++", "random"))}

Parameters that are True or False by default, or have one of the `USUAL` names, need no declaration. A wrong setting
is an error that says what was got and what was wanted. As in scikit-learn, `__init__` checks nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any

import numpy as np

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
    text: bool = False  # whether any word is allowed, which is looked up where it is used
    fix: str = ""  # what to do about a wrong value

    def accepts(self, value: Any) -> bool:
        if self.path and isinstance(value, (str, os.PathLike)):
            return bool(os.fspath(value))
        if value is None or isinstance(value, str):
            return self.none if value is None else self.text or value in self.choices
        return self._is_number(value) or self._is_other(value)

    def _is_other(self, value: Any) -> bool:
        try:
            return self.other is not None and bool(self.other(value))
        except (TypeError, ValueError):  # it is of a kind that `other` cannot even look at
            return False

    def _is_number(self, value: Any) -> bool:
        if self.kind is None or self.kind is bool:
            return self.kind is bool and (isinstance(value, bool) or type(value).__name__ == "bool")
        if self.kind is float and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
            value = value.item()  # a number as NumPy may hand it out
        if isinstance(value, bool):
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
            return f"a {name} between {_in_words(low)} and {_in_words(high)}"
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


def _in_words(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"


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


def is_array(value: Any) -> bool:
    """Whether a value is an array of numbers, or a list of them."""
    try:
        return np.ndim(np.asarray(value, dtype=np.float64)) > 0
    except (TypeError, ValueError):
        return False


def is_splitter(value: Any) -> bool:
    """Whether a value says what rows are held out: a splitter, or pairs of row numbers."""
    if hasattr(value, "split"):
        return True
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value)
    return isinstance(value, Iterable)


Settings = Mapping[str, Setting]
TOL = Setting(float, least=0)
MAX_TIME = Setting(float, least=0, none=True)  # seconds; None for no limit
LOOP: Settings = {"tol": TOL, "max_iter": Setting(int, least=0), "max_time": MAX_TIME}
ARRAY = Setting(none=True, other=is_array, other_words="an array of numbers")  # its shape is checked beside the rows
MAPPING = Setting(none=True, other=lambda value: isinstance(value, Mapping), other_words="a dict")
# What parameters of these names may be wherever they occur.
USUAL: Settings = {
    **dict.fromkeys(("class_prior", "means_init", "mean_prior", "parameters_init"), ARRAY),
    **dict.fromkeys(("precisions_init", "priors", "weights_init"), ARRAY),
    "categorical_features": Setting(
        none=True, text=True, other=lambda value: isinstance(value, Iterable), other_words="a list of columns"
    ),
    "class_weight": replace(MAPPING, choices=("balanced",)),
    "coef0": Setting(float, above=-math.inf, below=math.inf, none=True),
    "covariance_prior": Setting(float, above=0, below=math.inf, none=True, other=is_array, other_words="an array"),
    "cv": Setting(int, least=2, none=True, other=is_splitter, other_words="a splitter or pairs of row numbers"),
    "estimator": Setting(
        none=True,
        other=lambda value: hasattr(value, "fit") and not isinstance(value, type),
        other_words="an estimator",
    ),
    "importance_getter": Setting(text=True, other=callable, other_words="the name of an attribute or a function"),
    "interaction_cst": Setting(
        none=True,
        text=True,
        other=lambda value: isinstance(value, Collection) and all(isinstance(group, Iterable) for group in value),
        other_words="a list of groups of columns",
    ),
    "kernel_params": MAPPING,
    "monotonic_cst": Setting(
        none=True,
        other=lambda value: isinstance(value, Mapping) or is_array(value),
        other_words="-1, 0 or 1 for each column",
    ),
    "n_jobs": Setting(int, none=True),
    "random_state": Setting(
        int,
        least=0,
        most=2**32 - 1,
        none=True,
        other=lambda value: value is np.random or isinstance(value, np.random.RandomState),
        other_words="a RandomState",
    ),
    "scoring": Setting(none=True, text=True, other=callable, other_words="the name of a score, a function"),
    "verbose": Setting(int, least=0, other=lambda value: Setting(bool).accepts(value), other_words="True or False"),
}


def usual_settings(init: Callable[..., None]) -> Settings:
    """What parameters of `init` may be: True or False where they are so by default, else the `USUAL`.

    None stands for a default: without one it is no value.
    """
    defaults = {name: one.default for name, one in signature(init).parameters.items()}
    found = {name: Setting(bool) for name, default in defaults.items() if isinstance(default, bool)}
    for name in USUAL.keys() & defaults.keys():
        usual = USUAL[name]
        found[name] = replace(usual, none=False) if defaults[name] is Parameter.empty else usual
    return found
