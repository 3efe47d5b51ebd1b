"""Naive Bayes for mixed tables: a family of distributions for every column.

    min over π, θ of   - Σᵢ wᵢ [log π_{yᵢ} + Σⱼ log p_j(xᵢⱼ | θ_{yᵢ,j})],    p_j(x | θ) = h(x) exp(η·T(x) - A(η))

Each class and column has the member that expects the statistic T its rows have on average: one pass sums T by class.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 4.2.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.naive_bayes import moments as checker
from certifit.core import Attributes
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.families.column_families import column_families, family_name
from certifit.naive_bayes.base import NaiveBayesClassifier, Part, check_amount, check_prior
from certifit.naive_bayes.counts import BernoulliPart, CategoricalPart, class_sums
from certifit.naive_bayes.gaussian import LOOK, GaussianPart, ratio
from certifit.rows import Array, Block, Matrix, Sums


# --------------------------------------------------------------------------------------- columns of one family
@dataclass(frozen=True)
class FamilySums(Sums):
    weight: Array  # Σ w of the rows that have the column  (k, d)
    total: Array  # Σ w T(x)  (k, d, m)
    squares: Array  # Σ w T(x)²  (k, d, m)
    log_h: Array  # Σ w log h(x)  (k, d)


class FamilyParams(NamedTuple):
    members: tuple[tuple[Any, ...], ...]  # parameters of the member of each class and column, in the family's order


@dataclass(frozen=True)
class FamilyPart(Part):
    """Columns with a member of one exponential family in each class."""

    State = FamilySums
    Params = FamilyParams

    like: Family  # a member of the family
    columns: tuple[int, ...] = ()

    def sums(self, block: Block, k: int) -> FamilySums:
        some = block.w > 0
        assert block.y is not None
        X, y, w = np.asarray(block.X, dtype=np.float64)[some], block.y[some], block.w[some]
        columns = [self._column(X[:, j], y, w, k, j, block.start) for j in range(X.shape[1])]
        return FamilySums(*(np.stack(parts, axis=1) for parts in zip(*columns, strict=True)))

    def _column(self, x: Array, y: Array, w: Array, k: int, j: int, start: int) -> tuple[Array, ...]:
        there = ~np.isnan(x)
        x, y, w = x[there], y[there], w[there]
        inside = self.like.support.contains(x)
        if not inside.all():
            raise DataError(
                got=f"{x[~inside][0]:g} in column {self.place(j)}, among the rows from {start}",
                wanted=f"{self.like.support.words}, as {type(self.like).__name__} takes them",
                fix="Choose another family for this column.",
            )
        T = self.like.T(x)
        columns = np.column_stack([np.ones(len(x)), self.like.log_h(x), T, T**2])
        total = class_sums(columns, y, w, k)
        m = T.shape[1]
        return total[:, 0], total[:, 2 : 2 + m], total[:, 2 + m :], total[:, 1]

    def params(self, state: FamilySums) -> FamilyParams:
        """A class without a value in some column is taken to be like all rows there."""
        every = ratio(state.total.sum(axis=0), state.weight.sum(axis=0)[:, None])
        tau = np.where(state.weight[..., None] > 0, ratio(state.total, state.weight[..., None]), every)
        return FamilyParams(tuple(tuple(self._member(t) for t in row) for row in tau))

    def _member(self, tau: Array) -> tuple[Any, ...]:
        return tuple(type(self.like).from_mean(tau, **self.like.known_values).parameters.values())

    def _members(self, params: FamilyParams) -> list[list[Family]]:
        return [[type(self.like)(*values) for values in row] for row in params.members]

    def scores(self, params: FamilyParams, X: Matrix) -> Array:
        out = np.zeros((len(X), len(params.members)))
        for c, row in enumerate(self._members(params)):
            for j, member in enumerate(row):
                there = ~np.isnan(X[:, j])
                out[there, c] += member.log_density(X[there, j])
        return out

    def penalty(self, params: FamilyParams, state: FamilySums) -> float:
        return 0.0

    def evidence(self, params: FamilyParams, state: FamilySums, tol: float) -> list[checker.Evidence]:
        out = []
        for c, row in enumerate(self._members(params)):
            for j, member in enumerate(row):
                n, total = state.weight[c, j], state.total[c, j]
                with np.errstate(invalid="ignore"):
                    value = float(
                        np.where(total == 0, 0.0, member.natural * total).sum() - n * member.log_normaliser()
                    )
                loss = -(0.0 if np.isnan(value) else value) - float(state.log_h[c, j])  # NaN: all rows alike, certain
                out.append(checker.matching(member.mean_parameters, total, state.squares[c, j], n, loss, tol))
        return [checker.columns(out)]


# -------------------------------------------------------------------------------------------- several side by side
@dataclass(frozen=True)
class Together:
    parts: tuple[Any, ...]

    def __add__(self, other: Together) -> Together:
        return Together(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True)
class Side:
    """A part and its columns."""

    name: str
    columns: tuple[int, ...]
    part: Any

    def cut(self, X: Matrix) -> Array:
        return np.ascontiguousarray(X[:, list(self.columns)])


@dataclass(frozen=True)
class SeveralParts(Part):
    """Parts side by side, each with its columns."""

    State = Together

    sides: tuple[Side, ...]

    def _with(self, parts: list[Part]) -> SeveralParts:
        return SeveralParts(tuple(Side(s.name, s.columns, p) for s, p in zip(self.sides, parts, strict=True)))

    def prepare(self, block: Block, k: int) -> Part:
        assert block.y is not None
        X = block.X[:LOOK].toarray() if sparse.issparse(block.X) else block.X[:LOOK]
        head = Block(X, block.y[:LOOK], block.w[:LOOK], block.start)
        return self._with([s.part.prepare(head._replace(X=s.cut(X)), k) for s in self.sides])

    def sums(self, block: Block, k: int) -> Together:
        return Together(tuple(s.part.sums(block._replace(X=s.cut(block.X)), k) for s in self.sides))

    def again(self, total: Together) -> Part | None:
        better = [s.part.again(t) for s, t in zip(self.sides, total.parts, strict=True)]
        if not any(better):
            return None
        return self._with([s.part if b is None else b for s, b in zip(self.sides, better, strict=True)])

    def state(self, total: Together) -> Together:
        return Together(tuple(s.part.state(t) for s, t in zip(self.sides, total.parts, strict=True)))

    def params(self, state: Together) -> tuple[Any, ...]:
        return tuple(s.part.params(t) for s, t in zip(self.sides, state.parts, strict=True))

    def scores(self, params: tuple[Any, ...], X: Matrix) -> Array:
        scores = [s.part.scores(p, s.cut(X)) for s, p in zip(self.sides, params, strict=True)]
        return sum(scores[1:], start=scores[0])

    def penalty(self, params: tuple[Any, ...], state: Together) -> float:
        each = zip(self.sides, params, state.parts, strict=True)
        return sum(s.part.penalty(p, t) for s, p, t in each)

    def evidence(self, params: tuple[Any, ...], state: Together, tol: float) -> list[checker.Evidence]:
        each = zip(self.sides, params, state.parts, strict=True)
        return [checker.named(s.name, e) for s, p, t in each for e in s.part.evidence(p, t, tol)]

    def keep(self, state: Together) -> list[Any]:
        return [s.part.keep(t) for s, t in zip(self.sides, state.parts, strict=True)]

    def restore(self, kept: list[Any]) -> Together:
        return Together(tuple(s.part.restore(t) for s, t in zip(self.sides, kept, strict=True)))


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

    class_prior_: Array
    parameters_: list[dict[str, Any]]
    families_: list[str]

    def __init__(self, family="gaussian", *, priors=None, alpha=1.0, var_smoothing=1e-9):
        self.family = family
        self.priors = priors
        self.alpha = alpha
        self.var_smoothing = var_smoothing

    def _part(self) -> SeveralParts:
        alpha = check_amount(self.alpha, "alpha")
        smoothing = check_amount(self.var_smoothing, "var_smoothing")
        smoothed: dict[str, Callable[[tuple[int, ...]], Part]] = {
            "bernoulli": lambda columns: BernoulliPart(alpha, 0.5, binary=True),
            "categorical": lambda columns: CategoricalPart(alpha, columns=columns),
            "gaussian": lambda columns: GaussianPart(smoothing, shared=False, columns=columns),
        }
        groups: dict[tuple[str, Family | None], list[int]] = {}
        names = list(getattr(self, "feature_names_in_", ()))
        for j, like in enumerate(column_families(self.family, self.n_features_in_, names, advice="")):
            name = family_name(like)
            groups.setdefault((name, None if name in smoothed else like), []).append(j)

        def side(name: str, like: Family | None, columns: tuple[int, ...]) -> Side:
            return Side(name, columns, smoothed[name](columns) if like is None else FamilyPart(like, columns))

        return SeveralParts(tuple(side(*key, tuple(columns)) for key, columns in groups.items()))

    def _given_prior(self, k: int) -> Array | None:
        return check_prior(self.priors, k, "priors")

    def _publish(self, params: tuple[Any, ...], state: Together, prior: Array) -> Attributes:
        sides = self._part().sides
        names = {j: side.name for side in sides for j in side.columns}
        return {
            "class_prior_": prior,
            "families_": [names[j] for j in range(self.n_features_in_)],
            "parameters_": [
                {"family": s.name, "columns": np.array(s.columns), **p._asdict()}
                for s, p in zip(sides, params, strict=True)
            ],
        }

    def _params(self) -> tuple[Any, ...]:
        sides = zip(self._part().sides, self.parameters_, strict=True)
        return tuple(s.part.Params(**{name: p[name] for name in s.part.Params._fields}) for s, p in sides)


__all__ = ["NaiveBayes"]
