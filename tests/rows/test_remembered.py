"""What a process remembers of rows goes with them, and only from one pass to the next."""

import gc

import numpy as np

from certifit.rows import Block
from certifit.rows.sources.workers import remembered
from certifit.rows.sources.workers.remembered import PassMark, keep_memory, remember_targets, take_memory


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


def test_targets_are_worked_out_once_for_a_name():
    block, asked = Block(np.ones((3, 2)), np.arange(3.0), np.ones(3), 0), []

    def doubled(block):
        asked.append(block.start)
        return block._replace(y=2 * block.y)

    for name, times in (("one", 1), ("one", 1), ("two", 2), ("one", 3)):
        assert remember_targets(block, name, doubled).y.tolist() == [0.0, 2.0, 4.0]
        assert len(asked) == times
    assert remember_targets(block, "one", doubled).X is block.X
    before = len(remembered._targets)
    del block
    gc.collect()
    assert len(remembered._targets) == before - 1
