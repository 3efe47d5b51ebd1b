"""Whether bias and variance follow from answers of models for the rows that they did not draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.model_selection.replicates import drawn_rows, replicate_keys
from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class DecompositionClaim:
    """Answers of B models for rows that they did not draw, and what they say of the error."""

    answers: Array  # (B, n) numbers, or numbers of classes; NaN for rows that were drawn
    y: Array  # (n,) numbers, or numbers of classes
    classes: Array | None  # (k,)
    bias: float
    variance: float
    seed: int


def certify_decomposition(claim: DecompositionClaim) -> Certificate:
    """Prove the two parts, and that every model was asked about the rows that its seed leaves out, and no others."""
    wrong = 0
    for key, said in zip(replicate_keys(claim.seed, len(claim.answers)), claim.answers, strict=True):
        left = np.ones(len(claim.y), dtype=bool)
        left[drawn_rows(int(key), len(claim.y))] = False
        wrong += int(np.count_nonzero(left != np.isfinite(said)))
    bias, variance = decompose(claim)
    error = mean_error(claim)
    size = max(abs(error), 1e-300)
    checks = (
        Check("answers for rows that were drawn, or missing ones", float(wrong), 0.0),
        Check("bias off by", abs(claim.bias - bias), 1e-9 * size),
        Check("variance off by", abs(claim.variance - variance), 1e-9 * size),
        Check("distance of both from the mean error", abs(claim.bias + claim.variance - error), 1e-9 * size),
    )
    words = f"of a mean error of {error:.4g}, {claim.variance:.4g} changes with the rows that are fitted"
    return Certificate("statistical", words, checks=checks, facts={"models": len(claim.answers)})


def asked_twice(claim: DecompositionClaim) -> tuple[Array, Array]:
    """Return answers (B, m) and targets (m,) of the rows that at least two models left out: one has no variance."""
    rows = np.isfinite(claim.answers).sum(axis=0) >= 2
    return claim.answers[:, rows], claim.y[rows]


def mean_error(claim: DecompositionClaim) -> float:
    """Return the mean over rows of the mean loss of the models that left each out."""
    answers, y = asked_twice(claim)
    loss = (answers - y) ** 2 if claim.classes is None else (answers != y).astype(float)
    return float(np.nanmean(np.where(np.isfinite(answers), loss, np.nan), axis=0).mean())


def decompose(claim: DecompositionClaim) -> tuple[float, float]:
    """Return the mean squared bias, with noise, and the mean variance over rows."""
    answers, y = asked_twice(claim)
    if claim.classes is None:
        mean = np.nanmean(answers, axis=0)
        return float(np.mean((y - mean) ** 2)), float(np.mean(np.nanvar(answers, axis=0)))
    asked = np.isfinite(answers).sum(axis=0)
    p = np.stack([(answers == k).sum(axis=0) / asked for k in range(len(claim.classes))], axis=1)
    truth = y[:, None] == np.arange(len(claim.classes))
    bias = 0.5 * ((truth - p) ** 2).sum(axis=1)
    return float(bias.mean()), float(0.5 * (1 - (p**2).sum(axis=1)).mean())
