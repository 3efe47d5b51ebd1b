"""Scores β·x + b of rows, and the classes that they choose: the same for every linear classifier."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.rows import Array, Block


def score_rows(coef: Any, intercept: Array, block: Block) -> Array:
    """The scores (rows, k) of a block, with coef (k, d), which may be sparse, and intercept (k,)."""
    scores = block.X @ coef.T
    return (scores.toarray() if sparse.issparse(scores) else scores) + intercept


class LinearScores(ClassifierMixin):
    """`decision_function` and `predict` of an Estimator with `coef_` and `intercept_`: one score for two classes."""

    coef_: Any  # an array (1, d) or (d,) for two classes, (k, d) for more; or a CSR matrix after `sparsify`

    def sparsify(self) -> Self:
        """Keep `coef_` as a CSR matrix, which is smaller where an L1 penalty has made most coefficients 0."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep `coef_` as an array, as `fit` leaves it."""
        check_is_fitted(self)
        self.coef_ = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
        return self

    @property
    def _dense_coef(self) -> Array:
        """Coefficients in float64, one row for each score."""
        coef = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
        return np.atleast_2d(np.asarray(coef, dtype=np.float64))

    def decision_function(self, X: Any) -> Array:
        """Scores: (n,) for two classes, (n, k) for more."""
        rows = self._rows(X)
        # Scores are summed in float64, whatever the dtype that coefficients are kept in.
        coef = self.coef_.astype(np.float64) if sparse.issparse(self.coef_) else self._dense_coef
        eta = rows.map(partial(score_rows, coef, self.intercept_))
        return eta[:, 0] if coef.shape[0] == 1 else eta

    def predict(self, X: Any) -> Array:
        """The class of the highest score of each row."""
        eta = self.decision_function(X)
        return self.classes_[(eta > 0).astype(int) if eta.ndim == 1 else eta.argmax(axis=1)]
