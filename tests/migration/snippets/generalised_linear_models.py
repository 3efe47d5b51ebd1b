"""Counts and amounts with row weights: Poisson, gamma and Tweedie regression."""

import numpy as np
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
mean = np.exp(0.5 + X @ [0.3, -0.2, 0.1, 0.0])
counts, amounts = rng.poisson(mean), rng.gamma(2, mean / 2)
exposure = rng.uniform(0.5, 1.5, 300)
poisson = PoissonRegressor(alpha=1e-3, solver="newton-cholesky").fit(X, counts / exposure, sample_weight=exposure)
gamma = GammaRegressor(alpha=1e-2, max_iter=1000).fit(X, amounts)
tweedie = TweedieRegressor(power=1.5, alpha=0.1, link="auto").fit(X, amounts * (counts > 0))
result = {
    "poisson": poisson.coef_,
    "gamma": gamma.coef_,
    "tweedie": tweedie.coef_,
    "deviance": poisson.score(X, counts / exposure, sample_weight=exposure),
}
