"""Splits by a hash of the row number: reproducible without a shuffle, also for rows that do not fit in memory.

Row i has the place h(i) in [0, 1), where h mixes the bits of i and of the salt (Steele, Lea & Flood, Fast splittable
pseudorandom number generators, 2014). Which side a row is on depends on nothing else: rows that are added later leave
the others where they are, a smaller test set is part of a larger one, and every machine of a cluster finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.model_selection.splitting.selected_rows import SelectedRows
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class HashedSplit:
    """Test a share of the rows that a hash of the row number chooses; `split_rows` splits files and Dask data too.

    Where `groups` are given to `split`, the hash is that of the group: rows of a group stay together, and a group
    stays on its side when rows or groups are added.

    Parameters
    ----------
    test_size : share of the rows to test; about so many are, as if each had been drawn by a coin
    salt : another whole number gives another split

    Examples
    --------
    >>> for train, test in HashedSplit(0.25).split(range(10)):
    ...     print(train, test)
    [0 1 2 3 4 5 7 8 9] [6]

    A Parquet file is read in blocks, and only what is kept of a block is passed on:

    >>> from certifit import GaussianNB, as_rows
    >>> rows = as_rows([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]], [0, 0, 0, 1, 1, 1], target="classes")
    >>> train, test = HashedSplit(0.5).split_rows(rows)
    >>> train.n_rows, test.n_rows
    (4, 2)
    >>> GaussianNB().fit(train).class_count_
    array([3., 1.])
    """

    test_size: float = 0.25
    salt: int = 0

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many splits there are: one."""
        return 1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Give the numbers of the rows to fit and of the rows to test."""
        test = self._tested(count_rows(X), groups)
        yield np.flatnonzero(~test), np.flatnonzero(test)

    def split_rows(self, rows: Rows) -> tuple[SelectedRows, SelectedRows]:
        """Return the rows to fit and the rows to test, without reading any; give `fit` the first of them.

        Parameters
        ----------
        rows : what `as_rows` makes of a table, with its target: `as_rows("rows.parquet", y="kind", target="classes")`
        """
        test = self._tested(_rows_only(rows).n_rows, None)
        return SelectedRows(rows, ~test), SelectedRows(rows, test)

    def _tested(self, n: int, groups: Any) -> Array:
        Setting(float, above=0, below=1).check("test_size", self.test_size)
        test = hashed_places(n, self.salt, groups) < self.test_size
        if test.all() or not test.any():
            raise DataError(
                got=f"{np.count_nonzero(test)} of {n} rows to test, by chance",
                wanted="rows on both sides",
                fix="Choose another salt, or a splitter that counts rows: ShuffleSplit.",
            )
        return test


@dataclass(frozen=True)
class HashedKFold:
    """Cut rows into folds by a hash of the row number; each fold is tested once. Files and Dask data by `split_rows`.

    Where `groups` are given to `split`, the hash is that of the group. Folds have about the same size.

    Parameters
    ----------
    n_splits : number of folds
    salt : another whole number gives other folds

    Examples
    --------
    >>> for train, test in HashedKFold(3).split(range(8)):
    ...     print(test)
    [4 6 7]
    [3]
    [0 1 2 5]
    """

    n_splits: int = 5
    salt: int = 0

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many folds there are."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Give the numbers of the rows to fit and of the rows to test, fold by fold."""
        fold = self._folds(count_rows(X), groups)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def split_rows(self, rows: Rows) -> Iterator[tuple[SelectedRows, SelectedRows]]:
        """Give the rows to fit and the rows to test of each fold, as `HashedSplit.split_rows` does."""
        fold = self._folds(_rows_only(rows).n_rows, None)
        for k in range(self.n_splits):
            yield SelectedRows(rows, fold != k), SelectedRows(rows, fold == k)

    def _folds(self, n: int, groups: Any) -> Array:
        """Return the number of each row's fold (n,)."""
        Setting(int, least=2).check("n_splits", self.n_splits)
        fold = (hashed_places(n, self.salt, groups) * self.n_splits).astype(np.intp)
        sizes = np.bincount(fold, minlength=self.n_splits)
        if not sizes.all():
            raise DataError(
                got=f"{np.count_nonzero(sizes == 0)} of {self.n_splits} folds without a row, by chance",
                wanted="a row in every fold",
                fix="Choose fewer folds, another salt, or a splitter that counts rows: KFold.",
            )
        return fold


def hashed_places(n: int, salt: int, groups: Any = None) -> Array:
    """Return a number in [0, 1) for each of n rows (n,): a hash of its number, or of its group.

    >>> hashed_places(3, salt=0).round(3)
    array([0.883, 0.824, 0.83 ])
    """
    Setting(int).check("salt", salt)
    if groups is None:
        keys = np.arange(n, dtype=np.uint64)
    else:
        names, inverse = np.unique(np.asarray(groups), return_inverse=True)
        if len(inverse) != n:
            raise DataError(got=f"{len(inverse)} groups", wanted=f"one for each of the {n} rows")
        digests = [blake2b(str(name).encode(), digest_size=8).digest() for name in names.tolist()]
        keys = np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)[inverse]
    mixed = _mix(_mix(keys) ^ _mix(np.array(salt % 2**64, dtype=np.uint64)))
    # 53 bits are what a float can hold.
    return (mixed >> np.uint64(11)) * 2.0**-53


def _mix(x: Array) -> Array:
    """Return the finaliser of SplitMix64 of whole numbers (any shape)."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _rows_only(rows: Any) -> Rows:
    if not isinstance(rows, Rows):
        raise DataError(
            got=f"a {type(rows).__name__}",
            wanted="rows, as `certifit.as_rows` makes them of any table",
            fix='split_rows(as_rows(X, y, target="classes")), or target="numbers".',
        )
    return rows
