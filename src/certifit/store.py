"""Models in files, without pickle: no code runs on load, and a flipped bit is detected.

A file is one line of text, `certifit-model FORMAT SHA256`, then a zip archive that the hash covers:
`model.json` (names, settings and structure) and one `.npy` file for each array.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import certifit
from certifit import families
from certifit.core import Certificate, Check, Mark, Objective
from certifit.exceptions import DataError
from certifit.registry import PUBLIC
from certifit.rows import Array
from certifit.svm.kernel import kernels as svm_kernels
from certifit.table.columns import Column

FORMAT = 1
_HEADER = re.compile(rb"certifit-model ([0-9]{1,4}) ([0-9a-f]{64})\n")
_CSR: dict[str, Any] = {cls.__name__: cls for cls in (sparse.csr_array, sparse.csr_matrix)}
_KERNELS: dict[str, Any] = {
    "Constant": svm_kernels.ConstantKernel,
    "Exponential": svm_kernels.ExponentialKernel,
    "Linear": svm_kernels.Linear,
    "Polynomial": svm_kernels.Polynomial,
    "Product": svm_kernels.KernelProduct,
    "RBF": svm_kernels.RBF,
    "Sigmoid": svm_kernels.Sigmoid,
    "Sum": svm_kernels.KernelSum,
}
_FAMILIES: dict[str, Any] = {
    f"families.{name}": cls
    for name, cls in vars(families).items()
    if isinstance(cls, type) and issubclass(cls, families.Family) and cls is not families.Family
}
_RECORDS: dict[str, Any] = {
    **{cls.__name__: cls for cls in (Certificate, Check, Column, Mark, Objective)},
    **{f"kernels.{name}": cls for name, cls in _KERNELS.items()},
    **_FAMILIES,
}
_NAMES = {cls: name for name, cls in _RECORDS.items()}
_RENAMED = {"Column": {"holes": "missing", "marks_holes": "marks_missing"}}  # fields of records in older files


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted certifit model to one file, all or nothing.

    >>> import tempfile, certifit
    >>> model = certifit.PCA(n_components=1).fit([[1.0, 2.0], [3.0, 5.0], [5.0, 9.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/pca.certifit")
    ...     bool((load(f"{folder}/pca.certifit").components_ == model.components_).all())
    True
    """
    if not isinstance(model, BaseEstimator) or _public_class(type(model).__name__) is not type(model):
        raise DataError(
            got=f"a {type(model).__module__}.{type(model).__name__} to save",
            wanted="one of certifit's own models",
        )
    check_is_fitted(model, msg="Got a %(name)s that is not fitted; wanted a fitted model to save. Call fit first.")
    writer = _Writer()
    document = {"model": writer.encode(model, type(model).__name__), "certifit": certifit.__version__}
    payload = io.BytesIO()
    with zipfile.ZipFile(payload, "w", zipfile.ZIP_DEFLATED) as archive:
        # entries without a date: the same model gives the same bytes
        archive.writestr(zipfile.ZipInfo("model.json"), json.dumps(document, allow_nan=False), zipfile.ZIP_DEFLATED)
        for i, array in enumerate(writer.arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{i}.npy"), buffer.getbuffer(), zipfile.ZIP_DEFLATED)
    digest = hashlib.sha256(payload.getbuffer()).hexdigest()
    write_atomically(path, f"certifit-model {FORMAT} {digest}\n".encode() + payload.getvalue())


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by `save`. Anything but an intact file of a known format is refused."""
    content = Path(path).read_bytes()
    header = _HEADER.match(content)
    if header is None:
        raise DataError(
            got=f"{os.fspath(path)!r}, which is not a certifit model or has a damaged first line",
            wanted="a file written by certifit.save or `certifit fit`",
        )
    if int(header[1]) != FORMAT:
        raise DataError(
            got=f"{os.fspath(path)!r} in model format {int(header[1])}",
            wanted=f"format {FORMAT}, the one this version of certifit reads",
            fix="Use the version of certifit that wrote it, or fit again.",
        )
    payload = memoryview(content)[header.end() :]
    if hashlib.sha256(payload).hexdigest() != header[2].decode():
        raise DataError(
            got=f"{os.fspath(path)!r}, whose content does not match its checksum: it is damaged or cut short",
            wanted="the file as it was saved",
            fix="Copy it again from its source, or fit again.",
        )
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            document = json.loads(archive.read("model.json"))
            return _Reader(archive).decode(document["model"])
    except (KeyError, TypeError, ValueError, AttributeError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(
            got=f"{os.fspath(path)!r}, whose content this version of certifit cannot read ({error})",
            wanted="a file written by certifit.save",
            fix="Use the version of certifit that wrote it, or fit again.",
        ) from error


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that at any moment either the old or the whole new content is there.

    A link is followed; a device or pipe is written to directly. An error leaves nothing behind.
    """
    target = Path(os.path.realpath(path))
    mode = None
    try:
        if target.exists():
            mode = target.stat().st_mode
            if not stat.S_ISREG(mode):
                target.write_bytes(content)
                return
        temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
                _write(file, content)
                if mode is not None:
                    os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(
            error.errno or errno.EIO,
            f"could not write {len(content):,} bytes ({error.strerror or error}); "
            "nothing was written, and an older file there is as it was",
            os.fspath(path),
        ) from error


def _write(file: Any, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _public_class(name: str) -> Any:
    """The only classes a file may name: certifit's public estimators. Anything else gives None."""
    entry = PUBLIC.get(name)
    return entry.load() if entry is not None and entry.is_estimator else None


class _Writer:
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
        elif name in _CSR and _CSR[name] is type(value):
            parts = [self._put(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": name, "parts": parts, "shape": list(value.shape)}
        elif type(value) in _NAMES:
            names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
            found = {f: self.encode(getattr(value, f), f"{where}.{f}") for f in names}
            return {"record": _NAMES[type(value)], "fields": found}
        elif isinstance(value, type) and _NAMES.get(value) in _FAMILIES:
            return {"family": _NAMES[value]}
        elif type(value) in (list, tuple):
            return {name: [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]}
        elif isinstance(value, Mapping):
            return {"dict": [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        elif isinstance(value, BaseEstimator) and _public_class(name) is type(value):
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


class _Reader:
    """The inverse of `_Writer`. Builds only plain values, known records and public estimators."""

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
            matrix = _CSR[content](tuple(self._array(i) for i in value["parts"]), shape=tuple(value["shape"]))
            matrix.check_format(full_check=True)  # numbers of columns and rows that fit its shape
            return matrix
        if kind == "record":
            renamed = _RENAMED.get(content, {})
            return _RECORDS[content](**{renamed.get(k, k): self.decode(v) for k, v in value["fields"].items()})
        if kind == "family":
            return _FAMILIES[content]
        if kind in ("list", "tuple"):
            items = [self.decode(item) for item in content]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {self.decode(k): self.decode(v) for k, v in content}
        if kind == "estimator":
            model = _public_class(content)(**{k: self.decode(v) for k, v in value["params"].items()})
            vars(model).update({k: self.decode(v) for k, v in value["fitted"].items()})
            return model
        raise ValueError(f"unknown kind of value {kind!r}")

    def _array(self, i: int) -> Array:
        with self.archive.open(f"{i}.npy") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
