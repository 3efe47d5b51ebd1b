"""Nyström and random Fourier features, and machines on them: known solutions, proved errors, corners."""

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import kernel_approximation, svm
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline

from certifit import CertificateWarning
from certifit.checkers.kernel_approximation import approximate_svc as certificates
from certifit.checkers.kernel_approximation.adapter import audit_approximate_svc, audit_fourier, audit_nystroem
from certifit.checkers.svm.linear import Spec
from certifit.exceptions import DataError, NoSolutionError
from certifit.kernel_approximation.approximate_svc import ApproximateSVC, ApproximateSVCTuning
from certifit.kernel_approximation.landmarks import RULES, LandmarkKernel, LandmarkPool, LandmarkTuning
from certifit.kernel_approximation.nystroem import Nystroem
from certifit.kernel_approximation.nystroem_problem import NystroemProblem
from certifit.kernel_approximation.rbf_sampler import RBFSampler
from certifit.rows import ArrayRows, set_threads
from certifit.rows.mapped import MappedRows
from certifit.svm.kernel.kernels import RBF, Linear, Polynomial
from certifit.svm.linear.block_statistics import Against, Ask, Ramp, rounded
from certifit.svm.linear.linear_svm import LinearSVC
from certifit.svm.linear.solve import Aim, Problem

TOL = 1e-4
LARGEST = "largest error of a kernel value"
WITHIN = "of the optimum with the kernel itself within"


def table(n=200, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def labelled(n=200, k=2):
    X = table(n)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * table(n, 1, 1)[:, 0]
    return X, np.digitize(score, np.quantile(score, np.arange(1, k) / k))


def gram(model, X):
    features = model.transform(X)
    return features @ features.T


def minus(A, B):
    return -A @ B.T


# ------------------------------------------------------------------------------------------------ Nyström
@pytest.mark.parametrize("rule", ["rpcholesky", "uniform"])
@pytest.mark.parametrize(
    ("params", "kernel"),
    [
        ({"gamma": 0.3}, partial(rbf_kernel, gamma=0.3)),
        ({"kernel": "poly", "gamma": 0.5, "coef0": 1.0}, partial(polynomial_kernel, gamma=0.5, coef0=1.0)),
        ({"kernel": "linear"}, lambda A: A @ A.T),
        ({"kernel": RBF(0.3) + 2.0 * Linear()}, lambda A: rbf_kernel(A, gamma=0.3) + 2.0 * A @ A.T),
        ({"kernel": rbf_kernel, "gamma": 0.25}, partial(rbf_kernel, gamma=0.25)),  # its own default for 4 columns
    ],
)
def test_with_every_row_a_landmark_features_are_exact(params, kernel, rule):
    """Also where the landmarks' Gram matrix is singular: Linear has rank 4, Polynomial at most 35."""
    X = table(120)
    model = Nystroem(**params, n_components=120, landmarks=rule, random_state=0).fit(X)
    K = kernel(X)
    np.testing.assert_allclose(gram(model, X), K, atol=1e-7 * K.max())
    assert model.certificate_.holds
    assert audit_nystroem(model, X, None, None, TOL).holds
    assert ("if the kernel is" in model.certificate_.claim) == (
        params.get("kernel") is rbf_kernel
    )  # nobody proved it


def test_a_kernel_of_low_rank_needs_few_landmarks():
    X = table()
    assert len(Nystroem(Linear(), random_state=0).fit(X).components_) == 4
    assert len(Nystroem(Polynomial(2, 1.0, 1.0), random_state=0).fit(X).components_) == 15  # (d + 1) (d + 2) / 2


def test_inner_products_are_those_of_scikit_learn_with_the_same_landmarks():
    X = table()
    model = Nystroem(gamma=0.3, n_components=20, random_state=0).fit(X)
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])
    theirs = kernel_approximation.Nystroem(gamma=0.3, n_components=20, random_state=0).fit(model.components_)
    np.testing.assert_allclose(gram(model, X), gram(theirs, X), atol=1e-9)
    checked = audit_nystroem(kernel_approximation.Nystroem(gamma=0.3, random_state=0).fit(X), X, None, None, TOL)
    assert checked.holds


