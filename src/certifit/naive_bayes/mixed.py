"""Naive Bayes for mixed tables: a family of distributions for every column.

    min over π, θ of   - Σᵢ wᵢ [log π_{yᵢ} + Σⱼ log p_j(xᵢⱼ | θ_{yᵢ,j})]

Columns of the same family are put together into one column model; `SideBySide` gives each model its columns and adds
up what they say. Columns that are bernoulli, categorical or gaussian are smoothed as in BernoulliNB, CategoricalNB
and GaussianNB; those of other families are not smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from certifit.checkers.naive_bayes import moment_equations as checker
from certifit.core import Attributes, Setting
from certifit.families import Family
from certifit.families.column_families import column_families, family_name
from certifit.naive_bayes.bernoulli import BernoulliColumns
from certifit.naive_bayes.categorical import CategoricalColumns
from certifit.naive_bayes.class_moments import first_rows
from certifit.naive_bayes.classifier import NaiveBayesClassifier, check_prior
from certifit.naive_bayes.column_model import ColumnModel, NaiveBayesTuning
from certifit.naive_bayes.family_columns import FamilyColumns
from certifit.naive_bayes.gaussian import GaussianColumns
from certifit.rows import Array, Block, Matrix


@dataclass(frozen=True)
class SumsSideBySide:
    """The sums of several column models; `+` adds each to its like."""

    parts: tuple[Any, ...]

    def __add__(self, other: SumsSideBySide) -> SumsSideBySide:
        return SumsSideBySide(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True)
class ColumnGroup:
    """Some columns of a table and how they are distributed."""

    name: str  # of the family
    columns: tuple[int, ...]
    model: Any  # a ColumnModel

    def cut(self, X: Matrix) -> Array:
        """Their columns of a dense array (rows, d)."""
        return np.ascontiguousarray(X[:, list(self.columns)])


@dataclass(frozen=True)
class SideBySide(ColumnModel):
    """Column models side by side, each with its columns."""

    State = SumsSideBySide

    groups: tuple[ColumnGroup, ...]

    def _with(self, models: list[Any]) -> SideBySide:
        return SideBySide(tuple(ColumnGroup(g.name, g.columns, m) for g, m in zip(self.groups, models, strict=True)))

    def prepare(self, first: Block, k: int, tuning: NaiveBayesTuning) -> SideBySide:
        X, y, w = first_rows(first, tuning.first_rows)
        head = Block(X, y, w, first.start)
        return self._with([g.model.prepare(head._replace(X=g.cut(X)), k, tuning) for g in self.groups])

    def sums(self, block: Block, k: int) -> SumsSideBySide:
        return SumsSideBySide(tuple(g.model.sums(block._replace(X=g.cut(block.X)), k) for g in self.groups))

    def remeasure(self, total: SumsSideBySide) -> SideBySide | None:
        better = [g.model.remeasure(t) for g, t in zip(self.groups, total.parts, strict=True)]
        if not any(better):
            return None
        return self._with([g.model if b is None else b for g, b in zip(self.groups, better, strict=True)])

    def state(self, total: SumsSideBySide) -> SumsSideBySide:
        return SumsSideBySide(tuple(g.model.state(t) for g, t in zip(self.groups, total.parts, strict=True)))

    def params(self, state: SumsSideBySide) -> tuple[Any, ...]:
        return tuple(g.model.params(t) for g, t in zip(self.groups, state.parts, strict=True))

    def scores(self, params: tuple[Any, ...], X: Matrix) -> Array:
        scores = [g.model.scores(p, g.cut(X)) for g, p in zip(self.groups, params, strict=True)]
        return sum(scores[1:], start=scores[0])

    def penalty(self, params: tuple[Any, ...], state: SumsSideBySide) -> float:
        each = zip(self.groups, params, state.parts, strict=True)
        return sum(g.model.penalty(p, t) for g, p, t in each)

    def evidence(self, params: tuple[Any, ...], state: SumsSideBySide, tol: float) -> list[checker.MomentEvidence]:
        each = zip(self.groups, params, state.parts, strict=True)
        return [checker.with_prefix(g.name, e) for g, p, t in each for e in g.model.evidence(p, t, tol)]

    def keep(self, state: SumsSideBySide) -> list[Any]:
        return [g.model.keep(t) for g, t in zip(self.groups, state.parts, strict=True)]

    def restore(self, kept: list[Any]) -> SumsSideBySide:
        return SumsSideBySide(tuple(g.model.restore(t) for g, t in zip(self.groups, kept, strict=True)))


class NaiveBayes(NaiveBayesClassifier):
    """Naive Bayes with a family for every column.

    Parameters
    ----------
    family : a family, a list with one for each column, or a dict by column name or number
        A family is 'gaussian', 'bernoulli', 'categorical', 'poisson', 'geometric', 'exponential', 'gamma',
        'inverse_gaussian' or 'beta', a class of `certifit.families`, or one of its members where parameters are known
        (Binomial(0.5, n=10) stands for all binomials of 10 trials).
    priors : array (k,) or None
        Class priors; None: the share of each class.
    alpha : float, default=1.0
        Pseudo-counts for bernoulli and categorical columns.
    var_smoothing : float, default=1e-9
        For gaussian columns, as in GaussianNB.

    Attributes
    ----------
    families_ : list of the family names of the columns
    parameters_ : for each family in use a dict with its `family`, its `columns` and its parameters by class
    class_prior_, class_count_, classes_ : (k,)
    sums_ : what `partial_fit` adds to
    certificate_ : Certificate

    A missing entry (NaN) is left out of the sums and of a row's score.

    Examples
    --------
    >>> from certifit import NaiveBayes
    >>> X = [[1.2, 3, 0], [0.8, 4, 1], [3.1, 0, 1], [2.9, 1, 1]]
    >>> model = NaiveBayes(["gaussian", "poisson", "bernoulli"]).fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[1.0, 2, 0]]).tolist(), model.certificate_.holds
    (['a'], True)
    """

    settings: ClassVar[Any] = {
        "alpha": Setting(float, least=0, below=math.inf),
        "var_smoothing": Setting(float, least=0, below=math.inf),
    }

    class_prior_: Array
    parameters_: list[dict[str, Any]]
    families_: list[str]

    def __init__(self, family="gaussian", *, priors=None, alpha=1.0, var_smoothing=1e-9):
        self.family = family
        self.priors = priors
        self.alpha = alpha
        self.var_smoothing = var_smoothing

    def _column_model(self) -> SideBySide:
        """One group for each smoothed family, and one for each other family with its known parameters."""
        names = list(getattr(self, "feature_names_in_", ()))
        smoothed = self._smoothed_models()
        members: dict[tuple[str, Family | None], list[int]] = {}
        for j, like in enumerate(column_families(self.family, self.n_features_in_, names, advice="")):
            name = family_name(like)
            members.setdefault((name, None if name in smoothed else like), []).append(j)

        def group(name: str, like: Family | None, columns: tuple[int, ...]) -> ColumnGroup:
            return ColumnGroup(
                name, columns, smoothed[name](columns) if like is None else FamilyColumns(like, columns)
            )

        return SideBySide(tuple(group(*key, tuple(columns)) for key, columns in members.items()))

    def _smoothed_models(self) -> dict[str, Callable[[tuple[int, ...]], ColumnModel]]:
        """By family name, what makes the model of these columns."""
        alpha, var_smoothing, most_cells = float(self.alpha), float(self.var_smoothing), self._tuning.most_cells
        return {
            "bernoulli": lambda columns: BernoulliColumns(alpha, 0.5, binary=True),
            "categorical": lambda columns: CategoricalColumns(alpha, columns=columns, most_cells=most_cells),
            "gaussian": lambda columns: GaussianColumns(columns=columns, var_smoothing=var_smoothing),
        }

    def _given_prior(self, k: int) -> Array | None:
        return check_prior(self.priors, k, "priors")

    def _publish(self, params: tuple[Any, ...], state: SumsSideBySide, prior: Array) -> Attributes:
        groups = self._column_model().groups
        names = {j: group.name for group in groups for j in group.columns}
        return {
            "class_prior_": prior,
            "families_": [names[j] for j in range(self.n_features_in_)],
            "parameters_": [
                {"family": g.name, "columns": np.array(g.columns), **p._asdict()}
                for g, p in zip(groups, params, strict=True)
            ],
        }

    def _params(self) -> tuple[Any, ...]:
        groups = zip(self._column_model().groups, self.parameters_, strict=True)
        return tuple(g.model.Params(**{name: p[name] for name in g.model.Params._fields}) for g, p in groups)


__all__ = ["NaiveBayes"]
