"""Packed trees: rows reach the leaves that a plain walk finds, by compiled loops and by operations on arrays."""

import numpy as np
import pytest

from certifit.tree.routing import packed_trees as routing


def random_tree(rng, splits, columns, sets):
    """A tree grown by splitting random leaves; column 0 asks for categories."""
    nodes = [[-1, -1, -2, -2.0, 0, -1]]
    leaves = [0]
    for _ in range(splits):
        k = leaves.pop(rng.integers(len(leaves)))
        column = int(rng.integers(columns))
        chosen = int(rng.integers(sets)) if sets and column == 0 else -1
        nodes[k] = [len(nodes), len(nodes) + 1, column, float(rng.normal()), int(rng.integers(2)), chosen]
        leaves += [len(nodes), len(nodes) + 1]
        nodes += [[-1, -1, -2, -2.0, 0, -1] for _ in range(2)]
    return [np.array(part) for part in zip(*nodes, strict=True)]


def walked(tree, sets, x):
    left, right, column, threshold, missing_left, chosen = tree
    k = 0
    while left[k] >= 0:
        value = x[column[k]]
        if np.isnan(value):
            goes_left = missing_left[k]
        else:
            goes_left = sets[chosen[k], int(value)] if chosen[k] >= 0 else value <= threshold[k]
        k = left[k] if goes_left else right[k]
    return k


@pytest.mark.compiled
@pytest.mark.parametrize(("dtype", "kinds"), [(np.float32, 0), (np.float64, 0), (np.float64, 3)])
def test_rows_reach_the_leaves_of_a_plain_walk(monkeypatch, dtype, kinds):
    rng = np.random.default_rng(0)
    sets = rng.integers(0, 2, (kinds, 4)).astype(np.uint8)
    trees = [random_tree(rng, splits, 3, len(sets)) for splits in (5, 0, 12, 40)]
    first = np.cumsum([0, *(len(tree[0]) for tree in trees)])
    parts = [np.concatenate(part) for part in zip(*trees, strict=True)]
    packed = routing.packed_trees(routing.TreeNodes(*parts[:5]), first, True, parts[5], sets)
    X = rng.normal(size=(151, 3)).astype(dtype)
    X[:, 0] = rng.integers(0, 4, len(X))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0, 1:] = np.inf, -np.inf
    want = np.array([[walked(tree, sets, x) for tree in trees] for x in X])
    value = rng.normal(size=(int(first[-1]), 2))
    sums, scores = np.zeros((len(X), 2)), np.zeros((len(X), 2))
    for t in range(len(trees)):
        sums += value[first[t] + want[:, t]]
        scores[:, t % 2] += value[first[t] + want[:, t], 0]
    for plain in (True, False):
        for place in (routing.PLAIN_LEAVES, routing.PLAIN_ANSWERS, routing.PLAIN_SCORES):
            monkeypatch.setattr(place, "suffices", lambda entries, plain=plain: plain)
        np.testing.assert_array_equal(routing.leaves_of_rows(X, packed), want)
        one = np.zeros((1, 2))
        routing.add_tree_scores(X[:1], packed, np.ascontiguousarray(value[:, 0]), (0, 1), one)  # a row and a tree
        assert one[0, 0] == value[want[0, 0], 0]
        found, of_trees = np.zeros_like(sums), np.zeros_like(scores)
        routing.add_leaf_values(X, packed, value, found)
        routing.add_tree_scores(X, packed, np.ascontiguousarray(value[:, 0]), (0, len(trees)), of_trees)
        np.testing.assert_array_equal(found, sums)
        np.testing.assert_array_equal(of_trees, scores)
