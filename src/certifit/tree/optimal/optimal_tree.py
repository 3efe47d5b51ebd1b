"""Provably best trees of depth 1, 2 or 3, certified.

Greedy trees take the best question at every node; the best tree takes the questions that are best together. Its cost
is bounded from both sides: over the borders of bins from above, and over all thresholds from below. Bins are refined
where the bounds differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.fitted import AuditTuning
from certifit.checkers.tree.optimal import BestTreeClaim, certify_best_tree
from certifit.core import Attributes, Objective, Setting
from certifit.core.settings import Settings
from certifit.rows import Array, Block, Rows, apply_class_weight, encode_labels
from certifit.tree.fitted_tree import Tree
from certifit.tree.optimal.bounded_search import AskedTree, BoundedTree, bounded_search, empty_tree
from certifit.tree.optimal.scan_loops import SQUARES
from certifit.tree.optimal.search import TargetStatistics
from certifit.tree.tree_model import TreeModel


class OptimalTree(TreeModel):
    """What best trees of classes and of amounts share."""

    settings: ClassVar[Settings] = {
        "max_depth": Setting(int, least=1, most=3),
        "max_bins": Setting(int, least=2, most=10_000, none=True),
        "time_limit": Setting(float, least=0, none=True),
        "min_weight_fraction_leaf": Setting(float, least=0, most=0.5),
    }

    borders_: list[Array]

    def _search(self, rows: Rows, target: TargetStatistics) -> BoundedTree:
        total = float(rows.n_rows if target.weight is None else target.weight.sum())
        least = float(self.min_weight_fraction_leaf) * total
        return bounded_search(rows, target, AskedTree(int(self.max_depth), self.max_bins, self.time_limit, least))

    def _certified(self, rows: Rows, tree: Tree, found: BoundedTree, attributes: Attributes) -> Attributes:
        classes = len(attributes.get("classes_", ()))
        claim = BestTreeClaim(int(self.max_depth), classes, float(self.min_weight_fraction_leaf))
        certificate = certify_best_tree(tree, found.borders, claim, rows, AuditTuning().foreign)
        shared = {"tree_": tree, "borders_": found.borders, "n_iter_": found.rounds, "certificate_": certificate}
        return {**attributes, **shared}

    @property
    def lower_bound_(self) -> float:
        """What no tree of this depth has less of: the share misclassified, or the mean squared error."""
        check_is_fitted(self)
        return float(self.certificate_.bound)


class PositiveRows:
    """What is kept of each row with a positive weight: few bytes, for there may be more rows than memory holds."""

    def __init__(self, rows: Rows) -> None:
        weight = rows.map(lambda block: block.w)
        self.rows, self.chosen = rows, None if (weight > 0).all() else weight > 0  # None where all are
        weight = weight if self.chosen is None else weight[self.chosen]
        self.weight = None if (weight == 1).all() else weight  # (n,), None where all are 1

    def map(self, part: Callable[[Block], Array]) -> Array:
        """A number for each of them."""
        found = self.rows.map(part)
        return found if self.chosen is None else found[self.chosen]


class OptimalTreeClassifier(ClassifierMixin, OptimalTree):
    """The tree of a small depth that misclassifies least, with proof.

    Parameters
    ----------
    max_depth : 1, 2 or 3
    max_bins : int or None
        Bins of each column at the beginning; None: 255, 32 and 16 for depths of 1, 2 and 3. Columns with fewer
        distinct values are exact at once.
    time_limit : float or None
        Seconds after which no finer bins are tried; None: until the bounds meet.
    min_weight_fraction_leaf : float
        Least weight of a leaf, as a share of all; the lower bound is that of trees without this limit.
    class_weight : dict, 'balanced' or None

    Attributes
    ----------
    tree_ : Tree, with scikit-learn's arrays; the impurity of a node is the share beside its largest class
    classes_ : (k,)
    lower_bound_ : float, what no tree of this depth misclassifies less than
    borders_ : list of the borders of each column's bins, which prove the bound
    n_iter_ : int, how often bins were refined, and once
    certificate_ : Certificate: 'optimal', or 'bounded' with both numbers

    Missing values (NaN) go to the side that is best.

    Examples
    --------
    >>> import itertools, numpy as np
    >>> from certifit import OptimalTreeClassifier
    >>> X = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    >>> y = X[:, 0] != X[:, 2]  # no first question gains anything
    >>> model = OptimalTreeClassifier(max_depth=2).fit(X, y)
    >>> model.score(X, y), model.certificate_.kind
    (1.0, 'optimal')
    """

    target = "classes"

    classes_: Array

    def __init__(
        self, *, max_depth=2, max_bins=None, time_limit=60.0, min_weight_fraction_leaf=0.0, class_weight=None
    ):
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.time_limit = time_limit
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.class_weight = class_weight

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows, fewest=1)
        weighted, k = apply_class_weight(labels, self.class_weight), len(labels.classes)
        positive, small = PositiveRows(weighted), np.min_scalar_type(k - 1)
        y = positive.map(lambda block: np.asarray(block.y).astype(small))
        found = self._search(weighted, TargetStatistics(y, positive.weight, None, k))
        plan = empty_tree(found.root, weighted.n_features, k)
        leaf = positive.map(lambda block: plan.apply_block(block).astype(np.uint8))
        tree = _with_shares(plan, _class_sums(plan, leaf, y, positive.weight))
        return self._certified(weighted, tree, found, {"classes_": labels.classes})

    def _shares(self, block: Block) -> Array:
        return self.tree_.value[self.tree_.apply_block(block), 0]

    def predict_proba(self, X: Any) -> Array:
        """The share of each class in the leaf that a row reaches (n, k)."""
        return self._rows(X).map(self._shares)

    def predict(self, X: Any) -> Array:
        """The most frequent class of the leaf that a row reaches (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The share of the weight that is misclassified."""
        rows = self._rows(X, y, sample_weight, "classes")
        weighted = apply_class_weight(encode_labels(rows, self.classes_), self.class_weight)
        wrong, total = weighted.sum(self._wrong)
        return Objective(float(wrong / total), float(wrong / total), 0.0)

    def _wrong(self, block: Block) -> Array:
        off = self._shares(block).argmax(axis=1) != np.asarray(block.y)
        return np.array([block.w @ off, block.w.sum()])


class OptimalTreeRegressor(RegressorMixin, OptimalTree):
    """The tree of a small depth with the least squared error, with proof.

    Parameters
    ----------
    max_depth : 1, 2 or 3
    max_bins, time_limit, min_weight_fraction_leaf : as in OptimalTreeClassifier

    Attributes
    ----------
    tree_ : Tree, with scikit-learn's arrays
    lower_bound_ : float, the mean squared error that no tree of this depth is below
    borders_ : list of the borders of each column's bins, which prove the bound
    n_iter_ : int, how often bins were refined, and once
    certificate_ : Certificate: 'optimal', or 'bounded' with both numbers

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import OptimalTreeRegressor
    >>> X = np.arange(8.0)[:, None]
    >>> y = [0, 0, 5, 5, 5, 1, 1, 1]
    >>> OptimalTreeRegressor(max_depth=2).fit(X, y).predict([[0.0], [3.0], [7.0]])
    array([0., 5., 1.])
    """

    target = "numbers"

    def __init__(self, *, max_depth=2, max_bins=None, time_limit=60.0, min_weight_fraction_leaf=0.0):
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.time_limit = time_limit
        self.min_weight_fraction_leaf = min_weight_fraction_leaf

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        positive = PositiveRows(rows)
        y, w = positive.map(lambda block: np.asarray(block.y)), positive.weight
        centre = float(np.average(y, weights=w))
        found = self._search(rows, TargetStatistics(None, w, y, 3, SQUARES, centre))
        plan = empty_tree(found.root, rows.n_features, 1)
        leaf = positive.map(lambda block: plan.apply_block(block).astype(np.uint8))
        tree = replace(plan, value=np.full(plan.value.shape, centre))
        # Twice, the second time about the means found: what rounding far from a mean would leave.
        for _ in range(2):
            tree = _with_means(tree, _amount_sums(tree, leaf, y, w))
        return self._certified(rows, tree, found, {})

    def _means(self, block: Block) -> Array:
        return self.tree_.value[self.tree_.apply_block(block), 0, 0]

    def predict(self, X: Any) -> Array:
        """The mean of the leaf that a row reaches (n,)."""
        return self._rows(X).map(self._means)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean squared error on these rows."""
        rows = self._rows(X, y, sample_weight, "numbers")
        loss, total = rows.sum(self._losses)
        return Objective(float(loss / total), float(loss / total), 0.0)

    def _losses(self, block: Block) -> Array:
        return np.array([block.w @ (np.asarray(block.y) - self._means(block)) ** 2, block.w.sum()])


# What nodes say, measured from the rows that pass them --------------------------------------------------------------


@dataclass(frozen=True)
class PassingSums:
    """Sums over the rows that pass each node, in their order: no cut of the table into blocks changes a bit."""

    rows: Array  # (m,)
    totals: Array  # (m, k) weights of classes; or Σw, Σw(y - c), Σw(y - c)² about the value c of each node


def _leaves_below(tree: Tree) -> Array:
    """Which leaves lie below each node, a leaf below itself (m, m)."""
    below = np.eye(tree.node_count, dtype=bool)
    for k in np.flatnonzero(tree.children_left >= 0)[::-1]:  # children come after their parent
        below[k] = below[tree.children_left[k]] | below[tree.children_right[k]]
    return below


def _runs(n: int, rows: int = 65_536) -> Iterator[slice]:
    """Runs of so many rows, whose temporary numbers take little memory."""
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def _class_sums(tree: Tree, leaf: Array, y: Array, w: Array | None) -> PassingSums:
    m, k = tree.node_count, tree.value.shape[2]
    below = _leaves_below(tree).astype(np.int64)
    weight = np.zeros(m * k)
    for rows in _runs(len(leaf)):
        np.add.at(weight, leaf[rows].astype(np.int64) * k + y[rows], 1.0 if w is None else w[rows])
    totals = np.einsum("ml,lk->mk", below, weight.reshape(m, k))
    return PassingSums(below @ np.bincount(leaf, minlength=m), totals)


def _amount_sums(tree: Tree, leaf: Array, y: Array, w: Array | None) -> PassingSums:
    leaves_below = _leaves_below(tree)
    runs = [*_runs(len(leaf))]
    found, rows = np.empty((tree.node_count, 3, len(runs))), np.zeros(tree.node_count, np.int64)
    for number, run in enumerate(runs):
        for k, below in enumerate(leaves_below):
            here = below[leaf[run]]
            away = y[run][here] - tree.value[k, 0, 0]
            own = np.ones(len(away)) if w is None else w[run][here]
            found[k, :, number] = [(own * away**power).sum() for power in range(3)]
            rows[k] += len(own)
    return PassingSums(rows, found.sum(axis=-1))


def _with_shares(tree: Tree, found: PassingSums) -> Tree:
    weight = found.totals.sum(axis=1)
    share = found.totals / weight[:, None]
    return replace(
        tree, n_node_samples=found.rows, weighted_n_node_samples=weight, value=share[:, None],
        impurity=1.0 - share.max(axis=1),
    )  # fmt: skip


def _with_means(tree: Tree, found: PassingSums) -> Tree:
    (weight, moved, spread), centre = found.totals.T, tree.value[:, 0, 0]
    step = moved / weight
    return replace(
        tree, n_node_samples=found.rows, weighted_n_node_samples=weight, value=(centre + step)[:, None, None],
        impurity=np.maximum(spread / weight - step**2, 0.0),
    )  # fmt: skip
