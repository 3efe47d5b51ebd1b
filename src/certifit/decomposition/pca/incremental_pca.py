"""PCA of rows that come in batches. It is exact, because the scatter of all rows is the sum over batches.

    S = Σ_b S_b + scatter between the batch means,   whatever the order and size of the batches

Reference: Chan, Golub & LeVeque, "Algorithms for computing the sample variance" (1983), for the merge.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.core import Attributes, certified
from certifit.core.settings import TOL, Setting, Settings
from certifit.decomposition.pca.pca import PCA, certificate_from_covariance, fitted_attributes
from certifit.decomposition.pca.principal_axes import AxesWanted, axes_from_scatter, most_components
from certifit.numerics.moments import MeanAndScatter, scatter
from certifit.rows import Array, Rows


class IncrementalPCA(PCA):
    """Principal component analysis of rows that come in batches.

    It holds one d x d matrix, and its result is that of PCA on all rows together. (scikit-learn's keeps n_components
    directions between batches, which is an approximation.)

    Parameters
    ----------
    n_components : int, float in (0, 1), 'mle' or None
        As for PCA. While fewer rows than components have been seen, there are as many components as rows.
    whiten : bool, default=False
        Scale the components to unit variance in `transform`.
    tol : float, default=1e-9
        Most variance that another basis could capture beyond this one, relative to the variance that is discarded.
    batch_size, copy : ignored
        `fit` reads any table block by block; accepted so that scikit-learn code runs unchanged.

    Attributes
    ----------
    components_ : (k, d) orthonormal rows, as PCA's
    explained_variance_, explained_variance_ratio_, singular_values_ : (k,)
    mean_ : (d,)
    n_components_, n_samples_ : int
    noise_variance_ : float, average discarded variance
    var_ : (d,) variances of the columns (divided by the number of rows)
    n_samples_seen_ : int
    n_used_ : int, rows seen whose weight is positive
    scatter_ : (d, d) Σ w (x - mean)(x - mean)ᵀ of all rows seen
    weight_ : float, total weight of all rows seen
    batch_size_ : int, as scikit-learn would choose it; nothing depends on it

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import PCA, IncrementalPCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = IncrementalPCA(n_components=2)
    >>> for start in range(0, 150, 50):
    ...     model = model.partial_fit(X[start : start + 50])
    >>> bool(abs(model.explained_variance_ - PCA(2).fit(X).explained_variance_).max() < 1e-12)
    True
    """

    settings: ClassVar[Settings] = {"n_components": Setting(float, least=0, choices=("mle",), none=True), "tol": TOL}
    ignored: ClassVar[tuple[str, ...]] = ("copy", "batch_size")
    differences: ClassVar[dict[str, str]] = {
        "partial_fit": "The scatter of all rows seen is kept, so that any batch may be small or sparse, and "
        "n_components may change between batches.",
        "n_components": "None is as many as columns or rows seen, not as the first batch has rows.",
        "n_samples_seen_": "It is computed from n_samples_ and cannot be set.",
        "components_": PCA.differences["components_"],
    }

    def __init__(self, n_components=None, *, whiten=False, copy=True, batch_size=None, tol=1e-9):
        self.n_components = n_components
        self.whiten = whiten
        self.copy = copy
        self.batch_size = batch_size
        self.tol = tol

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        return self._attributes(scatter(rows, double=True), self.n_components, rows.n_rows)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add the rows of X to those seen so far."""
        first = not hasattr(self, "scatter_")
        with self._all_or_nothing(first):
            self._check_settings()
            rows = self._rows_to_fit(X, None, sample_weight, reset=first)
            found, n_rows = scatter(rows, double=True), rows.n_rows
            if not first:
                # Files of older versions do not have the number of rows with a positive weight.
                used = int(getattr(self, "n_used_", None) or self.n_samples_)
                found = MeanAndScatter(used, self.weight_, self.mean_, self.scatter_) + found
                n_rows += self.n_samples_
            wanted = self.n_components
            if isinstance(wanted, Integral) and not isinstance(wanted, bool):
                wanted = min(int(wanted), most_components(found.count, found.weight, rows.n_features))
            attributes = self._attributes(found, wanted, n_rows)
        self.__dict__.update(attributes)
        return self

    def _attributes(self, s: MeanAndScatter, wanted: Any, n_rows: int) -> Attributes:
        d = len(s.mean)
        whole = isinstance(wanted, Integral)
        axes = axes_from_scatter(s, AxesWanted(max(0, min(int(wanted), d)) if whole else d))
        fitted = fitted_attributes(axes, wanted, n_rows)
        return {
            **fitted,
            "n_used_": s.count,
            "scatter_": s.S,
            "weight_": s.weight,
            "certificate_": certified(certificate_from_covariance, axes, fitted, self.tol, np.float64),
        }

    @property
    def n_samples_seen_(self) -> int:
        """The number of rows seen."""
        check_is_fitted(self, "scatter_")
        return int(self.n_samples_)

    @property
    def var_(self) -> Array:
        """The variances of the columns."""
        check_is_fitted(self, "scatter_")
        return np.diag(self.scatter_) / self.weight_

    @property
    def batch_size_(self) -> int:
        """The batch size that scikit-learn would choose."""
        check_is_fitted(self, "scatter_")
        return self.batch_size or 5 * len(self.mean_)
