"""EM for a mixture of any components: the E step, the M step, and the rule that stops them.

    max over weights π, parameters θ of   F(π, θ) = Σ wᵢ log Σ_k π_k f_k(xᵢ) / Σ wᵢ - penalty(θ)

For any responsibilities q (numbers q_ik >= 0 that sum to one over k), Jensen's inequality gives
    F = bound(θ, q) + KL(q || posterior),    bound = Σ wᵢ Σ_k q_ik log(π_k f_k(xᵢ) / q_ik) / Σ wᵢ - penalty.
The E step sets q to the posterior, so that KL = 0; the M step raises the bound.

One EM step, and what is in memory. A block of rows is read in batches that fit into a processor's cache. Every block
allocates one workspace; each of its batches overwrites it.

| step                       | function                          | reads                  | writes                  |
|----------------------------|-----------------------------------|------------------------|-------------------------|
| 1 read a batch             | `MixtureComponents.read_rows`     | X                      | features, in workspace  |
| 2 log f_k(x) (k, n)        | `MixtureComponents.log_densities` | features, θ            | log f_k, in workspace   |
| 3 E step: w q (k, n)       | `posterior`                       | log f_k, π, w          | over log f_k            |
| 4 sums over rows           | `MixtureComponents.weighted_sums` | w q, features          | new `EStepSums`         |
| 5 M step, after all blocks | `m_step`                          | sum of the `EStepSums` | new `MixtureParameters` |

The rule that stops: near a maximum F rises in one step by at most twice what the bound rises by. `MixtureEM.update`
promises twice that rise as the gain, which costs no pass, and the loop ends when the gain is at most `tol`.
References: Dempster, Laird & Rubin, Maximum likelihood from incomplete data via the EM algorithm (1977); Neal &
Hinton, A view of the EM algorithm that justifies incremental, sparse, and other variants (1998).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from certifit.checkers.mixture.em import EMStepResult, stationary_certificate
from certifit.checkers.mixture.saddles import (
    ComponentSlices,
    PartedMixture,
    best_parting,
    equal_components,
    saddle_sample,
)
from certifit.core import Certificate, Check, Step
from certifit.exceptions import DataError
from certifit.mixture.em_loops import compare_rows, softmax
from certifit.numerics.missing import has_missing
from certifit.rows import Array, Block, Rows, Sums


class MixtureComponents(Protocol):
    """The k components of a mixture at some parameters θ; immutable, and picklable (Dask sends it to workers)."""

    def batches(self, X: Array, counted: Array, missing: bool) -> Iterator[Any]:
        """Give the indices of the rows to read together, batch by batch; only rows that `counted` (n,) marks.

        `missing` says whether any entry of X is missing.
        """

    def new_workspace(self) -> Any:
        """Allocate the memory that all batches of a block share (None where nothing is shared)."""

    def read_rows(self, X: Array, workspace: Any) -> Any:
        """Read a batch of rows (n, d): their features, which depend on the data and not on θ."""

    def log_densities(self, batch: Any, workspace: Any) -> tuple[Array, Any]:
        """Return log f_k(x) (k, n) of a batch, and the batch with whatever `weighted_sums` needs besides.

        The batch may have been read by other components of the same kind.
        """

    def weighted_sums(self, batch: Any, R: Array) -> tuple[Array, Any]:
        """Return Σ R (k,) over the rows of a batch, R (k, n), and Σ R times their statistics: something with `+`."""

    def maximise(self, sums: Any, n: Array) -> tuple[Self, float]:
        """M step: return the components that maximise Σ r log f_k - Σ n penalty, and by how much they raise it.

        `sums` and n (k,) are the two parts of `weighted_sums` of these components, over all rows. A component without
        rows stays as it is.
        """

    def penalty(self) -> float:
        """Return what is subtracted from the mean log-likelihood."""

    def stored_rounding(self) -> float:
        """Return how many nats a row the last digits of θ may change the log-likelihood by."""


class MixtureParameters(NamedTuple):
    """All parameters of a mixture."""

    weights: Array  # π (k,)
    components: Any  # θ: a MixtureComponents

    @property
    def log_weights(self) -> Array:
        with np.errstate(divide="ignore"):  # -inf of a component without weight
            return np.log(self.weights)


@dataclass(frozen=True)
class EStepSums(Sums):
    """What the E step leaves for the M step, added over blocks."""

    loglik: float  # Σ w log p(x)
    n: Array  # Σ w r (k,)
    statistics: Any  # Σ w r times the rows' statistics, in the components' own form

    @property
    def weight(self) -> float:
        """Σ w over the counted rows."""
        return float(self.n.sum())


# ------------------------------------------------------------------------------------------ batches of a block
def counted_rows(X: Array, w: Array) -> tuple[Array, bool]:
    """Mark the rows (n,) with a positive weight and at least one entry; and say whether any entry is missing."""
    weighted, missing = w > 0, has_missing(X)
    return weighted & ~np.isnan(X).all(axis=1) if missing else weighted, missing


def each_batch(at: MixtureParameters, X: Array, w: Array | None = None) -> Iterator[tuple[Any, Array, Any]]:
    """Go through the counted rows: indices of a batch, log f_k(x) (k, n) and the batch.

    The last two live in one workspace that the next batch overwrites.
    """
    workspace = at.components.new_workspace()
    for index in at.components.batches(X, *counted_rows(X, np.ones(len(X)) if w is None else w)):
        with np.errstate(over="ignore"):  # -inf of a component that is immensely far away
            logf, batch = at.components.log_densities(at.components.read_rows(X[index], workspace), workspace)
        yield index, logf, batch


def posterior(log_weights: Array, logf: Array, w: Array | None = None) -> tuple[Array, Array]:
    """Overwrite log f_k(x) (k, n) with the responsibilities times w, and return them and log p(x) (n,).

    >>> posterior(np.log([0.5, 0.5]), np.log([[0.1], [0.3]]))[0].round(2).tolist()
    [[0.25], [0.75]]
    """
    n = logf.shape[1]
    log_p = np.empty(n)
    softmax(logf, log_weights, np.ones(n) if w is None else w, log_p)
    return logf, log_p


def joint_log_densities(at: MixtureParameters, X: Array) -> Array:
    """Return log π_k f_k(x) of rows X, all of them in one batch (n, k)."""
    workspace = at.components.new_workspace()
    logf, _ = at.components.log_densities(at.components.read_rows(X, workspace), workspace)
    return logf.T + np.log(at.weights)


# ------------------------------------------------------------------------------------------ the two steps
def e_step(at: MixtureParameters, block: Block, slices: ComponentSlices | None = None) -> EStepSums:
    """Find the responsibilities of a block's rows and the sums that the M step needs.

    With `slices`, rows of equal components are dealt out among these.
    """
    loglik, n, total = 0.0, np.zeros(len(at.weights)), None
    log_weights = at.log_weights
    for index, logf, batch in each_batch(at, block.X, block.w):
        w = block.w[index]
        R, log_p = posterior(log_weights, logf, w)
        loglik += float(w @ log_p)
        R = R if slices is None else slices.deal(block.X[index], R)
        added, statistics = at.components.weighted_sums(batch, R)
        n += added
        total = statistics if total is None else total + statistics
    if total is None:  # no row counts: zeros of the right shapes
        workspace = at.components.new_workspace()
        logf, batch = at.components.log_densities(at.components.read_rows(block.X[:0], workspace), workspace)
        total = at.components.weighted_sums(batch, logf)[1]
    return EStepSums(loglik, n, total)


def m_step(at: MixtureParameters, sums: EStepSums) -> tuple[MixtureParameters, float]:
    """Return the parameters that maximise the bound, and by how much (nats a row) they raise it."""
    weights = sums.n / sums.weight
    components, rise = at.components.maximise(sums.statistics, sums.n)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(weights > 0, np.log(weights) - np.log(at.weights), 0.0)
    return MixtureParameters(weights, components), float(weights @ change) + rise / sums.weight


class EMPoint(NamedTuple):
    """Where EM is, and the bound on the objective that the step to here left."""

    mixture: MixtureParameters
    bound: float = np.nan  # of F here, by the posterior at the point before; NaN at the first point


class MixtureEM:
    """EM on these rows as `measure` and `update` of `fixed_point`, which minimises -F; keeps a trace of F."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.trace: list[tuple[float, float]] = []  # F and its bound at each point; equal at the first
        self.parted: tuple[MixtureParameters, PartedMixture] | None = None  # a point, and what parting it led to
        self.last: tuple[EMPoint, MixtureParameters] | None = None  # the last point, and where its M step leads

    def measure(self, at: EMPoint) -> EStepSums:
        return self.rows.sum(partial(e_step, at.mixture))

    def update(self, at: EMPoint, sums: EStepSums) -> Step[EMPoint]:
        """Take the M step and promise twice the rise of the bound as gain: the rule that stops EM."""
        check_finite(sums.loglik, sums.weight)
        mixture, rise = m_step(at.mixture, sums)
        value = sums.loglik / sums.weight - at.mixture.components.penalty()
        self.trace.append((value, value if np.isnan(at.bound) else at.bound))
        self.last = at, mixture
        return Step(EMPoint(mixture, value + rise), -value, 2.0 * max(rise, 0.0))

    def after(self, at: EMPoint) -> MixtureParameters:
        """Return where one more step leads from here."""
        if self.last is not None and self.last[0] is at:
            return self.last[1]
        return m_step(at.mixture, self.measure(at))[0]

    def part(self, at: MixtureParameters, enough: float) -> PartedMixture:
        """Part components that are equal here, and return where that climbs to (`checkers.mixture.saddles`)."""
        if self.parted is None or self.parted[0] is not at:
            self.parted = at, self._part(at, enough)
        return self.parted[1]

    def _part(self, at: MixtureParameters, enough: float) -> PartedMixture:
        X, w = saddle_sample(self.rows)
        even = np.ones(len(at.weights))
        groups = equal_components(joint_log_densities(at._replace(weights=even), X), at.weights, X, w)

        def measured(
            point: MixtureParameters, slices: ComponentSlices | None = None
        ) -> tuple[float, MixtureParameters]:
            sums = self.rows.sum(partial(e_step, point, slices=slices))
            return sums.loglik / sums.weight - point.components.penalty(), m_step(point, sums)[0]

        if not groups:
            return PartedMixture(None, 0.0, None)
        return best_parting(groups, measured(at)[0], lambda s: measured(at, s)[1], measured, enough)

    def table(self) -> Array:
        """Return what each iteration did: log-likelihood and bound, less the penalty, and the KL between them."""
        F, bound = np.array(self.trace).T
        fields = [("iteration", np.int64), ("loglik", np.float64), ("bound", np.float64), ("kl", np.float64)]
        out = np.empty(len(F), np.dtype(fields))
        out["iteration"], out["loglik"], out["bound"], out["kl"] = np.arange(len(F)), F, bound, F - bound
        return out


