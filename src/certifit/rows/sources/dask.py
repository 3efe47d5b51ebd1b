"""Rows of a Dask array or frame: every partition is summed by the worker that holds it, and the sums are added.

Only the total is sent back. Dask decides where tasks run: on local threads, or on the cluster of the current
`dask.distributed.Client`, which computes the results of a lost worker again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from dask.delayed import Delayed, delayed
from pandas.api.types import is_numeric_dtype
from sklearn.base import BaseEstimator

from certifit.exceptions import DataError
from certifit.rows.block import Array, Block, aligned_block, block_rows, row_major
from certifit.rows.checks import (
    TableTerms,
    check_block,
    check_target,
    check_weights,
    check_width,
    refuse_weights,
    refuse_zero_weights,
)
from certifit.rows.named_columns import (
    ColumnRoles,
    choose_columns,
    is_number,
    list_names,
    named_targets,
    note_features,
    refuse_columns,
    refuse_names,
)
from certifit.rows.rows import R, Relabel, Rows, relabelled
from certifit.rows.sources.dask_partitions import (
    DaskPartition,
    PartitionRun,
    PartitionStore,
    compute_tasks,
    joined_partitions,
    take_from,
    worker_address,
)
from certifit.rows.sources.workers.partition_values import (
    check_pieces,
    joined_vector,
    piece_values,
    refuse_length,
    refuse_partitions,
)
from certifit.rows.sources.workers.remembered import remember_targets
from certifit.rows.sources.workers.worker_memory import reuse_memory
from certifit.rows.sums import S, Subtree, subtrees, whole_sum
from certifit.rows.threads import single_threaded_blas


@dataclass(frozen=True)
class PartitionLayout:
    """How a partition is turned into blocks."""

    columns: ColumnRoles | None  # None where X is an array
    names: Array | None
    dtype: np.dtype[Any]
    terms: TableTerms
    block_rows: int
    relabels: tuple[Relabel, ...] = ()
    targets: str = ""  # a name that no other targets and weights of these rows have, where there are relabels
    passes_before: int = 0  # over the rows, to open them


class DaskRows(Rows):
    """Rows in the partitions of a Dask collection."""

    distributed = True

    def __init__(
        self, parts: list[DaskPartition], layout: PartitionLayout, n_features: int, owners: Sequence[str] = ()
    ) -> None:
        self.layout, self.n_features = layout, n_features
        self.n_rows = sum(part.rows for part in parts)
        self.names, self.dtype = layout.names, layout.dtype
        row_bytes = (n_features + 2) * layout.dtype.itemsize
        joined = joined_partitions(parts, layout.block_rows, row_bytes)
        if owners and joined is not parts:  # whoever has the row in the middle
            middles = [part.start + part.rows // 2 for part in joined]
            owners = [owners[k] for k in np.searchsorted([part.start for part in parts], middles, side="right") - 1]
        self.store = PartitionStore(joined, row_bytes, layout.passes_before, joined is not parts, owners)

    @property
    def parts(self) -> list[DaskPartition]:
        """Partitions, joined where they are small."""
        return self.store.parts

    def relabel(self, f: Relabel) -> DaskRows:
        rows = copy(self)
        rows.layout = replace(self.layout, relabels=(*self.layout.relabels, f), targets=uuid4().hex)
        return rows

    def __iter__(self) -> Iterator[Block]:
        self._begin_pass()
        layout = shared_task(self.layout)
        for number in range(len(self.parts)):
            yield from self.store.compute(delayed(_each)(_same_block, layout, [self.store.partition(number)]))[0][0]

    def _sum(self, f: Callable[[Block], S]) -> S:
        sums, most = [task for _, task in self._tasks(_sum, f)], self.store.tuning.sums_of_a_task
        while len(sums) > most:
            sums = [delayed(_join_sums)(sums[k : k + most]) for k in range(0, len(sums), most)]
        return self.store.compute(delayed(_add_up)(sums))[0]

    def each(self, f: Callable[[Block], R]) -> list[R]:
        numbers, tasks = zip(*self._tasks(_each, f), strict=True)
        found = dict(zip(chain.from_iterable(numbers), chain.from_iterable(self.store.compute(*tasks)), strict=True))
        return [out for number in range(len(found)) for out in found[number]]

    def gather(self, lists: Sequence[Array]) -> list[Any]:
        """Return, for each list of row numbers, a task whose result is a block of these rows in this order.

        Rows go from worker to worker, and none comes here.
        """
        ends = np.cumsum([part.rows for part in self.parts])
        owners = [np.searchsorted(ends, rows, side="right") for rows in lists]
        layout = shared_task(self.layout)
        pieces: list[list[Any]] = [[] for _ in lists]
        for p in np.unique(np.concatenate(owners)).tolist():
            first = ends[p] - self.parts[p].rows
            wanted = [rows[owner == p] - first for rows, owner in zip(lists, owners, strict=True)]
            picked = delayed(_pick_rows)(wanted, layout, self.store.partition(p))
            for k, rows in enumerate(wanted):
                if len(rows):
                    pieces[k].append(picked[k])
        places = [np.argsort(np.argsort(owner, kind="stable"), kind="stable") for owner in owners]
        return [delayed(_join_rows)(parts, place) for parts, place in zip(pieces, places, strict=True)]

    def _tasks(self, action: Callable[..., Any], f: Callable[[Block], Any]) -> list[tuple[Sequence[int], Any]]:
        """Tasks of one more pass, each with the numbers of its partitions."""
        f, layout = shared_task(f), shared_task(self.layout)
        return [(run.numbers, delayed(action)(f, layout, run.parts)) for run in self._begin_pass()]

    def _begin_pass(self) -> list[PartitionRun]:
        layout = shared_task(replace(self.layout, relabels=()))
        return self.store.begin_pass(lambda parts: delayed(_cut_blocks)(layout, [tuple(part) for part in parts]))


def shared_task(value: Any) -> Any:
    """Return a value that all tasks share as a task of its own, so that it is sent once."""
    return delayed(value, traverse=False)


# ------------------------------------------------------------------------------------------------ on the workers
def _sum(f: Callable[[Block], S], layout: PartitionLayout, parts: list[Any]) -> list[Subtree[S]]:
    reuse_memory()
    with single_threaded_blas():
        blocks = (block for part in parts for block in _blocks(layout, part))
        return subtrees(Subtree(0, block.start // layout.block_rows, f(block)) for block in blocks)


def _join_sums(sums: list[list[Subtree[S]]]) -> list[Subtree[S]]:
    return subtrees(sorted(chain.from_iterable(sums), key=attrgetter("first")))


def _add_up(sums: list[list[Subtree[S]]]) -> S:
    return whole_sum(_join_sums(sums))


def _each(f: Callable[[Block], R], layout: PartitionLayout, parts: list[Any]) -> list[list[R]]:
    reuse_memory()
    with single_threaded_blas():
        return [[f(block) for block in _blocks(layout, part)] for part in parts]


def _cut_blocks(layout: PartitionLayout, parts: list[Any]) -> list[list[Block]]:
    reuse_memory()
    return [list(_checked_blocks(layout, True, *part)) for part in parts]


def _pick_rows(wanted: list[Array], layout: PartitionLayout, part: Any) -> list[Block]:
    """The rows of one partition with these numbers, for each list of them."""
    blocks = list(_blocks(layout, part))
    X, w = np.concatenate([block.X for block in blocks]), np.concatenate([block.w for block in blocks])
    y = None if blocks[0].y is None else np.concatenate([block.y for block in blocks if block.y is not None])
    return [Block(X[rows], None if y is None else y[rows], w[rows], 0) for rows in wanted]


def _join_rows(pieces: list[Block], place: Array) -> Block:
    """Rows of several partitions, one of them at each place."""
    X, w = np.concatenate([piece.X for piece in pieces]), np.concatenate([piece.w for piece in pieces])
    y = None if pieces[0].y is None else np.concatenate([piece.y for piece in pieces if piece.y is not None])[place]
    return Block(X[place], y, w[place], 0)


def _same_block(block: Block) -> Block:
    return block


def _blocks(layout: PartitionLayout, part: Any) -> Iterator[Block]:
    """Give the checked blocks of a partition, which is the values of a `DaskPartition` or its blocks, held."""
    if not isinstance(part, list):
        yield from (relabelled(block, layout.relabels) for block in _checked_blocks(layout, False, *part))
    elif layout.relabels:
        relabel = partial(relabelled, relabels=layout.relabels)
        yield from (remember_targets(block, layout.targets, relabel) for block in map(aligned_block, part))
    else:
        yield from map(aligned_block, part)


def _checked_blocks(
    layout: PartitionLayout, kept: bool, X: list[Any], y: list[Any] | None, w: list[Any] | None, start: int, rows: int
) -> Iterator[Block]:
    """Cut a partition, in pieces, into blocks, and check them; those that are kept lie in one array.

    Memory for one large array is there sooner than for many small ones: the system gives it in larger pages.
    """
    columns, targets = layout.columns, () if layout.columns is None else layout.columns.y
    check_pieces(X, columns, start, rows)
    if columns is not None:
        y = [piece[list(targets)] for piece in X] if targets else y
        w = w if columns.w is None else [piece[columns.w] for piece in X]
        X = [piece[list(columns.features)] for piece in X]
    labels, weights = joined_vector(y, rows, "y"), joined_vector(w, rows, "w")
    weights = np.ones(rows) if weights is None else row_major(weights, np.float64)
    room = np.empty((rows, X[0].shape[1]), layout.dtype) if kept and columns is not None else None
    for first in range(0, rows, layout.block_rows):
        last = min(first + layout.block_rows, rows)
        values = [piece_values(piece, layout.dtype) for piece in take_from(X, first, last)]
        if room is not None:
            np.concatenate(values, out=room[first:last])
        elif len(values) > 1:
            values = [np.concatenate(values)]
        block = row_major(values[0] if room is None else room[first:last], layout.dtype)
        y_here = None if labels is None else labels[first:last]
        cut = Block(block, y_here, weights[first:last], start + first)
        check_block(cut, layout.terms, layout.names, targets)
        yield cut


# ------------------------------------------------------------------------------------------------ on the client
class CountedPieces(NamedTuple):
    """The partitions of a collection."""

    pieces: list[Any]
    lengths: list[int]
    owners: list[str]  # the worker that has each of them, where rows were counted
    passes: int  # to count them


def dask_rows(
    X: Any, y: Any, sample_weight: Any, estimator: BaseEstimator, terms: TableTerms, reset: bool
) -> DaskRows:
    """Return rows of a Dask array or frame; partitions of unknown length are counted first."""
    if isinstance(X, Delayed) or getattr(X, "ndim", 0) != 2:
        shape = f" of shape {X.shape}" if isinstance(getattr(X, "shape", None), tuple) else ""
        raise DataError(
            got=f"a Dask {type(X).__name__}{shape} as X", wanted="a Dask array or frame of rows and columns (2-D)"
        )
    if hasattr(X, "columns"):
        X, y, sample_weight = _as_columns(X, y, sample_weight)
        columns, counted, dtype = _open_frame(X, y, sample_weight, estimator, terms, reset)
        names = np.array(columns.features, dtype=object)
        n_features = len(names)
    else:
        refuse_names(X, y, sample_weight, terms)
        columns, names = None, None
        counted, dtype, n_features = _open_array(X)
        note_features(estimator, n_features, None, reset)
    pieces, lengths, owners, passes = counted
    n_rows = sum(lengths)
    if n_rows == 0:
        raise DataError(got="a Dask collection without rows", wanted="at least one row")
    if terms.target == "none" or named_targets(y, terms.targets):
        # There is no target, or it is a column of X.
        y = None
    elif not _is_lazy(y):
        y = check_target(y, n_rows, terms)
    if isinstance(sample_weight, str) or _is_lazy(sample_weight):
        named = isinstance(sample_weight, str)
        dtype_of_weights = X[sample_weight].dtype if named else sample_weight.dtype
        if not is_numeric_dtype(dtype_of_weights):
            refuse_weights(str(sample_weight), dtype_of_weights)
        lazy = pieces if named else _split(sample_weight, lengths, "sample_weight")
        if not any(compute_tasks(*(delayed(_has_weight)(part, sample_weight if named else None) for part in lazy))):
            refuse_zero_weights()
    else:
        sample_weight = check_weights(sample_weight, n_rows)
    ys, ws = _split(y, lengths, "y", terms.targets), _split(sample_weight, lengths, "sample_weight")
    starts = np.cumsum([0, *lengths])[:-1].tolist()
    parts = [
        DaskPartition([piece], None if y is None else [y], None if w is None else [w], start, rows)
        for piece, y, w, start, rows in zip(pieces, ys, ws, starts, lengths, strict=True)
        if rows
    ]
    layout = PartitionLayout(columns, names, dtype, terms, block_rows(n_features), passes_before=passes)
    owners = [owner for owner, rows in zip(owners, lengths, strict=True) if rows]
    return DaskRows(parts, layout, n_features, owners)


def _as_columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Make lazy targets and weights columns of X, and name them.

    Dask plans each collection by itself, and may merge files where few columns are read: X and y of one frame would
    then be cut in different places. As columns of one frame they are planned together.
    """
    for role, values in (("y", y), ("sample_weight", sample_weight)):
        if not _is_lazy(values) or values.ndim != 1 or not hasattr(values, "to_frame"):
            continue
        name = f"{role} of this fit"
        if values.npartitions != X.npartitions:
            refuse_partitions(role, values.npartitions, X.npartitions)
        meta = X._meta.assign(**{name: values._meta.array})
        X = X.map_partitions(_add_column, values, name, role, meta=meta, align_dataframes=False)
        y, sample_weight = (name, sample_weight) if role == "y" else (y, name)
    return X, y, sample_weight


