"""The seal of a page: a digest of what it says and carries, and the policy that lets only its own script run."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

# The attributes that say where things are drawn, as `self_check.js` has them.
DRAWN = ("d", "points", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height")
VOID = ("br", "hr", "img", "input", "link", "meta")


class WrittenWords(HTMLParser):
    """What the `main` part of a page says, in order: words, and the places of what is drawn; not the seal itself."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, bool]] = []  # tags, and whether what is inside counts
        self._svg = 0
        self.parts: list[str] = []
        self.feed(page)
        self.close()

    @property
    def _counts(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        counts = (self._counts or tag == "main") and given.get("id") != "seal"
        self._svg += tag == "svg"
        if self._svg and counts:
            self.parts += [given.get(name) or "" for name in DRAWN]
        if tag not in VOID:
            self._open.append((tag, counts))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        self._svg -= tag == "svg"
        if self._open and self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._counts:
            self.parts.append(data)


def written_words(page: str) -> str:
    """The words of a page without white space, as its script will find them.

    >>> written_words('<main><p>a &amp; b</p><p id="seal">?</p><svg><path d="M 0 1"/></svg></main>')
    'a&bM01'
    """
    return re.sub("[ \t\n\r\f]+", "", "".join(WrittenWords(page).parts))


def page_digest(page: str, proof: str) -> str:
    """SHA-256 of what a page says and of the proof that it carries."""
    return hashlib.sha256(f"{written_words(page)}\n{proof}".encode()).hexdigest()


def content_policy(style: str, scripts: list[str]) -> str:
    """The page's Content-Security-Policy: these texts and pictures inside the page, and nothing else."""
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {_source(style)}; "
        f"script-src {' '.join(map(_source, scripts))}"
    )


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
