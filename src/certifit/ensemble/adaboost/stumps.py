"""Stumps, trees of one split: the best one for any weights of the rows, by columns that are sorted once.

A stump has the lowest weighted Gini impurity over all columns and all thresholds between neighbouring values, as a
decision tree of depth 1; with bins, over thresholds between bins of about equal weight. Missing values go to the
better side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from certifit.ensemble.adaboost.stump_loops import (
    ROW,
    Cut,
    add_class_histograms,
    add_votes,
    best_bin,
    best_cut,
    best_cut_of_two,
)
from certifit.rows import Array, Block
from certifit.rows.threads import parallel_map, thread_count
from certifit.tree.decision_tree import DecisionTreeClassifier
from certifit.tree.fitted_tree import Tree
from certifit.tree.routing.node_places import check_width, no_trees, whole_numbers


@dataclass(frozen=True)
class StumpTuning:
    """From how many entries (rows times columns) on threads share the columns of a search."""

    shared_entries: int = 100_000


@dataclass(frozen=True, eq=False)
class Stumps:
    """Fitted stumps, one after another. A row goes left where x <= threshold, or is missing and goes left."""

    column: Array  # (m,) -1 where no split lowers the impurity: all rows are in the left leaf
    threshold: Array  # (m,) infinite where missing values are parted from all others
    missing_left: Array  # (m,) uint8
    leaf_weight: Array  # (m, 2, k) shares of all weight, by leaf and class
    leaf_rows: Array  # (m, 2)
    answers: Array  # (m, 2) the class that each leaf tells

    def __len__(self) -> int:
        return len(self.column)

    def check_places(self) -> int:
        """Refuse numbers of columns or classes that point nowhere; return how many columns rows must have."""
        column, answers, m = whole_numbers(self.column), whole_numbers(np.ravel(self.answers)), len(self)
        if any(np.shape(part) != (m,) for part in (self.threshold, self.missing_left)):
            raise no_trees("stumps with arrays of different lengths")
        shape = np.shape(self.leaf_weight)
        if np.shape(self.answers) != (m, 2) or np.shape(self.leaf_rows) != (m, 2) or shape != (m, 2, *shape[2:3]):
            raise no_trees("stumps that do not have two leaves")
        if (column < -1).any() or (answers < 0).any() or (answers >= shape[2]).any():
            raise no_trees("stumps that ask for no column or tell no class")
        return int(column.max(initial=-1)) + 1

    @cached_property
    def columns_asked(self) -> int:
        """How many columns rows must have, of stumps that were looked at before any row is."""
        return self.check_places()

    def part(self, rows: slice) -> Stumps:
        _ = self.columns_asked  # slices would hide that arrays have different lengths
        return Stumps(*(getattr(self, f.name)[rows] for f in fields(self)))

    def votes(self, strength: Array, block: Block) -> Array:
        """The strength (m,) of the stumps that answer each class, for every row of a block (n, k)."""
        X = block.X if isinstance(block.X, np.ndarray) else block.X.toarray()
        check_width(X, self.columns_asked)
        if strength.shape != (len(self),):
            raise no_trees(f"{len(self)} stumps with strengths of shape {strength.shape}")
        votes = np.zeros((len(X), self.leaf_weight.shape[2]))
        add_votes(
            X, self.column, self.threshold, self.missing_left, self.answers, np.ascontiguousarray(strength), votes
        )
        return votes

    def tree(self, m: int, n_features: int) -> Tree:
        """Stump m as a decision tree."""
        weight, rows = self.leaf_weight[m], self.leaf_rows[m]
        if self.column[m] < 0:
            node_weight, count = weight[:1], rows[:1]
            children, column, threshold = np.array([[-1], [-1]]), np.array([-2]), np.array([-2.0])
            missing = np.zeros(1, np.uint8)
        else:
            node_weight = np.stack([weight.sum(axis=0), *weight])
            count = np.array([rows.sum(), *rows])
            children = np.array([[1, -1, -1], [2, -1, -1]])
            column = np.array([self.column[m], -2, -2])
            threshold = np.array([self.threshold[m], -2.0, -2.0])
            missing = np.array([self.missing_left[m], 0, 0], np.uint8)
        total = node_weight.sum(axis=1)
        share = node_weight / total[:, None]
        impurity = 1 - (share**2).sum(axis=1)
        return Tree(
            children[0], children[1], column, threshold, missing, impurity, count, total, share[:, None], n_features,
            np.array([weight.shape[1]]),
        )  # fmt: skip

    def classifier(self, m: int, classes: Array, n_features: int) -> DecisionTreeClassifier:
        """Stump m as a fitted classifier."""
        model = DecisionTreeClassifier(max_depth=1)
        model.__dict__.update(
            tree_=self.tree(m, n_features), classes_=classes, max_features_=n_features, n_features_in_=n_features
        )
        return model


def join_stumps(parts: list[Stumps]) -> Stumps:
    return Stumps(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Stumps)))


class StumpSplit(NamedTuple):
    """A split of all rows; `column` is -1 where none lowers the impurity."""

    column: int
    threshold: float
    missing_left: bool
    left: Array  # (n,) bool, the rows that go left


def whole_weights(w: Array) -> Array:
    """Weights as whole numbers of about 2⁻⁵² of their sum, none of them 0 (n,) int64."""
    unit = 2.0 ** (math.frexp(float(w.sum()))[1] - 51)
    return np.maximum(np.rint(w / unit), 1.0).astype(np.int64)


class StumpSearch:
    """Finds the best stump for any weights of the same rows."""

    def __init__(self, labels: Array, classes: int, entries: int, tuning: StumpTuning) -> None:
        self.labels, self.classes = labels, classes
        self.shared = entries >= tuning.shared_entries

    def _cuts(self, find: Callable[[int], Cut], d: int) -> list[Cut]:
        """The best cut of every column, with threads for large tables."""
        if not self.shared or thread_count() == 1:
            return [find(j) for j in range(d)]
        parts = np.array_split(np.arange(d), min(d, 2 * thread_count()))
        return [cut for part in parallel_map(lambda js: [find(int(j)) for j in js], parts) for cut in part]

    def best(self, w: Array) -> StumpSplit:
        """The best stump for weights (n,): of equally good ones that of the lowest column and threshold."""
        raise NotImplementedError

    def _no_split(self) -> StumpSplit:
        return StumpSplit(-1, np.nan, False, np.ones(len(self.labels), bool))


class SortedStumps(StumpSearch):
    """Every threshold between neighbouring values, by columns sorted once."""

    def __init__(self, X: Array, labels: Array, classes: int, tuning: StumpTuning = StumpTuning()) -> None:
        super().__init__(labels, classes, X.size, tuning)
        self.columns = parallel_map(_sorted_column, [X[:, j] for j in range(X.shape[1])])
        self.X = X

    def best(self, w: Array) -> StumpSplit:
        weight = whole_weights(w)
        if self.classes == 2:
            weight = np.where(self.labels == 1, weight, -weight).astype(np.float64)
        cuts = self._cuts(partial(self._cut, weight), len(self.columns))
        j = max(range(len(cuts)), key=lambda j: (cuts[j].score, -j))
        return self._no_split() if cuts[j].position < 0 else self._split(j, cuts[j])

    def _cut(self, weight: Array, j: int) -> Cut:
        entries, known = self.columns[j]
        if self.classes == 2:
            return best_cut_of_two(entries, known, weight)
        return best_cut(entries, known, self.labels, weight, self.classes)

    def _split(self, j: int, cut: Cut) -> StumpSplit:
        entries, known = self.columns[j]
        rows = entries & ROW
        left = np.zeros(len(rows), bool)
        left[rows[: cut.position]] = True
        if cut.missing_left:
            left[rows[known:]] = True
        if cut.position == known:
            return StumpSplit(j, np.inf, False, left)
        low, high = (float(self.X[rows[i], j]) for i in (cut.position - 1, cut.position))
        return StumpSplit(j, threshold_between(low, high), _missing_side(cut, known, left), left)


def _missing_side(cut: Cut, known: int, left: Array) -> bool:
    """Where missing values go: as was best, or, where there are none, to the side with more rows."""
    return bool(cut.missing_left) if known < len(left) else bool(2 * left.sum() > len(left))


def threshold_between(low: float, high: float) -> float:
    """A number t with low <= t < high: the middle, or the lower value where the middle rounds to the upper."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


