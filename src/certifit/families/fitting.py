"""Fitting a family to rows, which needs nothing but weighted means of the statistic T over the rows.

Spread is summed about the sample's own mean: a column with a large offset then loses no digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from certifit.checkers.families.moment_matching import certify_family
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.families.support import Support
from certifit.rows import Array, Block, Rows, Sums, as_rows

if TYPE_CHECKING:
    from certifit.families.family import Family

Method = Literal["ml", "moments"]


@dataclass(frozen=True)
class Prior:
    """A conjugate prior is a number `strength` of imagined rows, over which the mean of T is `mean`.

    >>> from certifit.families import Bernoulli
    >>> Bernoulli.fit([1, 1, 1], prior=Prior(strength=2, mean=0.5)).member.p  # Laplace's rule: (3 + 1) / (3 + 2)
    0.8
    """

    strength: float
    mean: Any  # (m,) mean parameters; a number where m = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", np.atleast_1d(np.asarray(self.mean, dtype=np.float64)))
        if not (np.isfinite(self.strength) and self.strength > 0 and np.isfinite(self.mean).all()):
            raise DataError(
                got=f"a prior of strength {self.strength:g} and mean {self.mean.tolist()}",
                wanted="a positive strength and finite mean parameters",
                fix="For no prior, leave it out.",
            )


@dataclass(frozen=True)
class Fit:
    """The result of a fit: the member, its certificate and the log-likelihood of the rows.

    >>> from certifit.families import Poisson
    >>> found = Poisson.fit([2, 4, 3])
    >>> found.member, found.n, round(found.log_likelihood, 4), found.certificate.holds
    (Poisson(rate=3.0), 3.0, -4.7754, True)
    """

    member: Any
    certificate: Certificate
    n: float  # Σ w
    log_likelihood: float  # Σ w log p(x)
    note: str = ""  # a remark about the estimate, for instance on its bias

    def __str__(self) -> str:
        text = f"{self.member}\n  rows (sum of weights)  {self.n:g}\n  log-likelihood  {self.log_likelihood:.10g}\n"
        return text + (f"  {self.note}\n" if self.note else "") + str(self.certificate)


@dataclass(frozen=True)
class FitRequest:
    """The settings of one fit."""

    method: Method
    unbiased: bool
    prior: Prior | None
    known: dict[str, Any]

    def blend(self, n: float, mean: Array, imagined: Array | None = None) -> Array:
        """Return the mean over rows and imagined rows together; `imagined` replaces the prior's own mean."""
        if self.prior is None:
            return mean
        imagined = self.prior.mean if imagined is None else imagined
        if imagined.shape != mean.shape:
            raise DataError(got=f"a prior mean of shape {imagined.shape}", wanted=f"{mean.shape}")
        share = n / (n + self.prior.strength)
        return share * mean + (1 - share) * imagined


def fit(family: type[Family], X: Any, sample_weight: Any, request: FitRequest) -> Fit:
    """Fit a family to rows, as documented at `Family.fit`, and certify the member."""
    _check_request(family, request)
    support = family.support_of(**request.known)
    rows = as_rows(X if support.vector else one_column(X), sample_weight=sample_weight)
    if not support.vector and rows.n_features != 1:
        raise DataError(
            got=f"{rows.n_features} columns",
            wanted=f"one column: {family.__name__} is a distribution of numbers",
            fix="Fit each column on its own.",
        )
    member = family._estimate(rows, request)
    total = rows.sum(partial(_log_likelihood, member))
    prior = None if request.prior is None else (request.prior.strength, request.prior.mean)
    certificate = certify_family(
        family.__name__, member.parameters, rows, total.x, request.method, unbiased=request.unbiased, prior=prior
    )
    note = ""
    if request.method in family.unbiased_methods and not (request.unbiased or prior):
        note = (
            "variance divided by the number of rows n: on average (n - 1)/n of the true one; "
            "unbiased=True corrects it"
        )
    return Fit(member, certificate, total.n, total.x, note)


def _check_request(family: type[Family], request: FitRequest) -> None:
    name = family.__name__
    check_known(family, request.known)
    if request.method not in ("ml", "moments"):
        raise DataError(got=f"method={request.method!r}", wanted="'ml' or 'moments'")
    if request.unbiased and request.method not in family.unbiased_methods:
        raise DataError(
            got=f"unbiased=True for {name} by method={request.method!r}",
            wanted="an estimate that is a variance",
            fix="Leave unbiased out" + (", or use method='moments'." if family.unbiased_methods else "."),
        )
    if request.prior is not None and (request.unbiased or request.method == "moments"):
        raise DataError(got="a prior with method='moments' or unbiased=True", wanted="a prior with method='ml'")


