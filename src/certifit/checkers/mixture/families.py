"""Mixtures of products of families checked from the data: one plain EM step, what it gains, Jensen's inequality.

The objective is the mean negative log-likelihood of the observed entries plus
    s/n Σ_kj KL(imagined rows || member kj):
every component has s imagined rows, which are like all rows. In columns of counts one more row is among them, at the
family's middle; in Gaussian columns their mean is the median and their deviation the distance between quartiles.
The checker uses no code of the solver: densities are those of the checker of single families
(`checkers.plain.exponential_families`), the M step is the textbook's (`checkers.plain.univariate_families`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from certifit.checkers.mixture.column_survey import survey_columns
from certifit.checkers.mixture.em import (
    EPS,
    NEVER,
    EMStepResult,
    NextStepSums,
    ReportedFit,
    compare_joints,
    refused_certificate,
    reported_checks,
    stationary_certificate,
)
from certifit.checkers.mixture.saddles import (
    ComponentSlices,
    best_parting,
    equal_components,
    least_gain,
    saddle_check,
    saddle_sample,
)
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.exponential_families import TEXTBOOK
from certifit.checkers.plain.univariate_families import UNIVARIATE_FAMILIES, TextbookFamily, Theta
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums


class FamilyColumn(NamedTuple):
    """A column's family and its known parameters."""

    family: str  # the name of its class
    known: Theta  # of a Categorical: k, its number of classes
    unit: tuple[float, float] = (0.0, 1.0)  # 0 and 1 of the units that it is measured in: median and spread

    @property
    def textbook(self) -> TextbookFamily:
        return UNIVARIATE_FAMILIES[self.family]

    @property
    def is_gaussian(self) -> bool:
        return self.family in ("Gaussian", "GaussianFixedVariance")

    @property
    def is_trial(self) -> bool:
        """Whether its numbers are successes in a number of trials."""
        return self.family in ("Bernoulli", "Binomial")

    @property
    def may_be_zero(self) -> bool:
        """Whether a parameter of the family may be 0."""
        return self.family in ("Bernoulli", "Binomial", "Categorical", "Poisson")

    def in_units(self, x: Array) -> Array:
        return (x - self.unit[0]) / self.unit[1]

    def member(self, theta: Theta) -> ColumnMember:
        known = {name: value for name, value in self.known.items() if name != "k"}
        return ColumnMember(self, {**theta, **known})

    def likeliest(self, tau: Array) -> ColumnMember:
        return self.member(self.textbook.likeliest(tau, self.known))


class ColumnMember(NamedTuple):
    """A family at some parameters, in a column's units."""

    column: FamilyColumn
    theta: Theta

    def log_p(self, x: Array) -> Array:
        terms = TEXTBOOK[self.column.family](self.theta).log_p(self.column.in_units(x)[:, None])
        return np.sum([np.broadcast_to(term, len(x)) for term in terms], axis=0) - np.log(self.column.unit[1])

    def score(self, tau: Array) -> float:
        return self.column.textbook.score(self.theta, tau)

    @property
    def is_invalid(self) -> bool:
        """Whether no member of the family has these parameters."""
        values = {name: np.atleast_1d(value) for name, value in self.theta.items()}
        signs = [v for name, v in values.items() if not (name == "mean" and self.column.is_gaussian)]
        fine = all((v > 0).all() or (self.column.may_be_zero and (v >= 0).all()) for v in signs)
        p = values.get("p", np.zeros(1))
        whole = self.column.family != "Categorical" or abs(p.sum() - 1) <= 1e-9
        return not (fine and (p <= 1).all() and whole)


class FamilyMixturePoint(NamedTuple):
    """A mixture of products of members."""

    weights: Array  # (k,)
    members: list[list[ColumnMember]]  # of each component, by column


class MatchedMeans(NamedTuple):
    """A mixture after an M step."""

    point: FamilyMixturePoint
    missed: float  # Σ (Σ r + s) KL(new || old), 0 where means matched already
    size: float  # of the terms whose differences these are


