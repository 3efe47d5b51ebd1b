"""Parameters that an estimator does not have, refused in words: what was meant, or why it is not here."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any

from certifit.core.settings import did_you_mean

Init = Callable[..., None]


def refusing_unknown(init: Init) -> Init:
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
