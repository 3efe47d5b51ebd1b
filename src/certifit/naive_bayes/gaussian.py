"""Gaussian naive Bayes with variances that are right at any offset.

    min over θ, v of  Σᵢ wᵢ Σⱼ [log(2π v) + ((xᵢⱼ - θ)² + ε) / v] / 2 - Σᵢ wᵢ log π_{yᵢ},   θ, v of class yᵢ, column j

The minimum is the class-wise mean, and the class-wise (or, with variance='shared', the pooled) variance plus ε.
Sums are taken about a centre of each class's own, and kept, so that `partial_fit` is a merge.
References: Chan, Golub & LeVeque, Algorithms for computing the sample variance (1983); Bishop, Pattern Recognition
and Machine Learning (2006), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from certifit.checkers.naive_bayes import moments as checker
from certifit.core import Attributes
from certifit.exceptions import DataError
from certifit.naive_bayes.base import NaiveBayesClassifier, Part, check_amount, check_prior, log, refuse_infinities
from certifit.naive_bayes.class_sums_loops import (
    by_class,
    class_moments,
    class_moments_with_holes,
    gaussian_scores,
    gaussian_scores_with_holes,
)
from certifit.numerics.moments import check_overflow
from certifit.numerics.products import far
from certifit.rows import Array, Block, Matrix, Sums

LOOK = 256  # rows of the first block from which centres are chosen


@dataclass(frozen=True)
class ShiftedSums(Sums):
    """Sums about the centres c of a pass, each over the rows that have the column."""

    weight: Array  # Σ w  (k, d)
    z: Array  # Σ w (x - c)  (k, d)
    zz: Array  # Σ w (x - c)²  (k, d)


@dataclass(frozen=True)
class Moments:
    """Mean (as centre + delta, which keeps the digits of both) and scatter; `+` is exact for any two centres."""

    weight: Array  # (k, d)
    centre: Array  # (k, d)
    delta: Array  # (k, d)
    ssd: Array  # Σ w (x - mean)²  (k, d)

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        share = ratio(other.weight, weight)
        gap = (other.centre - self.centre) + (other.delta - self.delta)
        seen = self.weight > 0
        return Moments(
            weight,
            np.where(seen, self.centre, other.centre),
            np.where(seen, self.delta + share * gap, other.delta),
            self.ssd + other.ssd + np.where(seen, self.weight * share * gap**2, 0.0),
        )

    @property
    def mean(self) -> Array:
        return self.centre + self.delta

    def pooled(self) -> Moments:
        """All classes as one, (1, d)."""
        total = Moments(*(a[:1] for a in (self.weight, self.centre, self.delta, self.ssd)))
        for c in range(1, len(self.weight)):
            here = slice(c, c + 1)
            total = total + Moments(self.weight[here], self.centre[here], self.delta[here], self.ssd[here])
        return total


class GaussianParams(NamedTuple):
    theta: Array  # means (k, d)
    var: Array  # variances, ε included (k, d)
    epsilon: float


@dataclass(frozen=True)
class GaussianPart(Part):
    """Columns that are Gaussian within a class."""

    State = Moments
    Params = GaussianParams

    var_smoothing: float
    shared: bool
    centre: Array | None = None  # (k, d)
    columns: tuple[int, ...] = ()

    def prepare(self, block: Block, k: int) -> Part:
        X, w = block.X[:LOOK], block.w[:LOOK]
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        assert block.y is not None
        there = (w > 0)[:, None] & np.isfinite(X)  # infinities are refused by the pass
        X = np.where(there, X, 0.0)
        one_of = (block.y[:LOOK] == np.arange(k)[:, None]).astype(np.float64)  # (k, rows)
        every = ratio(X.sum(axis=0), there.sum(axis=0))
        n = one_of @ there
        return replace(self, centre=np.where(n > 0, ratio(one_of @ X, n), every))

    def sums(self, block: Block, k: int) -> ShiftedSums:
        X, w, c = block.X, block.w, self.centre
        assert c is not None
        assert block.y is not None
        order, start = by_class(block.y, w, k)
        z, zz = np.zeros(c.shape), np.zeros(c.shape)
        class_moments(X, w, order, start, c, z, zz)
        if np.isfinite(z).all():
            count = np.bincount(block.y, w, k)
            return ShiftedSums(np.repeat(count[:, None], c.shape[1], axis=1), z, zz)
        refuse_infinities(X)
        weight, z, zz = np.zeros((3, *c.shape))
        class_moments_with_holes(X, w, order, start, c, weight, z, zz)
        return ShiftedSums(weight, z, zz)

    def again(self, total: ShiftedSums) -> Part | None:
        check_overflow(total.zz)
        delta = ratio(total.z, total.weight)
        variance = np.maximum(ratio(total.zz, total.weight) - delta**2, 0.0)
        assert self.centre is not None
        rounding = (8 * np.finfo(np.float64).eps * self.centre) ** 2
        lost = delta**2 > far(np.float64) ** 2 * variance + rounding
        return replace(self, centre=self.centre + delta) if lost.any() else None

    def state(self, total: ShiftedSums) -> Moments:
        delta = ratio(total.z, total.weight)
        ssd = np.maximum(total.zz - total.weight * delta**2, 0.0)
        assert self.centre is not None
        return Moments(total.weight, self.centre, delta, ssd)

    def params(self, state: Moments) -> GaussianParams:
        """A class without a value in some column is taken to be like all rows there."""
        pooled = state.pooled()
        spread = ratio(pooled.ssd, pooled.weight)  # (1, d)
        epsilon = float(self.var_smoothing * spread.max())
        if self.shared:
            within = ratio(state.ssd.sum(axis=0), state.weight.sum(axis=0))
            var = np.repeat(within[None], len(state.weight), axis=0)
        else:
            var = np.where(state.weight > 0, ratio(state.ssd, state.weight), spread)
        var = np.where(pooled.weight > 0, var + epsilon, 1.0)  # a column without values does not matter
        if not (var > 0).all():
            columns = [self.place(int(j)) for j in np.flatnonzero((var == 0).any(axis=0))]
            raise _no_variance(columns, float(pooled.weight.max()), epsilon)
        return GaussianParams(np.where(state.weight > 0, state.mean, pooled.mean), var, epsilon)

    def scores(self, params: GaussianParams, X: Matrix) -> Array:
        root = 1.0 / np.sqrt(2.0 * params.var)
        log_norm = 0.5 * np.log(2 * np.pi * params.var)
        out = np.empty((len(X), len(root)))
        gaussian_scores(X, params.theta, root, out)
        holes = ~np.isfinite(out[:, 0])  # or values that overflow
        out += log_norm.sum(axis=1)
        if holes.any():
            refuse_infinities(X[holes])
            part = np.empty((int(holes.sum()), len(root)))
            gaussian_scores_with_holes(X[holes], params.theta, root, log_norm, part)
            out[holes] = part
        return np.negative(out, out=out)

    def penalty(self, params: GaussianParams, state: Moments) -> float:
        return 0.5 * params.epsilon * float((state.weight / params.var).sum())

    def evidence(self, params: GaussianParams, state: Moments, tol: float) -> list[checker.Evidence]:
        found = checker.Moments(state.weight, state.mean, state.ssd)
        return [checker.gaussian(params.theta, params.var, params.epsilon, self.shared, found, tol)]


def ratio(a: Array, b: Array) -> Array:
    """a / b, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0)


