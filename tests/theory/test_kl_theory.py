"""Theorems about KL divergence on examples: inequalities, limits, and its part in maximum likelihood."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certifit.divergence import (
    Mixture,
    cross_entropy,
    entropy,
    hellinger,
    jensen_shannon,
    kl,
    kl_samples,
    minimise_kl,
    renyi,
    total_variation,
)
from certifit.families import (
    Bernoulli,
    Beta,
    Binomial,
    DiagonalGaussian,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    MultivariateGaussian,
    Poisson,
)

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(2, 12)
ROUNDING = 1e-12


def pair(seed, k, near=1.0):
    """Two vectors; `near` = 0 makes them equal, zeros occur in both places."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5))
    q = (1 - near) * p + near * rng.dirichlet(np.full(k, 0.5))
    return rng, p / p.sum(), q / q.sum()


# ---------------------------------------------------------------------------------------------------- inequalities
@given(SEEDS, SIZES, st.sampled_from([1.0, 1e-3, 1e-8, 1e-15, 0.0]))
def test_inequalities(seed, k, near):
    """Gibbs, Pinsker, Bretagnolle-Huber, Le Cam; Jensen-Shannon is bounded; Rényi grows with its order."""
    _, p, q = pair(seed, k, near)
    d, tv, h, js = kl(p, q), total_variation(p, q), hellinger(p, q), jensen_shannon(p, q)
    assert d >= 0
    assert (d == 0) == bool((p == q).all())
    assert tv <= math.sqrt(d / 2) * (1 + ROUNDING)
    assert tv <= math.sqrt(-math.expm1(-d)) * (1 + ROUNDING)
    assert h * h <= tv * (1 + ROUNDING)
    assert tv <= h * math.sqrt(2 - h * h) * (1 + ROUNDING)
    assert 0 <= js <= math.log(2) * (1 + ROUNDING)
    assert js == pytest.approx(jensen_shannon(q, p), rel=1e-13)
    assert tv == pytest.approx(total_variation(q, p), rel=1e-13)
    assert h == pytest.approx(hellinger(q, p), rel=1e-13)
    assert js <= d / 2 * (1 + ROUNDING) + 1e-300
    orders = [float(renyi(p, q, alpha)) for alpha in (0.05, 0.3, 0.5, 0.8, 1, 1.5, 4)]
    assert all(a <= b * (1 + 1e-11) for a, b in pairwise(orders))


@given(SEEDS, SIZES)
def test_square_roots_of_jensen_shannon_obey_the_triangle_inequality(seed, k):
    """Endres & Schindelin (2003)."""
    rng, p, q = pair(seed, k)
    r = rng.dirichlet(np.ones(k))
    assert math.sqrt(jensen_shannon(p, q)) <= (math.sqrt(jensen_shannon(p, r)) + math.sqrt(jensen_shannon(r, q))) * (
        1 + ROUNDING
    )


@given(SEEDS, SIZES, st.integers(2, 6))
def test_data_processing(seed, k, m):
    """No channel makes two distributions easier to tell apart."""
    rng, p, q = pair(seed, k)
    channel = rng.dirichlet(np.ones(m), size=k)  # (k, m)
    through = [(v @ channel) / (v @ channel).sum() for v in (p, q)]
    for measure in (kl, jensen_shannon, total_variation, hellinger, lambda a, b: renyi(a, b, 0.4)):
        assert measure(*through) <= measure(p, q) * (1 + ROUNDING) + 1e-15


