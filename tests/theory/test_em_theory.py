"""EM laid open: log-likelihood = bound + KL, Jensen's inequality, what each step does, and the limit to k-means."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp, xlogy
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from certifit.mixture.em import EMPoint, MixtureEM
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.rows import as_rows

X = load_iris().data
FLOOR = 0.01  # so large that the penalty shows


def stopped(max_iter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped early on purpose
        return GaussianMixture(3, reg_covar=FLOOR, max_iter=max_iter, random_state=0).fit(X)


def joint(model):
    """log π_k N(x; m_k, C_k) by SciPy (n, k)."""
    parts = zip(model.weights_, model.means_, model.covariances_, strict=True)
    return np.column_stack([np.log(p) + multivariate_normal.logpdf(X, m, C) for p, m, C in parts])


def penalty(model):
    return FLOOR / 2 * np.mean([np.trace(np.linalg.inv(C)) for C in model.covariances_])


def bound_of(model, q):
    """L(θ, q), nats a row."""
    return (np.where(q > 0, q * joint(model), 0.0) - xlogy(q, q)).sum(axis=1).mean() - penalty(model)


def loglik(model):
    return logsumexp(joint(model), axis=1).mean() - penalty(model)


def posterior(model):
    j = joint(model)
    return np.exp(j - logsumexp(j, axis=1, keepdims=True))


def divergence(q, p):
    """KL(q || p), mean over rows."""
    return (xlogy(q, q) - xlogy(q, p)).sum(axis=1).mean()


@pytest.mark.parametrize("t", [1, 2, 7])
def test_log_likelihood_is_bound_plus_divergence(t):
    """Each line of the trace against SciPy's densities at the parameters before and after the step."""
    before, after = stopped(t - 1), stopped(t)
    line = after.em_trace_[t]
    q = posterior(before)
    np.testing.assert_allclose(line["loglik"], loglik(after), rtol=1e-11)
    np.testing.assert_allclose(line["bound"], bound_of(after, q), rtol=1e-10)
    np.testing.assert_allclose(line["kl"], divergence(q, posterior(after)), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(line["bound"] + line["kl"], line["loglik"], rtol=1e-14)
    # the M step raised the bound from where the E step had closed it; it is the best θ for this q
    assert line["bound"] > before.em_trace_[t - 1]["loglik"]
    assert line["kl"] >= 0


def test_the_trace_climbs_and_ends_at_rest():
    trace = stopped(1000).em_trace_
    assert trace["iteration"].tolist() == list(range(len(trace)))
    assert np.diff(trace["loglik"]).min() > 0
    assert (trace["kl"][1:] > 0).all()
    rise, gain = trace["bound"][1:] - trace["loglik"][:-1], np.diff(trace["loglik"])
    assert (rise <= gain).all()
    assert (gain[-10:] <= 2 * rise[-10:]).all()  # near the maximum; the promise on which EM stops


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 50))
def test_jensens_inequality(seed, concentration):
    """Any responsibilities give a lower bound, short of the log-likelihood by KL(q || posterior)."""
    model = JENSEN
    q = np.random.default_rng(seed).dirichlet(np.full(3, concentration), len(X))
    short = loglik(model) - bound_of(model, q)
    assert short >= 0
    np.testing.assert_allclose(short, divergence(q, np.maximum(posterior(model), 1e-300)), rtol=1e-6)


JENSEN = stopped(1)


def test_the_bound_touches_at_the_posterior():
    np.testing.assert_allclose(bound_of(JENSEN, posterior(JENSEN)), loglik(JENSEN), rtol=1e-13)


def test_the_certificate_states_the_identity():
    found = {check.name: check for check in stopped(1000).certificate_.checks}
    identity = found["|log-likelihood - bound - KL(q || posterior)|"]
    assert identity.passed
    assert identity.residual < 1e-12


def spherical(centres, sigma):
    """Components of equal weight and variance σ² at these centres."""
    model = GaussianMixture(3, covariance_type="spherical", random_state=0).fit(X)
    model.weights_, model.means_, model.covariances_ = np.full(3, 1 / 3), centres, np.full(3, sigma**2)
    return model


def test_the_limit_of_vanishing_variance_is_k_means():
    """At k-means' centres: its labels, and -2σ² times the log-likelihood (less a constant) is its objective.

    Bishop, Pattern Recognition and Machine Learning (2006), section 9.3.2; scikit-learn's k-means.
    """
    lloyd = KMeans(3, init=X[[5, 60, 110]], n_init=1, tol=0).fit(X)
    short = []
    for sigma in (0.3, 0.1, 0.03, 0.01):
        model = spherical(lloyd.cluster_centers_, sigma)
        constant = len(X) * (np.log(1 / 3) - 2 * np.log(2 * np.pi * sigma**2))
        short.append(lloyd.inertia_ + 2 * sigma**2 * (model.score_samples(X).sum() - constant))
        # the soft minimum over k centres is below the minimum by at most 2σ² log k
        assert -1e-10 <= short[-1] <= 2 * sigma**2 * len(X) * np.log(3)
    assert short == sorted(short, reverse=True)
    assert short[-1] < 1e-6
    np.testing.assert_array_equal(model.predict(X), lloyd.labels_)


def test_an_em_step_becomes_lloyds_step():
    seeds = X[[5, 60, 110]]
    nearest = ((X[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1)
    means = np.stack([X[nearest == j].mean(axis=0) for j in range(3)])
    apart = []
    for sigma in (0.3, 0.1, 0.03, 0.01):
        em, at = MixtureEM(as_rows(X)), EMPoint(spherical(seeds, sigma)._at())
        moved = em.update(at, em.measure(at)).params.mixture.components
        apart.append(np.abs(moved.shift + moved.means - means).max())
    assert apart == sorted(apart, reverse=True)
    assert apart[-1] < 1e-9