@pytest.mark.parametrize("rule", ["rpcholesky", "uniform"])
def test_proved_errors_cover_the_whole_kernel_matrix(rule):
    X, w = table(), np.linspace(0.5, 2.0, 200)
    model = Nystroem(n_components=30, landmarks=rule, random_state=0).fit(X, sample_weight=w)
    left = rbf_kernel(X, gamma=model.gamma_) - gram(model, X)
    e = np.maximum(np.diag(left), 0.0)
    assert np.linalg.eigvalsh(left).min() > -1e-12
    assert (np.abs(left) <= np.sqrt(np.outer(e, e)) + 1e-12).all()
    for found in (model.certificate_, audit_nystroem(model, X, None, w, TOL)):
        np.testing.assert_allclose(found.objective, w @ e / w.sum(), rtol=1e-10)
        np.testing.assert_allclose(found.facts[LARGEST], np.abs(left).max(), rtol=1e-10)


def test_pivoted_landmarks_are_near_the_best_possible_and_find_small_groups():
    """Eckart & Young: no rank-m matrix leaves less of the trace than the smallest eigenvalues."""
    rng = np.random.default_rng(0)
    X = np.vstack([0.1 * rng.normal(size=(400, 3)), 5 * rng.normal(size=(30, 3))])
    best = np.linalg.eigvalsh(rbf_kernel(X, gamma=0.5))[:-30].sum() / len(X)
    mean = {
        rule: np.mean(
            [
                Nystroem(gamma=0.5, n_components=30, landmarks=rule, random_state=i).fit(X).certificate_.objective
                for i in range(5)
            ]
        )
        for rule in ("rpcholesky", "uniform", "auto")
    }
    assert mean["auto"] <= mean["rpcholesky"] * (1 + 1e-6)
    assert best <= mean["rpcholesky"] <= 4 * best
    assert mean["rpcholesky"] < 0.5 * mean["uniform"]


def test_several_draws_at_a_time_are_those_of_one_at_a_time():
    """Chen et al. (2023), algorithm 1: the second pivot is drawn by what the first leaves over; 5 standard errors."""
    X, w, rng = np.array([[0.0], [0.5], [0.8], [2.0]]), np.array([1.0, 2.0, 1.0, 0.5]), np.random.default_rng(0)
    K = rbf_kernel(X, gamma=1.0)
    expected = np.zeros((4, 4))
    for i in range(4):
        left = w * (1.0 - K[i] ** 2)
        expected[i] = w[i] / w.sum() * left / left.sum()
    kernel = LandmarkKernel(RBF(1.0), lambda A: np.ones(len(A)))
    pool = LandmarkPool(X, w, X[:, 0], 2, kernel, np.inf, LandmarkTuning())
    found, draws = np.zeros((4, 4)), 3000
    for _ in range(draws):
        found[tuple(RULES["rpcholesky"](pool, rng))] += 1 / draws
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected / draws)).all()


def test_landmarks_found_until_time_is_up_are_proved_as_any_others():
    X = table(1000)
    model = Nystroem(n_components=500, random_state=0).limit_seconds(0.0).fit(X)
    assert 0 < len(model.components_) < 500
    assert model.certificate_.holds
    assert audit_nystroem(model, X, None, None, TOL).holds


@pytest.mark.parametrize("cls", [Nystroem, RBFSampler])
def test_far_from_the_origin(cls):
    X = np.round(table(), 3)
    near, far = (cls(gamma=0.3, n_components=50, random_state=0).fit(X + c) for c in (0.0, 2.0**27))
    np.testing.assert_allclose(gram(far, X + 2.0**27), gram(near, X), atol=1e-6)
    assert far.certificate_.holds


@pytest.mark.parametrize("rule", ["rpcholesky", "uniform"])
def test_long_tables_are_drawn_from(rule):
    X = table(20_000, 2)
    w = (X[:, 0] > 0).astype(float)
    model = Nystroem(n_components=20, landmarks=rule, random_state=0).fit(X, sample_weight=w)
    assert (model.components_[:, 0] > 0).all()
    assert audit_nystroem(model, X, None, w, TOL).holds


