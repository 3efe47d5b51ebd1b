"""What a mixture of families learns of its columns before EM starts: possible entries, classes, imagined rows.

All of it comes from sums over rows: whether every entry is one that its family can have, the number of classes of a
column, and the mean statistics that imagined rows take (`mixture.families.products`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from certifit.checkers.mixture.column_survey import survey_columns
from certifit.exceptions import DataError
from certifit.families import Categorical, Family, Gaussian, Support
from certifit.mixture.em import check_finite, counted_rows
from certifit.mixture.families.products import ImaginedRows, ProductComponents
from certifit.mixture.families.sufficient_statistics import (
    MemberMixtureColumns,
    MixtureColumns,
    group_columns,
    is_gaussian,
)
from certifit.mixture.families.tuning import FamilyMixtureTuning
from certifit.rows import Array, Block, Largest, Rows, Sums

R = TypeVar("R")


# --------------------------------------------------------------------------------------------- possible entries
def with_checked_entries(
    supports: Sequence[Support], names: Array | None, f: Callable[[Block], R], block: Block
) -> R:
    """Return f(block), or refuse an entry of a row with a positive weight that its family cannot have."""
    X = block.X[block.w > 0]
    for j, support in enumerate(supports):
        x = np.asarray(X[:, j], dtype=np.float64)
        fine = support.contains(x) | np.isnan(x)
        if not fine.all():
            bad = int(np.argmin(fine))
            row = block.start + int(np.flatnonzero(block.w > 0)[bad])
            raise DataError(
                got=f"{x[bad]:g} in row {row} of column {_column_words(j, names)}",
                wanted=f"{support.words}, as the family of this column has them",
                fix="Choose another family for this column, or empty the cell: a missing entry (NaN) is left out.",
            )
    return f(block)


def _column_words(j: int, names: Array | None) -> str:
    return str(j) if names is None else repr(names[j])


def _class_counts(columns: Array, block: Block) -> Largest:
    """Return one more than the largest entry of these columns (c,)."""
    X = block.X[block.w > 0][:, columns]
    return Largest(np.nan_to_num(X).max(axis=0, initial=0.0) + 1)


# --------------------------------------------------------------------------------------------- imagined rows
@dataclass(frozen=True)
class AllRowSums(Sums):
    """Sums over all rows with a positive weight and any entry."""

    weight: float  # Σ w
    n: Array  # Σ w over rows with an entry in each column (d,)
    total: Array  # Σ w T (M,)


def _sum_all_rows(reader: ProductComponents, block: Block) -> AllRowSums:
    """Sum the statistics of a block's rows, as if all belonged to one component."""
    out = AllRowSums(0.0, np.zeros(block.X.shape[1]), np.zeros(len(reader.column_of)))
    for index in reader.batches(block.X, *counted_rows(block.X, block.w)):
        w = block.w[index]
        with np.errstate(over="ignore", invalid="ignore"):  # `check_finite` refuses such sums
            found = reader.weighted_sums(reader.read_rows(block.X[index]), w[None])[1]
        out = out + AllRowSums(float(w.sum()), found.n[0], found.total[0])
    return out


def _count_classes(templates: Sequence[Family], rows: Rows, most: int) -> Array:
    """Check all entries; return the number of classes of each column (d,), 0 where it is not categorical."""
    columns = np.array([j for j, t in enumerate(templates) if isinstance(t, Categorical)], dtype=np.intp)
    supports = [type(t).support_of(**t.known_values) for t in templates]
    counts = rows.sum(partial(with_checked_entries, supports, rows.names, partial(_class_counts, columns))).value
    if (counts > most).any():
        j = int(columns[counts.argmax()])
        raise DataError(
            got=f"class number {counts.max() - 1:g} in column {_column_words(j, rows.names)}",
            wanted=f"class numbers below {most}",
            fix="Number the classes from 0.",
        )
    sizes = np.zeros(len(templates), np.int64)
    sizes[columns] = counts
    return sizes


def learn_imagined_rows(
    templates: Sequence[Family], rows: Rows, smoothing: float, tuning: FamilyMixtureTuning
) -> ImaginedRows:
    """Group the columns by family and find the imagined rows of each."""
    sizes = _count_classes(templates, rows, tuning.most_classes)
    groups = group_columns(templates, sizes, *_units(templates, rows))
    # statistics do not depend on parameters: any will do to read rows
    any_parameters = tuple(np.ones((1, len(group.parameters))) for group in groups)
    none = np.zeros(len(templates))
    reader = ProductComponents(any_parameters, ImaginedRows(groups, 1.0, none, (), tuning))
    whole = rows.sum(partial(_sum_all_rows, reader))
    check_finite(float(whole.total.sum()), whole.weight)
    if not whole.n.all():
        raise DataError(
            got=f"column {_column_words(int(whole.n.argmin()), rows.names)} of X without a single value",
            wanted="some in every column",
            fix="Leave it out.",
        )
    tau, strength = [], np.empty(len(templates))
    for group, total in zip(groups, reader.split(whole.total), strict=True):
        n = whole.n[group.columns]
        tau.append(group.imagined(total, n))
        strength[group.columns] = group.strength(smoothing, total, n)
        _check_members(group, tau[-1], rows.names)
    return ImaginedRows(groups, whole.weight, strength, tuple(tau), tuning)


def _check_members(group: MixtureColumns, tau: Array, names: Array | None) -> None:
    """Refuse a column whose mean statistics are those of no member of its family: a column without spread."""
    for i, j in enumerate(group.columns if isinstance(group, MemberMixtureColumns) else ()):
        try:
            replace(group, columns=group.columns[i : i + 1]).solve(tau[None, group.position == i])
        except DataError as error:
            raise DataError(
                got=f"{error.got} in column {_column_words(j, names)}",
                wanted=error.wanted,
                fix="Leave the column out, or choose another family for it.",
            ) from error


def _units(templates: Sequence[Family], rows: Rows) -> tuple[Array, Array]:
    """Return median and spread of Gaussian columns (d,); 0 and 1 of others."""
    shift, scale = np.zeros(len(templates)), np.ones(len(templates))
    if any(map(is_gaussian, templates)):
        survey = survey_columns(rows)
        for j, template in enumerate(templates):
            shift[j] = survey.median[j] if is_gaussian(template) else 0.0
            scale[j] = survey.spread[j] if isinstance(template, Gaussian) else 1.0
    return shift, scale
