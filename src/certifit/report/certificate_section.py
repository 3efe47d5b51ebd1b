"""A certificate on a page: drawn, in words, and with what it does not say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from certifit.core import Certificate, Mark
from certifit.report.charts import ChartAxis, ChartLayer, axis_around, draw_chart, svg_box
from certifit.report.page import PageSection

PROVES = {
    "optimal": "No other parameters of this model, on these encoded rows and with this penalty, have an objective "
    "that is smaller by more than the gap: a lower bound is proved, which anyone can recompute.",
    "bounded": "The objective is at most the printed ratio times the best that any solution could have.",
    "exact": "Every fitted number is what its formula makes of these rows.",
    "stationary": "One more step of the method changes next to nothing; a better solution may lie elsewhere.",
    "greedy": "Every choice was the best of the candidates looked at; other choices may be better together.",
    "statistical": "The claim is true except with the small probability that is printed.",
    "unproved": "Nothing yet: the proof was left to an audit.",
    "impossible": "There is no solution, and the certificate carries the reason.",
}
PROVES_NOT = (
    "It does not say that the model is useful, that it will be right for new rows, that columns cause anything, or "
    "that the table is true. How it does on rows it has not seen is a matter of the scores."
)


def certificate_section(
    certificate: Certificate, model: Any, recheck: str, proves_not: str = PROVES_NOT
) -> PageSection:
    """The section on what is proved about a fitted model."""
    return PageSection(
        "certificate",
        {
            "certificate": certificate,
            "proves": PROVES[certificate.kind],
            "proves_not": proves_not,
            "ruler": _ruler(certificate),
            "convergence": _convergence(getattr(model, "history_", ()), certificate),
            "recheck": recheck,
        },
    )


def _ruler(certificate: Certificate) -> Markup | None:
    """The gap and what is allowed on a scale of powers of ten, as shares of the objective."""
    size = certificate.scale if certificate.limit > abs(certificate.objective) else abs(certificate.objective)
    if certificate.kind != "optimal" or not (size > 0 and math.isfinite(size) and math.isfinite(certificate.gap)):
        return None
    gap, allowed = (max(value / size, 1e-17) for value in (certificate.gap, certificate.limit))
    axis = ChartAxis("", 1e-17, max(10.0, gap * 10), True)
    at = dict(zip(("gap", "allowed"), (20 + 320 * axis.place(np.array([gap, allowed]))).tolist(), strict=True))
    verdict = "good" if certificate.holds else "bad"
    ticks = [t for t in axis.ticks(6) if t <= 1]
    places = (20 + 320 * axis.place(np.array(ticks))).tolist()
    parts = [Markup('<path class="axis" d="M20 44H340"/>')]
    for tick, x in zip(ticks, places, strict=True):
        words = "1" if tick == 1 else f"1e{round(math.log10(tick))}"
        parts.append(Markup('<path class="axis" d="M{0:.1f} 41V47"/>').format(x))
        parts.append(Markup('<text x="{:.1f}" y="59" text-anchor="middle">{}</text>').format(x, words))
    parts.append(Markup('<path class="guide" d="M{0:.1f} 4V44"/>').format(at["allowed"]))
    left = at["allowed"] > 260  # no room to the right
    parts.append(
        Markup('<text x="{:.1f}" y="12" text-anchor="{}">allowed {:.2g}</text>').format(
            at["allowed"] + (-4 if left else 4), "end" if left else "start", allowed
        )
    )
    dot = Markup('<circle class="dot {}" cx="{:.1f}" cy="44" r="6"/>')
    parts.append(dot.format(verdict, at["gap"]))
    said = Markup('<text class="strong" x="{:.1f}" y="32" text-anchor="{}">gap {}</text>')
    shown = "below 1e-17" if gap <= 1e-17 else f"{gap:.2g}"
    room = at["allowed"] - at["gap"]
    aside = at["gap"] > 290 or (-6 < room < 80 < at["gap"])  # to the left, off the edge and off the dashed line
    parts.append(said.format(at["gap"] + (6 if aside else -6), "end" if aside else "start", shown))
    below = Markup('<text x="180" y="76" text-anchor="middle">{}</text>')
    parts.append(below.format("distance to the best possible, as a share of the objective"))
    words = f"The gap is {gap:.2g} of the objective, {allowed:.2g} is allowed"
    return svg_box(360, 82, Markup("").join(parts), words)


def _convergence(history: Sequence[Any], certificate: Certificate) -> Markup | None:
    """The gap that was still open after each pass of the fit, or what it promised to gain."""
    tol, what = certificate.tol, "gap still open" if certificate.kind == "optimal" else "gain still promised"
    marks = [mark for mark in history if isinstance(mark, Mark) and math.isfinite(mark.gain) and mark.gain > 0]
    if len(marks) < 2:
        return None
    passes = np.array([place + 1.0 for place, mark in enumerate(history) if mark in marks])
    gains = np.maximum([mark.gain for mark in marks], 1e-17)  # what is below is rounding
    seconds = [mark.seconds - history[0].seconds for mark in marks]
    said = [f"pass {p:.0f}, {1e3 * s:.3g} ms: {g:.2g}" for p, s, g in zip(passes, seconds, gains, strict=True)]
    across = axis_around("pass over the rows", passes)
    up = axis_around(f"{what}, share", gains, np.array([tol]), log=True)
    ends = np.array([across.low, across.high])
    layers = [ChartLayer("line", passes, gains), ChartLayer("dots", passes, gains, words=said)]
    if tol > 0:
        layers.insert(0, ChartLayer("guide", ends, np.full(2, tol)))
    return draw_chart(layers, across, up, f"{what}: from {gains[0]:.2g} to {gains[-1]:.2g}; {tol:.2g} was asked for")
