r"""
Holdout, folds and single rows
==============================

**Statement.** Of independent rows, an estimate from those that were left out has the expectation
:math:`\mathrm{err}(m)`, the mean error of models fitted to :math:`m` rows, where :math:`m` is how many were fitted:
half of :math:`n` for a holdout of half, :math:`n - n/K` for :math:`K` folds, :math:`n - 1` for single rows left out.
Its bias, :math:`\mathrm{err}(m) - \mathrm{err}(n)`, is above zero where more rows help, and nearly vanishes for
single rows. The variance has no such rule; here it is largest for the holdout, which tests fewest rows with the worst
model.

**Why.** A row left out is independent of the model that it tests, so that its expected loss is that model's error;
the mean over rows and folds keeps the expectation, and averages part of the variance away.

**Held by** ``tests/theory/atlas/test_atlas_new_rows.py``: ``test_rows_left_out_tell_the_error_of_smaller_models`` and
``test_folds_vary_less_than_a_holdout``.

**Control** ``test_control_fitted_rows_tell_too_little``: the error of rows that were fitted; and
``test_control_a_holdout_does_not_tell_the_error_of_all_rows``: :math:`n` in place of :math:`m`.
"""

import numpy as np
from sklearn.datasets import load_diabetes

from certifit import LinearRegression, assess
from certifit.plots import plot_estimates

X, y = load_diabetes(return_X_y=True)
X = X[:, [2, 3, 6, 8]]  # the population: 442 patients, from whom samples of 24 are drawn
samples = [np.random.default_rng(s).integers(0, len(y), 24) for s in range(30)]
ways = {"holdout": {"test_size": 0.5}, "k-fold": {"n_splits": 4}, "leave-one-out": {}}
told = {way: [] for way in ways}
for s, (way, options) in ((s, one) for s in samples for one in ways.items()):
    score = assess(LinearRegression(), X[s], y[s], method=way, metrics="neg_mean_squared_error", **options)
    told[way].append(-score.claims[0].estimate)
models = [LinearRegression().fit(X[s], y[s]) for s in samples]
truth = np.mean([np.mean((model.predict(X) - y) ** 2) for model in models])
plot_estimates(told, truth, "squared error")

# %%
# The line is the mean error, on all 442 patients, of the models that were fitted to all 24 of a sample.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Rows that were fitted tell too small an error: the model has seen their targets.

fitted = np.mean([np.mean((model.predict(X[s]) - y[s]) ** 2) for model, s in zip(models, samples, strict=True)])
print(f"mean error of fitted rows {fitted:.0f}, of all patients {truth:.0f}")
