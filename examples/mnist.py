"""Images of handwritten digits: MNIST where it is on this computer, scikit-learn's small digits otherwise.

MNIST (LeCun, Cortes & Burges 1998) is four IDX files, 60000 + 10000 images of 28 x 28 pixels. Nothing is downloaded.
"""

from __future__ import annotations

import gzip
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from certifit.exceptions import DataError
from certifit.rows import Array

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
OPENML = ("52667/mnist_784.arff.gz", "52667.gz")  # where fetch_openml("mnist_784", version=1) keeps its download
FIX = "Name the folder of MNIST's IDX files (--mnist or CERTIFIT_MNIST), or neither for scikit-learn's digits."


@dataclass(frozen=True)
class Digits:
    """Images to learn from and images to try on, one a row of grey levels from 0 (paper) to `peak` (ink)."""

    words: str  # what they are and where they come from
    pixels: Array  # (n, side²) uint8
    y: Array  # (n,) the digits, int64
    unseen: Array  # (m, side²) uint8
    unseen_y: Array  # (m,)
    peak: int

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of an image."""
        side = round(self.pixels.shape[1] ** 0.5)
        return side, side

    def grey(self, pixels: Array) -> Array:
        """Pixels as float64 from 0 to 1."""
        return pixels / float(self.peak)


def load(folder: str | os.PathLike[str] | None = None) -> Digits:
    """MNIST from `folder`, else the folder in CERTIFIT_MNIST, else fetch_openml's cache; else scikit-learn's digits.

    >>> images = load()
    >>> images.shape in ((28, 28), (8, 8)), sorted(set(images.y.tolist())) == list(range(10))
    (True, True)
    """
    asked = folder or os.environ.get("CERTIFIT_MNIST")
    if asked:
        return mnist(asked)
    cached = openml_cache()
    return small_digits() if cached is None else read_openml(cached)


def mnist(folder: str | os.PathLike[str]) -> Digits:
    """MNIST from the folder of its IDX files, packed (.gz) or not."""
    X, y, unseen, unseen_y = (read_idx(_find(Path(folder), name)) for name in FILES)
    return _digits(f"MNIST from {os.fspath(folder)}", X, y, unseen, unseen_y)


def _digits(words: str, X: Array, y: Array, unseen: Array, unseen_y: Array, peak: int = 255) -> Digits:
    if len(X) != len(y) or len(unseen) != len(unseen_y):
        raise DataError(got=f"{len(X)} images with {len(y)} labels", wanted="a label for each", fix=FIX)
    flat = (a.reshape(len(a), -1) for a in (X, unseen))
    return Digits(words, next(flat), y.astype(np.int64), next(flat), unseen_y.astype(np.int64), peak)


def _find(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise DataError(got=f"{os.fspath(folder)!r} without {name}(.gz)", wanted="the folder of MNIST's files", fix=FIX)


def read_idx(path: str | os.PathLike[str]) -> Array:
    """The bytes of an IDX file as an array of the shape that its head states.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
    ...     file.flush()
    ...     read_idx(file.name).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    content = Path(path).read_bytes()
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        zero, kind, dimensions = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{dimensions}I", content, 4)
        if (zero, kind) != (0, 8):
            raise ValueError(f"it starts with {content[:4]!r}")
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    except (ValueError, struct.error, EOFError, OSError) as error:
        raise DataError(
            got=f"{os.fspath(path)!r}, which is damaged or not an IDX file of bytes ({error})",
            wanted="one of MNIST's files as published",
            fix=FIX,
        ) from error


def openml_cache() -> Path | None:
    """The file in which scikit-learn's fetch_openml keeps MNIST, if it has been fetched on this computer."""
    # not get_data_home(): it makes the folder
    home = Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")).expanduser()
    paths = (home / "openml" / "openml.org" / "data" / "v1" / "download" / name for name in OPENML)
    return next((path for path in paths if path.is_file()), None)


def read_openml(path: Path) -> Digits:
    """MNIST from a packed ARFF file: 784 pixels and the digit in each line, the last 10000 lines to try on."""
    from pyarrow import csv

    with gzip.open(path) as file:
        for line in file:
            if line.strip().lower() == b"@data":
                break
        table: Any = csv.read_csv(file, csv.ReadOptions(autogenerate_column_names=True))
    values = np.stack([column.to_numpy() for column in table.columns], axis=1).astype(np.uint8)  # (70000, 785)
    X, y = values[:, :-1], values[:, -1]
    last = len(X) - min(10_000, len(X) // 7)
    return _digits(f"MNIST from {path}", X[:last], y[:last], X[last:], y[last:])


def small_digits() -> Digits:
    """scikit-learn's 1797 images of 8 x 8 pixels (Alpaydin & Kaynak 1998), every third to try on."""
    X, y = load_digits(return_X_y=True)
    pixels, aside = X.astype(np.uint8), np.arange(len(y)) % 3 == 2
    words = "scikit-learn's digits (MNIST was not found: give its folder with --mnist)"
    return _digits(words, pixels[~aside], y[~aside], pixels[aside], y[aside], peak=16)
