"""What a call needs at its peak, beyond what was resident before it (Linux: /proc/self)."""

from __future__ import annotations

import multiprocessing
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

MB = 1e6


def status_mb(field: str) -> float:
    """A size of this process in MB: 'VmRSS' is resident now, 'VmHWM' its highest so far."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / MB


def peak_of(call: Callable[[], Any]) -> tuple[Any, float]:
    """`call()` and the MB it added at its peak to what was resident before."""
    before = status_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
    result = call()
    return result, status_mb("VmHWM") - before


def peak_in_child(call: Callable[[], Any], timeout: float = 1800.0) -> float:
    """MB that `call()` adds at its peak, measured in a forked child that shares the data already loaded.

    Fork before anything ran on OpenMP or TBB threads here: those do not survive a fork.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        try:
            sender.send(peak_of(call)[1])
        except Exception as error:
            sender.send(f"{type(error).__name__}: {error}")

    process = context.Process(target=child)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: fork beside idle BLAS threads
        process.start()
    sender.close()
    try:
        if not receiver.poll(timeout):
            raise RuntimeError(f"no answer in {timeout:g} s")
        answer = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the child ended with exit code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return answer
