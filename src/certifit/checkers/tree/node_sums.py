"""What a tree says of its nodes, recomputed from the rows: counts, weights, values and impurities.

Sums over the rows of each leaf are taken block by block; those of inner nodes are the sums of their children's. The
spread of amounts is measured about the value that the leaf claims, so that nothing cancels far from zero. Medians are
those of `node_medians`: no sums over leaves give them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import xlogy

from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.tree.node_medians import MedianSums, median_checks, median_sums
from certifit.checkers.tree.plain_tree import PlainTree
from certifit.core import Check
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class NodeClaims:
    """What a fitted tree says of its nodes."""

    rows: Array  # (m,) rows of positive weight
    weight: Array  # (m,)
    value: Array  # (m, t, k) shares of classes of each target, or (m, t, 1) mean or median amounts
    impurity: Array  # (m,)
    cancelling: bool = False  # whether variances were computed as differences of squares, as other libraries do


@dataclass(frozen=True)
class LeafSums(Sums):
    """Sums over the rows that reach each node as their leaf."""

    rows: Array  # (m,)
    weight: Array  # (m,)
    totals: Array  # (m, t, k) weight of each class; or (m, t, 1) Σ w (y - v) about the claimed value v of the node
    spread: Array  # (m, t) Σ w (y - v)²; 0 for classes
    size: Array  # (m, t) Σ w |y - v|, for the allowance
    poisson: Array  # (m, t) Σ w y log y
    medians: MedianSums | float  # 0 unless values are medians


def leaf_sums(tree: PlainTree, value: Array, criterion: str, classes: tuple[int, ...], block: Block) -> LeafSums:
    """The sums of a block's rows by leaf; y are class numbers, or amounts if there are no classes."""
    m, at = len(tree.left), tree.leaves(block)
    t = value.shape[1]
    w, y = block.w, np.asarray(block.y).reshape(len(at), t)
    count, weight = np.bincount(at, w > 0, m), np.bincount(at, w, m)
    totals, none = np.zeros(value.shape), np.zeros((m, t))
    if classes:
        for j, k in enumerate(classes):
            totals[:, j, :k] = np.bincount(at * k + y[:, j].astype(np.int64), w, m * k).reshape(m, k)
        return LeafSums(count, weight, totals, none, none, none, 0.0)
    if criterion == "absolute_error":
        return LeafSums(count, weight, totals, none, none, none, median_sums(tree, value[:, :, 0], y, block))
    away = y - value[at, :, 0]
    logs = np.zeros(y.shape)  # but for counts: other amounts may be negative
    if criterion == "poisson":
        logs = np.where((w > 0)[:, None], xlogy(y, np.maximum(y, 0)), 0.0)
    parts = (away, away**2, np.abs(away), logs)
    sums = [np.stack([np.bincount(at, w * part[:, j], m) for j in range(t)], axis=1) for part in parts]
    moved, spread, size, poisson = sums
    return LeafSums(count, weight, moved[:, :, None], spread, size, poisson, 0.0)


def check_nodes(
    tree: PlainTree, claims: NodeClaims, criterion: str, classes: tuple[int, ...], rows: Rows
) -> tuple[Check, ...]:
    """Whether counts, weights, values and impurities are those of the rows, for every node."""
    of_leaves = rows.sum(partial(leaf_sums, tree, claims.value, criterion, classes))
    count, weight = tree.adds_up(of_leaves.rows), tree.adds_up(of_leaves.weight)
    n_error = 8 * np.log2(2 + rows.n_rows) * EPS
    heavy = np.where(weight > 0, weight, 1.0)
    if classes:
        share = tree.adds_up(of_leaves.totals) / heavy[:, None, None]
        off = np.abs(clipped_shares(tree, share) - claims.value).max(axis=(1, 2))
        values = _value_checks(off / n_error)
        impurity = class_impurity(criterion, share)
        slack: Array | float = 8 * n_error * (1 + np.log2(max(classes) + 1))
        if claims.cancelling:  # the weights of a child may be those of its parent less its sibling's
            slack = slack * lost_squares(tree, np.ones(len(weight)), weight) / heavy
    elif isinstance(of_leaves.medians, MedianSums):
        impurity = (of_leaves.medians.size / heavy[:, None]).mean(axis=1)
        values = median_checks(of_leaves.medians, claims.value[:, :, 0], n_error)
        slack = 64 * n_error * impurity + 8 * EPS * np.abs(claims.value).max(axis=(1, 2)) + np.finfo(float).tiny
    else:
        parts = [_amounts(tree, claims, of_leaves, criterion, j, n_error) for j in range(claims.value.shape[1])]
        values = _value_checks(np.max([part[0] / part[1] for part in parts], axis=0))
        impurity, slack = np.mean([part[2] for part in parts], axis=0), np.mean([part[3] for part in parts], axis=0)
    empty = float((count == 0).sum())
    impure = float((np.abs(impurity - claims.impurity) / slack).max())
    return (
        Check("nodes that no row reaches", empty, 0.0),
        Check("row counts of nodes off by", float(np.abs(count - claims.rows).max()), 0.0),
        Check("weights of nodes off by, relative", float((np.abs(weight - claims.weight) / heavy).max()), n_error),
        *values,
        Check("impurities off by, of what rounding allows", impure, 1.0),
    )  # fmt: skip


