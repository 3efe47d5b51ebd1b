"""A progress bar that shows how the gap of a fit falls, by scikit-learn's callbacks.

The bar is logarithmic, from the first gap to the tolerance. While a loop cannot bound its gap, the bar shows the
share of the allowed passes that were made. On a terminal rich draws it; in a notebook it is a line of text that is
written anew in its place, which needs no widgets. A line has at most 80 columns.

Work that is no fit, such as a search over settings, counts its parts (`counted`), where somebody reads it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from certifit.exceptions import in_notebook


@dataclass
class LoopLine:
    """What is shown of one loop."""

    name: str
    share: float = 0.0  # of the way to the tolerance
    passes: int = 0
    objective: str = ""
    gap: str = ""


class ProgressLines(Protocol):
    """A place where lines are shown and changed."""

    def show(self, key: int, line: LoopLine) -> None:
        """Show a loop's line, a new one or one to be changed."""

    def stop(self) -> None:
        """Show everything as it is at the end."""


class TerminalLines:
    """Lines drawn by rich."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=6),
            TextColumn("pass {task.fields[passes]}"),
            TextColumn("objective {task.fields[objective]}"),
            TextColumn("gap {task.fields[gap]}"),
            TimeElapsedColumn(),
        )
        self.screen = Progress(*columns, console=console)
        self.tasks: dict[int, TaskID] = {}
        self.screen.start()

    def show(self, key: int, line: LoopLine) -> None:
        fields: dict[str, Any] = {"passes": line.passes, "objective": line.objective, "gap": line.gap}
        if key not in self.tasks:
            self.tasks[key] = self.screen.add_task(line.name, total=1.0, **fields)
        self.screen.update(self.tasks[key], completed=line.share, **fields)

    def stop(self) -> None:
        self.screen.stop()


class NotebookLines:
    """Lines of text in the output of a notebook's cell, all of them written anew a few times a second."""

    def __init__(self, seconds_between: float = 0.1) -> None:
        self.seconds_between = seconds_between
        self.lines: dict[int, LoopLine] = {}
        self.begin = self.written = time.perf_counter()
        self.handle: Any = None

    def show(self, key: int, line: LoopLine) -> None:
        self.lines[key] = line
        if self.handle is None or time.perf_counter() - self.written > self.seconds_between:
            self._write()

    def stop(self) -> None:
        if self.lines:
            self._write()

    def _write(self) -> None:
        from IPython.display import display

        self.written = time.perf_counter()
        minutes, seconds = divmod(int(self.written - self.begin), 60)
        text = "\n".join(f"{_line_text(line)} {minutes}:{seconds:02d}" for line in self.lines.values())
        content = {"text/plain": text}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)


def _short_name(estimator: str, loop: str, most: int = 20) -> str:
    """Return the names of estimator and loop; where these are long, a loop's that counts, or the estimator's."""
    both = f"{estimator} {loop}"
    if len(both) <= most:
        return both
    return loop if " of " in loop and not loop.endswith(" of 1") else estimator


def _line_text(line: LoopLine, bar: int = 6) -> str:
    full = round(bar * line.share)
    words = f"pass {line.passes} objective {line.objective} gap {line.gap}"
    return f"{line.name} {'━' * full}{'╌' * (bar - full)} {words}"


