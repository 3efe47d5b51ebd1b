"""Lasso and elastic net whose strength and share were chosen by cross-validation: the choice worked out again.

Every fit of every fold is kept. Each is proved by a dual point of its rows; the mean squared errors on the rows held
out follow from their coefficients, and the choice from those. Nothing is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.linear_model.cross_validated.folds import (
    StatedFolds,
    choice_check,
    fold_checks,
    place_of,
    table_check,
    unproved_check,
)
from certifit.checkers.linear_model.cross_validated.squares import SquaredFits, centred, squared_gaps
from certifit.core import Check
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows


@dataclass(frozen=True)
class SearchTuning:
    """How far two computations of the same number may be apart, and the tolerance of fits of folds beside tol."""

    close: float = 1e-9
    fold_tol: float = 10.0  # times tol: these fits are compared with each other, and nobody predicts with them


class ElasticNetSearch(NamedTuple):
    """What was asked for."""

    alphas: Any  # how many strengths, or which
    eps: float
    l1_ratios: Array  # (r,)
    free: bool  # whether the intercept is
    positive: bool
    cv: Any


class ElasticNetChoice(NamedTuple):
    """What was found."""

    alphas: Array  # (r, m) strengths, falling
    errors: Array  # (r, m, folds) mean squared errors on the rows held out
    alpha: float
    l1_ratio: float
    folds: StatedFolds  # coef (folds, r, m, d)


def strengths_of(search: ElasticNetSearch, data: ArrayRows) -> Array:
    """The strengths (r, m) that are tried for each share: those given, or a grid below where no column is used."""
    r = len(search.l1_ratios)
    if not isinstance(search.alphas, Integral):
        return np.tile(np.sort(np.asarray(search.alphas, dtype=np.float64))[::-1], (r, 1))
    if (search.l1_ratios == 0).any():
        raise DataError(
            got="l1_ratio=0 without alphas",
            wanted="alphas: no finite ridge penalty makes every coefficient 0",
            fix="Automatic alpha grid generation is not supported for l1_ratio=0: pass an array as alphas.",
        )
    assert data.y is not None
    rows = centred(data, data.y, search.free)
    slopes = rows.slopes(rows.y[:, None])[:, 0]
    steepest = float((slopes if search.positive else np.abs(slopes)).max(initial=0.0)) / float(data.w.sum())
    least, out = np.finfo(float).resolution, []
    for ratio in search.l1_ratios.tolist():
        most = max(steepest, 0.0) / ratio
        m = int(search.alphas)
        out.append(np.geomspace(most, most * search.eps, num=m) if most > least else np.full(m, least))
    return np.array(out)


def held_out_errors(data: ArrayRows, folds: StatedFolds) -> Array:
    """Mean squared errors (r, m, folds) of the fits on the rows held out of them."""
    out = []
    for _, held, coef, intercept in folds.each(data):
        flat = coef.reshape(-1, coef.shape[-1])
        assert held.y is not None
        left = held.y[:, None] - np.asarray(held.X @ flat.T) - intercept.ravel()
        out.append((held.w @ left**2 / held.w.sum()).reshape(intercept.shape))
    return np.moveaxis(np.array(out), 0, -1)


def best_place(errors: Array) -> tuple[int, int]:
    """The place (share, strength) of the smallest mean error; of equals the first."""
    mean = errors.mean(axis=-1)
    share, strength = np.unravel_index(int(np.argmin(mean)), mean.shape)
    return int(share), int(strength)


def elastic_net_checks(
    search: ElasticNetSearch,
    choice: ElasticNetChoice,
    tol: float,
    data: ArrayRows,
    tuning: SearchTuning = SearchTuning(),
) -> tuple[Check, ...]:
    """Checks of the strengths, the folds, their fits, the errors and the choice."""
    alphas, errors = strengths_of(search, data), held_out_errors(data, choice.folds)
    share, is_share = place_of("l1_ratio_", choice.l1_ratio, search.l1_ratios, tuning.close)
    strength, is_strength = place_of("alpha_", choice.alpha, alphas[share], tuning.close)
    return (
        table_check("alphas_", choice.alphas, alphas, tuning.close),
        *fold_checks(search.cv, choice.folds.roles, data, classes=False),
        unproved_check(_unproved(search, choice, tuning.fold_tol * tol, data)),
        table_check("mse_path_", choice.errors, errors, tuning.close),
        is_share,
        is_strength,
        choice_check("alpha_ and l1_ratio_", -errors.mean(axis=-1), (share, strength), tuning.close),
    )


def _unproved(search: ElasticNetSearch, choice: ElasticNetChoice, tol: float, data: ArrayRows) -> int:
    """The number of fits of folds that are not proved."""
    count = 0
    for fitted, _, coef, intercept in choice.folds.each(data):
        total = float(fitted.w.sum())
        assert fitted.y is not None
        for k, ratio in enumerate(search.l1_ratios.tolist()):
            lam = choice.alphas[k] * total
            fits = SquaredFits(coef[k], intercept[k], lam * ratio, lam * (1 - ratio), search.free, search.positive)
            count += int(squared_gaps(fitted, fitted.y, fits).unproved(tol).sum())
    return count
