"""The checker of a fitted exponential family: its expected statistics must equal their means over the rows.

The equation E T = mean of T holds for the maximum likelihood member alone, which is also the one with the smallest
KL(empirical || model). A prior adds imagined rows to the mean; with the method of moments T is x and its square.
The formulas are those of `checkers.plain.exponential_families`; the checker uses no code of the solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.exponential_families import Theta, family_at
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums


@np.errstate(all="ignore")  # parameters of no member give numbers that are not finite, and then nothing holds
def certify_family(
    family: str,
    theta: Theta,
    rows: Rows,
    claimed: float | None,
    method: str = "ml",
    *,
    unbiased: bool = False,
    prior: tuple[float, Array] | None = None,
) -> Certificate:
    """Check the member of `family` with parameters `theta` on these rows.

    Parameters
    ----------
    claimed : the log-likelihood that the fit reports, to be checked; None where it reports none
    method : "ml" for maximum likelihood, "moments" for mean and variance of x
    unbiased : whether variances were divided by n - 1
    prior : strength and mean statistics (m,) of imagined rows that were added
    """
    found = rows.sum(partial(_family_sums, family, theta, method))
    member = family_at(family, theta, method)
    eps = float(np.finfo(float).eps)
    n, mean_T = found.weight, found.T / found.weight
    expected = member.expected
    if unbiased:  # the last statistics are squares, which the fit divided by n - 1
        expected = np.where(expected != 0, expected * (n - 1) / n, 0.0)
    if prior is not None:
        strength, imagined = prior
        mean_T = (n * mean_T + strength * member.imagined(np.asarray(imagined))) / (n + strength)
    # In standard deviations: 1e-9 is far below 1/sqrt(n), to which n rows determine the parameters.
    # Rounding is allowed for up to one standard deviation: a wider limit would let anything pass.
    off, allowed = np.abs(mean_T - expected), 1e-9 + np.minimum(16 * eps * member.size, 1.0)
    worst = int(np.argmax(off / allowed))
    mean_log = (found.log_p if claimed is None else claimed) / n
    rounding = 1e-12 + 16 * eps * found.terms / n
    checks = [Check("expected statistics off by, in standard deviations,", float(off[worst]), float(allowed[worst]))]
    if claimed is not None:
        checks.append(Check("mean log-likelihood off by", abs(mean_log - found.log_p / n), rounding))
    facts: dict[str, float | str] = {}
    if member.discrete:
        share = found.seen.w / n
        kl = float(share @ (np.log(share) - sum(member.log_p(found.seen.x))))
        facts["KL(empirical || model)"] = kl
        entropy = -float(share @ np.log(share))
        checks.append(Check("KL(empirical || model) + entropy + mean log p", abs(kl + entropy + mean_log), rounding))
    what = "mean and variance" if method == "moments" else "E T"
    whose = "the rows and the prior" if prior else "the rows, with n - 1 in place of n" if unbiased else "the rows"
    claim = f"the {family} whose {what} equals that of {whose}"
    return Certificate("exact", claim, -mean_log, checks=tuple(checks), facts=facts)


def log_likelihood(family: str, theta: Theta, rows: Rows) -> float:
    """Return Σ w log p(x) of the member with these parameters."""
    return rows.sum(partial(_family_sums, family, theta, "ml")).log_p


# ------------------------------------------------------------------------------------------------------------- sums
@dataclass(frozen=True)
class _DistinctRows:
    """The distinct rows and the weight of each; `+` merges two sets of rows."""

    x: Array  # (u, d)
    w: Array  # (u,)

    def __add__(self, other: _DistinctRows) -> _DistinctRows:
        return _merge_equal_rows(np.concatenate([self.x, other.x]), np.concatenate([self.w, other.w]))


def _merge_equal_rows(x: Array, w: Array) -> _DistinctRows:
    one = x.shape[1] == 1  # sorting numbers is faster than sorting rows
    values, where = np.unique(x[:, 0] if one else x, axis=None if one else 0, return_inverse=True)
    return _DistinctRows(values.reshape(-1, x.shape[1]), np.bincount(where.ravel(), w, len(values)))


@dataclass(frozen=True)
class _FamilySums(Sums):
    """The sums over rows that the certificate needs."""

    weight: float  # Σ w
    T: Array  # Σ w T  (m,)
    log_p: float  # Σ w log p
    terms: float  # Σ w of the absolute terms of log p
    seen: _DistinctRows  # empty for continuous families


@np.errstate(all="ignore")  # on threads of their own, which do not know of the caller's
def _family_sums(family: str, theta: Theta, method: str, block: Block) -> _FamilySums:
    member = family_at(family, theta, method)
    positive = block.w > 0
    X, w = dense(block.X)[positive], block.w[positive]
    terms = [np.broadcast_to(term, len(X)) for term in member.log_p(X)]
    seen = _merge_equal_rows(X, w) if member.discrete else _DistinctRows(X[:0], w[:0])
    sizes = sum(np.abs(term) for term in terms)
    return _FamilySums(float(w.sum()), w @ member.T(X), float(w @ sum(terms)), float(w @ sizes), seen)
