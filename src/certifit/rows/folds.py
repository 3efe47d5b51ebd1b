"""Folds of cross-validation: the rows that a model is fitted to, and the rows that it is scored on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from certifit.rows.block import Array, Matrix

FITTED, HELD_OUT = 1, 2  # what a row is to a fold

Fold: TypeAlias = tuple[Array, Array]  # numbers of the rows to fit and of the rows to score


class UsualFolds:
    """Five folds with nearly the same share of each class; fewer where no class has five rows.

    >>> len([*UsualFolds().split(None, np.array([0, 0, 0, 1, 1, 1]))])
    3
    """

    def __repr__(self) -> str:
        return "None"

    def split(self, X: Any, y: Array, groups: Any = None) -> Iterator[Fold]:
        """Yield the rows to fit and the rows to score, fold after fold."""
        largest = int(np.unique(y, return_counts=True)[1].max())
        return StratifiedKFold(min(5, max(2, largest))).split(np.zeros(len(y)), y)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many folds there are of rows that have enough of each class."""
        return 5


def make_folds(cv: Any, X: Matrix, y: Array | None, classes: bool) -> Iterator[Fold]:
    """Return the folds that scikit-learn's setting `cv` (a number, a splitter or an iterable) stands for.

    Where `cv` is a number and y are `classes`, every fold has nearly the same share of each class.
    """
    return check_cv(cv, y, classifier=classes).split(X, y)


def fold_roles(cv: Any, X: Matrix, y: Array | None, classes: bool) -> Array:
    """Return what each row is to every fold (folds, n) by the setting `cv`.

    >>> fold_roles(2, np.zeros((4, 1)), None, classes=False).tolist()
    [[2, 2, 1, 1], [1, 1, 2, 2]]
    """
    folds = [*make_folds(cv, X, y, classes=classes)]
    roles = np.zeros((len(folds), X.shape[0]), np.int8)
    for role, (train, test) in zip(roles, folds, strict=True):
        role[train] |= FITTED
        role[test] |= HELD_OUT
    return roles


def stratified_folds(codes: Array, n_folds: int, seed: int) -> list[Fold]:
    """Return shuffled folds of rows with class numbers `codes` (n,), each with nearly the same share of every class.

    >>> import numpy as np
    >>> codes = np.array([0, 0, 1, 1])
    >>> [sorted(codes[test].tolist()) for _, test in stratified_folds(codes, 2, seed=0)]
    [[0, 1], [0, 1]]
    """
    return [*StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(codes, codes)]


def shuffled_folds(n_rows: int, n_folds: int, seed: int) -> list[Fold]:
    """Return shuffled folds of this many rows, of nearly the same size.

    >>> [len(test) for _, test in shuffled_folds(7, 2, seed=0)]
    [4, 3]
    """
    return [*KFold(n_folds, shuffle=True, random_state=seed).split(range(n_rows))]
