"""Coefficients as they are kept: in the dtype of the rows where the proof holds for the rounded ones too.

Rounding β to float32 moves scores by (x - shift)·δ if the intercept, which stays float64, is that of the rounded β:
by digits of the rows' spread, however far from 0 they lie. The objective there is measured by one more pass; the
bound is the same, and where the gap is then too large, β stays as it is. So it does where the score of some row, an
outlier, moves by more than next to nothing: that row may lose all its curvature and the objective next to nothing,
but who has the rounded β alone would have to find the way back to prove anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.core import Attributes, Certificate
from certifit.linear_model.linear_rows import shift_rows
from certifit.linear_model.logistic.problem import LogisticRows, LogisticTask, Penalised, data_loss
from certifit.rows import Array, Block, Largest, Sums


@dataclass(frozen=True)
class RoundedLoss(Sums):
    """The loss at rounded coefficients, and how far the rounding moves a score."""

    loss: float
    moved: Largest


def _rounded_loss(theta: Array, by: Array, shift: Array | None, intercept: bool, block: Block) -> RoundedLoss:
    """Sum a block's part at θ (k, d1), whose coefficients were moved by `by` (k, d)."""
    moved = abs(shift_rows(block.X[block.w > 0], shift) @ by.T)
    return RoundedLoss(data_loss(theta, shift, intercept, block), Largest(float(moved.max(initial=0.0))))


def stored_coefficients(
    data: LogisticRows, task: LogisticTask, x: Array, certificate: Certificate
) -> tuple[Attributes, Certificate]:
    """Fitted attributes at θ (k·d1,), and the certificate of these."""
    fitted = data.attributes(task.symmetric, x)
    coef, b = fitted["coef_"], fitted["intercept_"]
    with np.errstate(over="ignore", under="ignore"):
        single = coef.astype(np.float32)
    wanted = data.rows.dtype == np.float32 and isinstance(task, Penalised) and certificate.holds
    if not wanted or not np.isfinite(single).all():
        return fitted, certificate
    kept = single.astype(np.float64)
    theta, moved = kept, b
    if data.intercept:
        shift = np.zeros(coef.shape[1]) if data.shift is None else data.shift
        moved = b + (coef - kept) @ shift
        moved -= moved.mean() if len(b) > 1 else 0.0
        theta = np.column_stack([kept, moved + kept @ shift])
    found = data.rows.sum(partial(_rounded_loss, theta, kept - coef, data.shift, data.intercept))
    if not found.moved.value <= data.tuning.moved_score:
        return fitted, certificate
    value = found.loss + task.penalty(data.rows, theta, data.intercept)
    off = np.column_stack([np.abs(coef - kept), np.abs(moved - b)])
    errors = tuple(
        tuple((np.array(row) + by).tolist()) for row, by in zip(certificate.parameter_error, off, strict=False)
    )
    again = replace(certificate, objective=value, parameter_error=errors)
    if not again.holds:
        return fitted, certificate
    return {**fitted, "coef_": single, "intercept_": moved}, again
