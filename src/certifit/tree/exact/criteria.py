"""Impurities of nodes: how splits are scored by sums, and what a node's impurity is in scikit-learn's units.

Of several targets, the impurity of a node is the mean of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from certifit.rows import Array
from certifit.tree.exact.growth_loops import NodeTable
from certifit.tree.exact.measure_loops import medians_of_nodes
from certifit.tree.exact.median_loops import MedianTable
from certifit.tree.exact.split_loops import ABSOLUTE, LOGARITHMIC, POSITIVE, QUADRATIC
from certifit.tree.exact.target_sums import TargetSums, amount_sums, class_sums, median_sums


@dataclass(frozen=True)
class NodeMeasures:
    """What is said of the nodes, measured from the rows; the sums that splits are scored by are coarser."""

    weight: Array  # (m,)
    value: Array  # (m, t, k) class shares of each target, or (m, t, 1) means or medians
    impurity: Array  # (m,)


@dataclass(frozen=True)
class ClassCriterion:
    """Gini's impurity 1 - Σ p² or the entropy -Σ p log2 p of the class shares p."""

    name: str  # gini, entropy or log_loss
    classes: tuple[int, ...]  # of each target

    @property
    def score(self) -> int:
        return QUADRATIC if self.name == "gini" else LOGARITHMIC

    @property
    def category_channels(self) -> Array:
        """The channels by whose means categories are put in order: of two classes the second is enough."""
        return np.array([1]) if self.classes == (2,) else np.arange(sum(self.classes))

    def sums(self, y: Array, w: Array) -> tuple[TargetSums, MedianTable | None]:
        return class_sums(y, list(self.classes), w), None

    def score_unit(self, sums: TargetSums) -> float:
        """The score that one unit of weight times impurity is."""
        return len(self.classes) * (1.0 if self.name == "gini" else math.log(2)) / sums.weight_unit

    def measured(self, nodes: NodeTable, y: Array, w: Array, at: Array) -> NodeMeasures:
        """Weights, class shares and impurities of all nodes; `at` (n,) are the leaves of the rows."""
        m, largest = len(nodes.left), max(self.classes)
        share = np.zeros((m, len(self.classes), largest))
        for t, k in enumerate(self.classes):
            counted = np.bincount(at * k + y[:, t], w, m * k).reshape(m, k)
            _add_up(nodes, counted)
            weight = counted.sum(axis=1)
            share[:, t, :k] = counted / weight[:, None]
        return NodeMeasures(weight, share, self.of_shares(share))

    def of_shares(self, share: Array) -> Array:
        """The impurity of nodes with these class shares (m, t, k)."""
        squares = self.name == "gini"
        of_each = 1.0 - (share**2).sum(axis=2) if squares else -xlogy(share, share).sum(axis=2) / math.log(2)
        return of_each.mean(axis=1)


@dataclass(frozen=True)
class AmountCriterion:
    """The variance of the targets, half their Poisson deviance from the mean, or mean distance to the median."""

    name: str  # squared_error, friedman_mse, poisson or absolute_error
    targets: int = 1

    @property
    def score(self) -> int:
        return {"poisson": POSITIVE, "absolute_error": ABSOLUTE}.get(self.name, QUADRATIC)

    @property
    def category_channels(self) -> Array:
        return np.arange(self.targets)

    def sums(self, y: Array, w: Array) -> tuple[TargetSums, MedianTable | None]:
        if self.name == "absolute_error":
            return median_sums(y, w)
        return amount_sums(y, w, centred=self.name != "poisson"), None

    def score_unit(self, sums: TargetSums) -> float:
        if self.name in ("poisson", "absolute_error"):
            return self.targets / sums.unit
        return self.targets * sums.weight_unit / sums.unit / sums.unit  # the square of a unit may overflow

    @np.errstate(under="ignore")
    def measured(self, nodes: NodeTable, y: Array, w: Array, at: Array) -> NodeMeasures:
        """Weights, means or medians and impurities of all nodes; `at` (n,) are the leaves of the rows."""
        weight = np.bincount(at, w, len(nodes.left))
        _add_up(nodes, weight)
        of_target = self._medians if self.name == "absolute_error" else self._means
        found = [of_target(nodes, y[:, t], w, at) for t in range(self.targets)]
        value = np.stack([value for value, _ in found], axis=1)
        return NodeMeasures(weight, value[:, :, None], np.mean([impurity for _, impurity in found], axis=0))

    def _medians(self, nodes: NodeTable, y: Array, w: Array, at: Array) -> tuple[Array, Array]:
        """The medians of all nodes, and the mean distances of their rows."""
        # A node's rows follow each other in the order of the leaves, from left to right.
        rows = np.argsort(nodes.start[at], kind="stable")
        return medians_of_nodes(y[rows], w[rows], nodes.start, nodes.end)

    def _means(self, nodes: NodeTable, y: Array, w: Array, at: Array) -> tuple[Array, Array]:
        """The means of all nodes and their impurities."""
        m = len(nodes.left)
        weight = np.bincount(at, w, m)
        heavy = np.where(weight > 0, weight, 1.0)
        centre = float(np.average(y, weights=w))
        mean = np.where(weight > 0, centre + np.bincount(at, w * (y - centre), m) / heavy, 0.0)
        mean += np.bincount(at, w * (y - mean[at]), m) / heavy  # what rounding far from the centre has left
        term = xlogy(y, y) if self.name == "poisson" else (y - mean[at]) ** 2
        total = np.bincount(at, w * term, m)
        _add_up(nodes, weight)
        squares = 0.0 if self.name == "poisson" else 1.0
        parts = (nodes.left, nodes.right, weight, mean, total)
        left, right, heaviness, means, totals = (part.tolist() for part in parts)  # plain numbers are much quicker
        for k in _parents(nodes).tolist():
            a, b = left[k], right[k]
            # The heavier child is next to the mean, where a light one may be far off.
            first = means[a] if heaviness[a] >= heaviness[b] else means[b]
            away = heaviness[a] * (means[a] - first) + heaviness[b] * (means[b] - first)
            means[k] = first + away / heaviness[k]
            moved = heaviness[a] * (means[a] - means[k]) ** 2 + heaviness[b] * (means[b] - means[k]) ** 2
            totals[k] = totals[a] + totals[b] + squares * moved
        mean, total = np.array(means), np.array(totals)
        found = total / weight
        return mean, np.maximum(found - xlogy(mean, mean), 0.0) if self.name == "poisson" else found


def _parents(nodes: NodeTable) -> Array:
    """Numbers of the nodes that are split, children before their parents."""
    return np.flatnonzero(nodes.left >= 0)[::-1]


def _add_up(nodes: NodeTable, of_leaves: Array) -> None:
    """Fill in the sums of inner nodes."""
    left, right, sums = nodes.left.tolist(), nodes.right.tolist(), list(of_leaves)
    for k in _parents(nodes).tolist():
        sums[k] = sums[left[k]] + sums[right[k]]
    of_leaves[:] = sums


Criterion = ClassCriterion | AmountCriterion
