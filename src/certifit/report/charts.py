"""Charts as SVG text that the page's style colours: light or dark, on a phone or on paper, without a script.

Everything is drawn in a box of 360 by 240 units, about the width of a phone. Shapes carry classes instead of colours,
and what is drawn is said in words for readers who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from certifit.rows import Array


class ChartAxis(NamedTuple):
    """One direction of a chart: its name, where it begins and ends, and whether it counts in powers of ten."""

    label: str
    low: float
    high: float
    log: bool = False

    def place(self, values: Array) -> Array:
        """Where values lie, from 0 to 1."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            values = np.log10(np.maximum(values, 1e-300))
        else:
            low, high = self.low, self.high
        return np.clip((np.asarray(values, float) - low) / (high - low), -0.02, 1.02)

    def ticks(self, about: int = 4) -> list[float]:
        """Round numbers between both ends.

        >>> ChartAxis("", 0.0, 1.0).ticks(), ChartAxis("", 3.0, 47.0).ticks()
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [10.0, 20.0, 30.0, 40.0])
        """
        if self.log:
            low, high = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            return [10.0**power for power in range(low, high + 1, max(1, -(-(high - low) // about)))]
        raw = (self.high - self.low) / about
        unit = 10.0 ** math.floor(math.log10(raw))
        step = min((unit * n for n in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / raw)))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{step * n:.12g}") for n in range(first, last + 1)]


@dataclass(frozen=True)
class ChartFrame:
    """The box of a chart and the room for words around it, in units."""

    width: float = 360.0
    height: float = 240.0
    left: float = 52.0
    right: float = 10.0
    top: float = 10.0
    bottom: float = 38.0

    def x(self, axis: ChartAxis, values: Array) -> Array:
        return self.left + axis.place(values) * (self.width - self.left - self.right)

    def y(self, axis: ChartAxis, values: Array) -> Array:
        return self.height - self.bottom - axis.place(values) * (self.height - self.top - self.bottom)


Ends = tuple[float, float, float]  # where an interval begins, its middle, and where it ends


class ChartLayer(NamedTuple):
    """Points (n,) that are drawn as a line, a band, dots, whiskers or bars."""

    shape: str  # line, guide, band, dots, whiskers or bars
    x: Array
    y: Array
    to: Array | None = None  # (n,) the other end of bands and whiskers
    words: Sequence[str] = ()  # what a dot says of itself
    kind: str = ""  # a further class


def axis_around(label: str, *values: Array, log: bool = False, room: float = 0.04) -> ChartAxis:
    """An axis that shows all these values, with a little room at both ends."""
    every = np.concatenate([np.ravel(v) for v in values]) if values else np.zeros(1)
    every = every[np.isfinite(every) & ((every > 0) | (not log))]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    if log:
        return ChartAxis(label, 10 ** math.floor(math.log10(low)), 10 ** (math.floor(math.log10(high)) + 1), True)
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return ChartAxis(label, low - room * (high - low), high + room * (high - low))


def draw_chart(layers: Sequence[ChartLayer], x: ChartAxis, y: ChartAxis, words: str) -> Markup:
    """A chart with both axes; `words` say what it shows."""
    frame = ChartFrame()
    parts = [_draw_axes(frame, x, y)]
    for layer in layers:
        across, up = frame.x(x, layer.x), frame.y(y, layer.y)
        to = None if layer.to is None else frame.y(y, layer.to)
        parts.append(_SHAPES[layer.shape](frame, layer, across, up, to))
    return svg_box(frame.width, frame.height, Markup("").join(parts), words)


def svg_box(width: float, height: float, inside: Markup, words: str, kind: str = "chart") -> Markup:
    """A drawing of this size, and what it shows in words."""
    head = Markup('<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return head.format(kind, _short(width), _short(height), words) + inside + Markup("</svg>")


def draw_intervals(ours: Ends, base: Ends, axis: ChartAxis, words: str) -> Markup:
    """A model's score above its baseline's, each a dot with its whisker, for a cell of a table."""
    parts = []
    for (low, value, high), height, kind in ((ours, 6, "ours"), (base, 16, "baseline")):
        a, b, c = (6 + 168 * axis.place(np.array([low, value, high]))).tolist()
        one = Markup('<path class="whisker {4}" d="M{0} {3}H{2}"/><circle class="dot {4}" cx="{1}" cy="{3}" r="4"/>')
        parts.append(one.format(_short(a), _short(b), _short(c), height, kind))
    return svg_box(180, 22, Markup("").join(parts), words, "pair")


def draw_bar(value: float, most: float, words: str, ends: tuple[float, float] | None = None) -> Markup:
    """A bar from the middle for numbers of both signs (`most` negative: from the left, for positive ones)."""
    scale = abs(most) or 1.0
    zero, unit = (60.0, 56.0) if most > 0 else (2.0, 114.0)
    end = zero + unit * float(np.clip(value / scale, -1, 1))
    inside = Markup('<rect class="bar {}" x="{}" y="3" width="{}" height="10"/>').format(
        "less" if value < 0 else "more", _short(min(zero, end)), _short(max(abs(end - zero), 0.5))
    )
    if ends is not None:
        a, b = (zero + unit * float(np.clip(e / scale, -1, 1)) for e in ends)
        inside += Markup('<path class="whisker" d="M{} 8H{}"/>').format(_short(a), _short(b))
    if most > 0:
        inside += Markup('<path class="axis" d="M60 0V16"/>')
    return svg_box(120, 16, inside, words, "cell")


def draw_histogram(counts: Array) -> Markup:
    """Counts as small bars, for a cell of a table."""
    most, wide = max(float(np.max(counts)), 1.0), 118 / len(counts)
    one = Markup('<rect class="bar more" x="{}" y="{}" width="{}" height="{}"/>')
    parts = [
        one.format(_short(1 + j * wide), _short(15 - 14 * n / most), _short(wide - 1), _short(14 * n / most))
        for j, n in enumerate(np.asarray(counts).tolist())
    ]
    words = "how values are spread, from the smallest to the largest: " + ", ".join(
        map(str, np.asarray(counts).tolist())
    )
    return svg_box(120, 16, Markup("").join(parts), words, "cell")


def _draw_axes(frame: ChartFrame, x: ChartAxis, y: ChartAxis) -> Markup:
    bottom, right = frame.height - frame.bottom, frame.width - frame.right
    parts = []
    for tick in x.ticks():
        at = _short(float(frame.x(x, np.array(tick))))
        parts.append(Markup('<path class="grid" d="M{0} {1}V{2}"/>').format(at, _short(frame.top), _short(bottom)))
        parts.append(_text(at, _short(bottom + 13), _tick_words(tick, x), "middle"))
    for tick in y.ticks():
        height = float(frame.y(y, np.array(tick)))
        parts.append(
            Markup('<path class="grid" d="M{0} {1}H{2}"/>').format(_short(frame.left), _short(height), _short(right))
        )
        parts.append(_text(_short(frame.left - 4), _short(height + 3.5), _tick_words(tick, y), "end"))
    middle = _short((frame.left + right) / 2)
    parts.append(_text(middle, _short(frame.height - 8), x.label, "middle"))
    half = _short((frame.top + bottom) / 2)
    turned = Markup('<text class="label" text-anchor="middle" transform="translate(10 {}) rotate(-90)">{}</text>')
    parts.append(turned.format(half, y.label))
    edge = Markup('<path class="axis" d="M{} {}V{}H{}"/>')
    return Markup("").join(parts) + edge.format(_short(frame.left), _short(frame.top), _short(bottom), _short(right))


def _text(x: str, y: str, words: str, anchor: str) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(x, y, anchor, words)


def _tick_words(value: float, axis: ChartAxis) -> str:
    """A tick's number, in thousands or millions where it is large.

    >>> axis = ChartAxis("", 0.0, 1.0)
    >>> [_tick_words(value, axis) for value in (0.2, 2500.0, -600_000.0, 25e6, 123_456.0)]
    ['0.2', '2500', '-600k', '25M', '123456']
    """
    if axis.log:
        return f"1e{round(math.log10(value))}" if not 0.01 <= value <= 1000 else f"{value:g}"
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        # As long as no digit is lost: words of a large tick would run into the name of the axis.
        if 10 * unit <= abs(value) < 1e4 * unit and value % (unit / 100) == 0:
            return f"{value / unit:.6g}{letter}"
    return f"{value:.7g}".replace("e+0", "e").replace("e+", "e")


def _line(_frame: ChartFrame, layer: ChartLayer, x: Array, y: Array, _to: Array | None) -> Markup:
    return Markup('<path class="line {}" d="{}"/>').format(layer.kind, _way(x, y))


def _guide(_frame: ChartFrame, _layer: ChartLayer, x: Array, y: Array, _to: Array | None) -> Markup:
    return Markup('<path class="guide" d="{}"/>').format(_way(x, y))


def _band(_frame: ChartFrame, _layer: ChartLayer, x: Array, y: Array, to: Array | None) -> Markup:
    assert to is not None
    there = _way(np.concatenate([x, x[::-1]]), np.concatenate([y, to[::-1]]))
    return Markup('<path class="band" d="{}Z"/>').format(there)


def _dots(_frame: ChartFrame, layer: ChartLayer, x: Array, y: Array, _to: Array | None) -> Markup:
    if layer.words:
        one = Markup('<circle class="dot {}" cx="{}" cy="{}" r="3.5"><title>{}</title></circle>')
        drawn = zip(x, y, layer.words, strict=True)
        return Markup("").join(one.format(layer.kind, _short(a), _short(b), words) for a, b, words in drawn)
    plain = Markup('<circle class="dot {}" cx="{}" cy="{}" r="2"/>')
    return Markup("").join(plain.format(layer.kind, _short(a), _short(b)) for a, b in zip(x, y, strict=True))


def _whiskers(_frame: ChartFrame, layer: ChartLayer, x: Array, y: Array, to: Array | None) -> Markup:
    assert to is not None
    parts = (f"M{_short(a)} {_short(b)}V{_short(c)}" for a, b, c in zip(x, y, to, strict=True))
    return Markup('<path class="whisker {}" d="{}"/>').format(layer.kind, "".join(parts))


def _bars(frame: ChartFrame, layer: ChartLayer, x: Array, y: Array, _to: Array | None) -> Markup:
    floor, wide = frame.height - frame.bottom, (x[1] - x[0] if len(x) > 1 else 20.0) - 1
    one = Markup('<rect class="bar more" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')
    words = layer.words or [""] * len(x)
    drawn = zip(x, y, words, strict=True)
    return Markup("").join(
        one.format(_short(a - wide / 2), _short(b), _short(wide), _short(max(floor - b, 0.0)), said)
        for a, b, said in drawn
    )


_SHAPES = {"line": _line, "guide": _guide, "band": _band, "dots": _dots, "whiskers": _whiskers, "bars": _bars}


def _way(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{_short(a)} {_short(b)}" for a, b in zip(x, y, strict=True))


def _short(value: float) -> str:
    """A length with one decimal, as short as it can be.

    >>> _short(12.0), _short(3.14159)
    ('12', '3.1')
    """
    return f"{float(value):.1f}".removesuffix(".0")


def thinned(count: int, most: int = 400) -> Array:
    """The numbers of at most so many of `count` things, spread evenly, the first and the last among them."""
    return np.arange(count) if count <= most else np.unique(np.linspace(0, count - 1, most).round().astype(int))


def shaded(share: float) -> str:
    """The class of a cell that is the darker the larger its share, from 0 to 1."""
    return f"shade-{min(9, max(0, round(9 * share)))}"
