"""Divergences: conventions, digits, error bars. Expected values by hand, Decimal or SciPy."""

import copy
import math
import pickle
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.spatial.distance import jensenshannon

from certifit import DataError
from certifit.divergence import (
    Divergence,
    Estimate,
    Mixture,
    cross_entropy,
    entropy,
    hellinger,
    jensen_shannon,
    kl,
    kl_bounds,
    kl_samples,
    renyi,
    total_variation,
)
from certifit.families import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    DiagonalGaussian,
    Exponential,
    Gamma,
    Gaussian,
    GaussianFixedVariance,
    Geometric,
    InverseGaussian,
    MultivariateGaussian,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
)

MEASURES = [
    kl,
    jensen_shannon,
    total_variation,
    hellinger,
    lambda p, q: renyi(p, q, 0.7),
    lambda p, q: renyi(p, q, 3),
]
NAMES = ["kl", "jensen_shannon", "total_variation", "hellinger", "renyi(0.7)", "renyi(3)"]


def sharp(p, q, f):
    """Σ f(p, q) in 60 digits, for floats taken at their word."""
    with localcontext() as context:
        context.prec = 60
        return sum(f(Decimal(float(a)), Decimal(float(b))) for a, b in zip(p, q, strict=True))


def sharp_kl(p, q):
    return float(sharp(p, q, lambda a, b: a * (a / b).ln() if a else Decimal(0)))


def sharp_jensen_shannon(p, q):
    return float(sharp(p, q, lambda a, b: (a * (2 * a / (a + b)).ln() + b * (2 * b / (a + b)).ln()) / 2))


def sharp_renyi(p, q, alpha):
    with localcontext() as context:
        context.prec = 60
        a = Decimal(alpha)
        total = sharp(p, q, lambda x, y: (a * x.ln() + (1 - a) * y.ln()).exp())
        return float(total.ln() / (a - 1))


# ------------------------------------------------------------------------------------------------------- the value
def test_a_divergence_is_a_float_that_knows_its_error():
    d = Divergence(0.12345, 0.0042, "Monte Carlo, 100,000 draws")
    assert str(d) == repr(d) == f"{d}" == "0.123 ± 0.004 (Monte Carlo, 100,000 draws)"
    assert d < 0.2
    assert d + 1 == 1.12345
    assert f"{d:.4f}" == "0.1235"
    assert (d.error, d.method, d.note) == (0.0042, "Monte Carlo, 100,000 draws", "")
    with pytest.raises(AttributeError, match="immutable"):
        d.error = 0.0
    for twin in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
        assert type(twin) is Divergence
        assert (float(twin), twin.error, twin.method, twin.note) == (float(d), d.error, d.method, d.note)
    assert Divergence(-1e-18) == 0
    assert Estimate(-1.5) == -1.5
    assert str(Estimate(1234.5, 20.0, "by hand")) == "1.23e+03 ± 2e+01 (by hand)"
    assert str(Estimate(0.0, 1e-13, "by hand")) == "0 ± 1e-13 (by hand)"


# --------------------------------------------------------------------------------------------------------- vectors
def test_the_three_conventions():
    assert kl([0.5, 0.5, 0.0], [0.25, 0.75, 0.0]) == pytest.approx(0.5 * math.log(4 / 3), rel=1e-15)
    assert kl([1.0, 0.0], [0.25, 0.75]) == pytest.approx(math.log(4), rel=1e-15)
    infinite = kl([0.25, 0.75], [1.0, 0.0])
    assert infinite == math.inf
    assert "p[1] = 0.75, q[1] = 0" in infinite.note
    assert "disjoint" in kl([1, 0], [0, 1]).note
    assert kl([1], [1]) == 0
    assert renyi([0.25, 0.75], [1.0, 0.0], 0.5) == pytest.approx(math.log(4), rel=1e-14)  # finite below order 1
    assert renyi([0.25, 0.75], [1.0, 0.0], 2) == math.inf
    assert renyi([1, 0], [0, 1], 0.5) == math.inf
    assert [f([1, 0], [0, 1]) for f in (jensen_shannon, total_variation, hellinger)] == [math.log(2), 1, 1]
    assert cross_entropy([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert entropy([1.0, 0.0]) == 0


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        ([0.5, 0.4], [0.5, 0.5], "p that sums to 0.9; .*p / p.sum"),
        ([0.5, 0.5], [3, 1], "q that sums to 4"),
        ([0.5, 0.5 + 1e-11], [0.5, 0.5], "sum to one, up to rounding"),
        ([1.5, -0.5], [0.5, 0.5], r"p\[1\] = -0.5"),
        ([0.5, math.nan], [0.5, 0.5], r"p\[1\] = nan"),
        ([0.5, 0.5], [1.0], "p with 2 entries and q with 1"),
        ([], [], "no entries"),
        ([[0.5, 0.5]], [[0.5, 0.5]], r"shape \(1, 2\)"),
        (["a"], ["b"], "a vector of probabilities"),
    ],
)
def test_vectors_that_are_no_distributions_are_refused(p, q, words):
    for measure in (kl, jensen_shannon, cross_entropy):
        with pytest.raises(DataError, match=words):
            measure(p, q)


