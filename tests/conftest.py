"""What all tests share: reproducible random examples; threads and the size of blocks, put back."""

from contextlib import ExitStack

import pytest
from hypothesis import settings

from certifit.rows import set_threads
from certifit.rows.block import BlockTuning, block_tuning

settings.register_profile("certifit", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("certifit")


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
