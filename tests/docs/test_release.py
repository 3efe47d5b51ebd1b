"""One version everywhere, and the wheel of it is what users get."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    version, date = re.search(r"^## \[(\d[^]]*)\] - (\d{4}-\d\d-\d\d)$", changes, flags=re.MULTILINE).groups()
    assert version == VERSION
    assert f"version: {VERSION}\n" in citation
    assert f"date-released: {date}\n" in citation
    assert f"| {VERSION.rpartition('.')[0]} | yes |" in (ROOT / "SECURITY.md").read_text()
