"""What families of distributions give to EM: statistics T of entries, and members whose mean of T is a given one.

Columns of one family make a group, whose statistics are computed together.

| group                       | families                         | parameters found from mean statistics             |
| --------------------------- | -------------------------------- | ------------------------------------------------- |
| `MemberMixtureColumns`      | any family of numbers            | member by member, by the family's `from_mean`     |
| `GaussianMixtureColumns`    | Gaussian, also of known variance | the same, in units of the columns' spreads        |
| `CategoricalMixtureColumns` | Categorical                      | shares of each class, all columns at once         |
| `TrialMixtureColumns`       | Bernoulli, Binomial              | share of successes, all columns at once           |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from certifit.families import Categorical, Family, Gaussian, GaussianFixedVariance
from certifit.families.discrete import Successes
from certifit.rows import Array

LARGEST = 1e200  # stands for infinity where it is multiplied by 0


@dataclass(frozen=True, eq=False)
class MixtureColumns(ABC):
    """Columns of one family. Statistics and parameters of all columns lie side by side: (…, M) and (…, P)."""

    template: Any  # a member of the family, which says which parameters are known
    columns: Array  # (c,) ascending

    def strength(self, smoothing: float, total: Array, n: Array) -> Array:
        """Return the number of imagined rows (c,), given Σ w T (M,) and Σ w (c,) over all rows.

        Densities keep at least 1e-6: without any imagined row their likelihood has no maximum.
        """
        return np.full(len(n), smoothing if self.template.support.discrete else max(smoothing, 1e-6))

    @property
    @abstractmethod
    def position(self) -> Array:
        """The position in `columns` of each statistic's column (M,)."""

    @abstractmethod
    def T(self, X: Array) -> Array:
        """Return the statistics (n, M) of entries (n, c)."""

    @abstractmethod
    def log_h(self, X: Array) -> Array:
        """Return log h of entries (n, c): the part of a log-density that no parameter changes."""

    @abstractmethod
    def imagined(self, total: Array, n: Array) -> Array:
        """Return the imagined rows' mean of T (M,), given Σ w T (M,) and Σ w (c,) over all rows."""

    @abstractmethod
    def solve(self, tau: Array) -> Array:
        """Return the parameters (k, P) of the members whose means of T are tau (k, M)."""

    @abstractmethod
    def linear(self, theta: Array) -> tuple[Array, Array]:
        """Return natural parameters η (k, M) and log-partition functions A (k, c)."""

    def public(self, theta: Array) -> Array:
        """Return the parameters in the units of the data."""
        return theta

    def private(self, theta: Array) -> Array:
        """Undo `public`."""
        return theta

    @property
    @abstractmethod
    def parameters(self) -> list[tuple[int, str]]:
        """Column and name of each parameter (P,)."""

    @cached_property
    def parameter_position(self) -> Array:
        """The position in `columns` of each parameter's column (P,)."""
        return np.searchsorted(self.columns, [j for j, _ in self.parameters])

    @abstractmethod
    def members(self, theta: Array) -> list[Family]:
        """Return the members (c,) with these public parameters (P,)."""

    @property
    @abstractmethod
    def free(self) -> int:
        """The number of parameters that are estimated, of all columns together."""


class MemberMixtureColumns(MixtureColumns):
    """Columns of any family of numbers, through its members."""

    @property
    def _free(self) -> list[str]:
        return [f.name for f in fields(self.template) if f.name not in self.template.known]

    @property
    def _m(self) -> int:
        return len(self.template.mean_parameters)

    @property
    def position(self) -> Array:
        return np.repeat(np.arange(len(self.columns)), self._m)

    @property
    def free(self) -> int:
        return len(self._free) * len(self.columns)

    @property
    def parameters(self) -> list[tuple[int, str]]:
        return [(int(j), name) for j in self.columns for name in self._free]

    def T(self, X: Array) -> Array:
        return self.template.T(X.ravel()).reshape(len(X), -1)

    def log_h(self, X: Array) -> Array:
        return self.template.log_h(X.ravel()).reshape(X.shape)

    def imagined(self, total: Array, n: Array) -> Array:
        if not self.template.support.discrete:
            return total / n[self.position]
        return (total + getattr(self.template, "r", 1.0)) / (n + 1.0)  # counts: one more row, so that no rate is 0

    def solve(self, tau: Array) -> Array:
        make, known = type(self.template).from_mean, self.template.known_values
        found = [make(t, **known).parameters for t in tau.reshape(-1, self._m)]
        return np.array([[values[name] for name in self._free] for values in found]).reshape(len(tau), -1)

    def linear(self, theta: Array) -> tuple[Array, Array]:
        each = [member for row in theta for member in self.members(row)]
        eta = np.array([member.natural for member in each]).reshape(len(theta), -1)
        A = np.array([member.log_normaliser() for member in each]).reshape(len(theta), -1)
        return np.clip(eta, -LARGEST, LARGEST), A

    def members(self, theta: Array) -> list[Family]:
        known, names = self.template.known_values, self._free
        columns = theta.reshape(len(self.columns), len(names))
        return [type(self.template)(**dict(zip(names, values, strict=True)), **known) for values in columns]


