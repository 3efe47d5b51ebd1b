"""Pictures of divergences: the terms of a KL, the path of a projection, both directions, a pmf and its density."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from certifit.divergence import Mixture, Projection, kl, minimise_kl
from certifit.divergence.integrals import is_discrete, is_scalar
from certifit.divergence.vectors import vector_pair
from certifit.exceptions import DataError
from certifit.families import Family, Gaussian
from certifit.plots.fitted_models import check_drawable
from certifit.plots.style import BLUE, GREY, RED, ink, legend_beside, new_axes, plain, shorten, tidy
from certifit.rows import Array


def plot_kl_terms(p: Any, q: Any, names: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the terms p log p/q of a divergence KL(p, q) as bars, with both probabilities: their sum is in the title.

    Terms may be negative, their sum is not. A term is infinite, and drawn in red to the top, where p has mass and q
    has none; it is 0 where p has none.

    Parameters
    ----------
    p, q : two probability vectors over the same entries, or two distributions of whole numbers
    names : (k,) words for the entries, optional
        Unless given they are numbered from 0.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_kl_terms([0.5, 0.5, 0.0], [0.25, 0.5, 0.25], ["a", "b", "c"])
    >>> ax.get_title(loc="left"), [round(float(bar.get_height()), 3) for bar in ax.patches]
    ('KL(p, q) = 0.3466, the sum of the bars', [0.347, 0.0, 0.0])
    """
    x, p_x, q_x = _discrete_pair(p, q)
    words = None if names is None else [shorten(name, 16) for name in names]
    if words is not None and len(words) != len(x):
        raise DataError(got=f"{len(words)} names", wanted=f"one for each of the {len(x)} entries")
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p_x > 0, p_x * np.log(p_x / q_x), 0.0)
    finite = np.isfinite(terms)
    ax = new_axes(ax, max(5.6, min(10.0, 0.35 * len(x) + 3.0)), 3.8)
    ax.bar(x[finite], terms[finite], width=0.7, color=BLUE, alpha=0.75, label="p log p/q")
    ax.plot(x, p_x, "o", color=ink(), markersize=6, label="p")
    ax.plot(x, q_x, "o", color=RED, markersize=6, markerfacecolor="none", markeredgewidth=1.5, label="q")
    if not finite.all():
        top = 1.15 * max(ax.get_ylim()[1], 1e-9)
        ax.bar(x[~finite], top, width=0.7, color=RED, alpha=0.3, hatch="//", label="infinite: q = 0 < p")
        ax.set_ylim(top=top)
    ax.axhline(0, color=GREY, linewidth=0.8)
    if words is None:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("x")
    else:
        ax.set_xticks(x, words, rotation=0 if sum(map(len, words)) < 60 else 45)
        plain(*ax.get_xticklabels())
    ax.set_title(f"KL(p, q) = {float(kl(p, q)):.4g}, the sum of the bars", loc="left", fontsize=10)
    legend_beside(ax)
    tidy(ax)
    return ax


def _discrete_pair(p: Any, q: Any) -> tuple[Array, Array, Array]:
    """Return places x (k,) and the probabilities that p and q give them; of members, where either has some mass."""
    if not isinstance(p, Family | Mixture) and not isinstance(q, Family | Mixture):
        vectors = vector_pair(p, q)
        return np.arange(len(vectors[0]), dtype=float), *vectors
    for one in (p, q):
        if not isinstance(one, Family | Mixture) or not is_scalar(one) or not is_discrete(one):
            raise DataError(
                got=f"p of type {type(p).__name__} and q of type {type(q).__name__}",
                wanted="two vectors of probabilities, or two distributions of whole numbers",
                fix="Densities of numbers are drawn by plot_directions and plot_pmf_and_density.",
            )
    x = np.unique(np.concatenate([_whole_numbers(one) for one in (p, q)]))
    with np.errstate(divide="ignore", invalid="ignore"):
        return x, _density(p, x), _density(q, x)


