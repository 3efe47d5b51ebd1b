"""Damage to fitted attributes, and what a model's methods say after it. Shared by hunts and tests.

Every attribute is tampered with. Where any method then says something else, the audit must not hold.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

METHODS = (
    "predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples",
    "inverse_transform",
    "get_support", "impute", "confidence_intervals", "summary", "get_covariance", "get_precision",
    "bic", "aic", "sample", "score", "partial_fit",
    "apply", "decision_path", "get_depth", "get_n_leaves", "staged_predict", "staged_decision_function",
    "predict_interval", "predict_quantiles", "predict_joint_log_proba", "linear_predictor", "coefficient_table",
    "outlier_scores", "get_feature_names_out",
)  # fmt: skip
WITHOUT_ROWS = (
    "summary", "get_support", "get_covariance", "get_precision", "confidence_intervals", "get_depth", "get_n_leaves",
    "coefficient_table", "get_feature_names_out",
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ tampering
def scale(a):
    return a * 1.5


def shrink(a):
    return a * 0.5


def negate(a):
    return -a


def poison(a):
    a = a.astype(float)
    a.flat[0] = np.nan
    return a


def swap(a):
    low, high = a.argmin(), a.argmax()
    a.flat[low], a.flat[high] = a.flat[high], a.flat[low]
    return a


def round_off(a):
    return a.astype(np.float32)


def erase(a):
    return a * 0


def cut(a):
    return a[:-1] if a.ndim else a + 1


def shift(a):
    return a + 1


TAMPERS = (scale, shrink, negate, poison, swap, round_off, erase, cut, shift)


# ------------------------------------------------------------------------------------------------- other types
ABSENT = object()


def remove(_a):
    return ABSENT


def as_list(a):
    return a.tolist() if a.ndim else [a.item()]


def as_text(a):
    return np.asarray(a.tolist(), dtype=str)  # of records, each field


def as_objects(a):
    return a.astype(object)


TYPE_TAMPERS = (remove, as_list, as_text, as_objects)


def damages(value: Any, tampers: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each way of tampering with every value that it leaves."""
    for tamper in tampers:
        yield from ((tamper, hurt) for hurt in ([ABSENT] if tamper is remove else tampered(value, tamper)))


def damage(model: Any, name: str, hurt: Any) -> Any:
    """Return a copy of the model with this in place of one attribute, or without it."""
    model = copy.deepcopy(model)
    if hurt is ABSENT:
        delattr(model, name)
    else:
        setattr(model, name, hurt)
    return model


