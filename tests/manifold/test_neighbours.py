"""Nearest rows against all distances, graphs in parts, and the compiled loops of the search against NumPy."""

import sys
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from certifit import DataError
from certifit.manifold import neighbour_loops as loops
from certifit.manifold.neighbours import DisconnectedWarning, centre_and_scale, nearest_others, nearest_rows
from tests.manifold.embeddings import SWISS, TABLES, N, audited, each_table, embed


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
@each_table
def test_neighbours_are_the_nearest_others(name, algorithm):
    """Against all distances, by differences."""
    X = centre_and_scale(TABLES[name])
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    assert_array_equal(nearest_others(X, 9, algorithm), np.argsort(D, axis=1)[:, :9])
    new = X[:50] + 0.01
    assert_array_equal(nearest_rows(new, X, 9, algorithm), np.argsort(cdist(new, X), axis=1)[:, :9])


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
def test_copies_of_a_row_are_neighbours_but_not_itself(algorithm):
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 15)), 8, axis=0)
    found = nearest_others(X, 5, algorithm)
    assert (found // 8 == np.arange(80)[:, None] // 8).all()
    assert (found != np.arange(80)[:, None]).all()
    assert all(len(set(row)) == 5 for row in found.tolist())


def test_products_that_lose_digits_are_done_again():
    """Two tight clouds far apart: float32 products cannot tell neighbours, and the bound knows."""
    rng = np.random.default_rng(0)
    X = centre_and_scale(1e-6 * rng.normal(size=(300, 20)) + 1e3 * (np.arange(300) % 2)[:, None])
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    assert_array_equal(nearest_others(X, 6, "brute"), np.argsort(D, axis=1)[:, :6])


def test_a_disconnected_graph_is_refused_and_its_parts_are_named():
    X = np.concatenate([SWISS[:40], SWISS[:30] + 500, SWISS[:25] - 500])[np.r_[90:95, 0:90]]
    with pytest.raises(DataError) as caught:
        embed(X, n_neighbors=5, disconnected="error")
    words = str(caught.value)
    assert "in 3 parts" in words
    assert "40 rows (row 5 is one), 30 rows (row 45 is one), 25 rows (row 0 is one)" in words
    assert "more than n_neighbors=5" in words


def test_of_many_parts_the_largest_are_named():
    X = np.repeat(np.arange(40.0) ** 3, 5)[:, None] * 1e6 + np.tile(np.arange(5.0), 40)[:, None]
    with pytest.raises(DataError, match="and 37 more") as caught:
        embed(X, n_neighbors=3, disconnected="error", n_components=1)
    assert len(str(caught.value)) < 400


def test_parts_can_be_joined():
    """Three parts: two links more, each the nearest pair; the first coordinates tell the parts apart."""
    part = np.repeat([0, 1, 2], [40, 30, 25])
    X = np.concatenate([SWISS[:40], SWISS[:30] + 500, SWISS[:25] - 500])
    model = embed(X, n_neighbors=5, disconnected="join", reg=0.1)
    assert (part[model.neighbors_] != part[:, None]).sum() == 2
    assert model.certificate_.holds
    assert audited(model, X).holds
    assert "need not be the nearest" in model.certificate_.facts["neighbours"]
    centres = np.array([model.embedding_[part == p].mean(axis=0) for p in range(3)])
    assert (cdist(model.embedding_, centres).argmin(axis=1) == part).all()
    assert_array_equal(embed(SWISS, disconnected="join").embedding_, embed(SWISS).embedding_)


@pytest.mark.parametrize("method", ["standard", "modified"])
def test_parts_are_embedded_one_by_one(method):
    """Each part has the coordinates that it has alone, up to signs and its share of the rows."""
    part = np.repeat([0, 1, 2], [40, 30, 25])
    X = np.concatenate([SWISS[:40], SWISS[40:70] + 500, SWISS[70:95] - 500])
    with pytest.warns(DisconnectedWarning, match=r"in 3 parts that no neighbour joins: 40 rows .row 0 is one"):
        model = embed(X, n_neighbors=6, method=method)
    assert_array_equal(model.parts_, part)
    assert_allclose(model.embedding_.T @ model.embedding_, np.eye(2), atol=1e-12)
    if method == "standard":  # the modified method compares all rows with their median
        for p in range(3):
            alone = embed(X[part == p], n_neighbors=6)
            ours = model.embedding_[part == p] / np.sqrt((part == p).mean())
            assert_allclose(np.abs(ours), np.abs(alone.embedding_), atol=1e-7)
    for certificate in (model.certificate_, audited(model, X)):
        assert certificate.holds
        assert "in each of the 3 parts" in certificate.claim
        assert "nothing is claimed of how the parts lie to each other" in certificate.claim
        assert certificate.facts["parts of the neighbour graph"] == "3, of 40, 30, 25 rows"
    assert_allclose(model.objective(X).total, model.reconstruction_error_, rtol=1e-9)


def test_parts_under_sabotage():
    """Two parts exchanged, one turned, one stretched at the cost of another: each is a wrong embedding."""
    part = np.repeat([0, 1], [40, 40])
    X = np.concatenate([SWISS[:40], SWISS[40:80] + 500])
    with pytest.warns(DisconnectedWarning):
        model = embed(X, n_neighbors=6)
    Y = model.embedding_.copy()
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    shares = np.where(part == 0, np.sqrt(1.5), np.sqrt(0.5))[:, None]
    for wrong in (Y[np.r_[40:80, 0:40]], np.where(part[:, None] == 0, Y @ turn, Y), Y * shares):
        model.embedding_ = wrong
        assert not audited(model, X).holds
    model.embedding_ = Y
    assert audited(model, X).holds
    model.disconnected = "error"  # with which there would be no fit
    assert any(f.startswith("parts of the neighbour graph") for f in audited(model, X).failures())


def test_new_rows_take_neighbours_of_one_part():
    """Between two parts, the rows of the nearer one: coordinates of different parts cannot be averaged."""
    X = np.concatenate([SWISS[:40], SWISS[:40] + np.array([0.0, 0.0, 60.0])])
    with pytest.warns(DisconnectedWarning):
        model = embed(X, n_neighbors=6)
    assert model.parts_.max() == 1
    new = X[:40].mean(axis=0) + np.array([0.0, 0.0, 29.0])
    alone = embed(SWISS[:40], n_neighbors=6)
    assert_allclose(np.abs(model.transform([new])), np.abs(alone.transform([new])) * np.sqrt(0.5), atol=1e-7)


def test_joins_that_were_not_needed_are_noticed():
    X = np.concatenate([SWISS[:40], SWISS[:30] + 500, SWISS[:25] - 500])
    model = embed(X, n_neighbors=5, disconnected="join", reg=0.1)
    assert audited(model, X).holds
    joined = np.flatnonzero(np.abs(X[model.neighbors_] - X[:, None]).max(axis=(1, 2)) > 100)
    inside = next(i for i in range(40) if i not in joined)
    model.neighbors_[inside, -1] = 50
    assert any(f.startswith("joins of parts that were not needed") for f in audited(model, X).failures())
    model.neighbors_[inside, 0] = 51
    assert any(f.startswith("share of rows with a nearer row left out") for f in audited(model, X).failures())


def test_neighbours_are_nearest_first():
    model = embed(SWISS)
    model.neighbors_ = model.neighbors_[:, ::-1].copy()
    (failure,) = audited(model, SWISS).failures()
    assert failure.startswith("share of rows whose neighbours are out of order")


def test_pynndescent_is_asked_for_by_name(monkeypatch):
    with pytest.raises(DataError, match="without the package pynndescent"):
        embed(SWISS, neighbors_algorithm="pynndescent")

    class NNDescent:
        """Stands in for the package: same interface, exact, but for one row."""

        def __init__(self, X, n_neighbors, random_state):
            self.search = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
            graph = self.search.kneighbors(X, return_distance=False)
            graph[3, -1] = N - 1 - graph[3, -1]
            self.neighbor_graph = graph, None

        def query(self, Q, k):
            return self.search.kneighbors(Q, k, return_distance=False), None

    monkeypatch.setitem(sys.modules, "pynndescent", types.SimpleNamespace(NNDescent=NNDescent))
    model = embed(SWISS, neighbors_algorithm="pynndescent")
    assert "need not be the nearest" in model.certificate_.facts["neighbours"]
    assert model.certificate_.holds
    assert audited(model, SWISS).holds
    assert model.transform(SWISS[:5]).shape == (5, 2)
    model.neighbors_algorithm = "auto"  # the same neighbours, claimed to be exact
    assert not audited(model, SWISS).holds


def twins(name):
    loop = getattr(loops, name)
    return [loop, getattr(loop, "py_func", loop)]


@pytest.mark.parametrize("loop", twins("smallest_entries"))
@pytest.mark.compiled
def test_smallest_entries(loop):
    rng = np.random.default_rng(0)
    P, c = rng.normal(size=(7, 40)).astype(np.float32), rng.normal(size=40).astype(np.float32)
    index, value = np.empty((7, 6), np.int64), np.empty((7, 6), np.float32)
    loop(P, c, index, value)
    assert_array_equal(index, np.argsort(P + c, axis=1)[:, :6])
    assert_array_equal(value, np.sort(P + c, axis=1)[:, :6])


@pytest.mark.parametrize("loop", twins("square_distances"))
@pytest.mark.compiled
def test_square_distances(loop):
    rng = np.random.default_rng(0)
    Q, X, index = rng.normal(size=(4, 9)), rng.normal(size=(20, 9)), rng.integers(0, 20, (4, 5))
    out = np.empty((4, 5))
    loop(Q, X, index, out)
    assert_allclose(out, np.take_along_axis(cdist(Q, X, "sqeuclidean"), index, axis=1), rtol=1e-13)
