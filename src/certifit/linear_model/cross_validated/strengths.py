"""Strengths of a penalty to choose from, refused by the one that is wrong."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from certifit.exceptions import DataError


def refuse_strengths(alphas: Any, positive: bool = False) -> None:
    """Refuse an array with a strength that is no number, or below 0; at 0 too where it must be `positive`."""
    if np.ndim(alphas) != 1 and not (positive and isinstance(alphas, Real)):
        return
    sign = ">" if positive else ">="
    for i, alpha in enumerate(np.ravel(np.asarray(alphas, dtype=object))):
        if isinstance(alpha, bool) or not isinstance(alpha, Real):
            raise TypeError(f"alphas[{i}] must be an instance of float, not {type(alpha).__name__}")
        if not (float(alpha) > 0 or (alpha == 0 and not positive)):
            why = ": the identity of leave-one-out needs a penalty" if positive else ""
            raise DataError(
                got=f"a strength that is no penalty: alphas[{i}] == {alpha}, must be {sign} 0.0",
                wanted=f"strengths {sign} 0{why}",
                fix="Leave it out, or use cv=5." if positive and alpha == 0 else "Leave it out.",
            )