def _no_variance(columns: list[int], weight: float, epsilon: float) -> DataError:
    some = ", ".join(map(str, columns[:10])) + (", …" if len(columns) > 10 else "")
    if epsilon == 0 and weight <= 1:
        return DataError(got="one sample, which has no variance", wanted="rows that differ", fix="Fit on more rows.")
    return DataError(
        got=f"columns that do not vary within a class (column numbers {some})",
        wanted="a positive variance in every class and column, after smoothing",
        fix="Leave these columns out, or use var_smoothing > 0 with at least one column that varies.",
    )


class GaussianNB(NaiveBayesClassifier):
    """Gaussian naive Bayes.

    Parameters
    ----------
    priors : array (k,) or None
        Class priors; None: the share of each class.
    var_smoothing : float, default=1e-9
        Share of the largest variance of any column that is added to every variance.
    variance : 'separate' or 'shared'
        One variance for each class and column, or one for each column. With 'shared' the classes are separated by
        hyperplanes and the posterior is softmax(X @ coef_.T + intercept_), the form of logistic regression.

    Attributes
    ----------
    theta_, var_ : (k, d) means and variances, `epsilon_` included
    epsilon_ : float, what was added to every variance
    class_prior_, class_count_, classes_ : (k,)
    coef_, intercept_ : (k, d), (k,) with variance='shared' only
    sums_ : what `partial_fit` adds to
    certificate_ : Certificate

    A missing entry (NaN) is left out of the sums and of a row's score.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('exact', True)
    >>> model.score(X, y)
    0.96
    """

    finite = False

    theta_: Array
    var_: Array
    epsilon_: float
    class_prior_: Array

    def __init__(self, *, priors=None, var_smoothing=1e-9, variance="separate"):
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.variance = variance

    def _part(self) -> GaussianPart:
        if self.variance not in ("separate", "shared"):
            raise DataError(got=f"variance={self.variance!r}", wanted="'separate' or 'shared'")
        return GaussianPart(check_amount(self.var_smoothing, "var_smoothing"), self.variance == "shared")

    def _given_prior(self, k: int) -> Array | None:
        return check_prior(self.priors, k, "priors")

    def _publish(self, params: GaussianParams, state: Moments, prior: Array) -> Attributes:
        fitted = {"theta_": params.theta, "var_": params.var, "epsilon_": params.epsilon, "class_prior_": prior}
        if self.variance != "shared":
            return fitted
        middle = state.pooled().mean  # a common vector changes no probability; about the middle nothing cancels
        coef = (params.theta - middle) / params.var
        intercept = log(prior) - 0.5 * (coef * (params.theta + middle)).sum(axis=1)
        return {**fitted, "coef_": coef, "intercept_": intercept}

    def _params(self) -> GaussianParams:
        return GaussianParams(np.asarray(self.theta_), np.asarray(self.var_), float(self.epsilon_))


__all__ = ["GaussianNB"]
