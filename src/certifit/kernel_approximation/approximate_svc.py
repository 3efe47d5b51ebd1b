"""Kernel machines for very many rows: a linear machine on features that stand for the kernel.

    min over β, b of   ½ |β|² + C Σᵢ wᵢ φ(yᵢ (β·φ(xᵢ) + b)),     φ(x)·φ(z) ≈ k(x, z),   see `kernel_features`

Features are made from each block of rows as it passes, so that a table of any length, wherever it is, is fitted in
the memory of a few blocks; Newton's method on sums over rows (`svm.linear.solve`) needs few passes. The gap
that is proved is that of the problem with the approximated kernel. From Nyström features follows what that means for
the kernel itself: see `checkers.kernel_approximation.approximate_svc`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.kernel_approximation import approximate_svc as certificates
from certifit.checkers.kernel_approximation.kernel_error import PROVED
from certifit.checkers.svm.linear import ClaimedLinearSvm
from certifit.core import Attributes, Certificate
from certifit.core.settings import check_settings
from certifit.exceptions import DataError
from certifit.kernel_approximation.base import KernelFeatures
from certifit.kernel_approximation.kernel_features import Nystroem, RBFSampler, values
from certifit.rows import Rows, apply_class_weight, encode_labels
from certifit.svm.linear.linear_svm import LinearSVC
from certifit.svm.linear.slacks import one_against_rest
from certifit.svm.linear.solve import PrimalSvmProblem

SHARE = 8  # one in so many rows to start with: solving for these costs less than a pass over all
CHOICE = 0.25  # of the time allowed: most that may go into the choice of features

FEATURES: dict[str, Callable[[Any], KernelFeatures]] = {
    "nystroem": lambda model: Nystroem(
        model.kernel,
        gamma=model.gamma,
        coef0=model.coef0,
        degree=model.degree,
        n_components=model.n_components,
        random_state=model.random_state,
    ),
    "fourier": lambda model: RBFSampler(
        gamma=model.gamma, n_components=model.n_components, random_state=model.random_state
    ),
}


class ApproximateSVC(LinearSVC):
    """Support vector classifier with an approximated kernel; more than two classes one against the rest.

    Parameters
    ----------
    C : float, default=1.0
    kernel, gamma, degree, coef0 : as of SVC
    features : 'nystroem' or 'fourier', default='nystroem'
        Landmarks among the rows (any kernel), or random frequencies (kernel='rbf' only).
    n_components : int, default=300
        Features; more of them are closer to the kernel.
    loss : 'hinge', 'squared_hinge' or 'huberised_hinge'
    fit_intercept : bool, default=True
    class_weight : dict, 'balanced' or None
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    cache_size : float, default=500
        Megabytes of features that are kept: of all rows, if these are enough and the rows are in memory; else of some
        rows to start with, and features are made anew in every pass.
    max_iter : int, default=200
        Passes over the data.
    max_time : float or None
        Seconds after which the best fit so far is returned, with what is proved; up to a quarter of them go into the
        choice of features. Passes are not cut short: one proves what the features are worth, one the fit.
    random_state : int, RandomState or None
        Of the features.

    Attributes
    ----------
    features_ : the fitted Nystroem or RBFSampler
    coef_ : (1, m) or (k, m), of the features
    intercept_ : (1,) or (k,)
    classes_ : (k,)
    n_iter_, history_, certificate_ : see LinearSVC

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import ApproximateSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ApproximateSVC(n_components=30, random_state=0).fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds, round(model.score(X, y), 2)
    ('optimal', True, 0.95)
    """

    penalize_intercept, intercept_scaling, multi_class = False, 1.0, "ovr"

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        features="nystroem",
        n_components=300,
        loss="hinge",
        fit_intercept=True,
        class_weight=None,
        tol=1e-3,
        cache_size=500,
        max_iter=200,
        max_time=None,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.features = features
        self.n_components = n_components
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        check_settings(self, ("cache_size",))
        if self.features not in FEATURES:
            raise DataError(got=f"features={self.features!r}", wanted=f"one of {', '.join(map(repr, FEATURES))}")
        if self.features == "fourier" and self.kernel != "rbf":
            raise DataError(
                got=f"features='fourier' with kernel={self.kernel!r}",
                wanted="kernel='rbf'",
                fix="Use features='nystroem' for other kernels.",
            )
        began, labels = time.perf_counter(), encode_labels(rows)
        seconds = np.inf if self.max_time is None else CHOICE * self.max_time
        features = FEATURES[self.features](self).hurried(seconds).fit(labels.rows)
        rows = apply_class_weight(labels, self.class_weight)
        mapped: Rows = features.mapped(rows)
        room, pose = int(self.cache_size * 1e6 / (8 * mapped.n_features)), features.problem(rows)
        if rows.in_memory and rows.n_rows <= room:
            mapped, pose = mapped.load(), PrimalSvmProblem
        rules = one_against_rest(len(labels.classes))
        fixed = {"classes_": labels.classes, "features_": features}
        sample = min(room, rows.n_rows // SHARE)
        fitted = self._solve_primal(mapped, rules, fixed, partial(pose, sample=sample, began=began))
        return {**fitted, "certificate_": self._with_kernel(fitted, features, rows)}

    def _with_kernel(self, fitted: Attributes, features: KernelFeatures, rows: Rows) -> Certificate:
        """The certificate of the linear machine, and what the features' own adds to it."""
        found, own = fitted["certificate_"], features.certificate_
        facts = dict(own.facts)
        if isinstance(features, Nystroem) and facts["kernel"] == PROVED:
            svm = self._svm_objective()
            spec = ClaimedLinearSvm(*svm.hinge, svm.C, svm.rho)
            machines = certificates.Machines(fitted["coef_"], fitted["intercept_"], spec, features.feature_map())
            kernel = partial(values, features.kernel_function())
            facts = {**certificates.original(machines, kernel, rows, found.objective, own.objective), **facts}
        return replace(found, claim=certificates.CLAIM, checks=(*found.checks, *own.checks), facts=facts)

    def _rows(self, *args: Any, **options: Any) -> Rows:
        """Rows of features."""
        rows = super()._rows(*args, **options)
        return self.features_.mapped(rows)
