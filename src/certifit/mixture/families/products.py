"""Components that are products of exponential families, one for each column.

A log-density is linear in the row's statistics, log f_k(x) = Σ_j η_kj·T_j(x_j) - A_j(η_kj) + log h_j(x_j): one
product gives it for all components, and one product with the responsibilities gives all sums. A missing entry leaves
its column out, exactly. With s imagined rows, whose mean of T is t_j, in every component and column the objective is
the mean log-likelihood less  s/n Σ_kj KL(t_j || component k),  and the M step matches means,
    τ_kj = (Σ r T + s t_j) / (Σ r + s),    which raises the bound by  Σ_kj (Σ r + s) KL(new || old),
where KL(member || other) = τ·(η - η_other) - (A - A_other).
Reference: Banerjee, Merugu, Dhillon & Ghosh, Clustering with Bregman divergences (2005).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certifit.families import Family
from certifit.mixture.families.sufficient_statistics import Group, Reals, Shares
from certifit.rows import Array, Sums

PIECE = 2**19  # statistics held at a time


@dataclass(frozen=True)
class Statistics(Sums):
    """Sums over rows, weighted by responsibilities."""

    n: Array  # Σ r over rows with an entry in each column (k, d)
    total: Array  # Σ r T (k, M)


class Seen(NamedTuple):
    """What `again` and `collect` need of the rows that `look` saw."""

    F: Array  # (n, M) statistics, 0 where the entry is missing
    here: Array | None  # (n, d) which entries are there; None: all
    log_h: Array  # (n,)


@dataclass(frozen=True, eq=False)
class Prior:
    """s imagined rows for every component and column."""

    groups: tuple[Group, ...]
    rows: float  # Σ w of all rows
    strength: Array  # s of every column (d,)
    tau: tuple[Array, ...]  # their mean of T, of each group (M,)

    @cached_property
    def whole(self) -> Products:
        """One component that is like these rows."""
        return Products(tuple(group.solve(t[None]) for group, t in zip(self.groups, self.tau, strict=True)), self)


@dataclass(frozen=True, eq=False)
class Products:
    """k products of families; see `mixture_em.Components`."""

    theta: tuple[Array, ...]  # parameters of each group (k, P)
    prior: Prior

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.prior.groups

    # -------------------------------------------------------------------------------------- of all columns
    @property
    def d(self) -> int:
        return sum(len(group.columns) for group in self.groups)

    @cached_property
    def column_of(self) -> Array:
        """The column of each statistic (M,)."""
        return np.concatenate([group.columns[group.of] for group in self.groups])

    @cached_property
    def _parameters(self) -> list[tuple[int, str]]:
        return [pair for group in self.groups for pair in group.parameters]

    @cached_property
    def _order(self) -> Array:
        """Where the parameters of each column in turn are (P,)."""
        return np.argsort([j for j, _ in self._parameters], kind="stable")

    @property
    def parameters(self) -> list[tuple[int, str]]:
        """Column and name of each public parameter (P,)."""
        return [self._parameters[i] for i in self._order]

    def public(self) -> Array:
        """The parameters (k, P), column after column, in the units of the data."""
        each = [group.public(theta) for group, theta in zip(self.groups, self.theta, strict=True)]
        return np.concatenate(each, axis=1)[:, self._order]

    def with_public(self, parameters: Array) -> Products:
        """The same groups and prior with these parameters (k, P)."""
        inverse = np.argsort(self._order)
        ends = np.cumsum([len(group.parameters) for group in self.groups])[:-1]
        parts = np.split(parameters[:, inverse], ends, axis=1)
        theta = tuple(group.private(part) for group, part in zip(self.groups, parts, strict=True))
        return replace(self, theta=theta)

    def members(self) -> list[list[Family]]:
        """For each component, a member for each column."""
        out: list[list[Any]] = [[None] * self.d for _ in self.theta[0]]
        for group, theta in zip(self.groups, self.theta, strict=True):
            for component, row in zip(out, group.public(theta), strict=True):
                for j, member in zip(group.columns, group.members(row), strict=True):
                    component[j] = member
        return out

    def described(self) -> dict[str, Any]:
        """The imagined rows and the columns' units, as plain arrays; `groups_of` makes groups of them again."""
        sizes, shift, scale = np.zeros(self.d, np.int64), np.zeros(self.d), np.ones(self.d)
        for group in self.groups:
            if isinstance(group, Shares):
                sizes[group.columns] = group.sizes
            elif isinstance(group, Reals):
                shift[group.columns], scale[group.columns] = group.shift, group.scale
        imagined = {"strength": self.prior.strength, "statistics": np.concatenate(self.prior.tau)}
        return {"rows": self.prior.rows, **imagined, "sizes": sizes, "shift": shift, "scale": scale}

    def times(self, k: int) -> Products:
        """One component, k times."""
        return replace(self, theta=tuple(np.repeat(theta, k, axis=0) for theta in self.theta))

    # -------------------------------------------------------------------------------------- of some rows
    @cached_property
    def linear(self) -> tuple[Array, Array]:
        """η (k, M), and A (k, d) in the order of the table's columns."""
        found = [group.linear(theta) for group, theta in zip(self.groups, self.theta, strict=True)]
        order = np.argsort(np.concatenate([group.columns for group in self.groups]))
        eta, A = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        return eta, A[:, order]

    def pieces(self, X: Array, counts: Array, holes: bool) -> Iterator[Array]:
        step = max(64, PIECE // len(self.column_of))
        some = np.flatnonzero(counts)
        yield from (some[i : i + step] for i in range(0, len(some), step))

    def workspace(self) -> None:
        return None

    def statistics(self, X: Array) -> Seen:
        """Of rows (n, d); what is missing is left out."""
        here = ~np.isnan(X) if np.isnan(X).any() else None
        F, log_h = [], np.zeros(len(X))
        for group in self.groups:
            x = X[:, group.columns]
            if here is None:
                F.append(group.T(x))
                log_h += group.log_h(x).sum(axis=1)
            else:
                there = here[:, group.columns]
                x = np.where(there, x, group.like.mean)
                F.append(np.where(there[:, group.of], group.T(x), 0.0))
                log_h += np.where(there, group.log_h(x), 0.0).sum(axis=1)
        return Seen(np.concatenate(F, axis=1), here, log_h)

    def look(self, X: Array, work: None = None) -> tuple[Array, Seen]:
        return self.again(self.statistics(np.asarray(X, dtype=np.float64)))

    def again(self, seen: Seen, work: None = None) -> tuple[Array, Seen]:
        eta, A = self.linear
        logf = eta @ seen.F.T
        logf -= A.sum(axis=1)[:, None] if seen.here is None else A @ seen.here.T
        logf += seen.log_h
        return logf, seen

    def collect(self, seen: Seen, R: Array) -> tuple[Array, Statistics]:
        n = R.sum(axis=1)
        there = np.tile(n[:, None], self.d) if seen.here is None else R @ seen.here
        return n, Statistics(there, R @ seen.F)

    def split(self, statistics: Array) -> list[Array]:
        """Statistics (…, M) of each group."""
        return np.split(statistics, np.cumsum([len(group.of) for group in self.groups])[:-1], axis=-1)

    def maximise(self, sums: Statistics, n: Array) -> tuple[Products, float]:
        new, taus = [], []
        each = zip(self.groups, self.theta, self.prior.tau, self.split(sums.total), strict=True)
        for group, theta, imagined, total in each:
            s = self.prior.strength[group.columns]
            weight = sums.n[:, group.columns] + s  # (k, c)
            share = np.where(weight > 0, weight, 1.0)[:, group.of]
            tau = np.where(weight[:, group.of] > 0, (total + s[group.of] * imagined) / share, imagined)
            # a column that a component has no row of stays as it is
            new.append(np.where(weight[:, group.place] > 0, group.solve(tau), theta))
            taus.append(tau)
        found = replace(self, theta=tuple(new))
        rise = (sums.n + self.prior.strength) * self._kl(found, np.concatenate(taus, axis=1), self)
        return found, float(rise.sum())

    def _kl(self, first: Products, tau: Array, second: Products) -> Array:
        """KL(first || second) of every component and column (k, d); tau (k, M) are the first's mean parameters."""
        (eta, A), (eta_second, A_second) = first.linear, second.linear
        out = A_second - A
        np.add.at(out.T, self.column_of, (tau * (eta - eta_second)).T)
        return out

    def penalty(self) -> float:
        each = self._kl(self.prior.whole, np.concatenate(self.prior.tau), self)
        some = self.prior.strength > 0
        return float((each * self.prior.strength)[:, some].sum()) / self.prior.rows
