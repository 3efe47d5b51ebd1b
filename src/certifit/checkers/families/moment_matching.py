"""A fitted exponential family re-checked from the rows: its expected statistics equal their means over the rows.

That equation, E T = mean of T (with a prior's imagined rows; for mean and variance of x with the method of moments),
holds for the maximum likelihood member alone, which is also the one with the smallest KL(empirical || model).
Formulas are those of `checkers.plain.exponential_families`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.exponential_families import Theta, model_of
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

EPS = float(np.finfo(float).eps)
TOLERANCE = 1e-9  # standard deviations; a sample of n rows says no more than 1/sqrt(n)


def certify(
    family: str,
    theta: Theta,
    rows: Rows,
    log_likelihood: float,
    method: str = "ml",
    *,
    unbiased: bool = False,
    prior: tuple[float, Array] | None = None,
) -> Certificate:
    """Check the member of `family` with parameters `theta`, and its log-likelihood, on these rows."""
    found = rows.sum(partial(_measure, family, theta, method))
    model = model_of(family, theta, method)
    n, mean_T = found.weight, found.T / found.weight
    expected = model.expected
    if unbiased:  # the last statistics are squares, divided by n - 1 in place of n
        expected = np.where(expected != 0, expected * (n - 1) / n, 0.0)
    if prior is not None:
        strength, imagined = prior
        mean_T = (n * mean_T + strength * model.imagined(np.asarray(imagined))) / (n + strength)
    off, allowed = np.abs(mean_T - expected), TOLERANCE + 16 * EPS * model.size
    worst = int(np.argmax(off / allowed))
    mean_log = log_likelihood / n
    rounding = 1e-12 + 16 * EPS * found.terms / n
    checks = [
        Check("expected statistics off by, in standard deviations,", float(off[worst]), float(allowed[worst])),
        Check("mean log-likelihood off by", abs(mean_log - found.log_p / n), rounding),
    ]
    facts: dict[str, float | str] = {}
    if model.discrete:
        share = found.seen.w / n
        kl = float(share @ (np.log(share) - sum(model.log_p(found.seen.x))))
        facts["KL(empirical || model)"] = kl
        entropy = -float(share @ np.log(share))
        checks.append(Check("KL(empirical || model) + entropy + mean log p", abs(kl + entropy + mean_log), rounding))
    what = "mean and variance" if method == "moments" else "E T"
    whose = "the rows and the prior" if prior else "the rows, with n - 1 in place of n" if unbiased else "the rows"
    claim = f"the {family} whose {what} equals that of {whose}"
    return Certificate("exact", claim, -mean_log, checks=tuple(checks), facts=facts)


# ------------------------------------------------------------------------------------------------------------- sums
@dataclass(frozen=True)
class _Seen:
    """Distinct rows and how much each weighs; `+` merges."""

    x: Array  # (u, d)
    w: Array  # (u,)

    def __add__(self, other: _Seen) -> _Seen:
        return _distinct(np.concatenate([self.x, other.x]), np.concatenate([self.w, other.w]))


def _distinct(x: Array, w: Array) -> _Seen:
    one = x.shape[1] == 1  # numbers sort faster than rows
    values, where = np.unique(x[:, 0] if one else x, axis=None if one else 0, return_inverse=True)
    return _Seen(values.reshape(-1, x.shape[1]), np.bincount(where.ravel(), w, len(values)))


@dataclass(frozen=True)
class _Found(Sums):
    weight: float
    T: Array  # Σ w T  (m,)
    log_p: float  # Σ w log p
    terms: float  # Σ w of the absolute terms of log p
    seen: _Seen  # empty for continuous families


def _measure(family: str, theta: Theta, method: str, block: Block) -> _Found:
    model = model_of(family, theta, method)
    counted = block.w > 0
    X, w = dense(block.X)[counted], block.w[counted]
    terms = [np.broadcast_to(term, len(X)) for term in model.log_p(X)]
    seen = _distinct(X, w) if model.discrete else _Seen(X[:0], w[:0])
    sizes = sum(np.abs(term) for term in terms)
    return _Found(float(w.sum()), w @ model.T(X), float(w @ sum(terms)), float(w @ sizes), seen)
