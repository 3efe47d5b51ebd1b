"""How loops over rows are compiled: quickly, because a first fit waits for it."""

from __future__ import annotations

from typing import Any

from numba import njit

# Numba's typed interface does not list all options. What only compiled code calls needs no way in from Python.
_compile: Any = njit
_options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
called_from_python = _compile(**_options)
called_by_loops = _compile(**_options, no_cpython_wrapper=True)