def _add_column(frame: Any, values: Any, name: str, role: str) -> Any:
    """Add targets or weights to a partition, row by row in their order: the index says nothing."""
    if len(values) != len(frame):
        refuse_length(role, len(values), len(frame))
    return frame.assign(**{name: values.array})


def _open_frame(
    X: Any, y: Any, sample_weight: Any, estimator: BaseEstimator, terms: TableTerms, reset: bool
) -> tuple[ColumnRoles, CountedPieces, np.dtype[Any]]:
    odd = [name for name in X.columns if not isinstance(name, str)]
    if odd:
        raise DataError(
            got=f"column names that are not text: {list_names(odd)}", wanted="text", fix="Use X.rename(columns=str)."
        )
    columns = choose_columns(list(X.columns), y, sample_weight, estimator, terms, reset)
    dtype = _number_type(dict(X[list(columns.features)].dtypes), terms.missing)
    # Counted in the very partitions that are summed later: a plan for one column alone may cut the rows elsewhere.
    return columns, _count_rows(X[columns.all].to_delayed()), dtype


def _open_array(X: Any) -> tuple[CountedPieces, np.dtype[Any], int]:
    if np.isnan(X.shape[1]):
        raise DataError(got=f"a Dask array of shape {X.shape}", wanted="rows and a known number of columns (2-D)")
    dtype = _number_type({"X": X.dtype}, missing=False)
    pieces = X.rechunk({1: -1}).to_delayed().ravel().tolist()
    unknown = np.isnan(X.shape[0])
    known = CountedPieces(pieces, [] if unknown else [int(rows) for rows in X.chunks[0]], [""] * len(pieces), 0)
    return _count_rows(pieces) if unknown else known, dtype, X.shape[1]


