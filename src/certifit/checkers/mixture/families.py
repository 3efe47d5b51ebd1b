"""Mixtures of products of families re-checked from the data: one plain EM step, what it gains, what Jensen's
inequality says of it.

The objective is the mean negative log-likelihood of what is observed plus  s/n Σ_kj KL(imagined rows || member kj):
every component has s imagined rows, which are like all rows. In columns of counts these have one row more among them,
at the family's middle; in Gaussian ones the median is their mean, the distance between quartiles their deviation.
Densities are those of the checker of single families (`families`); the steps here are the textbook's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from certifit.checkers.mixture.em import NEVER, After, Said, Stand, compare, nothing, stationary, truthful
from certifit.checkers.mixture.gaussian import survey
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.exponential_families import TEXTBOOK
from certifit.checkers.plain.univariate_families import PLAIN, Theta
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

LEAST = 1e-6  # imagined rows in columns that are not counts, at the fewest
CONSTANT = 1e3  # for each row, in Gaussian columns without spread


class Column(NamedTuple):
    """A column's family, and what is known of its members; `unit` is a place and a spread to measure it in."""

    family: str  # the name of its class
    known: Theta  # with `k`, the number of classes, of a Categorical
    unit: tuple[float, float] = (0.0, 1.0)


ANYWHERE = ("Gaussian", "GaussianFixedVariance")  # whose means may have any sign
LIMITS = ("Bernoulli", "Binomial", "Categorical", "Poisson")  # whose parameters may be 0


class Member(NamedTuple):
    """A family at some parameters, in a column's units."""

    column: Column
    theta: Theta

    def log_p(self, x: Array) -> Array:
        terms = TEXTBOOK[self.column.family](self.theta).log_p(_in_units(self.column, x)[:, None])
        return np.sum([np.broadcast_to(term, len(x)) for term in terms], axis=0) - np.log(self.column.unit[1])

    def score(self, tau: Array) -> float:
        return PLAIN[self.column.family].score(self.theta, tau)

    @property
    def wrong(self) -> bool:
        """Whether it is no member at all."""
        values = {name: np.atleast_1d(value) for name, value in self.theta.items()}
        signs = [v for name, v in values.items() if not (name == "mean" and self.column.family in ANYWHERE)]
        fine = all((v > 0).all() or (self.column.family in LIMITS and (v >= 0).all()) for v in signs)
        p = values.get("p", np.zeros(1))
        whole = self.column.family != "Categorical" or abs(p.sum() - 1) <= 1e-9
        return not (fine and (p <= 1).all() and whole)


def _member(column: Column, theta: Theta) -> Member:
    known = {name: value for name, value in column.known.items() if name != "k"}
    return Member(column, {**theta, **known})


class Point(NamedTuple):
    weights: Array  # (k,)
    members: list[list[Member]]  # of each component, by column


# ------------------------------------------------------------------------------------------ the check
@dataclass(frozen=True)
class _Step(Sums):
    loglik: float
    weight: float
    n: Array  # Σ r (k,)
    seen: Array  # Σ r over rows with an entry, by column (k, d)
    total: Array  # Σ r T, column after column (k, M)


def certify(
    weights: Array,
    columns: Sequence[Column],
    theta: Sequence[Sequence[Theta]],
    smoothing: float,
    tol: float,
    rows: Rows,
    said: Said | None = None,
) -> Certificate:
    """Check a mixture on these rows; `theta` are parameters of each component, by column, `said` what it reports."""
    columns = _measured(columns, rows)
    at = Point(weights, [[_member(c, _to_units(c, t)) for c, t in zip(columns, row, strict=True)] for row in theta])
    checks = (
        Check("weights below zero", float((weights < 0).sum()), 0.0),
        Check(
            "parameters that no member of their family has", float(sum(m.wrong for r in at.members for m in r)), 0.0
        ),
    )
    if not all(check.passed for check in checks):
        return nothing(tol, *checks)
    whole = rows.sum(partial(_whole, columns))
    W = whole.weight
    sums = list(zip(columns, _split(columns, whole.total[0]), whole.seen[0], strict=True))
    s, imagined = np.array([_strength(smoothing, *of) for of in sums]), [_imagined(*of) for of in sums]
    before = rows.sum(partial(_expect, at))
    after, missed = _maximise(at, columns, before, s, imagined)
    rest = rows.sum(partial(_compare, at, after))
    stand = Stand(
        before.loglik / W,
        _penalty(at, s, imagined) / W,
        rest.loglik / W,
        _penalty(after, s, imagined) / W,
        rest.bound / W,
        rest.kl / W,
    )
    counts = all(PLAIN[c.family].middle for c in columns)
    matched = Check("members off the mean statistics of their rows by, nats a row,", missed / W, tol + 1e-11)
    more = (*checks[1:], matched, *(() if said is None else truthful(said, stand, W)))
    return stationary(stand, weights, 0.0 if counts else -np.inf, tol, more)


