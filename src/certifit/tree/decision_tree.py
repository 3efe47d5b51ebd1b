"""Decision trees with exact splits, certified.

A tree splits its rows by questions x_j <= t until nothing is left to ask: at every node the question is the one that
lowers the weighted impurity of the two sides most, over all columns and all thresholds between neighbouring values.
Values are compared in float64 and the sums that splits are scored by are whole numbers, so that neighbouring doubles
are told apart, offsets of any size do no harm, and of equal splits the first is taken: lowest column, then lowest
threshold. Reference: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.auditing import AuditTuning
from certifit.checkers.plain.blocks import dense
from certifit.checkers.tree.adapter import certify_tree, growth_claim, node_claims, share_of_rows
from certifit.checkers.tree.plain_tree import plain_tree
from certifit.core import Attributes, Estimator, Objective, Setting
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, apply_class_weight, encode_labels
from certifit.tree.exact.criteria import AmountCriterion, ClassCriterion, Criterion, NodeMeasures
from certifit.tree.exact.growth import TreeGrower, sorted_table
from certifit.tree.exact.growth_loops import GrowthRules, NodeTable
from certifit.tree.exact.split_loops import SortedTable, SplitRules
from certifit.tree.fitted_tree import Tree
from certifit.tree.pruning import pruned, pruning_path


def _is_share(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and 0 < float(value) <= 1


class DecisionTree(Estimator):
    """What trees of classes and of amounts share: growing, pruning, and where rows go."""

    sparse = True
    missing = True
    settings: ClassVar[Settings] = {
        "splitter": Setting(choices=("best", "random")),
        "max_depth": Setting(int, least=1, none=True),
        "min_samples_split": Setting(int, least=2, other=_is_share, other_words="a share of the rows up to 1.0"),
        "min_samples_leaf": Setting(int, least=1, other=_is_share, other_words="a share of the rows up to 1.0"),
        "min_weight_fraction_leaf": Setting(float, least=0, most=0.5),
        "max_features": Setting(
            int, least=1, choices=("sqrt", "log2"), none=True, other=_is_share,
            other_words="a share of the columns up to 1.0",
        ),
        "max_leaf_nodes": Setting(int, least=2, none=True),
        "min_impurity_decrease": Setting(float, least=0, below=math.inf),
        "ccp_alpha": Setting(float, least=0, below=math.inf),
    }  # fmt: skip

    differences: ClassVar[dict[str, str]] = {
        "fit(check_input)": "Every table is checked, which takes one look at each entry.",
        "criterion": "'absolute_error' is not there.",
        "n_outputs_": "One target only.",
    }

    tree_: Tree
    max_features_: int

    def _criterion(self, attributes: Attributes) -> Criterion:
        """How nodes are scored, given the fitted attributes that do not depend on the tree."""
        raise NotImplementedError

    # Growing --------------------------------------------------------------------------------------------------

    def _grow(self, rows: Rows, attributes: Attributes) -> Attributes:
        """All fitted attributes, from rows whose y are class numbers or amounts."""
        data = rows.load()
        kept = data.w > 0
        X = dense(data.X[kept])
        columns = _columns_to_try(self.max_features, rows.n_features)
        tree = self._grown(X, np.asarray(data.y)[kept], data.w[kept], columns, self._criterion(attributes))
        if self.ccp_alpha > 0:
            tree = pruned(tree, float(self.ccp_alpha))
        found = {**attributes, "tree_": tree, "max_features_": columns}
        claim = growth_claim(Bunch(**self.get_params(), **found), rows)
        certificate = certify_tree(
            plain_tree(tree, rows.n_features), node_claims(tree), claim, rows, AuditTuning().foreign
        )
        return {**found, "certificate_": certificate}

    def _grown(self, X: Array, y: Array, w: Array, columns: int, criterion: Criterion) -> Tree:
        sums, n, total = criterion.sums(y, w), len(y), float(w.sum())
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rules = SplitRules(
            criterion.score, sums.channels, share_of_rows(self.min_samples_leaf, n),
            float(self.min_weight_fraction_leaf) * total / sums.weight_unit,
            columns, self.splitter == "random", seed,
        )  # fmt: skip
        depth = np.iinfo(np.int64).max if self.max_depth is None else int(self.max_depth)
        least = float(self.min_impurity_decrease) * total * criterion.score_unit(sums)
        # A split may lower the impurity by nothing, as the first of an exclusive or: rounding must not forbid it.
        growth = GrowthRules(depth, share_of_rows(self.min_samples_split, n), least if least > 0 else -np.inf)
        table = sorted_table(X, sums, _directions(self.monotonic_cst, X.shape[1]))
        nodes = TreeGrower(table, np.asarray(y, np.float64)[:, None], rules, growth).grow(self.max_leaf_nodes)
        return _as_tree(nodes, criterion.measured(nodes, y, w, _leaves(nodes, table, len(y))), X.shape[1])

    # What a fitted tree says --------------------------------------------------------------------------------

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

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """The values of `ccp_alpha` at which the fully grown tree loses a branch, and the impurities then left."""
        whole = type(self)(**{**self.get_params(), "ccp_alpha": 0.0}).fit(X, y, sample_weight)
        path = pruning_path(whole.tree_)
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _leaves(nodes: NodeTable, table: SortedTable, n: int) -> Array:
    """The leaf of each row: leaves are runs of the first column's entries."""
    leaves = np.flatnonzero(nodes.left < 0)
    leaves = leaves[np.argsort(nodes.start[leaves], kind="stable")]
    at = np.empty(n, np.int64)
    at[table.entries[0] & 0xFFFFFFFF] = np.repeat(leaves, (nodes.end - nodes.start)[leaves])
    return at


