"""What models with orthonormal axes share: rows to codes, codes to rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from certifit.decomposition.pca.codes import encode
from certifit.exceptions import DataError
from certifit.rows import Array


def check_codes(X: Any, k: int) -> Array:
    """Codes (n, k) as an array of finite numbers."""
    Z = check_array(X, dtype=[np.float64, np.float32], ensure_min_features=0)
    if Z.shape[1] != k:
        raise DataError(got=f"codes of {Z.shape[1]} columns", wanted=f"one for each of {k} components")
    return Z


class LinearCodes(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """`transform` and `inverse_transform` of an Estimator with `components_` (k, d) and `mean_` (d,)."""

    def transform(self, X: Any) -> Array:
        """Codes z = B (x - mean), (n, k)."""
        return self._rows(X).map(partial(encode, self.mean_, self.components_))

    def inverse_transform(self, X: Any) -> Array:
        """Rows from codes: x = mean + Bᵀ z."""
        check_is_fitted(self)
        return check_codes(X, len(self.components_)) @ self.components_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
