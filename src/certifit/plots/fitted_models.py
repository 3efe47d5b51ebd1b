"""What pictures ask of fitted models, ours and other libraries': attributes, names of columns, the last step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from certifit.exceptions import DataError
from certifit.registry import PUBLIC
from certifit.rows import Array


def check_drawable(model: Any, wanted: str, *attributes: str) -> None:
    """Refuse a model that is not fitted, or without the attributes that a picture shows."""
    if isinstance(model, type):
        raise DataError(got=f"the class {model.__name__}", wanted=wanted, fix="Make an object of it and call fit.")
    kind = type(model).__name__
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise DataError(got=f"a {kind} that is not fitted", wanted=wanted, fix="Call fit first.") from None
    except TypeError:
        # What is no estimator, such as the result of a search, is known by its attributes alone.
        pass
    missing = [name for name in attributes if not hasattr(model, name)]
    if missing:
        ours = kind in PUBLIC and PUBLIC[kind].is_estimator and not type(model).__module__.startswith("certifit.")
        fix = f"Fit certifit.{kind} instead, or another model that has it." if ours else ""
        raise DataError(got=f"a {kind} without {', '.join(missing)}", wanted=wanted, fix=fix)


def last_step(model: Any) -> Any:
    """Return the model inside: the last step of a pipeline, the best one of a search, the one of encoded columns."""
    for _ in range(10):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif getattr(model, "steps", None):
            model = model.steps[-1][1]
        elif hasattr(model, "model_") and hasattr(model, "features_"):
            model = model.model_
        else:
            break
    return model


def seen_names(model: Any, count: int) -> list[str]:
    """Return the names of the `count` columns that the model's last step sees; x0, x1, … where it knows none."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    names = getattr(model, "features_", None) if hasattr(model, "model_") else None
    if getattr(model, "steps", None) and len(model.steps) > 1:
        try:
            names = model[:-1].get_feature_names_out()
        except (AttributeError, ValueError, NotFittedError):
            # A step that cannot name what it makes leaves the columns without names.
            names = None
    elif names is None:
        names = getattr(last_step(model), "feature_names_in_", None)
    return [str(name) for name in names] if names is not None and len(names) == count else default_names(count)


def default_names(count: int) -> list[str]:
    return [f"x{j}" for j in range(count)]


@contextmanager
def names_unsaid() -> Iterator[None]:
    """Leave out the warning that one of model and table has names of columns: a picture finds them by place."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        yield


def ask(model: Any, method: str, X: Any) -> Array:
    """Return what a method of a model says of rows."""
    with names_unsaid():
        said = getattr(model, method)(X)
    return np.asarray(said.toarray() if hasattr(said, "toarray") else said)