def test_what_is_no_kernel_is_refused_with_a_witness():
    with pytest.raises(NoSolutionError, match="not positive semidefinite") as caught:
        Nystroem(minus, n_components=5, landmarks="uniform").fit(table())
    assert caught.value.certificate.holds


@pytest.mark.parametrize(
    ("params", "got"),
    [
        ({"kernel": "cubic"}, "kernel='cubic'"),
        ({"landmarks": "best"}, "landmarks='best'"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"n_components": 0}, "n_components=0"),
        ({"kernel": lambda A, B: np.ones(len(A)), "landmarks": "uniform"}, "an array of shape"),
    ],
)
def test_bad_settings(params, got):
    with pytest.raises(DataError, match="wanted") as caught:
        Nystroem(**params).fit(table())
    assert got in caught.value.got


def test_rows_whose_kernel_is_zero():
    model = Nystroem("linear").fit(np.zeros((5, 3)))
    assert not model.transform(np.zeros((2, 3))).any()
    assert model.certificate_.holds


# ------------------------------------------------------------------------------------------------ Fourier
def test_features_are_those_of_scikit_learn_with_the_same_frequencies():
    X = table()
    model = RBFSampler(n_components=31, random_state=0).fit(X)
    theirs = kernel_approximation.RBFSampler(n_components=31).fit(X)
    theirs.random_weights_, theirs.random_offset_ = model.random_weights_, model.random_offset_
    np.testing.assert_allclose(model.transform(X), theirs.transform(X), atol=1e-12)


def test_inner_products_are_unbiased_and_closer_than_independent_ones():
    """Yu et al. (2016), theorem 1, with an odd number of features; the spread over seeds against scikit-learn's."""
    X = table(12)
    K = rbf_kernel(X, gamma=0.2)
    ours, theirs = (
        np.array([gram(cls(gamma=0.2, n_components=7, random_state=i).fit(X), X) for i in range(200)])
        for cls in (RBFSampler, kernel_approximation.RBFSampler)
    )
    assert (np.abs(ours.mean(axis=0) - K) <= 5 * ours.std(axis=0) / np.sqrt(200) + 1e-12).all()
    assert ((ours - K) ** 2).mean() < 0.6 * ((theirs - K) ** 2).mean()


def test_frequencies_are_orthogonal_and_their_features_have_unit_length():
    X = table()
    model = RBFSampler(n_components=8, random_state=0).fit(X)
    W = model.random_weights_[:, :4]
    np.testing.assert_allclose(W.T @ W, np.diag(np.diag(W.T @ W)), atol=1e-12)
    np.testing.assert_allclose(np.square(model.transform(X)).sum(axis=1), 1.0)


def test_the_stated_error_covers_that_of_all_pairs():
    X = table(500)
    for seed in range(5):
        model = RBFSampler(n_components=100, random_state=seed).fit(X)
        off = np.abs(gram(model, X) - rbf_kernel(X, gamma=model.gamma_))
        facts = model.certificate_.facts
        assert off.mean() <= facts["mean error of a kernel value, at most"] <= off.mean() + 0.02
        larger = (off > facts["largest error among 4096 pairs of rows"]).mean()
        assert larger <= facts["share of pairs with a larger one, at most"]


def test_scikit_learns_frequencies_are_drawn_again_where_their_seed_is_known():
    X = table()
    theirs = kernel_approximation.RBFSampler(gamma="scale", n_components=50, random_state=3).fit(X)
    assert audit_fourier(theirs, X, None, None, TOL).holds
    theirs.random_weights_ = -theirs.random_weights_
    assert not audit_fourier(theirs, X, None, None, TOL).holds
    unknown = kernel_approximation.RBFSampler(gamma="scale", n_components=1000).fit(X)
    assert "not known" in audit_fourier(unknown, X, None, None, TOL).facts["frequencies"]
    unknown.random_weights_ = 3.0 * unknown.random_weights_  # which their errors show
    assert not audit_fourier(unknown, X, None, None, TOL).holds


