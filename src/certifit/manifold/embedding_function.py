"""Locally linear embedding as a function: coordinates and their error, without a model."""

from __future__ import annotations

from typing import Any

from certifit.manifold.locally_linear import LocallyLinearEmbedding
from certifit.rows import Array


def locally_linear_embedding(X: Any, *, n_neighbors: int, n_components: int, **params: Any) -> tuple[Array, float]:
    """Coordinates in which neighbours rebuild each row as they do in X: those of `LocallyLinearEmbedding`, proved.

    Parameters
    ----------
    X : array (n, d)
        scikit-learn's NearestNeighbors in its place are not taken: neighbours are found, and proved, here.
    n_neighbors : int
    n_components : int
    **params : further settings of LocallyLinearEmbedding: reg, eigen_solver, tol, max_iter, method …

    Returns
    -------
    Y : (n, n_components)
    squared_error : float
        The sum of squared errors of Y.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from certifit import locally_linear_embedding
    >>> Y, error = locally_linear_embedding(make_swiss_roll(300, random_state=0)[0], n_neighbors=12, n_components=2)
    >>> Y.shape, error < 1e-3
    ((300, 2), True)
    """
    model = LocallyLinearEmbedding(n_neighbors=n_neighbors, n_components=n_components, **params).fit(X)
    return model.embedding_, float(model.reconstruction_error_)


__all__ = ["locally_linear_embedding"]
