"""One version everywhere, and the wheel of it is what users get."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    released = re.findall(r"^## \[(\d[^]]*)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    version, date = released[0]
    assert version == VERSION
    assert f"version: {VERSION}\n" in citation
    assert f"date-released: {date}\n" in citation
    assert f"| {VERSION.rpartition('.')[0]} | yes |" in (ROOT / "SECURITY.md").read_text()
