"""What models with orthonormal axes share: rows to codes, codes to rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.core import Array
from certifit.models.pca_codes import encode


class LinearCodes(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """`transform` and `inverse_transform` of an Estimator with `components_` (k, d) and `mean_` (d,)."""

    def transform(self, X: Any) -> Array:
        """Codes z = B (x - mean), (n, k)."""
        return self._rows(X).map(partial(encode, self.mean_, self.components_))

    def inverse_transform(self, X: Any) -> Array:
        """Rows from codes: x = mean + Bᵀ z."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
