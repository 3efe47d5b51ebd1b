"""Where certifit's classes differ from scikit-learn's of the same name, and why.

Each parameter, default, fitted attribute and public method of scikit-learn's class is here too, or is ignored here,
or has a reason in the class's `differences`. `compare_pair` finds all that differs; `open_differences` all of it that
has no reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any

from certifit.migration.counterparts import Counterpart, counterparts
from certifit.migration.small_fits import documented_attributes, fitted_attributes

# Every fit sets these two from the table it gets, by scikit-learn's own validation.
_ALWAYS = {"n_features_in_", "feature_names_in_"}

# Why an argument of a method is in no class.
EVERYWHERE = {"check_input": "Every table is checked, which takes one look at each entry."}


@dataclass(frozen=True)
class Difference:
    """One name of scikit-learn's class that is not the same here."""

    owner: str  # the class or function, such as `KMeans`
    name: str
    kind: str  # parameter, default, attribute, method or argument
    theirs: str
    ours: str
    reason: str  # why; empty where nobody has said so

    @property
    def ignored(self) -> bool:
        return self.ours == "ignored"


def compare_pair(pair: Counterpart) -> tuple[Difference, ...]:
    """All that differs, parameters first."""
    found = [*_parameters(pair, signature(pair.ours), signature(pair.theirs))]
    if pair.is_class:
        found += [*_attributes(pair), *_methods(pair)]
    return tuple(found)


@cache
def all_differences() -> tuple[tuple[Counterpart, tuple[Difference, ...]], ...]:
    """Every pair with all that differs; the classes are fitted to small tables for this."""
    return tuple((pair, compare_pair(pair)) for pair in counterparts())


def open_differences() -> list[Difference]:
    """Names that are neither here, nor ignored, nor explained."""
    return [one for _, found in all_differences() for one in found if not one.reason and not one.ignored]


def parameter_differences(pair: Counterpart) -> dict[str, Difference]:
    """The parameters that differ, by name; nothing is fitted for this."""
    return {one.name: one for one in _parameters(pair, signature(pair.ours), signature(pair.theirs))}


def _parameters(pair: Counterpart, ours: Signature, theirs: Signature) -> Iterator[Difference]:
    """Parameters that are missing, ignored, or have another place or default; "deprecated" and "warn" are none."""
    here = ours.parameters
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in here.values())
    for place, (name, wanted) in enumerate(theirs.parameters.items()):
        if wanted.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            continue
        default, reason = _words(wanted), pair.reasons.get(name, "")
        if name not in here:
            if not takes_any:
                yield Difference(pair.name, name, "parameter", default, "not there", reason)
        elif name in pair.ignored:
            yield Difference(pair.name, name, "parameter", default, "ignored", reason)
        elif wanted.default not in ("deprecated", "warn") and not _same(wanted.default, here[name].default):
            yield Difference(pair.name, name, "default", default, _words(here[name]), reason)
        elif wanted.kind is Parameter.POSITIONAL_OR_KEYWORD and not _at(place, here[name], ours):
            yield Difference(pair.name, name, "parameter", f"at place {place + 1}", "by name", reason)


def _at(place: int, parameter: Parameter, ours: Signature) -> bool:
    """Whether a call that gives this parameter without its name reaches it here too."""
    same = [*ours.parameters].index(parameter.name) == place
    return same and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD


def _same(a: Any, b: Any) -> bool:
    """Whether two defaults are equal; functions are, where both libraries have them under one name."""
    if callable(a) and callable(b):
        return getattr(a, "__name__", a) == getattr(b, "__name__", b)
    return a is b or (type(a) is type(b) and a == b) or (isinstance(a, int | float) and a == b)


def _words(parameter: Parameter) -> str:
    if parameter.default is Parameter.empty:
        return "no default"
    default = parameter.default
    return getattr(default, "__name__", None) or repr(default)


def _attributes(pair: Counterpart) -> Iterator[Difference]:
    ours = fitted_attributes(pair, pair.ours)
    theirs = fitted_attributes(pair, pair.theirs) | documented_attributes(pair.theirs)
    for name in sorted(theirs - ours - _ALWAYS):
        yield Difference(pair.name, name, "attribute", "fitted", "not there", pair.reasons.get(name, ""))


def _methods(pair: Counterpart) -> Iterator[Difference]:
    for name in sorted(public_methods(pair.theirs)):
        if re.fullmatch(r"set_\w+_request", name):
            continue  # scikit-learn makes it of a method's arguments, which are compared
        reason = pair.reasons.get(name, "")
        if not hasattr(pair.ours, name):
            yield Difference(pair.name, name, "method", "method", "not there", reason)
        else:
            yield from _arguments(pair, name)


def _arguments(pair: Counterpart, method: str) -> Iterator[Difference]:
    """Arguments of a method that are not taken here."""
    here = signature(getattr(pair.ours, method)).parameters
    if any(one.kind is Parameter.VAR_KEYWORD for one in here.values()):
        return
    for name, wanted in signature(getattr(pair.theirs, method)).parameters.items():
        if name not in here and wanted.kind is not Parameter.VAR_KEYWORD:
            full = f"{method}({name})"
            reason = pair.reasons.get(full) or EVERYWHERE.get(name, "")
            yield Difference(pair.name, full, "argument", _words(wanted), "not there", reason)


def public_methods(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name, None))}