# ----------------------------------------------------------------------------------------------- sabotage
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("components_", lambda a: a + 1e-3),
        ("component_indices_", lambda a: a[::-1]),
        ("component_indices_", lambda a: a + 1000),
        ("normalization_", lambda a: 0.99 * a),
        ("normalization_", lambda a: 0.0 * a),  # a projection too, but not on the landmarks
        ("gamma_", lambda a: 1.001 * a),
    ],
)
def test_damaged_landmarks_are_noticed(name, damage):
    X = table()
    model = Nystroem(n_components=20, random_state=0).fit(X)
    setattr(model, name, damage(getattr(model, name)))
    assert not audit_nystroem(model, X, None, None, TOL).holds


@pytest.mark.parametrize("name", ["random_weights_", "random_offset_", "seed_", "gamma_"])
def test_damaged_frequencies_are_noticed(name):
    X = table()
    model = RBFSampler(n_components=20, random_state=0).fit(X)
    setattr(model, name, getattr(model, name) * 2)
    assert not audit_fourier(model, X, None, None, TOL).holds


def test_landmarks_that_are_other_rows_are_noticed_far_from_the_origin():
    X = table() + 1e8
    model = Nystroem(n_components=20, random_state=0).fit(X)
    assert audit_nystroem(model, X, None, None, TOL).holds
    model.component_indices_ = model.component_indices_[::-1]
    assert not audit_nystroem(model, X, None, None, TOL).holds


def test_features_of_other_settings_are_noticed():
    X, y = labelled()
    nystroem, fourier = Nystroem(gamma=1.0, n_components=20).fit(X), RBFSampler(gamma=1.0, n_components=20).fit(X)
    machine = ApproximateSVC(gamma=1.0, n_components=20).fit(X, y)
    assert audit_approximate_svc(machine, X, y, None, 1e-3).holds
    for model in (nystroem, fourier, machine):
        model.gamma = 0.5
    assert not audit_nystroem(nystroem, X, None, None, TOL).holds
    assert not audit_fourier(fourier, X, None, None, TOL).holds
    assert not audit_approximate_svc(machine, X, y, None, 1e-3).holds
    assert not audit_approximate_svc(machine.set_params(gamma=1.0, kernel="linear"), X, y, None, 1e-3).holds


def test_damaged_features_of_a_machine_are_noticed():
    X, y = labelled()
    for features, name in (("nystroem", "normalization_"), ("fourier", "random_offset_")):
        model = ApproximateSVC(features=features, n_components=20, random_state=0).fit(X, y)
        assert audit_approximate_svc(model, X, y, None, 1e-3).holds
        setattr(model.features_, name, 1.01 * getattr(model.features_, name))
        assert not audit_approximate_svc(model, X, y, None, 1e-3).holds


# ------------------------------------------------------------------------------------------------ sources
@pytest.mark.parametrize("make", [partial(Nystroem, n_components=10), partial(RBFSampler, n_components=10)])
def test_every_source_gives_the_same_features(make, tmp_path):
    X = table(3000)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.to_parquet(tmp_path / "t.parquet")
    model = make(random_state=0).fit(X)
    expected = model.transform(X)
    for source in (da.from_array(X, chunks=(700, 4)), frame, tmp_path / "t.parquet", sparse.csr_array(X)):
        other = make(random_state=0).fit(source)
        np.testing.assert_allclose(other.transform(source), expected, atol=1e-9)
        np.testing.assert_allclose(other.certificate_.objective, model.certificate_.objective, rtol=1e-9)
    single = make(random_state=0).fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-4)
    names = clone(model).fit(frame).get_feature_names_out()
    assert names[9] == f"{type(model).__name__.lower()}9"


def squares(block):
    return block.X**2


def column_sums(block):
    assert len(block.w) <= 2048  # cut for 300 columns
    return block.w @ block.X


