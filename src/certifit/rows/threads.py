"""Threads over blocks: how many, BLAS held to one thread, and a tree sum that is the same for any number.

Each worker takes the next block, measures it, and merges finished neighbours upwards. Which thread merges is
chance; what is merged with what is not, so the bits do not depend on the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import scipy.linalg  # noqa: F401  (loads SciPy's BLAS, so that the controller below sees it)
from threadpoolctl import LibController, ThreadpoolController

from certifit.exceptions import DataError
from certifit.rows.sums import S

T = TypeVar("T")
R = TypeVar("R")

_chosen: int | None = None


def thread_count() -> int:
    """Number of threads that work on blocks: `set_threads`, else CERTIFIT_NUM_THREADS, else the cores we may use."""
    if _chosen is not None:
        return _chosen
    asked = os.environ.get("CERTIFIT_NUM_THREADS")
    if asked is not None:
        if not asked.isdigit() or int(asked) < 1:
            raise DataError(got=f"CERTIFIT_NUM_THREADS={asked!r}", wanted="a whole number of at least 1")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Use `n` threads from now on (None: decide from the machine). The answer does not depend on it."""
    global _chosen
    if n is not None and n < 1:
        raise DataError(got=f"{n} threads", wanted="at least 1, or None to use every core")
    _chosen = n


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_lock = threading.Lock()
_holders: set[object] = set()
_before: list[tuple[LibController, int]] = []  # the BLAS libraries while held, and what they go back to


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread while anyone is inside: the blocks are what runs in parallel.

    Entered by several threads at once (Dask workers, nested sums), the first sets the limit and the last lifts it;
    an interrupt that arrives half-way leaves nothing that the next to leave would not put right.
    """
    global _before
    me = object()
    try:
        with _lock:
            _holders.add(me)
            if not _before:
                _before = [(lib, lib.num_threads) for lib in _controller().lib_controllers if lib.user_api == "blas"]
            for lib, _ in _before:
                lib.set_num_threads(1)
        yield
    finally:
        with _lock:
            _holders.discard(me)
            if not _holders:
                for lib, threads in _before:
                    lib.set_num_threads(threads)
                _before = []


def parallel_sum(f: Callable[[T], S], blocks: Iterable[T]) -> S:
    """`tree_sum(map(f, blocks))` on threads, merges included; the bits are those of the serial sum."""
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
    """`list(map(f, blocks))` on threads."""
    results: dict[int, R] = {}

    def work(i: int, block: T) -> None:
        results[i] = f(block)

    _for_each(work, blocks)
    return [results[i] for i in range(len(results))]


def _for_each(work: Callable[[int, T], None], blocks: Iterable[T]) -> None:
    """Call `work(i, block)` for every block, on `thread_count()` threads of which the caller is one.

    The first error, an interrupt included, stops every thread after the block it is on; whatever blocks are
    read from is closed.
    """
    iterator = iter(blocks)
    source = enumerate(iterator)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while not errors:
                with lock:
                    item = next(source, None)
                if item is None:
                    return
                work(*item)
        except BaseException as error:
            errors.append(error)

    with single_threaded_blas():
        helpers = [threading.Thread(target=run, daemon=True) for _ in range(thread_count() - 1)]
        for thread in helpers:
            thread.start()
        try:
            run()
            for thread in helpers:
                thread.join()
        except BaseException as interrupt:  # arrived while joining
            errors.append(interrupt)
        for thread in helpers:
            thread.join()
    if isinstance(iterator, Generator):
        iterator.close()
    if errors:
        raise errors[0]
