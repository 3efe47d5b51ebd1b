"""Gaussian naive Bayes with variances that are right at any offset.

    min over θ, v of  Σᵢ wᵢ Σⱼ [log(2π v) + ((xᵢⱼ - θ)² + ε) / v] / 2 - Σᵢ wᵢ log π_{yᵢ},   θ, v of class yᵢ, column j

The minimum is the class-wise mean, and the class-wise (or, with variance='shared', the pooled) variance plus ε.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 4.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from certifit.checkers.naive_bayes import moment_equations as checker
from certifit.checkers.naive_bayes.class_statistics import PlainClassMoments
from certifit.core import Attributes, Setting
from certifit.exceptions import DataError
from certifit.naive_bayes.class_moments import ClassMoments, MomentStatistics, ratio
from certifit.naive_bayes.class_sums_loops import squared_distances, squared_distances_of_entries
from certifit.naive_bayes.classifier import NaiveBayesClassifier, check_prior
from certifit.naive_bayes.column_model import ColumnModel, refuse_infinities
from certifit.naive_bayes.smoothing import variance_floor, variance_floor_loss
from certifit.rows import Array, Matrix


class GaussianParams(NamedTuple):
    """Means and variances of every class and column."""

    theta: Array  # means (k, d)
    var: Array  # variances, ε included (k, d)
    epsilon: float


@dataclass(frozen=True)
class GaussianColumns(MomentStatistics, ColumnModel):
    """Columns that are Gaussian within a class."""

    Params = GaussianParams

    var_smoothing: float = 0.0
    shared: bool = False  # one variance of a column for all classes

    def params(self, state: ClassMoments) -> GaussianParams:
        """Means and variances; a class that has no value in some column gets the moments of all rows there."""
        pooled = state.pooled()
        spread = ratio(pooled.ssd, pooled.weight)  # (1, d)
        epsilon = variance_floor(self.var_smoothing, spread)
        if self.shared:
            within = ratio(state.ssd.sum(axis=0), state.weight.sum(axis=0))
            var = np.repeat(within[None], len(state.weight), axis=0)
        else:
            var = np.where(state.weight > 0, ratio(state.ssd, state.weight), spread)
        # A column without any value scores no row: its variance may be anything positive.
        var = np.where(pooled.weight > 0, var + epsilon, 1.0)
        if not (var > 0).all():
            columns = [self.column_number(int(j)) for j in np.flatnonzero((var == 0).any(axis=0))]
            raise _no_variance(columns, float(pooled.weight.max()), epsilon)
        return GaussianParams(np.where(state.weight > 0, state.mean, pooled.mean), var, epsilon)

    def scores(self, params: GaussianParams, X: Matrix) -> Array:
        root = 1.0 / np.sqrt(2.0 * params.var)
        log_norm = 0.5 * np.log(2 * np.pi * params.var)
        out = np.empty((len(X), len(root)))
        squared_distances(X, params.theta, root, out)
        # Rows with a missing entry, or with values whose squares overflow, are scored again entry by entry.
        odd = ~np.isfinite(out[:, 0])
        out += log_norm.sum(axis=1)
        if odd.any():
            refuse_infinities(X[odd])
            again = np.empty((int(odd.sum()), len(root)))
            squared_distances_of_entries(X[odd], params.theta, root, log_norm, again)
            out[odd] = again
        return np.negative(out, out=out)

    def penalty(self, params: GaussianParams, state: ClassMoments) -> float:
        return variance_floor_loss(params.epsilon, state.weight, params.var)

    def evidence(self, params: GaussianParams, state: ClassMoments, tol: float) -> list[checker.MomentEvidence]:
        found = PlainClassMoments(state.weight, state.centre, state.delta, state.ssd)
        rules = checker.GaussianRules(params.epsilon, self.shared)
        return [checker.gaussian_evidence(params.theta, params.var, rules, found, tol)]


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
    epsilon_ : float, what was added to every variance (computed from `sums_` when asked for)
    class_prior_, class_count_, classes_ : (k,)
    coef_, intercept_ : (k, d), (k,) with variance='shared' only (computed when asked for)
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

    settings: ClassVar[Any] = {
        "var_smoothing": Setting(float, least=0, below=math.inf),
        "variance": Setting(choices=("separate", "shared")),
    }
    finite = False

    theta_: Array
    var_: Array
    class_prior_: Array

    def __init__(self, *, priors=None, var_smoothing=1e-9, variance="separate"):
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.variance = variance

    def _column_model(self) -> GaussianColumns:
        return GaussianColumns(var_smoothing=float(self.var_smoothing), shared=self.variance == "shared")

    def _given_prior(self, k: int) -> Array | None:
        return check_prior(self.priors, k, "priors")

    def _publish(self, params: GaussianParams, state: ClassMoments, prior: Array) -> Attributes:
        return {"theta_": params.theta, "var_": params.var, "class_prior_": prior}

    def _pooled(self) -> ClassMoments:
        """The moments of all rows seen, (1, d)."""
        pooled: ClassMoments = self._column_model().restore(self.sums_).pooled()
        return pooled

    @property
    def epsilon_(self) -> float:
        pooled = self._pooled()
        return variance_floor(float(self.var_smoothing), ratio(pooled.ssd, pooled.weight))

    @property
    def coef_(self) -> Array:
        if self.variance != "shared":
            raise AttributeError(f"coef_ is there with variance='shared' only; this is {self.variance!r}")
        # Subtracting a common vector changes no probability; about the mean of all rows nothing cancels.
        return (self.theta_ - self._pooled().mean) / self.var_

    @property
    def intercept_(self) -> Array:
        return self._log_prior() - 0.5 * (self.coef_ * (self.theta_ + self._pooled().mean)).sum(axis=1)

    def _params(self) -> GaussianParams:
        return GaussianParams(np.asarray(self.theta_), np.asarray(self.var_), float(self.epsilon_))


__all__ = ["GaussianNB"]
