"""When a boosting has stopped getting better: scores of each stage on rows kept for it, or on the training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from certifit.ensemble.boosting.boosted_trees import BoostedTrees
from certifit.ensemble.boosting.stagewise import Stagewise
from certifit.losses.scores.score_losses import ScoreLoss
from certifit.rows import Array, block_rows


@dataclass(frozen=True)
class RowsAndScores:
    """A stand-in for a fitted model that knows the scores of the rows it will be asked about, for scikit-learn."""

    scores: Array  # (n, k)
    classes_: Array | None
    mean: Callable[[Array], Array]  # what predictions are of scores
    _estimator_type: str = "classifier"

    def decision_function(self, X: Any) -> Array:
        return self.scores[:, 0] if self.scores.shape[1] == 1 else self.scores

    def predict_proba(self, X: Any) -> Array:
        return self.mean(self.scores)

    def predict(self, X: Any) -> Array:
        found = self.mean(self.scores)
        return found if self.classes_ is None else self.classes_[found.argmax(axis=1)]

    def fit(self, X: Any, y: Any) -> RowsAndScores:
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import ClassifierMixin, RegressorMixin

        base = RegressorMixin if self.classes_ is None else ClassifierMixin
        return type("Tagged", (base, _Base), {})().__sklearn_tags__()


class _Base:
    """The end of the chain of tags."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))


@dataclass(frozen=True)
class StageScorer:
    """Scores of rows by their score numbers: the larger, the better."""

    loss: ScoreLoss
    scoring: Any  # 'loss', None for the estimator's own score, or scikit-learn's scoring
    classes: Array | None
    mean: Callable[[Array], Array]
    block_rows: int = 65_536  # losses are added up in blocks of so many rows: less memory than all at once

    def __call__(self, y: Array, w: Array, F: Array) -> float:
        if self.scoring == "loss":
            plain, total = self.loss.plain, 0.0
            for start in range(0, len(y), self.block_rows):
                rows = slice(start, start + self.block_rows)
                total += float(w[rows] @ plain.value(y[rows], F[rows] if plain.several else F[rows, 0]))
            return -total / float(w.sum())
        name = ("r2" if self.classes is None else "accuracy") if self.scoring is None else self.scoring
        scorer = get_scorer(name) if isinstance(name, str) else name
        target = y if self.classes is None else self.classes[y.astype(np.int64)]
        return float(scorer(RowsAndScores(F, self.classes, self.mean), np.zeros((len(y), 1)), target))


class ValidationRows:
    """Rows that no tree is grown on, and their scores as stages are added.

    X are their values (n, d), or codes of a byte, which `decode` turns into values a block at a time.
    """

    def __init__(
        self, X: Any, y: Array, w: Array, boosting: Stagewise, start: Array | None = None, decode: Any = None
    ) -> None:
        self.X, self.y, self.w, self.decode = X, y, w, decode
        self.F = np.tile(boosting.baseline, (len(y), 1)) + (0.0 if start is None else start)
        if boosting.trees:
            self._add(boosting.fitted())

    def follow(self, boosting: Stagewise) -> None:
        """Add the last stage."""
        self._add(boosting.fitted(last=1))

    def _add(self, trees: BoostedTrees) -> None:
        step = block_rows(self.X.shape[1])
        for start in range(0, len(self.y), step):
            rows = slice(start, start + step)
            X = self.X[rows] if self.decode is None else self.decode(self.X[rows])
            trees.add(trees.coded(X), 0, trees.n_trees, self.F[rows])


def is_stalled(scores: list[float], patience: int, tol: float) -> bool:
    """Whether none of the last `patience` scores is better by more than `tol` than the best before them."""
    if len(scores) <= patience:
        return False
    reference = scores[-patience - 1] + tol
    return not any(score > reference for score in scores[-patience:])
