r"""
The weak learner is boosting's dual constraint
==============================================

**Statement.** Let :math:`A_{ih} = y_i h(x_i)`. The largest least margin of any mixture of finitely many learners is
the smallest, over distributions :math:`d` of the rows, of the largest edge: :math:`\max_{a} \min_i \sum_h a_h A_{ih}
= \min_{d} \max_h \sum_i d_i A_{ih}`. Rows can be told apart with the margin :math:`\rho` exactly if for all weights
some learner has an edge of at least :math:`\rho`: the weak learner is the dual's constraint.

**Why.** Both are linear programs, each the other's dual (von Neumann's minimax theorem): :math:`d` are the prices of
the rows, and learners that the mixture uses have the largest edge exactly.

**Held by** ``tests/theory/atlas/test_atlas_trees_and_ensembles.py``:
``test_the_largest_margin_is_the_smallest_edge``.

**Control** ``test_control_equal_weights_have_a_larger_edge`` and ``test_control_adaboost_has_a_smaller_margin``: a
distribution and a mixture that are not the best; the two sides then differ.
"""

from sklearn.datasets import load_wine

from certifit import AdaBoostClassifier
from certifit.plots import plot_margins

X, y = load_wine(return_X_y=True)
y = y == 1
best = AdaBoostClassifier(n_estimators=10, corrective="lpboost", nu=1 / len(y)).fit(X, y)
facts = best.certificate_.facts
print(f"least margin {facts['least margin']:.9f}, largest edge {facts['largest edge']:.9f}")

# %%
# The margin is that of the stumps' mixture on its worst row, the edge that of the best of all stumps under the
# distribution of the rows: computed apart, they are one number.

adaboost = AdaBoostClassifier(n_estimators=40).fit(X, y)
plot_margins({"AdaBoost": adaboost, "largest least margin": best}, X, y)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Under equal weights the best stump has a much larger edge: that proves only a weak bound of all margins.

edge = 1 - 2 * AdaBoostClassifier(n_estimators=1).fit(X, y).estimator_errors_[0]
print(f"edge of a stump under equal weights {edge:.3f}, no margin is above {facts['largest edge']:.3f}")
