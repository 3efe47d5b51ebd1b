"""What a family of distributions gives to EM: statistics of entries, and members that match given means of them.

Columns of one family make a group, so that all are looked at together.
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

LARGEST = 1e200  # stands for infinity in products with 0
LEAST = 1e-6  # imagined rows of columns whose likelihood has no maximum without any
CONSTANT = (
    1e3  # imagined rows, for each row, of Gaussian columns without spread: they have the same say in all components
)


@dataclass(frozen=True, eq=False)
class Group(ABC):
    """Columns of one family. Statistics and parameters lie side by side: (…, M) and (…, P)."""

    like: Any  # a member of the family, which says what is known
    columns: Array  # (c,) ascending

    def strength(self, smoothing: float, total: Array, n: Array) -> Array:
        """Imagined rows (c,), from sums Σ w T (M,) and Σ w (c,) over all rows."""
        return np.full(len(n), smoothing if self.like.support.discrete else max(smoothing, LEAST))

    @property
    @abstractmethod
    def of(self) -> Array:
        """The place in `columns` of each statistic (M,)."""

    @abstractmethod
    def T(self, X: Array) -> Array:
        """Statistics (n, M) of entries (n, c)."""

    @abstractmethod
    def log_h(self, X: Array) -> Array:
        """(n, c)"""

    @abstractmethod
    def imagined(self, total: Array, n: Array) -> Array:
        """The imagined rows' mean of T (M,), from sums Σ w T (M,) and Σ w (c,) over all rows."""

    @abstractmethod
    def solve(self, tau: Array) -> Array:
        """Parameters (k, P) of the members with these mean parameters (k, M)."""

    @abstractmethod
    def linear(self, theta: Array) -> tuple[Array, Array]:
        """η (k, M) and A (k, c)."""

    def public(self, theta: Array) -> Array:
        """Parameters in the units of the data."""
        return theta

    def private(self, theta: Array) -> Array:
        """The inverse of `public`."""
        return theta

    @property
    @abstractmethod
    def parameters(self) -> list[tuple[int, str]]:
        """Column and name of each parameter (P,)."""

    @cached_property
    def place(self) -> Array:
        """The place in `columns` of each parameter (P,)."""
        return np.searchsorted(self.columns, [j for j, _ in self.parameters])

    @abstractmethod
    def members(self, theta: Array) -> list[Family]:
        """The members (c,) with these public parameters (P,)."""

    @property
    @abstractmethod
    def free(self) -> int:
        """Parameters that are estimated, all columns together."""


class Members(Group):
    """Any family of numbers, through its members."""

    @property
    def _free(self) -> list[str]:
        return [f.name for f in fields(self.like) if f.name not in self.like.known]

    @property
    def _m(self) -> int:
        return len(self.like.mean_parameters)

    @property
    def of(self) -> Array:
        return np.repeat(np.arange(len(self.columns)), self._m)

    @property
    def free(self) -> int:
        return len(self._free) * len(self.columns)

    @property
    def parameters(self) -> list[tuple[int, str]]:
        return [(int(j), name) for j in self.columns for name in self._free]

    def T(self, X: Array) -> Array:
        return self.like.T(X.ravel()).reshape(len(X), -1)

    def log_h(self, X: Array) -> Array:
        return self.like.log_h(X.ravel()).reshape(X.shape)

    def imagined(self, total: Array, n: Array) -> Array:
        if not self.like.support.discrete:
            return total / n[self.of]
        return (total + getattr(self.like, "r", 1.0)) / (n + 1.0)  # counts: one more row, so that no rate is 0

    def solve(self, tau: Array) -> Array:
        make, known = type(self.like).from_mean, self.like.known_values
        found = [make(t, **known).parameters for t in tau.reshape(-1, self._m)]
        return np.array([[values[name] for name in self._free] for values in found]).reshape(len(tau), -1)

    def linear(self, theta: Array) -> tuple[Array, Array]:
        each = [member for row in theta for member in self.members(row)]
        eta = np.array([member.natural for member in each]).reshape(len(theta), -1)
        A = np.array([member.log_normaliser() for member in each]).reshape(len(theta), -1)
        return np.clip(eta, -LARGEST, LARGEST), A

    def members(self, theta: Array) -> list[Family]:
        known, names = self.like.known_values, self._free
        columns = theta.reshape(len(self.columns), len(names))
        return [type(self.like)(**dict(zip(names, values, strict=True)), **known) for values in columns]


