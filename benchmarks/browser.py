"""A headless Chromium that opens pages and is asked what became of them, over the pipe of its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_chromium() -> str | None:
    """The path of a Chromium on this machine, or None where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One tab of a running Chromium. What it was asked to load over any network is in `requests`."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._left, self._last = to, back, b"", 0
        self.requests: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._session = ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file, at a fragment of its address, and wait until its scripts have run."""
        self._events.clear()
        self.ask("Page.navigate", url=page.absolute().as_uri() + fragment)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._note(self._read())

    def value(self, script: str) -> Any:
        """The value of an expression on the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def look(self, width: int, *, dark: bool = False, printed: bool = False) -> None:
        """Be a window so wide, in light or dark, or paper."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media="print" if printed else "", features=features)

    def screenshot(self, place: Path, most: int = 16_000) -> None:
        """Write a picture of the whole page, from its top to so many pixels below."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most), "scale": 1}
        found = self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        place.write_bytes(base64.b64decode(found["data"]))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._back, 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a Chromium, and end it."""
    command = find_chromium()
    if command is None:
        raise FileNotFoundError("no Chromium on this machine")
    theirs_in, to = os.pipe()
    back, theirs_out = os.pipe()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        quiet = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        quiet += ["--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync"]
        # Chromium reads commands from descriptor 3 and answers to 4.
        shell = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        process = subprocess.Popen(
            ["bash", "-c", shell, command, *quiet, f"--user-data-dir={profile}", "--remote-debugging-pipe"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Browser(to, back)
        finally:
            process.terminate()
            process.wait(timeout=20)
            # Its children may outlive it for a moment, and write to the profile while it is removed.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            os.close(to)
            os.close(back)
