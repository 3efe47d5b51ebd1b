"""What a tree says of its nodes, recomputed from the rows: counts, weights, values and impurities.

Sums over the rows of each leaf are taken block by block; those of inner nodes are the sums of their children's. The
spread of amounts is measured about the value that the leaf claims, so that nothing cancels far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import xlogy

from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.tree.plain_tree import PlainTree
from certifit.core import Check
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class NodeClaims:
    """What a fitted tree says of its nodes."""

    rows: Array  # (m,) rows of positive weight
    weight: Array  # (m,)
    value: Array  # (m, c) shares of classes, or the mean amount
    impurity: Array  # (m,)


@dataclass(frozen=True)
class LeafSums(Sums):
    """Sums over the rows that reach each node as their leaf."""

    rows: Array  # (m,)
    weight: Array  # (m,)
    totals: Array  # (m, c) weight of each class; or Σ w (y - v) about the claimed value v of the node
    spread: Array  # (m,) Σ w (y - v)²; 0 for classes
    size: Array  # (m,) Σ w |y - v|, for the allowance
    poisson: Array  # (m,) Σ w y log y


def leaf_sums(tree: PlainTree, value: Array, classes: int, block: Block) -> LeafSums:
    """The sums of a block's rows by leaf; y is a class number, or an amount if there are no classes."""
    m, at = len(tree.left), tree.leaves(block)
    w, y = block.w, np.asarray(block.y)
    count = np.bincount(at, w > 0, m)
    weight = np.bincount(at, w, m)
    if classes:
        totals = np.bincount(at * classes + y.astype(np.int64), w, m * classes).reshape(m, classes)
        none = np.zeros(m)
        return LeafSums(count, weight, totals, none, none, none)
    away = y - value[at, 0]
    sums = [np.bincount(at, w * part, m) for part in (away, away**2, np.abs(away), xlogy(y, np.maximum(y, 0)))]
    return LeafSums(count, weight, sums[0][:, None], *sums[1:])


def check_nodes(tree: PlainTree, claims: NodeClaims, criterion: str, classes: int, rows: Rows) -> tuple[Check, ...]:
    """Whether counts, weights, values and impurities are those of the rows, for every node."""
    of_leaves = rows.sum(partial(leaf_sums, tree, claims.value, classes))
    count, weight = tree.adds_up(of_leaves.rows), tree.adds_up(of_leaves.weight)
    n_error = 8 * np.log2(2 + rows.n_rows) * EPS
    heavy = np.where(weight > 0, weight, 1.0)
    if classes:
        share = tree.adds_up(of_leaves.totals) / heavy[:, None]
        off = np.abs(share - claims.value).max(axis=1)
        allowed = np.full(len(off), n_error)
        impurity = class_impurity(criterion, share)
        slack = 8 * n_error * (1 + np.log2(classes + 1))
    else:
        off, allowed, impurity, slack = _amounts(tree, claims, of_leaves, criterion, weight, n_error)
    empty = float((count == 0).sum())
    impure = float((np.abs(impurity - claims.impurity) / slack).max())
    return (
        Check("nodes that no row reaches", empty, 0.0),
        Check("row counts of nodes off by", float(np.abs(count - claims.rows).max()), 0.0),
        Check("weights of nodes off by, relative", float((np.abs(weight - claims.weight) / heavy).max()), n_error),
        Check("values of nodes off by, of what rounding allows", float((off / allowed).max()), 1.0),
        Check("impurities off by, of what rounding allows", impure, 1.0),
    )  # fmt: skip


def _amounts(
    tree: PlainTree, claims: NodeClaims, found: LeafSums, criterion: str, weight: Array, n_error: float
) -> tuple[Array, Array, Array, Array]:
    """How far means are off and may be, and the impurities with what rounding leaves open in them."""
    value = claims.value[:, 0]
    heavy = np.where(weight > 0, weight, 1.0)
    # About a parent's value v: Σ w (y - v) = Σ over its children of Σ w (y - u) + W (u - v).
    moved, spread = found.totals[:, 0].copy(), found.spread.copy()
    size = found.size.copy()
    for k in tree.inner[np.argsort(-tree.depth[tree.inner], kind="stable")]:
        moved[k] = spread[k] = size[k] = 0.0
        for child in (tree.left[k], tree.right[k]):
            step = value[child] - value[k]
            moved[k] += moved[child] + weight[child] * step
            spread[k] += spread[child] + 2 * step * moved[child] + weight[child] * step**2
            size[k] += size[child] + weight[child] * abs(step)
    off = np.abs(moved) / heavy
    # A claimed mean is a float: it may be off by its own last digit, and by the rounding of what was summed.
    allowed = 4 * EPS * np.abs(value) + n_error * (size / heavy) + np.finfo(float).tiny
    if criterion == "poisson":
        total = tree.adds_up(found.poisson) / heavy
        mean = value + moved / heavy
        impurity = total - xlogy(mean, mean)
        slack = 64 * n_error * (np.abs(total) + np.abs(xlogy(mean, mean)) + np.abs(mean)) + np.finfo(float).tiny
        return off, allowed, impurity, slack
    impurity = spread / heavy - (moved / heavy) ** 2
    largest = np.maximum(spread / heavy, 0.0)
    slack = 64 * n_error * largest + 8 * allowed * np.sqrt(largest) + 8 * allowed**2 + np.finfo(float).tiny
    return off, allowed, impurity, slack


def class_impurity(criterion: str, share: Array) -> Array:
    """Gini's impurity 1 - Σ p², or the entropy -Σ p log2 p, of class shares (m, k)."""
    if criterion == "gini":
        return 1.0 - (share**2).sum(axis=1)
    return -xlogy(share, share).sum(axis=1) / np.log(2)
