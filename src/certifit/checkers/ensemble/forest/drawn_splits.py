"""Whether splits are the best that their nodes were shown: columns drawn by the node's key, borders of the bins.

A node of the sample is scored again from its rows, in floating point: every border of every column that its key
draws or, for extremely randomised trees, the one border that the key draws for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import xlogy

from certifit.checkers.ensemble.forest.plain_bootstrap import column_order, mixed, node_keys, share_of
from certifit.checkers.ensemble.forest.plain_nodes import ClaimedTree, add_up
from certifit.checkers.tree.greedy import lost_digits, sums_after
from certifit.checkers.tree.plain_tree import PlainTree
from certifit.rows import Array

MISSING = 255


@dataclass(frozen=True)
class SplitClaim:
    """The rules by which a forest says that its trees have grown."""

    columns: int  # how many columns a node looks at
    split_rows: int = 2
    leaf_rows: int = 1
    leaf_share: float = 0.0  # least weight of a leaf, as a share of the tree's
    depth: float = np.inf
    decrease: float = 0.0
    drawn: bool = False  # one border drawn for each column instead of the best
    complete: bool = True  # whether all was split that could be; not with a limit on leaves, nor after pruning
    free: bool = True  # whether every split was allowed; not with monotone columns


@dataclass(frozen=True)
class ScoredNode:
    """The rows of one node: what they add to the sums (n, c), their weights (n,), and a column's codes when asked."""

    X: Array  # of all rows
    rows: Array  # (n,) those of the node
    borders: tuple[Array, ...]
    sums: Array
    w: Array
    key: int
    coded: dict[int, Array] = field(default_factory=dict)

    def codes(self, j: int) -> Array:
        """The number of borders below each value of a column (n,); 255 where it is missing."""
        if j not in self.coded:
            x = self.X[self.rows, j].astype(np.float64)
            self.coded[j] = np.where(np.isnan(x), MISSING, np.searchsorted(self.borders[j], x, side="left"))
        return self.coded[j]

    def varies(self, j: int) -> bool:
        """Whether there is more than one code in a column."""
        return bool(self.codes(j).min() < self.codes(j).max())


def check_splits(
    claimed: ClaimedTree, claim: SplitClaim, borders: tuple[Array, ...], at: Array, data: tuple[Array, Array, Array],
    seed: int, effort: tuple[int, int],
) -> tuple[float, float, float, int]:  # fmt: skip
    """Score some nodes again; `data` are X (n, d), y (n, t) and the tree's weights, `effort` most entries and nodes.

    Returned are by how much the best split was missed (as a share of the node's impurity), how many splits or leaves
    break the rules, how many thresholds are no border, or not the middle one of those that split alike, and how
    many nodes were looked at.
    """
    X, y, w = data
    tree, d = claimed.tree, X.shape[1]
    here = np.flatnonzero(w > 0)
    leaf = at[here]
    count = add_up(tree, np.bincount(leaf, minlength=len(tree.left))).astype(np.int64)
    if count.min() == 0:  # a node that no row reaches
        return float("inf"), 0.0, 0.0, 0
    first = np.zeros(len(tree.left), np.int64)
    for k in tree.inner[np.argsort(tree.depth[tree.inner], kind="stable")]:
        first[tree.left[k]], first[tree.right[k]] = first[k], first[k] + count[tree.left[k]]
    order = here[np.argsort(first[leaf], kind="stable")]
    strange = _strange_thresholds(tree.column[tree.inner], tree.threshold[tree.inner], borders)
    keys = node_keys(tree.left, tree.right, seed, d)
    rules = _broken_rules(claimed, claim, count)
    missed, nodes = 0.0, _sample(count * min(d, 4 * claim.columns), *effort)
    few = int(count[tree.inner].sum()) <= effort[0]
    placed = tree.inner if few else np.intersect1d(nodes, tree.inner)
    strange += _misplaced_thresholds(tree, claim, borders, (X, order), (first, count), keys, placed)
    for k in nodes:
        rows = order[first[k] : first[k] + count[k]]
        node = ScoredNode(X, rows, borders, _row_sums(claimed, y[rows], w[rows]), w[rows], int(keys[k]))
        if tree.left[k] >= 0:
            lost = lost_digits(node.w, w[here], float(w.sum()), max(claimed.classes, default=0) > 2)
            missed = max(missed, _missed(claimed, claim, borders, int(k), node) - lost)
        elif claim.complete and claim.free:
            rules += _could_be_split(claimed, claim, borders, int(k), node, float(w.sum()))
    return missed, float(rules), float(strange), len(nodes)


