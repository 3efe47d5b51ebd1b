"""The statements of docs/atlas/01_divergence on data; each with a broken variant that must fail."""

from fractions import Fraction
from itertools import permutations
from math import comb, inf, isclose, log

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from certifit.datasets import load_penguins, load_visits
from certifit.divergence import kl, minimise_kl, total_variation
from certifit.families import Binomial, Gaussian, Geometric

VISITS = load_visits()
SPECIES = load_penguins()["species"]


# ------------------------------------------------------------------------------- not negative, not symmetric
def counts_by_group():
    """How many people of each of four groups saw a doctor 0, 1, ..., 9 or more times (4, 10)."""
    groups = VISITS["physical_limitation"].gt(0) * 2 + VISITS["deductible_plan"].gt(0)
    return [np.bincount(VISITS["visits"][groups == g].clip(upper=9), minlength=10) for g in range(4)]


COUNTS = counts_by_group()
SHARES = [c / c.sum() for c in COUNTS]


def is_a_divergence(measure, groups):
    """Positive for all pairs that differ, zero for equal ones, and another number the other way round."""
    pairs = list(permutations(groups, 2))
    return (
        all(measure(p, q) > 0 for p, q in pairs)
        and all(measure(p, p.copy()) == 0 for p in groups)
        and all(not isclose(measure(p, q), measure(q, p), rel_tol=1e-6) for p, q in pairs)
    )


def test_kl_is_not_negative():
    assert is_a_divergence(kl, SHARES)
    for p, q in permutations(SHARES, 2):
        assert isclose(kl(p, q), rel_entr(p, q).sum(), rel_tol=1e-11)
        assert rel_entr(p, q).min() < 0  # single terms are negative


def test_control_counts_are_no_distributions():
    assert not is_a_divergence(lambda p, q: rel_entr(p, q).sum(), [c.astype(float) for c in COUNTS])


def test_control_total_variation_is_symmetric():
    assert not is_a_divergence(total_variation, SHARES)


# ---------------------------------------------------------------------------------------- three conventions
ISLANDS = pd.crosstab(SPECIES, load_penguins()["island"], normalize="columns")


def is_the_limit(value, p, q):
    """Whether value is what Σ p log p/q goes to as a vanishing share of both is spread over all outcomes."""
    near = []
    for share in (1e-6, 1e-9, 1e-12):
        a, b = ((1 - share) * v + share / len(v) for v in (p, q))
        near.append(sum(s * log(s / t) for s, t in zip(a, b, strict=True)))
    if value == inf:  # it grows for ever, by about p log 1000 each time
        return near[2] - near[1] > 1 and near[1] - near[0] > 1
    return abs(near[2] - value) < 1e-9


def test_three_conventions():
    islands = [ISLANDS[name].to_numpy() for name in ("Biscoe", "Dream", "Torgersen")]
    for p, q in permutations(islands, 2):
        assert is_the_limit(kl(p, q), p, q)
    assert isclose(kl(islands[2], islands[0]), log(1 / islands[0][0]))  # one species: all other terms are 0 log 0/q
    assert kl(islands[0], islands[1]) == inf


def test_control_leaving_out_every_zero():
    for p, q in permutations([ISLANDS["Biscoe"].to_numpy(), ISLANDS["Dream"].to_numpy()]):
        both = (p > 0) & (q > 0)
        assert not is_the_limit(rel_entr(p[both], q[both]).sum(), p, q)


# ------------------------------------------------------------------ the smallest KL is maximum likelihood
X = VISITS["visits"].to_numpy(dtype=float)
TALLY = np.bincount(X.astype(int))


def is_most_likely(p, tally):
    """Whether no other geometric law gives the sample a larger likelihood: p^n (1-p)^Σx, by its counts."""
    n, total = int(tally.sum()), int(tally @ np.arange(len(tally)))

    def log_likelihood(p):
        return n * log(p) + total * log(1 - p)

    others = [p * (1 + step) for step in (-0.1, -1e-2, -1e-4, 1e-4, 1e-2, 0.1)]
    return all(log_likelihood(other) < log_likelihood(p) for other in others)


def geometric_law(p):
    """The probabilities of 0, 1, ... and, at the end, of all numbers above the sample's."""
    return np.append(p * (1 - p) ** np.arange(len(TALLY)), (1 - p) ** len(TALLY))


def test_smallest_kl_is_maximum_likelihood():
    found = minimise_kl(X, Geometric, method="gradient").member.p  # a descent on the divergence
    assert is_most_likely(found, TALLY)
    shares, values = np.append(TALLY / len(X), 0), np.arange(len(TALLY))
    entropy = -rel_entr(shares, 1).sum()
    for p in (found, 0.2, 0.4):  # divergence and likelihood differ by the entropy, at any member
        log_likelihood = TALLY @ (log(p) + values * log(1 - p)) / len(X)
        assert isclose(kl(shares, geometric_law(p)), -entropy - log_likelihood, rel_tol=1e-9)
    by_divergence = [kl(shares, geometric_law(p)) for p in np.linspace(0.15, 0.45, 31)]
    assert min(by_divergence) > kl(shares, geometric_law(found))


def test_control_smallest_total_variation():
    grid, shares = np.linspace(0.15, 0.45, 301), np.append(TALLY / len(X), 0)
    nearest = grid[np.argmin([total_variation(shares, geometric_law(p)) for p in grid])]
    assert not is_most_likely(nearest, TALLY)


# ---------------------------------------------------------------------------------- a binomial on a Gaussian
def slopes(mean, variance, n, share):
    """The derivatives of -E_p log q in mean and variance: moments of p summed in fractions over 0, ..., n."""
    share = Fraction(share)
    pmf = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    first = float(sum(k * weight for k, weight in enumerate(pmf)))
    second = float(sum(k * k * weight for k, weight in enumerate(pmf)))
    square = second - 2 * mean * first + mean**2  # E (x - m)²
    return (mean - first) / variance, 0.5 / variance - square / (2 * variance**2)


def is_nearest_gaussian(member, n, share):
    """Whether both slopes vanish."""
    return bool(np.allclose(slopes(member.mean, member.variance, n, share), 0, atol=1e-8))


def test_binomial_on_a_gaussian():
    n, share = 20, (SPECIES == "Gentoo").mean()
    p = Binomial(share, n)
    for method in ("closed", "gradient"):
        found = minimise_kl(p, Gaussian, method=method)
        assert is_nearest_gaussian(found.member, n, share)
        np.testing.assert_allclose([found.member.mean, found.member.variance], [n * share, n * share * (1 - share)])
        # slopes by the chain rule: natural parameters are m/v and -1/(2v)
        elsewhere = Gaussian(6.0, 5.0)
        by_mean, by_variance = slopes(6.0, 5.0, n, share)
        chain = np.array([[5.0, 0.0], [2 * 6.0 * 5.0, 2 * 5.0**2]])  # of (m, v) in each of them
        np.testing.assert_allclose(found.gradient(elsewhere.natural), chain @ [by_mean, by_variance], rtol=1e-9)


def test_control_variance_of_a_poisson():
    share = (SPECIES == "Gentoo").mean()
    assert not is_nearest_gaussian(Gaussian(20 * share, 20 * share), 20, share)
