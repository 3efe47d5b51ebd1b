"""Pictures of assessments: scores with their intervals, curves in their bands, calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.plots.style import BLUE, COLOURS, GREY, label_axes, new_axes, plain, shorten, tidy


def plot_intervals(found: Any, ax: Axes | None = None) -> Axes:
    """Draw the estimates of `claims` with their intervals, a line each."""
    claims = found.claims
    ax = new_axes(ax, 6.0, 0.8 + 0.5 * len(claims))
    for place, claim in enumerate(claims):
        if np.isfinite([claim.low, claim.high]).all():
            ax.plot([claim.low, claim.high], [place, place], color=BLUE, linewidth=3, alpha=0.5)
        ax.plot([claim.estimate], [place], "o", color=BLUE)
    ax.set_yticks(range(len(claims)), [shorten(claim.metric) for claim in claims])
    plain(*ax.get_yticklabels())
    ax.set_ylim(len(claims) - 0.5, -0.5)
    ax.set_xlabel(f"score, interval of {100 * claims[0].confidence:g} %" if claims else "score")
    tidy(ax)
    return ax


def plot_band(curve: Any, ax: Axes | None = None) -> Axes:
    """Draw a curve in its band."""
    ax = new_axes(ax, 4.5, 4.5)
    ax.fill_between(curve.x, curve.low, curve.high, color=BLUE, alpha=0.2, linewidth=0, step=None)
    ax.plot(curve.x, curve.y, color=BLUE)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    label_axes(ax, *curve.axes)
    plain(ax.set_title(shorten(curve.title, 48)))
    tidy(ax)
    return ax


def plot_differences(found: Any, ax: Axes | None = None) -> Axes:
    """Draw differences of pairs of models with their intervals, and the region of no practical difference."""
    ax = new_axes(ax, 6.0, 0.8 + 0.5 * len(found.pairs))
    ax.axvspan(-found.rope, found.rope, color=GREY, alpha=0.2, linewidth=0)
    ax.axvline(0, color=GREY, linewidth=1)
    for place, pair in enumerate(found.pairs):
        if np.isfinite([pair.low, pair.high]).all():
            ax.plot([pair.low, pair.high], [place, place], color=BLUE, linewidth=3, alpha=0.5)
        ax.plot([pair.claim.difference], [place], "o", color=BLUE)
    names = [shorten(f"{pair.claim.first} - {pair.claim.second}") for pair in found.pairs]
    ax.set_yticks(range(len(names)), names)
    plain(*ax.get_yticklabels())
    ax.set_ylim(len(names) - 0.5, -0.5)
    plain(ax.set_xlabel(f"difference of {shorten(found.metric)}"))
    tidy(ax)
    return ax


def plot_settings(found: Any, ax: Axes | None = None) -> Axes:
    """Draw the scores of settings with their standard errors, the chosen one, and its corrected score."""
    ax = new_axes(ax, 6.0, 4.0)
    means = found.claim.scores.mean(axis=0)
    errors = found.claim.inflation * found.claim.scores.std(axis=0) / np.sqrt(len(found.claim.scores))
    ax.errorbar(range(len(means)), means, errors, fmt="o", color=GREY, capsize=2)
    chosen = found.claim.chosen
    ax.errorbar([chosen], [means[chosen]], [errors[chosen]], fmt="o", color=BLUE, capsize=2)
    ax.axhspan(found.claim.low, found.claim.high, color=BLUE, alpha=0.15, linewidth=0)
    ax.axhline(found.claim.corrected, color=BLUE, linestyle=":")
    label_axes(ax, "setting", found.claim.metric)
    tidy(ax)
    return ax


def plot_calibration(found: Any, ax: Axes | None = None) -> Axes:
    """Draw how often events came true over their probabilities."""
    ax = new_axes(ax, 4.5, 4.5)
    p, share, low, high = (np.asarray(found.columns[name]) for name in ("probability", "share", "from", "to"))
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":")
    ax.errorbar(p, share, [share - low, high - share], fmt="o", color=BLUE, capsize=2)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    label_axes(ax, "probability", "share that came true")
    plain(ax.set_title(shorten(found.title, 48)))
    tidy(ax)
    return ax


def plot_calibration_scores(found: Any, ax: Axes | None = None) -> Axes:
    """Draw the share of calibration scores up to each value, by group, and the radius that the coverage asks for."""
    ax = new_axes(ax, 6.0, 4.0)
    for place, (group, values) in enumerate(found.scores.items()):
        colour, name = COLOURS[place % len(COLOURS)], "all" if group is None else shorten(str(group))
        heights = np.arange(1, len(values) + 1) / len(values)
        ax.step(np.sort(values), heights, where="post", color=colour, label=name)
        if group in found.radius:
            ax.axvline(found.radius[group], color=colour, linestyle=":")
    ax.axhline(found.coverage, color=GREY, linewidth=1)
    ax.set_ylim(0, 1.02)
    label_axes(ax, "score", "share of calibration rows")
    if len(found.scores) > 1:
        plain(*ax.legend(frameon=False).get_texts())
    tidy(ax)
    return ax


def plot_score_curve(found: Any, ax: Axes | None = None) -> Axes:
    """Draw scores of rows left out with their intervals, and of rows fitted, over what varies."""
    ax = new_axes(ax, 6.0, 4.0)
    numbers = all(isinstance(value, int | float) for value in found.at)
    at = np.asarray(found.at, dtype=float) if numbers else np.arange(len(found.at))
    estimate, low, high = (np.array([getattr(c, n) for c in found.claims]) for n in ("estimate", "low", "high"))
    ax.fill_between(at, low, high, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(at, estimate, "o-", color=BLUE, label="rows left out")
    ax.plot(at, found.fitted, "s:", color=GREY, label="rows fitted")
    if numbers and (at > 0).all() and at.max() > 100 * at.min():
        ax.set_xscale("log")
    if not numbers:
        ax.set_xticks(at, [shorten(str(value)) for value in found.at])
        plain(*ax.get_xticklabels())
    label_axes(ax, shorten(found.axis), shorten(found.metric))
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_error_parts(found: Any, ax: Axes | None = None) -> Axes:
    """Draw bias and variance as one bar."""
    ax = new_axes(ax, 6.0, 1.6)
    ax.barh([0], [found.bias], color=GREY, label="bias² and noise")
    ax.barh([0], [found.variance], left=[found.bias], color=BLUE, label="variance")
    ax.set_yticks([0], [shorten(found.model)])
    plain(*ax.get_yticklabels())
    ax.set_xlabel("error")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_penalty_range(found: Any, ax: Axes | None = None) -> Axes:
    """Draw errors over C, the lower bounds between them, and the best error less what is proved."""
    ax = new_axes(ax, 6.0, 4.0)
    Cs = found.claim.Cs
    ax.step(Cs, np.append(found.bounds, found.bounds[-1]), where="post", color=GREY, label="proved lower bound")
    ax.plot(Cs, found.errors, "o-", color=BLUE, markersize=3, label="error")
    ax.axhline(found.claim.error - found.claim.eps, color=BLUE, linestyle=":")
    ax.set_xscale("log")
    label_axes(ax, "C", "share of wrong classes")
    ax.legend(frameon=False)
    tidy(ax)
    return ax