class FittedFamilyMixture(NamedTuple):
    """The fitted attributes and the setting `smoothing`."""

    weights: Array  # (k,)
    columns: Sequence[FamilyColumn]
    theta: Sequence[Sequence[Theta]]  # free parameters of each component, by column
    smoothing: float


# ------------------------------------------------------------------------------------------ the check
@dataclass(frozen=True)
class FamilyExpectations(Sums):
    """What one E step expects."""

    loglik: float  # Σ w log p(x)
    weight: float  # Σ w
    n: Array  # Σ r (k,)
    observed: Array  # Σ r over rows with an entry in each column (k, d)
    total: Array  # Σ r T, column after column (k, M)


def certify(
    model: FittedFamilyMixture,
    tol: float,
    rows: Rows,
    reported: ReportedFit | None = None,
    more: tuple[Check, ...] = (),
    prior: Mapping[str, Any] | None = None,
) -> Certificate:
    """Check a mixture on these rows, and what it reports of itself; `more` checks are added to the certificate.

    `prior` is what the model keeps of its imagined rows and of its columns' units.
    """
    weights, columns = model.weights, _with_units(model.columns, rows)
    at = FamilyMixturePoint(
        weights, [[c.member(_to_units(c, t)) for c, t in zip(columns, row, strict=True)] for row in model.theta]
    )
    invalid = sum(member.is_invalid for row in at.members for member in row)
    checks = (
        Check("weights below zero, or all of them zero", float((weights < 0).sum() + (weights.sum() == 0)), 0.0),
        Check("parameters that no member of their family has", float(invalid), 0.0),
    )
    if not all(check.passed for check in checks):
        return refused_certificate(tol, *checks, *more)
    whole = rows.sum(partial(_whole, columns))
    W = whole.weight
    sums = list(zip(columns, _split(columns, whole.total[0]), whole.observed[0], strict=True))
    s, imagined = np.array([_strength(model.smoothing, *of) for of in sums]), [_imagined(*of) for of in sums]
    if prior is not None:
        more = (*more, *_prior_checks(prior, columns, W, s, imagined))
    before = rows.sum(partial(_expect, at))
    after, missed, size = _maximise(at, columns, before, s, imagined)
    rest = rows.sum(partial(_compare, at, after))
    result = EMStepResult(
        before.loglik / W,
        _penalty(at, s, imagined) / W,
        rest.loglik / W,
        _penalty(after, s, imagined) / W,
        rest.bound / W,
        rest.kl / W,
    )
    counts = all(c.textbook.extra_row for c in columns)
    # Never more than a hundredth of a nat, as in `stationary_certificate`.
    rounding = min(1e-11 + 64 * EPS * size / W, 0.01)
    matched = Check("members off the mean statistics of their rows by, nats a row,", missed / W, tol + rounding)
    stored = _stored_rounding(columns, imagined)
    limit = least_gain(tol, result.loglik - result.penalty, stored)

    def measured(
        point: FamilyMixturePoint, slices: ComponentSlices | None = None
    ) -> tuple[float, FamilyMixturePoint]:
        e = rows.sum(partial(_expect, point, slices=slices))
        return e.loglik / W - _penalty(point, s, imagined) / W, _maximise(point, columns, e, s, imagined).point

    parted = best_parting(
        _equal_groups(at, rows), result.loglik - result.penalty, lambda g: measured(at, g)[1], measured, limit
    )
    more = (
        *checks[1:],
        matched,
        saddle_check(parted, limit),
        *more,
        *(() if reported is None else reported_checks(reported, result, W, stored)),
    )
    return stationary_certificate(result, weights, 0.0 if counts else np.nan, tol, more, None, stored)


def _stored_rounding(columns: Sequence[FamilyColumn], imagined: Sequence[Array]) -> float:
    """Return how many nats a row the last digits of η·T - A may change; as large as for the imagined rows."""
    sizes = [abs(column.likeliest(tau).score(tau)) for column, tau in zip(columns, imagined, strict=True)]
    return 4 * EPS * float(sum(sizes))


