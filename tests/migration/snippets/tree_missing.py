"""Missing entries in a tree and a forest."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

X = np.array([0, 1, 6, np.nan, 7, np.nan, 2, 8]).reshape(-1, 1)
y = np.array([0, 0, 1, 1, 1, 1, 0, 1])
tree = DecisionTreeClassifier(random_state=0).fit(X, y)
forest = RandomForestClassifier(n_estimators=50, random_state=0).fit(X, y)
result = {"tree": tree.predict(X), "forest": forest.predict(X)}
