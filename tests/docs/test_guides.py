"""Guides print what they show, and links from page to page lead somewhere."""

import re
import warnings

import pytest

from tests.docs.test_docs import PAGES, ROOT, blocks, without_digits

FRONT = ROOT / "docs" / "index.md"
WITH_CODE = [
    page for page in PAGES if (page.parent.name in ("start", "guides", "tables") or page == FRONT) and blocks(page)
]
BUILT = ROOT / "docs" / "_generated"


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_a_guide_prints_what_it_shows(page, capsys):
    names = {}
    for code, shown in blocks(page):
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # a page may show a warning
            exec(code, names)
        assert without_digits(capsys.readouterr().out) == without_digits(shown), code


def links(page):
    """Where the links and pictures of a Markdown page lead, without those to other sites and within the page."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target.partition("#")[0] for target in found if not re.match(r"\w+:|#", target)]


def toctrees(page):
    """The pages that a page's tables of contents list."""
    found = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL)
    lines = [line.strip() for text in found for line in text.splitlines()]
    names = [re.sub(r".*<(.+)>", r"\1", line) for line in lines if line and not line.startswith(":")]
    return [name for name in names if "*" not in name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """To files of the repository; what only the built site has is checked when it is built."""
    wanted = [page.parent / target for target in links(page)]
    wanted += [page.parent / f"{name}.md" for name in toctrees(page)]
    assert [str(path) for path in wanted if not path.exists() and not path.resolve().is_relative_to(BUILT)] == []


def test_every_page_is_in_a_table_of_contents():
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    listed = {(page.parent / f"{name}.md").resolve() for page in pages for name in toctrees(page)}
    left_out = pages - listed - {FRONT} - set((ROOT / "docs" / "decisions").glob("0*.md"))
    assert left_out == set()


def test_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](b.md#c) ![d](e.png) `[f](g)` [h](https://i) [j](#k)\n```{toctree}\n:glob:\nL <m>\nn*\n```\n")
    assert links(page) == ["b.md", "e.png"]
    assert toctrees(page) == ["m"]
