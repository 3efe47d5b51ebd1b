"""What all kernel features share: their gamma, and rows to features wherever the rows are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from certifit.core import Certificate, Estimator, Objective
from certifit.core.settings import check_settings
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums
from certifit.rows.mapped import MappedRows
from certifit.svm.linear.solve import PrimalSvmProblem


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """An estimator of features, Nyström or Fourier."""

    sparse = True
    _seconds: float = np.inf  # for the choice of features

    def hurried(self, seconds: float) -> Self:
        """The same, but with features chosen within these seconds: fewer, where that is too little for all."""
        self._seconds = seconds
        return self

    @abstractmethod
    def feature_map(self) -> Callable[[Block], Array]:
        """The fitted features as a function of a block, float64 and picklable."""

    def mapped(self, rows: Rows) -> MappedRows:
        """Rows of features, made as they are asked for."""
        return MappedRows(rows, self.feature_map(), self._n_features_out)

    def problem(self, rows: Rows) -> Callable[..., PrimalSvmProblem]:
        """What a linear machine on the features of these rows solves, where features are made anew in every pass."""
        return PrimalSvmProblem

    def transform(self, X: Any) -> Array:
        """φ(x) of each row (n, m)."""
        rows = self._rows(X)
        return self.mapped(rows).map(partial(_as, rows.dtype))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """How far kernel values are off on these rows, as `certificate_` has it."""
        found = self._certificate(self._rows(X, sample_weight=sample_weight)).objective
        return Objective(found, found, 0.0)

    @abstractmethod
    def _certificate(self, rows: Rows) -> Certificate: ...

    def _chosen_gamma(self, rows: Rows) -> float:
        check_settings(self, (), n_components=1)
        if isinstance(self.gamma, str) and self.gamma in ("scale", "auto"):
            return 1.0 / rows.n_features if self.gamma == "auto" else scale(rows)
        if not isinstance(self.gamma, Real) or not 0 <= float(self.gamma) < np.inf:
            raise DataError(got=f"gamma={self.gamma!r}", wanted="'scale', 'auto' or a number of at least 0")
        return float(self.gamma)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _as(dtype: Any, block: Block) -> Array:
    return block.X.astype(dtype, copy=False)


@dataclass(frozen=True)
class _Entries(Sums):
    """Of all entries as one sample, about an origin."""

    weight: float
    x: float
    xx: float


def _entries(origin: float, block: Block) -> _Entries:
    X, w, d = block.X, block.w, block.X.shape[1]
    if not sparse.issparse(X):
        Z = X - np.float64(origin)
        return _Entries(d * w.sum(), w @ Z.sum(axis=1), w @ np.einsum("ij,ij->i", Z, Z))
    stored = np.diff(X.indptr)
    z, each, rest = X.data - np.float64(origin), np.repeat(w, stored), w @ (d - stored)
    return _Entries(d * w.sum(), each @ z - rest * origin, each @ z**2 + rest * origin**2)


def scale(rows: Rows) -> float:
    """1 / (columns · variance of all entries), rows counted by their weights."""
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        first = rows.sum(partial(_entries, 0.0))
        mean = first.x / first.weight
        about = rows.sum(partial(_entries, mean))
        variance = float(about.xx / about.weight - (about.x / about.weight) ** 2)
    if not np.isfinite(variance):
        raise DataError(
            got="entries whose squares overflow",
            wanted="gamma='scale' of a finite variance",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0
