"""Threads that wait for the next piece of work: to start them anew for every split would take as long as a split."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Workers:
    """`run(f)` calls f(0), f(1), … f(count - 1), one on this thread and the others on threads that stay."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._jobs: list[SimpleQueue[Callable[[int], None] | None]] = [SimpleQueue() for _ in range(count - 1)]
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        for k, jobs in enumerate(self._jobs):
            threading.Thread(target=self._work, args=(k + 1, jobs), daemon=True).start()

    def run(self, f: Callable[[int], None]) -> None:
        """Return when all calls have; where one failed, or this thread was interrupted, raise that afterwards."""
        waiting, errors = 0, []
        try:
            for jobs in self._jobs:
                jobs.put(f)
                waiting += 1
            f(0)
        except BaseException as error:
            errors.append(error)
        while waiting:
            try:
                found = self._done.get()
                waiting -= 1
                if found is not None:
                    errors.append(found)
            except KeyboardInterrupt as interrupt:
                errors.append(interrupt)
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Let the threads end."""
        for jobs in self._jobs:
            jobs.put(None)
        self._jobs = []

    def _work(self, k: int, jobs: SimpleQueue[Callable[[int], None] | None]) -> None:
        while (f := jobs.get()) is not None:
            found: BaseException | None = None
            try:
                f(k)
            except BaseException as error:
                found = error
            del f
            self._done.put(found)
