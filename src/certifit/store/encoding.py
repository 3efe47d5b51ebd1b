"""Fitted models as JSON and arrays, and back."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.store.vocabulary import stored_classes, stored_estimator, stored_function


class ModelWriter:
    """Values as JSON; arrays are put aside and numbered."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def encode(self, value: Any, where: str) -> Any:
        """`where` is the attribute's path, for the error message."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        name = type(value).__name__
        if isinstance(value, np.ndarray) and value.dtype == object:
            if all(isinstance(item, str) for item in value.flat):
                return {"text": value.ravel().tolist(), "shape": list(value.shape)}
        elif isinstance(value, np.ndarray):
            return {"array": self._put(value)}
        elif isinstance(value, np.generic):
            return {"scalar": self._put(np.asarray(value))}
        elif isinstance(value, np.dtype):
            return {"dtype": value.str}
        elif stored_classes().sparse.get(name) is type(value):
            parts = [self._put(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": name, "parts": parts, "shape": list(value.shape)}
        elif (record := stored_classes().name_of(type(value))) is not None:
            names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
            found = {f: self.encode(getattr(value, f), f"{where}.{f}") for f in names}
            return {"record": record, "fields": found}
        elif isinstance(value, type) and stored_classes().name_of(value) in stored_classes().families:
            return {"family": stored_classes().name_of(value)}
        elif callable(value) and stored_function(getattr(value, "__name__", "")) is value:
            return {"function": value.__name__}
        elif type(value) in (list, tuple):
            return {name: [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]}
        elif isinstance(value, Mapping):
            return {"dict": [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        elif isinstance(value, BaseEstimator) and stored_estimator(name) is type(value):
            params = value.get_params(deep=False)
            # attributes of scikit-learn's callback machinery belong to a run, not to the model
            rest = {k: v for k, v in vars(value).items() if k not in params and "callback" not in k}
            return {
                "estimator": name,
                "params": {k: self.encode(v, f"{where}.{k}") for k, v in params.items()},
                "fitted": {k: self.encode(v, f"{where}.{k}") for k, v in rest.items()},
            }
        raise DataError(
            got=f"{where} of type {type(value).__module__}.{name}, which cannot be stored as plain data",
            wanted="numbers, text, arrays of them, and certifit's models, kernels and families",
            fix="If it is a setting, replace it before saving, for instance random_state by a whole number "
            "(model.set_params(random_state=0)) or a function by its name; the fitted result does not change. "
            "A kernel of your own can be kept as a matrix: kernel='precomputed'.",
        )

    def _put(self, array: Array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


class ModelReader:
    """The inverse of `ModelWriter`. Builds only plain values, known records and public estimators."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = next(iter(value))
        content = value[kind]
        if kind == "float":
            return float(content)
        if kind == "text":
            out = np.empty(len(content), dtype=object)
            out[:] = content
            return out.reshape(value["shape"])
        if kind == "array":
            return self._array(content)
        if kind == "scalar":
            return self._array(content)[()]
        if kind == "dtype":
            return np.dtype(content)
        if kind == "csr":
            matrix = stored_classes().sparse[content](
                tuple(self._array(i) for i in value["parts"]), shape=tuple(value["shape"])
            )
            matrix.check_format(full_check=True)  # numbers of columns and rows that fit its shape
            return matrix
        if kind == "record":
            renamed = stored_classes().renamed_fields.get(content, {})
            found = {renamed.get(k, k): self.decode(v) for k, v in value["fields"].items()}
            if content == "Certificate" and "scale" not in found:
                # Older versions did not store it, and allowed for rounding whatever the objective was.
                found["scale"] = max(abs(found["objective"]), found["limit"])
            return _checked_record(stored_classes().records[content](**found))
        if kind == "family":
            return stored_classes().families[content]
        if kind == "function":
            return stored_function(content)
        if kind in ("list", "tuple"):
            items = [self.decode(item) for item in content]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {self.decode(k): self.decode(v) for k, v in content}
        if kind == "estimator":
            model = stored_estimator(content)(**{k: self.decode(v) for k, v in value["params"].items()})
            # What older versions stored and this one derives is left out.
            stored = {
                k: v for k, v in value["fitted"].items() if not isinstance(getattr(type(model), k, None), property)
            }
            vars(model).update({k: self.decode(v) for k, v in stored.items()})
            _check_columns(model)
            return model
        raise ValueError(f"unknown kind of value {kind!r}")

    def _array(self, i: int) -> Array:
        content = self.archive.read(f"{i}.npy")
        file = io.BytesIO(content)
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"array {i} in another format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        # else NumPy would make room for it; objects it refuses itself
        if not dtype.hasobject and math.prod(shape) * dtype.itemsize != len(content) - file.tell():
            raise ValueError(f"array {i}, which is not as long as it says")
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _checked_record(record: Any) -> Any:
    """A record whose numbers of nodes, columns and sets point to what is there, if it has any."""
    if hasattr(record, "check_places"):
        record.check_places()
    return record


def _check_columns(model: BaseEstimator) -> None:
    """Refuse a model that asks for columns which its rows do not have, or that points outside its own arrays."""
    columns = getattr(model, "n_features_in_", 0)
    for part in vars(model).values():
        if hasattr(part, "check_places") and part.check_places() > columns:
            raise ValueError("a model that asks for more columns than its rows have")
    if hasattr(model, "_check_places"):
        model._check_places()
