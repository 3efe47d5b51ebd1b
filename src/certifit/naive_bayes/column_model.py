"""How columns are distributed within a class: the interface that every naive Bayes is put together from.

    p(c | x) ∝ π_c Πⱼ p(xⱼ | θ_cj),    θ from  min - Σᵢ wᵢ [log π_{yᵢ} + Σⱼ log p(xᵢⱼ | θ_{yᵢ,j})] + smoothing

A `ColumnModel` answers four questions: which sums over the rows of a class it needs (`sums`), which parameters
minimise the objective given these sums (`params`), how likely a row is under each class (`scores`), and what proves
that the parameters are the minimum (`evidence`). Where pseudo-observations enter is written in `smoothing`.

| columns | model | file |
|---|---|---|
| real numbers | `GaussianColumns` | gaussian |
| above or below a threshold | `BernoulliColumns` | bernoulli |
| counts of words | `MultinomialColumns`, `ComplementColumns` | multinomial |
| category numbers | `CategoricalColumns` | categorical |
| one exponential family | `FamilyColumns` | family_columns |
| several of these side by side | `SideBySide` | mixed |

Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 4.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from certifit.checkers.naive_bayes.moment_equations import MomentEvidence
from certifit.rows import Array, Block, Matrix, Rows, tree_sum
from certifit.rows.checks import check_finite


@dataclass(frozen=True)
class NaiveBayesTuning:
    """Numbers that steer how naive Bayes goes through the rows; they change no result beyond rounding."""

    dense_entries: int = 2**21  # entries of a sparse block that are made dense at a time
    first_rows: int = 256  # rows of the first block from which centres are chosen
    most_cells: int = 2**27  # classes x categories that a table of counts may have


class ClassStatistics(ABC):
    """Sums over the rows of each class. Immutable: it is sent to workers with every task."""

    State: ClassVar[Any]  # class of the sums that are kept with a model: a dataclass of arrays with `+`
    sparse: ClassVar[bool] = False  # takes CSR blocks; else it is given dense pieces of them

    columns: tuple[int, ...] = ()  # their numbers in the whole table, for messages; empty for all columns

    def column_number(self, j: int) -> int:
        """The number of its j-th column in the whole table."""
        return self.columns[j] if self.columns else j

    def prepare(self, first: Block, k: int, tuning: NaiveBayesTuning) -> ClassStatistics:
        """The same statistics, measured about centres that are chosen from the first block."""
        return self

    @abstractmethod
    def sums(self, block: Block, k: int) -> Any:
        """The sums of a block for each of k classes; block.y holds class numbers."""

    def remeasure(self, total: Any) -> ClassStatistics | None:
        """Statistics about better centres if these sums have lost digits, else None."""
        return None

    def state(self, total: Any) -> Any:
        """What is kept of the sums."""
        return total


class ColumnModel(ClassStatistics):
    """A distribution of columns within a class: statistics, parameters, scores and their proof."""

    Params: ClassVar[Any]  # class of the parameters, a NamedTuple

    @abstractmethod
    def params(self, state: Any) -> Any:
        """The parameters of every class that minimise the objective, a NamedTuple of arrays."""

    @abstractmethod
    def scores(self, params: Any, X: Matrix) -> Array:
        """Σⱼ log p(xⱼ | θ_c), (rows, k), over the columns that are not missing in a row."""

    @abstractmethod
    def penalty(self, params: Any, state: Any) -> float:
        """What the pseudo-observations of the smoothing add to the objective."""

    @abstractmethod
    def evidence(self, params: Any, state: Any, tol: float) -> list[MomentEvidence]:
        """The moment equations at these parameters, from the sums."""

    def keep(self, state: Any) -> Any:
        """A state as plain arrays, to be stored with the model."""
        return {field.name: getattr(state, field.name) for field in fields(state)}

    def restore(self, kept: Any) -> Any:
        """The state that `keep` made plain."""
        return self.State(**kept)


# ------------------------------------------------------------------------------------------- one pass over the rows
def measure(statistics: ClassStatistics, rows: Rows, k: int, tuning: NaiveBayesTuning) -> Any:
    """Sum statistics by class in one pass, or in two where most rows lie far from the first block's centres."""
    with naming_infinities(rows):
        statistics = statistics.prepare(next(iter(rows)), k, tuning)
        total = rows.sum(partial(_block_sums, statistics, k, tuning.dense_entries))
        better = statistics.remeasure(total)
        if better is not None:
            statistics = better
            total = rows.sum(partial(_block_sums, statistics, k, tuning.dense_entries))
        return statistics.state(total)


def _block_sums(statistics: ClassStatistics, k: int, dense_entries: int, block: Block) -> Any:
    if statistics.sparse or not sparse.issparse(block.X):
        return statistics.sums(block, k)
    assert block.y is not None
    return tree_sum(
        statistics.sums(Block(X, block.y[here], block.w[here], block.start + here.start), k)
        for here, X in dense_pieces(block.X, dense_entries)
    )


def dense_pieces(X: Matrix, dense_entries: int) -> Iterator[tuple[slice, Array]]:
    """Runs of rows of a CSR matrix as dense arrays of about so many entries, with where they are."""
    step = max(1, dense_entries // X.shape[1])
    for first in range(0, X.shape[0], step):
        here = slice(first, min(first + step, X.shape[0]))
        yield here, X[here].toarray()


# -------------------------------------------------------------------------------------------------------- infinities
class InfinityFound(Exception):
    """A block holds an infinity; its place is looked for only then."""


def refuse_infinities(X: Matrix) -> None:
    """Raise `InfinityFound` if an entry is infinite."""
    if np.isinf(X.data if sparse.issparse(X) else X).any():
        raise InfinityFound


@contextmanager
def naming_infinities(rows: Rows) -> Iterator[None]:
    """Turn `InfinityFound` into an error that names the row and the column."""
    try:
        yield
    except InfinityFound:
        rows.each(partial(check_finite, names=rows.names, missing=True))  # raises, with the place
        raise