def check_finite(loglik: float, weight: float) -> None:
    """Refuse rows of which none counts, and values whose squares overflow."""
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


# ------------------------------------------------------------------------------------------ the certificate
@dataclass(frozen=True)
class StepComparison(Sums):
    """Two mixtures on the same rows: what Jensen's inequality says of the step from the first to the second."""

    weight: float  # Σ w
    before: float  # Σ w log p(x) of the first
    after: float  # Σ w log p(x) of the second
    bound: float  # Σ w Σ_k q log(π_k f_k / q) of the second, q the first one's posterior
    kl: float  # Σ w KL(q || posterior of the second)


def compare_mixtures(first: MixtureParameters, second: MixtureParameters, block: Block) -> StepComparison:
    """Compare two mixtures on the rows of a block; each has a workspace of its own."""
    total = np.zeros(5)
    workspace = second.components.new_workspace()
    log_weights = first.log_weights, second.log_weights
    for index, logf, batch in each_batch(first, block.X, block.w):
        w = block.w[index]
        each = np.empty((4, len(w)))
        with np.errstate(over="ignore"):
            compare_rows(logf, second.components.log_densities(batch, workspace)[0], *log_weights, each)
        total += [w.sum(), *each @ w]
    return StepComparison(*total.tolist())


def fit_certificate(
    at: MixtureParameters,
    after: MixtureParameters,
    found: StepComparison,
    trace: Array,
    least: float,
    tol: float,
    facts: Mapping[str, float | str] | None = None,
) -> Certificate:
    """Certify a fit by the step after it and by F at all its steps (trace); see `stationary_certificate`."""
    loglik, new, bound, kl = (np.array([found.before, found.after, found.bound, found.kl]) / found.weight).tolist()
    result = EMStepResult(loglik, at.components.penalty(), new, after.components.penalty(), bound, kl)
    fall = float(-np.diff(trace).min(initial=0.0))
    rounding = at.components.stored_rounding()
    limit = 1e-10 * (1 + float(np.abs(trace).max())) + min(rounding, 0.01)
    never_fell = Check("largest fall of the objective", fall, limit)
    return stationary_certificate(result, at.weights, least, tol, (never_fell,), facts, rounding)