def tampered(value: Any, tamper: Any) -> Iterator[Any]:
    """Yield the value with this damage to one part after another, where the damage applies and changes anything."""
    if isinstance(value, dict):
        for key in value:
            yield from ({**value, key: hurt} for hurt in tampered(value[key], tamper))
    elif isinstance(value, (list, tuple)):
        for i in sorted({0, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            build = getattr(value, "_make", type(value))  # a named tuple takes its parts one by one
            yield from (build([*value[:i], hurt, *value[i + 1 :]]) for hurt in tampered(value[i], tamper))
    elif is_dataclass(value) and not isinstance(value, type):
        for name in [f.name for f in fields(value) if f.init]:
            yield from (replace(value, **{name: hurt}) for hurt in tampered(getattr(value, name), tamper))
    elif isinstance(value, BaseEstimator):  # a member of a bag, or what a selector has fitted
        for name in fitted_attributes(value):
            if name not in getattr(value, "diagnostics", ()):
                hurts = tampered(getattr(value, name), tamper)
                yield from (damage(value, name, hurt) for hurt in hurts)
    elif (hurt := _damaged(value.toarray() if sparse.issparse(value) else value, tamper)) is not None:
        yield hurt


def _damaged(value: Any, tamper: Any) -> Any:
    """Return a number, a word or an array, damaged; None where this damage does not apply or leaves it as it is."""
    if isinstance(value, (bool, str, np.bool_)):
        return None if tamper is not negate else f"not {value}" if isinstance(value, str) else not value
    if not isinstance(value, (np.ndarray, int, float, np.number)):
        return None
    before = np.array(value)
    if tamper in TYPE_TAMPERS:
        return tamper(before)
    if before.dtype.kind in "OUS":  # labels or names
        return before[::-1] if tamper is swap and before.ndim == 1 and before.size > 1 else None
    if before.dtype.kind not in "iuf" or before.size == 0:
        return ~before if before.dtype.kind == "b" and tamper is negate else None
    with np.errstate(all="ignore"):
        after = tamper(before.copy())
    if before.dtype.kind in "iu" and tamper not in (poison, round_off):
        after = after.astype(before.dtype)
    if after.shape == before.shape and np.array_equal(after, before, equal_nan=True) and after.dtype == before.dtype:
        return None
    return after if isinstance(value, np.ndarray) else after.item()


# ------------------------------------------------------------------------------------------------ what methods say
def said(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return what every method says; where one fails, the kind of error."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in METHODS:
            if not hasattr(model, name):
                continue
            try:
                found[name] = call(model, name, X, y)
            except Exception as error:
                found[name] = type(error).__name__
        for name in derived(model):
            try:
                value = getattr(model, name)
            except Exception as error:
                value = type(error).__name__
            several = value.ravel().tolist() if isinstance(value, np.ndarray) and value.dtype == object else value
            parts = several if isinstance(several, list) and several else [value]
            if not isinstance(parts[0], BaseEstimator):  # an index of the rows, say, which is equal to itself alone
                found[name] = value
    return found


def call(model: Any, name: str, X: Any, y: Any) -> Any:
    method = getattr(model, name)
    if name in WITHOUT_ROWS:
        out = method()
        return str(out) if name in ("summary", "coefficient_table") else out
    if name.startswith("staged_"):
        return [*method(X)]
    if name == "predict_quantiles":
        return method(X, [0.2, 0.5], fitted_on=(X, y))
    if name == "sample":
        clone = copy.deepcopy(model)
        if hasattr(clone, "random_state"):
            clone.random_state = 0
        try:
            return clone.sample(20)
        except TypeError:
            return clone.sample(20, random_state=0)
    if name == "score":
        return method(X, y)
    if name == "inverse_transform":
        return method(model.transform(X)) if hasattr(model, "transform") else method(np.ones((3, 2)))
    if name == "partial_fit":
        clone = copy.deepcopy(model)
        clone.partial_fit(X[:50], None if y is None else y[:50])
        return [getattr(clone, m)(X) for m in ("predict", "transform") if hasattr(clone, m)]
    return method(X)


def derived(model: Any) -> list[str]:
    """Fitted attributes that are computed from others."""
    return [name for name in dir(type(model)) if name.endswith("_") and not name.startswith("_")
            and isinstance(getattr(type(model), name, None), property)]  # fmt: skip


def differ(a: Any, b: Any, close: float = 1e-6, least: float = 0.0) -> bool:
    """Whether two answers, of size `least` at least, differ by more than a certificate's tolerance leaves open."""
    if isinstance(a, str) != isinstance(b, str):  # the name of an error
        return True
    if isinstance(a, str):
        return texts_differ(a, b, close)
    if type(a).__name__ != type(b).__name__ and not (np.isscalar(a) and np.isscalar(b)):
        return True
    if isinstance(a, (tuple, list)):
        return len(a) != len(b) or any(differ(p, q, close, least) for p, q in zip(a, b, strict=True))
    if isinstance(a, dict):
        return set(a) != set(b) or any(differ(a[key], b[key], close, least) for key in a)
    if sparse.issparse(a):
        a, b = a.toarray(), b.toarray()
    if isinstance(a, (np.ndarray, float, np.number)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return True
        if a.dtype.kind in "fc":
            size = float(np.nanmax(np.abs(a[np.isfinite(a)]), initial=least))
            return not np.allclose(a, b, rtol=close, atol=close * size, equal_nan=True)
        return not np.array_equal(a, b)
    return bool(a != b)


NUMBER = re.compile(r"[-+]?\b\d+(?:\.(\d*))?(?:e([-+]?\d+))?")


def texts_differ(a: str, b: str, close: float) -> bool:
    """Whether two texts differ in words, or in a number by more than its last digit and a share `close`."""
    if " ".join(NUMBER.sub("#", a).split()) != " ".join(NUMBER.sub("#", b).split()):
        return True
    pairs = zip(NUMBER.finditer(a), NUMBER.finditer(b), strict=True)
    return any(abs(float(p[0]) - float(q[0])) > _last_digit(p) + close * abs(float(p[0])) for p, q in pairs)


def _last_digit(number: re.Match[str]) -> float:
    """What one more in the last digit adds, with rounding; 0 for a whole number, which may be a count."""
    decimals, exponent = number.groups()
    if decimals is None and exponent is None:
        return 0.0
    return 1.01 * 10.0 ** (int(exponent or 0) - len(decimals or ""))


def fitted_attributes(model: Any) -> list[str]:
    """Attributes that `fit` left, but for the claim itself, which every audit makes anew."""
    own = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    return sorted(set(own) - {"certificate_"})
