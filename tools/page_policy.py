"""Write the hashes of its style and script into the policy of the interactive page: `python tools/page_policy.py`.

docs/_static/theorems.html is one file that may load nothing (Content-Security-Policy): its own style and script run
because the policy has their hashes. Run this after a change; `--check` only compares.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "_static" / "theorems.html"


def with_hashes(text: str) -> str:
    """The page with the hashes of what stands between its style and its script tags."""
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        text = re.sub(rf"{tag}-src 'sha256-[^']*'", f"{tag}-src 'sha256-{digest}'", text)
    return text


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        return int(with_hashes(text) != text)
    PAGE.write_text(with_hashes(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
