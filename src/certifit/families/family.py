"""The base class of all exponential families, whose densities are p(x | η) = h(x) exp(η·T(x) - A(η)).

A member can be named by its ordinary parameters (its fields), by its natural parameters η, or by its mean parameters
τ = E T. The gradient of A is τ, its Hessian the covariance of T, and the likelihood of a sample is largest where τ
equals the sample's mean of T: a fit needs only that mean (`families.fitting`).
Reference: O. Barndorff-Nielsen, Information and Exponential Families (1978).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from certifit.exceptions import DataError
from certifit.families import fitting
from certifit.families.fitting import Fit, FitRequest, Method, Prior
from certifit.families.support import Support, lattice
from certifit.rows import Array, Rows


class Family(ABC):
    """An object is one member of a family: its class is the family, its fields are the ordinary parameters.

    >>> from certifit.families import Gaussian
    >>> member = Gaussian(mean=0.0, variance=4.0)
    >>> member.natural.tolist(), member.mean_parameters.tolist()  # μ/σ², -1/(2σ²); E x, E x²
    ([0.0, -0.125], [0.0, 4.0])
    >>> Gaussian.from_natural([0.0, -0.125])
    Gaussian(mean=0.0, variance=4.0)
    """

    known: ClassVar[tuple[str, ...]] = ()  # parameters that are given, not estimated
    optional: ClassVar[tuple[str, ...]] = ()  # further keywords that `fit` accepts
    unbiased_methods: ClassVar[tuple[Method, ...]] = ()  # methods whose variance can be corrected for bias
    # Each family writes these as class methods: they make a member from (m,) parameters and the known ones.
    _from_natural: ClassVar[Callable[..., Any]]
    _from_mean: ClassVar[Callable[..., Any]]

    if TYPE_CHECKING:  # fields of some members, properties or constants of others

        @property
        def support(self) -> Support:
            """Return the set of values that x can take."""

        @property
        def mean(self) -> Any:
            """Return the mean of x: a number, or (d,) for vectors."""

        @property
        def variance(self) -> Any:
            """Return the variance of x, a number."""

        @property
        def covariance(self) -> Any:
            """Return the covariance of x (d, d), for families of vectors."""

    # ------------------------------------------------------------------------------- what each family must define
    @property
    @abstractmethod
    def natural(self) -> Array:
        """Return the natural parameters η (m,)."""

    @property
    @abstractmethod
    def mean_parameters(self) -> Array:
        """Return the mean parameters τ = E T, which are the gradient of A (m,)."""

    @abstractmethod
    def log_normaliser(self) -> float:
        """Return A(η)."""

    @abstractmethod
    def T_covariance(self) -> Array:
        """Return the covariance of T (m, m), which is the Hessian of A and the Fisher information in η."""

    @abstractmethod
    def fisher_information(self) -> Array:
        """Return the Fisher information (p, p) in the estimated ordinary parameters, in the order of the fields."""

    @abstractmethod
    def _sample(self, rng: np.random.Generator, size: int) -> Array: ...

    @abstractmethod
    def _T(self, x: Array) -> Array: ...

    @abstractmethod
    def _log_h(self, x: Array) -> Array: ...

    @abstractmethod
    def _log_density(self, x: Array) -> Array: ...

    @abstractmethod
    def _kl(self, other: Self) -> float: ...

    @classmethod
    @abstractmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self: ...

    # --------------------------------------------------------------------- what follows from these definitions
    @classmethod
    def from_natural(cls, eta: Any, **known: Any) -> Self:
        """Return the member with these natural parameters."""
        return cls._make_checked(cls._from_natural, eta, known)

    @classmethod
    def from_mean(cls, tau: Any, **known: Any) -> Self:
        """Return the member with these mean parameters."""
        return cls._make_checked(cls._from_mean, tau, known)

    @classmethod
    def _make_checked(cls, make: Callable[..., Any], parameters: Any, known: dict[str, Any]) -> Self:
        """Make a member from natural or mean parameters, and refuse a wrong number of them."""
        vector = np.atleast_1d(np.asarray(parameters, dtype=np.float64))
        fitting.check_known(cls, known)
        member = make(vector, **known)
        if member.mean_parameters.shape != vector.shape:
            raise DataError(got=f"parameters of shape {vector.shape}", wanted=f"{member.mean_parameters.shape}")
        return member

    @classmethod
    def support_of(cls, **known: Any) -> Support:
        """Return the set of values that x can take, given the known parameters."""
        return cls.support  # type: ignore[return-value]

    @property
    def known_values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.known}

    @property
    def parameters(self) -> dict[str, Any]:
        """Return all ordinary parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def T(self, x: Any) -> Array:
        """Return the sufficient statistic of each observation (n, m)."""
        return self._T(self._array(x))

    def log_h(self, x: Any) -> Array:
        """Return log h(x) of each observation (n,)."""
        return self._log_h(self._array(x))

    def log_density(self, x: Any) -> Array:
        """Return log p(x) of each observation (n,), -inf outside the support."""
        x = self._array(x)
        with np.errstate(all="ignore"):  # the formula may fail outside the support, where it is not used
            return np.where(self.support.contains(x), self._log_density(x), -np.inf)

    def sample(self, size: int, random_state: Any = None) -> Array:
        """Return independent draws, (size,) or (size, d)."""
        try:
            return np.asarray(self._sample(np.random.default_rng(random_state), size), dtype=np.float64)
        except ValueError as error:
            raise DataError(got=f"{self}: {error}", wanted="parameters that NumPy can draw with") from error

    def entropy(self) -> float:
        """Return -E log p(x) in nats; this default sums over whole numbers, for families without a closed form."""
        points, weights = self.lattice()
        log_p = self.log_density(points)
        p = np.exp(log_p)
        return float(weights @ (p * np.where(p > 0, -log_p, 0.0)))

    def lattice(self) -> tuple[Array, Array]:
        """Return points and weights of sums over whole numbers: Σ f(x) p(x) = weights @ (p(points) * f(points))."""
        if not np.isfinite(self.variance):
            self._refuse("a variance within the range of floating point")
        return lattice(self.mean, self.variance, self.support.high)

    def kl(self, other: Self) -> float:
        """Return the Kullback-Leibler divergence KL(self, other), a Bregman divergence of A, in closed form.

        >>> from certifit.families import Poisson
        >>> Poisson(2.0).kl(Poisson(2.0 + 2**-30))  # (Δλ)²/(2λ) = 2^-62: plain arithmetic would leave no digit
        2.16840434...e-19
        """
        if type(other) is not type(self) or not _same(self.known_values, other.known_values):
            raise DataError(
                got=f"{self} and {other}",
                wanted=f"two members of {type(self).__name__}" + "".join(f" with the same {k}" for k in self.known),
                fix="certifit.divergence.kl compares different families.",
            )
        if self == other:
            return 0.0
        if [np.shape(v) for v in self.parameters.values()] != [np.shape(v) for v in other.parameters.values()]:
            raise DataError(got=f"{self} and {other}", wanted="two members of the same dimension")
        with np.errstate(all="ignore"):  # a value that overflows is infinite, as it should be
            value = float(self._kl(other))
        if np.isnan(value):
            raise DataError(
                got=f"{self} and {other}", wanted="parameters whose ratios stay within the range of floating point"
            )
        return max(value, 0.0)

    @classmethod
    def fit(
        cls,
        X: Any,
        sample_weight: Any = None,
        *,
        method: Method = "ml",
        unbiased: bool = False,
        prior: Prior | None = None,
        **known: Any,
    ) -> Fit:
        """Fit the family to rows and return the fitted member with its certificate.

        Parameters
        ----------
        X : array (n,) or (n, d), list, data frame, path to Parquet or CSV, Dask collection, or `Rows`
        sample_weight : how many times each row counts
        method : "ml" (maximum likelihood: E T equals its mean over the rows) or "moments" (mean and variance of x
            equal those of the rows)
        unbiased : divide by Σw - 1 in variances; the maximum likelihood variance is too small by (n - 1)/n on average
        prior : imagined rows that are added, which gives the maximum a posteriori member
        known : parameters that are given, such as n of Binomial
        """
        return fitting.fit(cls, X, sample_weight, FitRequest(method, unbiased, prior, known))

    def _array(self, x: Any) -> Array:
        """Return observations as float64, (n, d) for vectors, whose dimension is checked."""
        x = np.asarray(x, dtype=np.float64)
        if not self.support.vector:
            return x
        x = np.atleast_2d(x)
        if x.shape[1] != len(self.mean):
            raise DataError(got=f"rows of {x.shape[1]} numbers", wanted=f"rows of {len(self.mean)}")
        return x

    def _refuse(self, wanted: str, fix: str = "") -> None:
        raise DataError(got=str(self), wanted=wanted, fix=fix)

    def _set(self, **values: Any) -> None:
        """Store parameters as floats or read-only arrays."""
        for name, value in values.items():
            array = np.array(value, dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array if array.ndim else float(array))

    def _set_whole(self, **values: Any) -> None:
        """Store parameters that must be positive whole numbers."""
        for name, value in values.items():
            if not (value >= 1 and value == int(value)):
                self._refuse(f"a whole number {name} of at least 1")
            object.__setattr__(self, name, int(value))

    @classmethod
    def _of(cls, **parameters: Any) -> Self:
        """Make a member from parameters by name, for base classes whose families have different fields."""
        return cls(**parameters)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(self.parameters, other.parameters)

    def __hash__(self) -> int:
        return hash((type(self), *(np.asarray(v).tobytes() for v in self.parameters.values())))


class MeanFamily(Family):
    """A family with T(x) = x: τ is the mean, the Hessian of A the variance, and both methods of fitting agree."""

    @property
    def mean_parameters(self) -> Array:
        return np.array([self.mean])

    def T_covariance(self) -> Array:
        return np.array([[self.variance]])

    def _T(self, x: Array) -> Array:
        return x.reshape(-1, 1)

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        n, tau = fitting.mean(rows, cls.support_of(**request.known))
        return cls.from_mean(request.blend(n, tau), **request.known)


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in a)


def pair(values: Array) -> tuple[float, float]:
    """Return two parameters as floats, and refuse any other number of them."""
    if values.shape != (2,):
        raise DataError(got=f"parameters of shape {values.shape}", wanted="two numbers")
    return float(values[0]), float(values[1])
