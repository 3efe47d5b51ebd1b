"""Write the lecture notebooks, one for each chapter of the atlas.

    python tools/lectures.py            # --check only says which do not match

A chapter is a folder of docs/atlas with a README.rst and pages in sphinx-gallery's format: a docstring, then code in
parts that begin with `# %%` and, in comments, words. The notebook has the same words in Markdown and the same code:
there is one source. It is kept without outputs, which tests/docs/test_lectures.py makes.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebooks(docs: Path = DOCS) -> dict[Path, str]:
    """The text of every notebook by its path."""
    chapters = sorted(readme.parent for readme in (docs / "atlas").glob("*/README.rst"))
    return {docs / "lectures" / f"{chapter.name}.ipynb": notebook(chapter) for chapter in chapters if pages(chapter)}


def pages(chapter: Path) -> list[Path]:
    return sorted(chapter.glob("[0-9]*.py"))


def notebook(chapter: Path) -> str:
    """A chapter as a notebook: its title and words, then each page's."""
    cells = [("markdown", markdown((chapter / "README.rst").read_text(), title="#"))]
    for page in pages(chapter):
        cells += page_cells(page.read_text())
    content = {
        "cells": [cell(number, kind, text) for number, (kind, text) in enumerate(cells, start=1)],
        "metadata": METADATA,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def cell(number: int, kind: str, text: str) -> dict[str, Any]:
    outputs = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {
        "cell_type": kind,
        "id": f"cell-{number:03}",
        "metadata": {},
        **outputs,
        "source": text.splitlines(keepends=True),
    }


def page_cells(source: str) -> list[tuple[str, str]]:
    """A page's cells: its docstring, then words and code in turn."""
    tree = ast.parse(source)
    docstring = tree.body[0]
    first, *parts = re.split(r"^# ?%%.*\n", source.split("\n", docstring.end_lineno)[-1], flags=re.MULTILINE)
    cells = [("markdown", markdown(ast.get_docstring(tree) or "", title="##")), ("code", first.strip())]
    for part in parts:
        words = re.match(r"(?:#.*\n)*", part)[0]
        cells.append(("markdown", markdown(re.sub(r"^# ?", "", words, flags=re.MULTILINE))))
        cells.append(("code", part[len(words) :].strip()))
    return [(kind, text) for kind, text in cells if text]


def markdown(text: str, title: str = "###") -> str:
    """What our pages use of reStructuredText, as Markdown; the first heading is the title, others are below it."""
    text = re.sub(r"^\.\. math::[ \n]+((?:.+\n?)+(?:\n(?:[ \t]+.+\n?)+)*)", _displayed, text, flags=re.MULTILINE)
    text = re.sub(r":math:`([^`]+)`", lambda match: f"${' '.join(match[1].split())}$", text)
    text = re.sub(r":[\w:]+:`~?([^`<]+?)(?: <[^`]*>)?`", r"`\1`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"`([^`<]+) <([^`>]+)>`__?", r"[\1](\2)", text)
    heading = re.compile(r"^(\S.*)\n([=^~-])\2{2,}$", flags=re.MULTILINE)
    text = heading.sub(rf"{title} \1", text, count=1)
    return heading.sub(r"### \1", text).strip()


def _displayed(match: re.Match[str]) -> str:
    lines = [line.strip() for line in match[1].strip().splitlines() if line.strip()]
    return "$$\n" + "\n".join(lines) + "\n$$\n"


def stale(docs: Path = DOCS) -> list[Path]:
    """Notebooks that are not what the atlas says, are missing, or belong to no chapter."""
    wanted = notebooks(docs)
    wrong = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    return wrong + [path for path in sorted((docs / "lectures").glob("*.ipynb")) if path not in wanted]


def main() -> int:
    found = stale()
    if "--check" in sys.argv:
        for path in found:
            print(f"{path} does not match the atlas; run python tools/lectures.py")
        return int(bool(found))
    wanted = notebooks()
    (DOCS / "lectures").mkdir(exist_ok=True)
    for path in found:
        if path in wanted:
            path.write_text(wanted[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