def test_rounding_is_not_refused():
    share = np.full(49, 1 / 49)
    assert math.fsum(share) != 1
    assert kl(share, share) == 0
    single = np.full(1000, 1 / 1000, dtype=np.float32)
    assert kl(single, single) == 0


@pytest.mark.parametrize("bits", [1, 4, 13, 26, 40, 51])
def test_nearly_equal_vectors_keep_their_digits(bits):
    """Entries are dyadic, so that both vectors sum to exactly one and Decimal sees what we see."""
    e = 2.0**-bits
    p, q = np.array([0.25, 0.25, 0.5]), np.array([0.25 + e / 4, 0.25 - e / 8, 0.5 - e / 8])
    assert p.sum() == q.sum() == 1
    assert kl(p, q) == pytest.approx(sharp_kl(p, q), rel=1e-14)
    assert jensen_shannon(p, q) == pytest.approx(sharp_jensen_shannon(p, q), rel=1e-14)
    assert total_variation(p, q) == e / 4
    with localcontext() as context:
        context.prec = 60
        square = sharp(p, q, lambda a, b: (a.sqrt() - b.sqrt()) ** 2) / 2
        assert hellinger(p, q) == pytest.approx(float(square.sqrt()), rel=1e-14)
    for alpha in (0.125, 0.5, 0.875, 1.5, 4.0):
        assert renyi(p, q, alpha) == pytest.approx(sharp_renyi(p, q, alpha), rel=1e-13)


@pytest.mark.parametrize("bits", [10, 60, 300, 1000, 1060])
def test_extreme_vectors_keep_their_digits(bits):
    e = 2.0**-bits
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.5 - e, e, 0.5])
    assert kl(p, q) == pytest.approx(sharp_kl(p, q), rel=1e-14)
    assert kl(q, [0.5, 0.5 - e, e]) == pytest.approx(sharp_kl(q, [0.5, 0.5 - e, e]), rel=1e-14)
    far = -2 * math.log(2 * math.sqrt(e) * math.sqrt(1 - e))  # the affinity is 2 sqrt(e(1-e))
    assert renyi([1 - e, e], [e, 1 - e], 0.5) == pytest.approx(far, rel=1e-13)


def test_vectors_against_scipy():
    rng = np.random.default_rng(0)
    for k in (2, 5, 100):
        p, q = rng.dirichlet(np.ones(k), size=2)
        assert kl(p, q) == pytest.approx(stats.entropy(p, q), rel=1e-12)
        assert entropy(p) == pytest.approx(stats.entropy(p), rel=1e-13)
        assert cross_entropy(p, q) == pytest.approx(stats.entropy(p) + stats.entropy(p, q), rel=1e-13)
        assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-12)
        assert total_variation(p, q) == pytest.approx(np.abs(p - q).sum() / 2, rel=1e-14)
        assert hellinger(p, q) == pytest.approx(np.sqrt(1 - np.sqrt(p * q).sum()), rel=1e-12)
        assert renyi(p, q, 2) == pytest.approx(np.log((p * p / q).sum()), rel=1e-12)


@pytest.mark.parametrize("alpha", [0, -1, math.inf, math.nan])
def test_orders_without_meaning_are_refused(alpha):
    with pytest.raises(DataError, match="order above 0"):
        renyi([0.5, 0.5], [0.5, 0.5], alpha)


