"""What the commands print: text and tables for people, one JSON object for programs, or nothing."""

from __future__ import annotations

import codecs
import io
import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from certifit.core import Certificate
from certifit.core.progress import ProgressBar, counted
from certifit.exceptions import visible


class Screen:
    """Prints to `file`; progress and notes go to stderr. Words from data are shown as they are, never as markup.

    Lines are broken between words at the edge of the terminal, and at 80 columns in a file or a pipe; a path or a
    command that is longer stays whole, so that it can be copied.
    """

    def __init__(self, *, quiet: bool, json: bool, file: IO[str] | None = None) -> None:
        self.json = json
        self._silent = quiet or json
        plain: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        self._out = Console(file=file, quiet=self._silent, **plain)
        self._err = Console(stderr=True, quiet=self._silent, **plain)

    def say(self, text: str = "", style: str | None = None) -> None:
        self._out.print(wrap(visible(text), self._out.width), style=style, soft_wrap=True)

    def heading(self, text: str) -> None:
        self.say(f"\n{text}", style="bold")

    def pairs(self, lines: Sequence[tuple[str, str]]) -> None:
        """Labels and values, side by side; a value that does not fit has a line of its own."""
        width = max(len(label) for label, _ in lines)
        for label, value in lines:
            fits = width + 4 + len(value) <= self._out.width
            text = f"  {label:<{width}}  {value}" if fits else f"  {label}\n    {value}"
            self._out.print(visible(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """Something to know that is not a result."""
        self._err.print(wrap(f"note: {visible(text)}", self._err.width, "      "), soft_wrap=True)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[int] = ()) -> None:
        """`right` are the numbers of the right-aligned columns."""
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for i, name in enumerate(header):
            table.add_column(name, justify="right" if i in set(right) else "left", overflow="fold")
        for row in rows:
            table.add_row(*(visible(str(cell)) for cell in row))
        if self._out.is_terminal:
            self._out.print(table)
            return
        with self._out.capture() as text:
            self._out.print(table)
        for line in text.get().splitlines():
            self._out.print(line.rstrip(), soft_wrap=True)

    def certificate(self, certificate: Certificate) -> None:
        self._out.print(visible(str(certificate)), style="green" if certificate.holds else "red", soft_wrap=True)

    def document(self, content: dict[str, Any]) -> None:
        """The JSON object, where that is what was asked for."""
        if self.json:
            Console(file=self._out.file, markup=False, emoji=False, highlight=False).out(
                json.dumps(content, indent=2, allow_nan=False), highlight=False
            )

    @contextmanager
    def watch(self, model: Any) -> Iterator[None]:
        """Show the gap falling while `model` is fitted, on a terminal."""
        if not self._silent and self._err.is_terminal:
            model.set_callbacks(ProgressBar(self._err))
        yield
        model.set_callbacks()

    @contextmanager
    def contest(self) -> Iterator[Any]:
        """Show models as they are compared, on a terminal; yields what is to be told."""
        from certifit.cli.live_board import LiveBoard

        board = LiveBoard(self._err)
        with board.shown():
            yield board.tell

    @contextmanager
    def progress(self, words: str, total: int | None = None) -> Iterator[Any]:
        """A bar on a terminal, nothing elsewhere; yields `advance(done, total)`."""
        with counted(words, total, self._err) as advance:
            yield advance


def wrap(text: str, width: int, indent: str = "") -> str:
    """Break lines between words; a longer word stays whole, so that a path can be copied."""
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": indent}
    return "\n".join(textwrap.fill(line, max(20, width), **options) for line in text.split("\n"))


class VisibleText(io.BufferedIOBase):
    """A terminal's bytes, to which control characters of data are written as their escapes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._file.write(visible(self._decoder.decode(bytes(data))).encode())
        return len(data)