def _sorted_column(x: Array) -> tuple[Array, int]:
    """The rows of a column in order, the last of each value marked, and how many have a value."""
    # NaN comes last; how rows of one value are ordered changes no sum, because weights are whole numbers.
    order = np.argsort(np.ascontiguousarray(x))
    known = len(x) - int(np.isnan(x).sum())
    value = x[order[:known]]
    last = np.zeros(len(x), bool)
    last[: max(known - 1, 0)] = value[1:] > value[:-1]
    if known:
        last[known - 1] = True
    return order.astype(np.uint32) | (last.astype(np.uint32) << np.uint32(31)), known


class BinnedColumn(NamedTuple):
    """A column as codes; the last bin is that of missing values, if there are any."""

    codes: Array  # (n,) uint8
    thresholds: Array  # (b - 1,) between bins of known values
    missing: bool
    bins: int


class BinnedStumps(StumpSearch):
    """Thresholds between bins of about equal weight; all of them for columns with no more values than bins."""

    def __init__(
        self, X: Array, labels: Array, classes: int, w: Array, max_bins: int, tuning: StumpTuning = StumpTuning()
    ) -> None:
        super().__init__(labels, classes, X.size, tuning)
        weight = None if (w == w[0]).all() else w
        columns = parallel_map(partial(binned_column, max_bins, weight), [X[:, j] for j in range(X.shape[1])])
        # A key is a place in a histogram of bins and classes: its code times the number of classes, and its class.
        self.keys = np.empty(X.shape[::-1], np.uint16 if 256 * classes <= 2**16 else np.int64)
        for keys, column in zip(self.keys, columns, strict=True):
            np.multiply(column.codes, classes, out=keys, dtype=self.keys.dtype, casting="unsafe")
            keys += labels.astype(keys.dtype)
        self.columns = [column._replace(codes=column.codes[:0]) for column in columns]
        self.places = classes * max(column.bins for column in columns)

    def best(self, w: Array) -> StumpSplit:
        weight = whole_weights(w)
        d = len(self.columns)
        parts = np.array_split(np.arange(d), min(d, thread_count()) if self.shared else 1)
        cuts = [cut for part in parallel_map(partial(self._part_cuts, weight), parts) for cut in part]
        j = max(range(len(cuts)), key=lambda j: (cuts[j].score, -j))
        if cuts[j].position < 0:
            return self._no_split()
        column, cut = self.columns[j], cuts[j]
        codes = self.keys[j] // self.classes
        left = codes <= cut.position
        if column.missing:
            left[codes == column.bins - 1] = cut.missing_left
        known = len(left) - column.missing
        all_known = cut.position == len(column.thresholds)
        threshold = np.inf if all_known else float(column.thresholds[cut.position])
        return StumpSplit(j, threshold, _missing_side(cut, known, left), left)

    def _part_cuts(self, weight: Array, part: Array) -> list[Cut]:
        """The best cuts of a run of columns."""
        found = np.zeros((len(part), self.places), np.int64)
        add_class_histograms(self.keys[part[0] : part[-1] + 1], weight, found)
        own = zip(found, (self.columns[j] for j in part), strict=True)
        k = self.classes
        return [best_bin(sums[: column.bins * k].reshape(-1, k), column.missing) for sums, column in own]


