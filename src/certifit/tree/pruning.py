"""Minimal cost-complexity pruning: the sequence of smallest subtrees that minimise R(T) + α |leaves of T|.

R(T) is the impurity of the leaves, weighted by their share of the rows. As α grows, the node whose branch saves least
impurity per leaf, g = (R(node) - R(branch)) / (leaves of the branch - 1), is cut first. Reference: Breiman, Friedman,
Olshen & Stone, Classification and Regression Trees (1984), section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.rows import Array
from certifit.tree.fitted_tree import Tree


@dataclass(frozen=True)
class PruningPath:
    """Each α at which a branch is cut, and the impurity of the tree that is then left."""

    ccp_alphas: Array  # (m,) ascending, 0 first
    impurities: Array  # (m,)
    cuts: Array  # (nodes,) the α at which a node becomes a leaf; inf for one that is a leaf of the whole tree


def pruning_path(tree: Tree) -> PruningPath:
    """Cut the weakest branch, again and again, until only the root is left."""
    left, right = tree.children_left, tree.children_right
    m = tree.node_count
    parent = np.full(m, -1)
    inner = np.flatnonzero(left >= 0)
    parent[left[inner]] = parent[right[inner]] = inner
    own = tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    branch, leaves = own.copy(), np.ones(m)
    for k in inner[::-1]:  # children come later than their parents
        branch[k], leaves[k] = branch[left[k]] + branch[right[k]], leaves[left[k]] + leaves[right[k]]
    cuts = np.full(m, np.inf)
    alive = left >= 0
    alphas, impurities, alpha = [0.0], [float(branch[0])], 0.0
    while alive[0]:
        nodes = np.flatnonzero(alive)
        g = (own[nodes] - branch[nodes]) / (leaves[nodes] - 1)
        weakest = nodes[g == g.min()]
        alpha = max(alpha, float(g.min()))
        for k in weakest:
            if alive[k]:
                _cut(k, tree, alive, cuts, alpha)
                saved, fewer = branch[k] - own[k], leaves[k] - 1
                while k >= 0:
                    branch[k] -= saved
                    leaves[k] -= fewer
                    k = parent[k]
        alphas.append(alpha)
        impurities.append(float(branch[0]))
    return PruningPath(np.array(alphas), np.array(impurities), cuts)


def _cut(k: int, tree: Tree, alive: Array, cuts: Array, alpha: float) -> None:
    """Make a leaf of a node: neither it nor anything below is split any more."""
    stack = [k]
    while stack:
        at = stack.pop()
        if alive[at]:
            alive[at], cuts[at] = False, alpha
            stack += [int(tree.children_left[at]), int(tree.children_right[at])]


def pruned(tree: Tree, alpha: float) -> Tree:
    """The smallest subtree that minimises R(T) + α |leaves|."""
    return tree.subtree((tree.children_left >= 0) & (pruning_path(tree).cuts > alpha))
