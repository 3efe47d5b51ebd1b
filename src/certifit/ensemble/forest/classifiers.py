"""Forests for classes: random forests, and extremely randomised trees."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.tree.adapter import tree_targets
from certifit.core import Attributes, Objective, Setting
from certifit.core.settings import Settings
from certifit.ensemble.forest.base import Forest
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, encode_label_columns, encode_labels
from certifit.rows.labels import LabelColumns, class_weights_of_targets
from certifit.tree.binned.seeded.grow_trees import target_count
from certifit.tree.binned.seeded.growing import GrowthPlan
from certifit.tree.decision_tree import CLASS_WEIGHT, DecisionTreeClassifier


class ForestClassifier(ClassifierMixin, Forest):
    """What forests for classes share."""

    target = "classes"
    settings: ClassVar[Settings] = {
        **Forest.settings,
        "criterion": Setting(choices=("gini", "entropy", "log_loss")),
        "class_weight": replace(CLASS_WEIGHT, choices=("balanced", "balanced_subsample")),
    }

    differences: ClassVar[dict[str, str]] = {
        **Forest.differences,
    }

    classes_: Array

    def __init__(
        self, n_estimators=100, *, criterion="gini", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features="sqrt", max_leaf_nodes=None, min_impurity_decrease=0.0,
        bootstrap=True, oob_score=False, n_jobs=None, random_state=None, verbose=0, warm_start=False,
        class_weight=None, ccp_alpha=0.0, max_samples=None, monotonic_cst=None,
    ):  # fmt: skip
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = _label_columns(rows)
        counts = tuple(map(len, labels.classes))
        if self.monotonic_cst is not None and counts[0] > 2:
            raise DataError(
                got=f"monotonic_cst with {counts[0]} classes", wanted="two classes",
                fix="Fit one forest for each class against the others.",
            )  # fmt: skip
        classes = labels.classes[0] if len(counts) == 1 else labels.classes
        return self._grow(labels.rows, counts, self._factor(labels), {"classes_": classes}, previous)

    def _factor(self, labels: LabelColumns) -> Array:
        """The weight of each row's classes (n,); ones where every tree finds its own."""
        asked = self.class_weight
        if asked == "balanced_subsample":
            asked = None if self.bootstrap else "balanced"
        y = labels.rows.map(_codes).reshape(labels.rows.n_rows, -1)
        found = np.ones(len(y))
        each = class_weights_of_targets(labels, asked)
        for factor, column in zip(each, y.T, strict=True):
            found *= factor[column]
        return found

    def _reweighted(self, plan: GrowthPlan, weight: Array) -> Array:
        if self.class_weight != "balanced_subsample" or not self.bootstrap:
            return weight
        return _balanced(plan.table.y.astype(np.int64), weight)

    def _told(self, answers: Array, y: Array) -> Attributes:
        several = answers.shape[1] > 1
        return {"oob_decision_function_": answers.transpose(0, 2, 1).copy() if several else answers[:, 0]}

    def _scored(self, y: Array, answers: Array, fitted: Attributes) -> tuple[Array, Array]:
        kinds = [fitted["classes_"]] if y.shape[1] == 1 else fitted["classes_"]
        true = np.stack([classes[y[:, t].astype(np.int64)] for t, classes in enumerate(kinds)], axis=1)
        said = _likeliest(kinds, answers)
        return (true[:, 0], said[:, 0]) if y.shape[1] == 1 else (true, said)

    def _numbers(self, y: Array) -> tuple[Array, tuple[int, ...]]:
        columns = zip(self._kinds, y.T, strict=True)
        codes = np.stack([np.searchsorted(classes, column) for classes, column in columns], axis=1)
        return codes, tuple(map(len, self._kinds))

    @property
    def _kinds(self) -> list[Array]:
        """The classes of each target."""
        check_is_fitted(self)
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]

    @property
    def n_classes_(self) -> int | list[int]:
        check_is_fitted(self)
        counts = [*map(len, self._kinds)]
        return counts if len(counts) > 1 else counts[0]

    def _estimator(self, t: int) -> DecisionTreeClassifier:
        model = DecisionTreeClassifier(splitter="random" if self.drawn_borders else "best")
        model.classes_ = self.classes_
        return self._as_estimator(model, t)

    def predict_proba(self, X: Any) -> Array | list[Array]:
        """The mean over trees of the class shares of a row's leaves (n, k); a list of these for several targets."""
        found = self._answers(X, self._mean_value)
        shares = [np.ascontiguousarray(found[:, t, : len(classes)]) for t, classes in enumerate(self._kinds)]
        return shares if len(shares) > 1 else shares[0]

    def predict_log_proba(self, X: Any) -> Array | list[Array]:
        """The logarithms of `predict_proba`; -inf where no leaf has a row of a class."""
        found = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(one) for one in found] if isinstance(found, list) else np.log(found)

    def predict(self, X: Any) -> Array:
        """The class with the largest mean share (n,); (n, t) for several targets."""
        found = _likeliest(self._kinds, self._answers(X, self._mean_value))
        return found if found.shape[1] > 1 else found[:, 0]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The impurity of the leaves, mean over trees, each on its bootstrap sample of these rows."""
        y, targets = tree_targets(X, y, "classes")
        labels = _label_columns(self._rows(X, y, sample_weight, "classes", targets), self._kinds)
        codes = labels.rows.map(_codes).reshape(labels.rows.n_rows, -1)
        impurity = partial(_class_impurity, self, codes.T, int(np.diff(self.trees_.first).max()))
        return self._sample_objective(labels.rows, self._factor(labels), impurity)


def _codes(block: Block) -> Array:
    return np.asarray(block.y)


def _label_columns(rows: Rows, known: list[Array] | None = None) -> LabelColumns:
    """The rows with class numbers as y, and the classes of every target."""
    if target_count(rows) > 1:
        return encode_label_columns(rows, known)
    one = encode_labels(rows, None if known is None else known[0], fewest=1)
    return LabelColumns([one.classes], [one.weight], one.rows)


def _balanced(y: Array, weight: Array) -> Array:
    """Weights (n,) by which the classes of every target (t, n) weigh the same, each target by itself."""
    found = weight.astype(np.float64)
    for column in y:
        total = np.bincount(column, weight)
        found *= (total.sum() / ((total > 0).sum() * np.where(total > 0, total, 1.0)))[column]
    return found


def _likeliest(kinds: list[Array], shares: Array) -> Array:
    """The class with the largest share (n, t), of shares (n, t, k)."""
    columns = [classes[shares[:, t, : len(classes)].argmax(axis=1)] for t, classes in enumerate(kinds)]
    return np.stack(columns, axis=1)


def _class_impurity(model: ForestClassifier, y: Array, m: int, at: Array, weight: Array) -> float:
    """The impurity of the leaves of one tree, weighted by what they hold; y (t, n) are class numbers."""
    if model.class_weight == "balanced_subsample" and model.bootstrap:
        weight = _balanced(y, weight)
    total = 0.0
    for column, k in zip(y, map(len, model._kinds), strict=True):
        found = np.bincount(at * k + column, weight, m * k).reshape(m, k)
        mass = found.sum(axis=1)
        share = found / np.where(mass > 0, mass, 1.0)[:, None]
        if model.criterion == "gini":
            impurity = 1.0 - (share**2).sum(axis=1)
        else:
            impurity = -xlogy(share, share).sum(axis=1) / np.log(2)
        total += float(mass @ impurity / mass.sum())
    return total / len(y)


class RandomForestClassifier(ForestClassifier):
    """A random forest for classes: trees on bootstrap samples, each node choosing among a few columns.

    Parameters
    ----------
    n_estimators : int
        The number of trees.
    criterion : 'gini', 'entropy' or 'log_loss'
        Impurity of a node: 1 - Σ p², or the entropy of its class shares p ('log_loss' is another name for it).
    max_depth : int or None
    min_samples_split, min_samples_leaf : int, or float for a share of the rows
        Fewest different rows of a node that is split, and of a leaf.
    min_weight_fraction_leaf : float
        Least weight of a leaf, as a share of its tree's.
    max_features : int, float for a share, 'sqrt', 'log2' or None
        How many columns each node looks at, drawn anew; more only where none of these varies. None: all.
    max_leaf_nodes : int or None
        With a number, the leaf that gains most is split next, until there are so many.
    min_impurity_decrease : float
        Least fall of the impurity, times the node's share of the tree's weight.
    bootstrap : bool
        Whether each tree draws its rows with replacement; else all trees see all rows.
    oob_score : bool, or a function of targets and answers
        Whether each row is answered by the trees that have not drawn it.
    random_state : int, RandomState or None
    warm_start : bool
        Whether `fit` adds trees to those that are there.
    class_weight : dict, a list of these for several targets, 'balanced', 'balanced_subsample' or None
        'balanced_subsample' balances the classes in every tree's sample.
    ccp_alpha : float
        Cost-complexity pruning: branches that save less impurity than this for each of their leaves are cut.
    max_samples : int, float for a share, or None
        Rows that each tree draws; as many as there are if None. A row of whole weight w counts as w rows.
    monotonic_cst : array (d,) of -1, 0, 1, or None
        1: the probability of the second of two classes rises with the column; -1: it falls.
    n_jobs, verbose : not used: threads are set by `certifit.set_threads`

    Attributes
    ----------
    trees_ : the nodes of all trees, with scikit-learn's names, and the trees' seeds
    estimators_ : list of DecisionTreeClassifier (made when asked for)
    classes_ : (k,), or a list of these for several targets
    n_classes_ : int, or a list
    n_outputs_ : int, the number of targets t
    max_features_ : int, the columns that each node looked at
    feature_importances_ : (d,) shares of the fall of impurity (computed when asked for)
    borders_ : tuple of arrays, the borders between the bins of each column: thresholds are among them
    draw_order_, draw_weight_ : (n,) the order in which rows stand for the bootstrap, and their weights in it
    estimators_samples_ : list of arrays, the rows that each tree has drawn (computed when asked for)
    oob_score_ : float, accuracy of the out-of-bag answers (with oob_score)
    oob_interval_ : (2,) where the accuracy on new rows lies with 95 % confidence (with oob_score)
    oob_decision_function_ : (n, k) out-of-bag answers, of several targets (n, k, t) (with oob_score)
    certificate_ : Certificate

    Rows are drawn in proportion to their weights. Missing values (NaN) go to the side that lowers the impurity more.
    A column with more than 255 different values is cut into 255 bins of about equal weight.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> bool(model.oob_score_ > 0.9), model.predict(X[:2])
    (True, array([0, 0]))
    >>> model.certificate_.kind, model.certificate_.holds
    ('statistical', True)
    """


class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomised trees for classes: each node draws one border for each column that it looks at.

    Parameters
    ----------
    bootstrap : bool
        False by default: all trees see all rows.
    n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf : as in RandomForestClassifier
    min_weight_fraction_leaf, max_features, max_leaf_nodes, min_impurity_decrease : as in RandomForestClassifier
    oob_score, random_state, warm_start, class_weight, ccp_alpha : as in RandomForestClassifier
    max_samples, monotonic_cst, n_jobs, verbose : as in RandomForestClassifier

    Attributes
    ----------
    trees_ : the nodes of all trees, with scikit-learn's names, and the trees' seeds
    estimators_ : list of DecisionTreeClassifier (made when asked for)
    classes_ : (k,), or a list of these for several targets
    n_classes_ : int, or a list
    n_outputs_ : int, the number of targets t
    max_features_ : int, the columns that each node looked at
    feature_importances_ : (d,) shares of the fall of impurity (computed when asked for)
    borders_ : tuple of arrays, the borders between the bins of each column: thresholds are among them
    draw_order_, draw_weight_ : (n,) the order in which rows stand for the bootstrap, and their weights in it
    estimators_samples_ : list of arrays, the rows that each tree has drawn (computed when asked for)
    oob_score_ : float, accuracy of the out-of-bag answers (with oob_score)
    oob_interval_ : (2,) where the accuracy on new rows lies with 95 % confidence (with oob_score)
    oob_decision_function_ : (n, k) out-of-bag answers, of several targets (n, k, t) (with oob_score)
    certificate_ : Certificate

    The border that a node draws is the one nearest to a number drawn evenly between
    the lowest and the highest border of its column that parts the node's rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ExtraTreesClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:2]), model.certificate_.holds
    (array([0, 0]), True)
    """

    drawn_borders: ClassVar[bool] = True

    def __init__(
        self, n_estimators=100, *, criterion="gini", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features="sqrt", max_leaf_nodes=None, min_impurity_decrease=0.0,
        bootstrap=False, oob_score=False, n_jobs=None, random_state=None, verbose=0, warm_start=False,
        class_weight=None, ccp_alpha=0.0, max_samples=None, monotonic_cst=None,
    ):  # fmt: skip
        super().__init__(
            n_estimators, criterion=criterion, max_depth=max_depth, min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf, min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features, max_leaf_nodes=max_leaf_nodes, min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap, oob_score=oob_score, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
            warm_start=warm_start, class_weight=class_weight, ccp_alpha=ccp_alpha, max_samples=max_samples,
            monotonic_cst=monotonic_cst,
        )  # fmt: skip
