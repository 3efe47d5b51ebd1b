# Written by tools/stubs.py from certifit/registry.py.
from certifit.tree.decision_tree import DecisionTreeClassifier as DecisionTreeClassifier
from certifit.tree.decision_tree import DecisionTreeRegressor as DecisionTreeRegressor
