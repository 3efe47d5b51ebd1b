"""How loops over rows are compiled: quickly, because a first fit waits for it, and of small tables not at once.

A loop that is decorated with `interpreted_at_first` is also plain Python. While it is not compiled for arguments of
these types, small tables are run through its plain twin, so that nobody waits for a compiler; when that has taken as
long as compiling would, or a table is large, it is compiled. Both give the same bits: such a loop adds, multiplies,
divides and compares in an order of its own, and takes logarithms from `math`, as Numba does.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numba.extending import is_jitted

# Numba's typed interface does not list all options. What only compiled code calls needs no way in from Python.
_compile: Any = njit
_options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
called_from_python = _compile(**_options)
called_by_loops = _compile(**_options, no_cpython_wrapper=True)


@dataclass(frozen=True)
class InterpreterTuning:
    """Up to where a loop that is not compiled is interpreted instead."""

    most_entries: int = 10_000  # of the largest array among its arguments
    seconds: float = 6.0  # of processor time in all calls of one loop: about as long as compiling a forest takes


class InterpretedFirst:
    """A compiled loop whose plain twin stands in for it while it is not compiled, for small tables."""

    at_once = False  # compile whatever is called: for all loops, while `compiled_at_once` says so

    def __init__(self, loop: Any, tuning: InterpreterTuning = InterpreterTuning()) -> None:
        functools.update_wrapper(self, loop.py_func)
        self.compiled, self.tuning = loop, tuning
        self.compiled_types: set[tuple[Any, ...]] = set()
        self.spent = 0.0  # seconds

    @property
    def signatures(self) -> Any:
        """The types that the loop is compiled for, as Numba lists them."""
        return self.compiled.signatures

    @property
    def targetoptions(self) -> dict[str, Any]:
        return self.compiled.targetoptions

    def __reduce__(self) -> str:
        # A pickle names the loop in its module, as that of any function does.
        return str(self.compiled.py_func.__qualname__)

    def __call__(self, *args: Any) -> Any:
        types = tuple([a.dtype.char if type(a) is np.ndarray else type(a).__name__ for a in args])
        if types in self.compiled_types:
            return self.compiled(*args)
        if not self.at_once and self.spent < self.tuning.seconds and self._small(args) and not self._kept(types):
            return self._interpreted(args)
        found = self.compiled(*args)
        self.compiled_types.add(types)
        self._note(types)
        return found

    def _interpreted(self, args: tuple[Any, ...]) -> Any:
        start = time.thread_time()
        with np.errstate(all="ignore"):  # whole numbers that wrap around, as in compiled code
            found = interpreted(self.compiled)(*args)
        self.spent += time.thread_time() - start
        return found

    def _small(self, args: tuple[Any, ...]) -> bool:
        return all(array.size <= self.tuning.most_entries for array in _arrays(args))

    # Whether Numba keeps the compiled loop on disk is noted beside it, in a file without contents.

    def _mark(self, types: tuple[Any, ...]) -> Path:
        code = self.compiled.py_func.__code__
        what = (code.co_filename, Path(code.co_filename).stat().st_mtime_ns, code.co_firstlineno, types)
        name = f"{code.co_name}-{hashlib.sha256(repr(what).encode()).hexdigest()[:16]}.compiled"
        return Path(self.compiled.stats.cache_path) / name

    def _kept(self, types: tuple[Any, ...]) -> bool:
        try:
            return self._mark(types).exists()
        except OSError:
            return False

    def _note(self, types: tuple[Any, ...]) -> None:
        try:
            self._mark(types).touch()
        except OSError:  # where nothing can be written, Numba keeps nothing either
            return


def interpreted_at_first(function: Callable[..., Any]) -> Any:
    """Compile a loop that is called from Python, but not for the first small tables."""
    loop = called_from_python(function)
    return InterpretedFirst(loop) if is_jitted(loop) else loop  # it is not where Numba is switched off


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Let every loop be compiled when it is first called, small tables or not."""
    InterpretedFirst.at_once = True
    try:
        yield
    finally:
        InterpretedFirst.at_once = False


@functools.cache
def interpreted(loop: Any) -> Callable[..., Any]:
    """The plain Python function of a compiled loop, which calls the plain functions of the loops that it calls."""
    function = loop.py_func
    known = function.__globals__
    calls = {name: interpreted(known[name]) for name in function.__code__.co_names if is_jitted(known.get(name))}
    return FunctionType(function.__code__, {**known, **calls}, function.__name__, function.__defaults__)


def _arrays(value: Any) -> Iterator[Any]:
    """All arrays in nested tuples."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