def binned_column(max_bins: int, w: Array | None, x: Array) -> BinnedColumn:
    """Codes of a column in at most `max_bins` bins of known values; `w` are weights where they differ."""
    x = np.ascontiguousarray(x)
    known = len(x) - int(np.isnan(x).sum())
    # NaN comes last. Rows of one value have one code in any order; what their weights add up to depends on it.
    order = np.argsort(x, kind=None if w is None else "stable")
    value, mass = x[order[:known]], None if w is None else np.cumsum(w[order[:known]])
    thresholds = _bin_thresholds(value, mass, max_bins)
    bins, missing = len(thresholds) + 1, known < len(x)
    ends = np.append(np.searchsorted(value, thresholds, side="right"), known)
    codes = np.full(len(x), bins, np.uint8)
    codes[order[:known]] = np.repeat(np.arange(bins, dtype=np.uint8), np.diff(ends, prepend=0))
    return BinnedColumn(codes, thresholds, missing, bins + missing)


def _bin_thresholds(value: Array, mass: Array | None, max_bins: int) -> Array:
    """Numbers between neighbours of a sorted column, between all of them where there are few values."""
    after = np.flatnonzero(value[1:] > value[:-1]) + 1  # so many rows lie below
    if len(after) >= max_bins:
        share = np.arange(1, max_bins) / max_bins
        if mass is None:
            wanted = np.searchsorted(after, share * len(value))
        else:
            wanted = np.searchsorted(mass[after - 1], share * mass[-1])
        after = after[np.unique(np.minimum(wanted, len(after) - 1))]
    low, high = value[after - 1].astype(np.float64), value[after].astype(np.float64)
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def as_stumps(splits: list[tuple[StumpSplit, Array, Array]]) -> Stumps:
    """Splits with the weights (2, k) and numbers (2,) of rows in their leaves."""
    return Stumps(
        np.array([split.column for split, _, _ in splits], np.int64),
        np.array([split.threshold for split, _, _ in splits]),
        np.array([split.missing_left for split, _, _ in splits], np.uint8),
        np.stack([weight for _, weight, _ in splits]),
        np.stack([rows for _, _, rows in splits]),
        np.stack([weight.argmax(axis=1) for _, weight, _ in splits]),
    )


def is_stump_learner(estimator: Any) -> bool:
    """Whether an estimator is a tree of depth 1 with everything else as usual, which the search above finds."""
    if estimator is None:
        return True
    if type(estimator) is not DecisionTreeClassifier:
        return False
    usual = {**DecisionTreeClassifier(max_depth=1).get_params(), "random_state": estimator.random_state}
    return estimator.get_params() == usual
