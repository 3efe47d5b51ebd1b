"""What every mixture's certificate says: EM has come to rest, and its next step obeys Jensen's inequality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from certifit.core import Certificate, Check
from certifit.rows import Array, Sums

STATIONARY = (
    "one more EM step raises the mean log-likelihood, less the penalty, by at most tol (nats a row); nothing is said "
    "about other maxima"
)
NEVER = -1e300  # stands for the logarithm of 0 in products with 0
ROUNDING = 1e-11  # of the sizes summed, forgiven
REPORTED = 1e-6  # the same, of numbers that the model found in its own way


class Stand(NamedTuple):
    """Where a mixture stands, and what one more EM step makes of it; nats a row."""

    loglik: float  # mean log-likelihood
    penalty: float
    after: float  # mean log-likelihood after the step
    penalty_after: float
    bound: float  # Σ q log(π f / q) after the step, q the posterior before it
    kl: float  # KL(q || posterior after the step)


@dataclass(frozen=True)
class After(Sums):
    """What one more EM step makes of the likelihood, summed over rows by weight; see `Stand`."""

    loglik: float
    bound: float
    kl: float


def compare(joint: Array, new: Array, w: Array) -> After:
    """The step from one mixture to another, row by row, by the first one's posterior q.

    log π_k f_k (n, k) of the two, and the rows' weights w (n,).
    """
    joint, new = np.maximum(joint, NEVER), np.maximum(new, NEVER)
    log_q = joint - logsumexp(joint, axis=1, keepdims=True)
    log_p = logsumexp(new, axis=1)
    bound = np.exp(log_q) * (new - log_q)
    kl = np.exp(log_q) * (log_q - (new - log_p[:, None]))
    return After(float(w @ log_p), float(w @ bound.sum(axis=1)), float(w @ kl.sum(axis=1)))


def stationary(
    stand: Stand,
    weights: Array,
    least: float,
    tol: float,
    more: tuple[Check, ...] = (),
    facts: Mapping[str, float | str] | None = None,
) -> Certificate:
    """The certificate; `least` is a number below which no mixture's objective can be."""
    objective = stand.penalty - stand.loglik
    gain = (stand.after - stand.penalty_after) - (stand.loglik - stand.penalty)
    rounding = ROUNDING * (1.0 + abs(stand.loglik) + abs(stand.after) + abs(stand.kl))
    checks = (
        Check("gain of one more EM step, nats a row", gain, tol + rounding),
        Check("fall of the bound in the M step", max(0.0, _fall(stand)), rounding),
        Check("|log-likelihood - bound - KL(q || posterior)|", abs(stand.after - stand.bound - stand.kl), rounding),
        Check("KL(q || posterior) below zero", max(0.0, -stand.kl), rounding),
        Check("weights' distance from adding up to one", abs(float(weights.sum()) - 1.0), 1e-12 * (1 + len(weights))),
        Check("weights below zero", float((weights < 0).sum()), 0.0),
        *more,
    )
    return Certificate("stationary", STATIONARY, objective, least, tol, tol, checks, facts or {})


class Said(NamedTuple):
    """What a fitted mixture says of itself."""

    loglikelihood: float  # Σ w log p(x)
    lower_bound: float  # the objective, to be maximised
    lower_bounds: Array  # (m,) at each step
    trace: Array  # (m,) with the fields loglik, bound and kl


def truthful(said: Said, stand: Stand, weight: float) -> tuple[Check, ...]:
    """Whether what a mixture says of itself is so; `weight` is Σ w."""
    objective = stand.loglik - stand.penalty
    steps = {name: np.asarray(said.trace[name]) for name in ("loglik", "bound", "kl")}
    apart = np.abs([steps["loglik"][-1] - objective, *(said.lower_bounds - steps["loglik"])]).max()
    sums = np.abs(steps["loglik"] - steps["bound"] - steps["kl"]).max()
    limit = REPORTED * (1.0 + abs(stand.loglik))
    return (
        Check("reported log-likelihood off, nats a row", abs(said.loglikelihood / weight - stand.loglik), limit),
        Check("reported lower bound off, nats a row", abs(said.lower_bound - objective), limit),
        Check("reported lower bounds and trace off, nats a row", float(apart), limit),
        Check("|log-likelihood - bound - KL| in the trace", float(sums), limit),
        Check("KL below zero in the trace", max(0.0, -float(steps["kl"].min())), limit),
        Check("fall of the log-likelihood in the trace", float(-np.diff(steps["loglik"]).min(initial=0.0)), limit),
    )


def _fall(stand: Stand) -> float:
    return (stand.loglik - stand.penalty) - (stand.bound - stand.penalty_after)


def nothing(claim_tol: float, *checks: Check) -> Certificate:
    """For parameters that are no mixture at all: which check fails."""
    return Certificate("stationary", STATIONARY, float("inf"), float("-inf"), claim_tol, claim_tol, checks)
