"""Kernel machines for very many rows: a linear machine on features that stand for the kernel.

    min over β, b of   ½ |β|² + C Σᵢ wᵢ loss(yᵢ (β·φ(xᵢ) + b)),     φ(x)·φ(z) ≈ k(x, z)

Features φ are those of `nystroem` or `rbf_sampler`. They are computed from each block of rows as it passes, so that a
table of any length, wherever it is, is fitted in the memory of a few blocks; Newton's method on sums over rows
(`svm.linear.solve`) needs few passes. The gap that is proved is that of the problem with the approximated kernel.
With Nyström features, a bound for the kernel itself follows: see `checkers.kernel_approximation.approximate_svc`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from certifit.checkers.kernel_approximation import approximate_svc as certificates
from certifit.checkers.kernel_approximation.kernel_error import KernelStatus
from certifit.checkers.svm.linear_machines.claimed import ClaimedLinearSvm
from certifit.core import Attributes, Certificate, proves_later
from certifit.core.config import unproved
from certifit.core.settings import Setting, Settings
from certifit.exceptions import DataError
from certifit.kernel_approximation.base import KernelFeatures
from certifit.kernel_approximation.nystroem import Nystroem, kernel_values
from certifit.kernel_approximation.rbf_sampler import RBFSampler
from certifit.rows import Rows, apply_class_weight, encode_labels
from certifit.svm.linear.linear_svm import LinearSVC
from certifit.svm.linear.slacks import one_against_rest
from certifit.svm.linear.solve import PrimalSvmProblem


@dataclass(frozen=True)
class ApproximateSVCTuning:
    """Numbers that steer how features are made and where the linear machine starts."""

    sample_share: int = 8  # the first fit is to one row in so many at least: it costs less than a pass over all rows
    time_share: float = 0.25  # most of the time allowed that the choice of features may take


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

    penalty, penalize_intercept, intercept_scaling, multi_class = "l2", False, 1.0, "ovr"
    settings: ClassVar[Settings] = {
        **LinearSVC.settings,
        **{name: Nystroem.settings[name] for name in ("kernel", "gamma", "degree", "n_components")},
        "features": Setting(choices=("nystroem", "fourier")),
        "cache_size": Setting(float, least=0),
    }
    ignored: ClassVar[tuple[str, ...]] = ()
    differences: ClassVar[dict[str, str]] = {}
    _feature_tuning: ClassVar[ApproximateSVCTuning] = ApproximateSVCTuning()

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

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.features == "fourier" and self.kernel != "rbf":
            raise DataError(
                got=f"features='fourier' with kernel={self.kernel!r}",
                wanted="kernel='rbf'",
                fix="Use features='nystroem' for other kernels.",
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began, labels, tuning = time.perf_counter(), encode_labels(rows), self._feature_tuning
        seconds = np.inf if self.max_time is None else tuning.time_share * self.max_time
        features = self._unfitted_features().limit_seconds(seconds).fit(labels.rows)
        rows = apply_class_weight(labels, self.class_weight)
        mapped: Rows = features.mapped(rows)
        # rows whose features fit in the cache
        room, pose = int(self.cache_size * 1e6 / (8 * mapped.n_features)), features.problem(rows)
        if rows.in_memory and rows.n_rows <= room:
            mapped, pose = mapped.load(), PrimalSvmProblem
        rules = one_against_rest(len(labels.classes))
        fixed = {"classes_": labels.classes, "features_": features}
        sample = min(room, rows.n_rows // tuning.sample_share)
        fitted = self._solve_primal(mapped, rules, fixed, partial(pose, sample=sample, began=began))
        return {**fitted, "certificate_": self._with_kernel_facts(fitted, features, rows)}

    def _unfitted_features(self) -> KernelFeatures:
        if self.features == "fourier":
            return RBFSampler(gamma=self.gamma, n_components=self.n_components, random_state=self.random_state)
        return Nystroem(
            self.kernel,
            gamma=self.gamma,
            coef0=self.coef0,
            degree=self.degree,
            n_components=self.n_components,
            random_state=self.random_state,
        )

    def _with_kernel_facts(self, fitted: Attributes, features: KernelFeatures, rows: Rows) -> Certificate:
        """The certificate of the linear machine, with the checks and facts of its features."""
        found, own = fitted["certificate_"], features.certificate_
        if proves_later():
            return unproved()
        facts = dict(own.facts)
        if isinstance(features, Nystroem) and facts["kernel"] == KernelStatus.PROVED:
            svm = self._svm_objective()
            spec = ClaimedLinearSvm(*svm.hinge, svm.C, svm.rho)
            machines = certificates.FeatureMachines(
                fitted["coef_"], fitted["intercept_"], spec, features.feature_map()
            )
            kernel = partial(kernel_values, features.kernel_function())
            exact = certificates.exact_kernel_fact(machines, kernel, rows, found.objective, own.objective)
            facts = {**exact, **facts}
        claim = certificates.FeatureMachines.claim
        return replace(found, claim=claim, checks=(*found.checks, *own.checks), facts=facts)

    def _rows(self, *args: Any, **options: Any) -> Rows:
        """Rows of features."""
        rows = super()._rows(*args, **options)
        return self.features_.mapped(rows)
