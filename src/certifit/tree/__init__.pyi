# Written by tools/stubs.py from certifit/registry.py.
from certifit.tree.decision_tree import DecisionTreeClassifier as DecisionTreeClassifier
from certifit.tree.decision_tree import DecisionTreeRegressor as DecisionTreeRegressor
from certifit.tree.optimal.optimal_tree import OptimalTreeClassifier as OptimalTreeClassifier
from certifit.tree.optimal.optimal_tree import OptimalTreeRegressor as OptimalTreeRegressor
from certifit.tree.export import export_graphviz as export_graphviz
from certifit.tree.export import export_text as export_text
from certifit.tree.plots import plot_tree as plot_tree
