r"""
Who needs fewer rows?
=====================

**Statement.** Naive Bayes with shared variances and logistic regression have one form. On the rows of the fit the
class labels are never less likely under logistic regression without a penalty. On new rows naive Bayes may err less
while there are few rows; where columns depend on each other within a class but the log-odds are linear all the same,
logistic regression ends no worse, and as a rule better.

**Why.** Logistic regression maximises :math:`\sum_i \log p(y_i | x_i)` over that form, naive Bayes
:math:`\sum_i \log p(x_i, y_i)`. Means and variances of :math:`d` columns settle after about :math:`\log d` rows, the
best linear boundary after about :math:`d` (Ng and Jordan, 2001).

**Held by** ``tests/theory/atlas/test_atlas_generative_and_discriminative.py``:
``test_naive_bayes_needs_fewer_rows``, ``test_logistic_regression_makes_labels_likelier``.

**Control** ``test_control_dependent_columns_turn_it_round``; ``test_control_a_penalty_gives_likelihood_away``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from certifit.plots import learning_curves, plot_learning_curves

cancer = load_breast_cancer(as_frame=True)
X, y = np.log(cancer.data.filter(regex="texture|smoothness|symmetry")), cancer.target
rng = np.random.default_rng(0)
# Shuffled within its class, a column keeps its distribution there and depends on no other: the assumption holds.
independent = X.groupby(y).transform(lambda column: rng.permutation(column))
fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, title, rows in zip(axes, ("columns shuffled within classes", "as measured"), (independent, X), strict=True):
    curves = learning_curves(rows, y, [12, 24, 48, 100, 300], repeats=10)
    plot_learning_curves(curves, ax=ax).set_title(title)
    print(f"{title}: {curves.generative.mean(axis=1).round(3)} against {curves.discriminative.mean(axis=1).round(3)}")

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# On the right: as measured, columns depend on each other, naive Bayes counts the same evidence twice, and more rows
# do not mend it.
