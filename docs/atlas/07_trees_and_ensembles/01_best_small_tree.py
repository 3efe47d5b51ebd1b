r"""
The best small tree from sums
=============================

**Statement.** The greedy tree, whose every question is the best for its own rows, may misclassify more rows than the
best tree of the same depth. The number that a tree misclassifies depends on the rows only through the counts of each
class in its leaves, and so the best tree of a small depth is found, and proved best, from such sums.

**Why.** With the first question fixed, the two sides are separate problems; each is solved by one running count of
the classes along every sorted column. All trees of depth two are compared in as many steps as there are pairs of
questions.

**Held by** ``tests/theory/atlas/test_atlas_trees_and_ensembles.py``: ``test_no_tree_of_depth_two_is_better``.

**Control** ``test_control_the_greedy_tree_is_not_the_best``: questions that are best one by one.
"""

from sklearn.datasets import load_wine

from certifit import DecisionTreeClassifier, OptimalTreeClassifier, plot_tree

wine = load_wine()
best = OptimalTreeClassifier(max_depth=2).fit(wine.data, wine.target)
print(best.certificate_)

# %%
# No tree of depth two has fewer mistakes, whatever its columns and thresholds: the lower bound is the objective.

plot_tree(best, feature_names=wine.feature_names, class_names=wine.target_names)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The greedy tree of the same depth takes the purest first question, and pays for it below.

greedy = DecisionTreeClassifier(max_depth=2).fit(wine.data, wine.target)
for name, tree in (("greedy", greedy), ("best", best)):
    print(f"{name}: {(tree.predict(wine.data) != wine.target).sum()} of {len(wine.target)} wrong")
