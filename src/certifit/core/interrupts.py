"""Ctrl-C, noted while something must not be left half done, and answered as soon as it may be."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class HeldInterrupt:
    """A context in which a first Ctrl-C is only noted; it is raised at the end, or where `answer` is called.

    A second one is raised at once. Only Python's own answer to Ctrl-C is held, and only on the main thread: whoever
    put another one in its place, or works on another thread, has it as before.
    """

    def __init__(self) -> None:
        self.noted = False
        self._at_once = False
        self._before: Any = None

    def __enter__(self) -> HeldInterrupt:
        on_main = threading.current_thread() is threading.main_thread()
        if on_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
        if kind is None:
            self.answer()

    def answer(self) -> None:
        """Raise the interrupt that was noted, if there was one."""
        if self.noted:
            self.noted = False
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A part of the context in which nothing is left half done: Ctrl-C is raised there at once."""
        self.answer()
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted or self._at_once:
            raise KeyboardInterrupt
        self.noted = True