def _number_type(dtypes: Mapping[str, Any], missing: bool) -> np.dtype[Any]:
    refuse_columns({name: kind for name, kind in dtypes.items() if not is_number(kind)}, missing)
    return np.dtype(np.float32 if all(kind == np.float32 for kind in dtypes.values()) else np.float64)


def _count_rows(pieces: list[Any]) -> CountedPieces:
    # One task each, where the piece is: a task for several would bring them together.
    found = compute_tasks(*(delayed(_length_and_place)(piece) for piece in pieces))
    return CountedPieces(pieces, [rows for rows, _ in found], [place for _, place in found], 1)


def _length_and_place(piece: Any) -> tuple[int, str]:
    """The rows of a partition, and the worker that has it."""
    return len(piece), worker_address()


def _has_weight(part: Any, column: str | None) -> bool:
    """Say whether a partition has a positive weight; `column` is where a frame has them."""
    return bool((np.asarray(part if column is None else part[column]) > 0).any())


def _is_lazy(values: Any) -> bool:
    return hasattr(values, "__dask_graph__")


def _split(values: Any, lengths: list[int], role: str, columns: int = 1) -> list[Any]:
    """Split targets or weights by partition; None for each where there are none or they are a column of X."""
    if values is None or isinstance(values, str):
        return [None] * len(lengths)
    if not _is_lazy(values):
        return np.split(values, np.cumsum(lengths)[:-1])
    if columns > 1:
        check_width(values.shape, columns)
    elif values.ndim != 1:
        raise DataError(got=f"{role} with {values.ndim} dimensions", wanted="one value per row (1-D)")
    if hasattr(values, "chunks"):
        chunks: dict[int, Any] = dict.fromkeys(range(1, values.ndim), -1)
        # A length that Dask does not know is NaN, which equals nothing.
        if values.shape[0] == sum(lengths):
            chunks[0] = tuple(lengths)
        values = values.rechunk(chunks)
    pieces = list(np.ravel(values.to_delayed()))
    if len(pieces) != len(lengths):
        refuse_partitions(role, len(pieces), len(lengths))
    return pieces
