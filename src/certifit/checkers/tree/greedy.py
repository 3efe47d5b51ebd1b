"""Whether the splits of a tree are the best of all their candidates: every threshold of every column, scored anew.

At each node that is looked at, the rows are sorted along every column. The score of a split is what it lowers the
node's impurity by, times the node's weight. All nodes of small trees are looked at, of large ones a seeded sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from certifit.checkers.tree.bin_borders import BinBorders
from certifit.checkers.tree.plain_tree import PlainTree
from certifit.core import Check, wants_best_proof
from certifit.rows import Array, Block

NEVER_PARTED = 1e-7  # scikit-learn's trees take values that are no further apart than this for equal


@dataclass(frozen=True)
class GreedyTuning:
    """How many entries (rows times columns) of how many nodes are scored again, and the seed that draws them."""

    entries: int = 1_000_000
    nodes: int = 1000
    median_rows: int = 50  # absolute errors of a node take this many times less than the square of its rows
    border_rows: int = 100_000_000  # on which bins are held against their share
    seed: int = 0
    noise: float = 0.0  # by how much the targets may be off, where they were computed anew


@dataclass(frozen=True)
class GrowthClaim:
    """The rules by which a tree is said to have grown."""

    criterion: str  # gini, entropy, squared_error, absolute_error or poisson
    classes: tuple[int, ...]  # of each target; () for amounts
    split_rows: int = 2  # fewest rows of a node that is split
    leaf_rows: int = 1  # fewest rows of a leaf
    leaf_weight: float = 0.0
    depth: float = np.inf  # of the deepest leaf allowed
    decrease: float = 0.0  # least fall of the impurity, times the node's share of all weight
    every_column: bool = True  # whether each split was chosen among all columns
    every_threshold: bool = True  # whether it was chosen among all thresholds of its column
    categories: Array | None = None  # (d,) which columns hold categories, split along the orders of their means
    ahead: bool = False  # whether splits were chosen two levels ahead, which is not checked
    complete: bool = True  # whether all was split that could be; not with a limit on leaves, nor after pruning
    apart: float = 0.0  # values no further apart than this, in float32, were never parted
    bins: BinBorders | None = None  # where thresholds are borders between bins
    midpoints: bool = False  # whether thresholds are in the middle between a node's nearest rows
    seed: int | None = None  # by which a random splitter drew thresholds, where that is known


@dataclass(frozen=True)
class NodeRows:
    """The rows of one node: values (n, d), targets (n, t), what they add to the sums (n, c), and weights (n,)."""

    X: Array
    y: Array
    sums: Array
    w: Array


def quick(tuning: GreedyTuning = GreedyTuning()) -> GreedyTuning:
    """What a fit looks at: enough to see a growth that goes wrong; more where the best proof is wanted."""
    if wants_best_proof():
        return tuning
    return replace(tuning, nodes=4, entries=20_000, border_rows=3000)


def _noise_share(node: NodeRows, noise: float) -> float:
    """By how much of a node's impurity the gain of a split is unknown where every target may be off by `noise`."""
    if not noise:
        return 0.0
    centre = np.average(node.y, axis=0, weights=node.w)
    spread = float(np.sqrt(np.average((node.y - centre) ** 2, axis=0, weights=node.w).sum()))
    share = noise / spread if spread > 0 else np.inf
    return 8 * share * (1 + share)


