"""On small tables, loops that are not compiled yet are done by their twins: with the same bits, and without Numba."""

import itertools
import os
import subprocess
import sys
import time
from copy import deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.validation import has_fit_parameter

import certifit
from certifit.numerics.compiled.compiling import CompiledLoop, PlainTwin, TwinTuning
from certifit.tree.optimal.scan_loops import ColumnCandidates, best_splits, leaf_costs

LOGISTIC = certifit.LogisticRegression
IRIS, KINDS = load_iris(return_X_y=True)
WIDTHS = IRIS[:, 3]


def same_bits(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(a, b, equal_nan=a is not None and np.asarray(a).dtype.kind == "f")


@pytest.fixture
def compared(monkeypatch):
    """Names of loops whose twins were called beside them, on copies of what they got; it fails where bits differ."""
    names = set()

    def call(loop, *arguments):
        copies = deepcopy(arguments)
        found = loop.dispatcher(*arguments)
        if loop.twin is not None:
            with np.errstate(all="ignore"):
                of_twin = loop.twin.function(*copies)
            names.add(loop.__name__)
            kept = slice(None, -1 if loop.__name__ in ("leaf_costs", "best_splits") else None)  # the last is scratch
            assert same_bits(found, of_twin), loop.__name__
            assert same_bits(arguments[kept], copies[kept]), loop.__name__
        return found

    monkeypatch.setattr(CompiledLoop, "__call__", call)
    return names


CASES = [
    (LOGISTIC(), KINDS, {"softmax_rows", "root_rows"}),
    (LOGISTIC(penalty="l1"), KINDS == 1, {"binary_rows", "shrink_quadratic"}),
    (certifit.LassoCV(alphas=5, cv=3), WIDTHS, {"descend"}),
    (certifit.LinearSVC(), KINDS, {"hinge_rows"}),
    (certifit.LinearSVC(loss="hinge"), KINDS == 1, {"hinge_rows"}),
    (certifit.SVC(), KINDS, {"working_square", "solve_pairs", "add_rows"}),
    (certifit.NuSVC(), KINDS, {"solve_pairs_of_a_side"}),
    (certifit.GaussianMixture(3, random_state=0), None, {"shift_rows", "pair_products", "softmax", "compare_rows"}),
    (certifit.GaussianNB(), KINDS, {"group_rows_by_class", "add_moments"}),
    (certifit.BernoulliNB(binarize=2.0), KINDS, {"add_threshold_counts"}),
    (certifit.CategoricalNB(), KINDS, {"add_category_counts"}),
    (
        certifit.AdaBoostClassifier(n_estimators=4),
        KINDS,
        {"best_cut", "leaf_class_weights", "weight_missed", "reweight"},
    ),
    (certifit.AdaBoostClassifier(n_estimators=4), KINDS == 1, {"best_cut_of_two"}),
    (
        certifit.GradientBoostingClassifier(n_estimators=2),
        KINDS,
        {"find_class_gradients", "add_leaf_sums", "move_scores"},
    ),
    *(
        (certifit.HistGradientBoostingRegressor(max_iter=2, loss=loss), WIDTHS, {"find_gradients"})
        for loss in ("squared_error", "absolute_error", "poisson", "gamma")
    ),
    (certifit.HistGradientBoostingClassifier(max_iter=2), KINDS == 1, {"find_gradients"}),
    (
        certifit.OptimalTreeClassifier(max_bins=8, time_limit=0.0),
        KINDS,
        {"code_columns", "count_labels", "leaf_costs", "best_splits"},
    ),
    (certifit.OptimalTreeRegressor(max_bins=8, time_limit=0.0), WIDTHS, {"count_moments"}),
    (
        certifit.AdditiveClassifier(alpha=0.01, max_iter=3),
        KINDS == 1,
        {"fused_path", "add_and_sum", "add_columns", "segment_hessian"},
    ),
    (certifit.AdditiveRegressor(alpha=0.01, max_iter=3, loss="poisson"), WIDTHS, {"add_and_sum"}),
    (
        certifit.MLPClassifier(max_iter=2, random_state=0),
        KINDS,
        {"adam_step", "add_biases", "stop_slopes", "shift_scores", "find_softmax_slopes"},
    ),
    (certifit.MLPClassifier(max_iter=2, solver="sgd", random_state=0), KINDS == 1, {"momentum_step"}),
    (
        certifit.ConvNetClassifier([("conv", 2, 1), ("conv", 2, 2, 1, 1), ("max_pool", 2), "relu"], max_iter=2),
        KINDS,
        {"keep_largest", "spread_slopes", "add_windows"},
    ),
    (certifit.MLPClassifier(max_iter=2, random_state=0, solver="sgd"), KINDS, {"momentum_step"}),
    (certifit.LocallyLinearEmbedding(n_neighbors=5, disconnected="join"), None, {"elimination_tree"}),
]


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("model", "y", "names"), CASES, ids=lambda value: type(value).__name__)
def test_twins_have_the_bits_of_their_loops(model, y, names, compared):
    X = IRIS + np.random.default_rng(0).random(IRIS.shape) / 7  # no round numbers: every rounding shows
    if isinstance(model, certifit.CategoricalNB):
        X = np.floor(IRIS)
    weight = {"sample_weight": np.arange(150.0) % 7 / 3} if has_fit_parameter(model, "sample_weight") else {}
    model.fit(X, y, **weight)
    assert names <= compared


