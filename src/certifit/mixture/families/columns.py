"""From a table to the columns of a mixture: whether entries are possible, and what all rows say of each column.

Whatever is learnt here before EM starts comes from sums over rows: the number of classes of a column, and the mean
statistics that imagined rows take (`mixture_products`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
from scipy import sparse

from certifit.checkers.mixture.gaussian import survey
from certifit.exceptions import DataError
from certifit.families import Categorical, Family, Gaussian, Support
from certifit.mixture.em import check_finite, counts
from certifit.mixture.families.products import Prior, Products
from certifit.mixture.families.sufficient_statistics import REALS, Group, Members, groups_of
from certifit.rows import Array, Block, Largest, Rows, Sums
from certifit.rows.mapped import MappedRows

R = TypeVar("R")

MOST_CLASSES = 10_000  # of one column


# --------------------------------------------------------------------------------------------- possible entries
def dense_rows(rows: Rows) -> Rows:
    """The same rows; those of a sparse matrix are filled in block by block, never all at once."""
    return MappedRows(rows, _filled, rows.n_features) if sparse.issparse(getattr(rows, "X", None)) else rows


def _filled(block: Block) -> Array:
    return block.X.toarray()


def checked(supports: Sequence[Support], names: Array | None, f: Callable[[Block], R], block: Block) -> R:
    """f(block), after a look at whether every entry of a row with weight is one that its family can have."""
    X = block.X[block.w > 0]
    for j, support in enumerate(supports):
        x = np.asarray(X[:, j], dtype=np.float64)
        fine = support.contains(x) | np.isnan(x)
        if not fine.all():
            bad = int(np.argmin(fine))
            row = block.start + int(np.flatnonzero(block.w > 0)[bad])
            raise DataError(
                got=f"{x[bad]:g} in row {row} of column {_place(j, names)}",
                wanted=f"{support.words}, as the family of this column has them",
                fix="Choose another family for this column, or empty the cell: a missing entry (NaN) has no say.",
            )
    return f(block)


def _place(j: int, names: Array | None) -> str:
    return str(j) if names is None else repr(names[j])


def _classes(columns: Array, block: Block) -> Largest:
    """One more than the largest entry of these columns (c,)."""
    X = block.X[block.w > 0][:, columns]
    return Largest(np.nan_to_num(X).max(axis=0, initial=0.0) + 1)


# --------------------------------------------------------------------------------------------- what all rows say
@dataclass(frozen=True)
class Whole(Sums):
    """Sums over all rows that have a say."""

    weight: float  # Σ w
    n: Array  # Σ w by column (d,)
    total: Array  # Σ w T (M,)


def _whole(look: Products, block: Block) -> Whole:
    out = Whole(0.0, np.zeros(block.X.shape[1]), np.zeros(len(look.column_of)))
    for piece in look.pieces(block.X, *counts(block.X, block.w)):
        w = block.w[piece]
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            found = look.collect(look.statistics(np.asarray(block.X[piece], np.float64)), w[None])[1]
        out = out + Whole(float(w.sum()), found.n[0], found.total[0])
    return out


def learn(likes: Sequence[Family], rows: Rows, smoothing: float) -> Prior:
    """The columns by family, and the rows to imagine beside these."""
    classes = np.array([j for j, like in enumerate(likes) if isinstance(like, Categorical)], dtype=np.intp)
    supports = [type(like).support_of(**like.known_values) for like in likes]
    largest = rows.sum(partial(checked, supports, rows.names, partial(_classes, classes))).value
    if (largest > MOST_CLASSES).any():
        j = int(classes[largest.argmax()])
        raise DataError(
            got=f"class number {largest.max() - 1:g} in column {_place(j, rows.names)}",
            wanted=f"class numbers below {MOST_CLASSES}",
            fix="Number the classes from 0.",
        )
    sizes = np.zeros(len(likes), np.int64)
    sizes[classes] = largest
    groups = groups_of(likes, sizes, *_units(likes, rows))
    nothing = tuple(np.ones((1, len(group.parameters))) for group in groups)
    look = Products(nothing, Prior(groups, 1.0, np.zeros(len(likes)), ()))
    whole = rows.sum(partial(_whole, look))
    check_finite(float(whole.total.sum()), whole.weight)
    if not whole.n.all():
        raise DataError(
            got=f"column {_place(int(whole.n.argmin()), rows.names)} of X without a single value",
            wanted="some in every column",
            fix="Leave it out.",
        )
    tau, strength = [], np.empty(len(likes))
    for group, total in zip(groups, look.split(whole.total), strict=True):
        n = whole.n[group.columns]
        tau.append(group.imagined(total, n))
        strength[group.columns] = group.strength(smoothing, total, n)
        _check_members(group, tau[-1], rows.names)
    return Prior(groups, whole.weight, strength, tuple(tau))


def _check_members(group: Group, tau: Array, names: Array | None) -> None:
    """Refuse a column whose rows as a whole are no member of its family: those without spread."""
    for i, j in enumerate(group.columns if isinstance(group, Members) else ()):
        try:
            replace(group, columns=group.columns[i : i + 1]).solve(tau[None, group.of == i])
        except DataError as error:
            raise DataError(
                got=f"{error.got} in column {_place(j, names)}",
                wanted=error.wanted,
                fix="Leave the column out, or choose another family for it.",
            ) from error


def _units(likes: Sequence[Family], rows: Rows) -> tuple[Array, Array]:
    """Place and spread of Gaussian columns (d,); 0 and 1 of others."""
    shift, scale = np.zeros(len(likes)), np.ones(len(likes))
    if any(isinstance(like, REALS) for like in likes):
        about = survey(rows)
        for j, like in enumerate(likes):
            shift[j] = about.median[j] if isinstance(like, REALS) else 0.0
            scale[j] = about.spread[j] if isinstance(like, Gaussian) else 1.0
    return shift, scale
