"""What the example of a tree, a bag, a forest and boosting says is so."""

import numpy as np
import pytest

from examples import tree_ensembles


def test_length_of_a_border_by_hand():
    """A square of two by two cells inside a grid of unit cells has a border of 8."""
    classes = np.zeros((6, 6), int)
    classes[2:4, 2:4] = 1
    assert tree_ensembles._length(classes, np.arange(6.0), np.arange(6.0)) == pytest.approx(8)


def test_a_bag_has_a_shorter_border_than_its_tree():
    found = {one.name: one for one in tree_ensembles.boundaries(10, steps=60)}
    assert found["bagging"].length < 0.8 * found["tree"].length
    assert found["bagging"].error < found["tree"].error
    axes = tree_ensembles.draw(list(found.values()))
    assert [ax.get_title().partition(":")[0] for ax in axes] == list(tree_ensembles.NAMES)


def test_trees_of_a_forest_are_less_alike():
    found = tree_ensembles.error_correlations(8)
    assert found["forest"][0] < found["bagging"][0]
    for rho, one, mean in found.values():
        assert rho * one < mean < one


def test_the_interval_is_the_corrected_resampled_one():
    """Nadeau & Bengio's variance, (1/J + n2/n1) S², by hand for three splits."""
    low, high = tree_ensembles.interval(np.array([1.0, 2.0, 3.0]), 0.5)
    assert high - 2 == pytest.approx(4.302653 * np.sqrt(1 / 3 + 1), rel=1e-6)
    assert low + high == pytest.approx(4)