def _value_checks(off: Array) -> tuple[Check, ...]:
    """How far each node's value is off (m,), of what rounding allows."""
    return (Check("values of nodes off by, of what rounding allows", float(off.max()), 1.0),)


def _amounts(
    tree: PlainTree, claims: NodeClaims, found: LeafSums, criterion: str, target: int, n_error: float
) -> tuple[Array, Array, Array, Array]:
    """How far a target's means are off and may be, and the impurities with what rounding leaves open in them."""
    value, weight = claims.value[:, target, 0], tree.adds_up(found.weight)
    heavy = np.where(weight > 0, weight, 1.0)
    # About a parent's value v: Σ w (y - v) = Σ over its children of Σ w (y - u) + W (u - v).
    moved, spread = found.totals[:, target, 0].copy(), found.spread[:, target].copy()
    size = found.size[:, target].copy()
    for k in tree.inner_levels[::-1]:
        moved[k] = spread[k] = size[k] = 0.0
        for child in (tree.left[k], tree.right[k]):
            step = value[child] - value[k]
            moved[k] += moved[child] + weight[child] * step
            spread[k] += spread[child] + 2 * step * moved[child] + weight[child] * step**2
            size[k] += size[child] + weight[child] * np.abs(step)
    mean = value + moved / heavy
    off = np.abs(moved) / heavy if tree.clips is None else np.abs(tree.clipped(mean) - value)
    # A claimed mean is a float: it may be off by its own last digit, and by the rounding of what was summed. One of 0
    # is the sum of two numbers as large as others' means: what is left of them is the rounding of rounding.
    allowed = 4 * EPS * np.abs(value) + n_error * (size / heavy + EPS * np.abs(value).max()) + np.finfo(float).tiny
    if tree.clips is not None:  # a value may be the middle of others
        allowed = allowed + 4 * EPS * np.abs(value).max()
    if criterion == "poisson":
        total = tree.adds_up(found.poisson[:, target]) / heavy
        impurity = total - xlogy(mean, mean)
        slack = 64 * n_error * (np.abs(total) + np.abs(xlogy(mean, mean)) + np.abs(mean)) + np.finfo(float).tiny
        return off, allowed, impurity, slack
    impurity = spread / heavy - (moved / heavy) ** 2
    largest = np.maximum(spread / heavy, 0.0)
    if claims.cancelling:
        # Σ w y² of a child may be that of its parent less its sibling's, with the parent's rounding.
        largest = largest + lost_squares(tree, largest + value**2, weight) / heavy
    slack = 64 * n_error * largest + 8 * allowed * np.sqrt(largest) + 8 * allowed**2 + np.finfo(float).tiny
    return off, allowed, impurity, slack


def lost_squares(tree: PlainTree, squares: Array, weight: Array) -> Array:
    """Σ w y² of each node's parent, or its own where it has none (m,), from means of squares (m,).

    The parent's weight times the node's own mean where that is more: a node's weight loses digits in the same way.
    """
    found, inner = squares * weight, tree.inner
    for children in (tree.left[inner], tree.right[inner]):
        found[children] = weight[inner] * np.maximum(squares[inner], squares[children])
    return found


def clipped_shares(tree: PlainTree, share: Array) -> Array:
    """Shares of classes (m, t, k) as a library gives them that clips those of two classes."""
    if tree.clips is None:
        return share
    first = tree.clipped(share[:, 0, 0])
    return np.stack([first, 1 - first], axis=1)[:, None]


def class_impurity(criterion: str, share: Array) -> Array:
    """Of class shares (m, t, k) 1 - Σ p², the entropy -Σ p log2 p or 1 - max p; the mean over targets."""
    if criterion == "misclassification":
        return (1.0 - share.max(axis=2)).mean(axis=1)
    if criterion == "gini":
        return (1.0 - (share**2).sum(axis=2)).mean(axis=1)
    return -xlogy(share, share).sum(axis=2).mean(axis=1) / np.log(2)
