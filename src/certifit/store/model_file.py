"""Models in files, without pickle: no code runs on load, and a flipped bit is detected.

A file is one line of text, `certifit-model FORMAT SHA256`, then a zip archive that the hash covers:
`model.json` (names, settings and structure) and one `.npy` file for each array.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import certifit
from certifit.exceptions import DataError
from certifit.files.atomic_file import write_atomically
from certifit.rows.sources.regular_file import check_regular
from certifit.store.encoding import ModelReader, ModelWriter
from certifit.store.vocabulary import stored_estimator

FORMAT = 1
# what a file may bring about whose checksum is right and whose content is not a model
UNREADABLE = (
    KeyError, TypeError, ValueError, AttributeError, EOFError, IndexError, StopIteration, RecursionError,
    OverflowError, NotImplementedError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip


@dataclass(frozen=True)
class UnpackingLimits:
    """How much a file may unpack to: some bytes, or so many times its own."""

    always: int = 2**28
    times: int = 200


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted certifit model to one file, all or nothing.

    Parameters
    ----------
    model : one of certifit's own models
    path : where the file goes, by custom with the ending .certifit

    >>> import tempfile, certifit
    >>> model = certifit.PCA(n_components=1).fit([[1.0, 2.0], [3.0, 5.0], [5.0, 9.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/pca.certifit")
    ...     bool((load(f"{folder}/pca.certifit").components_ == model.components_).all())
    True
    """
    if not isinstance(model, BaseEstimator) or stored_estimator(type(model).__name__) is not type(model):
        raise DataError(
            got=f"a {type(model).__module__}.{type(model).__name__} to save",
            wanted="one of certifit's own models",
        )
    check_is_fitted(model, msg="Got a %(name)s that is not fitted; wanted a fitted model to save. Call fit first.")
    writer = ModelWriter()
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
    """Read a model written by `save`. Anything but an intact file of a known format is refused.

    Parameters
    ----------
    path : the file

    Examples
    --------
    >>> import tempfile
    >>> from certifit import Ridge, load, save
    >>> model = Ridge().fit([[0.0], [1.0], [2.0]], [1.0, 0.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/ridge.certifit")
    ...     again = load(f"{folder}/ridge.certifit")
    >>> bool(again.coef_ == model.coef_), again.certificate_.holds
    (True, True)
    """
    check_regular(path)
    content = Path(path).read_bytes()
    header = re.match(rb"certifit-model ([0-9]{1,4}) ([0-9a-f]{64})\n", content)
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
            _refuse_bombs(archive, len(content))
            document = json.loads(archive.read("model.json"))
            return ModelReader(archive).decode(document["model"])
    except UNREADABLE as error:
        raise DataError(
            got=f"{os.fspath(path)!r}, whose content this version of certifit cannot read ({shortened(error)})",
            wanted="a file written by certifit.save",
            fix="Use the version of certifit that wrote it, or fit again.",
        ) from error


def shortened(error: BaseException, most: int = 200) -> str:
    """What an error says, cut short: a file from a stranger may put anything there."""
    told = str(error)
    return told if len(told) <= most else f"{told[:most]} …"


def _refuse_bombs(archive: zipfile.ZipFile, size: int, limits: UnpackingLimits = UnpackingLimits()) -> None:
    """Refuse an archive that says it unpacks to far more than models do, before anything is unpacked."""
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(limits.always, limits.times * size):
        raise ValueError(f"{size:,} bytes that unpack to {unpacked:,}")
