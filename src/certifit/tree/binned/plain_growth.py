"""Growing a tree on a small binned table by operations on whole arrays: nothing has to be compiled for it.

Sums are whole numbers and gains are computed as in the compiled loops (`growth_loops`, `search_loops`), so that both
grow the same tree. There are numbers only here, no categories, directions, groups of columns or draws of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.numerics.compiled.random_bits import random_bits_of_pairs
from certifit.rows import Array
from certifit.tree.binned.growth_loops import GrowingTree
from certifit.tree.binned.search_loops import BinnedRules


class NodeHistogram(NamedTuple):
    """What a node's rows add up to in every bin of every column, and how many they are."""

    sums: Array  # (d, 256) int64: packed
    counts: Array  # (d, 256)

    def without(self, other: NodeHistogram) -> NodeHistogram:
        """The histogram of the other child."""
        return NodeHistogram(self.sums - other.sums, self.counts - other.counts)


def plain_pack(g: Array, h: Array, scales: tuple[float, float], shift: int, seed: int) -> Array:
    """Round the pairs (g, h) of all rows up or down at random, by their numbers alone, and pack them."""
    bits = random_bits_of_pairs(seed, np.arange(len(g)))
    up_g = (bits >> np.uint64(32)).astype(np.float64) / 4294967296.0
    up_h = (bits & np.uint64(0xFFFFFFFF)).astype(np.float64) / 4294967296.0
    qg = np.floor(g * scales[0] + up_g).astype(np.int64)
    qh = np.maximum(np.floor(h * scales[1] + up_h).astype(np.int64), 1)
    return (qg << shift) + qh


def grow_plainly(tree: GrowingTree, rules: BinnedRules) -> None:
    """Grow a whole tree, whose root is there: the leaf that gains most is split next."""
    nodes: Any = tree.nodes  # a record array
    waiting: dict[int, NodeHistogram] = {}
    root = histogram(tree, slice(0, len(tree.rows)))
    nodes[0].total, nodes[0].counted = root.sums[0].sum(), not rules.by_hessian
    if search(tree, rules, 0, root):
        waiting[0] = root
    while waiting and (rules.leaves < 0 or tree.free[-1] < rules.leaves):
        best = max(waiting, key=lambda k: (nodes[k].gain, -k)) if rules.leaves >= 0 else max(waiting)
        whole = waiting.pop(best)
        made, light = _split(tree, rules, best)
        searched = nodes[best].depth + 1 < rules.depth and (rules.leaves < 0 or tree.free[-1] < rules.leaves)
        if not searched or nodes[made : made + 2].count.max() < 2 * rules.leaf_rows:
            continue
        one = histogram(tree, slice(*tree.runs[light, 0]))
        for k, found in ((light, one), (2 * made + 1 - light, whole.without(one))):
            if search(tree, rules, k, found):
                waiting[k] = found


def histogram(tree: GrowingTree, run: slice) -> NodeHistogram:
    """The histogram of a run of rows."""
    d = len(tree.columns)
    rows = tree.rows[run]
    place = (tree.codes.reshape(-1, d)[rows] + 256 * np.arange(d)).ravel()
    sums = np.zeros(256 * d, np.int64)
    np.add.at(sums, place, np.repeat(tree.packed[rows], d))
    return NodeHistogram(sums.reshape(d, 256), np.bincount(place, minlength=256 * d).reshape(d, 256))


