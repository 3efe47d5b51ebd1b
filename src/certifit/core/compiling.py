"""One line while loops are compiled, for people who wait: on a terminal or in a notebook, once a process.

Numba compiles a loop when it is first called with arrays of a new type, and keeps the result on disk. That takes
seconds, in which nothing else would be seen.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

from certifit.exceptions import in_notebook


class CompileNotice:
    """Tells once that a loop of this package is being compiled; Numba calls it at the start of each compilation."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = file  # standard error unless given
        self.installed = self.told = False

    def install(self) -> None:
        """Listen to Numba, if it is loaded: importing it takes a while, and not every model needs it."""
        events = sys.modules.get("numba.core.event")
        if events is not None and not self.installed:
            self.installed = True
            events.Listener.register(type(self))  # what Numba asks of a listener: `notify`
            events.register("numba:compile", self)

    def notify(self, event: Any) -> None:
        """Tell it, where somebody reads it."""
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        ours = str(getattr(function, "__module__", "")).partition(".")[0] == "certifit"
        file = self.file or sys.stderr
        if ours and event.is_start and not self.told and (file.isatty() or in_notebook()):
            self.told = True
            print("certifit: compiling loops, once on this computer (`certifit warm-up` does all)", file=file)


notice = CompileNotice()
