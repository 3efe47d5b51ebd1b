"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import certifit

MODULES = sorted(m.name for m in pkgutil.walk_packages(certifit.__path__, "certifit.") if "__main__" not in m.name)


@pytest.mark.parametrize("name", ["certifit", *MODULES])
def test_examples_run(name):
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


def test_public_names_have_examples_or_are_errors():
    """What a user meets first shows how it is used."""
    for name in ("PCA", "KMeans", "LogisticRegression", "compare", "as_rows", "Certificate", "ProgressBar"):
        assert ">>>" in (getattr(certifit, name).__doc__ or ""), name


ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages that work an example through name files that do not exist yet.
IMAGINED = ("checkers/location/", "location/", "tests/location/", "checkers/<room>/")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_exist(page):
    """A path in backticks is a file of the repository, or of the package."""
    named = re.findall(r"`([\w./<>-]+/[\w./<>-]+\.py)`", page.read_text())
    missing = [
        name
        for name in named
        if not name.startswith(IMAGINED)
        and not any((base / name).exists() for base in (ROOT, ROOT / "src" / "certifit"))
    ]
    assert missing == []
