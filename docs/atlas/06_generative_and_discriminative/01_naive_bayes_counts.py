r"""
Naive Bayes counts, and Laplace smooths
=======================================

**Statement.** With independent columns within a class, the probabilities that make the rows most likely are shares:
:math:`\hat p(v | c) = n_{cv} / n_c`. A value never seen in a class then has probability 0, whatever the other columns
say. :math:`\alpha` pseudo-rows for each of :math:`K` values give :math:`(n_{cv} + \alpha) / (n_c + \alpha K)`, the
most probable values under a Dirichlet prior of parameters :math:`1 + \alpha`.

**Why.** The log-likelihood is a sum over classes and columns of :math:`\sum_v n_{cv} \log p_v`; on the simplex
Lagrange's condition :math:`n_{cv} / p_v =` constant has the shares as its only solution.

**Held by** ``tests/theory/atlas/test_atlas_generative_and_discriminative.py``: ``test_naive_bayes_counts``,
``test_no_other_probabilities_make_the_rows_likelier``, ``test_an_unseen_value_is_impossible_without_smoothing``.

**Control** ``test_control_smoothing_the_numerator_only``: :math:`(n_{cv} + \alpha) / n_c` forgets the second half of
the pseudo-rows.
"""

import numpy as np

from certifit import CategoricalNB, load_penguins
from certifit.plots import plot_class_densities

birds = load_penguins().dropna()
X = birds[["island", "sex"]].apply(lambda column: column.astype("category").cat.codes)
for alpha in (0.0, 1.0):
    model = CategoricalNB(alpha=alpha).fit(X, birds["species"])
    print(f"alpha {alpha:.0f}: p(island | Chinstrap) = {np.exp(model.feature_log_prob_[0][1]).round(4)}")

# %%
# Chinstraps were seen on the second island only. Without pseudo-rows the first one elsewhere would have been
# impossible; with them it is improbable. Dots are probabilities, bars the shares of the birds.

plot_class_densities(model, X, birds["species"], "island")

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Pseudo-rows added above the fraction line only: the "probabilities" of a class sum to more than 1.

counts = np.exp(CategoricalNB(alpha=0.0).fit(X, birds["species"]).feature_log_prob_[0]) * model.class_count_[:, None]
print(f"sums {((counts + 1) / model.class_count_[:, None]).sum(axis=1).round(3)}")