def _whole_numbers(p: Family | Mixture) -> Array:
    """Return the whole numbers within four standard deviations of the mean that have some mass."""
    sd = float(np.sqrt(p.variance))
    x = np.arange(np.floor(float(p.mean) - 4 * sd), np.ceil(float(p.mean) + 4 * sd) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return x[_density(p, x) > 0]


def plot_pmf_and_density(p: Family | Mixture, q: Family | Projection | None = None, ax: Axes | None = None) -> Axes:
    """Draw probabilities of whole numbers as bars of width one, whose areas they are, and a density over them.

    Parameters
    ----------
    p : a distribution of whole numbers: a member of a family, or a `Mixture`
    q : a member of a family of numbers, or what `minimise_kl` returns, optional
        The Gaussian nearest to p, which has its mean and its variance, unless given.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit.families import Binomial
    >>> ax = plot_pmf_and_density(Binomial(0.3, 20))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['Gaussian: mean 6, variance 4.2', 'Binomial: p 0.3, n 20']
    """
    if not isinstance(p, Family | Mixture) or not is_scalar(p) or not is_discrete(p):
        raise DataError(
            got=f"p of type {type(p).__name__}",
            wanted="a distribution of whole numbers, such as Binomial(0.3, 20)",
            fix="plot_directions draws densities of numbers.",
        )
    q = minimise_kl(p, Gaussian).member if q is None else getattr(q, "member", q)
    if not isinstance(q, Family) or not is_scalar(q) or is_discrete(q):
        raise DataError(
            got=f"q of type {type(q).__name__}", wanted="a density of numbers, such as Gaussian(6.0, 4.2)"
        )
    x = _whole_numbers(p)
    fine = np.linspace(x[0] - 1, x[-1] + 1, 801)
    with np.errstate(divide="ignore", invalid="ignore"):
        bars, curve = _density(p, x), _density(q, fine)
    ax = new_axes(ax, 6.4, 3.8)
    ax.bar(x, bars, width=1.0, color=GREY, alpha=0.35, edgecolor=GREY, linewidth=0.6, label=_words(p))
    ax.plot(fine, curve, color=BLUE, linewidth=2, label=_words(q))
    ax.set_xlabel("x")
    ax.set_ylabel("probability, density")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0, 1.3 * max(bars.max(), curve.max()))
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    tidy(ax)
    return ax


def _words(p: Family | Mixture) -> str:
    return shorten(_member_words(p), 44) if isinstance(p, Family) else f"mixture of {len(p.members)}"


def plot_projection_path(projection: Projection, ax: Axes | None = None) -> Axes:
    """Draw the steps of a gradient descent, over level lines if there are two parameters, else the fall of the value.

    Parameters
    ----------
    projection : Projection
        What `minimise_kl(..., method="gradient")` returns.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit.families import Binomial, Gaussian
    >>> ax = plot_projection_path(minimise_kl(Binomial(0.3, 20), Gaussian, method="gradient"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('mean', 'variance')
    """
    check_drawable(projection, "what minimise_kl returns", "path", "member", "objective")
    path = projection.path
    if path is None:
        raise DataError(
            got="a projection in closed form",
            wanted="one with a path",
            fix='Use minimise_kl(..., method="gradient").',
        )
    ax = new_axes(ax, 6.4, 4.4)
    if path.ordinary.shape[1] == 2:
        _draw_level_lines(projection, path.ordinary, ax)
    else:
        fall = np.maximum(path.objective - path.objective[-1], np.finfo(float).eps)
        ax.semilogy(np.arange(len(fall)), fall, "o-", color=BLUE, markersize=4)
        ax.set_xlabel("step")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylabel("divergence above its last value")
        tidy(ax)
    return ax


def _draw_level_lines(projection: Projection, steps: Array, ax: Axes) -> None:
    """Draw level lines of the divergence in the two ordinary parameters, and the steps (n, 2) on them."""
    member = projection.member
    names = [name for name in member.parameters if name not in member.known]
    low, high = steps.min(axis=0), steps.max(axis=0)
    pad = 0.35 * np.maximum(high - low, 1e-3 * np.abs(high) + 1e-9)
    low = np.where(low > 0, np.maximum(low - pad, 0.3 * low), low - pad)  # parameters that must be positive stay so
    first, second = (np.linspace(low[i], high[i] + pad[i], 24) for i in (0, 1))
    level = np.array([[_value_at(projection, dict(zip(names, (a, b), strict=True))) for a in first] for b in second])
    above = level - np.nanmin(level)
    ax.contour(first, second, np.sqrt(above), levels=12, colors=GREY, linewidths=0.6, alpha=0.7)
    ax.plot(*steps.T, "o-", color=BLUE, markersize=4, linewidth=1.2, label=f"{len(steps) - 1} steps")
    ax.plot(*steps[0], "s", color=GREY, markersize=7, label="start")
    ax.plot(*steps[-1], "*", color=RED, markersize=13, label="nearest member")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.set_title(loc="left", label=f"steps over level lines of {_divergence_words(projection)}", fontsize=10)
    legend_beside(ax, fontsize=9)
    tidy(ax)


def _value_at(projection: Projection, parameters: dict[str, float]) -> float:
    member = projection.member
    try:
        return projection.objective.at(type(member)(**parameters, **member.known_values)).value
    except DataError:  # no such member
        return np.nan


