"""Impurities of nodes: how splits are scored by sums, and what a node's impurity is in scikit-learn's units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from certifit.rows import Array
from certifit.tree.exact.growth_loops import NodeTable
from certifit.tree.exact.split_loops import LOGARITHMIC, POSITIVE, QUADRATIC
from certifit.tree.exact.target_sums import TargetSums, amount_sums, class_sums


@dataclass(frozen=True)
class NodeMeasures:
    """What is said of the nodes, measured from the rows; the sums that splits are scored by are coarser."""

    weight: Array  # (m,)
    value: Array  # (m, k) class shares, or (m, 1) means
    impurity: Array  # (m,)


@dataclass(frozen=True)
class ClassCriterion:
    """Gini's impurity 1 - Σ p² or the entropy -Σ p log2 p of the class shares p."""

    name: str  # gini, entropy or log_loss
    classes: int

    @property
    def score(self) -> int:
        return QUADRATIC if self.name == "gini" else LOGARITHMIC

    def sums(self, y: Array, w: Array) -> TargetSums:
        return class_sums(y[:, None], [self.classes], w)

    def score_unit(self, sums: TargetSums) -> float:
        """The score that one unit of weight times impurity is."""
        return (1.0 if self.name == "gini" else math.log(2)) / sums.weight_unit

    def measured(self, nodes: NodeTable, y: Array, w: Array, at: Array) -> NodeMeasures:
        """Weights, class shares and impurities of all nodes; `at` (n,) are the leaves of the rows."""
        m, k = len(nodes.left), self.classes
        counted = np.bincount(at * k + y, w, m * k).reshape(m, k)
        _add_up(nodes, counted)
        weight = counted.sum(axis=1)
        share = counted / weight[:, None]
        return NodeMeasures(weight, share, self.of_shares(share))

    def of_shares(self, share: Array) -> Array:
        """The impurity of nodes with these class shares (m, k)."""
        return 1.0 - (share**2).sum(axis=1) if self.name == "gini" else -xlogy(share, share).sum(axis=1) / math.log(2)


@dataclass(frozen=True)
class AmountCriterion:
    """The variance of the targets, or half their Poisson deviance from the mean, mean(y log y) - ȳ log ȳ."""

    name: str  # squared_error, friedman_mse or poisson

    @property
    def score(self) -> int:
        return POSITIVE if self.name == "poisson" else QUADRATIC

    def sums(self, y: Array, w: Array) -> TargetSums:
        return amount_sums(y[:, None], w, centred=self.name != "poisson")

    def score_unit(self, sums: TargetSums) -> float:
        return 1 / sums.unit if self.name == "poisson" else sums.weight_unit / sums.unit**2

    def measured(self, nodes: NodeTable, y: Array, w: Array, at: Array) -> NodeMeasures:
        """Weights, means and impurities of all nodes; `at` (n,) are the leaves of the rows."""
        m = len(nodes.left)
        weight = np.bincount(at, w, m)
        heavy = np.where(weight > 0, weight, 1.0)
        centre = float(np.average(y, weights=w))
        mean = np.where(weight > 0, centre + np.bincount(at, w * (y - centre), m) / heavy, 0.0)
        mean += np.bincount(at, w * (y - mean[at]), m) / heavy  # what rounding far from the centre has left
        term = xlogy(y, y) if self.name == "poisson" else (y - mean[at]) ** 2
        total = np.bincount(at, w * term, m)
        _add_up(nodes, weight)
        for k in _parents(nodes):
            children = [nodes.left[k], nodes.right[k]]
            first = mean[children[0]]
            mean[k] = first + weight[children] @ (mean[children] - first) / weight[k]
            moved = 0.0 if self.name == "poisson" else weight[children] @ (mean[children] - mean[k]) ** 2
            total[k] = total[children].sum() + moved
        found = total / weight
        impurity = np.maximum(found - xlogy(mean, mean), 0.0) if self.name == "poisson" else found
        return NodeMeasures(weight, mean[:, None], impurity)


def _parents(nodes: NodeTable) -> Array:
    """Numbers of the nodes that are split, children before their parents."""
    return np.flatnonzero(nodes.left >= 0)[::-1]


def _add_up(nodes: NodeTable, of_leaves: Array) -> None:
    """Fill in the sums of inner nodes."""
    for k in _parents(nodes):
        of_leaves[k] = of_leaves[nodes.left[k]] + of_leaves[nodes.right[k]]


Criterion = ClassCriterion | AmountCriterion
