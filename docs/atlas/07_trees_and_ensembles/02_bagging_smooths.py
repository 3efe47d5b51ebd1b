r"""
Bagging smooths
===============

**Statement.** The squared error of a bag's mean answer :math:`\bar h` is the mean squared error of its :math:`M`
members less the variance of their answers, row by row: :math:`(\bar h - y)^2 = \frac1M \sum_m (h_m - y)^2 - \frac1M
\sum_m (h_m - \bar h)^2`. What a bag gains is what its members disagree by: much for trees, whose answers jump with
the sample, nothing to speak of for a stable learner such as ridge regression. Here the answers of a bag of trees vary
less than half as much from sample to sample as those of one tree.

**Why.** Expand the square around :math:`\bar h`; the mixed term has the mean zero (Jensen's inequality, with its
gap). The mean over samples drawn with replacement stands in for the mean over samples of the population.

**Held by** ``tests/theory/atlas/test_atlas_trees_and_ensembles.py``:
``test_a_bag_gains_what_its_members_disagree_by`` and ``test_bagging_lowers_the_variance_of_trees``.

**Control** ``test_control_the_median_is_no_mean``: the identity belongs to the mean; and
``test_control_bagging_a_stable_learner_gains_nothing``: lines in place of trees.
"""

from certifit import (
    AdaBoostClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    Ridge,
    bias_and_variance,
    load_penguins,
)
from certifit.plots import plot_boundaries

penguins = load_penguins().dropna()
bills, sex, mass = penguins[["bill_length_mm", "bill_depth_mm"]], penguins["sex"], penguins["body_mass_g"]
models = {
    "a tree": DecisionTreeClassifier(),
    "a bag of 40": RandomForestClassifier(40, max_features=None, random_state=0),  # every split sees all columns
    "a forest of 40": RandomForestClassifier(40, max_features=1, random_state=0),
    "40 boosted stumps": AdaBoostClassifier(n_estimators=40),
}
plot_boundaries({name: model.fit(bills, sex) for name, model in models.items()}, bills, sex)

# %%
# The tree gives single birds their own strips; the bag's boundary is smoother, because few trees share a strip, and
# so is the forest's. Boosted stumps add up steps of one column each. The variance of bag and tree from sample to
# sample, measured on birds that the samples left out (in g², predicting body mass):

bag = RandomForestRegressor(15, max_features=None, random_state=0)
for name, model in {"a tree": DecisionTreeRegressor(), "a bag of 15": bag}.items():
    print(f"{name}: variance {bias_and_variance(model, bills, mass, n_replicates=10).variance:.0f}")

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Members that hardly differ have nothing to average away: a line varies little, and a bag of lines no less.

for name, model in {"a line": Ridge(), "a bag of 8": BaggingRegressor(Ridge(), 8, random_state=0)}.items():
    print(f"{name}: variance {bias_and_variance(model, bills, mass, n_replicates=10).variance:.0f}")
