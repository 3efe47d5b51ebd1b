"""Every page of the atlas says what holds it and what must fail; the lecture notebooks are made from its pages."""

import ast
import re
from pathlib import Path

import pytest

from tests.common.test_house import load_tool

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "atlas").glob("*/[0-9]*.py"))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")


def paragraph(docstring, word):
    """The paragraph of a docstring that begins with a word in bold."""
    found = [text for text in docstring.split("\n\n") if text.startswith(f"**{word}")]
    assert len(found) == 1, f"wanted one paragraph that begins with **{word}**, got {len(found)}"
    return found[0]


def named_tests(text):
    return re.findall(r"``(test_\w+)``", text)


@every_page
def test_a_page_has_statement_reason_test_and_control(page):
    source = page.read_text()
    docstring = ast.get_docstring(ast.parse(source))
    assert len(paragraph(docstring, "Statement")) > 40
    assert len(paragraph(docstring, "Why.")) > 40
    held, control = paragraph(docstring, "Held by"), paragraph(docstring, "Control")
    (file,) = set(re.findall(r"``(tests/[\w/]+\.py)``", held))
    written = re.findall(r"^def (test_\w+)", (ROOT / file).read_text(), flags=re.MULTILINE)
    assert named_tests(held), "no test is named"
    assert named_tests(control), "no control is named"
    assert set(named_tests(held) + named_tests(control)) <= set(written)
    assert all(name.startswith("test_control_") for name in named_tests(control))
    assert "A control that must fail" in source, "the control is not shown"


def test_every_chapter_has_a_title_and_pages():
    chapters = [path for path in (ROOT / "docs" / "atlas").iterdir() if path.is_dir() and path.name[:2].isdigit()]
    assert {page.parent for page in PAGES} == {path for path in chapters if (path / "README.rst").exists()}


def test_the_lecture_notebooks_are_made_from_the_atlas():
    assert load_tool("lectures").stale() == [], "run python tools/lectures.py"


def test_words_of_a_page_become_markdown():
    """Formulas, literals, links, headings and displayed formulas of reStructuredText."""
    page = (
        'r"""\nTitle\n=====\n\nLet :math:`a\n\\ge b` and ``c_``, see `there <http://x>`_.\n\n'
        '.. math::\n\n   x = y\n\nEnd.\n"""\n'
        "import math\n\n# %%\n# Part\n# ^^^^\n# Words.\nprint(math.pi)\n"
    )
    assert load_tool("lectures").page_cells(page) == [
        ("markdown", "## Title\n\nLet $a \\ge b$ and `c_`, see [there](http://x).\n\n$$\nx = y\n$$\n\nEnd."),
        ("code", "import math"),
        ("markdown", "### Part\nWords."),
        ("code", "print(math.pi)"),
    ]
