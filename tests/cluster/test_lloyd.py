"""Lloyd passes: compiled loops against a plain twin, and shortcuts that change no bit."""

import itertools
import math

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from certifit.cluster import lloyd
from certifit.cluster.distance_bounds import prepare_centres
from certifit.cluster.exact_sums import LloydState
from certifit.cluster.leading_directions import add_directions_of, find_directions, sketch_rows
from certifit.cluster.lloyd import Lloyd, assign_rows, new_memory, square_distances
from certifit.cluster.tuning import KMeansTuning
from certifit.rows import ArrayRows, as_rows
from certifit.rows.sources.workers import remembered
from tests.cluster.tables import Streamed, assert_same_fit, blobs, sized, ties, wide


def plain_pass(X, w, C, A):
    """The compiled pass's twin: squared differences, the lowest number among equals, sums about the anchors."""
    D = ((X.astype(np.float64)[:, None] - C) ** 2).sum(axis=2)
    labels = D.argmin(axis=1)
    member = (labels[:, None] == np.arange(len(C))) * w[:, None]
    Z = X - A[labels]
    return labels, member.sum(axis=0), member.T @ Z, member.T @ (Z**2).sum(axis=1)


def passes(X, w, k, steps, sketched):
    """Labels and sums of successive Lloyd passes by the compiled loops, which remember, and by their twin."""
    rows = ArrayRows(X, w=w)
    block = next(iter(rows))
    memory, prepared, directions = new_memory(len(X)), None, find_directions(rows, k) if sketched else None
    if directions is not None:
        memory.sketch = sketch_rows(directions, X)
    C = X[:k].astype(np.float64)
    for _ in range(steps):
        state = LloydState(C, np.round(C, 1))
        prepared = prepare_centres(state, prepared, directions)
        found = assign_rows(prepared, memory, block)
        yield (memory.bounds.labels, found.weight, found.sums, found.squares), plain_pass(X, w, *state)
        C = state.anchors + found.sums / np.maximum(found.weight, 1e-300)[:, None]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("X", "k"),
    [(blobs(150, 2, 3), 4), (ties(100, 2), 5), (blobs(60, 1), 1), (blobs(50, 3) + 1e4, 3), (wide(140, 128), 2)],
    ids=["blobs", "ties", "one centre", "far away", "wide"],
)
@pytest.mark.compiled
def test_compiled_pass_finds_nearest_centres_and_sums(X, k, dtype):
    X = X.astype(dtype)
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    for compiled, twin in passes(X, w, k, 4, sketched=True):
        np.testing.assert_array_equal(compiled[0], twin[0])
        for ours, theirs in zip(compiled[1:], twin[1:], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(X).max() ** 2)


@np.errstate(invalid="ignore")  # where loops are not compiled, NumPy speaks of the infinities they use
@pytest.mark.parametrize("weights", ["one", "counts", "decaying"])
@pytest.mark.parametrize("X", [blobs(300, 3), blobs(300, 3) + 1e8, ties(300)], ids=["blobs", "far away", "ties"])
@pytest.mark.compiled
def test_compiled_sums_are_right_and_do_not_depend_on_the_passes_before(X, weights):
    """Wherever centres were before, sums have the bits of a first pass, and the digits of math.fsum."""
    rng = np.random.default_rng(0)
    X = np.vstack([X, [[1e30, 0.0, 0.0], [0.0, -1e15, 0.0]]])  # two that fit no grid
    w = {"one": np.ones(302), "counts": rng.integers(0, 3, 302), "decaying": 0.7 ** np.arange(302)}[weights]
    block = next(iter(ArrayRows(X, w=w.astype(float))))
    memory, prepared, A = new_memory(302), None, X[[0, 1, 2, 3, 300]].astype(float)
    for step in range(6):
        C = X[rng.choice(300, 5, replace=False)] + 0.1
        A = np.where(rng.random((5, 1)) < 0.2, C, A)  # some anchors move
        prepared = prepare_centres(LloydState(C, A), prepared)
        found = assign_rows(prepared, memory, block)
        fresh = new_memory(302)
        first = assign_rows(prepare_centres(LloydState(C, A), None), fresh, block)
        labels = memory.bounds.labels
        np.testing.assert_array_equal(labels, fresh.bounds.labels)
        for name in ("weight", "sums", "squares"):
            np.testing.assert_array_equal(getattr(found, name), getattr(first, name), err_msg=f"{name}, {step}")
        for a, j in itertools.product(range(5), range(3)):
            terms = (w * (X[:, j] - A[a, j]))[labels == a]
            assert abs(found.sums[a, j] - math.fsum(terms)) <= 1e-13 * math.fsum(np.abs(terms))


