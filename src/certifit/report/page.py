"""A page: one HTML file with everything in it, that loads nothing, and a seal that its own script checks.

A section is a template in `sections/` with what it shows. `compose` puts sections together, writes down the digest of
all that they say, and the policy under which nothing but the page's own style and scripts is used.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from certifit.core.text_table import printable
from certifit.report.charts import draw_bar, draw_histogram, draw_intervals, shaded
from certifit.report.sealing.seal import content_policy, page_digest
from certifit.report.words import shortened, with_error


class PageSection(NamedTuple):
    """The name of a template in `sections/`, and what it shows."""

    template: str
    shows: dict[str, Any]


def compose(title: str, subtitle: str, sections: Sequence[PageSection], proof: dict[str, Any]) -> str:
    """The whole page as HTML text."""
    environment, style, scripts = (
        _environment(),
        _part("style.css"),
        [_part("sealing/self_check.js"), _part("page.js")],
    )
    written = json.dumps(proof, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    body = [
        Markup(environment.get_template(f"sections/{section.template}.html.j2").render(**section.shows))
        for section in sections
    ]
    page = environment.get_template("page.html.j2")
    shows = {
        "title": title,
        "subtitle": subtitle,
        "policy": content_policy(style, scripts),
        "style": Markup(style),
        "scripts": [Markup(script) for script in scripts],
        "proof": Markup(written),
        "sections": body,
    }
    text = printable(page.render(digest="", **shows))
    return printable(page.render(digest=page_digest(text, written), **shows))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("certifit.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals |= {
        "intervals": draw_intervals,
        "bar": draw_bar,
        "histogram": draw_histogram,
        "shaded": shaded,
        "with_error": with_error,
    }
    environment.filters |= {
        "short": shortened,
        "count": "{:,}".format,
        "day": lambda days: str(np.datetime64(round(days), "D")),
        "whole_options": _whole_options,
        "capital": lambda words: words[:1].upper() + words[1:],
    }
    return environment


def _whole_options(words: str) -> Markup:
    """Text whose words such as --drop are not broken at the end of a line."""
    parts = [
        Markup('<span class="whole">{}</span>').format(word) if word.lstrip("(").startswith("--") else escape(word)
        for word in words.split(" ")
    ]
    return Markup(" ").join(parts)


def _part(name: str) -> str:
    return files("certifit.report").joinpath(name).read_text(encoding="utf-8")


def versions() -> dict[str, str]:
    """The versions of what a fit rests on."""
    names = ("certifit", "numpy", "scipy", "scikit-learn", "numba", "pyarrow")
    return {"Python": platform.python_version(), **{name: version(name) for name in names}}


def written_at() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
