"""What Nyström and Fourier features share: gamma, and features of rows from any source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from certifit.core import Certificate, Estimator, Objective
from certifit.core.settings import Setting, Settings
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums
from certifit.rows.mapped import MappedRows
from certifit.svm.kernel.kernels import check_squares
from certifit.svm.linear.solve import PrimalSvmProblem


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """An estimator of features φ(x) with φ(x)·φ(z) ≈ k(x, z), so that linear models of φ(x) are kernel machines."""

    sparse = True
    settings: ClassVar[Settings] = {
        "n_components": Setting(int, least=1),
        "gamma": Setting(float, least=0, below=np.inf, choices=("scale", "auto")),
    }
    _seconds: float = np.inf  # for the choice of features

    def limit_seconds(self, seconds: float) -> Self:
        """Choose features within these seconds from now on: fewer, where that is too little for all."""
        self._seconds = seconds
        return self

    @abstractmethod
    def feature_map(self) -> Callable[[Block], Array]:
        """The fitted features as a function of a block, float64 and picklable."""

    def mapped(self, rows: Rows) -> MappedRows:
        """Rows of features, which are computed anew in every pass."""
        return MappedRows(rows, self.feature_map(), self._n_features_out)

    def problem(self, rows: Rows) -> Callable[..., PrimalSvmProblem]:
        """The problem class of a linear machine on the features of these rows, computed anew in every pass."""
        return PrimalSvmProblem

    def transform(self, X: Any) -> Array:
        """φ(x) of each row (n, m)."""
        rows = self._rows(X)
        return self.mapped(rows).map(partial(_cast, rows.dtype))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The error of kernel values on these rows: the objective of `certificate_`."""
        found = self._certificate(self._rows(X, sample_weight=sample_weight)).objective
        return Objective(found, found, 0.0)

    @abstractmethod
    def _certificate(self, rows: Rows) -> Certificate: ...

    def _chosen_gamma(self, rows: Rows) -> float:
        if rows.in_memory:  # elsewhere this would be one more pass over the rows
            rows.sum(_squares_refused)
        if self.gamma == "scale":
            return _scale_gamma(rows)
        return 1.0 / rows.n_features if self.gamma in ("auto", None) else float(self.gamma)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _squares_refused(block: Block) -> int:
    check_squares(block.X)
    return 0


def _cast(dtype: Any, block: Block) -> Array:
    return block.X.astype(dtype, copy=False)


@dataclass(frozen=True)
class EntrySums(Sums):
    """Sums over all entries of a table as one sample, about an origin."""

    weight: float
    x: float
    xx: float


def _entry_sums(origin: float, block: Block) -> EntrySums:
    X, w, d = block.X, block.w, block.X.shape[1]
    if not sparse.issparse(X):
        Z = X - np.float64(origin)
        return EntrySums(d * w.sum(), w @ Z.sum(axis=1), w @ np.einsum("ij,ij->i", Z, Z))
    stored = np.diff(X.indptr)
    z, each, rest = X.data - np.float64(origin), np.repeat(w, stored), w @ (d - stored)
    return EntrySums(d * w.sum(), each @ z - rest * origin, each @ z**2 + rest * origin**2)


def _scale_gamma(rows: Rows) -> float:
    """γ = 1 / (columns · variance of all entries), rows counted by their weights."""
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
        first = rows.sum(partial(_entry_sums, 0.0))
        mean = first.x / first.weight
        about = rows.sum(partial(_entry_sums, mean))
        variance = float(about.xx / about.weight - (about.x / about.weight) ** 2)
        if max(variance, 0.0) ** 0.5 <= 16 * float(np.finfo(rows.dtype).eps) * abs(mean):
            variance = 0.0  # nothing but rounding
    if not np.isfinite(variance):
        raise DataError(
            got="entries whose squares overflow",
            wanted="gamma='scale' of a finite variance",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0
