"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

import certifit
from tests.common.test_house import load_tool

ROOT = Path(__file__).parents[2]
MODULES = sorted(m.name for m in pkgutil.walk_packages(certifit.__path__, "certifit.") if "__main__" not in m.name)
# Looking for examples where there are none takes longer than running the rest.
WITH_EXAMPLES = [name for name in ("certifit", *MODULES) if ">>>" in Path(find_spec(name).origin).read_text()]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name):
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


def test_every_public_name_has_an_example():
    """The reference lists estimators, functions, pictures, records and errors: each shows how it is met."""
    reference = load_tool("reference", ROOT / "docs" / "_extensions")
    shown = {f"{room}.{name}": one for room, names in reference.public_names().items() for name, one in names.items()}
    assert len(shown) > 200
    assert [name for name, one in shown.items() if ">>> " not in (one.__doc__ or "")] == []


WRITTEN = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "_generated" not in page.parts]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
# Pages that work an example through name files that do not exist yet.
IMAGINED = ("checkers/location/", "location/", "tests/location/", "checkers/<room>/")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_exist(page):
    """A path in backticks is a file of the repository, or of the package."""
    named = re.findall(r"`([\w./<>-]+/[\w./<>-]+\.(?:py|csv|gz))`", page.read_text())
    missing = [
        name
        for name in named
        if not name.startswith(IMAGINED)
        and not any((base / name).exists() for base in (ROOT, ROOT / "src" / "certifit"))
    ]
    assert missing == []


def blocks(page):
    """Pairs of code and of what it prints, as a page shows them."""
    pattern = r"```python\n(.*?)```\n\n```text\n(.*?)```"
    return re.findall(pattern, page.read_text(), re.DOTALL)


def without_digits(text):
    """Words and layout of a print; of numbers the first two digits, because the last ones depend on the processor."""
    return re.sub(r"(\d\.?\d?)[\d.]*(e[-+]\d+)?", r"\1\2", re.sub(" +|-{5,}", " ", text))


def test_the_readme_prints_what_it_shows(capsys):
    found = blocks(ROOT / "README.md")
    assert len(found) == 1
    for code, shown in found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # scikit-learn's, which the page speaks of
            exec(code, {})
        printed = capsys.readouterr().out
        ours = [line for line in shown.splitlines() if not line.startswith("scikit-learn ")]
        lines = [line for line in printed.splitlines() if not line.startswith("scikit-learn ")]
        assert len(lines) == len(printed.splitlines()) - len(shown.splitlines()) + len(ours)
        for line, expected in zip(lines, ours, strict=True):
            assert without_digits(line) == without_digits(expected), f"README shows {expected!r}, printed {line!r}"