# --------------------------------------------------------------------------------------------------------- members
SCIPY = {
    Gaussian: lambda m: stats.norm(m.mean, math.sqrt(m.variance)),
    Exponential: lambda m: stats.expon(scale=1 / m.rate),
    Gamma: lambda m: stats.gamma(m.shape, scale=1 / m.rate),
    InverseGaussian: lambda m: stats.invgauss(m.mean / m.shape, scale=m.shape),
    Beta: lambda m: stats.beta(m.a, m.b),
    Poisson: lambda m: stats.poisson(m.rate),
    Binomial: lambda m: stats.binom(m.n, m.p),
    Geometric: lambda m: stats.geom(m.p, loc=-1),
    NegativeBinomial: lambda m: stats.nbinom(m.r, m.p),
}


def scipy_kl(p, q):
    """By SciPy's densities and SciPy's quadrature (in log x, for positive x) or a plain sum."""
    p, q = SCIPY[type(p)](p), SCIPY[type(q)](q)
    if hasattr(p.dist, "pmf"):
        x = np.arange(0, 3000)
        x = x[p.pmf(x) > 0]
        return (p.pmf(x) * (p.logpmf(x) - q.logpmf(x))).sum()

    def term(t):
        return math.exp(t) * p.pdf(math.exp(t)) * (p.logpdf(math.exp(t)) - q.logpdf(math.exp(t)))

    cuts = np.array([-80, -50, -30, -20, -12, -8, -4, -2, -1, 0, 1, 2, 3, 4, 5])
    cuts = np.append(cuts[np.exp(cuts) < p.support()[1]], np.log(min(1e3, p.support()[1])))
    return sum(integrate.quad(term, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pairwise(cuts))


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Gamma(2.0, 1.0), InverseGaussian(2.0, 3.0)),
        (InverseGaussian(1.0, 0.5), Gamma(0.7, 2.0)),
        (Exponential(2.0), Gamma(3.0, 4.0)),
        (Gamma(0.3, 1.0), Exponential(0.2)),
        (Beta(2.0, 3.0), Gaussian(0.3, 0.2)),
        (Beta(0.5, 2.0), Exponential(3.0)),
        (Poisson(3.0), Geometric(0.2)),
        (Geometric(0.4), Poisson(2.0)),
        (Binomial(0.3, 12), Poisson(3.6)),
        (NegativeBinomial(0.4, 2.5), Poisson(4.0)),
        (Binomial(0.3, 12), Binomial(0.5, 20)),
        (Poisson(200.0), NegativeBinomial(0.5, 200.0)),
    ],
    ids=lambda m: str(m),
)
def test_between_families_against_scipy(p, q):
    found = kl(p, q)
    assert found == pytest.approx(scipy_kl(p, q), rel=1e-9)
    assert found.method in ("sum over whole numbers", "adaptive quadrature")
    assert 0 <= found.error < 1e-10
    assert cross_entropy(p, q) == pytest.approx(p.entropy() + found, rel=1e-10)


def test_known_values_between_families():
    """E_p log q needs two moments of p only."""
    p, q = Exponential(1.0), Gaussian(2.0, 3.0)
    exact = -1 + 0.5 * math.log(2 * math.pi * 3) + (1 + (1 - 2) ** 2) / 6
    assert kl(p, q) == pytest.approx(exact, rel=1e-12)
    n, p_, rate = 20, 0.1, 2.0
    exact = (
        -stats.binom(n, p_).entropy()
        - (n * p_ * math.log(rate) - rate)
        + sum(stats.binom(n, p_).pmf(k) * math.lgamma(k + 1) for k in range(n + 1))
    )
    assert kl(Binomial(p_, n), Poisson(rate)) == pytest.approx(exact, rel=1e-11)


def test_integrals_that_diverge_or_nearly_do():
    """E 1/x of a Gamma is infinite up to shape 1; a density that floats cannot resolve has an error that says so."""
    found = kl(Gamma(0.9, 1.0), InverseGaussian(2.0, 3.0))
    assert found == math.inf
    assert found.note == "the integral is infinite"
    assert math.isfinite(kl(Gamma(1.1, 1.0), InverseGaussian(2.0, 3.0)))
    for p, q, exact in [
        (Gamma(0.01, 1.0), Exponential(1.0), kl(Gamma(0.01, 1.0), Gamma(1.0, 1.0))),
        (Beta(0.5, 0.5), Gaussian(0.5, 1.0), -Beta(0.5, 0.5).entropy() + 0.5 * math.log(2 * math.pi) + 0.5 * 0.125),
    ]:
        found = kl(p, q)
        assert found.error > 1e-8
        assert abs(found - exact) <= found.error


