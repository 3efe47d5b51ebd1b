"""Small fits of both libraries' classes, to meet every fitted attribute that they have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import getattr_static, signature
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression

from certifit.migration.counterparts import Counterpart

# Settings under which a class has attributes that it lacks at its defaults.
FURTHER_SETTINGS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "SVC": ({"kernel": "linear"}, {"probability": True}),
    "NuSVC": ({"kernel": "linear", "nu": 0.2}, {"probability": True, "nu": 0.2}),
    "SVR": ({"kernel": "linear"},),
    "NuSVR": ({"kernel": "linear"},),
    "OneClassSVM": ({"kernel": "linear"},),
    "KernelPCA": ({"kernel": "rbf", "fit_inverse_transform": True},),
    **dict.fromkeys(("RidgeCV", "RidgeClassifierCV"), ({"store_cv_results": True},)),
    "SelectFromModel": ({"max_features": 2},),
    **dict.fromkeys(
        ("BaggingClassifier", "BaggingRegressor", "RandomForestClassifier", "RandomForestRegressor"),
        ({"oob_score": True},),
    ),
    **dict.fromkeys(("ExtraTreesClassifier", "ExtraTreesRegressor"), ({"bootstrap": True, "oob_score": True},)),
    "QuadraticDiscriminantAnalysis": ({"store_covariance": True},),
    "LinearDiscriminantAnalysis": ({"solver": "eigen", "store_covariance": True}, {"store_covariance": True}),
}


def small_table(pair: Counterpart) -> tuple[np.ndarray, np.ndarray]:
    """Rows (60, 5) of positive numbers with three classes, or with positive targets for a regressor."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.poisson(4, size=(60, 5)) + 2.0 * y[:, None] * (np.arange(5) < 2)
    if pair.room != "naive_bayes":
        X = X + rng.uniform(size=X.shape)
    return (X, np.exp(0.1 * X[:, 0]) + rng.uniform(size=60)) if _wants_numbers(pair.theirs) else (X, y)


def _wants_numbers(kind: type) -> bool:
    return not _needs_estimator(kind) and is_regressor(kind())


def _needs_estimator(kind: type) -> bool:
    """Whether a class wraps an estimator that has to be given."""
    parameter = signature(kind).parameters.get("estimator")
    return parameter is not None and parameter.default is parameter.empty


@cache
def fitted_attributes(pair: Counterpart, kind: type) -> frozenset[str]:
    """The attributes ending in `_` that `kind`, one of the pair's two classes, has after a fit."""
    X, y = small_table(pair)
    found: set[str] = set()
    for settings in ({}, *FURTHER_SETTINGS.get(pair.name, ())):
        needed = {"estimator": LogisticRegression()} if _needs_estimator(kind) else {}
        model = kind(**needed, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
            found.update(_present(model))
    return frozenset(found)


def _present(model: Any) -> Iterator[str]:
    kind = type(model)
    derived = {name for name in dir(kind) if hasattr(type(getattr_static(kind, name)), "__get__")}
    for name in derived.union(vars(model)):
        if name.endswith("_") and not name.startswith("_") and hasattr(model, name):
            yield name


def documented_attributes(kind: type) -> set[str]:
    """The attributes that a class's docstring lists, for those that only some settings bring about."""
    _, _, section = (kind.__doc__ or "").partition("Attributes\n    ----------\n")
    section = re.split(r"\n    \w[\w ]*\n    -{3,}\n", section)[0]
    lines = re.findall(r"^    (\w[\w, ]*?) ?:", section, flags=re.MULTILINE)
    return {name.strip() for line in lines for name in line.split(",") if name.strip().endswith("_")}
