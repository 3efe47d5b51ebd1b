"""What is proved about probabilistic PCA, seen on data."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits, load_wine

from certifit import PCA
from certifit.decomposition.probabilistic.probabilistic_pca import ProbabilisticPCA

WINE = load_wine().data / load_wine().data.std(axis=0)


def test_noise_is_the_mean_of_the_discarded_eigenvalues():
    values = np.linalg.eigvalsh(np.cov(WINE.T, bias=True))[::-1]
    for k in (0, 1, 5, 12):
        model = ProbabilisticPCA(k).fit(WINE)
        assert model.noise_variance_ == pytest.approx(values[k:].mean(), rel=1e-10)
        np.testing.assert_allclose(model.explained_variance_, values[:k], rtol=1e-10)


def test_every_other_choice_of_eigenvectors_is_a_worse_stationary_point():
    """Tipping & Bishop (1999), appendix A: of all pairs of eigenvectors, the two leading ones are the most likely."""
    X = WINE[:, :6]
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    best, scores = ProbabilisticPCA(2).fit(X).score(X), {}
    for pair in combinations(range(6), 2):
        noise = np.delete(values, pair).mean()
        if values[list(pair)].min() > noise:  # else W would be imaginary
            kept = vectors[:, list(pair)]
            C = kept * (values[list(pair)] - noise) @ kept.T + noise * np.eye(6)
            scores[pair] = multivariate_normal(X.mean(axis=0), C).logpdf(X).mean()
    assert max(scores, key=scores.get) == (4, 5)
    assert scores[4, 5] == pytest.approx(best, rel=1e-10)
    assert len(scores) > 1
    assert sorted(scores.values())[-2] < best - 1e-3


def test_without_noise_codes_are_the_projections_of_pca():
    """As σ² falls, E z goes to the whitened principal components."""
    rng = np.random.default_rng(0)
    signal, noise = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)), rng.normal(size=(300, 6))
    apart = []
    for size in (1e-1, 1e-2, 1e-3):
        X = signal + size * noise
        codes = ProbabilisticPCA(2).fit(X).transform(X)
        white = PCA(2, whiten=True).fit(X).transform(X) * np.sqrt(300 / 299)
        apart.append(np.abs(codes - white).max())
    assert apart[1] < 0.05 * apart[0]
    assert apart[2] < 0.05 * apart[1]


def test_error_bars_of_imputed_entries_are_calibrated():
    """On rows from the model: standardised errors of the entries taken out have unit variance, 95 % within 1.96."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, 12)) + 0.5 * rng.normal(size=(3000, 12))
    missing = rng.random(X.shape) < 0.2
    incomplete = np.where(missing, np.nan, X)
    filled, error = ProbabilisticPCA(3).fit(incomplete).impute(incomplete, return_std=True)
    standard = (filled - X)[missing] / error[missing]
    assert standard.std() == pytest.approx(1, abs=0.05)
    assert (np.abs(standard) < 1.96).mean() == pytest.approx(0.95, abs=0.015)


def test_what_is_observed_fills_better_than_means():
    X = load_digits().data
    missing = np.random.default_rng(0).random(X.shape) < 0.2
    incomplete = np.where(missing, np.nan, X)
    filled = ProbabilisticPCA(10).fit(incomplete).impute(incomplete)
    ours, means = (filled - X)[missing], (np.nanmean(incomplete, axis=0) - X)[missing]
    assert (ours**2).mean() < 0.5 * (means**2).mean()


def test_entries_missing_at_random_do_not_bias_the_covariance():
    """Maximum likelihood stays consistent then; filling by means shrinks every covariance."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(8, 2)) * 2
    X = rng.normal(size=(5000, 2)) @ W.T + 0.5 * rng.normal(size=(5000, 8))
    truth = W @ W.T + 0.25 * np.eye(8)
    incomplete = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    ours = ProbabilisticPCA(2).fit(incomplete).get_covariance()
    filled = np.cov(np.where(np.isnan(incomplete), np.nanmean(incomplete, axis=0), incomplete).T)
    scale = np.abs(truth).max()
    assert np.abs(ours - truth).max() < 0.06 * scale
    assert np.abs(filled - truth).max() > 0.25 * scale


def test_a_rotation_of_the_codes_changes_nothing():
    """Only W Wᵀ is determined: the likelihood of W R is that of W."""
    model = ProbabilisticPCA(3).fit(WINE)
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    W = model.loadings_ @ R
    C = W @ W.T + model.noise_variance_ * np.eye(13)
    assert multivariate_normal(model.mean_, C).logpdf(WINE).sum() == pytest.approx(model.loglikelihood_, rel=1e-10)
