"""EM for a mixture of any components, laid open.

    max over weights π, parameters θ of   F(π, θ) = Σ wᵢ log Σ_k π_k f_k(xᵢ) / Σ wᵢ - penalty(θ)

For any responsibilities q (rows that sum to one), Jensen's inequality gives
    F = bound(θ, q) + KL(q || posterior),    bound = Σ wᵢ Σ_k q_ik log(π_k f_k(xᵢ) / q_ik) / Σ wᵢ - penalty.
The E step sets q to the posterior, so that KL = 0; the M step raises the bound. Near a maximum F rises by at most
twice what the bound does: that is the gain the loop promises and stops on, and it comes from sums that it has.
References: Dempster, Laird & Rubin, Maximum likelihood from incomplete data via the EM algorithm (1977); Neal &
Hinton, A view of the EM algorithm that justifies incremental, sparse, and other variants (1998).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from certifit.checkers.mixture.em import Stand, stationary
from certifit.core import Certificate, Check, Step
from certifit.exceptions import DataError
from certifit.mixture.em_loops import contrast, softmax
from certifit.numerics.missing import has_missing
from certifit.rows import Array, Block, Rows, Sums

TRACE = np.dtype([("iteration", np.int64), ("loglik", np.float64), ("bound", np.float64), ("kl", np.float64)])


class Components(Protocol):
    """The k components of a mixture at some parameters; immutable, and picklable (Dask sends it to workers)."""

    def pieces(self, X: Array, counts: Array, holes: bool) -> Iterator[Any]:
        """Indices of the rows to look at together, a few at a time; only rows that `counts` (n,) marks.

        `holes` says whether X has any.
        """

    def workspace(self) -> Any:
        """Memory that `look` may use again for every piece of a block (None where it needs none)."""

    def look(self, X: Array, work: Any) -> tuple[Array, Any]:
        """log f_k(x) (k, n) of some rows, and whatever `again` and `collect` want to know of them."""

    def again(self, seen: Any, work: Any) -> tuple[Array, Any]:
        """The same of rows that other components of this kind saw."""

    def collect(self, seen: Any, R: Array) -> tuple[Array, Any]:
        """Sums of R (k, n) over these rows (k,), and of their statistics, weighted by R: something with `+`."""

    def maximise(self, sums: Any, n: Array) -> tuple[Self, float]:
        """The M step: components that maximise Σ r log f_k - Σ n penalty, and by how much they raise it.

        `sums` are those that these components collected over all rows, n (k,) the sums of r. A component without rows
        stays as it is.
        """

    def penalty(self) -> float:
        """What is subtracted from the mean log-likelihood."""


class Mixture(NamedTuple):
    """The parameters of a mixture."""

    weights: Array  # π (k,)
    components: Any  # a Components

    @property
    def log_weights(self) -> Array:
        with np.errstate(divide="ignore"):  # -inf of a component without weight
            return np.log(self.weights)


@dataclass(frozen=True)
class Expected(Sums):
    """What one E step learns."""

    loglik: float  # Σ w log p(x)
    n: Array  # Σ w r (k,)
    statistics: Any  # what the components collected

    @property
    def weight(self) -> float:
        """Σ w over rows that have a say."""
        return float(self.n.sum())


def posterior(log_weights: Array, logf: Array, w: Array | None = None) -> tuple[Array, Array]:
    """Responsibilities times w (k, n), in the place of log f_k(x), and log p(x) (n,).

    >>> posterior(np.log([0.5, 0.5]), np.log([[0.1], [0.3]]))[0].round(2).tolist()
    [[0.25], [0.75]]
    """
    n = logf.shape[1]
    log_p = np.empty(n)
    softmax(logf, log_weights, np.ones(n) if w is None else w, log_p)
    return logf, log_p


def each_piece(at: Mixture, X: Array, w: Array | None = None) -> Iterator[tuple[Any, Array, Any]]:
    """For some rows after others that have a say: their indices, log f_k(x) (k, n), and what `collect` wants."""
    work = at.components.workspace()
    for piece in at.components.pieces(X, *counts(X, np.ones(len(X)) if w is None else w)):
        with np.errstate(over="ignore"):  # -inf of a component that is immensely far away
            found = at.components.look(X[piece], work)
        yield piece, *found


# ------------------------------------------------------------------------------------------ sums over a block
def expect(at: Mixture, block: Block) -> Expected:
    """The E step, and the sums that the M step needs."""
    loglik, n, total = 0.0, np.zeros(len(at.weights)), None
    log_weights = at.log_weights
    for piece, logf, seen in each_piece(at, block.X, block.w):
        w = block.w[piece]
        R, log_p = posterior(log_weights, logf, w)
        loglik += float(w @ log_p)
        more, found = at.components.collect(seen, R)
        n += more
        total = found if total is None else total + found
    if total is None:  # zeros, of the right shapes
        logf, seen = at.components.look(block.X[:0], at.components.workspace())
        total = at.components.collect(seen, logf)[1]
    return Expected(loglik, n, total)


def counts(X: Array, w: Array) -> tuple[Array, bool]:
    """Rows that have a say (n,): they have weight, and at least one entry; and whether any entry is missing."""
    some, holes = w > 0, has_missing(X)
    return some & ~np.isnan(X).all(axis=1) if holes else some, holes


@dataclass(frozen=True)
class Comparison(Sums):
    """Two mixtures on the same rows, row by row: what Jensen's inequality says of the step between them."""

    weight: float
    before: float  # Σ w log p(x) of the first
    after: float  # of the second
    bound: float  # Σ w Σ_k q log(π_k f_k / q) of the second, q the first one's posterior
    kl: float  # Σ w KL(q || posterior of the second)