def check_greedy(
    tree: PlainTree, claim: GrowthClaim, X: Array, y: Array, w: Array, tuning: GreedyTuning = GreedyTuning()
) -> tuple[tuple[Check, ...], dict[str, str]]:
    """Score the splits of some nodes against all candidates; rows (n, d) have positive weights."""
    leaf, y = tree.leaves(Block(X, y, w, 0)), y.reshape(len(y), -1)
    order, first, count = _rows_below(tree, leaf)
    work = count * np.maximum(count // tuning.median_rows, 1) if claim.criterion == "absolute_error" else count
    nodes = _sample(np.where(count > 1, work * X.shape[1], 0), tuning)
    missed, left_whole, total, bins = 0.0, 0.0, float(w.sum()), claim.bins
    tree = tree if bins is None else bins.tree_of_codes(tree)
    for k in nodes:
        here = order[first[k] : first[k] + count[k]]
        values = X[here] if bins is None else bins.codes(X[here])
        node = NodeRows(values, y[here], _row_sums(claim, y[here], w[here]), w[here])
        unknown = _noise_share(node, tuning.noise)
        if tree.left[k] < 0:
            left_whole += _could_be_split(tree, claim, k, node, total) if unknown < 1 else 0.0
        else:
            lost = lost_digits(node.w, w, total, bins is not None and max(claim.classes, default=0) > 2)
            missed = max(missed, _missed(tree, claim, k, node) - lost - unknown)
    checks = [Check("best split of a node missed by, of its impurity", missed, 1e-10)]
    if claim.complete:
        checks.append(Check("leaves that should have been split", left_whole, 0.0))
    return (*checks, *_check_limits(tree, claim, count)), {"nodes scored again": f"{len(nodes)} of {len(tree.left)}"}


def _rows_below(tree: PlainTree, leaf: Array) -> tuple[Array, Array, Array]:
    """Rows in the order of the leaves from left to right; for each node where its rows begin, and how many."""
    count = tree.adds_up(np.bincount(leaf, minlength=len(tree.left)))
    first = np.zeros(len(tree.left), np.int64)
    for level in tree.inner_levels:
        first[tree.left[level]] = first[level]
        first[tree.right[level]] = first[level] + count[tree.left[level]]
    return np.argsort(first[leaf], kind="stable"), first, count


def _sample(entries: Array, tuning: GreedyTuning) -> Array:
    """Nodes in a seeded order, as many as the work allows; one at least."""
    nodes = np.flatnonzero(entries)
    if entries.sum() <= tuning.entries and len(nodes) <= tuning.nodes:
        return nodes
    drawn = np.random.default_rng(tuning.seed).permutation(nodes)[: tuning.nodes]
    fits = np.cumsum(entries[drawn]) <= tuning.entries
    small = drawn[np.argmin(entries[drawn])][None]
    return np.sort(drawn[fits]) if fits.any() else small


def _row_sums(claim: GrowthClaim, y: Array, w: Array) -> Array:
    """What each row adds to the sums of a child (n, c)."""
    if claim.classes:
        marks = [y[:, t].astype(np.int64)[:, None] == np.arange(k) for t, k in enumerate(claim.classes)]
        return w[:, None] * np.concatenate(marks, axis=1)
    # About the node's mean, so that nothing cancels; for counts the sums themselves matter.
    centre = 0.0 if claim.criterion == "poisson" else np.average(y, axis=0, weights=w)
    return w[:, None] * (y - centre)


def _absolute_errors(node: NodeRows, inside: Array) -> Array:
    """Σ w |y - median| over the rows of each set (s, n), added up over the targets."""
    found = np.zeros(len(inside))
    for y in node.y.T:
        order = np.argsort(y, kind="stable")
        w = np.where(inside[:, order], node.w[order], 0.0)
        reached = np.cumsum(w, axis=1)
        middle = y[order][np.argmax(2 * reached >= reached[:, -1:], axis=1)]
        found += (w * np.abs(y[order] - middle[:, None])).sum(axis=1)
    return found


def _scores(claim: GrowthClaim, node: NodeRows, inside: Array) -> Array:
    """The scores of splits, each given by the rows that go left (s, n)."""
    if claim.criterion == "absolute_error":
        return -_absolute_errors(node, inside) - _absolute_errors(node, ~inside)
    # Both sides are added up: differences would leave a light one next to a heavy one few digits.
    left, right = (_purity(claim, side @ node.sums, side @ node.w) for side in (inside, ~inside))
    return left + right


def _purity(claim: GrowthClaim, sums: Array, weight: Array) -> Array:
    """The score of children with these sums (…, c) and weights (…,): the larger, the purer; -inf if not allowed."""
    weight = np.maximum(weight, np.finfo(float).tiny)
    if claim.criterion in ("gini", "squared_error"):
        return (sums**2).sum(axis=-1) / weight
    counted = np.maximum(sums, 0)  # a difference of sums may be less by rounding
    found = xlogy(counted, counted / weight[..., None]).sum(axis=-1)
    # Children without any count are not allowed, and what is left of their sum may be rounding.
    some = (sums > 1e-9 * sums.max(initial=0.0)).all(axis=-1)
    return np.where(some, found, -np.inf) if claim.criterion == "poisson" else found


def _orders(claim: GrowthClaim, node: NodeRows, j: int) -> Iterator[Array]:
    """The places (n,) of categories in the orders along which they may be split; NaN for missing ones."""
    x = node.X[:, j]
    known = np.flatnonzero(~np.isnan(x))
    values, code = np.unique(x[known], return_inverse=True)
    weight = np.bincount(code, node.w[known], len(values))
    channels = [1] if claim.classes == (2,) else range(node.sums.shape[1])
    for channel in channels:
        mean = np.bincount(code, node.sums[known, channel], len(values)) / weight
        # Means that are equal but for rounding keep the order of the categories.
        place = np.empty(len(values))
        place[np.argsort(np.round(mean, 12 - _digits(mean)), kind="stable")] = np.arange(len(values))
        found = np.full(len(x), np.nan)
        found[known] = place[code]
        yield found


def _digits(values: Array) -> int:
    """The number of digits before the point of the largest of some values."""
    largest = float(np.abs(values).max(initial=0.0))
    return int(np.ceil(np.log10(largest))) if largest > 0 else 0


def _best_split(claim: GrowthClaim, node: NodeRows, columns: Sequence[int]) -> float:
    """The best score of any split of a node along some columns; -inf if there is none."""
    plain = [j for j in columns if claim.categories is None or not claim.categories[j]]
    orders = [node.X[:, plain]] + [x[:, None] for j in set(columns) - set(plain) for x in _orders(claim, node, j)]
    if claim.criterion == "absolute_error":
        orders = [places[:, [j]] for places in orders for j in range(places.shape[1])]
    return max(_best_along(claim, node, places) for places in orders)


def _best_along(claim: GrowthClaim, node: NodeRows, places: Array) -> float:
    """The best score of any split along one of the columns of `places` (n, k), missing values on either side."""
    n = len(places)
    order = np.argsort(places, axis=0, kind="stable")
    x = np.take_along_axis(places, order, axis=0)
    missing = np.isnan(x).sum(axis=0)
    ends = np.zeros(x.shape, bool)  # whether a split may come after this many rows
    ends[:-1] = _are_apart(x[:-1], x[1:], claim.apart)
    partly = np.flatnonzero((missing > 0) & (missing < n))
    ends[n - 1 - missing[partly], partly] = True
    left, w = np.cumsum(node.sums[order], axis=0), np.cumsum(node.w[order], axis=0)
    right, rest = sums_after(node.sums[order]), sums_after(node.w[order])
    rows = np.broadcast_to(np.arange(1, n + 1)[:, None], x.shape)
    best = -np.inf
    for also_left in (False, True) if len(partly) else (False,):
        if also_left:  # the rows whose value is missing come first
            lost = np.isnan(places[:, partly])
            left, w = left[:, partly] + lost.T @ node.sums, w[:, partly] + node.w @ lost
            rows, ends, order = rows[:, partly] + missing[partly], ends[:, partly], order[:, partly]
            known = ~np.isnan(x[:, partly])
            right, rest = sums_after(node.sums[order] * known[..., None]), sums_after(node.w[order] * known)
        allowed = ends & (rows >= claim.leaf_rows) & (n - rows >= max(claim.leaf_rows, 1))
        allowed &= (w >= claim.leaf_weight) & (rest >= claim.leaf_weight)
        if not allowed.any():
            continue
        if claim.criterion == "absolute_error":
            first = np.argsort(np.roll(order[:, 0], missing[0]) if also_left else order[:, 0])
            best = max(best, float(_scores(claim, node, first < rows[allowed][:, None]).max()))
        else:
            score = _purity(claim, left[allowed], w[allowed]) + _purity(claim, right[allowed], rest[allowed])
            best = max(best, float(score.max()))
    return best


def sums_after(parts: Array) -> Array:
    """What comes after each entry of the first axis, added up from the end: a difference would lose digits."""
    found = np.zeros_like(parts)
    found[:-1] = np.cumsum(parts[:0:-1], axis=0)[::-1]
    return found


def _are_apart(low: Array, high: Array, apart: float) -> Array:
    """Whether a threshold may lie between two values."""
    if not apart:
        return high > low
    with np.errstate(over="ignore"):
        return np.asarray(high.astype(np.float32) > low.astype(np.float32) + np.float32(apart))


def _missed(tree: PlainTree, claim: GrowthClaim, k: int, node: NodeRows) -> float:
    """By how much the best split is better than the one made, as a share of what there was to gain in the node."""
    if not claim.every_threshold:
        return 0.0
    j = int(tree.column[k])
    left = tree.goes_left(np.full(len(node.w), k), node.X[:, j])
    made = float(_scores(claim, node, left[None])[0])
    best = _best_split(claim, node, range(node.X.shape[1]) if claim.every_column else [j])
    return max(0.0, best - made) / _scale(claim, node)


def lost_digits(own: Array, w: Array, total: float, short: bool = False) -> float:
    """What shares of a node's impurity its weights cannot tell apart: they are counted in units of 2⁻⁶¹ of all.

    Whole weights are counted as they are. More than a millionth is excused of no node. `short`: growth from codes
    counts the weights of many classes in units of 2⁻³⁹.
    """
    unit = 2.0**-38 if short else 2.0**-58
    return 0.0 if (w == np.rint(w)).all() else min(unit * total / float(own.min()), 1e-6)


def _scale(claim: GrowthClaim, node: NodeRows) -> float:
    """The size of the terms that scores of a node add up."""
    if claim.criterion == "absolute_error":
        return float(np.abs(node.sums).sum()) or 1.0
    if claim.criterion == "squared_error":
        return float((node.sums**2 / node.w[:, None]).sum()) or 1.0
    if claim.criterion == "poisson":
        return float(np.abs(xlogy(node.sums, node.sums / node.w[:, None])).sum() + node.sums.sum()) or 1.0
    return float(node.w.sum())


def _could_be_split(tree: PlainTree, claim: GrowthClaim, k: int, node: NodeRows, total: float) -> bool:
    """Whether a leaf is one that the rules say must be split."""
    n = len(node.w)
    if tree.depth[k] >= claim.depth or n < claim.split_rows or n < 2 * claim.leaf_rows:
        return False
    if node.w.sum() < 2 * claim.leaf_weight or (node.y == node.y[0]).all():
        return False
    best = _best_split(claim, node, range(node.X.shape[1]))
    if claim.criterion == "absolute_error":
        whole = -float(_absolute_errors(node, np.ones((1, n), bool))[0])
    else:
        whole = float(_purity(claim, node.sums.sum(axis=0), np.array(node.w.sum())))
    unit = node.y.shape[1] * (np.log(2) if claim.criterion == "entropy" else 1.0)
    rounding = 1e-10 * _scale(claim, node)
    return best > -np.inf and (best - whole) / (unit * total) > claim.decrease + rounding / (unit * total)


def _check_limits(tree: PlainTree, claim: GrowthClaim, count: Array) -> tuple[Check, ...]:
    """Whether depth and numbers of rows keep to the rules."""
    few = (count[tree.left < 0] < claim.leaf_rows) & bool(tree.depth.max())  # a root that is a leaf has what there is
    small = count[tree.inner] < claim.split_rows
    deep = float(np.maximum(tree.depth.max() - claim.depth, 0))
    return (
        Check("levels beyond the deepest allowed", deep, 0.0),
        Check("leaves and splits with too few rows", float(few.sum() + small.sum()), 0.0),
    )
