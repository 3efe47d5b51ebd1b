"""A tree, a bag, a forest and boosting: four boundaries, what bagging and forests do, and who errs least.

python -m examples.tree_ensembles [--out FILE.png] [--splits N] [--trees N]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from scipy import stats
from sklearn import datasets
from sklearn.model_selection import train_test_split

from certifit import (
    DecisionTreeClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from certifit.core.text_table import text_table
from certifit.datasets import load_penguins
from certifit.exceptions import DataError
from certifit.plots.style import COLOURS, figures_apart, new_grid
from certifit.rows import Array

NAMES = ("tree", "bagging", "forest", "boosting")


def ensembles(trees: int, seed: int = 0) -> list[Any]:
    """The four models of the course, in the order in which it expects them to get better."""
    return [
        DecisionTreeClassifier(),
        RandomForestClassifier(trees, max_features=None, random_state=seed),  # all columns at every split: a bag
        RandomForestClassifier(trees, random_state=seed),
        HistGradientBoostingClassifier(max_iter=trees, min_samples_leaf=5, random_state=seed),
    ]


# --------------------------------------------------------------------------------------------- boundaries
@dataclass(frozen=True)
class Boundary:
    """A model's classes over a grid, how long their border is, and how many new rows it tells wrong."""

    name: str
    classes: Array  # (v, u)
    length: float  # in units of the plane
    error: float


def moons(n: int, seed: int) -> tuple[Array, Array]:
    """Two half-moons that overlap."""
    X, y = datasets.make_moons(n, noise=0.3, random_state=seed)
    return X, y


def boundaries(trees: int, n: int = 300, steps: int = 200) -> list[Boundary]:
    """The four models, fitted to the same rows."""
    X, y = moons(n, 0)
    new, labels = moons(10_000, 1)
    u, v = np.linspace(-1.8, 2.8, steps), np.linspace(-1.4, 1.9, steps)
    points = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)
    found = []
    for name, model in zip(NAMES, ensembles(trees), strict=True):
        classes = model.fit(X, y).predict(points).reshape(steps, steps)
        found.append(Boundary(name, classes, _length(classes, u, v), 1 - model.score(new, labels)))
    return found


def _length(classes: Array, u: Array, v: Array) -> float:
    """The length of the border between cells of different classes."""
    upright, level = (classes[:, 1:] != classes[:, :-1]).sum(), (classes[1:] != classes[:-1]).sum()
    return float(upright * (v[1] - v[0]) + level * (u[1] - u[0]))


def draw(found: Sequence[Boundary], axes: Any = None) -> Any:
    """The four boundaries beside each other, with the rows that they were learnt from."""
    X, y = moons(300, 0)
    grid = new_grid(axes, (1, 4), (13.0, 3.3), 4)
    for ax, one in zip(grid, found, strict=True):
        _draw_one(ax, one, X, y)
    return grid


def _draw_one(ax: Axes, one: Boundary, X: Array, y: Array) -> None:
    extent = (-1.8, 2.8, -1.4, 1.9)
    pale = ListedColormap([COLOURS[0], COLOURS[1]])
    ax.imshow(
        one.classes, extent=extent, origin="lower", cmap=pale, alpha=0.25, aspect="auto", interpolation="nearest"
    )
    ax.contour(one.classes, [0.5], extent=extent, origin="lower", colors="black", linewidths=0.8)
    for c in (0, 1):
        ax.scatter(*X[y == c].T, s=7, color=COLOURS[c], linewidths=0)
    ax.set_title(f"{one.name}: {100 * one.error:.1f} % wrong,\nborder {one.length:.0f} long", fontsize=10)
    ax.set(xticks=[], yticks=[], xlim=extent[:2], ylim=extent[2:])


# --------------------------------------------------------------------------------------------- trees that agree less
def error_correlations(trees: int) -> dict[str, tuple[float, float, float]]:
    """Bag and forest of the diabetes data: correlation of two trees' errors, a tree's squared error, the mean's."""
    X, y = datasets.load_diabetes(return_X_y=True)
    found = {}
    for name, columns in (("bagging", None), ("forest", 3)):
        parts = []
        for seed in range(5):
            train, test, target, answer = train_test_split(X, y, test_size=0.4, random_state=seed)
            forest = RandomForestRegressor(trees, max_features=columns, random_state=seed).fit(train, target)
            errors = np.stack([tree.predict(test) - answer for tree in forest.estimators_])
            between = (np.corrcoef(errors).sum() - trees) / (trees * (trees - 1))
            parts.append((between, (errors**2).mean(), (errors.mean(axis=0) ** 2).mean()))
        found[name] = tuple(map(float, np.mean(parts, axis=0)))
    return found


