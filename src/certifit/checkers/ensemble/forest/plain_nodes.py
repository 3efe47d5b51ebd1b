"""The nodes of one tree of a forest: whether it is a tree, where rows go in it, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import xlogy

from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.tree.node_sums import clipped_shares, lost_squares
from certifit.checkers.tree.plain_tree import PlainTree, plain_tree
from certifit.core import Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows


@dataclass(frozen=True)
class ClaimedTree:
    """A tree as it was fitted, and what it says of its nodes."""

    tree: PlainTree
    rows: Array  # (m,)
    weight: Array  # (m,)
    value: Array  # (m, t, k) shares of the classes of each target, or (m, t, 1) means
    impurity: Array  # (m,)
    classes: tuple[int, ...]  # of each target; () for amounts
    criterion: str  # gini, entropy, squared_error or poisson


def claimed_tree(
    tree: Any, n_columns: int, criterion: str, classes: tuple[int, ...], dtype: Any = np.float64
) -> ClaimedTree:
    """Read a tree with scikit-learn's names; what is no tree, or one of other classes, is refused."""
    value = np.asarray(tree.value, np.float64)
    if classes and tuple(np.asarray(tree.n_classes).tolist()) != classes:
        raise DataError(got=f"a tree of {tree.n_classes} classes", wanted=f"{list(classes)}, as classes_ say")
    return ClaimedTree(
        plain_tree(tree, n_columns, dtype), np.asarray(tree.n_node_samples), np.asarray(tree.weighted_n_node_samples),
        value, np.asarray(tree.impurity), classes, criterion,
    )  # fmt: skip


def levels(tree: PlainTree) -> list[Array]:
    """The nodes that are split, the deepest first."""
    inner = tree.inner
    order = inner[np.argsort(-tree.depth[inner], kind="stable")]
    depths = -tree.depth[order]
    return np.split(order, np.flatnonzero(np.diff(depths)) + 1)


def add_up(tree: PlainTree, of_leaves: Array) -> Array:
    """The sums over the leaves below each node, of numbers (m, …) that are 0 at inner nodes."""
    total = np.array(of_leaves, dtype=np.float64)
    for nodes in levels(tree):
        total[nodes] = total[tree.left[nodes]] + total[tree.right[nodes]]
    return total


def leaf_numbers(tree: PlainTree, rows: Rows) -> Array:
    """The leaf of each row (n,)."""
    return rows.map(partial(_leaves, tree))


def _leaves(tree: PlainTree, block: Block) -> Array:
    return tree.leaves(block._replace(X=dense(block.X)))


def check_nodes(claimed: ClaimedTree, at: Array, y: Array, w: Array) -> tuple[float, float]:
    """How far nodes are from what their rows (targets y (n, t)) say, of what rounding allows; `at` (n,) are leaves.

    Returned are the largest deviation of counts and weights, and that of values and impurities.
    """
    tree, m = claimed.tree, len(claimed.tree.left)
    here = w > 0
    if not here.all():
        at, y, w = at[here], y[here], w[here]
    rounding = 16 * np.log2(2 + len(y)) * EPS
    rows, weight = add_up(tree, np.bincount(at, minlength=m)), add_up(tree, np.bincount(at, w, m))
    if rows.min() == 0:  # a node that no row reaches
        return float("inf"), float("inf")
    if not np.array_equal(rows, claimed.rows):
        return float("inf"), float("inf")
    counted = float((np.abs(weight - claimed.weight) / weight).max() / rounding)
    if claimed.value.shape[1] != y.shape[1]:
        return float("inf"), float("inf")
    parts = [_target_measures(claimed, t, at, y[:, t], w, weight, rounding) for t in range(y.shape[1])]
    impurity, slack = np.mean([part[1] for part in parts], axis=0), np.mean([part[2] for part in parts], axis=0)
    impure = (np.abs(impurity - claimed.impurity) / slack).max()
    return counted, _worst(*(part[0] for part in parts), impure)