def search(tree: GrowingTree, rules: BinnedRules, k: int, found: NodeHistogram) -> bool:
    """Note the best split of a node, and where each code goes; return whether there is one that gains."""
    node = tree.nodes[k]
    node.gain, node.column = 0.0, -1
    if node.count < 2 * rules.leaf_rows or node.depth >= rules.depth:
        return False
    mask, total = (1 << rules.shift) - 1, int(node.total)
    G, H = float(total >> rules.shift), float(total & mask)
    v = -G / (H + rules.l2) * rules.value_unit / rules.value_unit
    whole = -2.0 * G * v - (H + rules.l2) * v * v
    place = np.flatnonzero(found.sums)
    place = place[place & 255 != 255]
    if not len(place):
        return False
    column, b = place >> 8, place & 255
    sums, counts = (_running(x, place, column) for x in found)
    lost, last = found.sums[:, 255], tree.columns[:, 0] - 1
    best = None  # gain, minus column, minus side, border, sum on the left: of equal gains the lowest column wins
    for side in range(2 if lost.any() else 1):  # missing values go right, then left
        s = sums + side * lost[column]
        rows = s & mask if rules.by_hessian else counts + side * found.counts[column, 255]
        below = (s & mask).astype(np.float64)
        above = H - below
        allowed = (b < last[column]) & ((side == 0) | (lost[column] != 0))
        if side == 0:
            allowed |= lost[column] != 0
        allowed &= (rows >= rules.leaf_rows) & (node.count - rows >= rules.leaf_rows)
        allowed &= (below >= rules.leaf_hessian) & (above >= rules.leaf_hessian)
        some = np.flatnonzero(allowed)
        if not len(some):
            continue
        s, below, above = s[some], below[some], above[some]
        GL, GR = (s >> rules.shift).astype(np.float64), ((total - s) >> rules.shift).astype(np.float64)
        gain = GL * GL / (below + rules.l2) + GR * GR / (above + rules.l2)
        at = int(np.argmax(gain))
        one = (float(gain[at]), -int(column[some[at]]), -side, int(b[some[at]]), int(s[at]))
        best = one if best is None or one[:3] > best[:3] else best
    if best is None or not best[0] > whole:
        return False
    node.gain, node.column, node.missing_left = best[0] - whole, -best[1], -best[2]
    node.border, node.left_total = best[3:]
    if lost[node.column] == 0:  # what no row of the node has goes with the heavier child
        node.missing_left = 2 * (best[4] & mask) > total & mask
    tree.goes_left[k, :255], tree.goes_left[k, 255] = np.arange(255) <= node.border, node.missing_left
    return bool(node.gain > 0)


def _running(x: Array, place: Array, column: Array) -> Array:
    """Sums of x (d, 256) over the places of each column, up to each of them."""
    here = x.ravel()[place]
    running = np.cumsum(here)
    new = np.append(True, column[1:] != column[:-1])
    return running - (running - here)[new][np.cumsum(new) - 1]


def _split(tree: GrowingTree, rules: BinnedRules, k: int) -> tuple[int, int]:
    """Part the rows of a node and make its children; return the number of the first, and that of the lighter one."""
    nodes, made, d = tree.nodes, int(tree.free[-2]), len(tree.columns)
    node, (start, stop) = nodes[k], (int(x) for x in tree.runs[k, 0])
    rows = tree.rows[start:stop]
    left = tree.goes_left[k, tree.codes.reshape(-1, d)[rows, node.column]] != 0
    tree.rows[start:stop] = np.concatenate([rows[left], rows[~left]])
    middle = start + int(left.sum())
    tree.runs[made, 0], tree.runs[made + 1, 0] = (start, middle), (middle, stop)
    keys = random_bits_of_pairs(int(node.key), np.arange(2)).view(np.int64)
    for side, (first, last) in enumerate(((start, middle), (middle, stop))):
        child = nodes[made + side]
        child.total = node.total - node.left_total if side else node.left_total
        child.count, child.parent, child.depth, child.key = last - first, k, node.depth + 1, keys[side]
        child.low, child.high, child.left, child.right = node.low, node.high, -1, -1
        child.gain, child.column, child.slot, child.counted = 0.0, -1, -1, not rules.by_hessian
    node.left, node.right, node.made_gain, node.gain = made, made + 1, node.gain, 0.0
    tree.free[-2] += 2
    tree.free[-1] += 1
    mask = (1 << rules.shift) - 1
    return made, made if 2 * (int(node.left_total) & mask) <= int(node.total) & mask else made + 1