@given(SEEDS, st.integers(2, 5), st.integers(2, 5))
def test_chain_rule(seed, k, m):
    """KL of joints = KL of margins + mean KL of conditionals; for independent products it adds."""
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.ones(k * m)).reshape(k, m) for _ in range(2))
    margins = [v.sum(axis=1) for v in (p, q)]
    within = sum(margins[0][i] * kl(p[i] / p[i].sum(), q[i] / q[i].sum()) for i in range(k))
    joint = kl(p.ravel() / p.sum(), q.ravel() / q.sum())
    assert joint == pytest.approx(kl(margins[0] / p.sum(), margins[1] / q.sum()) + within, rel=1e-10)
    a, b = margins[0] / p.sum(), margins[1] / q.sum()
    c, d = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(m))
    products = np.outer(a, c).ravel(), np.outer(b, d).ravel()
    for measure in (kl, lambda x, y: renyi(x, y, 0.7), lambda x, y: renyi(x, y, 2.5)):
        assert measure(*products) == pytest.approx(measure(a, b) + measure(c, d), rel=1e-10)


def test_independent_columns_add_up():
    p = DiagonalGaussian([0.0, 1.0, -2.0], [1.0, 2.0, 0.5])
    q = DiagonalGaussian([0.3, 1.5, -1.0], [2.0, 1.0, 0.5])
    columns = [(Gaussian(*a), Gaussian(*b)) for a, b in zip(zip(p.mean, p.variance), zip(q.mean, q.variance))]  # noqa: B905
    assert kl(p, q) == pytest.approx(sum(kl(*c) for c in columns), rel=1e-13)
    assert renyi(p, q, 0.3) == pytest.approx(sum(renyi(*c, 0.3) for c in columns), rel=1e-12)
    full = [MultivariateGaussian(m.mean, m.covariance) for m in (p, q)]
    assert kl(*full) == pytest.approx(kl(p, q), rel=1e-12)


# ----------------------------------------------------------------------------------------------------------- limits
@given(SEEDS, SIZES)
def test_renyi_tends_to_kl(seed, k):
    """The derivative at α = 1 is half the variance of log p/q, so the distance shrinks with |α - 1|."""
    _, p, q = pair(seed, k)
    d = kl(p, q)
    spread = (p * (np.log(p / q) - d) ** 2).sum()
    for away in (1e-3, 1e-6, 1e-9):
        for alpha in (1 - away, 1 + away):
            assert renyi(p, q, alpha) == pytest.approx(
                d + (alpha - 1) * spread / 2, abs=1e-13 + 1e4 * away**2 * (1 + spread**2)
            )


@pytest.mark.parametrize(
    ("p", "q"),
    [(Gaussian(0.0, 1.0), Gaussian(2.0, 3.0)), (Gamma(2.0, 1.0), Gamma(1.0, 3.0)), (Poisson(2.0), Poisson(9.0))],
)
def test_renyi_of_members_tends_to_kl(p, q):
    for away in (1e-4, 1e-7, 1e-10):
        for alpha in (1 - away, 1 + away):
            assert renyi(p, q, alpha) == pytest.approx(kl(p, q), rel=20 * away + 1e-12)


def test_close_by_kl_is_half_the_fisher_information():
    """KL(θ, θ + δ) = ½ δᵀ I δ + O(δ³)."""
    for member, other in [
        (Gamma(2.0, 3.0), Gamma(2.0 + 1e-5, 3.0 - 2e-5)),
        (Beta(2.0, 0.7), Beta(2.0 + 1e-5, 0.7 - 2e-5)),
        (Gaussian(2.0, 0.7), Gaussian(2.0 + 1e-5, 0.7 - 2e-5)),
    ]:
        delta = np.array([1e-5, -2e-5])
        assert kl(member, other) == pytest.approx(delta @ member.fisher_information() @ delta / 2, rel=1e-3)
        assert jensen_shannon(member, other) == pytest.approx(kl(member, other) / 4, rel=1e-3)


