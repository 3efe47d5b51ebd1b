"""How loops over rows are compiled: quickly, because a first fit waits for it, and of small tables not at once.

Work on small tables can be done by operations on whole arrays too, with the same bits. That is what happens while the
compiled loop is not there yet, until it has taken as long as compiling would. A single loop has a twin, `twin_of`,
which is as quick on small tables; where the plain way is another algorithm, `PlainFirst` decides, and also looks
for a compiled loop on disk.
"""

from __future__ import annotations

import gc
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from certifit.core.compiling import notice
from certifit.core.interrupts import HeldInterrupt
from certifit.exceptions import tell_reader


class CompiledLoop:
    """A loop that Numba compiles when it is first called, by Python or by another loop.

    Numba is loaded then, not when the loop is declared: that takes half a second, which nobody should wait for who
    fits a model that needs no loop.
    """

    at_once: ClassVar[bool] = False  # compile whatever is called, while `compiled_at_once` says so
    _one_at_a_time: ClassVar[threading.RLock] = threading.RLock()
    _numba: ClassVar[Any] = None  # once it is loaded
    _is_kept: ClassVar[bool] = True  # on disk, what Numba compiles
    _unknown: ClassVar[frozenset[str]] = frozenset()  # options that this Numba does not have

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self.options = function, options
        self.twin: PlainTwin | None = None
        self._was_on_disk: bool | None = None  # when it was first asked for with Numba loaded
        self._dispatcher: Any = None
        self._is_used = False  # as a compiled loop, by Python

    def __call__(self, *arguments: Any) -> Any:
        if not self._is_used:
            if self.twin is not None and not self._is_ready() and self.twin.suffices(arguments):
                return self.twin(arguments)
            self._is_used = True
        try:
            return (self._dispatcher or self.dispatcher)(*arguments)
        except OSError:  # loops read and write no files, but what Numba compiled is written to one
            self._go_on_without_files()
        except (AttributeError, ImportError):  # nor have they attributes: what was compiled knew types that are gone
            self._forget_files()
        return self.dispatcher(*arguments)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @property
    def dispatcher(self) -> Any:
        """What Numba makes of it."""
        with self._one_at_a_time:
            if self._dispatcher is None:
                numba = self._loaded()
                known = {name: value for name, value in self.options.items() if name not in self._unknown}
                function = self._known_to_numba()
                try:
                    self._dispatcher = numba.njit(**known | self._cache_option())(function)
                except RuntimeError as error:
                    if "no locator" not in str(error):
                        raise
                    self._go_on_without_files()
                    self._dispatcher = numba.njit(**known | self._cache_option())(function)
                if CompiledLoop._is_kept and hasattr(self._dispatcher, "stats"):
                    self._forget_outdated()
        return self._dispatcher

    def _cache_option(self) -> dict[str, Any]:
        return {} if CompiledLoop._is_kept else {"cache": False}

    def _go_on_without_files(self) -> None:
        """Compile for this process alone: there is no folder to write to, or the disk is full."""
        if CompiledLoop._is_kept:
            CompiledLoop._is_kept = False
            tell_reader(
                "certifit: compiled loops cannot be kept on disk, and are compiled in every process; set "
                "NUMBA_CACHE_DIR to a folder that can be written to"
            )
        self._dispatcher = None
        for loop in self._called_loops().values():
            loop._go_on_without_files()

    def _forget_files(self) -> None:
        """Compile anew, whatever is on disk."""
        for index in self._index_files():
            index.unlink(missing_ok=True)
        self._dispatcher = None
        for loop in self._called_loops().values():
            loop._forget_files()

    def _forget_outdated(self) -> None:
        """Drop from the disk what is older than a file of a loop it calls: Numba looks at its own file alone."""
        times = [path.stat().st_mtime for path in self._sources() if path.exists()]
        newest = max((at for at in times if at <= time.time()), default=-math.inf)
        for index in self._index_files():
            with suppress(OSError):  # it cannot be written to, or another process was first
                if index.stat().st_mtime < newest:
                    index.unlink()

    def _sources(self) -> set[Path]:
        """The files of this loop, and of all that it calls."""
        own = {Path(self.py_func.__code__.co_filename)}
        return own.union(*(loop._sources() for loop in self._called_loops().values()))

    def _called_loops(self) -> dict[str, CompiledLoop]:
        """The loops that this one calls, by their names in it."""
        known, called = self.py_func.__globals__, self.py_func.__code__.co_names
        return {name: known[name] for name in called if isinstance(known.get(name), CompiledLoop)}

    def _known_to_numba(self) -> Callable[..., Any]:
        """The function as if the loops that it calls had been declared by Numba itself, which writes some into it."""
        function = self.py_func
        loops = {name: loop.dispatcher for name, loop in self._called_loops().items()}
        if not loops:
            return function
        found = FunctionType(
            function.__code__, {**function.__globals__, **loops}, function.__name__, function.__defaults__
        )
        found.__qualname__, found.__module__ = function.__qualname__, function.__module__
        found.__doc__ = function.__doc__
        return found

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments for which it is compiled in this process."""
        return [] if self._dispatcher is None else self._dispatcher.signatures

    def is_on_disk(self) -> bool:
        """Whether it was compiled before, in this process or in another, for any types of arguments."""
        return any(self._index_files())

    def _index_files(self) -> Iterator[Path]:
        """Where Numba notes for which types of arguments this loop was compiled."""
        code = self.py_func.__code__
        source = Path(code.co_filename)
        name = f"{source.stem}.{self.py_func.__qualname__}-{code.co_firstlineno}"
        return self._cache_folder(source).glob(f"{name}.*.nbi")

    def _cache_folder(self, source: Path) -> Path:
        """Where Numba keeps what it compiled of this file; beside the file it is found without loading Numba."""
        beside = source.parent / "__pycache__"
        if not os.environ.get("NUMBA_CACHE_DIR") and os.access(beside, os.W_OK):
            return beside
        return Path(self.dispatcher.stats.cache_path or beside)

    def _is_ready(self) -> bool:
        """Whether it is to be called although it has a twin: it must be, or it is on disk and Numba is loaded."""
        if self._numba is not None and self._was_on_disk is None:
            self._was_on_disk = self.is_on_disk()
        return self.at_once or bool(self._was_on_disk)

    @classmethod
    def _loaded(cls) -> Any:
        """Numba, told to say when it compiles, and not to be interrupted then."""
        if cls._numba is None:
            with HeldInterrupt():  # an import that is interrupted half-way cannot be made again
                import numba
                from numba.core import event, options

            if not hasattr(options.DefaultOptions, "_nrt"):
                CompiledLoop._unknown = frozenset(COUNTED)
            notice.install()
            event.Listener.register(PausedCollection)
            event.register("numba:compile", PausedCollection())
            CompiledLoop._numba = numba
        return cls._numba


class PausedCollection:
    """Stops Python's collector of garbage while a loop is compiled, a tenth of whose time it would take.

    Compiling makes millions of small objects, and the collector would look through all modules again and again.
    """

    def __init__(self) -> None:
        self.depth, self.was_on = 0, False  # loops in the making, one inside another

    def notify(self, event: Any) -> None:
        """Hear from Numba that it begins to compile a loop, or is done; one thread compiles at a time."""
        if event.is_start:
            self.was_on = gc.isenabled() if self.depth == 0 else self.was_on
            gc.disable()
        self.depth += 1 if event.is_start else -1
        if self.depth == 0 and self.was_on:
            gc.enable()


@dataclass(frozen=True)
class TwinTuning:
    """Up to where a loop's twin is called in its place."""

    most_entries: int = 20_000  # of the largest array
    seconds: float = 0.4  # of processor time in one process, about what a loop takes to compile