def _maximise(
    at: Point, columns: Sequence[Column], e: _Step, s: Array, imagined: Sequence[Array]
) -> tuple[Point, float]:
    """The M step by matching means, and Σ (Σ r + s) KL(new || old): 0 where means match already."""
    new: list[list[Member]] = []
    missed, totals = 0.0, _split(columns, e.total)
    for i, old in enumerate(at.members):
        new.append([])
        for j, column in enumerate(columns):
            weight = e.seen[i, j] + s[j]
            if weight == 0:  # a column that a component has no row of stays as it is
                new[i].append(old[j])
                continue
            tau = (totals[j][i] + s[j] * imagined[j]) / weight
            new[i].append(_member(column, PLAIN[column.family].solve(tau, column.known)))
            missed += weight * (new[i][j].score(tau) - old[j].score(tau))
    return Point(e.n / e.weight, new), missed


def _measured(columns: Sequence[Column], rows: Rows) -> list[Column]:
    """With units, where columns are Gaussian."""
    if not any(c.family in ANYWHERE for c in columns):
        return list(columns)
    about = survey(rows)
    out = []
    for j, c in enumerate(columns):
        size = float(about.spread[j]) if c.family == "Gaussian" else 1.0
        out.append(c._replace(unit=(float(about.median[j]), size)) if c.family in ANYWHERE else c)
    return out


def _to_units(column: Column, theta: Theta) -> Theta:
    place, size = column.unit
    if column.family not in ANYWHERE:
        return theta
    scaled = {"mean": (theta["mean"] - place) / size}
    return {**scaled, "variance": theta["variance"] / size**2} if "variance" in theta else scaled


def _strength(smoothing: float, column: Column, total: Array, n: float) -> float:
    """Imagined rows; a Gaussian column without spread has the same say in all components."""
    if column.family == "Gaussian" and total[1] == 0:
        return CONSTANT * n
    return smoothing if PLAIN[column.family].middle else max(smoothing, LEAST)


def _imagined(column: Column, total: Array, n: float) -> Array:
    middle = PLAIN[column.family].middle
    if column.family == "Gaussian":
        return np.array([0.0, 1.0])
    return total / n if middle is None else (total + middle(column.known)) / (n + 1.0)


def _split(columns: Sequence[Column], total: Array) -> list[Array]:
    """Statistics (…, M) column by column."""
    ones = [PLAIN[c.family].T(np.full(1, 0.5), c.known).shape[1] for c in columns]
    return np.split(total, np.cumsum(ones)[:-1], axis=-1)


def _penalty(at: Point, s: Array, imagined: Sequence[Array]) -> float:
    """Σ s KL(imagined rows || member)."""
    total = 0.0
    for row in at.members:
        for member, strength, tau in zip(row, s, imagined, strict=True):
            if strength > 0:
                best = _member(member.column, PLAIN[member.column.family].solve(tau, member.column.known))
                total += strength * (best.score(tau) - member.score(tau))
    return total


def _rows(block: Block) -> tuple[Array, Array, Array]:
    """Entries, weights, and which entries are there, of rows that have a say."""
    X = dense(block.X)
    here = ~np.isnan(X)
    some = (block.w > 0) & here.any(axis=1)
    return X[some], block.w[some], here[some]


def _joint(at: Point, X: Array, here: Array) -> Array:
    """log π_k f_k of the observed entries (n, k)."""
    out = np.zeros((len(X), len(at.weights)))
    with np.errstate(divide="ignore"):
        for i, row in enumerate(at.members):
            for j, member in enumerate(row):
                out[here[:, j], i] += member.log_p(X[here[:, j], j])
        return np.maximum(out + np.log(at.weights), NEVER)


def _whole(columns: Sequence[Column], block: Block) -> _Step:
    """All rows, as if one component's."""
    X, w, here = _rows(block)
    return _collect(columns, X, here, np.zeros(len(X)), w[:, None])


def _expect(at: Point, block: Block) -> _Step:
    """The E step."""
    X, w, here = _rows(block)
    joint = _joint(at, X, here)
    log_p = logsumexp(joint, axis=1)
    R = np.exp(joint - log_p[:, None]) * w[:, None]
    return _collect([member.column for member in at.members[0]], X, here, w * log_p, R)


def _collect(columns: Sequence[Column], X: Array, here: Array, loglik: Array, R: Array) -> _Step:
    total = []
    for j, column in enumerate(columns):
        there = here[:, j]
        total.append(R[there].T @ PLAIN[column.family].T(_in_units(column, X[there, j]), column.known))
    n = R.sum(axis=0)
    return _Step(float(loglik.sum()), float(n.sum()), n, R.T @ here, np.concatenate(total, axis=1))


def _in_units(column: Column, x: Array) -> Array:
    return (x - column.unit[0]) / column.unit[1]


def _compare(at: Point, after: Point, block: Block) -> After:
    X, w, here = _rows(block)
    return compare(_joint(at, X, here), _joint(after, X, here), w)
