"""Every lecture notebook runs from the first cell to the last, shows pictures, and keeps no outputs."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

LECTURES = sorted((Path(__file__).parents[2] / "docs" / "lectures").glob("*.ipynb"))


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_lecture_runs_and_shows_its_pictures(path):
    lecture = nbformat.read(path, as_version=4)
    nbformat.validate(lecture)
    code = [cell for cell in lecture.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] for cell in code)
    # The kernel chooses its own backend for pictures, as a person's does.
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    NotebookClient(lecture, timeout=120, kernel_name="python3").execute(env=environment)
    pictures = [output for cell in code for output in cell.outputs if "image/png" in output.get("data", {})]
    pages = [cell for cell in lecture.cells if cell.source.startswith("## ")]
    assert len(pictures) >= len(pages)