# ------------------------------------------------------------------------------------------ a fitted mixture's use
def likelihood(at: MixtureParameters, block: Block) -> Array:
    """Return Σ w log p(x) and Σ w over the counted rows (2,)."""
    total = np.zeros(2)
    for index, logf, _ in each_batch(at, block.X, block.w):
        w = block.w[index]
        total += [w @ posterior(at.log_weights, logf)[1], w.sum()]
    return total


def log_density(at: MixtureParameters, block: Block) -> Array:
    """Return log p(x) of each row's observed entries (n,); 0 for a row without any."""
    out = np.zeros(len(block.w))
    for index, logf, _ in each_batch(at, block.X):
        out[index] = posterior(at.log_weights, logf)[1]
    return out


def responsibilities(at: MixtureParameters, block: Block) -> Array:
    """Return the posterior (n, k); the weights for a row without entries."""
    out = np.empty((len(block.w), len(at.weights)))
    out[~counted_rows(block.X, np.ones(len(out)))[0]] = at.weights
    for index, logf, _ in each_batch(at, block.X):
        out[index] = posterior(at.log_weights, logf)[0].T
    return out


def labels(at: MixtureParameters, block: Block) -> Array:
    """Return the likeliest component of each row (n,), the first of equals."""
    return responsibilities(at, block).argmax(axis=1)