@pytest.mark.compiled
def test_compiled_square_distances():
    X, C = blobs(20, 5).astype(np.float32), blobs(3, 5)
    expected = ((X[:, None].astype(float) - C) ** 2).sum(axis=2)
    np.testing.assert_allclose(square_distances(X, C, True), expected, rtol=1e-12)
    np.testing.assert_allclose(square_distances(X, C, False), expected, rtol=1e-12)


def test_sketch_is_used_and_keeps_its_promises():
    X = wide()
    rows = as_rows(X)
    lead = find_directions(rows, 3)
    sketch = sketch_rows(lead, X)
    Z = (X - lead.shift) * lead.scale
    inside = Z @ lead.V
    np.testing.assert_allclose(sketch.Y, inside, atol=1e-5)
    assert (sketch.rest >= np.sqrt(((Z - inside @ lead.V.T) ** 2).sum(axis=1))).all()
    means = sized(3, True, random_state=0).fit(X).cluster_centers_
    assert add_directions_of(np.random.default_rng(0).normal(size=(3, 200)), lead) is None  # too much is outside
    exact = add_directions_of(means, lead)
    np.testing.assert_allclose(exact.V.T @ exact.V, np.eye(exact.V.shape[1]), atol=1e-12)
    assert prepare_centres(LloydState(means, means), None, exact).scaled.outside < 1e-9
    scaled = prepare_centres(LloydState(means, means), None, lead).scaled
    assert scaled.apart.shape == (3, 3)
    over = (means - lead.shift) * lead.scale @ (np.eye(X.shape[1]) - lead.V @ lead.V.T)
    assert scaled.outside >= np.sqrt((over**2).sum(axis=1)).max()
    assert (scaled.apart >= np.sqrt(((over[:, None] - over) ** 2).sum(axis=2))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("X", "k"),
    [(blobs(), 12), (ties(), 20), (wide(), 3), (wide() * 1e-3 + 1e3, 5), (np.repeat(blobs(300), 4, axis=0), 9)],
    ids=["blobs", "ties", "wide", "far away", "repeated"],
)
def test_remembering_changes_no_bit(X, k, weighted, dtype):
    """The accelerated algorithm against the same one without memory, which compares every row with every centre."""
    X = X.astype(dtype)
    w = np.random.default_rng(0).integers(0, 4, len(X)).astype(float) if weighted else None
    model, again = (sized(k, True, random_state=3, n_init=2, tol=0.0) for _ in range(2))
    assert_same_fit(model.fit(X, sample_weight=w), again.fit(Streamed(X, w)))


def test_workers_remember_and_change_no_bit(blocks_of, monkeypatch):
    """Blocks held by a Dask worker keep their bounds; where some are lost, rows are compared afresh."""
    blocks_of(512)
    X = blobs(2048, 3, 4)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=4).map_partitions(
        lambda part: part + 0.0
    )
    tuning = KMeansTuning(compiled_above=0)
    here, fresh = Lloyd(ArrayRows(X), 4, tuning), []
    monkeypatch.setattr(lloyd, "new_memory", lambda n, make=new_memory: fresh.append(n) or make(n))
    with dask.config.set(scheduler="sync"):
        there = Lloyd(as_rows(frame), 4, tuning)
        C = X[:4]
        for turn in range(4):
            if turn == 3:
                remembered._memories.popitem()
            fresh.clear()
            found = there.measure(LloydState(C, np.round(C, 1)))
            assert fresh == [[512] * 4, [], [], [512]][turn]
            wanted = here.measure(LloydState(C, np.round(C, 1)))
            for name in ("weight", "sums", "squares"):
                np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
            C = np.round(C, 1) + wanted.sums / wanted.weight[:, None]
        remembered._memories.popitem()
        fresh.clear()
        np.testing.assert_array_equal(there.labels(), here.labels())
        assert fresh == [512]


def test_threads_change_no_bit(threads):
    X = np.concatenate([wide(), wide() + 1.0, wide() - 1.0])
    fits = []
    for n in (1, 2, 3):
        threads(n)
        fits.append(sized(4, True, random_state=0).fit(X))
    assert_same_fit(fits[0], fits[1])
    assert_same_fit(fits[0], fits[2])
