"""What a process remembers of rows goes with them, and only from one pass to the next."""

import gc

import numpy as np

from certifit.rows.sources.workers import remembered
from certifit.rows.sources.workers.remembered import PassMark, keep_memory, take_memory


def test_memory_is_of_one_pass():
    rows, first = np.ones((3, 2)), PassMark("one", 1)
    keep_memory(rows, first, "labels")
    assert take_memory(np.ones((3, 2)), first) is None
    assert take_memory(rows, first.after().before()) == "labels"
    assert take_memory(rows, first) is None
    for mark in (first.before(), first.after(), PassMark("two", 1)):
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