def check_known(family: type[Family], known: dict[str, Any]) -> None:
    """Refuse known parameters that the family does not have, and calls that leave out one that it needs."""
    if set(family.known) - set(known) or set(known) - {*family.known, *family.optional}:
        raise DataError(
            got=f"{family.__name__} with {', '.join(known) or 'no known parameters'}",
            wanted=f"exactly: {', '.join(family.known) or 'none'}",
        )


def one_column(X: Any) -> Any:
    """Return a sequence of numbers as a table of one column, and a table unchanged."""
    if hasattr(X, "to_frame"):  # a pandas, polars or Dask series
        return X.to_frame()
    if isinstance(X, (list, tuple)):
        X = np.asarray(X)
    return X.reshape(-1, 1) if getattr(X, "ndim", 2) == 1 else X


# --------------------------------------------------------------------------------------------------- weighted means
@dataclass(frozen=True)
class WeightedTotal(Sums):
    """The weighted sum of a function over rows, and the sum of the weights."""

    n: float  # Σ w
    x: Any  # Σ w f(x)


def _positive_rows(block: Block) -> tuple[Array, Array]:
    """Return the rows with a positive weight (float64) and their weights; other rows may even hold NaN."""
    positive = block.w > 0
    X = np.asarray(block.X, dtype=np.float64)
    return (X, block.w) if positive.all() else (X[positive], block.w[positive])


def _weighted_total(f: Callable[[Array], Array], block: Block) -> WeightedTotal:
    X, w = _positive_rows(block)
    return WeightedTotal(float(w.sum()), w @ f(X))


def weighted_mean(rows: Rows, f: Callable[[Array], Array]) -> tuple[float, Array]:
    """Return Σ w and the weighted mean (m,) of f(X), which is (rows, m); f must be picklable."""
    total = rows.sum(partial(_weighted_total, f))
    return total.n, total.x / total.n


def _checked_total(origin: Array, support: Support, block: Block) -> WeightedTotal:
    """Sum x - origin over the rows of a block, and refuse rows outside the support."""
    X, w = _positive_rows(block)
    inside = support.contains(X if support.vector else X[:, 0])
    if not inside.all():
        bad = int(np.argmin(inside))
        value = X[bad].tolist() if support.vector else f"{X[bad, 0]:g}"
        row = block.start + int(np.flatnonzero(block.w > 0)[bad])
        raise DataError(got=f"{value} in row {row}", wanted=support.words)
    return WeightedTotal(float(w.sum()), w @ (X - origin))


def mean(rows: Rows, support: Support, origin: Any = 0.0) -> tuple[float, Array]:
    """Return Σ w and the mean of x (d,); a row outside the support is refused."""
    total = rows.sum(partial(_checked_total, origin, support))
    return total.n, origin + total.x / total.n


def centre(rows: Rows, support: Support) -> tuple[float, Array]:
    """Return Σ w and the mean, summed as differences to the first row: equal rows give exactly that row."""
    first = next(iter(rows))
    return mean(rows, support, np.asarray(first.X[int(np.argmax(first.w > 0))], dtype=np.float64))


def _log_likelihood(member: Family, block: Block) -> WeightedTotal:
    X, w = _positive_rows(block)
    log_p = member.log_density(X if member.support.vector else X[:, 0])
    return WeightedTotal(float(w.sum()), float(w @ log_p))


def _centred_squares(m: Array, X: Array) -> Array:
    Z = X - m
    return np.concatenate([Z, Z * Z], axis=1)


def mean_and_variance(rows: Rows, support: Support, unbiased: bool = False) -> tuple[float, Array, Array]:
    """Return Σ w, means (d,) and variances (d,), the latter summed about the means in a second pass."""
    n, m = centre(rows, support)
    off, square = np.split(weighted_mean(rows, partial(_centred_squares, m))[1], 2)
    return n, m + off, (square - off * off) * bias_factor(n, unbiased)


def bias_factor(n: float, unbiased: bool) -> float:
    """Return the factor of a variance, n/(n - 1) to make it unbiased, else 1."""
    if not unbiased:
        return 1.0
    if not n > 1:
        raise DataError(got=f"a total weight of {n:g}", wanted="more than 1: an unbiased variance needs two rows")
    return n / (n - 1)


def refuse_constant(fix: str) -> None:
    """Refuse a sample without spread: its likelihood grows without bound as the density narrows to a point."""
    raise DataError(
        got="values that are all equal (variance 0)",
        wanted="values that vary: the likelihood of equal values has no maximum",
        fix=fix,
    )
