"""KL divergence between members of a family: as an integral, as a Bregman divergence, and to 60 digits."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from certifit import DataError
from certifit.families import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    GaussianFixedVariance,
    Geometric,
    InverseGaussian,
    MultivariateGaussian,
    Poisson,
)
from certifit.families.stable import dirichlet_kl, excess, gamma_bregman, kl_term, log1pmx
from certifit.families.support import lattice
from tests.families.family_members import MEMBERS, close, each_family, each_member, integral, pack, room, unpack

getcontext().prec = 60


@each_family
def test_kl_is_the_bregman_divergence_of_A_and_the_integral_of_the_log_ratio(family):
    p = MEMBERS[family][0]
    for factor in (0.7, 1.2):
        q = unpack(p, factor * pack(p))
        bregman = q.log_normaliser() - p.log_normaliser() - (q.natural - p.natural) @ p.mean_parameters
        close(p.kl(q), bregman, rtol=1e-10)
        with np.errstate(invalid="ignore"):  # far out both are -inf
            ratio = integral(p, lambda x, q=q: np.nan_to_num(p.log_density(x) - q.log_density(x)))
        close(p.kl(q), ratio, rtol=1e-8)
    assert p.kl(p) == 0.0


@each_member
def test_kl_of_nearly_equal_members_is_half_the_fisher_distance(member):
    """KL(θ, θ + Δ) = ½ Δ'F Δ (1 + O(Δ)): at a relative 1e-9 plain formulas have lost every digit."""
    theta = pack(member)
    sign = np.where(np.arange(len(theta)) % 2, -1.0, 1.0)
    moved = unpack(member, theta + 1e-9 * sign * room(member))
    delta = pack(moved) - theta
    expected = 0.5 * delta @ member.fisher_information() @ delta
    close(member.kl(moved), expected, rtol=1e-7 if np.ndim(member.parameters.get("p", 0)) == 0 else 1e-6)


def decimal_kl(p, q):
    """The textbook's formula in 60 digits."""
    D = Decimal
    match p:
        case Bernoulli():
            a, b = D(p.p), D(q.p)
            return a * (a / b).ln() + (1 - a) * ((1 - a) / (1 - b)).ln()
        case Geometric():
            return decimal_kl(Bernoulli(p.p), Bernoulli(q.p)) / D(p.p)
        case Poisson():
            return D(p.rate) * (D(p.rate) / D(q.rate)).ln() - D(p.rate) + D(q.rate)
        case Exponential():
            ratio = D(q.rate) / D(p.rate)
            return ratio - 1 - ratio.ln()
        case Gaussian():
            ratio = D(p.variance) / D(q.variance)
            return (ratio - 1 - ratio.ln() + (D(p.mean) - D(q.mean)) ** 2 / D(q.variance)) / 2
        case InverseGaussian():
            ratio, gap = D(q.shape) / D(p.shape), (D(p.mean) - D(q.mean)) ** 2 / D(p.mean) / D(q.mean) ** 2
            return (ratio - 1 - ratio.ln() + D(q.shape) * gap) / 2
        case Gamma():
            ratio = D(q.rate) / D(p.rate)
            of_shape = (D(p.shape) - D(q.shape)) * psi(p.shape) - log_gamma(p.shape) + log_gamma(q.shape)
            return of_shape - D(q.shape) * ratio.ln() + D(p.shape) * (ratio - 1)
        case Dirichlet():
            total, other = sum(map(D, p.a)), sum(map(D, q.a))
            out = log_gamma(total) - log_gamma(other)
            for a, b in zip(p.a, q.a, strict=True):
                out += log_gamma(b) - log_gamma(a) + (D(a) - D(b)) * (psi(a) - psi(total))
            return out


def bernoulli_numbers(count):
    """B_2, B_4, …, by their recurrence, exactly."""
    B = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        B.append(-sum(math.comb(m + 1, k) * B[k] for k in range(m)) / (m + 1))
    return [Decimal(b.numerator) / b.denominator for b in B[2::2]]


STIRLING = bernoulli_numbers(40)
LIFT = 60  # Stirling's series at a + 60 is good to 60 digits