def _as_tree(nodes: NodeTable, found: NodeMeasures, d: int) -> Tree:
    """The nodes with scikit-learn's names."""
    leaf = nodes.left < 0
    return Tree(
        nodes.left, nodes.right, np.where(leaf, -2, nodes.column), np.where(leaf, -2.0, nodes.threshold),
        _missing_sides(nodes), found.impurity, nodes.end - nodes.start, found.weight, found.value[:, None], d,
        np.array([found.value.shape[1]]),
    )  # fmt: skip


def _columns_to_try(asked: Any, d: int) -> int:
    """How many columns each split looks at."""
    if asked is None:
        return d
    if isinstance(asked, str):
        return max(1, int(math.sqrt(d) if asked == "sqrt" else math.log2(d)))
    return min(d, int(asked)) if isinstance(asked, (int, np.integer)) else max(1, int(asked * d))


def _directions(monotonic_cst: Any, d: int) -> Array:
    if monotonic_cst is None:
        return np.zeros(d, np.int8)
    found = np.asarray(monotonic_cst)
    if found.shape != (d,) or not np.isin(found, (-1, 0, 1)).all():
        raise DataError(
            got=f"monotonic_cst={monotonic_cst!r}", wanted=f"-1, 0 or 1 for each of the {d} columns",
            fix="1: predictions rise with the column, -1: they fall, 0: anything.",
        )  # fmt: skip
    return found.astype(np.int8)


def _missing_sides(nodes: NodeTable) -> Array:
    """Where missing values go: as was best, or, where the fit met none, to the side with more rows."""
    leaf = nodes.left < 0
    counts = nodes.end - nodes.start
    larger = counts[np.where(leaf, 0, nodes.left)] > counts[np.where(leaf, 0, nodes.right)]
    return np.where(leaf, False, np.where(nodes.met_missing, nodes.missing_left, larger)).astype(np.uint8)