@dataclass(frozen=True, eq=False)
class Reals(Members):
    """Gaussians, about a place amid the rows and in units of their spread, so that nothing cancels.

    Imagined rows have mean 0 and variance 1 in these units, whatever a few far rows do.
    """

    shift: Array  # (c,)
    scale: Array  # (c,) 1 where the variance is known

    def _units(self) -> tuple[Array, Array]:
        """Of the parameters (P,): mean and, where it is free, variance."""
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
        return np.where(total.reshape(len(n), -1)[:, -1] == 0, CONSTANT * n, some) if self._m == 2 else some

    def public(self, theta: Array) -> Array:
        place, size = self._units()
        return place + size * theta

    def private(self, theta: Array) -> Array:
        place, size = self._units()
        return (theta - place) / size


@dataclass(frozen=True, eq=False)
class Shares(Group):
    """One of several classes: T says which, η = log p and A = 0, so that p = 0 is no limit."""

    sizes: Array  # (c,) classes of each column

    @cached_property
    def of(self) -> Array:
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
        return [(int(self.columns[i]), f"p{v}") for i, v in zip(self.of, self.outcome, strict=True)]

    def T(self, X: Array) -> Array:
        return (X[:, self.of] == self.outcome).astype(np.float64)

    def log_h(self, X: Array) -> Array:
        return np.zeros(X.shape)

    def imagined(self, total: Array, n: Array) -> Array:
        even = self.like.n / self.sizes  # of one more row, so that no outcome is impossible
        return (total + even[self.of]) / (n[self.of] + 1.0)

    def solve(self, tau: Array) -> Array:
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return tau / np.add.reduceat(tau, starts, axis=1)[:, self.of]

    def linear(self, theta: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(theta), -LARGEST), np.zeros((len(theta), len(self.columns)))

    def members(self, theta: Array) -> list[Family]:
        return [type(self.like)(p=p) for p in np.split(theta, np.cumsum(self.sizes)[:-1])]


class Trials(Shares):
    """Successes in a number of trials: T are failures and successes."""

    @property
    def parameters(self) -> list[tuple[int, str]]:
        return [(int(j), "p") for j in self.columns]

    def T(self, X: Array) -> Array:
        return self._pairs(self.like.n - X, X)

    def log_h(self, X: Array) -> Array:
        n = self.like.n
        return super().log_h(X) if n == 1 else gammaln(n + 1) - gammaln(X + 1) - gammaln(n - X + 1)

    def solve(self, tau: Array) -> Array:
        return super().solve(tau)[:, 1::2]

    def linear(self, theta: Array) -> tuple[Array, Array]:
        return super().linear(self._pairs(1.0 - theta, theta))

    def members(self, theta: Array) -> list[Family]:
        return [type(self.like)(p=p, **self.like.known_values) for p in theta]

    @staticmethod
    def _pairs(first: Array, second: Array) -> Array:
        """Side by side (n, 2c), column after column."""
        return np.stack([first, second], axis=2).reshape(len(first), -1)


REALS = (Gaussian, GaussianFixedVariance)


def groups_of(likes: Sequence[Family], sizes: Array, shift: Array, scale: Array) -> tuple[Group, ...]:
    """Columns by family, given of each (d,) the number of classes (of categories), its place and its spread."""
    together: dict[Any, list[int]] = {}
    for j, like in enumerate(likes):
        together.setdefault((type(like), *like.known_values.values()), []).append(j)
    out: list[Group] = []
    for where in map(np.array, together.values()):
        like = likes[where[0]]
        if isinstance(like, Successes):
            out.append(Trials(like, where, np.full(len(where), 2)))
        elif isinstance(like, Categorical):
            out.append(Shares(like, where, sizes[where]))
        elif isinstance(like, REALS):
            out.append(Reals(like, where, shift[where], scale[where]))
        else:
            out.append(Members(like, where))
    return tuple(out)
