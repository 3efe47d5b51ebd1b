"""The arrays of a fitted tree, walked by hand."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

X, y = load_iris(return_X_y=True)
model = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
tree = model.tree_
leaf = tree.children_left == tree.children_right
depth, stack = {}, [(0, 0)]
while stack:
    node, level = stack.pop()
    depth[node] = level
    if not leaf[node]:
        stack += [(tree.children_left[node], level + 1), (tree.children_right[node], level + 1)]
indicator = model.decision_path(X[:5])
result = {
    "nodes": tree.node_count,
    "leaves": leaf.sum(),
    "impurity": np.sort(tree.impurity),
    "rows": np.sort(tree.n_node_samples),
    "depth": max(depth.values()),
    "path": indicator.toarray().sum(axis=1),
    "apply": np.bincount(model.apply(X))[leaf.nonzero()[0]],
}
