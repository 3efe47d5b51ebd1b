"""Impurities of nodes: how splits are scored by sums, and what a node's impurity is in scikit-learn's units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from certifit.rows import Array
from certifit.tree.growth_loops import NodeTable
from certifit.tree.split_loops import LOGARITHMIC, POSITIVE, QUADRATIC
from certifit.tree.target_sums import TargetSums, amount_sums, class_sums


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

    def impurities(self, nodes: NodeTable, sums: TargetSums, y: Array, w: Array, at: Array) -> Array:
        """Those of all nodes."""
        return self.of_shares(nodes.sums / nodes.weight[:, None])

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

    def impurities(self, nodes: NodeTable, sums: TargetSums, y: Array, w: Array, at: Array) -> Array:
        """Those of all nodes; `at` (n,) are the leaves of the rows. A parent's comes from its children's."""
        m, mean = len(nodes.left), sums.means(nodes.sums, nodes.weight)[:, 0]
        weight = nodes.weight * sums.weight_unit
        term = xlogy(y, y) if self.name == "poisson" else (y - mean[at]) ** 2
        total = np.bincount(at, w * term, m)
        for k in np.flatnonzero(nodes.left >= 0)[::-1]:  # children are numbered after their parents
            for child in (nodes.left[k], nodes.right[k]):
                moved = 0.0 if self.name == "poisson" else weight[child] * (mean[child] - mean[k]) ** 2
                total[k] += total[child] + moved
        found = total / weight
        return np.maximum(found - xlogy(mean, mean), 0.0) if self.name == "poisson" else found


Criterion = ClassCriterion | AmountCriterion
