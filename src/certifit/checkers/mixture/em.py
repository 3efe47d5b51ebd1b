"""What every mixture's certificate says: one more EM step gains nothing, and that step obeys Jensen's inequality.

For the posterior q before the step:  log-likelihood after it = bound + KL(q || posterior after it).
"""

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
EPS = float(np.finfo(np.float64).eps)
NEVER = -1e300  # stands for the logarithm of 0, where it is multiplied by 0


class EMStepResult(NamedTuple):
    """A mixture before and after one more EM step; nats a row."""

    loglik: float  # mean log-likelihood
    penalty: float
    after: float  # mean log-likelihood after the step
    penalty_after: float
    bound: float  # Σ q log(π f / q) after the step, q the posterior before it
    kl: float  # KL(q || posterior after the step)


@dataclass(frozen=True)
class NextStepSums(Sums):
    """The likelihood after one more EM step, in parts; weighted sums over rows."""

    loglik: float  # Σ w log p(x) after the step
    bound: float  # Σ w Σ_k q log(π_k f_k / q) after the step, q the posterior before it
    kl: float  # Σ w KL(q || posterior after the step)


def compare_joints(joint: Array, new: Array, w: Array) -> NextStepSums:
    """Compare two mixtures, given log π_k f_k (n, k) of both and the row weights w (n,)."""
    joint, new = np.maximum(joint, NEVER), np.maximum(new, NEVER)
    log_q = joint - logsumexp(joint, axis=1, keepdims=True)
    log_p = logsumexp(new, axis=1)
    bound = np.exp(log_q) * (new - log_q)
    kl = np.exp(log_q) * (log_q - (new - log_p[:, None]))
    return NextStepSums(float(w @ log_p), float(w @ bound.sum(axis=1)), float(w @ kl.sum(axis=1)))


def stationary_certificate(
    step: EMStepResult,
    weights: Array,
    least: float,
    tol: float,
    more: tuple[Check, ...] = (),
    facts: Mapping[str, float | str] | None = None,
    stored_rounding: float = 0.0,
) -> Certificate:
    """Return the certificate of a mixture; `least` is a number below which no mixture's objective can be.

    `stored_rounding`, in nats a row, is what the last digits of the stored parameters may change. The likelihoods
    before and after a step are not known better, so that a gain below it is none.
    """
    objective = step.penalty - step.loglik
    gain = (step.after - step.penalty_after) - (step.loglik - step.penalty)
    fall = (step.loglik - step.penalty) - (step.bound - step.penalty_after)
    # Never more than a hundredth of a nat: a wider allowance would let any step pass.
    size = sum(map(abs, (step.loglik, step.after, step.kl, step.penalty, step.penalty_after)))
    rounding = min(1e-11 * (1.0 + size), 0.01)
    checks = (
        Check("gain of one more EM step, nats a row", gain, tol + rounding + min(stored_rounding, 0.01)),
        # No M step lowers the bound, whatever the mixture: what falls is rounding. Covariances that only the penalty
        # holds up are inverted with fewer digits, here and after the step.
        Check("fall of the bound in the M step", max(0.0, fall), 10 * rounding + min(2 * stored_rounding, 0.01)),
        # A log-likelihood whose last digit is more than that tells nothing of single nats.
        Check("last digits of the log-likelihood, nats a row", EPS * size + stored_rounding, 0.01),
        Check("|log-likelihood - bound - KL(q || posterior)|", abs(step.after - step.bound - step.kl), rounding),
        Check("KL(q || posterior) below zero", max(0.0, -step.kl), rounding),
        Check("weights' distance from adding up to one", abs(float(weights.sum()) - 1.0), 1e-12 * (1 + len(weights))),
        Check("weights below zero", float((weights < 0).sum()), 0.0),
        *more,
    )
    # A logarithm near 0 is no small number: its terms have the size of 1 and cancel.
    scale = 1.0 + abs(step.loglik) + abs(step.penalty)
    return Certificate("stationary", STATIONARY, objective, least, tol, tol, checks, facts or {}, scale=scale)


class ReportedFit(NamedTuple):
    """What a fitted mixture reports of itself."""

    loglikelihood: float  # Σ w log p(x)
    lower_bound: float  # the objective, to be maximised
    lower_bounds: Array  # (steps,) the objective at each step
    trace: Array  # (steps,) with the fields loglik, bound and kl


def reported_checks(
    reported: ReportedFit, step: EMStepResult, weight: float, rounding: float = 0.0
) -> tuple[Check, ...]:
    """Compare what a mixture reports of itself with what was found; `weight` is Σ w.

    `rounding`, in nats a row, is what the last digits of the stored parameters may change.
    """
    objective = step.loglik - step.penalty
    trace = {name: np.asarray(reported.trace[name]) for name in ("loglik", "bound", "kl")}
    apart = np.abs([trace["loglik"][-1] - objective, *(reported.lower_bounds - trace["loglik"])]).max()
    sums = np.abs(trace["loglik"] - trace["bound"] - trace["kl"]).max()
    # wider than rounding: the model found these numbers in its own way
    limit = 1e-6 * (1.0 + abs(step.loglik)) + min(rounding, 0.01)
    return (
        Check("reported log-likelihood off, nats a row", abs(reported.loglikelihood / weight - step.loglik), limit),
        Check("reported lower bound off, nats a row", abs(reported.lower_bound - objective), limit),
        Check("reported lower bounds and trace off, nats a row", float(apart), limit),
        Check("|log-likelihood - bound - KL| in the trace", float(sums), limit),
        Check("KL below zero in the trace", max(0.0, -float(trace["kl"].min())), limit),
        Check("fall of the log-likelihood in the trace", float(-np.diff(trace["loglik"]).min(initial=0.0)), limit),
    )


def refused_certificate(tol: float, *checks: Check) -> Certificate:
    """Return the certificate of parameters that are no mixture at all, with the checks that fail."""
    return Certificate("stationary", STATIONARY, float("inf"), float("-inf"), tol, tol, checks)