def test_supports_that_differ_give_infinity_and_say_so():
    for p, q in [
        (Gaussian(0.0, 1.0), Exponential(1.0)),
        (Exponential(1.0), Beta(2.0, 2.0)),
        (Poisson(1.0), Binomial(0.5, 3)),
        (Poisson(1.0), Gaussian(1.0, 1.0)),
        (Gaussian(1.0, 1.0), Poisson(1.0)),
    ]:
        found = kl(p, q)
        assert found == math.inf
        assert "supports" in found.note
    assert math.isfinite(kl(Exponential(1.0), Gaussian(0.0, 1.0)))
    assert total_variation(Poisson(1.0), Gaussian(1.0, 1.0)) == 1
    assert jensen_shannon(Poisson(1.0), Gaussian(1.0, 1.0)) == pytest.approx(math.log(2), rel=1e-15)
    with pytest.raises(DataError, match="shapes"):
        kl(Gaussian(0.0, 1.0), DiagonalGaussian([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(DataError, match="two probability vectors, or two distributions"):
        kl([0.5, 0.5], Bernoulli(0.5))


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Gaussian(0.0, 1.0), Gaussian(1.0, 2.0)),
        (Gaussian(0.0, 1.0), Gaussian(1e-7, 1.0 + 1e-7)),
        (Gaussian(0.0, 1e-8), Gaussian(3.0, 1e8)),
        (Gamma(2.0, 1.0), Gamma(2.5, 0.5)),
        (Beta(2.0, 3.0), Beta(5.0, 1.5)),
        (Poisson(3.0), Poisson(30.0)),
        (Binomial(0.2, 10), Binomial(0.6, 10)),
        (InverseGaussian(1.0, 2.0), InverseGaussian(1.5, 1.0)),
        (GaussianFixedVariance(0.0, 2.0), GaussianFixedVariance(1.0, 2.0)),
    ],
    ids=lambda m: str(m),
)
def test_closed_forms_agree_with_sums_and_quadrature(p, q):
    """A mixture of one member is the same distribution, by the other road."""
    one, other = Mixture([1.0], [p]), Mixture([1.0], [q])
    assert kl(p, q).method == "closed form"
    rel = 1e-7 if kl(p, q) < 1e-12 else 1e-11  # log-densities of size 1 lose what the closed form keeps
    for measure, name in zip(MEASURES, NAMES, strict=True):
        closed, counted = measure(p, q), measure(one, other)
        if math.isinf(closed):
            continue  # the closed form knows that the integral diverges
        assert counted == pytest.approx(closed, rel=rel), name
    assert entropy(one) == pytest.approx(p.entropy(), rel=1e-12)


def test_renyi_of_gaussians():
    """Gil, Alajaji & Linder (2013): with s = α v₂ + (1-α) v₁, α Δ²/(2s) + log(s/(v₁^(1-α) v₂^α))/(2(1-α))."""
    v1, v2, delta = 1.5, 0.8, 0.7
    p, q = Gaussian(0.2, v1), Gaussian(0.2 + delta, v2)
    for alpha in (0.01, 0.3, 0.5, 0.99, 1.01, 1.7):
        s = alpha * v2 + (1 - alpha) * v1
        exact = alpha * delta**2 / (2 * s) + math.log(s / (v1 ** (1 - alpha) * v2**alpha)) / (2 * (1 - alpha))
        assert renyi(p, q, alpha) == pytest.approx(exact, rel=1e-12)
    assert renyi(p, q, 3.0) == math.inf  # s < 0
    assert hellinger(p, q) ** 2 == pytest.approx(
        1 - math.sqrt(2 * math.sqrt(v1 * v2) / (v1 + v2)) * math.exp(-(delta**2) / (4 * (v1 + v2))), rel=1e-12
    )


