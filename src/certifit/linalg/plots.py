"""The picture of a quadratic form vᵀAv of two numbers: its level lines, eigenvectors and whether it is definite."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.linalg.definite import positive_definite
from certifit.linalg.eigenpairs import eigen
from certifit.numerics.matrix import as_matrix, symmetric, to_dense
from certifit.plots.style import COLOURS, new_axes, tidy
from certifit.rows import Array


def plot_quadratic_form(A: Any, ax: Axes | None = None) -> Axes:
    """Draw vᵀAv over the plane, with its eigenvectors and the curve where it is 1 (dashed: -1).

    Of a positive definite matrix the curve is an ellipse, whose half-axes are the eigenvectors, 1/√λ long; of an
    indefinite one it is a pair of hyperbolas. The title says which of these is proved.

    Parameters
    ----------
    A : array (2, 2), symmetric
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_quadratic_form([[2.0, 1.0], [1.0, 2.0]])
    >>> ax.get_title(loc="left")
    'positive definite: λ = 3, 1, det = 3'
    """
    A = symmetric(to_dense(as_matrix(A, square=True)))
    if A.shape != (2, 2):
        raise DataError(
            got=f"a matrix of shape {A.shape}",
            wanted="two rows and two columns: vᵀAv over a plane",
            fix="Draw the part of two columns, A[:2, :2].",
        )
    found = eigen(A)
    size = float(np.abs(found.values).max()) or 1.0
    lengths = 1 / np.sqrt(np.maximum(np.abs(found.values), 0.01 * size))  # a flat direction is drawn so far
    reach = 1.5 * float(lengths.max())
    side = np.linspace(-reach, reach, 241)
    U, V = np.meshgrid(side, side)
    value = A[0, 0] * U**2 + 2 * A[0, 1] * U * V + A[1, 1] * V**2
    ax = new_axes(ax, 6.2, 4.6)
    most = min(float(np.abs(value).max()), 6.0) or 1.0  # far out the form is large, and of no interest
    drawn = ax.contourf(U, V, np.clip(value, -most, most), levels=np.linspace(-most, most, 25), cmap="RdBu")
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(drawn, ax=ax, pad=0.02, label="vᵀAv", ticks=np.linspace(-most, most, 5).round(3))
    bar.outline.set_visible(False)
    for level, line in ((-1.0, "--"), (1.0, "-")):
        if value.min() < level < value.max():
            # Black is seen on all colours of the map, whatever the background of the figure.
            curve = ax.contour(U, V, value, levels=[level], colors="black", linewidths=1.6, linestyles=line)
            ax.clabel(curve, fmt=f"{level:.0f}", fontsize=8)
    for i, (length, colour) in enumerate(zip(lengths, (COLOURS[2], COLOURS[3]), strict=True)):
        u, v = length * found.vectors[:, i]
        words = f"eigenvector, λ = {found.values[i]:.3g}"
        ax.plot([-u, u], [-v, v], color=colour, linewidth=2.4, marker="o", markersize=5, label=words)
    ax.set_aspect("equal")
    ax.set_xlabel("v₁")
    ax.set_ylabel("v₂")
    ax.set_title(_verdict(A, found.values), loc="left", fontsize=10)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=8, frameon=False)
    tidy(ax)
    return ax


def _verdict(A: Array, values: Array) -> str:
    """Return what is proved of A, with its eigenvalues and its determinant."""
    numbers = f"λ = {values[0]:.3g}, {values[1]:.3g}, det = {A[0, 0] * A[1, 1] - A[0, 1] ** 2:.3g}"
    if positive_definite(A):
        return f"positive definite: {numbers}"
    if positive_definite(-A):
        return f"negative definite: {numbers}"
    semidefinite = positive_definite(A, strict=False) or positive_definite(-A, strict=False)
    return f"{'semidefinite' if semidefinite else 'indefinite'}: {numbers}"
