"""Lines of progress in the output of a notebook's cell, which are gone when the work is done."""

import sys
from types import SimpleNamespace

import pytest

from certifit.core import progress
from certifit.core.progress import counted


class Shown:
    """What a cell shows: its newest text."""

    def __init__(self):
        self.text = ""

    def display(self, content, *, raw, display_id):
        assert raw
        assert display_id
        self.text = content["text/plain"]
        return SimpleNamespace(update=lambda content, raw: setattr(self, "text", content["text/plain"]))


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_a_line_is_left_in_a_notebook(fails, monkeypatch):
    shown = Shown()
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.display))
    seen = []

    def work():
        with counted("weighing", 3) as advance:
            advance(1, 3, "weighing stones")
            seen.append(shown.text)
            if fails:
                raise KeyboardInterrupt

    if fails:
        with pytest.raises(KeyboardInterrupt):
            work()
    else:
        work()
    assert seen == ["weighing stones 1 of 3"]
    assert shown.text == ""
