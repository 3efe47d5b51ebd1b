"""How many components: a share of the variance, or Minka's evidence."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from certifit.core import Array, DataError


def choose_dimension(rule: float | str, values: Array, total: float, n: float, d: int) -> int:
    """Number of components for a fraction of the variance in (0, 1), or by 'mle'.

    `values` are all variances, descending; `total` their sum; n the number of rows (total weight), d of columns.

    >>> import numpy as np
    >>> choose_dimension(0.9, np.array([8.0, 1.5, 0.5]), 10.0, 100, 3)
    2
    """
    if isinstance(rule, str):
        if n < d:
            raise DataError(
                got=f"n_components='mle' with n_samples={n:g} < n_features={d}",
                wanted="at least as many rows as columns",
                fix="Ask for a number of components or a fraction of the variance.",
            )
        return _minka(values, n)
    share = np.cumsum(values) / (total or 1.0)
    return min(len(values), int(np.searchsorted(share, rule, side="right")) + 1)


def _minka(values: Array, n: float) -> int:
    """The dimension of largest evidence (Minka 2000, equation 77), of all from 1 to d - 1."""
    d = len(values)
    if d < 2:
        return d
    evidence = np.full(d, -np.inf)
    for k in range(1, d):
        if values[k - 1] < np.finfo(float).eps:
            break  # no variance left to explain
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