def log_gamma(a):
    a = Decimal(a)
    z = a + LIFT
    series = sum(b / (2 * k * (2 * k - 1) * z ** (2 * k - 1)) for k, b in enumerate(STIRLING, 1))
    half_log_2pi = Decimal("0.91893853320467274178032973640561763986139747363778341281715154048276569592726")
    return (z - Decimal("0.5")) * z.ln() - z + half_log_2pi + series - sum((a + k).ln() for k in range(LIFT))


def psi(a):
    a = Decimal(a)
    z = a + LIFT
    series = sum(b / (2 * k * z ** (2 * k)) for k, b in enumerate(STIRLING, 1))
    return z.ln() - 1 / (2 * z) - series - sum(1 / (a + k) for k in range(LIFT))


def test_decimals_of_log_gamma():
    """Γ(21) = 20!, Γ(½)² = π, ψ(3) - ψ(1) = 3/2."""
    assert abs(log_gamma(21) - Decimal(math.factorial(20)).ln()) < Decimal("1e-52")
    assert abs(float(2 * log_gamma(0.5)) - math.log(math.pi)) < 1e-15
    assert abs(psi(3) - psi(1) - Decimal("1.5")) < Decimal("1e-52")


PAIRS = [
    (Bernoulli(1e-300), Bernoulli(1e-12)),
    (Bernoulli(0.3), Bernoulli(0.3 + 1e-15)),
    (Bernoulli(1 - 1e-16), Bernoulli(1e-16)),
    (Geometric(1e-12), Geometric(1.0000001e-12)),
    (Poisson(1e12), Poisson(1e12 + 1.0)),
    (Poisson(1e-300), Poisson(1e12)),
    (Poisson(1.0), Poisson(1.25)),
    (Poisson(1.0), Poisson(1.2500001)),
    (Exponential(1e-200), Exponential(1e100)),
    (Exponential(1.0), Exponential(1 + 1e-13)),
    (Gaussian(1e8, 1e-4), Gaussian(1e8 + 1e-7, 1.0000001e-4)),
    (Gaussian(0.0, 1e-200), Gaussian(0.0, 1.0)),
    (InverseGaussian(2.0, 1e9), InverseGaussian(2.0 + 1e-9, 1e9 + 1)),
    (Gamma(1.0, 2.0), Gamma(2.0, 2.0)),
    (Gamma(9.0, 2.0), Gamma(10.0, 2.2)),
    (Gamma(3000.0, 3.0), Gamma(3001.0, 3.001)),
    (Gamma(1.0, 1e-10), Gamma(3000.0, 1e10)),
    (Gamma(3000.0, 1e-10), Gamma(1.0, 1e10)),
    (Dirichlet([1.0, 2.0, 3.0]), Dirichlet([3.0, 1.0, 1.0])),
    (Dirichlet([2000.0, 3000.0]), Dirichlet([2002.0, 3003.0])),
    (Dirichlet([2000.0, 1.0]), Dirichlet([2001.0, 1.0])),
    (Dirichlet([1.0, 1.0]), Dirichlet([4000.0, 1.0])),
    (Gamma(1e-5, 1.0), Gamma(1.0001e-5, 1.0)),
    (Gamma(1e9, 1.0), Gamma(1e9 + 1, 1.0)),
    (Gamma(0.3, 1.0), Gamma(1e7, 1e3)),
    (Gamma(1.8e6, 651.0), Gamma(7.5, 5e-4)),
    (Dirichlet([1e7, 2e7]), Dirichlet([1e7 * (1 + 2**-20), 2e7 * (1 + 2**-20)])),
    (Dirichlet([0.3, 0.2, 1e5]), Dirichlet([0.30001, 0.2, 1e5])),
    (Dirichlet([1e-4, 1e-4]), Dirichlet([1e4, 1e-4])),
    (Dirichlet([1e6, 0.5]), Dirichlet([1.1e6, 0.5])),
]


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=lambda m: str(m))
def test_kl_has_twelve_digits(p, q):
    close(p.kl(q), float(decimal_kl(p, q)), rtol=1e-12)