# --------------------------------------------------------------------------------------------- who errs least
def tables() -> dict[str, Callable[[], tuple[Array, Array]]]:
    """Bundled tables of classes."""
    return {
        "penguins": _penguins,
        "wine": lambda: datasets.load_wine(return_X_y=True),
        "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
        "digits": lambda: datasets.load_digits(return_X_y=True),
    }


def _penguins() -> tuple[Array, Array]:
    frame = load_penguins()
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    # Sexes of birds: harder than their species.
    known = frame[[*columns, "sex"]].dropna()
    return known[columns].to_numpy(), known["sex"].to_numpy()


def split_errors(X: Array, y: Array, splits: int, trees: int, test: float = 0.4) -> Array:
    """Test errors of the four models on the same random splits (splits, 4)."""
    found = []
    for seed in range(splits):
        train, rest, labels, answer = train_test_split(X, y, test_size=test, random_state=seed, stratify=y)
        found.append([1 - model.fit(train, labels).score(rest, answer) for model in ensembles(trees, seed)])
    return np.array(found)


def interval(difference: Array, test: float = 0.4) -> tuple[float, float]:
    """95 % for a mean difference over random splits: the corrected resampled t (Nadeau & Bengio 2003).

    >>> [round(float(end), 3) for end in interval(np.array([0.01, 0.02, 0.03]))]
    [-0.005, 0.045]
    """
    n = len(difference)
    error = np.sqrt((1 / n + test / (1 - test)) * np.var(difference, ddof=1))
    reach = stats.t.ppf(0.975, n - 1) * error
    return float(difference.mean() - reach), float(difference.mean() + reach)


def verdict(low: float, high: float) -> str:
    """What an interval for the error of the former less that of the latter says: is the latter better?

    >>> verdict(0.01, 0.02), verdict(-0.01, 0.02), verdict(-0.02, -0.01)
    ('yes', 'not told apart', 'NO')
    """
    return "yes" if low > 0 else ("NO" if high < 0 else "not told apart")


def ordering_table(splits: int, trees: int) -> str:
    """For every table the four errors, and for each step of the ordering what its interval says."""
    lines = [("table", *NAMES, *(f"{a} > {b}" for a, b in pairwise(NAMES)))]
    for name, load in tables().items():
        errors = split_errors(*load(), splits, trees)
        ends = [interval(errors[:, i] - errors[:, i + 1]) for i in range(3)]
        words = [f"{verdict(*end)} ({100 * end[0]:.1f} to {100 * end[1]:.1f})" for end in ends]
        lines.append((name, *(f"{100 * error:.1f} %" for error in errors.mean(axis=0)), *words))
    return text_table(lines)


# --------------------------------------------------------------------------------------------- command line
def show(out: Path, splits: int = 6, trees: int = 40) -> None:
    """Print what is found of the course's three statements, and write the picture."""
    found = boundaries(trees)
    print("Bagging smooths the boundary (two half-moons, 300 rows; errors on 10,000 new ones)\n")
    lines = [("model", "length of the border", "wrong")]
    lines += [(one.name, f"{one.length:.1f}", f"{100 * one.error:.1f} %") for one in found]
    print(text_table(lines))
    print("\nForests decorrelate (diabetes, new rows; the mean of T trees errs by ρσ² + (1 - ρ)σ²/T)\n")
    lines = [("trees of a", "correlation ρ of errors", "squared error of one", "of their mean")]
    for name, (rho, one, mean) in error_correlations(trees).items():
        lines.append((name, f"{rho:.3f}", f"{one:.0f}", f"{mean:.0f}"))
    print(text_table(lines))
    print(f"\nTree > bagging > forest > boosting in error? {splits} splits, 40 % to test, 95 % intervals in points\n")
    print(ordering_table(splits, trees))
    with figures_apart():
        draw(found)[0].figure.savefig(out, dpi=100)
    print(f"\npicture: {out}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Four boundaries, and the course's statements on ensembles of trees."
    )
    out = Path("tree_ensembles.png")
    parser.add_argument("--out", type=Path, default=out, help=f"where the picture goes (default: {out})")
    parser.add_argument("--splits", type=int, default=6, help="random splits of each table (default: 6)")
    parser.add_argument("--trees", type=int, default=40, help="of every ensemble (default: 40)")
    given = parser.parse_args(arguments)
    try:
        show(given.out, given.splits, given.trees)
    except (DataError, OSError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
