"""What one pass over the rows measures for a generalised linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.linear_model.glm.coordinates import Frame
from certifit.linear_model.glm.target import Layout, Response, take_apart
from certifit.linear_model.linear_rows import moment, reached, sandwich
from certifit.losses.response_losses import Loss
from certifit.optimise.self_concordance import Ask, Reached
from certifit.rows import Array, Block, Sums


@dataclass(frozen=True)
class Totals(Sums):
    """Sums that do not depend on θ; measured once."""

    constant: float  # Σ w (half deviance - φ)
    floor: float  # half deviance below which there is nothing but rounding
    rows: float  # Σ w, trials not counted
    weight: float  # Σ w
    y: float  # Σ w y


@dataclass(frozen=True)
class Pass(Sums):
    """Data-term sums at θ (m,)."""

    loss: float
    g: Array  # (m,)
    H: Array | float  # (m, m); 0 where not asked for
    totals: Totals | float  # 0 where not asked for
    reached: Reached | float


class Want(NamedTuple):
    hessian: bool
    totals: bool
    reach: Ask | None = None


def measure(theta: Array, frame: Frame, loss: Loss, layout: Layout, want: Want, block: Block) -> Pass:
    """φ summed over a block, its gradient and what else is wanted."""
    response = take_apart(layout, block)
    Z = frame.rows(response.X)
    far: Reached | float = 0.0
    if want.reach is not None:
        far = reached(Z, want.reach, frame.appends_one)
    once = _totals(loss, response) if want.totals else 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        phi, u, h = loss.rows(scores(Z, theta, frame, response), response.y)
        value = float(response.w @ phi)
        if not np.isfinite(value):  # no derivatives to be had here: the step was too long
            m = len(theta)
            return Pass(np.inf, np.zeros(m), np.zeros((m, m)) if want.hessian else 0.0, once, far)
    with np.errstate(over="ignore", invalid="ignore"):  # see `check_overflow`
        H: Array | float = sandwich(Z, response.w * h, frame.appends_one) if want.hessian else 0.0
        return Pass(value, moment(Z, (response.w * u)[:, None], frame.appends_one)[0], H, once, far)


def scores(Z: Any, theta: Array, frame: Frame, response: Response) -> Array:
    """η (rows,)."""
    m = Z.shape[1]
    eta = Z @ theta[:m] + response.offset
    return eta + theta[m] if frame.appends_one else eta


def _totals(loss: Loss, response: Response) -> Totals:
    """Also checks that every target is one the family can produce."""
    y, w = response.y, response.w
    loss.family.check(y, response.number)
    constant = np.broadcast_to(loss.constant(y), y.shape)
    return Totals(
        float(w @ constant),
        float(w @ loss.floor(y, constant)),
        float(response.times.sum()),
        float(w.sum()),
        float(w @ y),
    )
