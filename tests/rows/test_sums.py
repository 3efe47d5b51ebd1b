"""Sums are associative statistics; the order of addition, and so the bits, depends on the number of parts only."""

import _thread
import math
import signal
import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certifit.exceptions import DataError
from certifit.rows import Sums, set_threads, thread_count, tree_sum
from certifit.rows.sums import Subtree, subtrees, whole_sum
from certifit.rows.threads import parallel_map, parallel_sum, single_threaded_blas

THREADS = [1, 2, 3, 5]


@dataclass(frozen=True)
class Moments(Sums):
    count: float
    total: np.ndarray
    scatter: np.ndarray


@pytest.fixture
def _threads():
    yield
    set_threads(None)


def nested(n):
    """Parts that write down how they were added."""
    return [Trace(str(i)) for i in range(n)]


@dataclass(frozen=True)
class Trace:
    text: str

    def __add__(self, other):
        return Trace(f"({self.text}+{other.text})")


@pytest.mark.parametrize(
    ("n", "tree"),
    [(1, "0"), (2, "(0+1)"), (3, "((0+1)+2)"), (4, "((0+1)+(2+3))"), (7, "(((0+1)+(2+3))+((4+5)+6))")],
)
def test_tree_is_pairwise(n, tree):
    assert tree_sum(nested(n)).text == tree


def test_sums_add_field_by_field():
    a, b = Moments(1.0, np.array([1.0, 2.0]), np.eye(2)), Moments(2.0, np.array([0.5, 0.5]), np.ones((2, 2)))
    c = a + b
    assert type(c) is Moments
    assert c.count == 3.0
    np.testing.assert_array_equal(c.total, [1.5, 2.5])
    np.testing.assert_array_equal(c.scatter, [[2, 1], [1, 2]])
    np.testing.assert_array_equal(a.scatter, np.eye(2))  # unchanged


@given(st.lists(st.fractions(max_denominator=1000), min_size=1, max_size=40), st.data())
def test_sums_are_associative(values, data):
    """In exact arithmetic, any split of the parts into runs gives the same total."""

    @dataclass(frozen=True)
    class Pair(Sums):
        one: Fraction
        square: Fraction

    parts = [Pair(v, v * v) for v in values]
    cut = data.draw(st.integers(0, len(parts)))
    runs = [run for run in (parts[:cut], parts[cut:]) if run]
    assert tree_sum([tree_sum(run) for run in runs]) == tree_sum(parts)
    assert tree_sum(parts) == Pair(sum(values), sum(v * v for v in values))


@given(st.integers(1, 70), st.integers(0, 4))
def test_aligned_runs_are_subtrees(n, k):
    """Summing runs of 2^k parts first, then the runs, adds in the same order (the last run may be short)."""
    parts = nested(n)
    runs = [parts[i : i + 2**k] for i in range(0, n, 2**k)]
    assert tree_sum(tree_sum(run) for run in runs) == tree_sum(parts)


@given(st.integers(1, 70), st.randoms())
def test_runs_with_gaps_are_added_in_the_same_order(n, random):
    """Three heaps of parts, dealt at random and summed apart, join to the sum of all."""
    nodes = [Subtree(0, number, part) for number, part in enumerate(nested(n))]
    owners = [random.randrange(3) for _ in nodes]
    heaps = [subtrees(node for node, owner in zip(nodes, owners, strict=True) if owner == k) for k in range(3)]
    joined = subtrees(sorted(chain.from_iterable(heaps), key=lambda node: node.first))
    assert whole_sum(joined) == tree_sum(nested(n))


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("threads", THREADS)
def test_threads_add_in_the_same_order(threads):
    set_threads(threads)
    for n in range(1, 71):
        assert parallel_sum(lambda part: part, nested(n)) == tree_sum(nested(n))


@pytest.mark.usefixtures("_threads")
def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    blocks = rng.standard_normal((37, 50, 4)) * 10.0 ** rng.integers(-8, 8, (37, 1, 1))

    def f(X):
        return Moments(len(X), X.sum(axis=0), X.T @ X)

    expected = tree_sum(map(f, blocks))
    for threads in THREADS:
        set_threads(threads)
        found = parallel_sum(f, iter(blocks))
        assert found.scatter.tobytes() == expected.scatter.tobytes()
        assert found.total.tobytes() == expected.total.tobytes()


