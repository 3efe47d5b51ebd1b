"""Decision trees with exact splits, certified.

A tree splits its rows by questions x_j <= t until nothing is left to ask: at every node the question is the one that
lowers the weighted impurity of the two sides most, over all columns and all thresholds between neighbouring values.
Values are compared in float64 and the sums that splits are scored by are whole numbers, so that neighbouring doubles
are told apart, offsets of any size do no harm, and of equal splits the first is taken: lowest column, then lowest
threshold. Reference: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import xlogy
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.fitted import AuditTuning
from certifit.checkers.plain.blocks import dense
from certifit.checkers.tree.adapter import certify_tree, growth_claim, node_claims, share_of_rows, tree_targets
from certifit.checkers.tree.categories import Labels, categorical_columns, encode_labels_of, learn_labels
from certifit.checkers.tree.greedy import quick
from certifit.checkers.tree.plain_tree import plain_tree
from certifit.core import Attributes, Certificate, Objective, Setting, certified
from certifit.core.estimator import with_callbacks
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.rows import (
    Array,
    Block,
    Rows,
    apply_class_weight,
    apply_class_weights,
    encode_label_columns,
    encode_labels,
)
from certifit.rows.checks import Target
from certifit.rows.named_columns import is_pandas
from certifit.tree.binned.seeded.grow_trees import (
    coded_table,
    grow_trees,
    growth_plan,
    monotone_directions,
    table_borders,
    target_count,
)
from certifit.tree.exact.category_loops import CategoryOrders
from certifit.tree.exact.criteria import AmountCriterion, ClassCriterion, Criterion
from certifit.tree.exact.entries import SortedTable, SplitRules
from certifit.tree.exact.grown_tree import as_tree, leaves_of_table, number_of_columns
from certifit.tree.exact.growth import TreeGrower, sorted_table
from certifit.tree.exact.growth_loops import GrowthRules, NodeTable
from certifit.tree.fitted_tree import Tree
from certifit.tree.lookahead import LookaheadGrower, LookaheadRows
from certifit.tree.pruning import pruned, pruning_path
from certifit.tree.tree_model import TreeModel


def _is_share(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and 0 < float(value) <= 1


def _is_class_weight(value: Any) -> bool:
    several = isinstance(value, (list, tuple)) and len(value) > 0
    return all(isinstance(one, dict) for one in value) if several else isinstance(value, dict)


# Several targets have a mapping each.
CLASS_WEIGHT = Setting(
    choices=("balanced",), none=True, other=_is_class_weight, other_words="a mapping, or a list of these"
)


class DecisionTree(TreeModel):
    """What trees of classes and of amounts share: growing, pruning, and where rows go."""

    settings: ClassVar[Settings] = {
        "splitter": Setting(choices=("best", "random")),
        "max_depth": Setting(int, least=1, none=True),
        "min_samples_split": Setting(
            int, least=2, other=_is_share, other_words="a share of the rows up to 1.0",
            fix="'min_samples_split' must be an int in the range [2, inf) or a float in the range (0.0, 1.0].",
        ),
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

    max_features_: int
    category_labels_: Labels

    def _criterion(self, attributes: Attributes, targets: int) -> Criterion:
        """How nodes are scored, given the fitted attributes that do not depend on the tree."""
        raise NotImplementedError

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets (n,) or, for several targets at once, (n, t); or the names of these columns in X
        sample_weight : array of non-negative row weights, or the name of a column in X
        check_input : accepted as by scikit-learn; every table is checked, which takes one look at each entry

        Returns
        -------
        self : the fitted tree; `certificate_` says what is proved about it
        """
        y, targets = tree_targets(X, y, self.target)
        beside = (*(y if isinstance(y, (list, tuple)) and targets > 1 else [y]), sample_weight)
        labels = learn_labels(X, self.categorical_features, beside)
        mask = None
        if isinstance(self.categorical_features, str) and is_pandas(X):
            features = [name for name in X.columns if name not in [b for b in beside if isinstance(b, str)]]
            mask = categorical_columns(self.categorical_features, np.array(features, object), len(features), X)
        X = encode_labels_of(X, labels)
        return self._fit_rows(X, y, sample_weight, targets=targets, labels=labels, by_type=mask)

    # Growing --------------------------------------------------------------------------------------------------

    def _grow(self, rows: Rows, attributes: Attributes, by_type: Array | None) -> Attributes:
        """All fitted attributes, from rows whose y are class numbers or amounts."""
        columns = number_of_columns(self.max_features, rows.n_features)
        categories = categorical_columns(self.categorical_features, rows.names, rows.n_features)
        categories = categories if by_type is None else by_type
        found = {**attributes, "max_features_": columns}
        if self.max_bins is not None:
            tree, found["borders_"] = self._grown_from_codes(rows, attributes, bool(categories.any()))
        else:
            rows = data = rows.load()
            kept = data.w > 0
            X = dense(data.X[kept])
            y = np.asarray(data.y)[kept].reshape(len(X), -1)
            tree = self._grown(X, y, data.w[kept], self._criterion(attributes, y.shape[1]), categories)
        if self.ccp_alpha > 0:
            tree = pruned(tree, float(self.ccp_alpha))
        found["tree_"] = tree
        return {**found, "certificate_": certified(self._certificate, found, rows)}

    def _certificate(self, found: Attributes, rows: Rows) -> Certificate:
        tree = found["tree_"]
        claim = growth_claim(Bunch(**self.get_params(), **found), rows)
        nodes, tol = plain_tree(tree, rows.n_features), AuditTuning().foreign
        return certify_tree(nodes, node_claims(tree), claim, rows, tol, quick())

    def _grown_from_codes(
        self, rows: Rows, attributes: Attributes, categories: bool
    ) -> tuple[Tree, tuple[Array, ...]]:
        """The tree whose thresholds are borders of bins, and these borders; rows are read from any source."""
        odd = {
            "lookahead=2": self.lookahead == 2,
            f"criterion={self.criterion!r}": self.criterion == "absolute_error",
            "categorical_features": categories,
        }
        self._refuse(f"max_bins={self.max_bins}", odd, "numbers, and splits by sums over their rows")
        table, w = coded_table(rows, self.monotonic_cst, int(self.max_bins))
        criterion = self._criterion(attributes, len(table.y))
        classes = criterion.classes if isinstance(criterion, ClassCriterion) else ()
        plan = growth_plan(self, table, classes, int((w > 0).sum()), self.splitter == "random")
        seed = check_random_state(self.random_state).randint(2**31 - 1, size=1)
        return grow_trees(plan, lambda _: w, seed)[0], table_borders(table)

    def _grown(self, X: Array, y: Array, w: Array, criterion: Criterion, categories: Array) -> Tree:
        (sums, medians), n, total = criterion.sums(y, w), len(y), float(w.sum())
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rules = SplitRules(
            criterion.score, sums.channels, share_of_rows(self.min_samples_leaf, n),
            float(self.min_weight_fraction_leaf) * total / sums.weight_unit,
            number_of_columns(self.max_features, X.shape[1]), self.splitter == "random", seed,
        )  # fmt: skip
        depth = np.iinfo(np.int64).max if self.max_depth is None else int(self.max_depth)
        least = float(self.min_impurity_decrease) * total * criterion.score_unit(sums)
        # A split may lower the impurity by nothing, as the first of an exclusive or: rounding must not forbid it.
        growth = GrowthRules(depth, share_of_rows(self.min_samples_split, n), least if least > 0 else -np.inf)
        directions = monotone_directions(self.monotonic_cst, X.shape[1], y.shape[1])
        if (directions[categories] != 0).any():
            raise DataError(got="monotonic_cst on a column of categories", wanted="0 for columns of categories")
        table = sorted_table(X, sums, directions)
        orders = CategoryOrders(categories, criterion.category_channels) if categories.any() else None
        parts = (table, np.asarray(y, np.float64), rules, growth, medians, orders)
        if self.lookahead == 2:
            source = LookaheadRows(X, y[:, 0], w, criterion.name, _class_count(criterion), criterion.score_unit(sums))
            odd = {
                "splitter='random'": self.splitter == "random",
                f"criterion={self.criterion!r}": self.criterion in ("absolute_error", "poisson"),
                "categorical_features": bool(categories.any()),
                "monotonic_cst": self.monotonic_cst is not None,
                f"{y.shape[1]} targets": y.shape[1] > 1,
            }
            known = "one target, numbers without directions, best splits by gini, entropy or squared error"
            self._refuse("lookahead=2", odd, known)
            nodes = LookaheadGrower(source, *parts).grow(self.max_leaf_nodes)
        else:
            nodes = TreeGrower(*parts).grow(self.max_leaf_nodes)
        tree = as_tree(
            nodes, criterion.measured(nodes, y, w, leaves_of_table(nodes, table, len(y))), X.shape[1], criterion
        )
        return tree if orders is None else with_category_sets(tree, nodes, table, categories)

    def _refuse(self, asked: str, odd: dict[str, bool], wanted: str) -> None:
        """Refuse settings, by their words, that a way to grow does not know."""
        met = [words for words, wrong in odd.items() if wrong]
        if met:
            raise DataError(
                got=f"{asked} with {', '.join(met)}", wanted=wanted, fix=f"Without {asked}, trees take all of these."
            )

    # What a fitted tree says --------------------------------------------------------------------------------

    def _rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, target: Target = "none", targets: int = 1
    ) -> Rows:
        check_is_fitted(self)
        return super()._rows(
            encode_labels_of(X, getattr(self, "category_labels_", {})), y, sample_weight, target, targets
        )

    @property
    def n_outputs_(self) -> int:
        """The number of targets."""
        check_is_fitted(self)
        return self.tree_.n_outputs

    @property
    def is_categorical_(self) -> Array | None:
        """Which columns hold categories (d,); None where there are none."""
        check_is_fitted(self)
        return np.diff(self.tree_.category_first) > 0 if len(self.tree_.category_first) else None

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """The values of `ccp_alpha` at which the fully grown tree loses a branch, and the impurities then left."""
        whole = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        path = pruning_path(whole.tree_)
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _class_count(criterion: Criterion) -> int:
    """The number of classes of the first target; 0 for amounts."""
    return criterion.classes[0] if isinstance(criterion, ClassCriterion) else 0


