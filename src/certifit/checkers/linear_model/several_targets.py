"""Linear models of several targets: each target is a problem of its own, and their proofs make one certificate."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array


def target_columns(y: Any) -> int | None:
    """The number of columns of y, an array, a frame or a list of names; None where it is one target (n,)."""
    if isinstance(y, (list, tuple)) and len(y) and all(isinstance(name, str) for name in y):
        return len(y)
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        return len(y[0])
    return int(shape[1]) if shape is not None and len(shape) == 2 else None


def only_column(y: Any) -> Any:
    """The one column of a y that has one: its name, or its values (n,)."""
    if isinstance(y, (list, tuple)) and isinstance(y[0], str):
        return y[0]
    return y[:, 0] if hasattr(y, "__dask_graph__") and hasattr(y, "chunks") else np.asarray(y)[:, 0]


def pick_target(number: int, y: Array | None, w: Array) -> tuple[Array | None, Array]:
    """Targets and weights of one target alone, for `Rows.relabel`."""
    return (y if y is None or y.ndim == 1 else np.ascontiguousarray(y[:, number])), w


def target_strength(alpha: Any, number: int, targets: int) -> Any:
    """The strength of one target's penalty, where each may have its own."""
    if np.ndim(alpha) == 0:
        return alpha
    if np.size(alpha) not in (1, targets):
        raise DataError(
            got=f"{np.size(alpha)} penalties for {targets} targets",
            wanted="one, or one for each target",
            fix=f"Number of targets and number of penalties do not correspond: {np.size(alpha)} != {targets}.",
        )
    return float(np.broadcast_to(np.ravel(alpha), targets)[number])


def target_model(model: Any, number: int) -> Any:
    """A fitted model of one target alone, from one of several: its own coefficients, alpha and deviance."""
    one, targets = copy.copy(model), len(model.coef_)
    one.coef_ = np.asarray(model.coef_)[number]
    one.intercept_ = np.float64(np.broadcast_to(np.ravel(model.intercept_), targets)[number])
    for name in ("alpha", "alpha_"):
        if name in vars(model):
            setattr(one, name, target_strength(getattr(model, name), number, targets))
    if "deviance_" in vars(model):
        one.deviance_ = float(np.asarray(model.deviance_)[number])
        one.covariance = None  # a fit of several targets computes none
    return one


def joint_certificate(found: Sequence[Certificate]) -> Certificate:
    """One certificate of all targets: objectives and bounds are added, and every target's gap must be small."""
    if len(found) == 1:
        return found[0]
    first, checks = found[0], []
    for k, one in enumerate(found):
        # A limit beyond the scale of the objective would allow anything.
        checks.append(Check(f"gap of target {k}", one.gap, one.limit if one.limit <= one.scale else 0.0))
        checks += [Check(f"target {k}: {c.name}", c.residual, c.limit) for c in one.checks]
    width = max((len(row) for one in found for row in one.parameter_error), default=0)
    unknown = ((np.inf,) * width,)
    return Certificate(
        first.kind,
        f"{first.claim}, for each of {len(found)} targets",
        sum(one.objective for one in found),
        sum(one.bound for one in found),
        first.tol,
        sum(one.limit for one in found),
        tuple(checks),
        scale=sum(one.scale for one in found),
        parameter_error=tuple(row for one in found for row in (one.parameter_error or unknown)) if width else (),
    )
