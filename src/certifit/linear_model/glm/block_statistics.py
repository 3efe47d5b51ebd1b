"""What one pass over the rows measures for a generalised linear model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.linear_model.glm.coordinates import GlmCoordinates
from certifit.linear_model.glm.log_link_loops import LogLinkRows, LogLinkSums, add_log_link_rows
from certifit.linear_model.glm.target import Response, take_apart
from certifit.linear_model.linear_rows import moment, rounded_up, row_reach, sandwich, sandwich_of
from certifit.losses.response_losses import LogTweedieLoss, ResponseLoss
from certifit.optimise.self_concordance import ReachRequest, RowReach
from certifit.optimise.sparse_curvature import SparseCurvature
from certifit.rows import Array, Block, Largest, Sums


@dataclass(frozen=True)
class GlmTotals(Sums):
    """Sums that do not depend on θ: they are measured once."""

    constant: float  # Σ w (half deviance - φ)
    floor: float  # half deviance below which there is nothing but rounding
    rows: float  # Σ w, without trials
    weight: float  # Σ w, times trials
    y: float  # Σ w y


@dataclass(frozen=True)
class GlmPass(Sums):
    """Sums of the data term at θ (m,)."""

    loss: float
    g: Array  # (m,)
    H: Array | SparseCurvature | float  # (m, m); 0 where not asked for
    totals: GlmTotals | float  # 0 where not asked for
    reach: RowReach | float  # 0 where not asked for
    slope: float = 0.0  # Σ w |φ'|
    curvature: float = 0.0  # Σ w φ"
    score: Largest = field(default_factory=partial(Largest, 0.0))  # largest |η|
    columns: Array | float = 0.0  # (m,) Σ w z; 0 where not asked for


class GlmRequest(NamedTuple):
    """What a pass should measure beside the loss and its gradient."""

    hessian: bool
    totals: bool = False
    reach: ReachRequest | None = None
    columns: Array | None = None  # entries of θ in which the Hessian is wanted; None: all
    column_sums: bool = False


def measure(
    theta: Array,
    coordinates: GlmCoordinates,
    loss: ResponseLoss,
    layout: ResponseLayout,
    request: GlmRequest,
    block: Block,
) -> GlmPass:
    """Sum the loss φ, its gradient and what else was asked for over a block."""
    response = take_apart(layout, block)
    Z = coordinates.rows(response.X)
    if isinstance(loss, LogTweedieLoss) and _suits_the_loop(Z, request):
        return _log_link_pass(theta, Z, loss, response, request)
    reach: RowReach | float = 0.0
    if request.reach is not None:
        reach = row_reach(Z, request.reach, coordinates.appends_one)
    once = _totals(loss, response) if request.totals else 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        eta = scores(Z, theta, coordinates, response)
        phi, u, h = loss.rows(eta, response.y)
        value = float(response.w @ phi)
        if not np.isfinite(value):  # the step was too long, and there are no derivatives here
            m = len(theta)
            return GlmPass(np.inf, np.zeros(m), np.zeros((m, m)) if request.hessian else 0.0, once, reach)
    with np.errstate(over="ignore", invalid="ignore"):  # `check_overflow` looks at the sums
        H: Array | SparseCurvature | float = 0.0
        if request.hessian:
            H = sandwich_of(Z, response.w * h, coordinates.appends_one, request.columns)
        wu = response.w * u
        g = moment(Z, wu[:, None], coordinates.appends_one)[0]
        score = Largest(float(max(eta.max(initial=0.0), -eta.min(initial=0.0))))
        total: Array | float = 0.0
        if request.column_sums:
            total = moment(Z, response.w[:, None], coordinates.appends_one)[0]
        return GlmPass(value, g, H, once, reach, float(np.abs(wu).sum()), float(response.w @ h), score, total)


def _suits_the_loop(Z: Any, request: GlmRequest, compiled_entries: int = 2**17) -> bool:
    """Whether a block is so large that the compiled loop is worth having, and is asked for nothing rare."""
    if not isinstance(Z, np.ndarray) or Z.size < compiled_entries or not Z.flags.c_contiguous:
        return False
    return request.columns is None and not request.column_sums


def _log_link_pass(theta: Array, Z: Array, loss: LogTweedieLoss, response: Response, request: GlmRequest) -> GlmPass:
    """The same for dense rows and a log link, which are read once."""
    one = len(theta) > Z.shape[1]
    once = _totals(loss, response) if request.totals else 0.0
    reach: RowReach | float = 0.0
    squares = np.zeros(0)
    if request.reach is not None:
        if request.reach.diagonal is None:
            reach = row_reach(Z, request.reach, one)
        else:
            squares = request.reach.diagonal
    g, wh = np.zeros(len(theta)), np.empty(len(Z))
    rows = LogLinkRows(Z, response.y.astype(np.float64, copy=False), response.w, response.offset)
    with np.errstate(over="ignore", invalid="ignore"):  # as in compiled code
        found = LogLinkSums(*add_log_link_rows(rows, theta, float(loss.power), squares, g, wh))
    if len(squares):
        reach = RowReach(Largest(rounded_up(found.squares, len(squares))), Largest(0.0))
    if not np.isfinite(found.loss):  # the step was too long, and there are no derivatives here
        m = len(theta)
        return GlmPass(np.inf, np.zeros(m), np.zeros((m, m)) if request.hessian else 0.0, once, reach)
    H = sandwich(Z, wh, one) if request.hessian else 0.0
    return GlmPass(found.loss, g, H, once, reach, found.slope, found.curvature, Largest(found.score))


def measure_gram(
    columns: Array, coordinates: GlmCoordinates, layout: ResponseLayout, block: Block
) -> Array | SparseCurvature:
    """The Hessian of squares in these entries of θ, which is that of every θ."""
    response = take_apart(layout, block)
    return sandwich_of(coordinates.rows(response.X), response.w, coordinates.appends_one, columns)


def scores(Z: Any, theta: Array, coordinates: GlmCoordinates, response: Response) -> Array:
    """The scores η (rows,), offsets included."""
    m = Z.shape[1]
    eta = Z @ theta[:m] + response.offset
    return eta + theta[m] if coordinates.appends_one else eta


def _totals(loss: ResponseLoss, response: Response) -> GlmTotals:
    """Sums that do not depend on θ; refuses targets that the family cannot produce."""
    y, w = response.y, response.w
    loss.family.check(y, response.number)
    constant = np.broadcast_to(loss.constant(y), y.shape)
    return GlmTotals(
        float(w @ constant),
        float(w @ loss.floor(y, constant)),
        float(response.times.sum()),
        float(w.sum()),
        float(w @ y),
    )