class ProgressBar:
    """Show, for each loop of a fit, the passes made, the objective and the gap.

    Parameters
    ----------
    console : rich.console.Console or None
        Where to draw; standard error by default, so that printed results stay clean, or in a notebook its cell.
    max_propagation_depth : int or None, default=1
        How deep inside meta-estimators (searches, pipelines) to show loops.

    Examples
    --------
    >>> import io
    >>> from certifit import KMeans, ProgressBar
    >>> from rich.console import Console
    >>> screen = io.StringIO()
    >>> model = KMeans(2, random_state=0).set_callbacks(ProgressBar(Console(file=screen)))
    >>> _ = model.fit([[0.0], [0.1], [5.0], [5.1]])
    >>> "KMeans" in screen.getvalue()
    True
    """

    def __init__(self, console: Console | None = None, max_propagation_depth: int | None = 1) -> None:
        self.console = console
        self.max_propagation_depth = max_propagation_depth
        self._screens: dict[Any, ProgressLines] = {}
        self._bars: dict[int, tuple[LoopLine, float]] = {}  # by loop: its line and its first gap

    def setup(self, estimator: Any, context: Any) -> None:
        if self.console is None and in_notebook():
            self._screens[context.root_uuid] = NotebookLines()
        else:
            self._screens[context.root_uuid] = TerminalLines(self.console or Console(stderr=True))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        step = getattr(context, "step", None)
        screen = self._screens.get(context.root_uuid)
        if step is None or screen is None:
            return
        loop = context.parent
        if id(loop) not in self._bars:
            self._bars[id(loop)] = LoopLine(_short_name(loop.estimator_name, loop.task_name)), math.nan
        line, first = self._bars[id(loop)]
        bounded = math.isfinite(step.gain)
        if math.isnan(first) and bounded:
            first = step.gain
            self._bars[id(loop)] = line, first
        if bounded:
            line.share = closed(first, step.gain, context.tol)
        elif math.isnan(first):
            line.share = (context.task_id + 1) / (loop.max_subtasks or 1)
        line.passes, line.objective = context.task_id + 1, f"{step.objective:.6g}"
        line.gap = f"{step.gain:.1e}" if bounded else "-"
        screen.show(id(loop), line)

    def teardown(self, estimator: Any, context: Any) -> None:
        screen = self._screens.pop(context.root_uuid, None)
        self._bars.clear()
        if screen is not None:
            screen.stop()


def closed(first: float, gap: float, tol: float) -> float:
    """Return the share of the way from the first gap to the tolerance, on a logarithmic scale.

    >>> closed(1.0, 1e-3, 1e-6), closed(1.0, 0.0, 1e-6), closed(1.0, 5.0, 1e-6)
    (0.5, 1.0, 0.0)
    """
    if gap <= tol:
        return 1.0
    if not (math.isfinite(first) and math.isfinite(gap) and tol > 0 and first > tol):
        return 0.0
    return min(1.0, max(0.0, math.log(first / gap) / math.log(first / tol)))


# Work that is counted ---------------------------------------------------------------------------------------------

Advance = Callable[..., Any]  # (parts done, of so many, and other words where there are any)


@contextmanager
def counted(words: str, total: int | None = None, console: Console | None = None) -> Iterator[Advance]:
    """Show how much of a piece of work is done where somebody reads it; gives `advance(done, total, words="")`.

    The line is on standard error unless a console is given, and is gone when the work is done.

    >>> with counted("weighing", 3) as advance:  # nothing is written where nobody reads
    ...     advance(1, 3)
    """
    if console is None and in_notebook():
        count = NotebookCount(words)
        try:
            yield count
        finally:
            count.clear()
    elif sys.stderr.isatty() if console is None else console.is_terminal and not console.quiet:
        columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn()]
        columns += [MofNCompleteColumn()] if total else []
        screen = console or Console(stderr=True)
        with Progress(*columns, TimeElapsedColumn(), console=screen, transient=True) as bar:
            task = bar.add_task(words, total=total)
            yield lambda done, of, now="": bar.update(task, completed=done, total=of, description=now or words)
    else:
        yield lambda done, of, now="": None


class NotebookCount:
    """A line of text in the output of a notebook's cell, written anew in its place a few times a second."""

    def __init__(self, words: str, seconds_between: float = 0.1) -> None:
        self.words, self.seconds_between = words, seconds_between
        self.written = -math.inf
        self.handle: Any = None

    def __call__(self, done: int, of: int | None, now: str = "") -> None:
        from IPython.display import display

        self.words = now or self.words

        clock = time.perf_counter()
        if clock - self.written < self.seconds_between and done != of:
            return
        self.written = clock
        content = {"text/plain": f"{self.words} {done}" + (f" of {of}" if of else "")}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)

    def clear(self) -> None:
        """Leave nothing of the line."""
        if self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)
