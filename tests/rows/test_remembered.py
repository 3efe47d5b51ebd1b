"""What a process remembers of rows goes with them, and only from one pass to the next."""

import gc

import numpy as np

from certifit.rows import remembered
from certifit.rows.remembered import PassMark, keep_memory, take_memory


def test_memory_is_of_the_pass_before():
    rows, first = np.ones((3, 2)), PassMark("one", 1)
    keep_memory(rows, first, "labels")
    assert take_memory(np.ones((3, 2)), first._replace(number=2)) is None
    assert take_memory(rows, first._replace(number=2)) == "labels"
    assert take_memory(rows, first._replace(number=2)) is None
    for mark in (first, PassMark("one", 3), PassMark("two", 2)):
        keep_memory(rows, first, "labels")
        assert take_memory(rows, mark) is None


def test_memory_goes_with_the_rows():
    before = len(remembered._memories)
    rows = np.ones((3, 2))
    keep_memory(rows, PassMark("one", 1), "labels")
    keep_memory(rows, PassMark("one", 2), "others")
    assert len(remembered._memories) == before + 1
    del rows
    gc.collect()
    assert len(remembered._memories) == before
