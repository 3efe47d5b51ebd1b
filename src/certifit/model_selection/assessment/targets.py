"""Targets that no estimator can learn, told in words before any is fitted."""

from __future__ import annotations

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array


def check_kind(target: Array, classes: bool) -> None:
    """Refuse labels that cannot be sorted, such as words and None, and words for a regressor."""
    if classes and target.dtype.kind == "O":
        kinds = sorted({type(value).__name__ for value in target.tolist()})
        if "NoneType" in kinds or (len(kinds) > 1 and "str" in kinds):
            raise DataError(
                got=f"targets of several types: {', '.join(kinds)}", wanted="labels of one type, none missing",
                fix="Leave rows without a label out, or make all labels words.",
            )  # fmt: skip
    if not classes and target.dtype.kind in "OUS":
        try:
            target.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                got=f"targets that are no numbers ({error})", wanted="numbers, for a regressor",
                fix="A classifier takes words.",
            ) from error  # fmt: skip
