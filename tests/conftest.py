"""What all tests share: reproducible random examples; threads, the size of blocks and pictures, put back."""

import os
import sys
from contextlib import ExitStack

import pytest
from hypothesis import settings

from certifit.rows import set_threads
from certifit.rows.block import BlockTuning, block_tuning

settings.register_profile("certifit", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("certifit")


# Pictures need no display.
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close the figures of a test, if it made any; pyplot is not imported for this."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def threads():
    """`set_threads`, undone after the test."""
    yield set_threads
    set_threads(None)


@pytest.fixture
def blocks_of():
    """`blocks_of(n)`: blocks of n rows, whatever holds them, until the test ends."""
    with ExitStack() as stack:
        yield lambda n: stack.enter_context(block_tuning(BlockTuning(fixed_rows=n)))