def test_mapped_rows_are_cut_to_their_width_and_sum_to_the_same_bits():
    X = table(70_000, 3)
    wide = np.arange(300.0)
    rows = MappedRows(ArrayRows(X, np.arange(70_000)), lambda block: block.X[:, :1] * wide, 300)
    seen = []
    for n in (1, 2, 3):
        set_threads(n)
        seen.append(rows.sum(column_sums))
    set_threads(None)
    assert (seen[0] == seen[1]).all()
    assert (seen[0] == seen[2]).all()
    np.testing.assert_allclose(seen[0], X[:, 0].sum() * wide, rtol=1e-9)
    taken = rows.take(np.array([1, 40_000]))
    np.testing.assert_array_equal(taken.X, X[[1, 40_000], :1] * wide)
    assert taken.y.tolist() == [1, 40_000]
    small = MappedRows(ArrayRows(X[:5000], np.arange(5000)), squares, 3).relabel(lambda y, w: (y + 1, 2 * w))
    np.testing.assert_array_equal(small.load().X, X[:5000] ** 2)
    assert [block.start for block in small] == [0]
    assert (small.load().w == 2).all()


# ------------------------------------------------------------------------------------------- ApproximateSVC
def exact_machine(X, y):
    """scikit-learn's SVC and its objective."""
    model = svm.SVC(tol=1e-9).fit(X, y)
    a, Z = model.dual_coef_[0], model.support_vectors_
    slacks = np.maximum(0.0, 1.0 - (2 * y - 1) * model.decision_function(X))
    return model, 0.5 * a @ rbf_kernel(Z, gamma=model._gamma) @ a + slacks.sum()


def test_with_every_row_a_landmark_the_machine_is_the_exact_one():
    X, y = labelled()
    exact, optimum = exact_machine(X, y)
    model = ApproximateSVC(n_components=200, tol=1e-10, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.certificate_.objective, optimum, rtol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-3)
    assert WITHIN in model.certificate_.facts


def proved(certificate):
    return float(certificate.facts[WITHIN].split()[0])


def test_what_is_proved_of_the_kernel_itself_is_true():
    X, y = labelled(1500)
    _, optimum = exact_machine(X, y)
    for m in (80, 300):
        model = ApproximateSVC(n_components=m, random_state=0).fit(X, y)
        for found in (model.certificate_, audit_approximate_svc(model, X, y, None, 1e-3)):
            assert 0 < found.objective - optimum <= proved(found) * (1 + 1e-2)  # three digits are written
    assert proved(model.certificate_) < 0.03 * optimum


