"""Threads that work on blocks, with BLAS held to one thread, and a sum that does not depend on their number.

Each thread takes the next block, measures it, and adds the result to that of the neighbouring block in the tree of
`tree_sum`, if that is there already. The tree is fixed, so the bits are the same for any number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401  (loads SciPy's BLAS, so that the controller below sees it)
from threadpoolctl import LibController, ThreadpoolController

from certifit.exceptions import DataError
from certifit.rows.sums import S

T = TypeVar("T")
R = TypeVar("R")

_chosen_threads: int | None = None


def thread_count() -> int:
    """Return how many threads work on blocks: by `set_threads`, else CERTIFIT_NUM_THREADS, else one per core."""
    if _chosen_threads is not None:
        return _chosen_threads
    asked = os.environ.get("CERTIFIT_NUM_THREADS")
    if asked is not None:
        if not asked.isdigit() or int(asked) < 1:
            raise DataError(got=f"CERTIFIT_NUM_THREADS={asked!r}", wanted="a whole number of at least 1")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Use `n` threads from now on (None: one per core). No result depends on it.

    Parameters
    ----------
    n : whole number of at least 1, or None

    Examples
    --------
    >>> set_threads(1)
    >>> set_threads(None)
    """
    global _chosen_threads
    if n is not None and n < 1:
        raise DataError(got=f"{n} threads", wanted="at least 1, or None to use every core")
    _chosen_threads = n


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_lock = threading.Lock()
_inside = threading.local()  # `yes` where this thread holds BLAS already: asking again would only take time
_holders: set[object] = set()
# BLAS libraries that are held to one thread, and their numbers of threads before.
_held: list[tuple[LibController, int]] = []


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread inside this context, because blocks already run in parallel.

    Several threads may be inside at once (Dask workers, nested sums): the first sets the limit, the last lifts it.
    Where an interrupt arrives in between, the next thread that leaves restores the numbers.
    """
    global _held
    if getattr(_inside, "yes", False):
        yield
        return
    me = object()
    try:
        with _lock:
            _holders.add(me)
            if not _held:
                _held = [(lib, lib.num_threads) for lib in _controller().lib_controllers if lib.user_api == "blas"]
            for lib, threads in _held:
                if threads > 1:
                    lib.set_num_threads(1)
        _inside.yes = True
        yield
    finally:
        _inside.yes = False
        with _lock:
            _holders.discard(me)
            if not _holders:
                for lib, threads in _held:
                    if threads > 1:
                        lib.set_num_threads(threads)
                _held = []


def parallel_sum(f: Callable[[T], S], blocks: Iterable[T]) -> S:
    """Return `tree_sum(map(f, blocks))`, computed on threads, with the same bits."""
    if _is_one_block(blocks):
        with single_threaded_blas():
            return f(next(iter(blocks)))
    nodes: dict[tuple[int, int], S] = {}  # (rank, index) -> sum over the aligned run of 2^rank blocks
    lock = threading.Lock()

    def work(i: int, block: T) -> None:
        rank, total = 0, f(block)
        while True:
            with lock:
                sibling = nodes.pop((rank, i ^ 1), None)
                if sibling is None:
                    nodes[rank, i] = total
                    return
            total = total + sibling if i % 2 == 0 else sibling + total
            rank, i = rank + 1, i // 2

    _for_each(work, blocks)
    if not nodes:
        raise DataError(got="a table with no rows", wanted="at least one row")
    right_to_left = [nodes[key] for key in sorted(nodes)]
    total = right_to_left[0]
    for left in right_to_left[1:]:
        total = left + total
    return total


def parallel_map(f: Callable[[T], R], blocks: Iterable[T]) -> list[R]:
    """Return `list(map(f, blocks))`, computed on threads."""
    if _is_one_block(blocks):
        with single_threaded_blas():
            return [f(next(iter(blocks)))]
    results: dict[int, R] = {}

    def work(i: int, block: T) -> None:
        results[i] = f(block)

    _for_each(work, blocks)
    return [results[i] for i in range(len(results))]


def _is_one_block(blocks: Any) -> bool:
    """Say whether there is one block only, for this thread alone: keeping an account of it would take longer.

    Rows in memory and lists know their number; a file would have to be read for it.
    """
    return len(blocks) == 1 if isinstance(blocks, (list, range)) else getattr(blocks, "n_blocks", 0) == 1


def _for_each(work: Callable[[int, T], None], blocks: Iterable[T]) -> None:
    """Call `work(i, block)` for every block, on `thread_count()` threads including this one.

    After the first error or interrupt every thread finishes its block and stops, and a generator of blocks is closed.
    A single block is worked on by this thread alone.
    """
    iterator = iter(blocks)
    source: Iterator[tuple[int, T]] = enumerate(iterator)
    lock = threading.Lock()
    errors: list[BaseException] = []
    said = np.geterr()  # what the caller wants said of overflow and the like; NumPy's new threads do not know

    def run() -> None:
        try:
            with np.errstate(**said):
                while not errors:
                    with lock:
                        item = next(source, None)
                    if item is None:
                        return
                    work(*item)
        except BaseException as error:
            errors.append(error)

    helpers: list[threading.Thread] = []
    with single_threaded_blas():
        try:
            first = list(islice(source, 2))
            source = chain(first, source)
            if len(first) > 1:
                helpers = [threading.Thread(target=run, daemon=True) for _ in range(thread_count() - 1)]
            for thread in helpers:
                thread.start()
            run()
            for thread in helpers:
                thread.join()
        # An interrupt that arrives while threads are joined.
        except BaseException as interrupt:
            errors.append(interrupt)
        for thread in helpers:
            if thread.ident is not None:  # an interrupt may have come before it was started
                thread.join()
    if isinstance(iterator, Generator):
        iterator.close()
    if errors:
        raise errors[0]
