"""One classifier for all classes, or a classifier for each: what separate machines get wrong.

    python -m examples.joint_svm [--out FILE]

Two problems in the plane. *Between*: a class lies between two others. No line separates it from the rest, so its own
machine is nearly constant, and on another scale than those it is compared with. *Rare*: a line separates each of six
classes from the rest, but one has few rows; its own machine saves more by giving them up. A joint machine weighs
all classes against each other in one problem, with one gap. Machines for each pair of classes fare well here too, at
the price of k (k - 1) / 2 of them, whose votes need not agree.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from certifit.rows import Array
from certifit.svm.kernel.svc import SVC
from certifit.svm.linear.linear_svm import LinearSVC
from certifit.svm.plots import plot_machine

METHODS: dict[str, Callable[[], Any]] = {
    "one against the rest": lambda: LinearSVC(loss="hinge"),
    "one against one": lambda: SVC(kernel="linear"),
    "Weston-Watkins": lambda: LinearSVC(multi_class="weston-watkins"),
    "Crammer-Singer": lambda: LinearSVC(multi_class="crammer-singer"),
}
DRAWN = ("one against the rest", "Weston-Watkins")


def between(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Three classes in a row, the one in the middle with a fifth of the rows of the others."""
    y = np.repeat(np.arange(3), [n, n // 5, n])
    return np.column_stack([3.0 * (y - 1), np.zeros(len(y))]) + rng.normal(size=(len(y), 2)) * [0.7, 1.0], y


def rare(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Six classes around a circle, the last with a 25th of the rows of the others."""
    y = np.repeat(np.arange(6), [n] * 5 + [n // 25])
    angle = np.pi / 3 * y
    return 3.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.75 * rng.normal(size=(len(y), 2)), y


PROBLEMS = {"between": between, "rare": rare}


def recalls(model: Any, X: Array, y: Array) -> Array:
    """The share of each class's rows that are recognised (k,)."""
    right = model.predict(X) == y
    return np.bincount(y, right) / np.bincount(y)


def table(models: dict[str, Any], X: Array, y: Array) -> str:
    """A line for each method: what it gets right of unseen rows, of each class, and what is proved about it."""
    lines = []
    for name, model in models.items():
        shares = " ".join(f"{share:6.1%}" for share in recalls(model, X, y))
        lines.append(f"{name:<21} {model.score(X, y):6.1%}  {shares}  {model.certificate_.relative_gap:8.1e}")
    classes = " ".join(f"{c:>6}" for c in range(len(np.unique(y))))
    return "\n".join([f"{'':<21} {'all':>6}  {classes}  {'gap':>8}", *lines])


def fit(problem: str, seed: int = 0) -> tuple[dict[str, Any], tuple[Array, Array], tuple[Array, Array]]:
    """Models by method, the rows they were fitted on, and rows they have not seen."""
    rng = np.random.default_rng(seed)
    seen, unseen = PROBLEMS[problem](300, rng), PROBLEMS[problem](3000, rng)
    return {name: make().fit(*seen) for name, make in METHODS.items()}, seen, unseen


def show(out: Path) -> None:
    """Print what each method gets right and draw where it decides."""
    figure = Figure(figsize=(11.0, 8.6), layout="constrained")
    axes = figure.subplots(len(PROBLEMS), len(DRAWN))
    for line, problem in zip(axes, PROBLEMS, strict=True):
        models, seen, unseen = fit(problem)
        print(f"\n{problem}: unseen rows recognised, of all and of each class; relative gap proved")
        print(table(models, *unseen))
        for ax, name in zip(line, DRAWN, strict=True):
            plot_machine(models[name], *seen, ax=ax)
            ax.set_title(f"{problem}: {name}, {models[name].score(*unseen):.1%} of unseen rows right", fontsize=10)
    rest = fit("between")[0]["one against the rest"]
    norms = ", ".join(f"{norm:.2f}" for norm in np.linalg.norm(rest.coef_, axis=1))
    print(f"\nbetween, one against the rest: |w| of the three machines is {norms}.")
    print("The one in the middle says the same of every row: the others decide, on scales of their own.")
    figure.savefig(out, dpi=100)
    print(f"picture: {out}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Separate and joint support vector machines for several classes.")
    parser.add_argument("--out", type=Path, default=Path("joint_svm.png"), help="where the picture goes")
    show(parser.parse_args(arguments).out)


if __name__ == "__main__":
    main()