@pytest.mark.parametrize("loss", [(np.inf, 0.0, 1.0), (2.0, 0.0, np.inf)])
@pytest.mark.parametrize("rho", [0.0, None])
def test_bounds_for_the_kernel_itself_are_honest_for_any_coefficients(rho, loss):
    """Against the objective of the best machine that a finer approximation finds."""
    X, y = labelled()
    rng = np.random.default_rng(0)
    features = Nystroem(n_components=60, gamma=0.3, random_state=0).fit(X)
    name = "hinge" if np.isinf(loss[0]) else "squared_hinge"
    best = ApproximateSVC(gamma=0.3, n_components=200, loss=name, fit_intercept=rho == 0.0, random_state=0)
    optimum = best.fit(X, y).certificate_.objective
    for size in (0.0, 0.1, 1.0, 10.0):
        coef, b = size * rng.normal(size=(1, 60)), size * rng.normal(size=1) * (rho == 0.0)
        machines = certificates.FeatureMachines(coef, b, Spec(*loss, 1.0, rho), features.feature_map())
        assert certificates.lower_bound(machines, RBF(0.3), ArrayRows(X, y)) <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_sums_of_kernel_values_are_sums_of_features(radius, shifted):
    """N on sums over rows instead of on each row: the same losses, duals, Hessians and rows near the kink."""
    X, y = labelled(600)
    rows, rng = ArrayRows(X, y), np.random.default_rng(0)
    model = Nystroem(n_components=30, random_state=0).fit(X)
    mapped, pose = model.mapped(rows), model.problem(rows)
    aim = Aim(Ramp(np.inf), 1.0, 0.0, model.transform(X).mean(axis=0) if shifted else None)
    mine, plain = pose(mapped, aim, 1e-3, 0.0), Problem(mapped, aim, 1e-3, 0.0)
    assert isinstance(mine, NystroemProblem)
    asks = (Ask(Against(1), rng.normal(size=31), rounded(0.5), radius),)
    (found,), (expected,) = mine.sums(asks).passes, plain.sums(asks).passes
    for name in ("loss", "used", "v", "linear", "square", "mass", "curved"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    if radius:
        np.testing.assert_allclose(found.near.A, expected.near.A, atol=1e-9)
        np.testing.assert_array_equal(found.near.q, expected.near.q)
    else:
        np.testing.assert_allclose(found.H, expected.H, rtol=1e-9, atol=1e-9)


def test_kernel_values_next_to_dependent_are_left_to_their_features():
    X, y = labelled(600)
    model = Nystroem(gamma=1e-3, n_components=100, random_state=0).fit(X)
    assert model.problem(ArrayRows(X, y)) is Problem


@pytest.mark.parametrize("features", ["nystroem", "fourier"])
def test_room_for_features_changes_nothing_but_time(features):
    X, y = labelled(6000)
    given = {"features": features, "n_components": 25, "tol": 1e-9, "random_state": 0}
    kept, made = (ApproximateSVC(cache_size=size, **given) for size in (500, 1e-3))
    for model in (kept, made):
        model._feature_tuning = ApproximateSVCTuning(sample_rows=300)  # so that these rows count as many
        model.fit(X, y)
    np.testing.assert_allclose(made.certificate_.objective, kept.certificate_.objective, rtol=2e-9)
    np.testing.assert_allclose(made.decision_function(X), kept.decision_function(X), atol=1e-3)
    assert audit_approximate_svc(made, X, y, None, 1e-8).holds


def test_time_covers_the_features_too():
    """Nothing is left for the machine: what is proved of it is little, and true."""
    X, y = labelled(1000)
    best = ApproximateSVC(n_components=300, random_state=0).fit(X, y)
    with pytest.warns(CertificateWarning, match="asked for"):
        model = ApproximateSVC(n_components=300, max_time=0.0, random_state=0).fit(X, y)
    assert len(model.features_.components_) < len(best.features_.components_)
    assert model.certificate_.gap > 0
    assert not audit_approximate_svc(model, X, y, None, 1e-3).holds
    finer = LinearSVC(loss="hinge", tol=1e-6).fit(model.features_.transform(X), y).certificate_.objective
    assert model.certificate_.bound <= finer <= model.certificate_.objective


@pytest.mark.parametrize("features", ["nystroem", "fourier"])
def test_it_is_a_linear_machine_on_the_features(features, tmp_path):
    X, y = labelled(2000, 3)
    model = ApproximateSVC(features=features, n_components=20, tol=1e-9, class_weight="balanced", random_state=0)
    model.fit(X, y)
    linear = LinearSVC(loss="hinge", tol=1e-9, class_weight="balanced").fit(model.features_.transform(X), y)
    np.testing.assert_allclose(model.certificate_.objective, linear.certificate_.objective, rtol=1e-8)
    assert model.objective(X, y).total == pytest.approx(model.certificate_.objective, rel=1e-10)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame.to_parquet(tmp_path / "t.parquet")
    other = clone(model).fit(tmp_path / "t.parquet", "y")
    np.testing.assert_allclose(other.decision_function(tmp_path / "t.parquet"), model.decision_function(X), atol=1e-4)
    other = clone(model).fit(da.from_array(X, chunks=(700, 4)), da.from_array(y, chunks=700))
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-4)


def test_the_pipeline_is_a_line():
    X, y = labelled()
    pipe = make_pipeline(Nystroem(n_components=50, random_state=0), LinearSVC()).fit(X, y)
    assert pipe.score(X, y) > 0.9


def test_unknown_features_are_refused():
    X, y = labelled()
    with pytest.raises(DataError, match="features='random'"):
        ApproximateSVC(features="random").fit(X, y)
    with pytest.raises(DataError, match="Use features='nystroem' for other kernels"):
        ApproximateSVC(features="fourier", kernel="poly").fit(X, y)
