"""The families of draws from k classes: Categorical is a single draw, Multinomial counts the classes of n draws.

Both have the probabilities p (k,) as parameter, and the last class is the reference of the natural parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import entr, gammaln, softmax

from certifit.exceptions import DataError
from certifit.families import fitting
from certifit.families.discrete import Binomial
from certifit.families.family import Family, FitRequest
from certifit.families.stable import factorial_error, kl_term, log_multinomial
from certifit.families.support import COUNTS, CountVectors, Support, WholeNumbers
from certifit.rows import Array, Block, Rows


@dataclass(frozen=True, eq=False)
class ClassShares(Family):
    """The common part of both families: n draws from k classes with probabilities p (k,).

    η = log(p_j / p_k) and τ = n p_j for j < k, A = -n log p_k. Zeros in p are limits of the family, with the
    conventions 0 log 0 = 0 and log 0 = -inf. Fisher information is in p_1 … p_{k-1}.
    """

    p: Array

    if TYPE_CHECKING:

        @property
        def n(self) -> int:
            """Return the number of draws."""

    def __post_init__(self) -> None:
        self._set(p=self.p)
        if np.ndim(self.p) != 1 or not (np.all(self.p >= 0) and abs(self.p.sum() - 1) <= 1e-12 * len(self.p)):
            self._refuse("a vector of probabilities, none negative, that sum to 1", "Divide them by their sum.")

    @property
    def natural(self) -> Array:
        if not self.p[-1] > 0:
            self._refuse("a last class of positive probability: the others are measured against it")
        with np.errstate(divide="ignore"):
            return np.log(self.p[:-1]) - np.log(self.p[-1])

    @property
    def mean_parameters(self) -> Array:
        return self.n * self.p[:-1]

    @classmethod
    def _from_natural(cls, eta: Array, **known: Any) -> Self:
        return cls._of(p=softmax(np.append(eta, 0.0)), **known)

    @classmethod
    def _from_mean(cls, tau: Array, **known: Any) -> Self:
        p = tau / known.get("n", 1)
        return cls._of(p=np.append(p, max(0.0, 1 - p.sum())), **known)

    def log_normaliser(self) -> float:
        with np.errstate(divide="ignore"):
            return -self.n * float(np.log(self.p[-1]))

    def T_covariance(self) -> Array:
        p = self.p[:-1]
        return self.n * (np.diag(p) - np.outer(p, p))

    def fisher_information(self) -> Array:
        with np.errstate(divide="ignore"):  # infinite where a probability is 0
            inverse = 1 / self.p
        return self.n * (np.diag(inverse[:-1]) + inverse[-1])

    def _kl(self, other: Self) -> float:
        return self.n * float(kl_term(self.p, other.p).sum())

    @classmethod
    def _from_counts(cls, n: float, mean: Array, request: FitRequest) -> Self:
        """Return the member for the mean of all k counts, so that a rare last class keeps its digits, and a prior."""
        trials = request.known.get("n", 1)
        if request.prior is not None:
            imagined = request.prior.mean
            if len(imagined) != len(mean) - 1:
                raise DataError(got=f"a prior for {len(imagined) + 1} classes", wanted=f"one for {len(mean)}")
            mean = request.blend(n, mean, np.append(imagined, trials - imagined.sum()))
        return cls._of(p=mean / mean.sum(), **{name: request.known[name] for name in cls.known})


class Categorical(ClassShares):
    """The categorical distribution is one draw from k classes: x is a class number 0 … k-1, T its indicator vector.

    `fit` takes the number of classes from the largest number in the rows, unless `k` is given.

    >>> Categorical.fit([0, 0, 1, 2], k=4).member.p.tolist()
    [0.5, 0.25, 0.25, 0.0]
    """

    n = 1
    optional = ("k",)

    @classmethod
    def support_of(cls, **known: Any) -> Support:
        k = known.get("k")
        return COUNTS if k is None else WholeNumbers(f"class numbers from 0 to {k - 1}", low=0.0, high=k - 1.0)

    @property
    def support(self) -> Support:
        return self.support_of(k=len(self.p))

    @property
    def mean(self) -> float:
        return float(self.p @ np.arange(len(self.p)))

    @property
    def variance(self) -> float:
        return float(self.p @ (np.arange(len(self.p)) - self.mean) ** 2)

    def lattice(self) -> tuple[Array, Array]:
        return np.arange(float(len(self.p))), np.ones(len(self.p))

    def _T(self, x: Array) -> Array:
        return onehot(len(self.p), x.reshape(-1, 1))[:, :-1]

    def _log_h(self, x: Array) -> Array:
        return np.zeros_like(x)

    def _log_density(self, x: Array) -> Array:
        return np.log(self.p)[np.clip(np.nan_to_num(x), 0, len(self.p) - 1).astype(int)]

    def entropy(self) -> float:
        return float(entr(self.p).sum())

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.choice(len(self.p), size, p=self.p / self.p.sum())

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        fitting.mean(rows, cls.support_of(**request.known))  # checks every row
        k = request.known.get("k") or 1 + max(rows.each(_largest_class))
        if k > 10_000_000:
            raise DataError(got=f"{k} classes", wanted="class numbers 0, 1, …", fix="Number the classes from 0.")
        n, mean = fitting.weighted_mean(rows, partial(onehot, k))
        return cls._from_counts(n, mean, request)


def onehot(k: int, X: Array) -> Array:
    """Return class numbers (rows, 1) as indicators (rows, k)."""
    return (np.arange(k) == X).astype(np.float64)


def _largest_class(block: Block) -> int:
    return int(block.X[block.w > 0].max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Multinomial(ClassShares):
    """The multinomial distribution counts k classes in n draws, n known: x (k,) sums to n.  h = n!/(x_1! … x_k!).

    >>> Multinomial.fit([[2, 0, 2], [1, 1, 2]], n=4).member.p.tolist()
    [0.375, 0.125, 0.5]
    """

    n: int
    known = ("n",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_whole(n=self.n)

    @classmethod
    def support_of(cls, **known: Any) -> Support:
        n = known["n"]
        return CountVectors(f"rows of whole numbers of at least 0 that sum to n = {n:g}", low=0.0, high=float(n))

    @property
    def support(self) -> Support:
        return self.support_of(n=self.n)

    @property
    def mean(self) -> Array:
        return self.n * self.p

    @property
    def covariance(self) -> Array:
        return self.n * (np.diag(self.p) - np.outer(self.p, self.p))

    def _T(self, x: Array) -> Array:
        return x[:, :-1]

    def _log_h(self, x: Array) -> Array:
        return gammaln(self.n + 1) - gammaln(x + 1).sum(axis=1)

    def _log_density(self, x: Array) -> Array:
        return log_multinomial(x, self.p)

    def entropy(self) -> float:
        """Return the entropy from log n! and E log x_j! of each class, whose count alone is binomial."""
        total = -float(factorial_error(self.n))
        for p in self.p:
            count = Binomial(p, self.n)
            x, weights = count.lattice()
            mass = weights * np.exp(count.log_density(x))
            x, mass = x[mass > 0], mass[mass > 0]
            total += float(mass @ (factorial_error(x) + kl_term(x, count.mean)))
        return total

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.multinomial(self.n, self.p / self.p.sum(), size)

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        n, mean = fitting.mean(rows, cls.support_of(**request.known))
        return cls._from_counts(n, mean, request)
