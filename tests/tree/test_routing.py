"""Packed trees: rows reach the leaves that a plain walk finds, by compiled loops and by operations on arrays."""

import numpy as np
import pytest

from certifit.tree.routing import packed_trees as routing
from certifit.tree.routing.code_loops import add_coded_answers
from certifit.tree.routing.coded_trees import coded_trees
from certifit.tree.routing.leaf_masks import leaf_masks
from certifit.tree.routing.mask_loops import add_masked_scores


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


@pytest.mark.compiled
@pytest.mark.parametrize(("kinds", "missing"), [(0, False), (0, True), (3, False), (3, True)])
def test_all_questions_at_once_lead_to_the_leaves_of_a_plain_walk(kinds, missing):
    rng = np.random.default_rng(1)
    sets = rng.integers(0, 2, (kinds, 4)).astype(np.uint8)
    trees = [random_tree(rng, splits, 3, len(sets)) for splits in (5, 0, 12, 63)]
    first = np.cumsum([0, *(len(tree[0]) for tree in trees)])
    left, right, *rest = (np.concatenate(part) for part in zip(*trees, strict=True))
    base = np.repeat(first[:-1], np.diff(first))
    left, right = (np.where(side < 0, -1, side + base) for side in (left, right))
    masks = leaf_masks(routing.TreeNodes(left, right, *rest[:3]), first, rest[3], sets)
    X = rng.normal(size=(151, 3))
    X[:, 0] = rng.integers(0, 4, len(X))
    X[0, 1:] = np.inf, -np.inf
    X[1, 1] = rest[1][first[3] + np.flatnonzero(rest[0][first[3] :] == 1)[0]]  # a value on a threshold
    if missing:
        X[140:][rng.random((11, 3)) < 0.3] = np.nan
    value = rng.normal(size=int(first[-1]))
    found, want = np.zeros((len(X), 2)), np.zeros((len(X), 2))
    add_masked_scores(X, masks, value, (0, len(trees)), found)
    for t, tree in enumerate(trees):
        want[:, t % 2] += value[first[t] + np.array([walked(tree, sets, x) for x in X])]
    np.testing.assert_array_equal(found, want)


def test_trees_with_more_leaves_than_a_word_has_bits_have_no_masks():
    tree = random_tree(np.random.default_rng(2), 64, 3, 0)
    assert leaf_masks(routing.TreeNodes(*tree[:5]), np.array([0, len(tree[0])]), tree[5], np.zeros((0, 4))) is None


@pytest.mark.compiled
def test_codes_of_one_byte_lead_to_the_leaves_of_a_plain_walk():
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, splits, 3, 0) for splits in (5, 0, 12, 40)]
    for tree in trees:
        tree[3] = np.where(tree[0] >= 0, np.round(tree[3], 1), tree[3])  # thresholds that several nodes share
    trees[2][3][0] = np.inf  # all known values go left
    first = np.cumsum([0, *(len(tree[0]) for tree in trees)])
    parts = [np.concatenate(part) for part in zip(*trees, strict=True)]
    packed = routing.packed_trees(routing.TreeNodes(*parts[:5]), first, True, parts[5], np.zeros((0, 4)))
    X = np.round(rng.normal(size=(151, 3)), 1)  # many values lie on thresholds
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0] = np.inf, -np.inf, 0.0
    value = rng.normal(size=(int(first[-1]), 200))
    value[::2] = np.eye(200)[rng.integers(0, 200, len(value[::2]))]  # leaves that are certain, beyond class 127 too
    value[::6] *= 0.5  # their only value is no 1
    want = np.zeros((len(X), 200))
    for t, tree in enumerate(trees):
        want += value[first[t] + np.array([walked(tree, (), x) for x in X])]
    coded, bins = coded_trees(packed, 3, value[packed.number])
    assert 0 < np.count_nonzero(coded.steps & np.uint64(0xFE)) < len(value)
    found = np.zeros_like(want)
    add_coded_answers(bins.encode(X), coded, value[packed.number], found)
    np.testing.assert_array_equal(found, want)


def test_more_thresholds_than_a_byte_can_tell_apart_have_no_codes():
    tree = random_tree(np.random.default_rng(4), 300, 1, 0)
    packed = routing.packed_trees(routing.TreeNodes(*tree[:5]), np.array([0, 601]), True, tree[5], np.zeros((0, 4)))
    assert coded_trees(packed, 1, np.zeros((601, 1))) is None
