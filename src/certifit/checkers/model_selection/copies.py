"""Whether rows that equal each other are copies, or were drawn alike by chance from few values.

A copy of a fitted row is no new row: who has it on both sides of a split tests what was learnt by heart. Rows of few
different values are equal by chance; how likely that is, the columns tell one by one, as if they were independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.model_selection.splits import row_keys
from certifit.rows import Array


def copied_share(X: Any, y: Array, rows: Array, fold: Array) -> float:
    """Return the share of calibration rows (m,), each of a fold, of which a row outside it is a copy, target and all.

    Where equal rows may be due to chance, none of them is taken for a copy.

    >>> X, y = np.repeat(np.arange(30.0)[:, None] ** 0.5, 2, axis=0), np.repeat(np.arange(30.0) ** 1.5, 2)
    >>> fold = np.zeros(30, dtype=int)
    >>> copied_share(X, y, np.arange(0, 60, 2), fold), copied_share(X, y, np.arange(30), fold)
    (1.0, 0.0)
    """
    _, kinds = np.unique(np.column_stack([row_keys(X), row_keys(y[:, None])]), axis=0, return_inverse=True)
    kinds = kinds.ravel()
    # Rows of the same kind that are not in the row's own fold are fitted by the model that is asked about it.
    here = fold * (int(kinds.max()) + 1) + kinds[rows]
    _, places, inside = np.unique(here, return_inverse=True, return_counts=True)
    share = float(np.mean(np.bincount(kinds)[kinds[rows]] > inside[places.ravel()]))
    return share if share and not equal_by_chance(X, y, np.unique(kinds, return_index=True)[1]) else 0.0


def equal_by_chance(X: Any, y: Array, different: Array, most_pairs: float = 0.01) -> bool:
    """Say whether chance makes pairs of equal rows, targets and all, out of the values of `different` rows (m,).

    Of columns that are independent of each other a pair is equal with the product of their own chances. Of a sparse
    table nothing is known.

    >>> rng, y = np.random.default_rng(0), np.arange(50) % 2
    >>> equal_by_chance(rng.normal(size=(50, 2)), y, np.arange(50)), equal_by_chance(rng.integers(3, size=(50, 2)), y,
    ...     np.arange(50))
    (False, True)
    """
    m = len(different)
    if sparse.issparse(X) or m < 2:
        return True
    table = X if hasattr(X, "iloc") else np.asarray(X)
    table = table if hasattr(table, "iloc") else table.reshape(len(table), -1)
    pairs = 2 * np.log(m)
    for place in range(table.shape[1]):
        pairs += _chance_of_equal(table.iloc[different, place] if hasattr(table, "iloc") else table[different, place])
    return bool(pairs + _chance_of_equal(y[different]) > np.log(most_pairs))


def _chance_of_equal(values: Any) -> float:
    """Return the logarithm of the chance that two of so many values are equal; where none are, of one pair of all."""
    found = np.asarray(values)
    _, counts = np.unique(found.astype(str) if found.dtype.kind == "O" else found, return_counts=True)
    n = len(found)
    return float(np.log(max(float(counts @ (counts - 1.0)), 1.0) / (n * (n - 1.0))))
