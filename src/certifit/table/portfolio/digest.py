"""One number for everything that was fitted: two fits have the same bits where their digests are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

TIMED = ("history_", "seconds", "time", "certificate_", "search_")  # what differs from run to run, or follows


def fitted_digest(model: BaseEstimator) -> str:
    """SHA-256 of the settings and fitted attributes of a model, those of models inside among them."""
    digest = hashlib.sha256()
    _add(digest, model)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(repr((value.shape, value.dtype.str)).encode() + np.ascontiguousarray(value).tobytes())
    elif sparse.issparse(value):
        _add(digest, (value.data, value.indices, value.indptr, value.shape))
    elif isinstance(value, BaseEstimator):
        _add(digest, {name: part for name, part in vars(value).items() if not name.startswith("_")})
    elif is_dataclass(value) and not isinstance(value, type):
        _add(digest, {part.name: getattr(value, part.name) for part in fields(value)})
    elif isinstance(value, Mapping):
        for name in sorted(value, key=str):
            if name not in TIMED and "callback" not in str(name):
                digest.update(str(name).encode())
                _add(digest, value[name])
    elif isinstance(value, list | tuple | np.ndarray):
        for part in value:
            _add(digest, part)
    else:
        digest.update(repr(value).encode())
