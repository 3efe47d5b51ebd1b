"""What the methods of every estimator do with tables that are not in memory, or have more columns than are wanted.

`Estimator` wraps its subclasses' methods with these when a class is made, so that no room has to think of it:

- `predict`, `transform` and the like of a Dask collection are lazy Dask arrays (frames, where `set_output` asks for
  pandas), computed partition by partition;
- `score` takes targets and weights by name, as `fit` does, and any table that `fit` takes;
- `fit` and its like take `columns=`, the names of the columns to learn from, and `checkpoint=`, a file from which a
  fit that was killed goes on. A fitted model finds columns by name.

A path is read block by block by `Rows.map`, which these methods call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, getattr_static, signature
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.metrics import accuracy_score, r2_score

from certifit.core.config import choice_of_clone
from certifit.core.settings import did_you_mean
from certifit.exceptions import DataError
from certifit.rows.block import Array, Block

LEARNING = ("fit", "partial_fit", "fit_predict")
LAZY = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples")


def wrap_methods(cls: Any) -> None:
    """Give the methods of an estimator's class the behaviour that this module describes."""
    for name in LAZY:
        method = getattr_static(cls, name, None)
        if isinstance(method, FunctionType) and not hasattr(method, "is_lazy"):
            setattr(cls, name, lazily(method))
        elif hasattr(method, "fn") and not hasattr(method.fn, "is_lazy"):  # scikit-learn's `available_if`
            method.fn = lazily(method.fn)
    for name in LEARNING:
        method = getattr_static(cls, name, None)
        if isinstance(method, FunctionType) and not hasattr(method, "takes_columns"):
            setattr(cls, name, learning_from_columns(method))
        elif hasattr(method, "fn") and not hasattr(method.fn, "takes_columns"):
            method.fn = learning_from_columns(method.fn)
    plain = getattr_static(cls, "score", None)
    if plain is ClassifierMixin.score or plain is RegressorMixin.score:
        cls.score = score_of_any_table(plain)


def wrap_output(cls: Any) -> None:
    """Answer Dask collections before scikit-learn makes frames of answers, which would compute them."""
    method = vars(cls).get("transform")
    if hasattr(method, "is_lazy"):
        cls.transform = lazily(method)
    if getattr_static(cls, "fit_transform", None) is TransformerMixin.fit_transform:
        cls.fit_transform = fit_and_answer


@wraps(TransformerMixin.fit_transform)
def fit_and_answer(self: Any, X: Any, y: Any = None, **fit_params: Any) -> Any:
    if hasattr(X, "__dask_graph__"):
        return self.fit(X, y, **fit_params).transform(X)
    return TransformerMixin.fit_transform(self, X, y, **fit_params)


def learning_from_columns(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with keywords `columns`, names of the columns of X to learn from, and `checkpoint`, a path.

    `partial_fit` goes on by itself, and takes no checkpoint.
    """
    more = ["columns"] if method.__name__ == "partial_fit" else ["columns", "checkpoint"]
    known = [*signature(method).parameters.values()]
    last = 1 if known and known[-1].kind is Parameter.VAR_KEYWORD else 0
    names = [one.name for one in known[1:]] + more

    @wraps(method)
    def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
        unknown = [] if last else [name for name in kwargs if name not in names]
        if unknown:
            taken, near = f"{type(self).__name__}.{method.__name__}", did_you_mean(unknown[0], names)
            words = f"Got the argument {unknown[0]!r}, which {taken} does not take; wanted {', '.join(names)}. {near}"
            raise TypeError(words.rstrip())
        asked = {name: kwargs.pop(name, None) for name in more}
        given = {PLACES[name]: CHECKED[name](value) for name, value in asked.items() if value is not None}
        self.__dict__.update(given)
        try:
            with choice_of_clone(self):
                return method(self, *args, **kwargs)
        finally:
            for name in given:
                self.__dict__.pop(name, None)

    for name in more:
        known.insert(len(known) - last, Parameter(name, Parameter.KEYWORD_ONLY, default=None))
    learn.__signature__ = signature(method).replace(parameters=known)  # type: ignore[attr-defined]
    learn.takes_columns = True  # type: ignore[attr-defined]
    return learn


def _checked_columns(columns: Any) -> tuple[str, ...]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns) or not len(columns):
        raise DataError(got=f"columns={columns!r}", wanted="a list of names", fix="columns=['a', 'b'], say.")
    return tuple(columns)


def _checked_path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise DataError(got=f"checkpoint={path!r}", wanted="the path of a file", fix="checkpoint='fit.ckpt', say.")
    return Path(path)


# where `_as_rows` and `_passes_kept` find them while the method runs
PLACES = {"columns": "_columns", "checkpoint": "_pass_file"}
CHECKED: dict[str, Callable[[Any], Any]] = {"columns": _checked_columns, "checkpoint": _checked_path}


def lazily(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method, which gives a lazy answer where its one argument is a Dask collection."""

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(X, "__dask_graph__") and not args and not kwargs:
            from certifit.rows.sources.lazy_answers import lazy_answer

            return lazy_answer(partial(method, self), X)
        return method(self, X, *args, **kwargs)

    answer.is_lazy = True  # type: ignore[attr-defined]
    return answer


def score_of_any_table(plain: Callable[..., float]) -> Callable[..., float]:
    """Return scikit-learn's `score` for tables of any kind: targets and weights may be names of columns."""
    classes = plain is ClassifierMixin.score

    @wraps(plain)
    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        if all(isinstance(part, np.ndarray) or part is None for part in (X, y, sample_weight)):
            return plain(self, X, y, sample_weight)
        if not any(isinstance(part, str) or hasattr(part, "__dask_graph__") for part in (X, y, sample_weight)):
            return plain(self, X, y, sample_weight)
        rows = self._rows(X, y, sample_weight, target="classes" if classes else "numbers")
        found = rows.each(_targets_and_weights)
        truth, w = (np.concatenate([part[i] for part in found]) for i in (0, 1))
        measure = accuracy_score if classes else r2_score
        return float(measure(truth, np.asarray(self.predict(X)), sample_weight=w))

    return score


def _targets_and_weights(block: Block) -> tuple[Array, Array]:
    assert block.y is not None
    return block.y, block.w
