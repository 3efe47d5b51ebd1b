"""What all tests share: reproducible random examples; threads and the size of blocks, put back."""

import pytest
from hypothesis import settings

from certifit.core import dask_rows, file_rows, mapped_rows, rows, set_threads

settings.register_profile("certifit", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("certifit")


@pytest.fixture
def threads():
    """`set_threads`, undone after the test."""
    yield set_threads
    set_threads(None)


@pytest.fixture
def blocks_of(monkeypatch):
    """`blocks_of(n)`: blocks of n rows, whatever holds them. (A module first imported while another is patched would
    keep the patch, hence the imports above.)"""

    def choose(n):
        for module in (rows, file_rows, dask_rows, mapped_rows):
            monkeypatch.setattr(module, "block_rows", lambda _: n)

    return choose
