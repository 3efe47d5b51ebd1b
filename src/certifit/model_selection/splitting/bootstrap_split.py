"""The bootstrap as a splitter: rows drawn with replacement are fitted, rows that were not drawn are tested."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array


@dataclass(frozen=True)
class BootstrapSplit:
    """Draw as many rows as there are, with replacement; test on the rows that were not drawn, about 37 % of them.

    A splitter for `assess`, and for scikit-learn's `cross_validate` and searches. Where `groups` are given to
    `split`, whole groups are drawn: rows of a group are then never on both sides. A draw that leaves nothing to test
    is made again.

    Parameters
    ----------
    n_splits : how many samples are drawn
    random_state : int, RandomState or None

    References
    ----------
    Efron, Estimating the error rate of a prediction rule: improvement on cross-validation (1983).

    Examples
    --------
    >>> for train, test in BootstrapSplit(2, random_state=0).split(range(6)):
    ...     print(train, test)
    [4 5 0 3 3 3] [1 2]
    [0 4 2 1 0 1] [3 5]
    """

    n_splits: int = 100
    random_state: Any = None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many splits there are."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Give the numbers of the rows to fit, some more than once, and of the rows to test."""
        Setting(int, least=1).check("n_splits", self.n_splits)
        members = (
            np.arange(count_rows(X)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        )
        n_groups = int(members.max()) + 1
        if n_groups < 2:
            raise DataError(
                got="one row" if groups is None else "one group", wanted="two or more: one to fit and one to test"
            )
        rng = check_random_state(self.random_state)
        order = np.argsort(members, kind="stable")
        first = np.searchsorted(members[order], np.arange(n_groups + 1))
        for _ in range(self.n_splits):
            drawn = _draw(rng, n_groups)
            train = np.concatenate([order[first[g] : first[g + 1]] for g in drawn]) if groups is not None else drawn
            yield train, np.flatnonzero(np.bincount(drawn, minlength=n_groups)[members] == 0)


def _draw(rng: np.random.RandomState, n: int) -> Array:
    """Return n numbers below n, at least one of which is missing."""
    while True:
        drawn = rng.randint(n, size=n)
        if len(np.unique(drawn)) < n:
            return drawn
