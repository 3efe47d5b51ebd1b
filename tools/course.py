"""Draw the pictures of docs/start/course.md by the code that it shows.

    python tools/course.py            # --check only says which do not match

A topic is a heading with a number; its block of Python draws one picture or more. Each picture carries the digest of
the code that drew it, so that a test can tell whether the page has changed since.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "start" / "course.md"
PICTURES = DOCS / "images" / "course"


def setup() -> str:
    """The block of names and tables that all topics use."""
    return _blocks(PAGE.read_text().partition("\n## ")[0])[0]


def topics() -> dict[str, str]:
    """The code of each topic by its heading, such as "4. Principal components"."""
    _, *parts = re.split(r"^## (?=\d)", PAGE.read_text(), flags=re.MULTILINE)
    return {part.partition("\n")[0]: "\n".join(_blocks(part)) for part in parts}


def _blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def pictures() -> dict[Path, str]:
    """Every picture that the page shows, and the code that must have drawn it."""
    found: dict[Path, str] = {}
    for title, code in topics().items():
        part = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", part):
            found[(PAGE.parent / name).resolve()] = code
    return found


def digest(code: str) -> str:
    return hashlib.sha256((setup() + code).encode()).hexdigest()


def stale() -> list[str]:
    """Pictures that are missing or were drawn by other code, and those that no page shows."""
    wanted = pictures()
    wrong = [path.name for path, code in wanted.items() if not path.exists() or _drawn_by(path) != digest(code)]
    return wrong + [path.name for path in PICTURES.glob("*.png") if path.resolve() not in wanted]


def _drawn_by(path: Path) -> str | None:
    from PIL import Image

    with Image.open(path) as image:
        return image.info.get("Source")


def draw() -> None:
    """Run every topic and keep its figures: 04.png, and 04-2.png for a second one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    PICTURES.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}
    exec(setup(), names)
    for title, code in topics().items():
        exec(code, names)
        for place, figure in enumerate(map(plt.figure, plt.get_fignums()), start=1):
            name = f"{int(title.partition('.')[0]):02d}{f'-{place}' if place > 1 else ''}.png"
            figure.savefig(PICTURES / name, dpi=90, bbox_inches="tight", metadata={"Source": digest(code)})
        plt.close("all")


if __name__ == "__main__":
    if "--check" not in sys.argv:
        draw()
    if stale():
        sys.exit(f"not current: {', '.join(stale())}")