def _strange_thresholds(column: Array, threshold: Array, borders: tuple[Array, ...]) -> int:
    """How many thresholds are neither a border of their column nor infinite."""
    found = 0
    for j in np.unique(column):
        asked = threshold[(column == j) & ~np.isinf(threshold)]
        found += int((~np.isin(asked, borders[j])).sum())
    return found


def _misplaced_thresholds(
    tree: PlainTree, claim: SplitClaim, borders: tuple[Array, ...], data: tuple[Array, Array],
    spans: tuple[Array, Array], keys: Array, nodes: Array,
) -> int:  # fmt: skip
    """How many thresholds are not where the rules put them, so that new rows between two of the fit go astray.

    It is the border that the node's key draws, or the middle one of those that split alike. `data` are X (n, d) and
    its rows in the order of the leaves; `spans` say where those of each node begin, and how many there are.
    """
    (X, order), (first, count), found = data, spans, 0
    nodes = nodes[np.isfinite(tree.threshold[nodes])]
    for j in np.unique(tree.column[nodes]):
        here = nodes[tree.column[nodes] == j]
        begin = np.cumsum(count[here]) - count[here]
        rows = np.arange(count[here].sum()) + np.repeat(first[here] - begin, count[here])
        x = X[order[rows], j].astype(np.float64)
        codes = np.where(np.isnan(x), MISSING, np.searchsorted(borders[j], x, side="left"))
        children = np.column_stack([begin, begin + count[tree.left[here]]]).ravel()
        low = np.minimum.reduceat(codes, children).reshape(-1, 2)
        high = np.maximum.reduceat(np.where(codes == MISSING, -1, codes), children).reshape(-1, 2)
        if claim.drawn:
            some = low.min(axis=1) < high.max(axis=1)
            here, ends = here[some], (low.min(axis=1)[some], high.max(axis=1)[some])
            wanted = drawn_borders(borders[j], keys[here], j, *ends)
        else:
            some = (high[:, 0] >= 0) & (low[:, 1] < MISSING)
            here, wanted = here[some], (high[some, 0] + low[some, 1] - 1) // 2
        found += int((tree.threshold[here] != borders[j][wanted]).sum())
    return found


def _sample(cost: Array, entries: int, nodes: int) -> Array:
    """Nodes in a seeded order, until their cost reaches the budget; the root is always among them."""
    order = np.random.default_rng(0).permutation(len(cost))
    order = np.concatenate([[0], order[order != 0]])
    return order[: min(nodes, 1 + int(np.searchsorted(np.cumsum(cost[order]), entries)))]


def _broken_rules(claimed: ClaimedTree, claim: SplitClaim, count: Array) -> int:
    tree, leaf = claimed.tree, claimed.tree.left < 0
    few = (count[leaf] < claim.leaf_rows).sum()
    light = (claimed.weight[leaf] < claim.leaf_share * claimed.weight[0] * (1 - 1e-9)).sum()
    small = (few + light) * bool(tree.depth.max())  # a root that is a leaf has the rows there are
    return int(small + (count[~leaf] < claim.split_rows).sum() + (tree.depth > claim.depth).sum())


def _row_sums(claimed: ClaimedTree, y: Array, w: Array) -> Array:
    """What each row adds to the sums of a child (n, c)."""
    if claimed.classes:
        marks = [y[:, [t]].astype(np.int64) == np.arange(k) for t, k in enumerate(claimed.classes)]
        return np.asarray(w[:, None] * np.concatenate(marks, axis=1))
    centre = 0.0 if claimed.criterion == "poisson" else np.average(y, axis=0, weights=w)
    return np.asarray(w[:, None] * (y - centre))


def _purity(criterion: str, sums: Array, weight: Array) -> Array:
    """The score of children with these sums (…, c) and weights (…,): the larger, the purer."""
    weight = np.maximum(weight, np.finfo(float).tiny)
    if criterion in ("gini", "squared_error"):
        return np.asarray((sums**2).sum(axis=-1) / weight)
    counted = np.maximum(sums, 0)
    found = xlogy(counted, counted / weight[..., None]).sum(axis=-1)
    some = (sums > 1e-9 * np.max(sums, initial=0.0)).all(axis=-1)
    return np.where(some, found, -np.inf) if criterion == "poisson" else np.asarray(found)


def _scale(claimed: ClaimedTree, node: ScoredNode) -> float:
    """The size of the terms that scores of a node add up."""
    if claimed.criterion == "squared_error":
        return float((node.sums**2 / node.w[:, None]).sum()) or 1.0
    if claimed.criterion == "poisson":
        return float(np.abs(xlogy(node.sums, node.sums / node.w[:, None])).sum() + node.sums.sum()) or 1.0
    return float(node.w.sum())


