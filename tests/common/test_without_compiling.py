"""Compiled loops are plain Python too: their tests pass with NUMBA_DISABLE_JIT=1, in a process of its own.

`make` runs all tests marked `compiled` in this way; here it is those of three files, so that a plain run of the tests
notices too.
"""

import os
import subprocess
import sys
from pathlib import Path

from certifit.losses.softmax_loops import binary_rows


def test_python_source_of_the_compiled_loops_passes_too():
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        assert not hasattr(binary_rows, "py_func")
        return
    assert hasattr(binary_rows, "py_func")
    files = ["linear_model/test_loops.py", "numerics/test_loops.py", "optimise/test_coordinate_descent.py"]
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(tests / name) for name in files)]
    done = subprocess.run(
        [*command, __file__], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