def _prior_checks(
    prior: Mapping[str, Any], columns: Sequence[FamilyColumn], W: float, s: Array, imagined: Sequence[Array]
) -> tuple[Check, ...]:
    """Compare what a model keeps of its imagined rows and units with what follows from the rows."""
    place, size = np.array([c.unit for c in columns]).T
    wanted = {
        "rows": np.array(W),
        "strength": s,
        "statistics": _grouped_statistics(columns, imagined),
        "sizes": np.array([2 if c.is_trial else c.known.get("k", 0) for c in columns], float),
        "shift": place,
        "scale": size,
    }
    scales = {"shift": size, "statistics": 1.0 + np.abs(wanted["statistics"])}
    checks = []
    for name, values in wanted.items():
        stored = np.asarray(prior[name], dtype=np.float64)
        if stored.shape != values.shape:
            raise DataError(got=f"prior_ {name} of shape {stored.shape}", wanted=f"{values.shape}")
        off = np.abs(stored - values) / scales.get(name, np.maximum(np.abs(values), 1e-300))
        checks.append(Check(f"prior_ {name} off the rows', relative", float(off.max(initial=0.0)), 1e-9))
    return tuple(checks)


def _grouped_statistics(columns: Sequence[FamilyColumn], imagined: Sequence[Array]) -> Array:
    """Return the imagined rows' means of T, columns of one family side by side; of trials, failures and successes."""
    groups: dict[Any, list[Array]] = {}
    for c, tau in zip(columns, imagined, strict=True):
        key = c.family, *(value for name, value in c.known.items() if name != "k")
        groups.setdefault(key, []).append(np.array([c.known.get("n", 1) - tau[0], tau[0]]) if c.is_trial else tau)
    return np.concatenate([tau for group in groups.values() for tau in group])


def _equal_groups(at: FamilyMixturePoint, rows: Rows) -> list[ComponentSlices]:
    if len(at.weights) == 1:
        return []
    X, w = saddle_sample(rows)
    log_f = _joint(at._replace(weights=np.ones(len(at.weights))), X, ~np.isnan(X))
    return equal_components(log_f, at.weights, X, w)


def _maximise(
    at: FamilyMixturePoint,
    columns: Sequence[FamilyColumn],
    e: FamilyExpectations,
    s: Array,
    imagined: Sequence[Array],
) -> MatchedMeans:
    """Take the M step by matching means."""
    new: list[list[ColumnMember]] = []
    missed, size, totals = 0.0, 0.0, _split(columns, e.total)
    for i, old in enumerate(at.members):
        new.append([])
        for j, column in enumerate(columns):
            weight = e.observed[i, j] + s[j]
            if weight == 0:  # a column that a component has no row of stays as it is
                new[i].append(old[j])
                continue
            tau = (totals[j][i] + s[j] * imagined[j]) / weight
            new[i].append(column.likeliest(tau))
            best = new[i][j].score(tau)
            missed, size = missed + weight * (best - old[j].score(tau)), size + weight * abs(best)
    return MatchedMeans(FamilyMixturePoint(e.n / e.weight, new), missed, size)


def _with_units(columns: Sequence[FamilyColumn], rows: Rows) -> list[FamilyColumn]:
    """Return the columns, the Gaussian ones with their units."""
    if not any(c.is_gaussian for c in columns):
        return list(columns)
    survey = survey_columns(rows)
    out = []
    for j, c in enumerate(columns):
        size = float(survey.spread[j]) if c.family == "Gaussian" else 1.0
        out.append(c._replace(unit=(float(survey.median[j]), size)) if c.is_gaussian else c)
    return out


def _to_units(column: FamilyColumn, theta: Theta) -> Theta:
    place, size = column.unit
    if not column.is_gaussian:
        return theta
    scaled = {"mean": (theta["mean"] - place) / size}
    return {**scaled, "variance": theta["variance"] / size**2} if "variance" in theta else scaled


