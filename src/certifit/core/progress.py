"""A progress bar that shows how the gap of a fit falls, by scikit-learn's callbacks.

The bar is logarithmic, from the first gap to the tolerance. While a loop cannot bound its gap, the bar shows the
share of the allowed passes that were made.
"""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class ProgressBar:
    """Show, for each loop of a fit, the passes made, the objective and the gap.

    Parameters
    ----------
    console : rich.console.Console or None
        Where to draw; standard error by default, so that printed results stay clean.
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
        self._screens: dict[Any, Progress] = {}
        self._bars: dict[Any, tuple[TaskID, float]] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("pass {task.fields[passes]}"),
            TextColumn("objective {task.fields[objective]}"),
            TextColumn("gap {task.fields[gap]}"),
            TimeElapsedColumn(),
        )
        screen = Progress(*columns, console=self.console or Console(stderr=True))
        screen.start()
        self._screens[context.root_uuid] = screen

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        step = getattr(context, "step", None)
        screen = self._screens.get(context.root_uuid)
        if step is None or screen is None:
            return
        loop = context.parent
        if id(loop) not in self._bars:
            name = f"{loop.estimator_name} {loop.task_name}"
            first = step.gain if math.isfinite(step.gain) else math.nan
            task = screen.add_task(name, total=1.0, passes=0, objective="", gap="")
            self._bars[id(loop)] = task, first
        task, first = self._bars[id(loop)]
        if math.isnan(first) and math.isfinite(step.gain):
            self._bars[id(loop)] = task, step.gain
        bounded = math.isfinite(step.gain)
        done = closed(first, step.gain, context.tol) if bounded else (context.task_id + 1) / (loop.max_subtasks or 1)
        shown = f"{step.gain:.1e} -> {context.tol:.1e}" if bounded else "-"
        screen.update(
            task,
            completed=done if bounded or math.isnan(first) else None,
            passes=context.task_id + 1,
            objective=f"{step.objective:.8g}",
            gap=shown,
        )

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
