"""What members of a bag say of rows, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from certifit.rows import Array


def member_answers(member: Any, X: Any, classes: int) -> Array:
    """Probabilities of the classes (n, k), or votes where a member has none; predictions (n, 1) of amounts."""
    if not classes:
        return np.asarray(member.predict(X), np.float64).reshape(-1, 1)
    n = X.shape[0]
    found = np.zeros((n, classes))
    if hasattr(member, "predict_proba"):
        found[:, np.asarray(member.classes_).astype(np.int64)] = member.predict_proba(X)
    else:
        found[np.arange(n), np.asarray(member.predict(X)).astype(np.int64)] = 1.0
    return found


def unseen_answers(members: Iterable[tuple[Any, Array, Array]], X: Any, classes: int, weight: Array) -> Array:
    """The mean answer of the members that did not see each row (n, k), NaN where there is none.

    Each member comes with its columns and with what rows count for it.
    """
    n = X.shape[0]
    total, count = np.zeros((n, max(classes, 1))), np.zeros(n)
    for member, columns, drawn in members:
        out = np.flatnonzero((drawn == 0) & (weight > 0))
        if len(out):
            total[out] += member_answers(member, X[out][:, columns], classes)
            count[out] += 1
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)
