"""Scores β·x + b of rows, and the classes that they choose: the same for every linear classifier."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.base import ClassifierMixin

from certifit.rows import Array, Block


def score_rows(coef: Array, intercept: Array, block: Block) -> Array:
    """The scores (rows, k) of a block, with coef (k, d) and intercept (k,)."""
    return block.X @ coef.T + intercept


class LinearScores(ClassifierMixin):
    """`decision_function` and `predict` of an Estimator with `coef_` and `intercept_`: one row for two classes."""

    def decision_function(self, X: Any) -> Array:
        """Scores: (n,) for two classes, (n, k) for more."""
        rows = self._rows(X)
        eta = rows.map(partial(score_rows, self.coef_, self.intercept_))
        return eta[:, 0] if len(self.coef_) == 1 else eta

    def predict(self, X: Any) -> Array:
        """The class of the highest score of each row."""
        eta = self.decision_function(X)
        return self.classes_[(eta > 0).astype(int) if eta.ndim == 1 else eta.argmax(axis=1)]