class DecisionTreeClassifier(ClassifierMixin, DecisionTree):
    """A decision tree for classes.

    Parameters
    ----------
    criterion : 'gini', 'entropy' or 'log_loss'
        Impurity of a node: 1 - Σ p², or the entropy of its class shares p ('log_loss' is another name for it).
    splitter : 'best' or 'random'
        'random' draws one threshold for each column between its extremes in the node, and takes the best of these.
    max_depth : int or None
    min_samples_split, min_samples_leaf : int, or float for a share of the rows
        Fewest rows of a node that is split, and of a leaf.
    min_weight_fraction_leaf : float
        Least weight of a leaf, as a share of all.
    max_features : int, float for a share, 'sqrt', 'log2' or None
        How many columns that vary in a node are looked at, drawn anew for each; None: all.
    random_state : int, RandomState or None
    max_leaf_nodes : int or None
        With a number, the leaf that gains most is split next, until there are so many.
    min_impurity_decrease : float
        Least fall of the impurity, times the node's share of all weight.
    class_weight : dict, 'balanced' or None
    ccp_alpha : float
        Cost-complexity pruning: branches that save less impurity than this for each of their leaves are cut.
    monotonic_cst : array (d,) of -1, 0, 1, or None
        1: the probability of the second of two classes rises with the column; -1: it falls.

    Attributes
    ----------
    tree_ : Tree, with scikit-learn's arrays
    classes_ : (k,)
    n_classes_ : int
    n_outputs_ : 1
    max_features_ : int, the columns that each split looked at
    feature_importances_ : (d,) shares of the fall of impurity (computed when asked for)
    certificate_ : Certificate

    Missing values (NaN) go to the side that lowers the impurity more.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> model.tree_.feature[:2], model.tree_.threshold[:1].round(2)
    (array([ 2, -2]), array([2.45]))
    >>> model.certificate_.kind, model.certificate_.holds
    ('greedy', True)
    """

    target = "classes"
    settings: ClassVar[Settings] = {
        **DecisionTree.settings,
        "criterion": Setting(choices=("gini", "entropy", "log_loss")),
    }

    classes_: Array

    def __init__(
        self, *, criterion="gini", splitter="best", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features=None, random_state=None, max_leaf_nodes=None,
        min_impurity_decrease=0.0, class_weight=None, ccp_alpha=0.0, monotonic_cst=None,
    ):  # fmt: skip
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows, fewest=1)
        if self.monotonic_cst is not None and len(labels.classes) > 2:
            raise DataError(
                got=f"monotonic_cst with {len(labels.classes)} classes", wanted="two classes",
                fix="Fit one tree for each class against the others.",
            )  # fmt: skip
        return self._grow(apply_class_weight(labels, self.class_weight), {"classes_": labels.classes})

    def _criterion(self, attributes: Attributes) -> ClassCriterion:
        return ClassCriterion(self.criterion, len(attributes["classes_"]))

    @property
    def n_classes_(self) -> int:
        check_is_fitted(self)
        return len(self.classes_)

    n_outputs_ = 1

    def _shares(self, block: Block) -> Array:
        return self.tree_.value[self.tree_.apply_block(block), 0]

    def predict_proba(self, X: Any, check_input: bool = True) -> Array:
        """The share of each class in the leaf that a row reaches (n, k)."""
        return self._rows(X).map(self._shares)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`; -inf where a leaf has no row of a class."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any, check_input: bool = True) -> Array:
        """The most frequent class of the leaf that a row reaches (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The impurity of the leaves on these rows, times their shares of the weight."""
        rows = self._rows(X, y, sample_weight, "classes")
        weighted = apply_class_weight(encode_labels(rows, self.classes_), self.class_weight)
        k, m = len(self.classes_), self.tree_.node_count
        found = weighted.sum(partial(_class_table, self.tree_, k)).reshape(m, k)
        weight = found.sum(axis=1)
        share = found / np.where(weight > 0, weight, 1.0)[:, None]
        impurity = ClassCriterion(self.criterion, k).of_shares(share)
        total = float(weight @ impurity / weight.sum())
        return Objective(total, total, 0.0)


def _class_table(tree: Tree, k: int, block: Block) -> Array:
    """The weight of each class in each leaf, flat."""
    return np.bincount(tree.apply_block(block) * k + np.asarray(block.y), block.w, tree.node_count * k)


class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    """A decision tree for amounts.

    Parameters
    ----------
    criterion : 'squared_error', 'friedman_mse' or 'poisson'
        Impurity of a node: the variance of its targets ('friedman_mse' chooses the same splits, and is another name),
        or half their Poisson deviance from the mean.
    splitter, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf : as in DecisionTreeClassifier
    max_features, random_state, max_leaf_nodes, min_impurity_decrease, ccp_alpha : as in DecisionTreeClassifier
    monotonic_cst : array (d,) of -1, 0, 1, or None
        1: predictions rise with the column; -1: they fall.

    Attributes
    ----------
    tree_ : Tree, with scikit-learn's arrays
    n_outputs_ : 1
    max_features_ : int, the columns that each split looked at
    feature_importances_ : (d,) shares of the fall of impurity (computed when asked for)
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeRegressor
    >>> X, y = np.arange(6.0)[:, None], 1e9 + np.array([0, 0, 0, 1, 1, 1])
    >>> DecisionTreeRegressor().fit(X, y).predict([[2.4], [2.6]]) - 1e9
    array([0., 1.])
    """

    target = "numbers"
    settings: ClassVar[Settings] = {
        **DecisionTree.settings,
        "criterion": Setting(choices=("squared_error", "friedman_mse", "poisson")),
    }

    def __init__(
        self, *, criterion="squared_error", splitter="best", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features=None, random_state=None, max_leaf_nodes=None,
        min_impurity_decrease=0.0, ccp_alpha=0.0, monotonic_cst=None,
    ):  # fmt: skip
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst

    n_outputs_ = 1

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        if self.criterion == "poisson":
            y = np.concatenate(rows.each(_counted_targets))
            if not (len(y) and y.min() >= 0 and y.sum() > 0):
                raise DataError(
                    got=f"targets from {y.min():g} to {y.max():g}",
                    wanted="counts of at least 0, some of them above, for criterion='poisson'",
                )
        return self._grow(rows, {})

    def _criterion(self, attributes: Attributes) -> AmountCriterion:
        return AmountCriterion(self.criterion)

    def _means(self, block: Block) -> Array:
        return self.tree_.value[self.tree_.apply_block(block), 0, 0]

    def predict(self, X: Any, check_input: bool = True) -> Array:
        """The mean of the leaf that a row reaches (n,)."""
        return self._rows(X).map(self._means)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean squared error on these rows; half the mean Poisson deviance with criterion='poisson'."""
        rows = self._rows(X, y, sample_weight, "numbers")
        weight, loss = rows.sum(self._losses)
        return Objective(float(loss / weight), float(loss / weight), 0.0)

    def _losses(self, block: Block) -> Array:
        y, mean = np.asarray(block.y), self._means(block)
        if self.criterion == "poisson":
            loss = xlogy(y, y / np.where(mean > 0, mean, 1.0)) - y + mean
        else:
            loss = (y - mean) ** 2
        return np.array([block.w.sum(), block.w @ loss])


def _counted_targets(block: Block) -> Array:
    return np.asarray(block.y)[block.w > 0]
