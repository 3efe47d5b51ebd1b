"""Linear discriminant analysis, certified.

Classes are Gaussian with means m_c, priors π_c and one covariance W. The posterior of a class is the softmax of

    β_c·x + b_c,     W β_c = m_c - m̄,     b_c = log π_c - ½ (m_c - m̄)·β_c - m̄·β_c,     m̄ = Σ π_c m_c

The discriminant directions s solve B s = λ W s, B = Σ π_c (m_c - m̄)(m_c - m̄)ᵀ: no direction has a larger ratio of
variance between classes to variance within them. The coefficients minimise Σ π_c (½ β_c·Wβ_c - β_c·(m_c - m̄)).
References: Fisher, The use of multiple measurements in taxonomic problems (1936); Rao, The utilization of multiple
measurements in problems of biological classification (1948).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.discriminant_analysis import linear as checker
from certifit.core import Attributes, Estimator, Objective, Setting, certified
from certifit.core.settings import Settings
from certifit.discriminant_analysis.class_covariances import (
    ClassMeans,
    DiscriminantTuning,
    chosen_prior,
    estimated_covariances,
    ledoit_wolf_covariances,
    measure_class_means,
    shrink,
    weighted_scatters,
)
from certifit.discriminant_analysis.discriminants import (
    Discriminants,
    all_discriminants,
    centroid_discriminants,
    whiten,
)
from certifit.exceptions import DataError, NotSupportedError
from certifit.rows import Array, Block, Rows, encode_labels


class ClassCovariances(NamedTuple):
    """What the settings make of the rows: priors, means and covariances."""

    found: ClassMeans
    prior: Array  # (k,)
    within: Array  # (d, d) which is whitened
    pooled: Array  # (d, d) Σ π_c C_c, which is published
    between: Array  # (d, d)

    @property
    def centre(self) -> Array:
        """The mean of the class means by their priors (d,)."""
        return self.prior @ self.found.mean


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, Estimator):
    """Linear discriminant analysis.

    Parameters
    ----------
    solver : 'svd', 'lsqr' or 'eigen'
        One algorithm; the word says what scikit-learn's solvers differ in. 'svd' pools the rows of all classes,
        leaves out directions that do not vary within classes (`tol`), and has the directions that the class means
        span. 'lsqr' and 'eigen' average the classes' covariances by their priors and can shrink them; 'eigen' has a
        direction for every column and needs a covariance that is not singular.
    shrinkage : 'auto', float between 0 and 1, or None
        Share of the mean variance times the identity in each class's covariance; 'auto': the choice of Ledoit & Wolf.
    priors : array (k,) or None
        Class priors; None: the share of each class.
    n_components : int or None
        Directions that `transform` uses, at most min(k - 1, d), which is also the default.
    store_covariance : bool, default=False
        Whether `covariance_` is there with solver='svd' too.
    tol : float, default=1e-4
        With solver='svd', directions whose standard deviation within classes is at most this, in units of the
        columns' own, are left out.
    covariance_estimator : estimator with `covariance_`, or None
        Fitted to the rows of each class in place of shrinkage, with 'lsqr' and 'eigen'; rows must be in memory and
        without weights.

    Attributes
    ----------
    coef_, intercept_ : (k, d), (k,); (1, d), (1,) for two classes
    means_ : (k, d) class means
    priors_ : (k,)
    classes_ : (k,)
    covariance_ : (d, d) Σ π_c C_c, C_c the covariance of class c
    xbar_ : (d,) Σ π_c m_c, from which `transform` measures; not with solver='eigen'
    scalings_ : (d, r) discriminant directions s with s·Ws = 1; the largest entry of each is positive
    explained_variance_ratio_ : the share of each direction in the sum of all ratios λ
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X, y)
    >>> model.explained_variance_ratio_.round(4)
    array([0.9912, 0.0088])
    >>> model.score(X, y), model.certificate_.holds
    (0.98, True)
    """

    target = "classes"
    sparse = True
    settings: ClassVar[Settings] = {
        "solver": Setting(choices=("svd", "lsqr", "eigen")),
        "shrinkage": Setting(float, least=0, most=1, choices=("auto",), none=True),
        "n_components": Setting(int, least=1, none=True),
        "store_covariance": Setting(bool),
        "tol": Setting(float, least=0, below=math.inf),
    }
    differences: ClassVar[dict[str, str]] = {
        "transform": "works with solver='lsqr' too, by the directions that the class means span.",
        "coef_": "with solver='lsqr' and 'eigen' and more than two classes, coefficients are those of 'svd': a "
        "vector common to all classes, which changes no probability, is left out, so that nothing cancels far from "
        "zero; and coefficients of float32 rows are float64.",
    }
    _tuning: ClassVar[DiscriminantTuning] = DiscriminantTuning()

    coef_: Array
    intercept_: Array
    means_: Array
    priors_: Array
    classes_: Array
    scalings_: Array
    xbar_: Array

    def __init__(
        self,
        solver="svd",
        shrinkage=None,
        priors=None,
        n_components=None,
        store_covariance=False,
        tol=1e-4,
        covariance_estimator=None,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotSupportedError(
                got="shrinkage with solver='svd'", wanted="solver='lsqr' or 'eigen', which can shrink"
            )
        if self.covariance_estimator is None:
            return
        if self.solver == "svd":
            raise DataError(
                got="covariance_estimator with solver='svd'",
                wanted="solver='lsqr' or 'eigen': a covariance estimator is not supported with svd",
            )
        if self.shrinkage not in (None, 0):
            raise DataError(
                got="two settings for one thing",
                wanted="None for one: covariance_estimator and shrinkage parameters are not None",
                fix="Only one of the two can be set.",
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows)
        self._check_shape(labels.weight, rows)
        known = self._measure(labels.rows, chosen_prior(self.priors, labels.weight))
        A = self._whitening(known)
        means, centre = known.found.mean, known.centre
        away = means - centre
        coef = (away @ A) @ A.T
        intercept = np.log(known.prior) - 0.5 * ((away @ A) ** 2).sum(axis=1)
        if len(means) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        fitted = {
            "classes_": labels.classes,
            "priors_": known.prior,
            "means_": means,
            "coef_": coef,
            "intercept_": intercept - coef @ centre,
            **self._directions(known, A),
        }
        if self.solver != "eigen":
            fitted["xbar_"] = centre
        if self.solver != "svd" or self.store_covariance:
            fitted["covariance_"] = known.pooled
        claim = checker.LinearDiscriminantClaim.of(fitted, self.get_params(deep=False))
        measured = checker.DiscriminantMeasured(known.found.mean, known.within, known.pooled, known.between)
        given = None if self.priors is None else known.prior
        wanted = known.found.weight / known.found.weight.sum() if given is None else given
        exact = min(float(self.tol), checker.DiscriminantCheckTuning().exact)
        return {**fitted, "certificate_": certified(checker.certify, claim, measured, wanted, exact)}

    def _check_shape(self, weight: Array, rows: Rows) -> None:
        k, d = len(weight), rows.n_features
        if rows.n_rows <= k:
            raise DataError(
                got=f"{rows.n_rows} rows of {k} classes",
                wanted="rows that differ within classes. The number of samples must be more than that of classes",
            )
        if self.n_components is not None and self.n_components > min(k - 1, d):
            raise DataError(
                got=f"n_components={self.n_components} with {k} classes and {d} columns",
                wanted=f"at most {min(k - 1, d)}: n_components cannot be larger than min(n_features, n_classes - 1)",
            )

    def _measure(self, rows: Rows, prior: Array) -> ClassCovariances:
        """Means and covariances of rows with class numbers as targets."""
        k = len(prior)
        found = measure_class_means(rows, k, self._tuning)
        share = found.weight / found.weight.sum()
        away = found.mean - prior @ found.mean
        between = (away.T * prior) @ away
        if self._estimates_classes:
            pooled = np.tensordot(prior, self._class_covariances(rows, found), axes=1)
        else:
            weight = np.where(found.weight > 0, found.weight, 1.0)
            factors = np.stack([share / weight, prior / weight])[: 1 if self.priors is None else 2]
            S, lost = weighted_scatters(rows, found.mean, factors, self._tuning)
            pooled = shrink(S[-1], float(self.shrinkage or 0.0))
        if self.solver == "svd":
            return ClassCovariances(found, prior, S[0], pooled, between)
        if self.solver == "eigen" and self._estimates_classes:
            between = self._total_covariance(rows) - pooled
        elif self.solver == "eigen":
            # From one of them, for rows that hardly differ: a mean of means far from zero is rounded once more.
            off = found.mean - found.mean[0] + lost
            off = off - share @ off
            between = shrink(S[0] + (off.T * share) @ off, float(self.shrinkage or 0.0)) - pooled
        return ClassCovariances(found, prior, pooled, pooled, between)

    @property
    def _estimates_classes(self) -> bool:
        """Whether a covariance is estimated for each class by itself."""
        return self.covariance_estimator is not None or isinstance(self.shrinkage, str)

    def _class_covariances(self, rows: Rows, found: ClassMeans) -> Array:
        if self.covariance_estimator is not None:
            return estimated_covariances(rows, len(found.weight), self.covariance_estimator)
        return ledoit_wolf_covariances(rows, found, self._tuning)

    def _total_covariance(self, rows: Rows) -> Array:
        """The covariance of all rows, estimated as that of one class."""
        one = rows.relabel(_one_class)
        return self._class_covariances(one, measure_class_means(one, 1, self._tuning))[0]

    def _whitening(self, known: ClassCovariances) -> Array:
        least = self._tuning.least_eigenvalue
        found = whiten(known.within, known.found.mean, max(self.tol**2, least) if self.solver == "svd" else least)
        if self.solver == "eigen" and found.A.shape[1] < len(known.within):
            raise DataError(
                got=f"a singular within-class covariance (smallest eigenvalue {found.least:.2g} of its correlations)",
                wanted="columns that vary within classes and of which none is a combination of others",
                fix="Use solver='svd', which leaves such directions out, or shrinkage.",
            )
        if not found.A.size:
            raise DataError(
                got="columns that do not vary within classes",
                wanted="at least one direction that varies within classes",
                fix="A smaller tol may find one." if self.solver == "svd" else "Use shrinkage.",
            )
        return found.A

    def _directions(self, known: ClassCovariances, A: Array) -> Attributes:
        """The discriminant directions and their shares."""
        most = self._most_components(len(known.prior), len(known.within))
        if self.solver == "eigen":
            found = all_discriminants(A, known.between)
        else:
            away = known.found.mean - known.centre
            found = centroid_discriminants(A, np.sqrt(known.prior)[:, None] * away)
        total = found.ratios.sum()
        shares = found.ratios / total if total else np.zeros(len(found.ratios))
        return {"scalings_": self._kept(found), "explained_variance_ratio_": shares[:most]}

    def _kept(self, found: Discriminants) -> Array:
        if self.solver == "eigen":
            return found.vectors
        return found.vectors[:, np.sqrt(found.ratios) > self.tol * np.sqrt(found.ratios[0])]

    def _most_components(self, k: int, d: int) -> int:
        return min(k - 1, d) if self.n_components is None else int(self.n_components)

    @property
    def _n_features_out(self) -> int:
        return min(self.scalings_.shape[1], self._most_components(len(self.classes_), len(self.scalings_)))

    def transform(self, X: Any) -> Array:
        """The coordinates of rows along the discriminant directions, (n, n_components)."""
        rows = self._rows(X)
        origin = np.zeros(len(self.scalings_)) if self.solver == "eigen" else self.xbar_
        return rows.map(partial(_project, origin, self.scalings_[:, : self._n_features_out]))

    def decision_function(self, X: Any) -> Array:
        """Scores: the log-odds of the second class (n,) for two classes, (n, k) for more."""
        scores = self._rows(X).map(partial(_linear_scores, self.coef_, self.intercept_))
        return scores[:, 0] if len(self.coef_) == 1 else scores

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, k)."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Log-probability of each class, (n, k)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Σ π_c (½ β_c·Wβ_c - β_c·(m_c - m̄)) with the means and the covariance of these rows.

        Two classes have one β, the difference, and m_1 - m_0 in place of m_c - m̄.
        """
        check_is_fitted(self)
        rows = encode_labels(self._rows(X, y, sample_weight, target="classes"), self.classes_).rows
        known = self._measure(rows, np.asarray(self.priors_))
        A, mean, prior = self._whitening(known), known.found.mean, known.prior
        beta = np.asarray(self.coef_)
        aims, share = (mean - known.centre, prior) if len(beta) > 1 else (mean[1:] - mean[:1], np.ones(1))
        beta = beta - share @ beta if len(beta) > 1 else beta
        u, t = beta @ known.within @ A, aims @ A
        value = float(share @ (0.5 * (u**2).sum(axis=1) - (u * t).sum(axis=1)))
        return Objective(value, value, 0.0)


def _one_class(_y: Array | None, w: Array) -> tuple[Array, Array]:
    return np.zeros(len(w), np.int32), w


def _project(origin: Array, S: Array, block: Block) -> Array:
    return block.X @ S - origin @ S if hasattr(block.X, "toarray") else (block.X - origin) @ S


def _linear_scores(coef: Array, intercept: Array, block: Block) -> Array:
    return block.X @ coef.T + intercept


__all__ = ["LinearDiscriminantAnalysis"]
