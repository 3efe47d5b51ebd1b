"""`certifit warm-up`: compile loops once, by small fits of every estimator or of some; Numba keeps the result."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from inspect import signature
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import certifit
from certifit.cli.screen import Screen
from certifit.core import Estimator
from certifit.decomposition.kernel.kernel_pca import KernelPCA
from certifit.exceptions import DataError
from certifit.kernel_approximation.approximate_svc import ApproximateSVC
from certifit.kernel_approximation.base import KernelFeatures
from certifit.linear_model.ridge_classifier import RidgeClassifier
from certifit.numerics.compiled.compiling import compiled_at_once
from certifit.numerics.sparse_cholesky.multifrontal import factor_fronts, order_by_minimum_degree, plan_fronts
from certifit.registry import ESTIMATORS
from certifit.rows.named_columns import nearest_names
from certifit.svm.kernel.kernel_machine import KernelMachine
from certifit.svm.linear.base import LinearSvmEstimator


class WarmUpShapes(NamedTuple):
    """Rows and columns of the tables that are fitted."""

    tall: tuple[int, int] = (180_000, 4)  # enough for the compiled way, and for threads on what early stopping leaves
    many: tuple[int, int] = (20_000, 4)  # for sums over rows that go no other way where there are more
    few: tuple[int, int] = (2500, 4)  # for estimators that are not sums over rows
    fewer: tuple[int, int] = (1000, 4)  # for those of many models
    short: tuple[int, int] = (40, 8)
    wide: tuple[int, int] = (40, 100)
    wider: tuple[int, int] = (40, 1000)  # where linear classifiers go another way
    widest: tuple[int, int] = (40, 2500)  # where linear machines go another way


def run_warm_up(screen: Screen, names: Collection[str] = ()) -> None:
    """Fit each estimator to dense and sparse, tall and wide, float32 and float64 rows of two and three classes.

    Those with these names alone, where there are any.
    """
    known = {entry.name: entry for entry in ESTIMATORS if _fits_alone(entry.load())}
    for name in names:
        if name not in known:
            near = nearest_names(name, [*known])
            raise DataError(
                got=f"no estimator {name!r} to compile for",
                wanted="names of estimators that fit a table by themselves",
                fix=f"Did you mean {near[0]!r}?" if near else "",
            )
    entries = [known[name] for name in names] or [*known.values()]
    for entry in entries:
        name, cls = entry.name, entry.load()
        cases = _cases(cls)
        with (
            screen.progress(f"compiling {name}", len(cases)) as progress,
            warnings.catch_warnings(),
            compiled_at_once(),
        ):
            warnings.simplefilter("ignore")  # four passes prove little, and wide tables have collinear columns
            for done, (X, y) in enumerate(cases, start=1):
                _use(cls(), X, y)
                progress(done, len(cases))
            for settings in entry.warm_up:
                for X, y in _small():
                    _answer(cls(**settings).fit(X, y), X)
    if not names or "KMeans" in names:
        certifit.KMeans(3).fit(np.arange(2000.0)[:, None])  # one column is cut by dynamic programming
    if not names:
        with compiled_at_once():
            _factor_dense_blocks()
            _assess()
    screen.say(f"ready: {', '.join(entry.name for entry in entries)}")


def _factor_dense_blocks() -> None:
    """What locally linear embedding does on tables larger than any fitted here."""
    A = sparse.random_array((60, 60), density=0.1, rng=np.random.default_rng(0))
    M = sparse.csc_array(A.T @ A + sparse.eye_array(60))
    factor_fronts(plan_fronts(order_by_minimum_degree(M)), 0.0, keep=True)


def _assess() -> None:
    """Folds and single rows left out of sums, and replicates by weights."""
    X, y = _small()[1]
    for method in ("k-fold", "leave-one-out"):
        certifit.assess(certifit.GaussianNB(), X, y, method=method)
    certifit.bootstrap_coefficients(certifit.LinearRegression(), X, y, n_replicates=10)


def _fits_alone(cls: type) -> bool:
    """Whether it is an `Estimator` that can be made without being told what to wrap."""
    if not issubclass(cls, Estimator):
        return False
    settings = [*signature(cls.__init__).parameters.values()][1:]
    return all(setting.default is not setting.empty for setting in settings)


def _cases(cls: type[Estimator]) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    tags = get_tags(cls())
    targets = (2, 3) if cls.target == "classes" else (3,)
    if tags.classifier_tags is not None and not tags.classifier_tags.multi_class:
        targets = (2,)
    forms = (np.asarray, sparse.csr_array) if tags.input_tags.sparse else (np.asarray,)
    cases = []
    sizes = WarmUpShapes()
    for (n, d), dtype, k, form in product(_shapes(cls, sizes), (np.float32, np.float64), targets, forms):
        codes = _grows(cls) and n == sizes.tall[0]  # as are classes, sparse rows, float32 and missing values by then
        if codes and (dtype, k, form) != (np.float64, targets[-1], np.asarray):
            continue
        y = 1 + np.arange(n) % k
        X = np.floor(np.abs(rng.normal(size=(n, d)) + y[:, None]))  # counts: every model takes them
        cases.append((form(X.astype(dtype)), y))
        if cls.missing and form is np.asarray and not codes:
            X[0, 0] = np.nan
            cases.append((X.astype(dtype), y))
    return cases


def _shapes(cls: type[Estimator], sizes: WarmUpShapes) -> list[tuple[int, int]]:
    """Long and wide tables, as far as they take another way than short ones."""
    by_sums = has_fit_parameter(cls, "sample_weight") and not issubclass(
        cls, (KernelMachine, KernelFeatures, ApproximateSVC)
    )
    if re.search("CV$|^Bagging|^Additive|^OptimalTree|^AdaBoostRegressor|^MLP|^ConvNet|^Table", cls.__name__):
        return [sizes.fewer, sizes.short]
    if issubclass(cls, KernelPCA):
        return [sizes.short, sizes.wide]
    if _grows(cls):
        return [sizes.tall, sizes.short]
    needs_many = issubclass(cls, (certifit.KMeans, certifit.PoissonRegressor))
    linear = cls.__module__.startswith(("certifit.linear_model", "certifit.svm"))
    return [
        (sizes.tall if needs_many else sizes.many) if by_sums else sizes.few,
        sizes.wider if linear and cls.target == "classes" and not issubclass(cls, RidgeClassifier) else sizes.wide,
        *([sizes.widest] if issubclass(cls, LinearSvmEstimator) else []),
    ]


def _grows(cls: type[Estimator]) -> bool:
    """Whether it is made of trees, or of a table's columns: what long rows are turned into first."""
    return cls.__module__.startswith(("certifit.tree", "certifit.ensemble", "certifit.table"))


def _small() -> list[tuple[Any, Any]]:
    """Three classes in a few rows, float32 and float64."""
    y = np.arange(300) % 3
    X = np.random.default_rng(0).normal(size=(300, 4)) + y[:, None]
    return [(X.astype(dtype), y) for dtype in (np.float32, np.float64)]


def _use(model: Estimator, X: Any, y: Any) -> None:
    quick = {
        "max_iter": 4,
        "max_time": 0.0,
        "disconnected": "join",
        "ridge": 1.0,
        "reg_param": 0.5,
        "n_estimators": 3,
        "Cs": 2,
    }
    if isinstance(model, (KernelFeatures, ApproximateSVC, KernelPCA)):
        quick["n_components"] = 30
    if type(model).__name__.endswith("CV"):
        quick["cv"] = 2
    model.set_params(**{name: value for name, value in quick.items() if name in model.get_params()})
    _answer(model.fit(X, y), X)


def _answer(model: Estimator, X: Any) -> None:
    for name in ("predict", "transform", "apply"):
        if hasattr(model, name):
            getattr(model, name)(X)