class PlainTwin:
    """What a loop does, by operations on whole arrays: the same bits, without compiling and without loading Numba."""

    def __init__(self, function: Callable[..., Any], tuning: TwinTuning) -> None:
        self.function, self.tuning = function, tuning
        self.spent = 0.0  # seconds

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        start = time.thread_time()
        with np.errstate(all="ignore"):  # as in compiled code
            found = self.function(*arguments)
        self.spent += time.thread_time() - start
        return found

    def suffices(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the arrays are small and little time was spent so far."""
        return self.spent < self.tuning.seconds and _largest_size(arguments) <= self.tuning.most_entries


def _largest_size(arguments: tuple[Any, ...]) -> int:
    """The number of entries of the largest array, in records too."""
    return max((_largest_size(a) if isinstance(a, tuple) else getattr(a, "size", 0) for a in arguments), default=0)


def twin_of(loop: Any, tuning: TwinTuning = TwinTuning()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: the function does what the loop does, bit for bit, and stands in for it on small tables."""

    def declared(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(loop, CompiledLoop):
            loop.twin = PlainTwin(function, tuning)
        return function

    return declared


# Whether a loop counts who holds its arrays. Said of each, because others take it over from the loop that calls them.
COUNTED: dict[str, Any] = {"_nrt": True}
UNCOUNTED: dict[str, Any] = {"_nrt": False}


def _declared(options: dict[str, Any], function: Callable[..., Any]) -> Any:
    """Return the loop; the function itself where Numba is switched off."""
    return function if os.environ.get("NUMBA_DISABLE_JIT") == "1" else CompiledLoop(function, options)


def compiled_with(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of loops that compiles them with these options of Numba besides the usual ones.

    Numbers are divided as NumPy does, without looking for zeros first.
    """
    usual = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **COUNTED}
    return partial(_declared, {**usual, **options})


# What only compiled code calls needs no way in from Python.
INSIDE: dict[str, Any] = {"no_cpython_wrapper": True}
called_from_python, called_by_loops = compiled_with(), compiled_with(**INSIDE)
# What is called for every entry of an array is written into the loop that calls it.
written_into_loops = compiled_with(**INSIDE, inline="always")
# Loops that make no arrays need not count who holds those that they get. To hand a record over counts each of its
# arrays up and down again, which takes longer than the work on a node of few rows.
called_from_python_uncounted = compiled_with(**UNCOUNTED)
called_by_loops_uncounted = compiled_with(**INSIDE, **UNCOUNTED)
written_into_loops_uncounted = compiled_with(**INSIDE, **UNCOUNTED, inline="always")


@dataclass(frozen=True)
class PlainTuning:
    """Up to where a loop that is not compiled is done without."""

    most_entries: int = 10_000  # of the table
    seconds: float = 3.0  # of processor time in one process: a fraction of what compiling takes


class PlainFirst:
    """Says whether small tables are to be done without a compiled loop, which would have to be compiled first."""

    def __init__(self, loop: Any, tuning: PlainTuning = PlainTuning()) -> None:
        self.loop, self.tuning = loop, tuning
        self.spent = 0.0  # seconds

    def suffices(self, entries: int) -> bool:
        """Whether a table of so many entries is to be done without the loop."""
        if CompiledLoop.at_once or entries > self.tuning.most_entries or self.spent >= self.tuning.seconds:
            return False
        return not self.is_compiled()

    def is_compiled(self) -> bool:
        """Whether the loop is compiled, in this process or on disk; always where Numba is switched off."""
        return not isinstance(self.loop, CompiledLoop) or bool(self.loop.signatures) or self.loop.is_on_disk()

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
    CompiledLoop.at_once = True
    try:
        yield
    finally:
        CompiledLoop.at_once = False