def _shown_columns(claim: SplitClaim, node: ScoredNode) -> list[int]:
    """The columns that vary among those which the node's key draws: so many, or as many as it takes to find one."""
    d = node.X.shape[1]
    shown = [j for j in column_order(node.key, d, min(claim.columns, d)) if node.varies(j)]
    return shown or next(([j] for j in column_order(node.key, d, d) if node.varies(j)), [])


def drawn_borders(border: Array, keys: Array, j: int, low: Array, high: Array) -> Array:
    """The border of each node nearest to a number drawn between those next to its lowest and its highest code."""
    share = share_of(mixed(keys ^ np.uint64(0xD1B54A32D192ED03), j))
    drawn = border[low] * (1 - share) + border[high - 1] * share
    k = np.clip(np.searchsorted(border, drawn, side="right") - 1, low, high - 1)
    after = np.minimum(k + 1, high - 1)
    return np.where(border[after] - drawn < drawn - border[k], after, k)


def _best_along(
    claimed: ClaimedTree, claim: SplitClaim, border: Array, j: int, node: ScoredNode, total: float
) -> float:
    """The best score of any split along a column that the node was shown; -inf if there is none."""
    codes = node.codes(j)
    c = node.sums.shape[1]
    sums = np.stack([np.bincount(codes, node.sums[:, i], 256) for i in range(c)], axis=1)
    weight, rows = np.bincount(codes, node.w, 256), np.bincount(codes, minlength=256)
    known = np.flatnonzero(rows[:MISSING])
    if not len(known):
        return -np.inf
    last = known[:-1]  # codes after which a split may come
    if claim.drawn and len(known) > 1:
        drawn = drawn_borders(border, np.array([node.key], np.uint64), j, known[:1], known[-1:])
        last = known[known <= drawn][-1:]
    best = -np.inf
    n = len(node.w)
    for missing_left in (False, True) if rows[MISSING] else (False,):
        places = np.append(last, known[-1]) if rows[MISSING] and not missing_left else last
        left, w = np.cumsum(sums[:MISSING], axis=0)[places], np.cumsum(weight[:MISSING])[places]
        right, rest = sums_after(sums[:MISSING])[places], sums_after(weight[:MISSING])[places]
        r = np.cumsum(rows[:MISSING])[places]
        if missing_left:
            left, w, r = left + sums[MISSING], w + weight[MISSING], r + rows[MISSING]
        else:
            right, rest = right + sums[MISSING], rest + weight[MISSING]
        least = claim.leaf_share * total * (1 + 1e-9)
        allowed = (r >= claim.leaf_rows) & (n - r >= claim.leaf_rows)
        if least > 0:
            allowed &= (w >= least) & (rest >= least)
        if allowed.any():
            score = _purity(claimed.criterion, left, w) + _purity(claimed.criterion, right, rest)
            best = max(best, float(score[allowed].max()))
    return best


def _missed(claimed: ClaimedTree, claim: SplitClaim, borders: tuple[Array, ...], k: int, node: ScoredNode) -> float:
    """By how much the best split is better than the one made, as a share of the node's impurity; inf if forbidden."""
    tree, j = claimed.tree, int(claimed.tree.column[k])
    shown = _shown_columns(claim, node)
    if j not in shown:
        return float("inf")
    border = np.searchsorted(borders[j], tree.threshold[k], side="left") if np.isfinite(tree.threshold[k]) else 254
    left = np.where(node.codes(j) == MISSING, tree.missing_left[k], node.codes(j) <= border)
    sides = [(node.sums[side].sum(axis=0), np.array(node.w[side].sum())) for side in (left, ~left)]
    made = sum(float(_purity(claimed.criterion, sums, weight)) for sums, weight in sides)
    total = float(claimed.weight[0])
    best = max(_best_along(claimed, claim, borders[c], c, node, total) for c in shown) if claim.free else made
    return max(0.0, best - made) / _scale(claimed, node)


def _could_be_split(
    claimed: ClaimedTree, claim: SplitClaim, borders: tuple[Array, ...], k: int, node: ScoredNode, total: float
) -> bool:
    """Whether a leaf is one that the rules say must be split."""
    n = len(node.w)
    if claimed.tree.depth[k] >= claim.depth or n < claim.split_rows or n < 2 * claim.leaf_rows:
        return False
    if (node.sums / node.w[:, None] == node.sums[0] / node.w[0]).all():
        return False
    best = max((_best_along(claimed, claim, borders[c], c, node, total) for c in _shown_columns(claim, node)),
               default=-np.inf)  # fmt: skip
    whole = float(_purity(claimed.criterion, node.sums.sum(axis=0), np.array(node.w.sum())))
    unit = claimed.value.shape[1] * (np.log(2) if claimed.criterion == "entropy" else 1.0)
    rounding = 1e-9 * _scale(claimed, node)
    return best > -np.inf and best - whole > claim.decrease * total * unit + rounding
