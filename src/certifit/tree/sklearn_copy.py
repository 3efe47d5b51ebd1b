"""Fitted trees as scikit-learn's own estimators, for tools that take no others: SHAP, its pictures, converters.

scikit-learn rounds every value to float32 before it asks x <= threshold, so that a row whose value is that near to a
threshold may go the other way in the copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import tree as sklearn_trees
from sklearn.base import is_classifier

from certifit.exceptions import DataError
from certifit.tree.fitted_tree import Tree

BY_NODE = ("feature", "threshold", "impurity", "n_node_samples", "weighted_n_node_samples", "missing_go_to_left")


def sklearn_tree(model: Any, tree: Tree) -> Any:
    """A scikit-learn decision tree that has the nodes of `tree`, and the classes and settings of `model`."""
    theirs = sklearn_trees.DecisionTreeClassifier if is_classifier(model) else sklearn_trees.DecisionTreeRegressor
    copy = with_known_settings(theirs(), model)
    copy.tree_ = _nodes(tree)
    copy.n_outputs_ = tree.n_outputs
    copy.n_classes_ = tree.n_classes if tree.n_outputs > 1 else int(tree.n_classes[0])
    copy.max_features_ = getattr(model, "max_features_", tree.n_features)
    return copy


def with_known_settings(copy: Any, model: Any) -> Any:
    """Give a scikit-learn estimator the settings, the classes and the columns of ours, as far as it knows them."""
    known, given = copy.get_params(), model.get_params()
    copy.set_params(**{name: value for name, value in given.items() if name in known})
    for name in ("classes_", "n_classes_", "n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(copy, name, getattr(model, name))
    return copy


def _nodes(tree: Tree) -> Any:
    """The nodes in scikit-learn's type, which is that of the nodes of any tree that it fits."""
    if len(tree.category_first):
        raise DataError(
            got="a tree that asks for sets of categories", wanted="questions x <= threshold",
            fix="scikit-learn's trees know no categories: encode them as numbers, for instance by OneHotEncoder.",
        )  # fmt: skip
    any_tree = sklearn_trees.DecisionTreeRegressor().fit(np.zeros((1, tree.n_features)), [0.0]).tree_
    state = any_tree.__getstate__()
    nodes = np.zeros(tree.node_count, state["nodes"].dtype)
    nodes["left_child"], nodes["right_child"] = tree.children_left, tree.children_right
    for name in BY_NODE:
        nodes[name] = getattr(tree, name)
    found = type(any_tree)(tree.n_features, tree.n_classes.astype(np.intp), tree.n_outputs)
    values = np.ascontiguousarray(tree.value, np.float64)
    found.__setstate__(
        {**state, "max_depth": tree.max_depth, "node_count": tree.node_count, "nodes": nodes, "values": values}
    )
    return found