def test_exact_arithmetic():
    """log 2 - type answers from fractions: Σ p log p/q where every p/q is a power of two."""
    p = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8)]
    q = [Fraction(1, 8), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2)]
    bits = sum(a * (math.log2(a) - math.log2(b)) for a, b in zip(p, q, strict=True))
    assert bits == Fraction(7, 8)
    as_floats = [[float(v) for v in vector] for vector in (p, q)]
    assert kl(*as_floats) == pytest.approx(0.875 * math.log(2), rel=1e-15)
    assert entropy(as_floats[0]) == pytest.approx(1.75 * math.log(2), rel=1e-15)
    assert cross_entropy(*as_floats) == pytest.approx(2.625 * math.log(2), rel=1e-15)
    assert renyi(*as_floats, 2) == pytest.approx(
        math.log(float(sum(a * a / b for a, b in zip(p, q, strict=True)))), rel=1e-14
    )
    assert total_variation(*as_floats) == float(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)


@settings(max_examples=30)
@given(SEEDS)
def test_law_of_rare_events(seed):
    """KL(Binomial(n, λ/n), Poisson(λ)) falls like (λ/n)²/4, and stays below n times that of one trial."""
    lam = np.random.default_rng(seed).uniform(0.2, 4.0)
    distances = [float(kl(Binomial(lam / n, n), Poisson(lam))) for n in (10, 100, 1000)]
    assert distances[0] > distances[1] > distances[2] > 0
    for n, d in zip((10, 100, 1000), distances, strict=True):
        assert d <= kl(Bernoulli(lam / n), Poisson(lam / n)) * n * (1 + 1e-9)  # data processing: a sum of n of them
    assert distances[2] == pytest.approx((lam / 1000) ** 2 / 4, rel=0.05)  # Harremoës: n² KL tends to λ²/4


# ----------------------------------------------------------------------------------- what fitting has to do with it
@pytest.mark.parametrize("family", [Poisson, Geometric, Gaussian, Gamma, Exponential])
def test_forward_projection_is_maximum_likelihood(family):
    """Among members, KL(sample, q) and -log-likelihood differ by a constant: their minimum is the same member."""
    x = np.random.default_rng(0).poisson(4.0, 300) + 1.0
    found = minimise_kl(x, family)
    best = found.mean_log_likelihood
    for step in np.random.default_rng(1).normal(size=(30, len(found.member.natural))):
        eta = found.member.natural * (1 + 0.05 * step)
        other = family.from_natural(eta)
        lost = best - other.log_density(x).mean()
        assert lost > 0
        # Pythagoras for exponential families: KL(p, q') = KL(p, q) + KL(q, q')
        assert lost == pytest.approx(kl(found.member, other), rel=1e-8)
    assert found.kl == pytest.approx(-found.entropy - best, rel=1e-10)


@settings(max_examples=20)
@given(SEEDS)
def test_the_forward_projection_of_a_mixture_has_its_moments(seed):
    rng = np.random.default_rng(seed)
    p = Mixture(rng.dirichlet(np.ones(3)), [Gamma(*rng.uniform(0.5, 5, size=2)) for _ in range(3)])
    q = minimise_kl(p, Gamma).member
    assert q.mean == pytest.approx(p.mean, rel=1e-10)
    assert kl(p, q) <= min(kl(p, m) for m in p.members) * (1 + 1e-9) + 1e-12


def test_neighbour_estimates_cover_the_truth():
    """Two standard errors around the estimate hold the true divergence about 19 times in 20."""
    p, q = MultivariateGaussian([0.0, 0.0], np.eye(2)), MultivariateGaussian([0.7, 0.0], [[1.2, 0.2], [0.2, 0.9]])
    truth, covered = kl(p, q), 0
    for seed in range(60):
        found = kl_samples(p.sample(600, seed), q.sample(800, 1000 + seed))
        covered += abs(found - truth) <= 2 * found.error
    assert covered >= 54


def test_neighbour_estimates_come_closer_with_more_rows():
    p, q = Gaussian(0.0, 1.0), Gaussian(0.5, 2.0)
    errors = [kl_samples(p.sample(n, 0), q.sample(n, 1)).error for n in (500, 2000, 8000)]
    assert errors[0] > 1.5 * errors[1] > 2.25 * errors[2]
