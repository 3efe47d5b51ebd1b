"""What all tests share: reproducible random examples; threads, the size of blocks and pictures, put back."""

import itertools
import os
import sys
import time
from contextlib import ExitStack, nullcontext

# Tables are small and tests run on all cores: threads of BLAS and OpenMP would only wait for each other, busily. This
# must come before NumPy is loaded. Tests about threads let BLAS have its own again, see `threads` and `blas_threads`.
for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from certifit.numerics.compiled.compiling import compiled_at_once  # noqa: E402
from certifit.rows import set_threads  # noqa: E402
from certifit.rows.block import BlockTuning, block_tuning  # noqa: E402

settings.register_profile("certifit", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("certifit")


# Pictures need no display.
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def random_state_none_is_the_same_in_every_run():
    """`random_state=None` draws from NumPy's global generator, as in scikit-learn."""
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close the figures of a test, if it made any; pyplot is not imported for this."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def loops_are_compiled_where_a_test_is_about_them(request):
    """Small tables are otherwise done by the loops' twins, while the loops are not compiled."""
    with compiled_at_once() if request.node.get_closest_marker("compiled") else nullcontext():
        yield


@pytest.fixture
def blas_threads():
    """Let BLAS have two threads until the test ends."""
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture
def threads():
    """`set_threads`, undone after the test; BLAS has threads of its own."""
    with threadpool_limits(2, user_api="blas"):
        yield set_threads
    set_threads(None)


@pytest.fixture
def ticking(monkeypatch):
    """A millisecond goes by whenever anybody looks at the clock: what a time budget allows is the same everywhere."""
    clock = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) / 1000)


@pytest.fixture
def blocks_of():
    """`blocks_of(n)`: blocks of n rows, whatever holds them, until the test ends."""
    with ExitStack() as stack:
        yield lambda n: stack.enter_context(block_tuning(BlockTuning(fixed_rows=n)))
