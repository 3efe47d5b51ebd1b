"""Where to start a generalised linear model from, and the constant model it is compared with."""

from __future__ import annotations

from functools import partial

import numpy as np

from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.linear_model.glm.coordinates import GlmCoordinates
from certifit.linear_model.glm.target import take_apart
from certifit.losses.response_families import LARGEST, refuse_size
from certifit.losses.response_losses import ResponseLoss
from certifit.rows import Array, ArrayRows, Block, Rows


def targets_total(layout: ResponseLayout, block: Block) -> Array:
    """The sums Σ w and Σ w y of a block (2,)."""
    response = take_apart(layout, block)
    return np.array([response.w.sum(), response.w @ response.y])


def check_size(sample: ArrayRows) -> None:
    """Refuse targets that are all so small that their squares underflow, or too large."""
    y = sample.y if sample.y is None or sample.y.ndim == 1 else sample.y[:, 0]
    assert y is not None
    largest = float(np.abs(y[sample.w > 0]).max(initial=0.0))
    if 0 < largest < 1 / LARGEST or largest > LARGEST:
        refuse_size(largest)


def mean_score(loss: ResponseLoss, total: float, weight: float) -> float:
    """The constant score whose mean is total / weight, pulled inside the family's range where that is its edge.

    Where the link has positive means only and this one is not, the best constant mean is 0, for ever out of reach:
    the score is infinite.
    """
    mean = total / weight
    if not loss.family.inside(np.array([-1.0]))[0]:
        mean = max(mean, 0.5 / (weight + 1))
    if loss.family.name == "binomial":
        mean = min(mean, 1 - 0.5 / (weight + 1))
    if mean <= 0 and loss.link.name != "identity":
        return -np.inf if loss.link.name == "log" else np.inf
    return float(loss.link.score(np.array(mean)))


def null_score(sample: ArrayRows, loss: ResponseLoss, layout: ResponseLayout) -> float:
    """About the score of a constant model, without the offset."""
    weight, total = sample.sum(partial(targets_total, layout))
    beside = layout.offset is not None or layout.exposure is not None
    offset = sample.sum(partial(_offset_total, layout)) / max(weight, 1e-300) if beside else 0.0
    score = mean_score(loss, float(total), float(weight))
    if np.isinf(score):  # a start has a mean: that of the targets whose negative ones are 0
        above = sample.sum(partial(_positive_total, layout))
        score = mean_score(loss, above if above > 0 else float(weight), float(weight))
    return score - float(offset)


def _positive_total(layout: ResponseLayout, block: Block) -> float:
    response = take_apart(layout, block)
    return float(response.w @ np.maximum(response.y, 0.0))


def _offset_total(layout: ResponseLayout, block: Block) -> float:
    response = take_apart(layout, block)
    return float(response.w @ response.offset)


def constant_score(
    rows: Rows, loss: ResponseLoss, layout: ResponseLayout, total: float, weight: float, start: float
) -> float:
    """The constant model's score; closed form unless there is an offset. `total` is Σ w y."""
    if layout.offset is None and layout.exposure is None:
        return mean_score(loss, total, weight)
    return _null_fit(rows, loss, layout, start)


def _null_fit(rows: Rows, loss: ResponseLoss, layout: ResponseLayout, start: float) -> float:
    """The constant model's score beside an offset."""
    score = start
    for _ in range(50):
        slope, curvature = rows.sum(partial(_null_pass, score, loss, layout))
        if not curvature > 0:
            break
        step = float(np.clip(slope / curvature, -5, 5))
        score -= step
        if abs(step) < 1e-12 * max(1.0, abs(score)):
            break
    return score


def _null_pass(score: float, loss: ResponseLoss, layout: ResponseLayout, block: Block) -> Array:
    response = take_apart(layout, block)
    _, u, h = loss.rows(score + response.offset, response.y)
    return np.array([response.w @ u, response.w @ h])


def least_squares_start(
    coordinates: GlmCoordinates, sample: ArrayRows, loss: ResponseLoss, layout: ResponseLayout
) -> Array:
    """Least squares on the linked targets: a start where scores must be positive and there is no intercept."""
    response = take_apart(layout, Block(sample.X, sample.y, sample.w, 0))
    Z = coordinates.rows(response.X)
    Z = Z if isinstance(Z, np.ndarray) else Z.toarray()
    y = response.y
    eta = loss.link.score(0.5 * (y + np.average(y, weights=response.w))) - response.offset
    root = np.sqrt(response.w)
    return np.linalg.lstsq(Z * root[:, None], eta * root)[0]
