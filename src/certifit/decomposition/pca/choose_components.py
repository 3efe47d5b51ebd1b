"""The number of components: by a share of the variance, by Minka's evidence, or by the likelihood of held-out rows.

Reference: Minka, Automatic choice of dimensionality for PCA (2000).
"""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from scipy.linalg import eigh
from scipy.special import gammaln

from certifit.exceptions import DataError
from certifit.numerics.moments import MeanAndScatter, fold_scatters
from certifit.rows import Array, Rows


def choose_dimension(rule: float | str, values: Array, total: float, n: float, d: int) -> int:
    """Return the number of components for a fraction of the variance in (0, 1), or by 'mle'.

    `values` are all variances, descending; `total` is their sum, n the number of rows (total weight), d of columns.

    >>> import numpy as np
    >>> choose_dimension(0.9, np.array([8.0, 1.5, 0.5]), 10.0, 100, 3)
    2
    """
    if isinstance(rule, str):
        if n < d:
            raise DataError(
                got=f"n_components='mle' with n_samples={n:g} < n_features={d}",
                wanted="at least as many rows as columns",
                fix="n_components='mle' is only supported if n_samples >= n_features: ask for a number of components "
                "or a fraction of the variance.",
            )
        return _minka_dimension(values, n)
    share = np.cumsum(values) / (total or 1.0)
    return min(len(values), int(np.searchsorted(share, rule, side="right")) + 1)


def _minka_dimension(values: Array, n: float) -> int:
    """Return the dimension from 1 to d - 1 of the largest evidence (Minka 2000, equation 77)."""
    d = len(values)
    if d < 2:
        return d
    values = values / (values[0] or 1.0)
    evidence = np.full(d, -np.inf)
    for k in range(1, d):
        # Further components have no variance.
        if values[k - 1] < np.finfo(float).eps:
            break
        noise = max(np.finfo(float).eps, float(values[k:].sum()) / (d - k))
        i = np.arange(1, k + 1)
        log_volume = -k * np.log(2.0) + (gammaln((d - i + 1) / 2) - np.log(np.pi) * (d - i + 1) / 2).sum()
        log_fit = -0.5 * n * np.log(values[:k]).sum() - 0.5 * n * (d - k) * np.log(noise)
        m = d * k - k * (k + 1) / 2
        padded = np.where(np.arange(d) < k, values, noise)
        pairs = np.triu(np.ones((k, d), dtype=bool), 1)
        gaps = (values[:k, None] - values) * (1 / padded - 1 / padded[:k, None])
        with np.errstate(divide="ignore"):
            log_curvature = np.log(gaps[pairs]).sum() + pairs.sum() * np.log(n)
        evidence[k] = (
            log_volume + log_fit + 0.5 * (m + k) * np.log(2 * np.pi) - 0.5 * log_curvature - 0.5 * k * np.log(n)
        )
    return int(np.argmax(evidence))


def held_out_likelihood(rows: Rows, folds: int = 5) -> Array:
    """Return the mean log-likelihood of held-out rows (d,), for M = 0 … d - 1 components.

    One pass sums the scatter of each fold. The model that scores a fold comes from the sum over the other folds; its
    likelihood is -inf where it has no density.

    >>> import numpy as np
    >>> from certifit.rows import as_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(300, 6))
    >>> int(np.argmax(held_out_likelihood(as_rows(X))))
    2
    """
    parts = fold_scatters(rows, folds)
    if rows.n_rows < 2 * folds or not all(part.weight > 0 for part in parts):
        raise DataError(
            got=f"n_components='cv' with {rows.n_rows} rows",
            wanted=f"at least two rows of positive weight in each of {folds} folds",
            fix="Ask for a number of components or a fraction of the variance.",
        )
    scores = []
    for part in parts:
        others = reduce(add, (other for other in parts if other is not part))
        scores.append(part.weight * _test_likelihoods(others, part))
    return np.sum(scores, axis=0) / sum(part.weight for part in parts)


def _test_likelihoods(train: MeanAndScatter, test: MeanAndScatter) -> Array:
    """Return the mean log-likelihood of the test rows for M = 0 … d - 1 components of the training rows."""
    d = len(train.mean)
    values, vectors = eigh(train.S / train.weight, driver="evd")
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    shift = test.mean - train.mean
    # The covariance of the test rows about the mean of the training rows.
    T = test.S / test.weight + shift[:, None] * shift
    along = ((T @ vectors) * vectors).sum(axis=0)
    M = np.arange(d)
    floor = d * np.finfo(float).eps * values[0]
    noise = np.cumsum(values[::-1])[::-1] / (d - M)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.append(0.0, np.cumsum(np.log(values) + along / values)[:-1])
        rest = np.cumsum(along[::-1])[::-1]
        scores = -0.5 * (d * np.log(2 * np.pi) + kept + (d - M) * np.log(noise) + rest / noise)
    return np.where(noise > floor, scores, -np.inf)
