"""Loops that only loops call are handed to their callers without machine code of their own."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.numerics.compiled import inner_loops
from certifit.numerics.compiled.compiling import CompiledLoop, called_by_loops, called_from_python


@called_by_loops
def _twice(x):
    return 2 * x


@called_by_loops
def _twice_and_one(x):
    return _twice(x) + 1


@called_from_python
def _sum_of_odd(n):
    total = 0
    for i in range(n):
        total += _twice_and_one(i)
    return total


def test_numba_has_what_the_compiler_of_inner_loops_needs():
    assert inner_loops.inner_compiler() is not None


@pytest.mark.compiled
def test_a_loop_two_calls_down_gives_what_python_gives():
    assert _sum_of_odd(np.int64(1000)) == 1000**2


@pytest.mark.compiled
def test_only_the_loop_that_python_calls_has_machine_code():
    if not isinstance(_sum_of_odd, CompiledLoop):  # Numba is switched off
        return
    _sum_of_odd(np.int64(3))
    for loop, has_code in ((_sum_of_odd, True), (_twice_and_one, False), (_twice, False)):
        for compiled in loop.dispatcher.overloads.values():
            assert (type(compiled.library).__name__ != "InnerLibrary") is has_code


def test_another_numba_compiles_as_it_always_does(monkeypatch):
    from numba.core.codegen import CPUCodeLibrary

    monkeypatch.delattr(CPUCodeLibrary, "_finalize_dynamic_globals")
    assert inner_loops.inner_compiler() is None
