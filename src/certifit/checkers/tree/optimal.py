"""Whether a tree is the best of its depth: what no tree can cost less than, computed anew from bins of the rows.

The rows of every leaf of a tree of depth D satisfy D conditions. A threshold inside a bin sends the bins below to the
left and those above to the right; the rows in the bin are given away at no cost. Costs (the weight beside the largest
class, the sum of squares about the mean) never fall when rows are added, so the cheapest tree over bins is a lower
bound for trees with any thresholds. Tensors of the bins of one, two or three columns are multiplied by matrices of
sides; nothing of the solver is used. Besides, rows that are equal in every column are in one leaf of any tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.fitted import fitted_rows
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.tree.midpoints import thresholds_off_middle
from certifit.checkers.tree.node_sums import NodeClaims, check_nodes
from certifit.checkers.tree.plain_tree import plain_tree
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms
from certifit.rows.threads import parallel_map

BEST = "no tree of this depth costs less, whatever its thresholds"
BOUNDED = "no tree of this depth costs less than the lower bound, whatever its thresholds"


@dataclass(frozen=True)
class OptimalityTuning:
    """How many rows are counted at a time: as many as fit in the cache beside their places.

    Up to `few_borders` a value is compared with each of them, which is faster than to search for its place. The first
    `glanced_rows` of a block mostly show every bin to have several values.
    """

    block_rows: int = 16_384
    few_borders: int = 48
    glanced_rows: int = 2048


@dataclass(frozen=True)
class BinnedRows:
    """Rows of positive weight by the bins of their columns; whatever is worked out of them is, for few at a time."""

    codes: list[Array]  # of each column (n,), of the least type; missing values have the number after the last bin
    sides: list[Array]  # of each column (2c, bins + 1): which bins lie left and right of its candidates
    target: Array  # (n,) class numbers, of the least type; or amounts
    weight: Array | None  # (n,); None where all are 1
    classes: int  # 0 for amounts

    @property
    def amounts(self) -> bool:
        return not self.classes

    @cached_property
    def mean(self) -> float:
        """Of the amounts."""
        return float(np.average(self.target, weights=self.weight))

    def runs(self) -> Iterator[slice]:
        """Runs of as many rows as are counted at a time."""
        step = OptimalityTuning().block_rows
        return (slice(start, start + step) for start in range(0, len(self.target), step))

    def channels(self, rows: slice | Array) -> Array:
        """Of some rows the weights of their classes, or w, w (y - mean) and w (y - mean)² (rows, k)."""
        y = self.target[rows]
        w = np.ones(len(y)) if self.weight is None else self.weight[rows]
        if self.classes:
            return w[:, None] * (y[:, None] == np.arange(self.classes))
        away = y - self.mean
        return np.stack([w, w * away, w * away**2], axis=1)

    @cached_property
    def totals(self) -> Array:
        """The sums of the channels (k,)."""
        found = np.array([self.channels(rows).sum(axis=0) for rows in self.runs()])
        return np.array([part.sum() for part in found.T])

    @property
    def whole_weights(self) -> bool:
        """Whether sums of weights have no rounding."""
        return self.weight is None or bool((self.weight == np.rint(self.weight)).all())

    def tensor(self, columns: tuple[int, ...]) -> Array:
        """The sums of the channels over the bins of some columns."""
        sizes = [self.sides[j].shape[1] for j in columns]
        k = self.classes or 3
        total = np.zeros((math.prod(sizes), k))
        steps = [math.prod(sizes[axis + 1 :]) * (self.classes or 1) for axis in range(len(sizes))]
        for rows in self.runs():
            place = self.target[rows].astype(np.intp) if self.classes else np.intp(0)
            for j, step in zip(columns, steps, strict=True):
                place = place + np.multiply(self.codes[j][rows], step, dtype=np.intp)
            if self.classes:  # one count of all classes
                weight = None if self.weight is None else self.weight[rows]
                total += np.bincount(place, weight, total.size).reshape(total.shape)
            else:
                parts = self.channels(rows).T
                total += np.stack([np.bincount(place, part, len(total)) for part in parts], axis=1)
        return total.reshape(*sizes, k)

    def leaf_costs(self, columns: tuple[int, ...]) -> Array:
        """The costs of the leaves with one side of a candidate of each of the columns (2c, 2c', …)."""
        found = self.tensor(columns)
        for axis, j in enumerate(columns):
            found = np.moveaxis(np.tensordot(self.sides[j], found, axes=(1, axis)), 0, axis)
        return self.cost(found)

    def cost(self, sums: Array) -> Array:
        """The cost of leaves with these sums (…, k)."""
        if self.amounts:
            weight = np.where(sums[..., 0] > 0, sums[..., 0], 1.0)
            return np.maximum(sums[..., 2] - sums[..., 1] ** 2 / weight, 0.0)
        return sums.sum(axis=-1) - sums.max(axis=-1)


def _both_sides(cost: Array, axis: int) -> Array:
    """The least cost of a candidate along an axis, its two sides added; inf where there is none."""
    cost = np.moveaxis(cost, axis, -1)
    if not cost.shape[-1]:
        return np.full(cost.shape[:-1], np.inf)
    return (cost[..., 0::2] + cost[..., 1::2]).min(axis=-1)


def cheapest_tree(rows: BinnedRows, depth: int) -> float:
    """The cost of the cheapest tree over the candidates, which may give rows away."""
    d, whole = len(rows.codes), float(rows.cost(rows.totals))
    alone = parallel_map(rows.leaf_costs, [(j,) for j in range(d)])
    if depth == 1:
        return min([whole, *(float(_both_sides(cost, 0)) for cost in alone)])
    if depth == 2:
        best, lock = [cost.copy() for cost in alone], Lock()

        def split(pair: tuple[int, int]) -> None:
            cost = rows.leaf_costs(pair)
            below = (_both_sides(cost, 1), _both_sides(cost, 0))
            with lock:
                for j, found in zip(pair, below, strict=True):
                    np.minimum(best[j], found, out=best[j])

        parallel_map(split, combinations_with_replacement(range(d), 2))
        return min([whole, *(float(_both_sides(cost, 0)) for cost in best)])
    return _of_depth_three(rows, alone, whole)


def _of_depth_three(rows: BinnedRows, alone: list[Array], whole: float) -> float:
    d, lock = len(rows.codes), Lock()
    every = [*combinations_with_replacement(range(d), 2)]
    pairs = dict(zip(every, parallel_map(rows.leaf_costs, every), strict=True))

    def split(columns: tuple[int, int, int]) -> None:
        cost = rows.leaf_costs(columns)
        a, b, c = columns
        for axis, pair in enumerate(((b, c), (a, c), (a, b))):
            found = _both_sides(cost, axis)
            with lock:
                np.minimum(pairs[pair], found, out=pairs[pair])

    parallel_map(split, combinations_with_replacement(range(d), 3))
    best = [cost.copy() for cost in alone]
    for (a, b), cost in pairs.items():
        best[a] = np.minimum(best[a], _both_sides(cost, 1))
        best[b] = np.minimum(best[b], _both_sides(cost, 0))
    return min([whole, *(float(_both_sides(cost, 0)) for cost in best)])


# Bins ---------------------------------------------------------------------------------------------------------------


def binned_rows(rows: Rows, borders: list[Array], classes: int) -> BinnedRows:
    """The bins of all rows of positive weight, one pass over them."""
    parts = rows.each(lambda block: _binned(borders, classes, block))
    least = [np.min([part.least[j] for part in parts], axis=0) for j in range(len(borders))]
    largest = [np.max([part.largest[j] for part in parts], axis=0) for j in range(len(borders))]
    target, plain = np.concatenate([part.target for part in parts]), all(part.weight is None for part in parts)
    weights = [np.ones(len(part.target)) if part.weight is None else part.weight for part in parts if not plain]
    codes = [np.concatenate([part.codes.pop(0) for part in parts]) for _ in borders]  # each is let go when copied
    sides = [
        np.array([*_sides(len(own) + 1, low < high, bool((code > len(own)).any()))]).reshape(-1, len(own) + 2)
        for own, low, high, code in zip(borders, least, largest, codes, strict=True)
    ]
    return BinnedRows(codes, sides, target, None if plain else np.concatenate(weights), classes)


class BinnedBlock(NamedTuple):
    """What a block adds to `BinnedRows`."""

    codes: list[Array]
    least: list[Array]  # of each column, two values of each bin
    largest: list[Array]
    target: Array
    weight: Array | None  # None where all are 1


def _binned(borders: list[Array], classes: int, block: Block) -> BinnedBlock:
    """The rows of a block with a positive weight by their bins."""
    kept = block.w > 0
    X = dense(block.X)[kept].astype(np.float64)
    codes, least, largest = [], [], []
    for x, own in zip(X.T, borders, strict=True):
        known, number = ~np.isnan(x), _bin_numbers(own, x)
        low, high = _two_values(x, number, known, len(own) + 1)
        number[~known] = len(own) + 1
        codes.append(number.astype(np.min_scalar_type(len(own) + 1)))
        least.append(low)
        largest.append(high)
    y, w = np.asarray(block.y)[kept], block.w[kept]
    y = y.astype(np.min_scalar_type(classes - 1)) if classes else y
    return BinnedBlock(codes, least, largest, y, None if (w == 1).all() else w)


def _two_values(x: Array, number: Array, known: Array, bins: int) -> tuple[Array, Array]:
    """Two values of each bin, low < high if it has several; inf and -inf of one without rows."""
    low, high = np.full(bins, np.inf), np.full(bins, -np.inf)
    glanced = OptimalityTuning().glanced_rows
    for part in (slice(None, glanced), slice(glanced, None)):
        # What has two values already needs no more.
        wanted = known[part]
        if (low < high).any():
            wanted = wanted & ~(low < high)[number[part]] if not (low < high).all() else np.zeros(len(wanted), bool)
        np.minimum.at(low, number[part][wanted], x[part][wanted])
        np.maximum.at(high, number[part][wanted], x[part][wanted])
    return low, high


def _bin_numbers(borders: Array, x: Array) -> Array:
    """How many borders lie below each value; of a missing one any number."""
    if len(borders) > OptimalityTuning().few_borders:
        return np.searchsorted(borders, x).astype(np.int32)
    x, number = np.ascontiguousarray(x), np.zeros(len(x), np.int8)
    for border in borders:
        number += x > border
    return number.astype(np.int32)


def _sides(bins: int, several: Array, missing: bool) -> Iterator[Array]:
    """For each candidate which bins, missing values last, lie left, and which right.

    A threshold inside a bin of several values is better than both of its borders, which are then left out.
    """
    number = np.arange(bins + 1)
    known = number < bins
    for missing_left in (False, True) if missing else (False,):
        lost = ~known & missing
        for b in range(bins):
            if several[b]:
                left, right = known & (number < b), known & (number > b)
            elif b + 1 < bins and not several[b + 1]:
                left, right = known & (number <= b), known & (number > b)
            else:
                continue
            yield (left | (lost & missing_left)).astype(float)
            yield (right | (lost & (not missing_left))).astype(float)
    if missing:
        yield known.astype(float)
        yield (~known).astype(float)


def floor_of_equal_rows(rows: Rows, binned: BinnedRows) -> float:
    """What rows that are equal in every column cost in any tree; 0 unless all rows are in memory."""
    if not rows.in_memory:
        return 0.0
    data = rows.load()
    kept = data.w > 0
    group, count = np.unique(rows.map(_row_marks)[kept], return_inverse=True, return_counts=True)[1:]
    again = count[group] > 1  # all others differ from every row
    if not again.any():
        return 0.0
    X = dense(data.X[np.flatnonzero(kept)[again]]).astype(np.float64)
    X = np.where(np.isnan(X), np.inf, X) + 0.0  # missing values are equal, and so are 0 and -0
    group = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    sums = np.stack([np.bincount(group, part) for part in binned.channels(np.flatnonzero(again)).T], axis=1)
    return float(binned.cost(sums).sum())


def _row_marks(block: Block) -> Array:
    """A number for each row; equal rows have equal ones, others mostly not."""
    found = np.zeros(len(block.w), np.uint64)
    for x in dense(block.X).T:
        bits = (np.where(np.isnan(x), np.inf, x).astype(np.float64) + 0.0).view(np.uint64)
        found = (found ^ bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(32)
    return found


# Certificates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BestTreeClaim:
    """What a tree is said to be the best of."""

    depth: int
    classes: int  # 0 for amounts
    least: float = 0.0  # share of the weight that a leaf has at least


def certify_best_tree(tree: Any, borders: list[Array], claim: BestTreeClaim, rows: Rows, tol: float) -> Certificate:
    """Check what a tree says of its nodes, and bound the cost of all trees of its depth."""
    depth, classes = claim.depth, claim.classes
    own = plain_tree(tree, rows.n_features)
    claims = NodeClaims(
        np.asarray(tree.n_node_samples), np.asarray(tree.weighted_n_node_samples),
        np.asarray(tree.value, np.float64), np.asarray(tree.impurity),
    )  # fmt: skip
    criterion, kinds = ("misclassification", (classes,)) if classes else ("squared_error", ())
    checks = check_nodes(own, claims, criterion, kinds, rows)
    deep = float(np.maximum(own.depth.max() - depth, 0))
    leaf = own.left < 0
    light = float((claims.weight[leaf] < claim.least * claims.weight[0] * (1 - 1e-12)).sum())
    checks = (*checks, Check("levels beyond the deepest allowed", deep, 0.0), Check("leaves too light", light, 0.0))
    binned = binned_rows(rows, borders, classes)
    total = float(binned.totals.sum() if classes else binned.totals[0])
    # Sums of n numbers are off by their rounding, and so are differences of squares.
    size = float(binned.totals[0 if classes else 2]) + float(binned.cost(binned.totals))
    rounding = 32 * np.log2(2 + rows.n_rows) * EPS * size
    exact = classes > 0 and binned.whole_weights
    floor = floor_of_equal_rows(rows, binned)
    bound = max(cheapest_tree(binned, depth), floor, 0.0) - (0.0 if exact else rounding)
    cost = float(claims.weight[leaf] @ claims.impurity[leaf])
    bound = max(0.0, min(bound, cost))
    limit = 4 * rounding / total
    kind = "optimal" if (cost - bound) / total <= limit else "bounded"
    words = BEST if kind == "optimal" else BOUNDED
    facts = {"rows equal in every column cost": floor / total, "bins": sum(len(own) + 1 for own in borders)}
    scale = max(size / total, limit, np.finfo(float).tiny)
    return Certificate(
        kind, words, cost / total, bound / total, tol, limit, checks=checks, facts=facts, scale=scale  # type: ignore[arg-type]
    )  # fmt: skip


def audit_best_tree(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted OptimalTreeClassifier or OptimalTreeRegressor."""
    classes = getattr(model, "classes_", None)
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        rows = apply_class_weight(encode_labels(rows, np.asarray(classes)), model.class_weight)
    borders = _checked_borders(model.borders_, rows.n_features)
    k = 0 if classes is None else len(classes)
    if np.asarray(model.tree_.n_classes).tolist() != [max(k, 1)]:
        raise DataError(got="a tree of other classes than classes_", wanted="a fitted tree", fix="Fit it again.")
    claim = BestTreeClaim(int(model.max_depth), k, float(model.min_weight_fraction_leaf))
    certificate = certify_best_tree(model.tree_, borders, claim, rows, tol)
    if not (certificate.holds and rows.in_memory):
        return certificate
    data = rows.load()
    off = thresholds_off_middle(plain_tree(model.tree_, rows.n_features), dense(data.X[data.w > 0]), borders)
    check = Check("thresholds that are not midway between neighbouring values that a border parts", float(off), 0.0)
    return replace(certificate, checks=(*certificate.checks, check))


def _checked_borders(borders: Any, d: int) -> list[Array]:
    """Ascending borders for each column; any of them prove a bound, finer ones a better one."""
    found = [np.asarray(own, np.float64) for own in borders]
    if len(found) != d or not all(own.ndim == 1 and (np.diff(own) > 0).all() for own in found):
        raise DataError(got="borders_ that do not ascend", wanted=f"those of {d} columns", fix="Fit it again.")
    return found
