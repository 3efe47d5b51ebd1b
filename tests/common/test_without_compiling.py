"""Compiled loops are plain Python too: `make test` runs all tests marked `compiled` a second time, without Numba."""

import os

import pytest

from certifit.losses.softmax_loops import binary_rows


@pytest.mark.compiled
def test_loops_are_compiled_unless_that_is_switched_off():
    assert hasattr(binary_rows, "py_func") == (os.environ.get("NUMBA_DISABLE_JIT") != "1")
