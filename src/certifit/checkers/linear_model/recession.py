"""Maximum likelihood that does not exist: a direction along which no row's deviance rises and some falls for ever.

A success (y = 1) allows its score to rise, a failure or a count of 0 to fall, anything between allows neither. The
direction is found by a linear program and checked row by row.
Reference: Albert & Anderson, "On the existence of maximum likelihood estimates in logistic regression models" (1984).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import qr
from scipy.optimize import linprog

from certifit.checkers.linear_model.likelihood import ROUNDING
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.response_losses import Spec
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums

LIMIT = 2**22  # entries (rows x parameters) up to which the linear program is tried
CLAIM = "the likelihood rises for ever along the direction below and has no maximum"


def _way(spec: Spec, y: Array) -> Array:
    """+1 where the score may rise for ever, -1 where it may fall, 0 where neither."""
    if spec.family == "binomial":
        return np.where(y >= 1, 1.0, np.where(y <= 0, -1.0, 0.0))
    return np.where(y <= 0, -1.0, 0.0) if spec.link == "log" else np.zeros_like(y)


def _apart(spec: Spec, block: Block) -> tuple[Array, Array]:
    """Rows (x, 1) that have weight, and which way each may go."""
    Y = np.asarray(block.y, dtype=np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    used = block.w > 0
    y = Y[:, 0]
    if spec.trials is not None:
        used &= Y[:, spec.trials] > 0
        y = y / np.where(used, Y[:, spec.trials], 1.0)
    Z = dense(block.X)[used]
    return np.column_stack([Z, np.ones(len(Z))]) if spec.intercept else Z, _way(spec, y[used])


def find(rows: Rows, spec: Spec) -> Array | None:
    """A direction (d1,), the intercept last; None if there is none or the table is too large to look for it."""
    if rows.n_rows * (rows.n_features + 1) > LIMIT:
        return None
    data = rows.load()
    Z, way = _apart(spec, Block(data.X, data.y, data.w, 0))
    low = Z.min(axis=0) * (np.arange(Z.shape[1]) < rows.n_features) if spec.intercept else np.zeros(Z.shape[1])
    spread = np.abs(Z - low).max(axis=0)
    spread[spread == 0] = 1.0
    scaled = (Z - low) / spread
    A, fixed = scaled[way != 0] * way[way != 0, None], scaled[way == 0]
    if not len(A):
        return None
    equal = qr(fixed, mode="r")[0][: Z.shape[1]] if len(fixed) else None
    zeros = None if equal is None else np.zeros(len(equal))
    found = linprog(-A.sum(axis=0), A_ub=-A, b_ub=np.zeros(len(A)), A_eq=equal, b_eq=zeros, bounds=(-1, 1))
    if not found.success or (A @ found.x).max() < 1e-6:
        return None
    v = np.where(np.abs(found.x) < 1e-12, 0.0, found.x) / spread
    if spec.intercept:
        v[-1] -= v[:-1] @ low[:-1]
    return v if np.isfinite(v).all() else None


@dataclass(frozen=True)
class _Sides(Sums):
    wrong: Largest  # the furthest that a row goes the wrong way, relative to the sizes summed in its score
    strict: int  # rows whose deviance falls for ever


def _sides(v: Array, spec: Spec, block: Block) -> _Sides:
    Z, way = _apart(spec, block)
    size = np.abs(Z) @ np.abs(v) + np.finfo(float).tiny
    move = (Z @ v) / size
    wrong = np.where(way == 0, np.abs(move), -way * move)
    return _Sides(Largest(max(0.0, float(wrong.max(initial=0.0)))), int(((way * move) > ROUNDING).sum()))


def impossible(v: Array, spec: Spec, rows: Rows) -> Certificate:
    """The certificate that no maximum exists; the witness is the direction v (d1,)."""
    sides = rows.sum(partial(_sides, v, spec))
    return Certificate(
        "impossible",
        CLAIM,
        checks=(
            Check("rows that go the wrong way by", float(sides.wrong.value), ROUNDING),
            Check("the direction changes no row (1: yes)", float(sides.strict == 0), 0.0),
        ),
        facts={
            "rows whose deviance falls for ever": sides.strict,
            "direction": np.array2string(v, precision=4, threshold=20, max_line_width=10**6),
        },
        witness=(tuple(v.tolist()),),
    )
