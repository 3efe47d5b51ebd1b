"""EM step by step on the Palmer penguins: log-likelihood = bound + KL, Jensen's inequality, the limit to k-means.

python -m examples.em [--out FILE.png] [--gif FILE.gif] [--shown 1 4 7] [--steps N]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from certifit.cluster.kmeans import KMeans
from certifit.core.text_table import text_table
from certifit.datasets import penguins_table
from certifit.exceptions import DataError
from certifit.families import GaussianFixedVariance
from certifit.mixture.em import joint_log_densities
from certifit.mixture.families.mixture import Mixture
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.mixture.plots import EMFrame, draw_frame, em_frames, plot_em_steps
from certifit.plots.style import figures_apart
from certifit.rows import Array

COLUMNS = ("flipper_length_mm", "bill_depth_mm")
ROUNDING = 1e-12  # nats a row


def penguins() -> Array:
    """Flipper length and bill depth of the penguins that have both (n, 2)."""
    table = penguins_table().select(list(COLUMNS)).drop_null()
    return np.column_stack([table[name].to_numpy() for name in COLUMNS]).astype(np.float64)


def poor_start(X: Array) -> GaussianMixture:
    """Two components in the middle of all rows, as wide as these and one deviation apart: EM has something to do."""
    away = np.array([[-0.5, 0.0], [0.5, 0.0]]) * X.std(axis=0)
    wide = np.array([np.diag(1 / X.var(axis=0))] * 2)
    return GaussianMixture(2, weights_init=[0.5, 0.5], means_init=X.mean(axis=0) + away, precisions_init=wide)


# --------------------------------------------------------------------------------------------- the identity
def identity_table(frames: Sequence[EMFrame]) -> str:
    """A line for each step: log-likelihood, bound and KL in nats a row, and by how much their identity is off.

    >>> frames = em_frames(Mixture("poisson", random_state=0), [[0.0], [1.0], [7.0], [9.0]], 1)
    >>> print(identity_table(frames).splitlines()[0])
    step      log-likelihood       bound   KL(q||p)  log-likelihood - bound - KL
    """
    lines = [("step", "log-likelihood", "bound", "KL(q||p)", "log-likelihood - bound - KL")]
    for f in frames:
        kl = round(f.kl, 7) + 0.0  # no minus sign before a zero
        lines.append((f.name, f"{f.loglik:.9f}", f"{f.bound:.7f}", f"{kl:.7f}", f"{f.loglik - f.bound - f.kl:.1e}"))
    return text_table(lines, "lr")


def identity_holds(frames: Sequence[EMFrame]) -> bool:
    """At every step log-likelihood = bound + KL; E steps close the KL, M steps raise the bound."""
    sums = all(abs(f.loglik - f.bound - f.kl) <= ROUNDING * (1 + abs(f.loglik)) for f in frames)
    closed = all(abs(f.kl) <= ROUNDING for f in frames if f.name.startswith("E"))
    raised = all(after.bound >= before.bound - ROUNDING for before, after in pairwise(frames))
    return sums and closed and raised


class Jensen(NamedTuple):
    """The bound by many responsibilities against the log-likelihood; nats a row."""

    tried: int
    largest: float  # of bound - log-likelihood over those tried: never above 0
    at_posterior: float  # the same by the posterior: 0

    @property
    def holds(self) -> bool:
        return self.largest <= ROUNDING and abs(self.at_posterior) <= ROUNDING


def jensen(frame: EMFrame, X: Array, tried: int = 500, seed: int = 0) -> Jensen:
    """log Σ_k q_k (π_k f_k / q_k) >= Σ_k q_k log(π_k f_k / q_k) for any q: here for random ones, and the posterior.

    >>> X = np.array([[0.0], [1.0], [7.0], [9.0]])
    >>> jensen(em_frames(Mixture("poisson", random_state=0), X, 1)[-1], X, 50).holds
    True
    """
    joint = joint_log_densities(frame.mixture, X)  # (n, k)
    log_p = np.logaddexp.reduce(joint, axis=1)

    def short(q: Array) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(q > 0, q * (joint - np.log(q)), 0.0)
        return float((terms.sum(axis=1) - log_p).mean())

    rng = np.random.default_rng(seed)
    k = joint.shape[1]
    largest = max(short(rng.dirichlet(np.full(k, a), len(X))) for a in rng.uniform(0.1, 5.0, tried))
    return Jensen(tried, largest, short(np.exp(joint - log_p[:, None])))


# --------------------------------------------------------------------------------------------- the limit to k-means
class Limit(NamedTuple):
    """A mixture of spheres of variance σ² against k-means."""

    variance: float
    objective: float  # -2 σ² (log-likelihood + n d/2 log 2πσ²), which becomes the sum of squares as σ² -> 0
    inertia: float  # k-means' sum of squares
    sure: float  # the least sure row's largest responsibility
    same: bool  # whether every row is in the same group


def limits(X: Array, k: int = 3, variances: Sequence[float] = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)) -> list[Limit]:
    """EM for ever smaller spheres, from k-means' centres; columns of X are taken in units of their deviations."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    n, d = Z.shape
    clusters = KMeans(k, n_init=10, random_state=0).fit(Z)
    out = []
    for v in variances:
        spheres = GaussianFixedVariance(0.0, variance=v)
        model = Mixture(spheres, k, smoothing=0.0, max_iter=5000, parameters_init=clusters.cluster_centers_).fit(Z)
        objective = -2 * v * (model.loglikelihood_ + n * d / 2 * np.log(2 * np.pi * v))
        sure = float(model.predict_proba(Z).max(axis=1).min())
        same = bool((model.predict(Z) == clusters.labels_).all())
        out.append(Limit(v, objective, clusters.inertia_, sure, same))
    return out


