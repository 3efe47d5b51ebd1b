"""Components of a mixture that are products of exponential families, one for each column.

The idea: a log-density is linear in the row's statistics, log f_k(x) = Σ_j η_kj·T_j(x_j) - A_j(η_kj) + log h_j(x_j):
one matrix product gives it for all components, and one product with the responsibilities gives all sums. A missing
entry leaves its column out, exactly. With s imagined rows, whose mean of T is t_j, in every component and column the
objective is the mean log-likelihood less  s/n Σ_kj KL(t_j || component k),  and the M step matches means,
    τ_kj = (Σ r T + s t_j) / (Σ r + s),    which raises the bound by  Σ_kj (Σ r + s) KL(new || old),
where KL(member || other) = τ·(η - η_other) - (A - A_other). The order of steps is in `mixture.em`; there is no
workspace here: statistics of a batch are new arrays.
Reference: Banerjee, Merugu, Dhillon & Ghosh, Clustering with Bregman divergences (2005).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.mixture.em import EPS
from certifit.families import Family
from certifit.mixture.families.sufficient_statistics import (
    CategoricalMixtureColumns,
    GaussianMixtureColumns,
    MixtureColumns,
)
from certifit.mixture.families.tuning import FamilyMixtureTuning
from certifit.rows import Array, Sums


@dataclass(frozen=True)
class ProductSums(Sums):
    """Sums over rows, weighted by responsibilities."""

    n: Array  # Σ r over rows with an entry in each column (k, d)
    total: Array  # Σ r T (k, M)


class ProductBatch(NamedTuple):
    """A batch of rows as `log_densities` and `weighted_sums` need it."""

    F: Array  # (n, M) statistics, 0 where the entry is missing
    here: Array | None  # (n, d) which entries are there; None: all
    log_h: Array  # (n,) sums over the entries that are there


@dataclass(frozen=True, eq=False)
class ImaginedRows:
    """s imagined rows in every component and column: what keeps the likelihood bounded."""

    groups: tuple[MixtureColumns, ...]
    rows: float  # Σ w of all rows
    strength: Array  # s of each column (d,)
    tau: tuple[Array, ...]  # their mean of T, of each group (M,)
    tuning: FamilyMixtureTuning

    @cached_property
    def single_component(self) -> ProductComponents:
        """One component with the imagined rows' means of T."""
        return ProductComponents(
            tuple(group.solve(t[None]) for group, t in zip(self.groups, self.tau, strict=True)), self
        )


