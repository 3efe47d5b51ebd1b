"""Checks of nodes before rows walk through them: compiled loops go where the numbers of children and columns lead."""

from __future__ import annotations

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.tree.routing.packed_trees import TreeNodes


def check_nodes(nodes: TreeNodes, first: Array, own: bool) -> int:
    """Refuse nodes that are no trees, or arrays of other lengths; return how many columns the nodes ask for.

    Trees begin at `first` (T + 1,). Every node but a root is a child of one node, which comes before it in the same
    tree: nothing points elsewhere, and every way down ends. `own`: children are counted from their tree's first node.
    """
    left, right, column = (whole_numbers(part) for part in nodes[:3])
    first, m = whole_numbers(first), len(left)
    if any(np.shape(part) != (m,) for part in nodes):
        raise no_trees("nodes of trees with arrays of different lengths")
    if not (len(first) and first[0] == 0 and first[-1] == m and (np.diff(first) > 0).all()):
        raise no_trees("trees that do not begin one after another")
    inner = np.flatnonzero(left >= 0)
    tree = np.searchsorted(first, inner, side="right") - 1
    base = first[tree] if own else 0
    children = np.concatenate([left[inner] + base, right[inner] + base])
    parents, ends = np.concatenate([inner, inner]), np.concatenate([first[tree + 1], first[tree + 1]])
    if (right[inner] < 0).any() or (children <= parents).any() or (children >= ends).any():
        raise no_trees("nodes of trees whose children are not behind them")
    roots = np.zeros(m, bool)
    roots[first[:-1]] = True
    if (np.bincount(children, minlength=m) != ~roots).any():
        raise no_trees("nodes of trees with no parent or several")
    if (column[inner] < 0).any():
        raise no_trees("nodes of trees that ask for no column")
    return int(column[inner].max(initial=-1)) + 1


def check_sets(chosen: Array, sets: Array, nodes: TreeNodes, categories: Array) -> None:
    """Refuse nodes that ask for a set of categories which is not there, or of a column that has no categories.

    `chosen` (m,) is the row of `sets` that a node asks for, -1 where it asks for none, and may be empty; `categories`
    (d,) is how many each column has: a set (s, c) says of all of them where they go.
    """
    chosen, sets, categories = whole_numbers(chosen), np.asarray(sets), whole_numbers(categories)
    if len(sets) and (sets.ndim != 2 or categories.max(initial=0) > sets.shape[1]):
        raise no_trees("sets of other categories than columns have")
    if not len(chosen):
        return
    if len(chosen) != len(nodes.left) or ((chosen < -1) | (chosen >= len(sets))).any():
        raise no_trees("nodes of trees that ask for sets of categories which are not there")
    asked = nodes.column[(chosen >= 0) & (nodes.left >= 0)]
    if asked.max(initial=-1) >= len(categories) or (categories[asked] == 0).any():
        raise no_trees("nodes of trees that ask for categories of columns which have none")


def whole_numbers(array: Array) -> Array:
    """An array (m,) of places, or an error where it holds anything else."""
    found = np.asarray(array)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise no_trees("places that are no whole numbers")
    return found.astype(np.int64)


def check_width(X: Array, columns: int) -> None:
    """Refuse rows (n, d) of fewer columns than trees ask for."""
    if X.shape[1] < columns:
        raise no_trees(f"trees that ask for {columns} columns of rows with {X.shape[1]}")


def no_trees(got: str) -> DataError:
    """The error of arrays that are no trees."""
    return DataError(got=got, wanted="trees as their fit left them", fix="Fit the model again.")
