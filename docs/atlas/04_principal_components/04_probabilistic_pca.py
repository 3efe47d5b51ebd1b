r"""
Probabilistic PCA
=================

**Statement** (Tipping & Bishop). Let :math:`x = W z + m + \varepsilon` with :math:`z \sim N(0, I_M)`, :math:`M < d`,
and :math:`\varepsilon \sim N(0, \sigma^2 I_d)`. If the rows fill more than :math:`M` dimensions, the likelihood is
largest for the mean :math:`m` of the rows, :math:`\sigma^2 = \frac{1}{d - M} \sum_{i > M} \lambda_i`, the mean of the
discarded eigenvalues of their covariance (divided by :math:`n`), and :math:`W = V_M (\Lambda_M - \sigma^2 I)^{1/2} R`
with the first :math:`M` eigenvectors and any orthogonal :math:`R`. (Else it grows for ever as :math:`\sigma \to 0`.)

**Why.** The likelihood depends on :math:`C = W W^\top + \sigma^2 I` only. Along the kept axes :math:`C` can match the
variances :math:`\lambda_i`; along all others it has one number, and the likeliest one is their mean.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``:
``test_noise_is_the_mean_of_what_is_discarded``.

**Control** ``test_control_noise_of_the_next_eigenvalue``: with :math:`\sigma^2 = \lambda_{M+1}` or the smallest
:math:`\lambda_d` the likelihood is lower.
"""

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine

from certifit import ProbabilisticPCA
from certifit.plots import plot_scree

wine = load_wine().data / load_wine().data.std(axis=0)
values = np.linalg.eigvalsh(np.cov(wine.T, ddof=0))[::-1]
model = ProbabilisticPCA(3).fit(wine)
print(f"noise {model.noise_variance_:.6f}, mean of the discarded eigenvalues {values[3:].mean():.6f}")

# %%
# All eigenvalues as shares of the variance, those of three components in blue; the dotted line is the noise.

plot_scree(model, values)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The same axes with the largest of the discarded eigenvalues as the noise are less likely.

V = model.components_
for noise in (model.noise_variance_, values[3]):
    C = V.T * (model.explained_variance_ - noise) @ V + noise * np.eye(13)
    print(f"noise {noise:.4f}: log-likelihood {multivariate_normal(model.mean_, C).logpdf(wine).sum():.2f}")
