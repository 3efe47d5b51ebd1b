"""Quadratic discriminant analysis, certified.

Classes are Gaussian with means m_c, priors π_c and covariances C_c = R_c diag(s_c) R_cᵀ. The posterior of a class is
the softmax of

    log π_c - ½ Σⱼ log s_cj - ½ Σⱼ (R_cᵀ(x - m_c))ⱼ² / s_cj

A class whose rows lie in a plane has no density. Its variances are held at `tol` or more: of all covariances whose
variances along every axis are at least `tol`, the likeliest has the axes of the rows' own, and their variances or
`tol`.

Reference: Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), section 4.3.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh, norm
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.discriminant_analysis import quadratic as checker
from certifit.checkers.discriminant_analysis.linear import DiscriminantCheckTuning
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
from certifit.exceptions import DataError, NotSupportedError, warn_caller
from certifit.rows import Array, Block, Rows, encode_labels


class SingularClassWarning(UserWarning):
    """Rows of a class lie in a plane: variances across it are held at the least that is allowed."""


class QuadraticDiscriminantAnalysis(ClassifierMixin, Estimator):
    """Quadratic discriminant analysis: a Gaussian with its own covariance for each class.

    Parameters
    ----------
    solver : 'svd' or 'eigen'
        One algorithm; the word says what scikit-learn's solvers differ in: 'svd' takes reg_param, 'eigen' shrinkage
        or a covariance_estimator.
    shrinkage : 'auto', float between 0 and 1, or None
        Share of the mean variance times the identity in each class's covariance, with solver='eigen'; 'auto': the
        choice of Ledoit & Wolf.
    priors : array (k,) or None
        Class priors; None: the share of each class.
    reg_param : float between 0 and 1, default=0.0
        Share of the identity in each class's covariance, with solver='svd'.
    store_covariance : bool, default=False
        Whether `covariance_` is there.
    tol : float, default=1e-4
        The least variance of a class along any axis. Smaller ones, of columns that are constant or combinations of
        others within a class, are held at it, with a warning; a class that has no larger one is refused.
    covariance_estimator : estimator with `covariance_`, or None
        Fitted to the rows of each class, with solver='eigen'; rows must be in memory and without weights.

    Attributes
    ----------
    means_ : (k, d) class means
    priors_ : (k,)
    classes_ : (k,)
    rotations_ : (k, d, d) principal axes of each class, in columns; the largest entry of each is positive
    scalings_ : (k, d) variances along them, falling, at least tol
    covariance_ : (k, d, d) of these axes and variances, with store_covariance=True
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (0.98, True)
    """

    target = "classes"
    settings: ClassVar[Settings] = {
        "solver": Setting(choices=("svd", "eigen")),
        "shrinkage": Setting(float, least=0, most=1, choices=("auto",), none=True),
        "reg_param": Setting(float, least=0, most=1),
        "store_covariance": Setting(bool),
        "tol": Setting(float, least=0, below=math.inf),
    }
    differences: ClassVar[dict[str, str]] = {
        "rotations_": "An array (k, d, d), where scikit-learn has a list of k arrays; scalings_ and covariance_ too.",
        "tol": "Variances of a class up to tol are held at it, with a warning; scikit-learn raises a LinAlgError.",
        "priors": "Priors that do not sum to 1 are divided by their sum, with a warning; scikit-learn takes them.",
    }
    _tuning: ClassVar[DiscriminantTuning] = DiscriminantTuning()

    means_: Array
    priors_: Array
    classes_: Array
    rotations_: Array
    scalings_: Array
    covariance_: Array

    def __init__(
        self,
        *,
        solver="svd",
        shrinkage=None,
        priors=None,
        reg_param=0.0,
        store_covariance=False,
        tol=1e-4,
        covariance_estimator=None,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotSupportedError(
                got="shrinkage with solver='svd'", wanted="solver='eigen', which can shrink, or reg_param"
            )
        if self.solver == "svd" and self.covariance_estimator is not None:
            raise DataError(
                got="covariance_estimator with solver='svd'",
                wanted="solver='eigen': covariance_estimator is not supported with solver='svd'",
            )
        if self.covariance_estimator is not None and self.shrinkage not in (None, 0):
            raise DataError(
                got="two settings for one thing",
                wanted="None for one: covariance_estimator and shrinkage parameters are not None",
                fix="Only one of the two can be set.",
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows)
        prior = chosen_prior(self.priors, labels.weight)
        found = measure_class_means(labels.rows, len(prior), self._tuning)
        plain = weighted_scatters(labels.rows, found.mean, np.diag(1 / found.weight), self._tuning).zz
        covariances = self._covariances(labels.rows, found, plain)
        rotations, scalings, held = np.empty_like(covariances), np.empty(found.mean.shape), {}
        for c, C in enumerate(covariances):
            one = float(found.weight[c]) <= 1 and _is_point(plain[c], found.mean[c])
            rotations[c], s = self._axes(C, labels.classes[c], one, _is_point(C, found.mean[c]))
            scalings[c] = np.maximum(s, self.tol)
            if s[-1] <= self.tol:
                held[str(labels.classes[c])] = int((s <= self.tol).sum())
                covariances[c] = (rotations[c] * scalings[c]) @ rotations[c].T
        self._warn_of_held(held)
        stored = covariances if self.store_covariance else None
        eps = float(np.finfo(np.float64).eps)
        claim = checker.QuadraticClaim(prior, found.mean, rotations, scalings, stored, eps)
        measured = checker.QuadraticMeasured(prior, found.mean, covariances, plain, found.weight)
        exact = min(float(self.tol), DiscriminantCheckTuning().exact)
        return {
            "classes_": labels.classes,
            "priors_": prior,
            "means_": found.mean,
            "rotations_": rotations,
            "scalings_": scalings,
            **({} if stored is None else {"covariance_": stored}),
            "certificate_": certified(checker.certify_quadratic, claim, measured, exact, sum(held.values())),
        }

    def _covariances(self, rows: Rows, found: ClassMeans, S: Array) -> Array:
        """The covariance of each class (k, d, d), as the settings estimate it; S are those of the rows."""
        k = len(found.weight)
        if self.solver == "eigen" and self.covariance_estimator is not None:
            return estimated_covariances(rows, k, self.covariance_estimator)
        if self.solver == "eigen" and isinstance(self.shrinkage, str):
            return ledoit_wolf_covariances(rows, found, self._tuning)
        if self.solver == "eigen":
            return np.stack([shrink(one, float(self.shrinkage or 0.0)) for one in S])
        return (1 - self.reg_param) * S + self.reg_param * np.eye(S.shape[1])

    def _axes(self, C: Array, label: Any, one: bool, point: bool) -> tuple[Array, Array]:
        """Principal axes (d, d), in columns, and the variances along them (d,), falling, some of them to be held.

        `one` says whether the class has a single row, `point` whether all its rows are the same.
        """
        s, R = eigh(C)
        s, R = s[::-1], R[:, ::-1]
        least = 8 * len(C) * np.finfo(np.float64).eps * float(s[0])
        small = s[0] <= self.tol and (self.tol == 0 or not point)
        if small or (one and s[-1] <= self.tol) or (least > self.tol and s[-1] <= least):
            words = f"; y has only 1 sample in class {label}" if one else ""
            raise DataError(
                got=f"class {label!s} with a variance of {max(0.0, float(s[-1])):.2g} along some axis, and of "
                f"{max(0.0, float(s[0])):.2g} along the longest{words}",
                wanted=f"more than {max(least, float(self.tol)):.2g}: its covariance matrix is not full rank",
                fix=f"Increase the value of {self._cure}, rescale the columns, leave out those that are combinations "
                "of others, or change tol.",
            )
        return R * np.where(R[np.abs(R).argmax(axis=0), np.arange(len(R))] < 0, -1.0, 1.0), s

    @property
    def _cure(self) -> str:
        return "reg_param" if self.solver == "svd" else "shrinkage"

    def _warn_of_held(self, held: dict[str, int]) -> None:
        """Warn of classes, named with the number of axes, of which rows hardly leave a plane."""
        if not held:
            return
        words = ", ".join(f"{name} ({count} {'axis' if count == 1 else 'axes'})" for name, count in held.items())
        warn_caller(
            f"The covariance matrix of class {words} is not full rank: variances up to tol={self.tol:g} are held at "
            f"it. Increase the value of {self._cure}, or leave out columns that are combinations of others.",
            SingularClassWarning,
        )

    def _joint(self, X: Any) -> Array:
        """Log joint densities of rows and classes, less a constant (n, k)."""
        check_is_fitted(self)
        return self._rows(X).map(partial(_log_densities, self._parts()))

    def _parts(self) -> tuple[Array, Array, Array]:
        """Means (k, d), whitening matrices (k, d, d) and constants (k,)."""
        constant = np.log(self.priors_) - 0.5 * np.log(self.scalings_).sum(axis=1)
        return self.means_, self.rotations_ / np.sqrt(self.scalings_)[:, None, :], constant

    def decision_function(self, X: Any) -> Array:
        """Log joint densities less a constant (n, k); the log-odds of the second class (n,) for two classes."""
        scores = self._joint(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        scores = self._joint(X)
        return self.classes_[scores.argmax(axis=1)]

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
        """Minus the log-likelihood of rows and classes, which means, shares and plain covariances minimise."""
        rows = encode_labels(self._rows(X, y, sample_weight, target="classes"), self.classes_).rows
        value = float(rows.sum(partial(_joint_loss, self._parts())))
        return Objective(value, value, 0.0)


def _is_point(C: Array, mean: Array) -> bool:
    """Whether a covariance (d, d) is nothing but the rounding of rows that are all the same."""
    # The length by SciPy: squares of large values overflow.
    return bool(np.sqrt(max(float(np.trace(C)), 0.0)) <= 16 * np.finfo(np.float64).eps * norm(mean))


def _log_densities(parts: tuple[Array, Array, Array], block: Block) -> Array:
    means, whitening, constant = parts
    out = np.empty((len(block.w), len(constant)))
    for c, (m, A) in enumerate(zip(means, whitening, strict=True)):
        out[:, c] = constant[c] - 0.5 * (((block.X - m) @ A) ** 2).sum(axis=1)
    return out


def _joint_loss(parts: tuple[Array, Array, Array], block: Block) -> float:
    scores = _log_densities(parts, block)
    assert block.y is not None
    own = scores[np.arange(len(block.w)), block.y] - 0.5 * block.X.shape[1] * np.log(2 * np.pi)
    return -float(block.w @ own)


__all__ = ["QuadraticDiscriminantAnalysis"]
