r"""
Equal variances make it logistic
================================

**Statement.** If the columns are Gaussian and independent within a class, with variances :math:`\sigma_j^2` that all
classes share, then the posterior is a softmax of linear scores (of two classes: a logistic function of one),
:math:`p(c | x) \propto \exp(w_c \cdot x + b_c)`, with :math:`w_{cj} = \mu_{cj} / \sigma_j^2` and
:math:`b_c = \log \pi_c - \sum_j \mu_{cj}^2 / 2 \sigma_j^2`. Classes meet in hyperplanes.

**Why.** In :math:`\log \pi_c - \sum_j (x_j - \mu_{cj})^2 / 2 \sigma_j^2` the term :math:`x_j^2 / 2 \sigma_j^2` is the
same for every class and cancels in Bayes' rule; what is left is linear.

**Held by** ``tests/theory/atlas/test_atlas_generative_and_discriminative.py``: ``test_equal_variances_are_logistic``.

**Control** ``test_control_variances_of_their_own_are_not``: with a variance for each class the squares stay.
"""

import numpy as np

from certifit import GaussianNB, load_penguins
from certifit.plots import plot_boundary

birds = load_penguins().dropna()
X, species = birds[["bill_length_mm", "bill_depth_mm"]], birds["species"]
model = GaussianNB(variance="shared").fit(X, species)
scores = X @ model.coef_.T + model.intercept_
softmax = np.exp(scores) / np.exp(scores).sum(axis=1).to_numpy()[:, None]
print(f"largest difference {np.abs(model.predict_proba(X) - softmax).to_numpy().max():.1e}")
plot_boundary(model, X, species)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Is the log-odds linear in the measurements? What the best line leaves, with shared variances and with others.

line = np.column_stack([X, np.ones(len(X))])
for kind in ("shared", "separate"):
    logs = GaussianNB(variance=kind).fit(X, species).predict_log_proba(X)
    left = np.linalg.lstsq(line, logs[:, 0] - logs[:, 1], rcond=None)[1]
    print(f"{kind}: squares left {left[0]:.3g}")
