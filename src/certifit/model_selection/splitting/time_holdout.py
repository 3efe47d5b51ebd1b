"""A holdout in time order: the latest rows are tested, and the model saw nothing of their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array


@dataclass(frozen=True, eq=False)
class TimeHoldout:
    """Test on the latest rows, fit the earlier ones; rows of the same time are never on both sides.

    Parameters
    ----------
    test_size : share of the rows to test, or their number; rows of the time at the border are all tested
    gap : how many of the latest rows before the border are neither fitted nor tested, for targets that look ahead
    time : the time of each row (n,), or the name of a column of a data frame; by default rows are in time order

    Examples
    --------
    >>> for train, test in TimeHoldout(0.25, gap=1).split(range(8)):
    ...     print(train, test)
    [0 1 2 3 4] [6 7]
    >>> for train, test in TimeHoldout(2, time=[2024, 2023, 2024, 2022, 2024]).split(range(5)):
    ...     print(train, test)
    [1 3] [0 2 4]
    """

    test_size: float | int = 0.25
    gap: int = 0
    time: Any = None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many splits there are: one."""
        return 1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Give the numbers of the rows to fit and of the rows to test, each in ascending order."""
        Setting(int, least=0).check("gap", self.gap)
        n = count_rows(X)
        time = self.times(X)
        n_test = tested_count(self.test_size, n)
        order = np.argsort(time, kind="stable")
        test = time >= time[order[n - n_test]]
        earlier = order[: n - np.count_nonzero(test)]
        train = earlier[: len(earlier) - self.gap] if self.gap else earlier
        if not len(train):
            raise DataError(
                got=f"{n} rows, {np.count_nonzero(test)} of them tested and a gap of {self.gap}",
                wanted="at least one earlier row to fit",
                fix="Test fewer rows, make the gap smaller, or give times that tell rows apart.",
            )
        yield np.sort(train), np.flatnonzero(test)

    def times(self, X: Any) -> Array:
        """Return the time of each row (n,)."""
        n = count_rows(X)
        if self.time is None:
            return np.arange(n)
        if isinstance(self.time, str):
            if self.time not in getattr(X, "columns", ()):
                raise DataError(got=f"time={self.time!r}", wanted="the name of a column of the data frame X")
            found = np.asarray(X[self.time])
        else:
            found = np.asarray(self.time)
        if found.shape != (n,):
            raise DataError(got=f"times of shape {found.shape}", wanted=f"one time for each of the {n} rows")
        if np.any(found != found):
            raise DataError(got="a missing time", wanted="a time for every row", fix="Leave such rows out.")
        return found


def tested_count(test_size: float | int, n: int) -> int:
    """Return how many of n rows are tested, by a share or a number."""
    Setting(int, least=1, other=lambda share: 0 < share < 1, other_words="a share between 0 and 1").check(
        "test_size", test_size
    )
    count = int(test_size) if test_size >= 1 else max(1, round(test_size * n))
    if count >= n:
        raise DataError(got=f"test_size={test_size} for {n} rows", wanted="at least one row to fit")
    return count