def test_beta_is_a_dirichlet_and_wide_gaussians_agree():
    close(Beta(2.0, 3.0).kl(Beta(5.0, 1.5)), dirichlet_kl(np.array([2.0, 3.0]), np.array([5.0, 1.5])))
    p = MultivariateGaussian([0.0, 1.0], np.diag([2.0, 1e-9]))
    q = MultivariateGaussian([1.0, 1.0], np.diag([1.0, 1e9]))
    one = [Gaussian(*a).kl(Gaussian(*b)) for a, b in (((0, 2.0), (1, 1.0)), ((1, 1e-9), (1, 1e9)))]
    close(p.kl(q), sum(one))


def test_kl_limits_and_refusals():
    assert Bernoulli(0.0).kl(Bernoulli(0.5)) == pytest.approx(math.log(2))
    assert Bernoulli(0.5).kl(Bernoulli(0.0)) == np.inf
    assert Poisson(0.0).kl(Poisson(2.0)) == 2.0
    assert Categorical([0.5, 0.5, 0.0]).kl(Categorical([0.5, 0.0, 0.5])) == np.inf
    assert Categorical([0.5, 0.5, 0.0]).kl(Categorical([0.25, 0.25, 0.5])) == pytest.approx(math.log(2))
    for a, b in (
        (Poisson(1.0), Exponential(1.0)),
        (Binomial(0.5, 3), Binomial(0.5, 4)),
        (Categorical([0.5, 0.5]), Categorical([0.5, 0.25, 0.25])),
        (Dirichlet([1.0, 1.0]), Dirichlet([1.0, 1.0, 1.0])),
    ):
        with pytest.raises(DataError, match="wanted two members"):
            a.kl(b)


def test_parameters_at_the_ends_of_floating_point():
    """What is too large is infinite, what cannot be computed is refused: nothing is ever NaN."""
    assert Exponential(1e-300).kl(Exponential(1e300)) == np.inf
    assert Gaussian(0.0, 1.0).kl(Gaussian(1e200, 1.0)) == np.inf
    assert GaussianFixedVariance(0.0, 1.0).kl(GaussianFixedVariance(1e200, 1.0)) == np.inf
    assert Gamma(1e-300, 1e150).log_density([1e200]) == -np.inf
    close(InverseGaussian(1e100, 1e-300).entropy(), InverseGaussian(1e-200, 1e-300).entropy(), rtol=1e-12)
    with pytest.raises(DataError, match="range of floating point"):
        Gamma(1e300, 1e-150).kl(Gamma(1e-300, 1e-150))
    with pytest.raises(DataError, match="NumPy can draw"):
        Poisson(1e100).sample(3)


@pytest.mark.parametrize("t", [1e-300, 1e-12, -1e-12, 1e-3, 0.2499, 0.2501, -0.2501, -0.9, 30.0])
def test_stable_forms_against_decimals(t):
    x = Decimal(t)
    exact = (1 + x).ln() - x
    if abs(t) < 1e-20:  # 60 digits are not enough here
        exact = -x * x / 2
    close(float(log1pmx(t)), float(exact), rtol=1e-15, atol=0)
    if abs(t) > 1e-20:
        y = Decimal(1 + t)
        close(float(excess(1.0, 1 + t)), float(y - 1 - y.ln()), rtol=1e-14)
        close(float(kl_term(1 + t, 1.0)), float(y * y.ln() - y + 1), rtol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (9, 10), (10, 11), (12, 500), (500, 1), (3, 3000), (900, 901)])
def test_the_bregman_divergence_of_log_gamma(a, b):
    def f(x):
        return log_gamma(x) - Decimal(x) * Decimal(x).ln() + x

    close(float(gamma_bregman(b, a)), float(f(b) - f(a) - (b - a) * (psi(a) - Decimal(a).ln())), rtol=1e-13)


def test_long_sums_over_whole_numbers():
    """Σ q^x = 1/(1-q) over a tail of 1e9 values, at every length of the first run."""
    p = 1e-7
    x, w = lattice((1 - p) / p, (1 - p) / p**2, np.inf)
    assert len(x) < 200_000
    assert (x == np.floor(x)).all()
    close(w @ np.exp(x * np.log1p(-p)), 1 / p, rtol=1e-12)
