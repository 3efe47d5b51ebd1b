"""Small blocks for every test here, and the table as rows in memory."""

import pytest

from certifit.rows import ArrayRows, set_threads
from tests.rows.sources.one_table import BLOCK, COUNT, KIND, X


@pytest.fixture(autouse=True)
def _small_blocks(blocks_of):
    blocks_of(BLOCK)


@pytest.fixture(autouse=True)
def _threads():
    yield
    set_threads(None)


@pytest.fixture
def in_memory(_small_blocks):
    return ArrayRows(X, KIND, COUNT)