def compare(first: Mixture, second: Mixture, block: Block) -> Comparison:
    """A pass that shows how a step from the first to the second raises the likelihood."""
    total = np.zeros(5)
    work = second.components.workspace()
    weights = first.log_weights, second.log_weights
    for piece, logf, seen in each_piece(first, block.X, block.w):
        w = block.w[piece]
        each = np.empty((4, len(w)))
        with np.errstate(over="ignore"):
            contrast(logf, second.components.again(seen, work)[0], *weights, each)
        total += [w.sum(), *each @ w]
    return Comparison(*total.tolist())


def likelihood(at: Mixture, block: Block) -> Array:
    """Σ w log p(x) and Σ w, over rows that have a say."""
    total = np.zeros(2)
    for piece, logf, _ in each_piece(at, block.X, block.w):
        w = block.w[piece]
        total += [w @ posterior(at.log_weights, logf)[1], w.sum()]
    return total


def proof(
    at: Mixture,
    after: Mixture,
    found: Comparison,
    trace: Array,
    least: float,
    tol: float,
    facts: Mapping[str, float | str] | None = None,
) -> Certificate:
    """The certificate of a fit, from the step after it and the objective F at all its steps; see `stationary`."""
    loglik, new, bound, kl = (np.array([found.before, found.after, found.bound, found.kl]) / found.weight).tolist()
    stand = Stand(loglik, at.components.penalty(), new, after.components.penalty(), bound, kl)
    fall = float(-np.diff(trace).min(initial=0.0))
    never_fell = Check("largest fall of the objective", fall, 1e-10 * (1 + float(np.abs(trace).max())))
    return stationary(stand, at.weights, least, tol, (never_fell,), facts)


# ------------------------------------------------------------------------------------------ per row
def log_density(at: Mixture, block: Block) -> Array:
    """log p(x) of each row's observed entries (n,); 0 for a row without any."""
    out = np.zeros(len(block.w))
    for piece, logf, _ in each_piece(at, block.X):
        out[piece] = posterior(at.log_weights, logf)[1]
    return out


def responsibilities(at: Mixture, block: Block) -> Array:
    """The posterior (n, k); the weights for a row without entries."""
    out = np.empty((len(block.w), len(at.weights)))
    out[~counts(block.X, np.ones(len(out)))[0]] = at.weights
    for piece, logf, _ in each_piece(at, block.X):
        out[piece] = posterior(at.log_weights, logf)[0].T
    return out


def labels(at: Mixture, block: Block) -> Array:
    """The likeliest component of each row (n,), the first of equals."""
    return responsibilities(at, block).argmax(axis=1)


# ------------------------------------------------------------------------------------------ the loop
class Point(NamedTuple):
    """Where EM is, and what the step there promised."""

    mixture: Mixture
    bound: float = np.nan  # of the objective here, by the posterior at the last point; at the first there is none


class EM:
    """EM on these rows, for `fixed_point`; its objective is -F. Keeps the trace of its steps."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.trace: list[tuple[float, float]] = []  # F and its bound at each point; at the first by its own posterior
        self.last: tuple[Point, Mixture] | None = None  # the last point, and where its M step leads

    def measure(self, at: Point) -> Expected:
        return self.rows.sum(partial(expect, at.mixture))

    def update(self, at: Point, found: Expected) -> Step[Point]:
        check_finite(found.loglik, found.weight)
        mixture, rise = step(at.mixture, found)
        value = found.loglik / found.weight - at.mixture.components.penalty()
        self.trace.append((value, value if np.isnan(at.bound) else at.bound))
        self.last = at, mixture
        return Step(Point(mixture, value + rise), -value, 2.0 * max(rise, 0.0))

    def after(self, at: Point) -> Mixture:
        """One more step from here."""
        if self.last is not None and self.last[0] is at:
            return self.last[1]
        return step(at.mixture, self.measure(at))[0]

    def table(self) -> Array:
        """What each iteration did, as the fields of `TRACE`; log-likelihood and bound are less the penalty."""
        F, bound = np.array(self.trace).T
        out = np.empty(len(F), TRACE)
        out["iteration"], out["loglik"], out["bound"], out["kl"] = np.arange(len(F)), F, bound, F - bound
        return out


def step(at: Mixture, found: Expected) -> tuple[Mixture, float]:
    """The M step, and by how much (nats a row) it raises the bound."""
    weights = found.n / found.weight
    components, rise = at.components.maximise(found.statistics, found.n)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(weights > 0, np.log(weights) - np.log(at.weights), 0.0)
    return Mixture(weights, components), float(weights @ change) + rise / found.weight


def check_finite(loglik: float, weight: float) -> None:
    """Refuse rows without a say, and values whose squares overflow."""
    if weight == 0:
        raise DataError(
            got="no row with a positive weight and at least one entry",
            wanted="at least one",
            fix="Check the weights.",
        )
    if not (np.isfinite(loglik) and np.isfinite(weight)):
        raise DataError(
            got="values so large that their squares overflow",
            wanted="numbers whose squares are below 1e308",
            fix="Rescale the columns, for instance to unit variance.",
        )