@pytest.mark.parametrize("exponent", [-3, -6, -9, -12])
def test_nearly_equal_members_keep_their_digits(exponent):
    """Series: KL = Δ²/(2v) for means; λ (x - log(1 + x)) for rates λ(1 + x); the same for Rényi times α."""
    e = 2.0 ** math.floor(exponent * math.log2(10))
    assert kl(Gaussian(1.0, 2.0), Gaussian(1.0 + e, 2.0)) == pytest.approx(e * e / 4, rel=1e-13)
    for alpha in (0.25, 0.9, 4.0):  # the member half-way is rounded: its error counts squared
        found = renyi(Gaussian(1.0, 2.0), Gaussian(1.0 + e, 2.0), alpha)
        assert found == pytest.approx(alpha * e * e / 4, rel=1e-12 if exponent > -10 else 1e-6)
    with localcontext() as context:
        context.prec = 60
        x = Decimal(e)
        exact = float(8 * (x - (1 + x).ln()))
    assert kl(Poisson(8.0), Poisson(8.0 + 8 * e)) == pytest.approx(exact, rel=1e-12)


def test_total_variation_of_gaussians_with_one_variance():
    assert total_variation(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0)) == pytest.approx(
        2 * stats.norm.cdf(0.5) - 1, rel=1e-11
    )


# -------------------------------------------------------------------------------------------------------- mixtures
def bimodal():
    return Mixture([0.4, 0.6], [Gaussian(-3.0, 1.0), Gaussian(2.0, 0.5)])


def test_mixture():
    p = bimodal()
    x = np.linspace(-6, 5, 7)
    direct = 0.4 * stats.norm(-3, 1).pdf(x) + 0.6 * stats.norm(2, math.sqrt(0.5)).pdf(x)
    np.testing.assert_allclose(np.exp(p.log_density(x)), direct, rtol=1e-13)
    assert p.log_density(np.array([1e3]))[0] == pytest.approx(math.log(0.4) + stats.norm(-3, 1).logpdf(1e3))
    assert p.mean == pytest.approx(0.0, abs=1e-15)
    assert p.variance == pytest.approx(0.4 * 10 + 0.6 * 4.5, rel=1e-14)
    draws = p.sample(40_000, 0)
    assert draws.mean() == pytest.approx(p.mean, abs=4 * math.sqrt(p.variance / 40_000))
    assert (draws < -0.5).mean() == pytest.approx(0.4, abs=0.01)
    np.testing.assert_array_equal(draws, p.sample(40_000, 0))
    q = Mixture([0.5, 0.5], [SphericalGaussian([0.0, 0.0], 1.0), DiagonalGaussian([2.0, 4.0], [1.0, 3.0])])
    np.testing.assert_allclose(q.covariance, [[2.0, 2.0], [2.0, 6.0]])
    np.testing.assert_allclose(np.cov(q.sample(40_000, 1).T), q.covariance, rtol=0.05)
    assert np.isneginf(Mixture([0.5, 0.5], [Poisson(1.0), Poisson(2.0)]).log_density(np.array([0.5])))[0]
    with pytest.raises(DataError, match="one weight for each"):
        Mixture([1.0], [Poisson(1.0), Poisson(2.0)])
    with pytest.raises(DataError, match="all discrete or all continuous"):
        Mixture([0.5, 0.5], [Poisson(1.0), Gaussian(1.0, 1.0)])
    with pytest.raises(DataError, match="sums to 3"):
        Mixture([1, 2], [Poisson(1.0), Poisson(2.0)])


def test_mixtures_by_quadrature():
    p, q = bimodal(), Gaussian(0.0, 6.7)

    def integrand(x):
        log_p, log_q = p.log_density(np.array([x]))[0], stats.norm(0, math.sqrt(6.7)).logpdf(x)
        return math.exp(log_p) * (log_p - log_q)

    exact = sum(integrate.quad(integrand, a, a + 2, epsabs=1e-14)[0] for a in range(-14, 10, 2))
    assert kl(p, q) == pytest.approx(exact, rel=1e-11)
    assert entropy(p) == pytest.approx(q.entropy() - exact, rel=1e-11)  # q has the moments of p
    narrow = Mixture([0.5, 0.5], [Gaussian(0.0, 1.0), Gaussian(40.0, 1e-12)])  # a spike must not be missed
    assert kl(narrow, narrow) == 0
    assert total_variation(narrow, Gaussian(0.0, 1.0)) == pytest.approx(0.5, rel=1e-6)


def plane():
    first = MultivariateGaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 0.5]])
    second = MultivariateGaussian([1.0, -1.0], [[0.8, 0.0], [0.0, 1.2]])
    return first, second