def _target_measures(
    claimed: ClaimedTree, t: int, at: Array, y: Array, w: Array, weight: Array, rounding: float
) -> tuple[float, Array, Array]:
    """How far the values of a target are off, of what rounding allows; its impurities, and what they may be off."""
    tree, m = claimed.tree, len(claimed.tree.left)
    if not claimed.classes:
        return _amount_measures(claimed, t, at, y, w, weight, rounding)
    k = claimed.classes[t]
    sums = add_up(tree, np.bincount(at * k + y.astype(np.int64), w, m * k).reshape(m, k))
    share = sums / weight[:, None]
    off = float(np.abs(clipped_shares(tree, share[:, None])[:, 0] - claimed.value[:, t, :k]).max() / rounding)
    off = _worst(off, np.abs(claimed.value[:, t, k:]).max(initial=0.0) / rounding)
    slack = np.full(m, 8 * rounding * (1 + np.log2(k + 1)))
    if tree.dtype != np.float64:
        # scikit-learn finds the weights of a child as its parent's less its sibling's, with the parent's rounding.
        slack *= lost_squares(tree, np.ones(m), weight) / weight
    return off, _class_impurity(claimed.criterion, share), slack


def _amount_measures(
    claimed: ClaimedTree, t: int, at: Array, y: Array, w: Array, weight: Array, rounding: float
) -> tuple[float, Array, Array]:
    """The same of amounts: their means and impurities."""
    tree, value, m = claimed.tree, claimed.value[:, t, 0], len(claimed.tree.left)
    away = y - value[at]
    # About a parent's value v: Σ w (y - v) = Σ over its children of Σ w (y - u) + W (u - v).
    moved, spread, size = (np.bincount(at, w * part, m) for part in (away, away**2, np.abs(away)))
    for nodes in levels(tree):
        for child in (tree.left[nodes], tree.right[nodes]):
            step = value[child] - value[nodes]
            moved[nodes] += moved[child] + weight[child] * step
            spread[nodes] += spread[child] + 2 * step * moved[child] + weight[child] * step**2
            size[nodes] += size[child] + weight[child] * np.abs(step)
    allowed = 8 * EPS * np.abs(value) + rounding * size / weight + np.finfo(float).tiny
    if tree.clips is not None:  # a value may be the middle of others
        allowed = allowed + 8 * EPS * np.abs(value).max()
    apart = np.abs(moved) / weight if tree.clips is None else np.abs(tree.clipped(value + moved / weight) - value)
    off = float((apart / allowed).max())
    if claimed.criterion == "poisson":
        logs = add_up(tree, np.bincount(at, w * xlogy(y, np.maximum(y, 0)), m)) / weight
        mean = value if tree.clips is None else value + moved / weight
        impurity = logs - xlogy(mean, mean)
        slack = 64 * rounding * (np.abs(logs) + np.abs(xlogy(mean, mean)) + np.abs(mean)) + np.finfo(float).tiny
    else:
        impurity = spread / weight - (moved / weight) ** 2
        largest = np.maximum(spread / weight, 0.0)
        slack = 64 * rounding * largest + 8 * allowed * np.sqrt(largest) + 8 * allowed**2 + np.finfo(float).tiny
    if tree.dtype != np.float64:
        # scikit-learn's impurity is the mean of squares minus the square of the mean, which lose digits far from 0.
        squares = add_up(tree, np.bincount(at, w * y**2, m)) / weight
        slack += 64 * rounding * lost_squares(tree, squares, weight) / weight
    return off, impurity, slack


def _worst(*off: Any) -> float:
    """The largest deviation; one that is not a number stays, since no order tells where it belongs."""
    return float(np.max(off))


def _class_impurity(criterion: str, share: Array) -> Array:
    """Gini's impurity 1 - Σ p², or the entropy -Σ p log2 p, of class shares (m, k)."""
    if criterion == "gini":
        return np.asarray(1.0 - (share**2).sum(axis=1))
    return np.asarray(-xlogy(share, share).sum(axis=1) / np.log(2))


def node_checks(found: list[tuple[float, float]]) -> tuple[Check, ...]:
    """The worst of all trees that were looked at."""
    counted, measured = (_worst(*part) for part in zip(*found, strict=True))
    return (
        Check("counts and weights of nodes off by, of what rounding allows", counted, 1.0),
        Check("values and impurities of nodes off by, of what rounding allows", measured, 1.0),
    )
