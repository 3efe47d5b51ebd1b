"""Pictures of assessments: scores with their intervals, curves in their bands, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.plots.style import BLUE, COLOURS, GREY, RED, ink, label_axes, new_axes, plain, shorten, tidy
from certifit.rows import Array


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
    what = getattr(found, "what", "score")
    ax.set_xlabel(f"{what}, interval of {100 * claims[0].confidence:g} %" if claims else what)
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
    if np.isfinite([found.claim.low, found.claim.high]).all():
        ax.axhspan(found.claim.low, found.claim.high, color=BLUE, alpha=0.15, linewidth=0)
    ax.axhline(found.claim.corrected, color=BLUE, linestyle=":")
    names = list(dict.fromkeys(name for setting in found.settings for name in setting))
    words = [", ".join(str(setting.get(name, "")) for name in names) for setting in found.settings]
    shown = range(0, len(words), -(-len(words) // 12))  # every one, where there is room for it
    slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if max(map(len, words)) > 6 else {}
    ax.set_xticks(shown, [shorten(words[i]) for i in shown], **slanted)
    plain(*ax.get_xticklabels())
    label_axes(ax, ", ".join(names), found.claim.metric)
    tidy(ax)
    return ax


def plot_classes(found: Any, ax: Axes | None = None) -> Axes:
    """Draw precision and recall of classes with their intervals."""
    names = found.columns["class"]
    ax = new_axes(ax, 6.0, 0.8 + 0.6 * len(names))
    for name, colour, shift in (("precision", BLUE, -0.15), ("recall", RED, 0.15)):
        share, low, high = (np.asarray(found.columns[f"{name}{end}"]) for end in ("", " from", " to"))
        places = np.arange(len(names)) + shift
        ax.hlines(places, low, high, color=colour, linewidth=3, alpha=0.5)
        ax.plot(share, places, "o", color=colour, label=name)
    ax.set_yticks(range(len(names)), [shorten(name) for name in names])
    plain(*ax.get_yticklabels())
    ax.set_ylim(len(names) - 0.5, -0.5)
    label_axes(ax, "share", "class")
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    tidy(ax)
    return ax


def plot_confusion(found: Any, ax: Axes | None = None) -> Axes:
    """Draw which share of each true class has which answer, with the ends of its interval below it."""
    names = list(dict.fromkeys(found.columns["true class"]))
    k = len(names)
    share, low, high = (np.reshape(found.columns[name], (k, k)) for name in ("share", "from", "to"))
    ax = new_axes(ax, 1.5 + 0.9 * k, 1.2 + 0.7 * k)
    ax.imshow(np.nan_to_num(share), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i in range(k):
        for j in range(k):
            words = f"{share[i, j]:.2f}" + f"\n{low[i, j]:.2f}–{high[i, j]:.2f}" * bool(np.isfinite(low[i, j]))
            ax.text(
                j, i, words, ha="center", va="center", fontsize=8, color="white" if share[i, j] > 0.5 else "black"
            )
    ax.set_xticks(range(k), [shorten(name) for name in names])
    ax.set_yticks(range(k), [shorten(name) for name in names])
    plain(*ax.get_xticklabels(), *ax.get_yticklabels())
    label_axes(ax, "answer", "true class")
    return ax


def plot_thresholds(found: Any, ax: Axes | None = None) -> Axes:
    """Draw precision, recall and specificity over the threshold, each in its interval."""
    ax = new_axes(ax, 6.0, 4.0)
    at = np.asarray(found.columns["threshold"])
    for name, colour in zip(("precision", "recall", "specificity"), COLOURS, strict=False):
        share, low, high = (np.asarray(found.columns[f"{name}{end}"]) for end in ("", " from", " to"))
        ax.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(at, share, "o-", color=colour, markersize=3, label=name)
    ax.set_ylim(0, 1.02)
    label_axes(ax, "threshold", "share")
    ax.legend(frameon=False)
    plain(ax.set_title(shorten(found.title, 48)))
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
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
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


def plot_estimates(
    estimates: Mapping[str, Any], truth: float, xlabel: str = "estimate", ax: Axes | None = None
) -> Axes:  # fmt: skip
    """Draw what several ways of estimating one number said on many samples, beside the number itself.

    A dot is one sample's estimate; the bar is their mean: its distance from the line is the bias, the spread of the
    dots the variance.

    Parameters
    ----------
    estimates : mapping of titles to (repeats,) numbers
    truth : float, what is estimated
    xlabel : str, the axis's words
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_estimates({"mean of 2": [1.5, 0.5, 1.0], "mean of 9": [0.9, 1.1, 1.0]}, 1.0)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['mean of 2', 'mean of 9']
    """
    rows = {title: _numbers(title, values, 1) for title, values in estimates.items()}
    if not rows:
        raise DataError(got="no estimates", wanted="some for each title")
    ax = new_axes(ax, 6.0, 0.9 + 0.55 * len(rows))
    ax.axvline(truth, color=ink(), linewidth=1)
    for place, values in enumerate(rows.values()):
        # Dots are spread over the height of a line, in their order, so that they do not hide each other.
        heights = place + np.linspace(-0.28, 0.28, len(values))
        ax.plot(values, heights, ".", color=BLUE, alpha=0.7, markeredgewidth=0)
        ax.plot([values.mean()] * 2, [place - 0.38, place + 0.38], color=RED, linewidth=2.5)
    ax.set_yticks(range(len(rows)), [shorten(title) for title in rows])
    plain(*ax.get_yticklabels())
    ax.set_ylim(len(rows) - 0.5, -0.5)
    label_axes(ax, f"{shorten(xlabel)} (line: truth; bars: means)", "")
    tidy(ax)
    return ax


def plot_coverage(intervals: Mapping[str, Any], truth: Any, ax: Axes | None = None) -> Axes:
    """Draw many intervals for one number after another, and in another colour those that do not hold it.

    Parameters
    ----------
    intervals : mapping of titles to (repeats, 2) lower and upper ends
    truth : float, or (repeats,), what each interval should hold: intervals are drawn as distances from it
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_coverage({"wide": [[0, 2], [0.5, 3]], "narrow": [[0.9, 1.1], [1.1, 1.2]]}, 1.0)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['wide: 100 %\\nhold it', 'narrow: 50 %\\nhold it']
    """
    rows = {title: _numbers(title, ends, 2) for title, ends in intervals.items()}
    if not rows:
        raise DataError(got="no intervals", wanted="some for each title")
    ax = new_axes(ax, 6.0, 3.6)
    ax.axhline(0, color=ink(), linewidth=1)
    labels = []
    for place, (title, ends) in enumerate(rows.items()):
        away = ends - np.broadcast_to(np.asarray(truth, dtype=np.float64), len(ends))[:, None]
        held = (away[:, 0] <= 0) & (away[:, 1] >= 0)
        at = place + np.linspace(-0.42, 0.42, len(ends))
        for which, colour in ((held, BLUE), (~held, RED)):
            ax.vlines(at[which], away[which, 0], away[which, 1], color=colour, linewidth=min(2.0, 60 / len(ends)))
        labels.append(f"{shorten(title)}: {100 * held.mean():.0f} %\nhold it")
    ax.set_xticks(range(len(rows)), labels)
    plain(*ax.get_xticklabels())
    ax.set_xlim(-0.5, len(rows) - 0.5)
    label_axes(ax, "", "interval, from the truth")
    tidy(ax)
    return ax


def _numbers(title: str, values: Any, width: int) -> Array:
    """Finite numbers (repeats,), or (repeats, 2) where two are wanted."""
    found = np.asarray(values, dtype=np.float64)
    fits = found.ndim == width and found.size > 0 and (width == 1 or found.shape[1] == width)
    if not fits or not np.isfinite(found).all():
        shape = "(repeats,)" if width == 1 else "(repeats, 2)"
        raise DataError(got=f"{shorten(title)!r} of shape {found.shape}", wanted=f"finite numbers of shape {shape}")
    return found
