"""The statements of docs/atlas/10_mixtures on data; each with a broken variant that must fail."""

import warnings
from copy import copy
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp, xlogy
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from certifit import GaussianMixture, load_penguins

BILLS = load_penguins().dropna()[["bill_length_mm", "bill_depth_mm"]].to_numpy(float)
BILLS = (BILLS - BILLS.mean(axis=0)) / BILLS.std(axis=0)


def after(steps):
    """EM, stopped after so many steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
        return GaussianMixture(3, reg_covar=0.0, max_iter=steps, random_state=0).fit(BILLS)


PATH = [after(steps) for steps in range(5)]


# ------------------------------------------------------------------------------------------------- the bound
def joint(model):
    """log of weight times density, of every row and component, by SciPy (n, k)."""
    parts = zip(model.weights_, model.means_, model.covariances_, strict=True)
    return np.column_stack([np.log(w) + multivariate_normal.logpdf(BILLS, m, C) for w, m, C in parts])


def log_likelihood(model):
    return logsumexp(joint(model), axis=1).mean()


def posterior(model):
    return np.exp(joint(model) - logsumexp(joint(model), axis=1, keepdims=True))


def bound(model, q):
    return (q * joint(model) - xlogy(q, q)).sum(axis=1).mean()


def divergence(q, p):
    return (xlogy(q, q) - xlogy(q, p)).sum(axis=1).mean()


def splits(value, lower, gap):
    """A log-likelihood is a lower bound plus a gap that is not negative."""
    return bool(gap >= -1e-12 and abs(value - lower - gap) < 1e-9 * abs(value))


def some_responsibilities(seed):
    return np.random.default_rng(seed).dirichlet(np.ones(3), len(BILLS))


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_likelihood_is_bound_plus_divergence(steps):
    """At the responsibilities of the step before, as the fit's own trace has it; and at any others (Jensen)."""
    model, q = PATH[steps], posterior(PATH[steps - 1])
    line = model.em_trace_[steps]
    assert splits(log_likelihood(model), bound(model, q), divergence(q, posterior(model)))
    found = [line["loglik"], line["bound"], line["kl"]]
    expected = [log_likelihood(model), bound(model, q), divergence(q, posterior(model))]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    for seed in range(5):
        other = some_responsibilities(seed)
        assert splits(log_likelihood(model), bound(model, other), divergence(other, posterior(model)))


def test_e_steps_close_the_gap_and_m_steps_raise_the_bound():
    for before, model in pairwise(PATH):
        q = posterior(before)
        assert bound(before, q) == pytest.approx(log_likelihood(before), rel=1e-12)
        assert log_likelihood(before) < bound(model, q) < log_likelihood(model)
        # The M step's parameters are the best for this q: moments weighted by responsibilities, by hand.
        mass = q.sum(axis=0)
        np.testing.assert_allclose(model.weights_, mass / len(q), rtol=1e-9)
        np.testing.assert_allclose(model.means_, q.T @ BILLS / mass[:, None], rtol=1e-9)
        for j in range(3):
            apart = BILLS - model.means_[j]
            np.testing.assert_allclose(model.covariances_[j], (apart.T * q[:, j]) @ apart / mass[j], rtol=1e-8)


def test_control_responsibilities_that_do_not_sum_to_one():
    model = PATH[2]
    half = posterior(model) / 2
    assert bound(model, half) > log_likelihood(model)
    assert not splits(log_likelihood(model), bound(model, half), divergence(half, posterior(model)))


def test_control_the_divergence_the_other_way_round():
    model, q = PATH[2], some_responsibilities(0)
    assert not splits(log_likelihood(model), bound(model, q), divergence(posterior(model), q))


def test_control_without_the_entropy():
    model, q = PATH[2], some_responsibilities(0)
    lower = (q * joint(model)).sum(axis=1).mean()
    assert not splits(log_likelihood(model), lower, divergence(q, posterior(model)))


# ------------------------------------------------------------------------------------------------- the limit
CENTRES = BILLS[[0, 150, 300]]
SQUARES = ((BILLS[:, None] - CENTRES) ** 2).sum(axis=2)
LLOYD = np.stack([BILLS[SQUARES.argmin(axis=1) == j].mean(axis=0) for j in range(3)])


FITTED = GaussianMixture(3, covariance_type="spherical", random_state=0).fit(BILLS)


def spherical(variances):
    """The library's mixture of three circles of equal weight about the centres."""
    model = copy(FITTED)
    model.weights_, model.means_, model.covariances_ = np.full(3, 1 / 3), CENTRES, np.array(variances)
    return model


def step_is_lloyds(variances):
    """Means weighted by responsibilities are the means of the nearest rows, and labels are those of k-means."""
    model = spherical(variances)
    q = model.predict_proba(BILLS)
    same = (model.predict(BILLS) == SQUARES.argmin(axis=1)).all()
    return bool(same and np.abs(q.T @ BILLS / q.sum(axis=0)[:, None] - LLOYD).max() < 1e-6)


def test_em_becomes_kmeans():
    assert step_is_lloyds([1e-6] * 3)
    n, inertia = len(BILLS), SQUARES.min(axis=1).sum()
    missed = []
    for sigma in (1.0, 0.3, 0.1, 0.01):
        constant = n * (np.log(1 / 3) - np.log(2 * np.pi * sigma**2))
        missed.append(inertia + 2 * sigma**2 * (spherical([sigma**2] * 3).score_samples(BILLS).sum() - constant))
        assert -1e-9 <= missed[-1] <= 2 * sigma**2 * n * np.log(3)
    assert missed == sorted(missed, reverse=True)


def test_control_a_wide_component_is_not_lloyd():
    assert not step_is_lloyds([1.0] * 3)


def test_control_variances_of_their_own_keep_em_apart():
    """However small they are, a component twice as wide as the others takes rows that are not nearest to it."""
    for sigma in (0.1, 1e-3, 1e-4):
        assert not step_is_lloyds([4 * sigma**2, sigma**2, sigma**2])