def test_pairwise_sum_rounds_less_than_running_sum():
    """Error of a pairwise sum grows with log n (Higham 1993), against n for a running sum."""
    parts = [0.1] * 4096
    exact = math.fsum(parts)
    running = 0.0
    for part in parts:
        running += part
    assert abs(tree_sum(parts) - exact) < abs(running - exact) / 10


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("threads", THREADS)
def test_map_keeps_order(threads):
    set_threads(threads)
    assert parallel_map(lambda i: i * i, range(50)) == [i * i for i in range(50)]


def test_no_parts():
    with pytest.raises(ValueError, match="no parts"):
        tree_sum([])
    with pytest.raises(DataError, match="no rows"):
        parallel_sum(lambda part: part, [])


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("threads", THREADS)
def test_an_error_in_a_block_surfaces_and_stops(threads):
    set_threads(threads)
    seen, closed = [], []

    def blocks():
        try:
            for i in range(10_000):
                time.sleep(1e-5)
                yield i
        finally:
            closed.append(True)

    def f(i):
        seen.append(i)
        if i == 20:
            raise ZeroDivisionError("block 20")
        return 1.0

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match="block 20"):
        parallel_sum(f, blocks())
    assert len(seen) < 1000
    assert closed == [True]
    assert threading.active_count() == before


@pytest.mark.usefixtures("_threads")
def test_an_error_while_reading_surfaces():
    set_threads(3)

    def blocks():
        yield 1.0
        raise OSError("disk on fire")

    with pytest.raises(OSError, match="disk on fire"):
        parallel_sum(lambda part: part, blocks())


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("threads", [1, 3])
def test_interrupt_stops_the_sum(threads):
    """Ctrl-C arrives in the main thread while workers are busy; no thread goes on afterwards."""
    set_threads(threads)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell may have had it ignored
    seen = []

    def f(i):
        seen.append(i)
        if len(seen) == 5:
            _thread.interrupt_main()
        time.sleep(0.01)
        return 1.0

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        parallel_sum(f, iter(range(3000)))
    signal.signal(signal.SIGINT, handler)
    assert len(seen) < 300
    assert threading.active_count() == before


@pytest.mark.usefixtures("_threads")
def test_thread_count(monkeypatch):
    monkeypatch.setenv("CERTIFIT_NUM_THREADS", "3")
    assert thread_count() == 3
    set_threads(2)
    assert thread_count() == 2
    set_threads(None)
    monkeypatch.setenv("CERTIFIT_NUM_THREADS", "many")
    with pytest.raises(DataError, match="Got CERTIFIT_NUM_THREADS='many'; wanted a whole number of at least 1"):
        thread_count()
    with pytest.raises(DataError, match="Got 0 threads; wanted at least 1"):
        set_threads(0)


@pytest.mark.usefixtures("blas_threads")
def test_blas_is_held_to_one_thread_while_anyone_is_inside():
    from threadpoolctl import threadpool_info

    def most():
        return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    before = most()
    assert before > 1
    with single_threaded_blas():
        with single_threaded_blas():
            assert most() == 1
        assert most() == 1
    assert most() == before


def test_an_interrupt_while_blas_is_being_held_leaves_it_as_it_was(monkeypatch):
    class Library:
        user_api, num_threads, interrupted = "blas", 7, False

        def set_num_threads(self, n):
            self.num_threads = n
            if not self.interrupted:
                self.interrupted = True
                raise KeyboardInterrupt

    library = Library()
    monkeypatch.setattr("certifit.rows.threads._controller", lambda: SimpleNamespace(lib_controllers=[library]))
    with pytest.raises(KeyboardInterrupt), single_threaded_blas():
        pass
    assert library.num_threads == 7
    with single_threaded_blas():
        assert library.num_threads == 1
    assert library.num_threads == 7


def test_threads_say_of_overflow_what_their_caller_does():
    """NumPy's error state belongs to a thread; a new one begins with warnings, which are errors in these tests."""
    set_threads(4)
    try:
        with np.errstate(over="ignore"):
            total = parallel_sum(_overflowing, range(64))
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            parallel_sum(_overflowing, range(64))
    finally:
        set_threads(None)
    assert np.isinf(total)


def _overflowing(_: int) -> np.ndarray:
    time.sleep(1e-3)  # so that every thread takes some
    return np.array([1e300]) * 1e300
