"""What every estimator with one fitted tree shares: where rows go, and how large the tree is."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from certifit.core import Estimator
from certifit.rows import Array
from certifit.tree.fitted_tree import Tree
from certifit.tree.sklearn_copy import sklearn_tree


class TreeModel(Estimator):
    """An estimator whose fit is one tree."""

    sparse = True
    missing = True

    tree_: Tree

    def apply(self, X: Any, check_input: bool = True) -> Array:
        """The number of the leaf that each row reaches (n,)."""
        return self._rows(X).map(self.tree_.apply_block)

    def decision_path(self, X: Any, check_input: bool = True) -> Any:
        """Which nodes each row passes, a sparse matrix (n, nodes)."""
        return self.tree_.decision_path(self._rows(X).load().X)

    def get_depth(self) -> int:
        """The depth of the deepest leaf; that of the root is 0."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> Array:
        """How much the splits on each column lower the impurity, as shares of 1 (d,)."""
        check_is_fitted(self)
        return self.tree_.compute_feature_importances()

    def to_sklearn(self) -> Any:
        """A scikit-learn decision tree with the same nodes, for tools that take no other: SHAP, its `export_text`."""
        check_is_fitted(self)
        return sklearn_tree(self, self.tree_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
