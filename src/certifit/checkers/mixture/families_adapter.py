"""A fitted `Mixture`, checked on its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.mixture import families as checker
from certifit.checkers.mixture.adapter import said
from certifit.core import Certificate
from certifit.families import Categorical
from certifit.families.column_families import column_families
from certifit.mixture.families.columns import dense_rows
from certifit.rows import Array


def audit_mixture(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Mixture; rows may have holes."""
    d = model.n_features_in_
    likes = column_families(model.family, d, list(getattr(model, "feature_names_in_", ())))
    rows = dense_rows(fitted_rows(model, d, X, None, sample_weight, "none", missing=True))
    columns, ends = [], []
    for like, size in zip(likes, model.prior_["sizes"], strict=True):
        classes = {"k": int(size)} if isinstance(like, Categorical) else {}
        columns.append(checker.Column(type(like).__name__, {**like.known_values, **classes}))
        ends.append(int(size) if classes else len(_free(like)))
    parts = np.split(numbers(model, "parameters_"), np.cumsum(ends)[:-1], axis=1)
    theta = [
        [_theta(like, part[i]) for like, part in zip(likes, parts, strict=True)] for i in range(len(model.weights_))
    ]
    return checker.certify(numbers(model, "weights_"), columns, theta, float(model.smoothing), tol, rows, said(model))


def _free(like: Any) -> list[str]:
    return [name for name in like.parameters if name not in like.known]


def _theta(like: Any, values: Array) -> dict[str, Any]:
    if isinstance(like, Categorical):
        return {"p": values}
    return dict(zip(_free(like), values.tolist(), strict=True))
