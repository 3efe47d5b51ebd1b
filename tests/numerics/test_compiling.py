"""When small tables are done without a compiled loop: while it is not compiled, here or on disk, and not for long."""

import errno
import gc
import itertools
import os
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.caching import FunctionCache

from certifit.numerics.compiled.compiling import (
    CompiledLoop,
    PausedCollection,
    PlainFirst,
    PlainTuning,
    called_from_python,
    compiled_at_once,
)
from certifit.numerics.compiled.random_bits import random_bits, random_bits_of_pairs

ADD_SQUARES = """
def add_squares(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total
"""


@pytest.fixture
def loop(tmp_path):
    """A function that gives the loop above, not compiled, from a file of this test alone."""
    path = tmp_path / "squares.py"
    path.write_text(ADD_SQUARES)
    spec = spec_from_file_location("squares", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda: called_from_python(module.add_squares)


def test_only_small_tables_and_not_for_long(loop, monkeypatch):
    clock = itertools.count(step=0.02)
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    first = PlainFirst(loop(), PlainTuning(most_entries=10, seconds=0.01))
    assert first.suffices(10)
    assert not first.suffices(11)
    with compiled_at_once():
        assert not first.suffices(10)
    with first.timed():
        pass
    assert first.spent == 0.02
    assert not first.suffices(10)


def test_a_loop_that_is_compiled_here_or_on_disk_is_used(loop):
    one = loop()
    assert PlainFirst(one).suffices(10)
    assert one(np.arange(3.0)) == 5.0
    assert not PlainFirst(one).suffices(10)
    assert not PlainFirst(loop()).suffices(10)  # another process finds it on disk


def load(path):
    """The module of a file, as a new process finds it."""
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def test_a_loop_is_compiled_anew_where_one_that_it_calls_has_changed(tmp_path, monkeypatch):
    """Numba looks at a loop's own file alone, and what another file says may be written into it."""
    for name in ("inner_of_two", "outer_of_two"):
        monkeypatch.setitem(sys.modules, name, None)
    inner, outer = tmp_path / "inner_of_two.py", tmp_path / "outer_of_two.py"
    words = "from certifit.numerics.compiled.compiling import called_by_loops, called_from_python\n"
    outer.write_text(
        f"{words}from inner_of_two import one\n@called_from_python\ndef two(x):\n    return 2.0 * one(x)\n"
    )

    def answer(factor, at):
        inner.write_text(f"{words}@called_by_loops\ndef one(x):\n    return {factor} * x\n")
        os.utime(inner, (at, at))
        os.utime(outer, (1e9, 1e9))
        load(inner)
        return load(outer).two(1.0)

    now = time.time()
    assert answer(1.0, 1e9) == 2.0
    for index in (tmp_path / "__pycache__").glob("*.nbi"):
        os.utime(index, (now - 60, now - 60))
    assert answer(3.0, now - 30) == 6.0


def test_what_was_compiled_of_types_that_are_gone_is_forgotten(loop, monkeypatch):
    """Numba reads all that it knows of a loop, before it looks at whether the file has changed."""
    assert loop()(np.arange(3.0)) == 5.0
    load_overload = FunctionCache.load_overload

    def gone(cache, *arguments):
        if again.is_on_disk():
            raise AttributeError("Can't get attribute 'Room' on <module 'squares'>")
        return load_overload(cache, *arguments)

    again = loop()
    monkeypatch.setattr(FunctionCache, "load_overload", gone)
    assert again(np.arange(3.0)) == 5.0
    assert again.is_on_disk()


@pytest.mark.compiled
def test_random_bits_of_arrays_are_those_of_loops():
    a, b = np.array([0, 1, -5, 2**62]), np.array([3, -1, 0, 7])
    draw = called_from_python(lambda x, y: random_bits(x, y))
    with np.errstate(over="ignore"):  # as in compiled code
        expected = [draw(np.int64(x), np.int64(y)) for x, y in zip(a, b, strict=True)]
    assert random_bits_of_pairs(a, b).tolist() == [int(bits) for bits in expected]


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_not_collected_while_loops_are_compiled(was_on):
    paused, (start, end) = PausedCollection(), (SimpleNamespace(is_start=s) for s in (True, False))
    before = gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        states = []
        for event in (start, start, end, end):  # a loop, and one that it calls
            paused.notify(event)
            states.append(gc.isenabled())
        assert states == [False, False, False, was_on]
    finally:
        (gc.enable if before else gc.disable)()


def test_where_nothing_can_be_kept_loops_are_compiled_for_this_process(loop, monkeypatch):
    """Numba finds no folder in a read-only installation with a read-only home, and no room on a full disk."""

    def no_locator(*_):
        raise RuntimeError("cannot cache function 'add_squares': no locator available for file")

    monkeypatch.setattr(CompiledLoop, "_is_kept", True)
    with monkeypatch.context() as patched:
        patched.setattr(FunctionCache, "__init__", no_locator)
        assert loop()(np.arange(3.0)) == 5.0
    assert not CompiledLoop._is_kept


def test_a_full_disk_does_not_stop_a_loop(loop, monkeypatch):
    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(CompiledLoop, "_is_kept", True)
    with monkeypatch.context() as patched:
        patched.setattr(FunctionCache, "save_overload", no_room)
        add_squares = loop()
        assert add_squares(np.arange(3.0)) == 5.0
        assert add_squares(np.arange(3)) == 5.0  # other types, compiled anew
    assert not CompiledLoop._is_kept