def _divergence_words(projection: Projection) -> str:
    return "KL(p, q)" if projection.direction == "forward" else "KL(q, p)"


def plot_directions(p: Family | Mixture, family: type[Family], ax: Axes | None = None, **known: Any) -> Axes:
    """Draw the density of p and of its two projections: forward covers the mass, reverse seeks a mode.

    Probabilities of whole numbers are drawn as points.

    Parameters
    ----------
    p : a distribution of numbers: a member of a family, or a `Mixture`
    family : class
        The family to project on; discrete if p is, continuous if p is.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    known : parameters of the family that are given, such as n of Binomial

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit.families import Gaussian
    >>> p = Mixture([0.4, 0.6], [Gaussian(-3.0, 1.0), Gaussian(3.0, 1.0)])
    >>> ax = plot_directions(p, Gaussian)
    >>> [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()]
    ['p', 'forward, covers the mass', 'reverse, seeks a mode']
    """
    _check_same_kind(p, family, known)
    forward = minimise_kl(p, family, "forward", **known)
    reverse = minimise_kl(p, family, "reverse", **known)
    discrete = is_discrete(p)
    sd = float(np.sqrt(p.variance))
    low, high = float(p.mean) - 3.5 * sd, float(p.mean) + 3.5 * sd
    x = np.arange(np.floor(low), np.ceil(high) + 1) if discrete else np.linspace(low, high, 801)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_x, *q_x = (_density(q, x) for q in (p, forward.member, reverse.member))
    there = p_x > 0 if discrete else np.ones(len(x), dtype=bool)
    ax = new_axes(ax, 6.8, 4.0)
    if discrete:
        ax.bar(x[there], p_x[there], color=GREY, alpha=0.3, width=0.9, label="p")
    else:
        ax.fill_between(x, p_x, color=GREY, alpha=0.3, linewidth=0, label="p")
    looks = ((forward, BLUE, "o", "forward, covers the mass"), (reverse, RED, "s", "reverse, seeks a mode"))
    for density, (found, colour, marker, words) in zip(q_x, looks, strict=True):
        label = f"{words}: {_divergence_words(found)} = {found.kl:.3g}\n{shorten(_member_words(found.member), 44)}"
        style = {"marker": marker, "markersize": 4, "linewidth": 1.0} if discrete else {"linewidth": 1.8}
        ax.plot(x[there], density[there], color=colour, label=label, **style)
    ax.set_xlabel("x")
    ax.set_ylabel("probability" if discrete else "density")
    ax.set_ylim(0, 1.5 * ax.get_ylim()[1])  # room for the legend
    ax.legend(frameon=False, fontsize=9, loc="upper left")
    tidy(ax)
    return ax


def _density(q: Any, x: Array) -> Array:
    """Return the density at x (m,), 0 outside the support."""
    inside = np.ones(len(x), dtype=bool)
    support = getattr(q, "support", None)
    if support is not None and hasattr(support, "contains"):
        inside = np.asarray(support.contains(x), dtype=bool)
    found = np.zeros(len(x))
    found[inside] = np.exp(q.log_density(x[inside]))
    return found


def _check_same_kind(p: Any, family: Any, known: dict[str, Any]) -> None:
    """Refuse p and families that have no reverse projection: KL(q, p) needs both over the same kind of x."""
    if not isinstance(p, Family | Mixture) or not is_scalar(p):
        raise DataError(
            got=f"p of type {type(p).__name__}",
            wanted="a distribution of numbers: a member of a family, or a Mixture of them",
            fix="Fit a family to a sample first.",
        )
    if not (isinstance(family, type) and issubclass(family, Family)):
        name = type(family).__name__
        raise DataError(got=f"{family!r} as the family", wanted="a class, such as Gaussian", fix=f"Pass {name}.")
    kinds = [
        "discrete" if discrete else "continuous" for discrete in (is_discrete(p), _family_discrete(family, known))
    ]
    if kinds[0] != kinds[1]:
        raise DataError(
            got=f"a {kinds[0]} p ({type(p).__name__}) and a {kinds[1]} family ({family.__name__})",
            wanted="both discrete or both continuous: KL(q, p) of the reverse direction is infinite otherwise",
            fix="minimise_kl(p, family) projects forward, which is all there is.",
        )


def _family_discrete(family: type[Family], known: dict[str, Any]) -> bool:
    return bool(family.support_of(**known).discrete)


def _member_words(member: Family) -> str:
    inside = ", ".join(f"{name} {value:.3g}" for name, value in member.parameters.items())
    return f"{type(member).__name__}: {inside}"