def limit_table(found: Sequence[Limit]) -> str:
    """A line for each variance: both objectives, their difference, and whether the groups are the same."""
    lines = [("σ²", "-2σ²(log-lik. + const.)", "sum of squares", "difference", "least sure row", "same groups")]
    for f in found:
        objectives = f"{f.objective:.6f}", f"{f.inertia:.6f}", f"{f.objective - f.inertia:.2e}"
        lines.append((f"{f.variance:g}", *objectives, f"{f.sure:.6f}", "yes" if f.same else "no"))
    return text_table(lines, "lrrrrl")


# --------------------------------------------------------------------------------------------- pictures, command line
def animate(frames: Sequence[EMFrame], X: Array, out: Path) -> None:
    """Every step as a picture of an animated GIF, a second each."""
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()

    def draw(i: int) -> list[Any]:
        ax.clear()
        draw_frame(frames[i], X, ax)
        ax.set(xlabel=COLUMNS[0], ylabel=COLUMNS[1])
        return []

    FuncAnimation(figure, draw, frames=len(frames)).save(out, writer=PillowWriter(fps=1), dpi=80)


def show(out: Path, gif: Path | None = None, shown: Sequence[int] = (1, 4, 7), steps: int | None = None) -> None:
    """Print what holds, and write the pictures: `shown` iterations, and at most so many `steps` in table and GIF."""
    X = penguins()
    model = poor_start(X)
    fitted = poor_start(X).fit(X)
    frames = em_frames(model, X, fitted.n_iter_ if steps is None else min(steps, fitted.n_iter_))
    print(f"EM for two Gaussians on {len(X)} penguins, {COLUMNS[0]} and {COLUMNS[1]}; nats a row, less the penalty\n")
    print(identity_table(frames))
    verdict = _word(identity_holds(frames))
    print(f"\nlog-likelihood = bound + KL, E steps close the KL, M steps raise the bound: {verdict}")
    found = jensen(frames[2], X)
    print(f"\nJensen's inequality, bound <= log-likelihood, after M step 1: {_word(found.holds)}")
    print(f"  by {found.tried} random responsibilities   bound - log-likelihood at most {found.largest:.4f}")
    print(f"  by the posterior                 bound - log-likelihood = {found.at_posterior:.1e}")
    print("\nSpheres of variance σ² -> 0 become k-means (three clusters, columns in units of their deviations)\n")
    print(limit_table(limits(X)))
    print(f"\n{fitted.certificate_}")
    with figures_apart():
        plot_em_steps(model, X, shown, COLUMNS)[0].figure.savefig(out, dpi=100)
    print(f"\npicture: {out}")
    if gif is not None:
        animate(frames, X, gif)
        print(f"animation: {gif}")


def _word(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="EM step by step: the identity, Jensen's inequality, k-means' limit."
    )
    parser.add_argument("--out", type=Path, default=Path("em.png"), help="the step-wise picture (default: em.png)")
    parser.add_argument("--gif", type=Path, help="also write an animation, a picture for each step")
    parser.add_argument("--shown", type=int, nargs="+", default=[1, 4, 7], help="iterations in the picture")
    parser.add_argument("--steps", type=int, help="most iterations in the table and the animation (default: all)")
    given = parser.parse_args(arguments)
    try:
        show(given.out, given.gif, given.shown, given.steps)
    except (DataError, OSError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
