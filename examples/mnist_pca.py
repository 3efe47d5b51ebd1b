"""Zeros and ones in two numbers each: PCA of the images of two digits, four of them shown, and how far each spreads.

python -m examples.mnist_pca [--mnist DIR] [--out FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import ConnectionPatch

from certifit.decomposition.pca.pca import PCA
from certifit.decomposition.pca.plots import plot_components, proved_share
from certifit.plots.style import COLOURS
from certifit.rows import Array
from examples.command import run
from examples.mnist import Digits

RESAMPLES = 1000  # enough for an interval's ends to two digits


@dataclass(frozen=True)
class Ratio:
    """A number for each of two clouds of points, and how sure their ratio is."""

    first: float
    second: float
    low: float  # 95 % bootstrap interval of first / second
    high: float

    def __str__(self) -> str:
        return (
            f"{self.first:.3g} against {self.second:.3g}, {self.first / self.second:.3g} times as much "
            f"(95 % interval {self.low:.3g} to {self.high:.3g})"
        )


def total_variance(A: Array, B: Array) -> Ratio:
    """Traces of the covariances of the rows of A and of B.

    >>> rng = np.random.default_rng(0)
    >>> spread = total_variance(rng.normal(size=(500, 3)), 0.5 * rng.normal(size=(500, 3)))
    >>> spread.low < 4.0 < spread.high
    True
    """
    squares = [(_centred(rows) ** 2).sum(axis=1, keepdims=True) for rows in (A, B)]
    return _bootstrap(squares, lambda means: means[:, 0])


def area(A: Array, B: Array) -> Ratio:
    """Areas of the ellipses one standard deviation about the means of points (n, 2): π sqrt(det covariance)."""
    products = [np.column_stack([U * U, U[:, 0] * U[:, 1]]) for U in (_centred(A), _centred(B))]
    return _bootstrap(products, lambda means: np.pi * np.sqrt(means[:, 0] * means[:, 1] - means[:, 2] ** 2))


def _centred(rows: Array) -> Array:
    return rows - rows.mean(axis=0)


def _bootstrap(clouds: list[Array], value: Callable[[Array], Array]) -> Ratio:
    """`value` of the means of each cloud's columns, and the spread of its ratio over rows drawn with replacement."""
    rng = np.random.default_rng(0)
    found, drawn = [], []
    for F in clouds:  # (n, f), averages of which are entries of a covariance
        n = len(F)
        found.append(float(value(F.mean(axis=0, keepdims=True))[0]) * n / (n - 1))
        times = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # how often each row was drawn
        drawn.append(value(times @ F / n))
    low, high = np.quantile(drawn[0] / drawn[1], [0.025, 0.975])
    return Ratio(found[0], found[1], float(low), float(high))


def highlights(Z: Array, y: Array) -> list[int]:
    """Two rows of each digit: the one nearest to the middle of its cloud, and the one farthest from it.

    >>> highlights(np.array([[0.0, 0], [1, 0], [5, 0], [0, 9], [0, 8], [0, 1]]), np.array([0, 0, 0, 1, 1, 1]))
    [1, 2, 4, 5]
    """
    found = []
    for digit in np.unique(y):
        rows = np.flatnonzero(y == digit)
        away = ((Z[rows] - Z[rows].mean(axis=0)) ** 2).sum(axis=1)
        found += [int(rows[away.argmin()]), int(rows[away.argmax()])]
    return found


def draw(model: PCA, digits: Digits, X: Array, y: Array) -> Figure:
    """The two clouds with ellipses of two standard deviations; zeros on the left and ones on the right of them."""
    figure = Figure(figsize=(9.6, 5.3), layout=ConstrainedLayoutEngine(h_pad=0.08))
    grid = figure.add_gridspec(2, 3, width_ratios=[1, 3.6, 1])
    cloud = plot_components(model, X, y, figure.add_subplot(grid[:, 1]))
    cloud.legend(loc="best", frameon=False)  # beside the cloud are the images
    Z = model.transform(X)
    for digit, column in ((0, 0), (1, 2)):
        cloud.plot(*_ellipse(Z[y == digit]), color="black", linewidth=1, linestyle="--")
        chosen = [i for i in highlights(Z, y) if y[i] == digit]
        for row, i in enumerate(sorted(chosen, key=lambda i: -Z[i, 1])):  # so that lines do not cross
            side = figure.add_subplot(grid[row, column])
            _image(side, X[i].reshape(digits.shape), COLOURS[digit])
            cloud.plot(*Z[i], "o", color=COLOURS[digit], markersize=8, markeredgecolor="black", zorder=5)
            end = (1 if column == 0 else 0, 0.5)
            line = ConnectionPatch(Z[i], end, cloud.transData, side.transAxes, color="black", linewidth=0.9)
            figure.add_artist(line)
    kept, most = float(model.explained_variance_ratio_.sum()), proved_share(model)
    figure.suptitle(
        f"Two numbers keep {100 * kept:.1f} % of the variance; "
        f"proved: the best plane keeps at most {100 * (most - kept):.1g} % more",
        fontsize=10,
    )
    cloud.yaxis.label.set(rotation=0, ha="left", va="bottom")  # beside the axis, lines would cross it
    cloud.yaxis.set_label_coords(-0.06, 1.01)
    return figure


def _ellipse(Z: Array) -> Array:
    """Points (2, 100) two standard deviations from the mean of Z (n, 2)."""
    angle = np.linspace(0, 2 * np.pi, 100)
    L = np.linalg.cholesky(np.cov(Z.T))
    return Z.mean(axis=0)[:, None] + 2 * L @ np.array([np.cos(angle), np.sin(angle)])


def _image(ax: Axes, image: Array, colour: str) -> None:
    ax.imshow(image, cmap="gray_r", vmin=0, vmax=1)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(color=colour, linewidth=2)


def show(digits: Digits, out: Path) -> None:
    """Fit, print what is found, and write the picture."""
    pair = np.flatnonzero(digits.y <= 1)
    X, y = digits.grey(digits.pixels[pair]), digits.y[pair]
    model = PCA(2).fit(X)
    Z = model.transform(X)
    zero, one = y == 0, y == 1
    print(f"\n{zero.sum()} zeros and {one.sum()} ones in two components")
    print(model.certificate_)
    print("\nspread of the zeros against that of the ones")
    print(f"  total variance, all pixels      {total_variance(X[zero], X[one])}")
    print(f"  total variance, two components  {total_variance(Z[zero], Z[one])}")
    print(f"  area, two components            {area(Z[zero], Z[one])}")
    draw(model, digits, X, y).savefig(out, dpi=100)
    print(f"\npicture: {out}")


if __name__ == "__main__":
    run(show, "Digits 0 and 1 in the plane of their first two principal components.", "mnist_pca.png")
