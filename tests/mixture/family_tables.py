"""Tables with columns of every family, which tests of family mixtures share."""

import numpy as np
import pytest

from certifit.checkers.mixture.families_adapter import audit_mixture
from certifit.families import (
    Binomial,
    GaussianFixedVariance,
    NegativeBinomial,
)


def draws(n=120, seed=0):
    """A column of each family in two groups, the first of a third of the rows."""
    rng = np.random.default_rng(seed)
    low = np.arange(n) % 3 == 0
    a, b = np.where(low, 1.0, 4.0), np.where(low, 0.2, 0.7)
    return {
        "bernoulli": rng.random(n) < b,
        "categorical": np.where(low, rng.integers(0, 2, n), rng.integers(0, 4, n)),
        "poisson": rng.poisson(2 * a),
        "geometric": rng.geometric(b) - 1,
        "exponential": rng.exponential(a),
        "gamma": rng.gamma(2 * a, 1.5),
        "inverse_gaussian": rng.wald(a, 3.0),
        "beta": rng.beta(a, 2.0),
        "gaussian": rng.normal(3 * a, a),
        Binomial(0.5, n=7): rng.binomial(7, b),
        NegativeBinomial(0.5, r=2.5): rng.negative_binomial(2.5, b),
        GaussianFixedVariance(0.0, variance=2.0): rng.normal(3 * a, np.sqrt(2)),
    }


def table(*families, n=120):
    found = draws(n)
    return np.column_stack([found[name] for name in families or list(found)]).astype(np.float64)


ALL = list(draws(4))
MIXED = ["bernoulli", "categorical", "poisson", "gamma", "gaussian"]
COUNTS = ["bernoulli", "categorical", "poisson", "geometric", Binomial(0.5, n=7), NegativeBinomial(0.5, r=2.5)]
each_family = pytest.mark.parametrize("family", ALL, ids=str)


def check(model, X, w=None, tol=None):
    return audit_mixture(model, X, None, w, model.tol if tol is None else tol)