@dataclass(frozen=True, eq=False)
class GaussianMixtureColumns(MemberMixtureColumns):
    """Gaussian columns, about their medians and in units of their spreads, so that nothing cancels.

    Imagined rows have mean 0 and variance 1 in these units, whatever a few far rows do.
    """

    shift: Array  # (c,) medians
    scale: Array  # (c,) spreads; 1 where the variance is known

    def _units(self) -> tuple[Array, Array]:
        """Return where each parameter's 0 is and how large its unit is (P,): of means and of free variances."""
        m = self._m
        place = np.column_stack([self.shift, np.zeros_like(self.shift)])[:, :m]
        size = np.column_stack([self.scale, self.scale**2])[:, :m]
        return place.ravel(), size.ravel()

    def T(self, X: Array) -> Array:
        return super().T((X - self.shift) / self.scale)

    def log_h(self, X: Array) -> Array:
        return super().log_h((X - self.shift) / self.scale) - np.log(self.scale)

    def imagined(self, total: Array, n: Array) -> Array:
        return np.tile([0.0, 1.0], len(n)) if self._m == 2 else super().imagined(total, n)

    def strength(self, smoothing: float, total: Array, n: Array) -> Array:
        some = super().strength(smoothing, total, n)
        if self._m == 1:
            return some
        # a column without spread: so many imagined rows that it is alike in all components
        return np.where(total.reshape(len(n), -1)[:, -1] == 0, 1e3 * n, some)

    def public(self, theta: Array) -> Array:
        place, size = self._units()
        return place + size * theta

    def private(self, theta: Array) -> Array:
        place, size = self._units()
        return (theta - place) / size


@dataclass(frozen=True, eq=False)
class CategoricalMixtureColumns(MixtureColumns):
    """Columns of class numbers: T marks the class, η = log p and A = 0, so that p = 0 needs no limit."""

    sizes: Array  # (c,) number of classes of each column

    @cached_property
    def position(self) -> Array:
        return np.repeat(np.arange(len(self.columns)), self.sizes)

    @cached_property
    def outcome(self) -> Array:
        """The class of each statistic (M,)."""
        return np.concatenate([np.arange(size) for size in self.sizes])

    @property
    def free(self) -> int:
        return int((self.sizes - 1).sum())

    @property
    def parameters(self) -> list[tuple[int, str]]:
        return [(int(self.columns[i]), f"p{v}") for i, v in zip(self.position, self.outcome, strict=True)]

    def T(self, X: Array) -> Array:
        return (X[:, self.position] == self.outcome).astype(np.float64)

    def log_h(self, X: Array) -> Array:
        return np.zeros(X.shape)

    def imagined(self, total: Array, n: Array) -> Array:
        even = self.template.n / self.sizes  # of one more row, so that no outcome is impossible
        return (total + even[self.position]) / (n[self.position] + 1.0)

    def solve(self, tau: Array) -> Array:
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return tau / np.add.reduceat(tau, starts, axis=1)[:, self.position]

    def linear(self, theta: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(theta), -LARGEST), np.zeros((len(theta), len(self.columns)))

    def members(self, theta: Array) -> list[Family]:
        return [type(self.template)(p=p) for p in np.split(theta, np.cumsum(self.sizes)[:-1])]


class TrialMixtureColumns(CategoricalMixtureColumns):
    """Columns of successes in a number of trials: T are failures and successes."""

    @property
    def parameters(self) -> list[tuple[int, str]]:
        return [(int(j), "p") for j in self.columns]

    def T(self, X: Array) -> Array:
        return self._pairs(self.template.n - X, X)

    def log_h(self, X: Array) -> Array:
        n = self.template.n
        return super().log_h(X) if n == 1 else gammaln(n + 1) - gammaln(X + 1) - gammaln(n - X + 1)

    def solve(self, tau: Array) -> Array:
        return super().solve(tau)[:, 1::2]

    def linear(self, theta: Array) -> tuple[Array, Array]:
        return super().linear(self._pairs(1.0 - theta, theta))

    def members(self, theta: Array) -> list[Family]:
        return [type(self.template)(p=p, **self.template.known_values) for p in theta]

    @staticmethod
    def _pairs(first: Array, second: Array) -> Array:
        """Interleave two tables (n, c): column after column, first and second side by side (n, 2c)."""
        return np.stack([first, second], axis=2).reshape(len(first), -1)


def is_gaussian(template: Family) -> bool:
    """Whether a column is measured about its median."""
    return isinstance(template, (Gaussian, GaussianFixedVariance))


def group_columns(
    templates: Sequence[Family], sizes: Array, shift: Array, scale: Array
) -> tuple[MixtureColumns, ...]:
    """Put columns of one family together, given the number of classes, median and spread of each (d,)."""
    together: dict[Any, list[int]] = {}
    for j, template in enumerate(templates):
        together.setdefault((type(template), *template.known_values.values()), []).append(j)
    out: list[MixtureColumns] = []
    for where in map(np.array, together.values()):
        template = templates[where[0]]
        if isinstance(template, Successes):
            out.append(TrialMixtureColumns(template, where, np.full(len(where), 2)))
        elif isinstance(template, Categorical):
            out.append(CategoricalMixtureColumns(template, where, sizes[where]))
        elif is_gaussian(template):
            out.append(GaussianMixtureColumns(template, where, shift[where], scale[where]))
        else:
            out.append(MemberMixtureColumns(template, where))
    return tuple(out)