@pytest.mark.parametrize("kind", range(4))
def test_costs_of_leaves(kind, compared):
    """Impurities too, which no estimator asks for."""
    stats = np.abs(np.random.default_rng(0).normal(size=(3, 20)))
    stats[:, 0] = stats[1, 1:4] = 0.0
    leaf_costs(stats, kind, 0.1, np.zeros(20), np.empty((2, 20)))
    assert compared == {"leaf_costs"}


def test_small_tables_are_fitted_without_numba():
    code = (
        "import sys; from certifit import GaussianMixture, LogisticRegression, SVC; "
        "from sklearn.datasets import load_iris; X, y = load_iris(return_X_y=True); "
        "[model.fit(X, y) for model in (GaussianMixture(), LogisticRegression(), SVC())]; "
        "print('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_the_best_tree_of_a_small_table_compiles_nothing(tmp_path):
    code = (
        "from certifit import OptimalTreeRegressor; from sklearn.datasets import load_diabetes; "
        "X, y = load_diabetes(return_X_y=True); OptimalTreeRegressor().fit(X[:, 2:5], y)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert not [*tmp_path.rglob("*.nbc")]


@pytest.mark.parametrize("kind", range(4))
def test_splits_of_many_candidates_and_regions(kind, compared):
    """More than are searched at once, with ties, missing values on either side and rows given away."""
    rng = np.random.default_rng(kind)
    below = rng.integers(0, 3, size=(33, 3, 900)).cumsum(axis=0) * 0.7
    missing = rng.integers(0, 3, size=(3, 900)) * 0.7
    low = np.repeat(np.arange(1, 32), 2)
    candidates = ColumnCandidates(low, low + rng.integers(0, 2, 62), np.arange(62) % 2 == 0, 5)
    best, chosen = np.full(900, np.inf), np.full(900, -1)
    best_splits(below, missing, candidates, (kind, 2.0), best, chosen, np.empty((6, 900)))
    assert compared == {"best_splits"}
    assert len(set(chosen)) > 5


def test_a_twin_gives_way_to_large_tables_and_long_work(monkeypatch):
    clock = itertools.count(step=0.02)
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    twin = PlainTwin(np.sort, TwinTuning(most_entries=10, seconds=0.01))
    assert twin.suffices((np.ones(10), 3.0, (np.ones(10), np.ones((2, 5)))))
    assert not twin.suffices((np.ones(1), (np.ones(11),)))
    twin((np.ones(10),))
    assert not twin.suffices((np.ones(10),))