@dataclass(frozen=True, eq=False)
class ProductComponents:
    """k products of families, as `mixture.em.MixtureComponents` asks for them."""

    theta: tuple[Array, ...]  # parameters of each group (k, P)
    prior: ImaginedRows

    @property
    def groups(self) -> tuple[MixtureColumns, ...]:
        return self.prior.groups

    # -------------------------------------------------------------------------------------- of all columns
    @property
    def d(self) -> int:
        return sum(len(group.columns) for group in self.groups)

    @cached_property
    def column_of(self) -> Array:
        """The column of each statistic (M,)."""
        return np.concatenate([group.columns[group.position] for group in self.groups])

    @cached_property
    def _parameters(self) -> list[tuple[int, str]]:
        return [pair for group in self.groups for pair in group.parameters]

    @cached_property
    def _order(self) -> Array:
        """Where the parameters of each column are, column after column (P,)."""
        return np.argsort([j for j, _ in self._parameters], kind="stable")

    @property
    def parameters(self) -> list[tuple[int, str]]:
        """Column and name of each public parameter (P,)."""
        return [self._parameters[i] for i in self._order]

    def public(self) -> Array:
        """Return the parameters (k, P), column after column, in the units of the data."""
        each = [group.public(theta) for group, theta in zip(self.groups, self.theta, strict=True)]
        return np.concatenate(each, axis=1)[:, self._order]

    def with_public(self, parameters: Array) -> ProductComponents:
        """Return components of the same groups and prior with these parameters (k, P)."""
        inverse = np.argsort(self._order)
        ends = np.cumsum([len(group.parameters) for group in self.groups])[:-1]
        parts = np.split(parameters[:, inverse], ends, axis=1)
        theta = tuple(group.private(part) for group, part in zip(self.groups, parts, strict=True))
        return replace(self, theta=theta)

    def members(self) -> list[list[Family]]:
        """Return for each component a list with a member for each column."""
        out: list[list[Any]] = [[None] * self.d for _ in self.theta[0]]
        for group, theta in zip(self.groups, self.theta, strict=True):
            for component, row in zip(out, group.public(theta), strict=True):
                for j, member in zip(group.columns, group.members(row), strict=True):
                    component[j] = member
        return out

    def prior_attributes(self) -> dict[str, Any]:
        """Return the imagined rows and the columns' units as plain arrays, from which `_at` makes them again."""
        sizes, shift, scale = np.zeros(self.d, np.int64), np.zeros(self.d), np.ones(self.d)
        for group in self.groups:
            if isinstance(group, CategoricalMixtureColumns):
                sizes[group.columns] = group.sizes
            elif isinstance(group, GaussianMixtureColumns):
                shift[group.columns], scale[group.columns] = group.shift, group.scale
        imagined = {"strength": self.prior.strength, "statistics": np.concatenate(self.prior.tau)}
        return {"rows": self.prior.rows, **imagined, "sizes": sizes, "shift": shift, "scale": scale}

    def repeated(self, k: int) -> ProductComponents:
        """Return this one component, k times."""
        return replace(self, theta=tuple(np.repeat(theta, k, axis=0) for theta in self.theta))

    # -------------------------------------------------------------------------------------- E step
    @cached_property
    def linear(self) -> tuple[Array, Array]:
        """Natural parameters η (k, M), and log-partition functions A (k, d) in the order of the table's columns."""
        found = [group.linear(theta) for group, theta in zip(self.groups, self.theta, strict=True)]
        order = np.argsort(np.concatenate([group.columns for group in self.groups]))
        eta, A = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        return eta, A[:, order]

    def batches(self, X: Array, counted: Array, missing: bool) -> Iterator[Array]:
        tuning = self.prior.tuning
        step = max(tuning.least_batch_rows, tuning.batch_statistics // len(self.column_of))
        some = np.flatnonzero(counted)
        yield from (some[i : i + step] for i in range(0, len(some), step))

    def new_workspace(self) -> None:
        return None

    def read_rows(self, X: Array, workspace: None = None) -> ProductBatch:
        X = np.asarray(X, dtype=np.float64)
        here = ~np.isnan(X) if np.isnan(X).any() else None
        F, log_h = [], np.zeros(len(X))
        for group in self.groups:
            x = X[:, group.columns]
            if here is None:
                F.append(group.T(x))
                log_h += group.log_h(x).sum(axis=1)
            else:
                there = here[:, group.columns]
                x = np.where(there, x, group.template.mean)  # any number that the family can have
                F.append(np.where(there[:, group.position], group.T(x), 0.0))
                log_h += np.where(there, group.log_h(x), 0.0).sum(axis=1)
        return ProductBatch(np.concatenate(F, axis=1), here, log_h)

    def log_densities(self, batch: ProductBatch, workspace: None = None) -> tuple[Array, ProductBatch]:
        eta, A = self.linear
        logf = eta @ batch.F.T
        logf -= A.sum(axis=1)[:, None] if batch.here is None else A @ batch.here.T
        logf += batch.log_h
        return logf, batch

    def weighted_sums(self, batch: ProductBatch, R: Array) -> tuple[Array, ProductSums]:
        n = R.sum(axis=1)
        there = np.tile(n[:, None], self.d) if batch.here is None else R @ batch.here
        return n, ProductSums(there, R @ batch.F)

    def split(self, statistics: Array) -> list[Array]:
        """Split statistics (…, M) into those of each group."""
        return np.split(statistics, np.cumsum([len(group.position) for group in self.groups])[:-1], axis=-1)

    # -------------------------------------------------------------------------------------- M step
    def maximise(self, sums: ProductSums, n: Array) -> tuple[ProductComponents, float]:
        new, taus = [], []
        each = zip(self.groups, self.theta, self.prior.tau, self.split(sums.total), strict=True)
        for group, theta, imagined, total in each:
            s = self.prior.strength[group.columns]
            weight = sums.n[:, group.columns] + s  # (k, c)
            share = np.where(weight > 0, weight, 1.0)[:, group.position]
            tau = np.where(weight[:, group.position] > 0, (total + s[group.position] * imagined) / share, imagined)
            # a column that a component has no row of stays as it is
            new.append(np.where(weight[:, group.parameter_position] > 0, group.solve(tau), theta))
            taus.append(tau)
        found = replace(self, theta=tuple(new))
        rise = (sums.n + self.prior.strength) * self._kl(found, np.concatenate(taus, axis=1), self)
        return found, float(rise.sum())

    def _kl(self, first: ProductComponents, tau: Array, second: ProductComponents) -> Array:
        """Return KL(first || second) by component and column (k, d); tau (k, M) are the first's mean parameters."""
        (eta, A), (eta_second, A_second) = first.linear, second.linear
        out = A_second - A
        np.add.at(out.T, self.column_of, (tau * (eta - eta_second)).T)
        return out

    def penalty(self) -> float:
        each = self._kl(self.prior.single_component, np.concatenate(self.prior.tau), self)
        some = self.prior.strength > 0
        return float((each * self.prior.strength)[:, some].sum()) / self.prior.rows

    def stored_rounding(self) -> float:
        # Log-densities are η·T - A, of whose last digits large counts leave little. The imagined rows, which are like
        # all rows, tell how large they are; a component may find some of those impossible.
        eta, A = self.prior.single_component.linear
        scores = -A[0]
        np.add.at(scores, self.column_of, np.concatenate(self.prior.tau) * eta[0])
        return 4 * EPS * float(np.abs(scores).sum())
