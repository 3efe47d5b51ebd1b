"""Deviance, number of parameters and covariance of a logistic or softmax fit, computed again from the data.

With class 0's coefficients fixed at 0 the information I is regular, and its inverse is the covariance of the
contrasts with class 0; the coefficients that sum to 0 over the classes are linear in those. The sandwich is
I⁻¹ (Σ w (r ⊗ z)(r ⊗ z)ᵀ) I⁻¹ with r = p - y. Plain NumPy at the fitted coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.linear_model.coordinates import ScaledCoordinates
from certifit.checkers.linear_model.inference import InferenceTuning, covariance_agreement
from certifit.checkers.linear_model.logistic.dual_point import (
    log_probabilities,
    onehot,
    residuals,
    weighted,
)
from certifit.checkers.linear_model.logistic.likelihood import LikelihoodMeasure, quadratic
from certifit.checkers.linear_model.newton_bound import (
    ConditionedInverse,
    conditioned_inverse,
    independent,
    triangle_of,
)
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.core import Check
from certifit.rows import Array, Block, Rows


class LogisticEvidence(NamedTuple):
    """What a fit says beside its coefficients, and how it says it was computed."""

    attributes: Mapping[str, Any]  # deviance_, n_parameters_, df_resid_, covariance_: those that it has
    covariance: str | None  # 'classical' or 'sandwich'; None: there is to be none


def _score_products(beta: Array, b: Array, coordinates: ScaledCoordinates, block: Block) -> Array:
    """Σ w (r ⊗ z)(r ⊗ z)ᵀ ((k-1) d1, (k-1) d1) over the rows of a block."""
    block = weighted(block)
    Z = coordinates.rows(block)
    P = np.exp(log_probabilities(beta, b, coordinates.centred(block)))
    r = residuals(P, onehot(block.y, len(b)))[:, 1:]
    both = (r[:, :, None] * Z[:, None, :]).reshape(len(Z), -1) * np.sqrt(block.w)[:, None]
    return both.T @ both


def _total_weight(block: Block) -> float:
    return float(block.w.sum())


def logistic_inference_checks(
    here: LikelihoodMeasure,
    scores: int,
    evidence: LogisticEvidence,
    rows: Rows,
    tuning: InferenceTuning = InferenceTuning(),
) -> tuple[Check, ...]:
    """Compare what a fit of so many scores says beside its coefficients with what the data say."""
    stated = evidence.attributes
    coordinates, beta, b, s = here
    size = (len(b) - 1) * s.g.shape[1]
    found = conditioned_inverse(s.H.reshape(size, size)) if s.H.ndim else None
    checks = []
    if "deviance_" in stated:
        limit = (tuning.close + 8 * summation_error(rows.n_rows)) * 2 * s.loss
        checks.append(Check("deviance_ is off by", abs(float(stated["deviance_"]) - 2 * s.loss), limit))
    if "n_parameters_" in stated:
        m, counts = float(stated["n_parameters_"]), [size]
        if found is None and s.H.ndim:  # collinear columns: those that say nothing new may be counted or not
            counts.append((len(b) - 1) * len(independent(rows.sum(partial(triangle_of, coordinates)).R)))
        checks.append(Check("n_parameters_ is off by", min(abs(m - count) for count in counts), 0.0))
        df, weight = float(stated.get("df_resid_", np.nan)), rows.sum(_total_weight)
        checks.append(Check("df_resid_ is off by", abs(df - (weight - m)), 1e-9 * (weight + m)))
    if evidence.covariance is not None and s.H.ndim and (found is None or found.smallest < tuning.collinear):
        coordinates, found = _orthogonal_inverse(here, rows) or (coordinates, found)
    if evidence.covariance is not None and found is not None:
        C = found.inverse
        if evidence.covariance == "sandwich":
            C = C @ rows.sum(partial(_score_products, beta, b, coordinates)) @ C
        J = _to_coefficients(scores, coordinates)
        # The inverse of an information with so small an eigenvalue keeps no more digits, here and in any fit.
        limit = tuning.close + 100 * coordinates.row_error + 16 * len(C) * EPS / found.smallest
        checks.append(covariance_agreement(stated.get("covariance_"), J @ C @ J.T, limit))
    elif stated.get("covariance_") is not None:
        checks.append(Check("covariance_ of coefficients that have none (1: yes)", 1.0, 0.0))
    return tuple(checks)


def _orthogonal_inverse(here: LikelihoodMeasure, rows: Rows) -> tuple[ScaledCoordinates, ConditionedInverse] | None:
    """The inverse of the information with nearly collinear columns made orthogonal; None where they are collinear."""
    coordinates, beta, b, _ = here
    R = rows.sum(partial(triangle_of, coordinates)).R
    if len(independent(R)) < R.shape[1]:
        return None
    coordinates = coordinates._replace(triangle=R)
    H = rows.sum(partial(quadratic, beta, b, coordinates, True)).H
    size = H.shape[0] * H.shape[1]
    found = conditioned_inverse(H.reshape(size, size))
    return None if found is None else (coordinates, found)


def _to_coefficients(k: int, coordinates: ScaledCoordinates) -> Array:
    """From contrasts with class 0, in scaled coordinates, to (intercept, coefficients), class after class."""
    classes = np.eye(k)[:, 1:] - 1 / k if k > 1 else np.ones((1, 1))
    columns = coordinates.to_columns
    return np.kron(classes, np.roll(columns, 1, axis=0) if coordinates.intercept else columns)