def _labelled(labels: Labels | None) -> Attributes:
    """The labels of categories as a fitted attribute, where there are any."""
    return {"category_labels_": labels} if labels else {}


def with_category_sets(tree: Tree, nodes: NodeTable, table: SortedTable, categories: Array) -> Tree:
    """The same tree, with the sets of categories that its splits send left; those a node lacks go as missing ones."""
    sizes = np.where(categories, np.diff(table.first), 0)
    first = np.append(0, np.cumsum(sizes))
    known = [table.values[table.first[j] : table.first[j + 1]] for j in np.flatnonzero(categories)]
    asks = np.flatnonzero((nodes.left >= 0) & categories[nodes.column])
    chosen = np.full(len(nodes.left), -1)
    chosen[asks] = np.arange(len(asks))
    sets = np.zeros((len(asks), int(sizes.max())), np.uint8)
    for s, k in enumerate(asks):
        j = nodes.column[k]
        sets[s, : sizes[j]] = tree.missing_go_to_left[k]
        for child, goes_left in ((nodes.left[k], 1), (nodes.right[k], 0)):
            ranks = table.entries[j, nodes.start[child] : nodes.end[child]] >> 32
            sets[s, ranks[ranks < sizes[j]]] = goes_left
    threshold = np.where(chosen >= 0, np.nan, tree.threshold)
    return replace(
        tree, threshold=threshold, category_values=np.concatenate(known), category_first=first, category_set=chosen,
        category_left=sets,
    )  # fmt: skip


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
    categorical_features : numbers or names of columns, a mask (d,), 'from_dtype' or None
        Columns of categories, in numbers or, in a pandas frame, in words; 'from_dtype': a frame's columns of type
        category. A node sends a set of categories left: of two classes the best of all sets (along the order of the
        share of the second); of several classes or targets, the best along the orders of the shares of each class.
        Categories that the fit did not meet count as missing.
    lookahead : 1 or 2
        2: the question of a node is the first of the best tree of depth 2 on its rows, over at most 32 bins of each
        column, as long as that gains more than nothing and two levels are left.
    max_bins : int from 2 to 255, or None
        With a number, columns of more distinct values are cut into so many bins of about equal weight, and thresholds
        lie between bins: for tables of many rows, of which a byte a value is kept. None: all thresholds.

    Attributes
    ----------
    tree_ : Tree, with scikit-learn's arrays
    borders_ : tuple of arrays, the borders between the bins of each column; with max_bins
    classes_ : (k,), or a list of these for several targets
    n_classes_ : int, or an array (t,)
    n_outputs_ : int, the number of targets t
    is_categorical_ : (d,) bool, or None where no column holds categories
    category_labels_ : dict of the labels of columns of words; only where there are any
    max_features_ : int, the columns that each split looked at
    feature_importances_ : (d,) shares of the fall of impurity (computed when asked for)
    certificate_ : Certificate

    Missing values (NaN) go to the side that lowers the impurity more. The impurity of several targets, y (n, t), is
    the mean of theirs.

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
        "lookahead": Setting(int, least=1, most=2),
        "max_bins": Setting(int, least=2, most=255, none=True),
        "criterion": Setting(choices=("gini", "entropy", "log_loss")),
        "class_weight": CLASS_WEIGHT,
    }

    classes_: Array

    def __init__(
        self, *, criterion="gini", splitter="best", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features=None, random_state=None, max_leaf_nodes=None,
        min_impurity_decrease=0.0, class_weight=None, ccp_alpha=0.0, monotonic_cst=None,
        categorical_features=None, lookahead=1, max_bins=None,
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
        self.categorical_features = categorical_features
        self.lookahead = lookahead
        self.max_bins = max_bins

    def _fit(
        self, rows: Rows, previous: Attributes, labels: Labels | None = None, by_type: Array | None = None
    ) -> Attributes:
        coded, classes = self._coded(rows)
        kinds = [classes] if isinstance(classes, np.ndarray) else classes
        if self.monotonic_cst is not None and len(kinds) == 1 and len(kinds[0]) > 2:
            raise DataError(
                got=f"monotonic_cst with {len(kinds[0])} classes", wanted="two classes",
                fix="Monotonicity constraints are not supported with multiclass classification: "
                "fit one tree for each class against the others.",
            )  # fmt: skip
        return self._grow(coded, {"classes_": classes, **_labelled(labels)}, by_type)

    def _coded(self, rows: Rows, known: Any = None) -> tuple[Rows, Any]:
        """The rows with class numbers as y and class weights in their weights; and the classes of the targets."""
        if target_count(rows) == 1:
            one = encode_labels(rows, known, fewest=1)
            if isinstance(self.class_weight, (list, tuple)):
                raise DataError(
                    got="a list as class_weight for one target", wanted="a mapping, 'balanced' or None",
                    fix="The number of elements in class_weight should match number of outputs.",
                )  # fmt: skip
            return apply_class_weight(one, self.class_weight), one.classes
        several = encode_label_columns(rows, known)
        return apply_class_weights(several, self.class_weight), several.classes

    def _criterion(self, attributes: Attributes, targets: int) -> ClassCriterion:
        classes = attributes["classes_"]
        kinds = [classes] if isinstance(classes, np.ndarray) else classes
        return ClassCriterion(self.criterion, tuple(map(len, kinds)))

    @property
    def n_classes_(self) -> int | Array:
        check_is_fitted(self)
        return len(self.classes_) if isinstance(self.classes_, np.ndarray) else np.array([*map(len, self.classes_)])

    def _shares(self, block: Block) -> Array:
        return self.tree_.value[self.tree_.apply_block(block)]

    def predict_proba(self, X: Any, check_input: bool = True) -> Array | list[Array]:
        """The share of each class in the leaf that a row reaches (n, k); of several targets a list of these."""
        found = self._rows(X).map(self._shares)
        if self.n_outputs_ == 1:
            return found[:, 0]
        return [np.ascontiguousarray(found[:, t, :k]) for t, k in enumerate(self.tree_.n_classes)]

    def predict_log_proba(self, X: Any) -> Array | list[Array]:
        """The logarithms of `predict_proba`; -inf where a leaf has no row of a class."""
        found = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(one) for one in found] if isinstance(found, list) else np.log(found)

    def predict(self, X: Any, check_input: bool = True) -> Array:
        """The most frequent class of the leaf that a row reaches (n,); (n, t) for several targets."""
        at = self.apply(X)
        found = self.tree_.likeliest[at]
        if self.n_outputs_ == 1:
            return self.classes_[found[:, 0]]
        return np.stack([classes[best] for classes, best in zip(self.classes_, found.T, strict=True)], axis=1)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The impurity of the leaves on these rows, times their shares of the weight."""
        check_is_fitted(self)
        y, targets = tree_targets(X, y, "classes")
        rows, classes = self._coded(self._rows(X, y, sample_weight, "classes", targets), self.classes_)
        kinds = [classes] if isinstance(classes, np.ndarray) else classes
        total = 0.0
        for t, k in enumerate(map(len, kinds)):
            found = rows.sum(partial(_class_table, self.tree_, k, t)).reshape(self.tree_.node_count, k)
            weight = found.sum(axis=1)
            share = found / np.where(weight > 0, weight, 1.0)[:, None]
            impurity = ClassCriterion(self.criterion, (k,)).of_shares(share[:, None])
            total += float(weight @ impurity / weight.sum()) / len(kinds)
        return Objective(total, total, 0.0)


def _class_table(tree: Tree, k: int, target: int, block: Block) -> Array:
    """The weight of each class of a target in each leaf, flat."""
    y = np.asarray(block.y).reshape(len(block.w), -1)[:, target]
    return np.bincount(tree.apply_block(block) * k + y, block.w, tree.node_count * k)


class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    """A decision tree for amounts.

    Parameters
    ----------
    criterion : 'squared_error', 'friedman_mse', 'absolute_error' or 'poisson'
        Impurity of a node: the variance of its targets ('friedman_mse' chooses the same splits, and is another name),
        their mean distance to the median, which leaves then predict, or half their Poisson deviance from the mean.
    splitter, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf : as in DecisionTreeClassifier
    max_features, random_state, max_leaf_nodes, min_impurity_decrease, ccp_alpha : as in DecisionTreeClassifier
    monotonic_cst : array (d,) of -1, 0, 1, or None
        1: predictions rise with the column; -1: they fall.
    categorical_features : numbers or names of columns, a mask (d,), 'from_dtype' or None
        Columns of categories, as in DecisionTreeClassifier. A node's set is the best of all along the order of the
        categories' means; of several targets the orders of all of them are tried.
    lookahead : 1 or 2, as in DecisionTreeClassifier
    max_bins : int from 2 to 255, or None, as in DecisionTreeClassifier

    Attributes
    ----------
    tree_ : Tree, with scikit-learn's arrays
    borders_ : tuple of arrays, the borders between the bins of each column; with max_bins
    n_outputs_ : int, the number of targets
    is_categorical_ : (d,) bool, or None where no column holds categories
    category_labels_ : dict of the labels of columns of words; only where there are any
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
        "lookahead": Setting(int, least=1, most=2),
        "max_bins": Setting(int, least=2, most=255, none=True),
        "criterion": Setting(choices=("squared_error", "friedman_mse", "absolute_error", "poisson")),
    }

    def __init__(
        self, *, criterion="squared_error", splitter="best", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features=None, random_state=None, max_leaf_nodes=None,
        min_impurity_decrease=0.0, ccp_alpha=0.0, monotonic_cst=None,
        categorical_features=None, lookahead=1, max_bins=None,
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
        self.categorical_features = categorical_features
        self.lookahead = lookahead
        self.max_bins = max_bins

    def _fit(
        self, rows: Rows, previous: Attributes, labels: Labels | None = None, by_type: Array | None = None
    ) -> Attributes:
        if self.criterion == "poisson":
            y = np.concatenate(rows.each(_counted_targets))
            if not (len(y) and y.min() >= 0 and (y.sum(axis=0) > 0).all()):
                raise DataError(
                    got=f"targets from {y.min():g} to {y.max():g}",
                    wanted="counts of at least 0, some of them above, for criterion='poisson'",
                    fix="Some value(s) of y are negative which is not allowed for Poisson regression."
                    if len(y) and y.min() < 0
                    else "Sum of y is not positive which is necessary for Poisson regression.",
                )
        return self._grow(rows, _labelled(labels), by_type)

    def _criterion(self, attributes: Attributes, targets: int) -> AmountCriterion:
        return AmountCriterion(self.criterion, targets)

    def _values(self, block: Block) -> Array:
        return self.tree_.value[self.tree_.apply_block(block), :, 0]

    def predict(self, X: Any, check_input: bool = True) -> Array:
        """The mean, or median, of the leaf that a row reaches (n,); (n, t) for several targets."""
        found = self._rows(X).map(self._values)
        return found[:, 0] if self.n_outputs_ == 1 else found

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean squared or absolute error on these rows, or half their mean Poisson deviance."""
        y, targets = tree_targets(X, y, "numbers")
        rows = self._rows(X, y, sample_weight, "numbers", targets)
        weight, loss = rows.sum(self._losses)
        return Objective(float(loss / weight), float(loss / weight), 0.0)

    def _losses(self, block: Block) -> Array:
        value = self._values(block)
        y = np.asarray(block.y).reshape(value.shape)
        if self.criterion == "poisson":
            loss = xlogy(y, y / np.where(value > 0, value, 1.0)) - y + value
        else:
            loss = np.abs(y - value) if self.criterion == "absolute_error" else (y - value) ** 2
        return np.array([block.w.sum(), block.w @ loss.mean(axis=1)])


def _counted_targets(block: Block) -> Array:
    return np.asarray(block.y)[block.w > 0]
