"""The number of components: by Bayes' information criterion, or by automatic relevance determination."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certifit.decomposition.probabilistic.closed_form import PrincipalVariances
from certifit.decomposition.probabilistic.parameters import PPCAParameters, ZeroNoiseError, check_noise
from certifit.decomposition.probabilistic.posterior import LOG_2PI
from certifit.rows import Array


def count_parameters(d: int, k: int) -> int:
    """Return the number of free parameters: W up to rotation, σ² and μ.

    >>> count_parameters(3, 2) == 6 + 3  # as many as a full covariance and a mean
    True
    """
    return d * k - k * (k - 1) // 2 + 1 + d


def bic(log_likelihood: float, d: int, k: int, weight: float) -> float:
    """Return Bayes' information criterion: smaller is better."""
    return count_parameters(d, k) * float(np.log(weight)) - 2 * log_likelihood


def best_likelihoods(v: PrincipalVariances) -> Array:
    """Return the mean log-likelihood of the best model of 0, 1, … rank - 1 components on complete rows."""
    d, k = len(v.mean), np.arange(v.rank)
    noise = np.cumsum(v.values[::-1])[::-1][: v.rank] / (d - k)
    kept = np.append(0.0, np.cumsum(np.log(v.values[: v.rank]))[:-1])
    return -0.5 * (d * (LOG_2PI + 1) + kept + (d - k) * np.log(noise))


def choose_bic(v: PrincipalVariances, weight: float) -> int:
    """Return the number of components with the smallest criterion on complete rows, from one decomposition."""
    d, likelihoods = len(v.mean), best_likelihoods(v)
    return int(np.argmin([bic(weight * value, d, k, weight) for k, value in enumerate(likelihoods)]))


def search_bic(fit: Callable[[int], float], d: int, most: int, weight: float, worse: int) -> int:
    """Fit 0, 1, 2, … components to rows with missing entries, until the criterion was worse `worse` times in a row.

    `fit(k)` returns the mean negative log-likelihood that EM reaches.
    """
    scores: list[float] = []
    for k in range(most + 1):
        try:
            scores.append(bic(-weight * fit(k), d, k, weight))
        except ZeroNoiseError:
            break
        if k - int(np.argmin(scores)) == worse:
            break
    return int(np.argmin(scores))


def relevant_parameters(v: PrincipalVariances, weight: float, steps: int = 1000) -> PPCAParameters:
    """Return the stationary point of the likelihood with the relevance penalty, for variances λ of n rows.

    A kept axis has model variance v, the larger root of (n + d) v² - n (λ + σ²) v + n λ σ² = 0; axes without a real
    root are dropped; σ² then solves (d - k) / σ² - Σ_dropped λ / σ⁴ = d / n Σ_kept 1 / (v - σ²).
    """
    d, n = len(v.mean), weight
    noise = v.noise(v.rank // 2)
    lam = v.values
    for _ in range(steps):
        square = (n * (lam + noise)) ** 2 - 4 * (n + d) * n * lam * noise
        root = (n * (lam + noise) + np.sqrt(np.maximum(square, 0.0))) / (2 * (n + d))
        kept = (square > 0) & (root > noise)
        # Only the leading axes are kept.
        kept &= np.cumsum(~kept) == 0
        k = min(int(kept.sum()), v.rank - 1)
        rest = float(lam[k:].sum())
        pull = d / n * float((1 / (root[:k] - noise)).sum())
        # The root of (d - k) σ² - rest = pull σ⁴ that is rest / (d - k) for pull = 0.
        new = 2 * rest / ((d - k) + np.sqrt(max(0.0, (d - k) ** 2 - 4 * pull * rest)))
        if abs(new - noise) <= 1e-14 * noise:
            break
        noise = new
    check_noise(noise, v.total / d, k)
    return PPCAParameters(v.mean, v.vectors[:k].T * np.sqrt(root[:k] - noise), float(noise))
