r"""
Bagging smooths
===============

**Statement.** The squared error of a bag's mean answer is the mean squared error of its members less the variance of
their answers, row by row: :math:`(\bar h - y)^2 = \overline{(h_m - y)^2} - \overline{(h_m - \bar h)^2}`. What a bag
gains is what its members disagree by: much for trees, whose answers jump with the sample, nothing to speak of for a
stable learner such as ridge regression.

**Why.** Expand the square around :math:`\bar h`; the mixed term has the mean zero (Jensen's inequality, with its
gap). The mean over samples drawn with replacement stands in for the mean over samples of the population.

**Held by** ``tests/theory/atlas/test_atlas_trees_and_ensembles.py``:
``test_a_bag_gains_what_its_members_disagree_by`` and ``test_bagging_lowers_the_variance_of_trees``.

**Control** ``test_control_bagging_a_stable_learner_gains_nothing``: lines in place of trees.
"""

from certifit import BaggingRegressor, DecisionTreeClassifier, RandomForestClassifier, Ridge, load_penguins
from certifit.plots import plot_boundaries

penguins = load_penguins().dropna()
bills, sex = penguins[["bill_length_mm", "bill_depth_mm"]], penguins["sex"]
bag = RandomForestClassifier(40, max_features=None, random_state=0)  # all columns for every split: a bag of trees
models = {"a tree": DecisionTreeClassifier().fit(bills, sex), "a bag of 40": bag.fit(bills, sex)}
plot_boundaries(models, bills, sex)

# %%
# The tree gives single birds their own strips; the bag's boundary is smoother, because few trees share a strip.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Members that hardly differ have nothing to average away: the bag of lines is one line.

mass = penguins["body_mass_g"]
lines = BaggingRegressor(Ridge(), 10, random_state=0).fit(bills, mass)
apart = (lines.predict(bills) - Ridge().fit(bills, mass).predict(bills)).std()
print(f"bagged lines differ from one line by {apart:.0f} g, on masses that differ by {mass.std():.0f} g")