def _strength(smoothing: float, column: FamilyColumn, total: Array, n: float) -> float:
    """Return the number of imagined rows of a column.

    A Gaussian column without spread has 1000 for each row, so that it is alike in all components; densities have at
    least 1e-6.
    """
    if column.family == "Gaussian" and total[1] == 0:
        return 1e3 * n
    return smoothing if column.textbook.extra_row else max(smoothing, 1e-6)


def _imagined(column: FamilyColumn, total: Array, n: float) -> Array:
    """Return the imagined rows' mean of T (m,)."""
    extra_row = column.textbook.extra_row
    if column.family == "Gaussian":
        return np.array([0.0, 1.0])
    return total / n if extra_row is None else (total + extra_row(column.known)) / (n + 1.0)


def _split(columns: Sequence[FamilyColumn], total: Array) -> list[Array]:
    """Split statistics (…, M) by column."""
    widths = [c.textbook.T(np.full(1, 0.5), c.known).shape[1] for c in columns]
    return np.split(total, np.cumsum(widths)[:-1], axis=-1)


def _penalty(at: FamilyMixturePoint, s: Array, imagined: Sequence[Array]) -> float:
    """Return Σ s KL(imagined rows || member)."""
    total = 0.0
    for row in at.members:
        for member, strength, tau in zip(row, s, imagined, strict=True):
            if strength > 0:
                total += strength * (member.column.likeliest(tau).score(tau) - member.score(tau))
    return total


def _counted_rows(block: Block) -> tuple[Array, Array, Array]:
    """Return entries, weights, and which entries are there, of rows with a positive weight and any entry."""
    X = dense(block.X)
    here = ~np.isnan(X)
    some = (block.w > 0) & here.any(axis=1)
    return X[some], block.w[some], here[some]


def _joint(at: FamilyMixturePoint, X: Array, here: Array) -> Array:
    """Return log π_k f_k of the observed entries (n, k)."""
    out = np.zeros((len(X), len(at.weights)))
    with np.errstate(divide="ignore"):
        for i, row in enumerate(at.members):
            for j, member in enumerate(row):
                out[here[:, j], i] += member.log_p(X[here[:, j], j])
        return np.maximum(out + np.log(at.weights), NEVER)


def _whole(columns: Sequence[FamilyColumn], block: Block) -> FamilyExpectations:
    """Sum the statistics of all rows, as if they belonged to one component."""
    X, w, here = _counted_rows(block)
    return _collect(columns, X, here, np.zeros(len(X)), w[:, None])


def _expect(at: FamilyMixturePoint, block: Block, slices: ComponentSlices | None = None) -> FamilyExpectations:
    """Take the E step; with `slices`, rows of equal components are dealt out among these."""
    X, w, here = _counted_rows(block)
    joint = _joint(at, X, here)
    log_p = logsumexp(joint, axis=1)
    R = np.exp(joint - log_p[:, None]) * w[:, None]
    R = R if slices is None else slices.deal(X, R.T).T
    return _collect([member.column for member in at.members[0]], X, here, w * log_p, R)


def _collect(columns: Sequence[FamilyColumn], X: Array, here: Array, loglik: Array, R: Array) -> FamilyExpectations:
    """Sum the statistics of rows, weighted by R (n, k)."""
    total = []
    for j, column in enumerate(columns):
        there = here[:, j]
        total.append(R[there].T @ column.textbook.T(column.in_units(X[there, j]), column.known))
    n = R.sum(axis=0)
    return FamilyExpectations(float(loglik.sum()), float(n.sum()), n, R.T @ here, np.concatenate(total, axis=1))


def _compare(at: FamilyMixturePoint, after: FamilyMixturePoint, block: Block) -> NextStepSums:
    X, w, here = _counted_rows(block)
    return compare_joints(_joint(at, X, here), _joint(after, X, here), w)
