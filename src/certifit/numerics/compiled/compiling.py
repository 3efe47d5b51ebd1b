"""How loops over rows are compiled: quickly, because a first fit waits for it, and of small tables not at once.

Some work on small tables can be done by operations on whole arrays too, with the same bits. That is what happens
while the compiled loop is not there yet, in this process or on disk, until it has taken as long as compiling would.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from numba import njit

# Numba's typed interface does not list all options. What only compiled code calls needs no way in from Python.
_compile: Any = njit
_options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
called_from_python = _compile(**_options)
called_by_loops = _compile(**_options, no_cpython_wrapper=True)


@dataclass(frozen=True)
class PlainTuning:
    """Up to where a loop that is not compiled is done without."""

    most_entries: int = 10_000  # of the table
    seconds: float = 3.0  # of processor time in one process: a fraction of what compiling takes


class PlainFirst:
    """Says whether small tables are to be done without a compiled loop, which would have to be compiled first."""

    at_once: ClassVar[bool] = False  # compile whatever is called, while `compiled_at_once` says so

    def __init__(self, loop: Any, tuning: PlainTuning = PlainTuning()) -> None:
        self.loop, self.tuning = loop, tuning
        self.spent = 0.0  # seconds

    def suffices(self, entries: int) -> bool:
        """Whether a table of so many entries is to be done without the loop."""
        if self.at_once or entries > self.tuning.most_entries or self.spent >= self.tuning.seconds:
            return False
        return not self.is_compiled()

    def is_compiled(self) -> bool:
        """Whether the loop is compiled, in this process or on disk; always where Numba is switched off."""
        if not hasattr(self.loop, "signatures") or self.loop.signatures:
            return True
        folder, code = self.loop.stats.cache_path, self.loop.py_func.__code__
        name = f"{Path(code.co_filename).stem}.{self.loop.py_func.__qualname__}-{code.co_firstlineno}"
        return folder is not None and any(Path(folder).glob(f"{name}.*.nbi"))

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time that the work in this context takes."""
        start = time.thread_time()
        try:
            yield
        finally:
            self.spent += time.thread_time() - start


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Let every loop be compiled when it is first called, small tables or not."""
    PlainFirst.at_once = True
    try:
        yield
    finally:
        PlainFirst.at_once = False