def test_monte_carlo_has_an_honest_error_bar():
    first, second = plane()
    split, whole = Mixture([0.5, 0.5], [first, first]), Mixture([1.0], [second])
    for measure in (kl, lambda p, q, **o: renyi(p, q, 0.6, **o), hellinger):
        exact = measure(first, second)
        far = [(measure(split, whole, draws=4_000, random_state=s) - exact) for s in range(20)]
        found = measure(split, whole, draws=4_000, random_state=0)
        assert found.method == "Monte Carlo, 4,000 draws"
        assert "±" in str(found)
        assert found == measure(split, whole, draws=4_000, random_state=0)
        assert 0.5 * found.error < np.std(far) < 2 * found.error
        assert abs(np.mean(far)) < 4 * found.error / math.sqrt(20)
    assert entropy(split, draws=4_000) == pytest.approx(first.entropy(), abs=4 * entropy(split, draws=4_000).error)
    near = kl(split, Mixture([1.0], [MultivariateGaussian([1e-6, 0.0], first.covariance)]), draws=10_000)
    exact = kl(first, MultivariateGaussian([1e-6, 0.0], first.covariance))
    assert 0 < near.error < 0.05 * exact  # small divergences have small errors
    assert near == pytest.approx(exact, abs=4 * near.error)


def test_bounds_between_mixtures():
    first, second = plane()
    alone = kl_bounds(first, second)
    assert alone.upper == pytest.approx(kl(first, second), rel=1e-12)
    assert alone.approximation == pytest.approx(kl(first, second), rel=1e-12)
    assert alone.lower == pytest.approx(kl(first, second), rel=0.05)
    rng = np.random.default_rng(0)
    for spread in (0.1, 1.0, 5.0):
        f = Mixture(
            [0.3, 0.7], [Gaussian(*pair) for pair in zip(spread * rng.normal(size=2), [0.5, 1.0], strict=True)]
        )
        g = Mixture([0.2, 0.5, 0.3], [Gaussian(m, 1.0) for m in spread * rng.normal(size=3)])
        found = kl_bounds(f, g)
        assert 0 <= found.lower <= kl(f, g) <= found.upper
        assert kl_bounds(f, f).upper < 1e-10
    f, g = Mixture([0.5, 0.5], [first, second]), Mixture([0.9, 0.1], [first, second])
    found, drawn = kl_bounds(f, g), kl(f, g, draws=10_000)
    assert found.lower - 3 * drawn.error <= drawn <= found.upper + 3 * drawn.error
    assert found.upper <= kl([0.5, 0.5], [0.9, 0.1]) + 1e-12  # moving the weights alone
    apart = Mixture([0.5, 0.5], [Exponential(1.0), Gaussian(0.0, 1.0)])
    assert kl_bounds(apart, Exponential(1.0)).upper == math.inf


# --------------------------------------------------------------------------------------------------------- samples
def test_samples():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2000, 2)), rng.normal([1.0, 0.0], size=(3000, 2))
    found = kl_samples(x, y)
    assert abs(found - 0.5) < 3 * found.error
    assert kl_samples(x.tolist(), y.tolist()) == found
    line = kl_samples(x[:, 0], y[:, 0], k=10)
    assert abs(line - 0.5) < 3 * line.error
    assert kl_samples(x[:1000], x[1000:] + 0.0) < 0.15


def test_samples_that_repeat():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=200), rng.normal(size=200)
    lump = np.concatenate([x, np.full(10, 0.5)])
    found = kl_samples(lump, y)
    assert found == math.inf
    assert "occurs more than 5 times" in found.note
    with pytest.raises(DataError, match="times or more in y"):
        kl_samples(lump, np.concatenate([y, np.full(10, 0.5)]))
    with pytest.raises(DataError, match="more than k rows"):
        kl_samples(x[:5], y)
    with pytest.raises(DataError, match="the same columns"):
        kl_samples(x, np.column_stack([y, y]))


def test_categorical_is_a_vector():
    p, q = [0.2, 0.3, 0.5], [0.1, 0.6, 0.3]
    assert kl(Categorical(p), Categorical(q)) == pytest.approx(kl(p, q), rel=1e-13)
    assert renyi(Categorical(p), Categorical(q), 0.3) == pytest.approx(renyi(p, q, 0.3), rel=1e-12)
