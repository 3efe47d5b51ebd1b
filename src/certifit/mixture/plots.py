"""Pictures of mixtures: components among their rows, EM step by step, its staircase, and how many components."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator
from scipy.special import logsumexp, xlogy
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from certifit.checkers.mixture.gaussian import COVARIANCE_TYPES
from certifit.exceptions import DataError
from certifit.mixture.em import MixtureParameters, e_step, joint_log_densities, m_step
from certifit.plots.fitted_models import ask, check_drawable
from certifit.plots.style import (
    BLUE,
    COLOURS,
    GREY,
    MARKERS,
    RED,
    ink,
    label_axes,
    legend_beside,
    new_axes,
    new_grid,
    tidy,
)
from certifit.plots.tables import TableView, view_table
from certifit.rows import Array, as_rows


# --------------------------------------------------------------------------------------------- components and rows
def plot_mixture(model: Any, X: Any, columns: Sequence[int | str] = (0, 1), ax: Axes | None = None) -> Axes:
    """Draw rows in the plane of two columns, coloured by their responsibilities, and the components as ellipses.

    Ellipses hold 50 % and 95 % of a component; where there are more columns they are those of its marginal
    distribution. A row that several components may have drawn has a colour between theirs.

    Parameters
    ----------
    model : fitted GaussianMixture
        Ours or scikit-learn's.
    X : table of numbers
    columns : two columns, by number or name
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
    >>> X = load_iris().data[:, 2:]
    >>> ax = plot_mixture(GaussianMixture(3, random_state=0).fit(X), X)
    >>> len(ax.lines), ax.get_xlabel()
    (6, 'column 0')
    """
    check_drawable(model, "a fitted GaussianMixture", "weights_", "means_", "covariances_", "covariance_type")
    k, d = np.shape(model.means_)
    table, _ = view_table(X)
    if d < 2 or table.n_columns != d:
        raise DataError(
            got=f"a model of {d} columns and a table of {table.n_columns}", wanted="two columns or more, the model's"
        )
    chosen = list(table.pair(columns))
    R = ask(model, "predict_proba", table.source)
    Z = _two_columns(table, chosen)
    ax = new_axes(ax, 5.6, 4.4)
    C = np.asarray(COVARIANCE_TYPES[model.covariance_type].expand(np.asarray(model.covariances_), k, d))
    _draw_rows(ax, Z, R)
    _draw_components(ax, np.asarray(model.means_)[:, chosen], C[:, chosen][:, :, chosen])
    known = getattr(model, "feature_names_in_", None) if table.names is None else table.names
    label_axes(ax, *(f"column {j}" if known is None else known[j] for j in chosen))
    tidy(ax)
    return ax


def _two_columns(table: TableView, columns: Sequence[int]) -> Array:
    return np.column_stack([table.numbers(j) for j in columns])


def _colours(k: int) -> Array:
    return np.array([to_rgb(COLOURS[i % len(COLOURS)]) for i in range(k)])  # (k, 3)


def _draw_rows(ax: Axes, Z: Array, R: Array) -> None:
    size = float(np.clip(8000 / max(1, len(Z)), 3, 22))
    ax.scatter(Z[:, 0], Z[:, 1], c=np.clip(R @ _colours(R.shape[1]), 0, 1), s=size, alpha=0.8, linewidths=0)


def _draw_components(ax: Axes, means: Array, C: Array) -> None:
    """Draw ellipses that hold half and 95 % of each component: (x - m)ᵀC⁻¹(x - m) = -2 log(1 - share)."""
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.array([np.cos(angle), np.sin(angle)])
    for m, S, colour in zip(means, C, _colours(len(means)), strict=True):
        L = np.linalg.cholesky(S)
        for share, width in ((0.5, 2.0), (0.95, 1.0)):
            ellipse = m[:, None] + np.sqrt(-2 * np.log(1 - share)) * L @ circle
            ax.plot(*ellipse, color=0.75 * colour, linewidth=width)
        ax.scatter(m[0], m[1], color=[0.75 * colour], marker="P", s=70, edgecolors="white", zorder=5)


# --------------------------------------------------------------------------------------------- EM step by step
class EMFrame(NamedTuple):
    """EM after one of its steps; all numbers are means over rows, less the penalty."""

    name: str
    mixture: MixtureParameters
    q: Array  # (n, k) responsibilities
    loglik: float
    bound: float
    kl: float


def em_frames(model: Any, X: Any, iterations: int = 3) -> list[EMFrame]:
    """Run EM step by step: the start, with equal responsibilities, then every E step and every M step.

    Parameters
    ----------
    model : a certifit GaussianMixture or Mixture, fitted or not; its settings say where EM starts
    X : complete rows, as `fit` takes them
    iterations : number of E and M steps to show one by one

    Returns
    -------
    list of EMFrame

    Examples
    --------
    >>> from certifit import Mixture
    >>> frames = em_frames(Mixture("poisson", random_state=0), [[0.0], [1.0], [7.0], [9.0]], 1)
    >>> [frame.name for frame in frames]
    ['start', 'E step 1', 'M step 1']
    >>> all(abs(f.loglik - f.bound - f.kl) < 1e-12 and f.kl > -1e-12 for f in frames)
    True
    """
    if not hasattr(model, "_at"):
        raise DataError(
            got=f"a {type(model).__name__} of {type(model).__module__.partition('.')[0]}",
            wanted="a GaussianMixture or Mixture of certifit, whose steps can be taken one by one",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start has no certificate
        at = clone(model).set_params(max_iter=0).fit(X)._at()
    rows = as_rows(X).load()
    k = len(at.weights)
    q = np.full((rows.n_rows, k), 1.0 / k)
    frames = [_frame("start", at, q, rows.X)]
    for i in range(1, iterations + 1):
        logits = joint_log_densities(at, rows.X)
        q = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        frames.append(_frame(f"E step {i}", at, q, rows.X))
        at, _ = m_step(at, rows.sum(partial(e_step, at)))
        frames.append(_frame(f"M step {i}", at, q, rows.X))
    return frames


def _frame(name: str, at: MixtureParameters, q: Array, X: Array) -> EMFrame:
    logits = joint_log_densities(at, X)
    log_p = logsumexp(logits, axis=1)
    bound = ((q * logits).sum(axis=1) - xlogy(q, q).sum(axis=1)).mean()
    kl = (xlogy(q, q).sum(axis=1) - (q * (logits - log_p[:, None])).sum(axis=1)).mean()
    penalty = at.components.penalty()
    return EMFrame(name, at, q, float(log_p.mean() - penalty), float(bound - penalty), float(kl))


def plot_em_steps(
    model: Any,
    X: Any,
    iterations: Sequence[int] = (1, 2, 3),
    names: tuple[str, str] | None = None,
    axes: Any = None,
) -> Array:
    """Draw EM on rows of two columns: the start, both steps of these iterations, and where EM comes to rest.

    Rows have the colours of their responsibilities q, grey before the first E step. Beside each picture: the
    log-likelihood as the sum of the bound (blue) and KL(q || posterior) (red), in nats a row; an arrow says that the
    bound lies below the picture.

    Parameters
    ----------
    model : a certifit GaussianMixture, fitted or not
        Its settings say where EM starts.
    X : table of two columns, complete
    iterations : numbers of the iterations to show, from 1
    names : of the two columns, optional
        Those of the table unless given.
    axes : 2 + 2 Axes for each iteration, optional
        Where to draw; those of a new figure unless given.

    Returns
    -------
    array (m,) of Axes
        One for each picture; the column beside it is `ax.child_axes[0]`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
    >>> axes = plot_em_steps(GaussianMixture(2, random_state=0), load_iris().data[:, 2:], [1])
    >>> [ax.get_title(loc="left").split("\\n")[0] for ax in axes]
    ['start', 'E step 1', 'M step 1', 'at rest']
    """
    iterations = [iterations] if isinstance(iterations, int) else list(iterations)
    if not iterations or not all(isinstance(i, (int, np.integer)) and i >= 1 for i in iterations):
        raise DataError(got=f"iterations={iterations}", wanted="numbers of iterations, from 1")
    every = em_frames(model, X, max(iterations))
    frames = [every[0], *(every[2 * i + j] for i in iterations for j in (-1, 0))]
    own = frames[0].mixture.components
    if not hasattr(own, "C") or own.means.shape[1] != 2:
        raise DataError(got="components that are no ellipses in a plane", wanted="a GaussianMixture of two columns")
    fitted = clone(model).fit(X)
    frames.append(_frame("at rest", fitted._at(), fitted.predict_proba(X), as_rows(X).load().X))
    table, _ = view_table(X)
    Z = _two_columns(table, (0, 1))
    columns = min(4, len(frames))
    lines = -(-len(frames) // columns)
    found = new_grid(axes, (lines, columns), (3.2 * columns, 2.9 * lines), len(frames))
    span = _bar_span(frames)
    x, y = names or (table.label(0), table.label(1))
    for i, (frame, ax) in enumerate(zip(frames, found, strict=True)):
        draw_frame(frame, Z, ax)
        last = i % columns == columns - 1 or i == len(frames) - 1
        _draw_bar(frame, ax.inset_axes((1.03, 0.0, 0.09, 1.0)), span, last)
        label_axes(ax, x, y if i % columns == 0 else "")
    return found


def draw_frame(frame: EMFrame, Z: Array, ax: Axes) -> None:
    """Draw rows Z (n, 2) by responsibilities, components as ellipses, and write log-likelihood = bound + KL above."""
    own = frame.mixture.components
    k, d = own.means.shape
    if frame.name == "start":
        ax.scatter(Z[:, 0], Z[:, 1], color=GREY, s=float(np.clip(8000 / len(Z), 3, 22)), alpha=0.6, linewidths=0)
    else:
        _draw_rows(ax, Z, frame.q)
    _draw_components(ax, own.shift + own.means, np.asarray(own.shape.matrices(own.C, k, d)))
    pad = 0.12 * np.ptp(Z, axis=0)
    ax.set_xlim(Z[:, 0].min() - pad[0], Z[:, 0].max() + pad[0])
    ax.set_ylim(Z[:, 1].min() - pad[1], Z[:, 1].max() + pad[1])
    ax.set_title(
        f"{frame.name}\nlog-likelihood {frame.loglik:.4f}\n= bound {frame.bound:.4f} + KL {abs(frame.kl):.4f}",
        loc="left",
        fontsize=9,
    )
    tidy(ax)


def _bar_span(frames: list[EMFrame]) -> tuple[float, float]:
    """The values that bars show; the bound before the first E step, far below all others, would hide their steps."""
    values = np.array([(f.loglik, f.bound) for f in frames[1:]])
    low, high = min(float(values.min()), frames[0].loglik), max(float(values.max()), frames[0].loglik)
    room = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-6)
    return low - 0.25 * room, high + 0.1 * room


def _draw_bar(frame: EMFrame, ax: Axes, span: tuple[float, float], labelled: bool) -> None:
    """Draw the log-likelihood as the sum of bound and KL; `labelled` says so beside it."""
    foot = min(frame.bound, span[0])
    ax.bar(0, frame.bound - foot, bottom=foot, color=BLUE, width=0.8)
    ax.bar(0, frame.loglik - frame.bound, bottom=frame.bound, color=RED, width=0.8)
    if frame.bound < span[0]:
        ax.annotate("", (0, span[0]), (0, span[0] + 0.18 * (span[1] - span[0])), arrowprops=_GOES_ON)
    ax.axhline(frame.loglik, color=ink(), linewidth=1)
    ax.set_ylim(span)
    ax.set_xticks([])
    ax.tick_params(labelsize=7)
    ax.yaxis.tick_right()
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.ticklabel_format(axis="y", useOffset=False)
    if labelled:
        ax.yaxis.set_label_position("right")
        ax.set_ylabel("bound (blue) + KL (red), nats a row", fontsize=7)
    ax.spines[["top", "left", "bottom"]].set_visible(False)


_GOES_ON = {"arrowstyle": "->", "color": "white", "linewidth": 1.2}  # of a bar that ends below the picture


# --------------------------------------------------------------------------------------------- the staircase
def plot_em_trace(model: Any, steps: int = 8, axes: Any = None) -> Array:
    """Draw EM as a staircase (left, some steps after the first) and how it comes to rest (right, all steps).

    The M step raises the bound (blue); the E step closes the KL (red) between it and the log-likelihood (black).

    Parameters
    ----------
    model : mixture fitted by certifit
    steps : int, default=8
        How many steps the staircase has.
    axes : two Axes, optional
        Where to draw; those of a new figure unless given.

    Returns
    -------
    array (2,) of Axes

    Examples
    --------
    >>> from certifit import Mixture
    >>> model = Mixture("poisson", random_state=0).fit([[0.0], [1.0], [2.0], [7.0], [9.0]])
    >>> axes = plot_em_trace(model)
    >>> [ax.get_xlabel() for ax in axes]
    ['EM step', 'EM step']
    """
    check_drawable(model, "a mixture fitted by certifit", "em_trace_", "tol")
    trace = model.em_trace_
    if len(trace) < 2:
        raise DataError(got="a fit that took no EM step", wanted="at least one step to draw")
    stairs, rest = new_grid(axes, (1, 2), (9.0, 3.4))
    t, ll, bound, kl = (trace[name] for name in ("iteration", "loglik", "bound", "kl"))
    begin = 1 if len(t) > 3 else 0  # the step from a rough start is so long that it hides all others
    end = min(begin + steps, len(t) - 1)
    stairs.plot(t[begin : end + 1], ll[begin : end + 1], "o", color=ink(), ms=4, label="log-likelihood", zorder=4)
    for i in range(begin + 1, end + 1):
        words = ("M step: bound rises", "E step: KL closes") if i == end else ("_", "_")
        stairs.plot(t[i - 1 : i + 1], [ll[i - 1], bound[i]], color=BLUE, label=words[0])
        stairs.plot([t[i], t[i]], [bound[i], ll[i]], color=RED, lw=2.5, label=words[1])
    stairs.set_ylabel("nats a row")
    stairs.legend(frameon=False, loc="lower right")
    left = ll[-1] - ll[:-1]
    rest.plot(t[:-1], np.where(left > 0, left, np.nan), "-", color=ink(), label="log-likelihood still to gain")
    rest.plot(t[1:], np.where(kl[1:] > 0, kl[1:], np.nan), "-", color=RED, label="KL after the M step")
    if model.tol > 0:
        rest.axhline(model.tol, color=GREY, linestyle="--", linewidth=1, label="asked for")
    rest.set_yscale("log")
    rest.set_ylabel("nats a row")
    rest.legend(frameon=False)
    for ax in (stairs, rest):
        ax.set_xlabel("EM step")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(ax)
    return np.array([stairs, rest])


# --------------------------------------------------------------------------------------------- how many components
def plot_mixture_choice(choice: Any, criteria: Sequence[str] = ("bic", "icl"), axes: Any = None) -> Array:
    """Draw criteria by number of components, a line for each shape of covariances; a ring marks the choice.

    Hollow marks stand for fits that are not sound: a component collapsed, or the certificate does not hold.

    Parameters
    ----------
    choice : what `select_mixture` returns
    criteria : names among 'bic', 'icl' and 'aic'
    axes : as many Axes as criteria, optional
        Where to draw; those of a new figure unless given.

    Returns
    -------
    array (m,) of Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit.mixture.choose_components import select_mixture
    >>> choice = select_mixture(load_iris().data[:, 2:], range(1, 4), ["full", "diag"], random_state=0)
    >>> axes = plot_mixture_choice(choice)
    >>> [ax.get_ylabel() for ax in axes]
    ['BIC (smaller is better)', 'ICL (smaller is better)']
    """
    check_drawable(choice, "what select_mixture returns", "candidates", "best", "criterion")
    criteria = [criteria] if isinstance(criteria, str) else list(criteria)
    if not criteria or not set(criteria) <= {"bic", "icl", "aic"}:
        raise DataError(got=f"criteria={criteria}", wanted="names among 'bic', 'icl' and 'aic'")
    found = new_grid(axes, (1, len(criteria)), (4.6 * len(criteria) + 0.8, 3.4))
    shapes = list(dict.fromkeys(c.covariance_type for c in choice.candidates))
    for ax, criterion in zip(found, criteria, strict=True):
        for i, shape in enumerate(shapes):
            mine = [c for c in choice.candidates if c.covariance_type == shape]
            k, value = np.array([(c.n_components, getattr(c, criterion)) for c in mine]).T
            sound = np.array([c.sound for c in mine])
            style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "markersize": 5}
            ax.plot(k, value, label=shape, linewidth=1.2, **style)
            ax.plot(k[~sound], value[~sound], linestyle="", markerfacecolor="white", **style)
        best = getattr(choice.best, criterion)
        ring = {"s": 160, "facecolors": "none", "edgecolors": RED, "linewidths": 1.5, "zorder": 5}
        ax.scatter(choice.best.n_components, best, label=f"chosen by {choice.criterion.upper()}", **ring)
        if not all(c.sound for c in choice.candidates):
            ax.plot([], [], "o", color=GREY, markerfacecolor="white", markersize=5, label="not sound")
        ax.set_xlabel("components")
        ax.set_ylabel(f"{criterion.upper()} (smaller is better)")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(ax)
    legend_beside(found[-1])
    return found
