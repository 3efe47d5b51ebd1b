"""Trees from histograms: every split is the best of its candidates, and nothing depends on how work is shared out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certifit.numerics.compiled.workers import Workers
from certifit.rows.as_rows import as_rows
from certifit.rows.threads import set_threads
from certifit.tree.binned.bins import learn_bins
from certifit.tree.binned.growth import BinnedGrower, BinnedLimits, BinnedTuning, packed_scale
from certifit.tree.binned.histogram_loops import pack_pairs

LIMITS = BinnedLimits(max_leaf_nodes=9, min_samples_leaf=7, l2_regularization=0.3)


@pytest.fixture(autouse=True)
def wrapping():
    """Random bits wrap around at 64, which NumPy's own numbers would warn of where nothing is compiled."""
    with np.errstate(over="ignore"):
        yield


def problem(n=400, seed=0, missing=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    X[:, 3] = rng.integers(0, 6, n)
    y = np.sin(2 * X[:, 0]) + (X[:, 3] % 2) + rng.normal(size=n) * 0.3
    if missing:
        X[rng.random(n) < 0.2, 1] = np.nan
        y += np.isnan(X[:, 1])
    g, h = -(y - y.mean()), rng.random(n) + 0.05
    categorical = np.array([False, False, False, True])
    bins = learn_bins(as_rows(X, missing=True), most_bins=32, categorical=categorical)
    return bins, bins.encode(X), g, h


def grow(bins, codes, g, h, limits=LIMITS, tuning=BinnedTuning(), constant=None):
    grower = BinnedGrower(codes, bins, limits, tuning)
    scale = packed_scale(len(g), float(np.abs(g).sum()), float(h.sum()), constant)
    grower.pack(g, h, scale, 5)
    tree = grower.grow(scale, 5, float(h.max()))
    grower.close()
    m = int(tree.free[-2])
    rows = [np.sort(np.concatenate([tree.rows[a:b] for a, b in run])) for run in tree.runs[:m]]
    return tree.nodes[:m].copy(), tree.goes_left[:m].copy(), rows, tree.packed.copy(), scale


def fields(nodes):
    """What a tree is, without how it was grown."""
    names = ["total", "count", "left", "right", "column", "border", "missing_left", "made_gain", "low", "high"]
    inner = nodes["left"] >= 0
    return [np.where(inner | (name in ("total", "count", "left")), nodes[name], 0) for name in names]


def plain_gain(packed, scale, rows, l2):
    total = int(packed[rows].sum())
    G, H = total >> scale.shift, total & ((1 << scale.shift) - 1)
    return G**2 / (H + l2 * scale.scales[1])


def best_gain(bins, codes, packed, scale, rows, limits):
    """The best gain of any admissible split of a node, by trying all."""
    best = 0.0
    whole = plain_gain(packed, scale, rows, limits.l2_regularization)
    for j in range(codes.shape[1]):
        code = codes[rows, j]
        if bins.is_categorical[j]:
            kinds = np.unique(code)
            sides = [
                np.isin(code, kinds[[bool(k >> i & 1) for i in range(len(kinds))]]) for k in range(2 ** len(kinds))
            ]
        else:
            sides = [(code <= b) | (left & (code == 255)) for b in range(255) for left in (False, True)]
        for side in sides:
            if min(side.sum(), (~side).sum()) >= limits.min_samples_leaf:
                parts = [plain_gain(packed, scale, rows[s], limits.l2_regularization) for s in (side, ~side)]
                best = max(best, sum(parts) - whole)
    return best


@pytest.mark.compiled
@pytest.mark.parametrize("counted", [0, 16_384])
def test_every_split_is_the_best_of_all(counted):
    bins, codes, g, h = problem(150)
    tuning = BinnedTuning(counted_rows=counted, leaf_hessian=0.0)
    limits = replace(LIMITS, min_samples_leaf=12, l2_regularization=0.0)
    nodes, goes_left, rows, packed, scale = grow(bins, codes, g, h, limits, tuning)
    assert (nodes["left"] >= 0).sum() == (nodes["left"] < 0).sum() - 1 >= 4
    for k, node in enumerate(nodes):
        assert int(packed[rows[k]].sum()) == node["total"]
        best = best_gain(bins, codes, packed, scale, rows[k], limits)
        if node["left"] >= 0:
            side = goes_left[k][codes[rows[k], node["column"]]].astype(bool)
            assert np.array_equal(rows[k][side], rows[node["left"]])
            assert np.array_equal(rows[k][~side], rows[node["right"]])
            assert node["made_gain"] == pytest.approx(best, rel=1e-9)
        assert node["count"] == len(rows[k]) >= limits.min_samples_leaf
    # The leaf that gains most is split next: no leaf left over gains more than the last split made.
    left_over = [best_gain(bins, codes, packed, scale, rows[k], limits) for k in np.flatnonzero(nodes["left"] < 0)]
    assert (nodes["left"] < 0).sum() < 9 or max(left_over[:-2]) <= nodes["made_gain"][nodes["left"] >= 0].max()


@pytest.mark.parametrize(
    "limits", [LIMITS, replace(LIMITS, max_leaf_nodes=None, max_depth=4), replace(LIMITS, max_features=2)]
)
def test_threads_kept_histograms_and_counting_change_nothing(limits):
    bins, codes, g, h = problem(3000)
    want = fields(grow(bins, codes, g, h, limits)[0])
    shared = BinnedTuning(shared_entries=0, block_rows=64)
    try:
        for threads in (2, 4):
            set_threads(threads)
            for tuning in (shared, replace(shared, counted_rows=0), replace(shared, kept_bytes=0)):
                got = fields(grow(bins, codes, g, h, limits, tuning)[0])
                assert all(np.array_equal(a, b) for a, b in zip(want, got, strict=True))
    finally:
        set_threads(None)


def test_a_constant_hessian_counts_rows():
    bins, codes, g, _ = problem(500)
    h = np.full(500, 2.5)
    nodes, _, rows, packed, scale = grow(bins, codes, g, h, constant=2.5)
    assert scale.constant
    assert ((packed & ((1 << scale.shift) - 1)) == 1).all()
    assert [len(r) for r in rows] == (nodes["total"] & ((1 << scale.shift) - 1)).tolist()
    assert min(len(r) for r in rows) >= 7


def test_monotone_columns_bound_the_values_of_branches():
    bins, codes, g, h = problem(600, missing=False)
    limits = replace(LIMITS, monotone=np.array([1, 0, 0, 0]), max_leaf_nodes=20)
    nodes, _, rows, *_ = grow(bins, codes, g, h, limits)
    value = [np.clip(-g[r].sum() / (h[r].sum() + 0.3), n["low"], n["high"]) for r, n in zip(rows, nodes, strict=True)]
    leaves = [k for k, n in enumerate(nodes) if n["left"] < 0]
    assert (nodes["column"][nodes["left"] >= 0] == 0).any()
    # Of two leaves whose boxes differ in column 0 alone the one on the right may not be lower; here: all of a row.
    for a in leaves:
        for b in leaves:
            inside = [codes[rows[a]][:, 1:], codes[rows[b]][:, 1:]]
            same = (inside[0][:, None] == inside[1][None]).all(axis=2)
            if same.any() and (codes[rows[a], 0].max() < codes[rows[b], 0].min()):
                assert value[a] <= value[b] + 1e-12


def test_columns_of_different_groups_do_not_meet_in_a_branch():
    bins, codes, g, h = problem(2000)
    groups = np.array([[True, True, False, False], [False, False, True, True]])
    nodes, *_ = grow(bins, codes, g, h, replace(LIMITS, groups=groups, max_leaf_nodes=20))
    for k in range(1, len(nodes)):
        used, at = set(), k
        while nodes[at]["parent"] >= 0:
            at = nodes[at]["parent"]
            used.add(int(nodes[at]["column"]))
        assert used <= {0, 1} or used <= {2, 3}


@pytest.mark.compiled
def test_rounding_is_unbiased_and_no_hessian_vanishes():
    n = 4000
    g, h = np.full(n, 0.3), np.full(n, 1e-12)
    packed = np.empty(n, np.int64)
    pack_pairs((g, h), np.array([1.0, 1.0]), 32, 1, (0, n), packed)
    assert ((packed & 0xFFFFFFFF) == 1).all()
    gradient = packed >> 32
    assert set(gradient.tolist()) == {0, 1}
    assert abs(gradient.mean() - 0.3) < 4 * np.sqrt(0.21 / n)
    again = np.empty(n, np.int64)
    pack_pairs((g, h), np.array([1.0, 1.0]), 32, 1, (1000, n), again)
    assert np.array_equal(again[1000:], packed[1000:])


@pytest.mark.parametrize("n", [10, 100_000, 30_000_000])
def test_no_sum_can_overflow(n):
    for size, hessian in ((1e-300, 1e-300), (n * 0.5, n * 0.25), (1e200, 1e200)):
        scale = packed_scale(n, size, hessian, None)
        assert size * scale.scales[0] + n < 2 ** (63 - scale.shift)
        assert hessian * scale.scales[1] + 2 * n < 2**scale.shift
        constant = packed_scale(n, size, hessian, hessian / n)
        assert size * constant.scales[0] + n < 2 ** (63 - constant.shift)
        assert n < 2**constant.shift


def test_workers_hand_on_the_first_error_and_go_on():
    workers = Workers(3)

    def fail(k):
        if k == 2:
            raise ValueError("two")

    with pytest.raises(ValueError, match="two"):
        workers.run(fail)
    seen = []
    workers.run(seen.append)
    assert sorted(seen) == [0, 1, 2]
    workers.close()
