"""Locally linear embedding against scikit-learn, NumPy and known manifolds, in the corners, and under sabotage."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn import manifold
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from certifit import CertificateWarning, DataError
from certifit.checkers.manifold import locally_linear as checker
from certifit.checkers.manifold.adapter import audit_lle
from certifit.checkers.manifold.local_systems import local_forms, plain_errors
from certifit.manifold.locally_linear import LocallyLinearEmbedding
from certifit.manifold.neighbours import centre_and_scale, nearest_others
from certifit.manifold.reconstruction_weights import barycentric_weights
from certifit.manifold.smallest_eigenvectors import EigenvectorTuning
from certifit.numerics.sparse_cholesky.multifrontal import SparseCholeskyTuning
from tests.common.tuning import tuned
from tests.manifold.embeddings import CLOUD, SWISS, TABLES, N, audited, each_method, each_table, embed, matrix


# --------------------------------------------------------------------------------------- known solutions
@each_table
@each_method
@pytest.mark.parametrize("eigen_solver", ["arpack", "dense"])
def test_agrees_with_scikit_learn(name, method, eigen_solver):
    """The same neighbours; its dense solver; coordinates agree up to signs."""
    X = TABLES[name]
    mine = embed(X, method=method, eigen_solver=eigen_solver)
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=12, method=method, eigen_solver="dense").fit(X)
    assert_allclose(mine.reconstruction_error_, theirs.reconstruction_error_, rtol=1e-5)
    assert subspace_angles(mine.embedding_, theirs.embedding_).max() < 1e-5
    assert_allclose(np.abs((mine.embedding_ * theirs.embedding_).sum(axis=0)), 1, atol=1e-6)
    assert mine.certificate_.holds
    assert audited(mine, X).holds
    assert audited(theirs, X, 1e-4).holds


@each_table
@each_method
def test_solves_the_eigenproblem(name, method):
    """Against LAPACK on the dense matrix."""
    M, _ = matrix(TABLES[name], method)
    values, vectors = np.linalg.eigh(M)
    model = embed(TABLES[name], method=method, eigen_solver="arpack")
    assert_allclose(model.reconstruction_error_, values[1:3].sum(), rtol=1e-6)
    assert_allclose(np.abs((model.embedding_ * vectors[:, 1:3]).sum(axis=0)), 1, atol=1e-8)
    assert_allclose(model.embedding_.T @ model.embedding_, np.eye(2), atol=1e-13)
    assert_allclose(model.embedding_.sum(axis=0), 0, atol=1e-12)
    assert_allclose(model.objective(TABLES[name]).total, model.reconstruction_error_, rtol=1e-9)


@each_method
def test_a_plane_is_found_again(method):
    """Points of a plane in five dimensions: with hardly any regularisation, weights rebuild the plane's own
    coordinates too, so that these span the embedding."""
    rng = np.random.default_rng(0)
    plane = rng.uniform(size=(350, 2))
    model = embed(plane @ rng.normal(size=(2, 5)) + 3, method=method, reg=1e-9, n_neighbors=8)
    found = np.column_stack([np.ones(350), model.embedding_])
    left = plane - found @ np.linalg.lstsq(found, plane, rcond=None)[0]
    assert np.abs(left).max() < 1e-3


def test_a_circle_has_two_equal_values():
    """Coordinates cos and sin, with one eigenvalue: the proof does not need them apart."""
    angle = 2 * np.pi * np.arange(400) / 400
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    for solver in ("arpack", "dense"):
        model = embed(X, n_neighbors=4, eigen_solver=solver)
        assert subspace_angles(model.embedding_, X).max() < 1e-3
        assert model.certificate_.holds
        assert audited(model, X).holds


def test_weights_solve_their_systems():
    """Row by row with NumPy; and they rebuild exactly what they can."""
    X = centre_and_scale(CLOUD)
    near = nearest_others(X, 7, "brute")
    weights, residual, smallest = barycentric_weights(X, X, near, 1e-3)
    errors = plain_errors(weights, 1e-3, smallest).rows
    for i in (0, 17, 319):
        Z = X[near[i]] - X[i]
        G = Z @ Z.T
        v = np.linalg.solve(G + 1e-3 * np.trace(G) * np.eye(7), np.ones(7))
        assert_allclose(weights[i], v / v.sum(), rtol=1e-10)
        assert np.linalg.norm(weights[i] - v / v.sum()) <= errors[i] <= 1e-9
    assert_allclose(weights.sum(axis=1), 1, atol=1e-13)
    assert residual < 1e-13
    inside = X[near].mean(axis=1)
    again = barycentric_weights(inside, X, near, 1e-12).weights
    assert_allclose(np.einsum("ij,ijc->ic", again, X[near]), inside, atol=1e-8)


@each_method
@each_table
def test_checker_and_fit_build_the_same_matrix(name, method):
    """By other formulas: local forms here, several sets of weights there."""
    X = centre_and_scale(TABLES[name])
    near = nearest_others(X, 12, "auto")
    forms = local_forms(X, near, 1e-3, (2, True) if method == "modified" else None)
    assert_allclose(checker.assemble_matrix(forms.B, near).toarray(), matrix(TABLES[name], method)[0], atol=1e-11)


# --------------------------------------------------------------------------------------------- invariance
@each_method
def test_shift_scale_and_rotation_do_not_matter(method):
    X = np.round(SWISS * 2**10) / 2**10  # so that a shift by 2^27 is exact
    plain = embed(X, method=method)
    for moved in (X + 2.0**27, X * 2.0**-30, X * 2.0**400):
        other = embed(moved, method=method)
        assert_allclose(other.embedding_, plain.embedding_, atol=1e-8)
        assert other.certificate_.holds
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for moved in (X @ turn, X * 1e-9, np.column_stack([X, np.full(N, 1e8), np.zeros(N)])):
        assert_allclose(embed(moved, method=method).embedding_, plain.embedding_, atol=1e-6)


def test_order_of_rows_does_not_matter():
    shuffle = np.random.default_rng(0).permutation(N)
    assert_allclose(embed(SWISS[shuffle]).embedding_, embed(SWISS).embedding_[shuffle], atol=1e-7)


def test_threads_do_not_change_a_bit(threads):
    X = np.random.default_rng(0).normal(size=(1200, 30))
    seen = []
    for n in (1, 2, 3):
        threads(n)
        seen.append(embed(X))
    for model in seen[1:]:
        assert_array_equal(model.embedding_, seen[0].embedding_)
        assert model.certificate_ == seen[0].certificate_


@pytest.mark.parametrize("form", [np.asfortranarray, np.float32, sparse.csr_array, pd.DataFrame, np.ndarray.tolist])
def test_other_forms_of_the_same_rows(form):
    X = np.round(SWISS, 3)
    frame = form(X).rename(columns=str) if form is pd.DataFrame else form(X)
    model = embed(frame)
    assert_allclose(model.embedding_, embed(X).embedding_, atol=1e-3 if form is np.float32 else 1e-10)
    assert model.certificate_.holds
    assert audited(model, frame).holds
    if form is pd.DataFrame:
        assert model.feature_names_in_.tolist() == ["0", "1", "2"]
        names = model.get_feature_names_out().tolist()
        assert names == ["locallylinearembedding0", "locallylinearembedding1"]


def test_pickle_clone_and_untouched_input():
    X = SWISS.copy()
    X.flags.writeable = False
    model = embed(X)
    back = pickle.loads(pickle.dumps(model))
    assert_array_equal(back.transform(X), model.transform(X))
    assert back.certificate_ == model.certificate_
    with pytest.raises(NotFittedError):
        clone(model).transform(X)
    assert_array_equal(X, SWISS)
    model.fit_transform(X)[:] = 0
    assert np.abs(model.embedding_).max() > 0


# ------------------------------------------------------------------------------------------------ new rows
@each_table
def test_new_rows_as_in_scikit_learn(name):
    X, new = TABLES[name][:280], TABLES[name][280:]
    mine = embed(X)
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=12, eigen_solver="dense").fit(X)
    signs = np.sign((mine.embedding_ * theirs.embedding_).sum(axis=0))
    assert_allclose(mine.transform(new), theirs.transform(new) * signs, atol=1e-5)


def test_fitted_rows_stay_near_their_place():
    model = embed(SWISS)
    away = np.abs(model.transform(SWISS) - model.embedding_)
    assert away.max() < 0.1 * np.abs(model.embedding_).max()
    with pytest.raises(ValueError, match="X has 2 features"):
        model.transform(SWISS[:, :2])


# ------------------------------------------------------------------------------------------------ sabotage
def negate(a):
    a.flat[np.abs(a).argmax()] *= -1


def scale(a):
    a *= 1.01


def swap(a):
    a[[0, -1]] = a[[-1, 0]]


def noise(a):
    a += 0.02 * np.abs(a).max() * (1 - 2 * (np.arange(a.size).reshape(a.shape) % 2))


@each_method
@pytest.mark.parametrize("damage", [negate, scale, swap, noise])
@pytest.mark.parametrize("name", ["embedding_", "neighbors_", "X_fit_", "reconstruction_error_"])
def test_sabotage_is_noticed(name, damage, method):
    model = embed(SWISS, method=method)
    best = model.certificate_.objective
    hurt = np.array(getattr(model, name))
    if name == "neighbors_" and damage is not swap:
        hurt[5, 0] = 5 if damage is negate else (hurt[5, 0] + N // 2) % N if damage is scale else hurt[5, 1]
    elif hurt.ndim == 0:
        hurt = hurt * 1.01
    else:
        damage(hurt)
    setattr(model, name, hurt)
    checked = audited(model, SWISS)
    assert not checked.holds
    assert checked.failures()
    assert checked.bound <= best * (1 + 1e-6)


@each_method
def test_the_next_eigenvectors_do_not_pass(method):
    """Orthonormal, centred, eigenvectors all: only the count of eigenvalues tells, and the gap is what was lost."""
    model, more = embed(SWISS, method=method), embed(SWISS, method=method, n_components=3)
    model.embedding_ = more.embedding_[:, 1:]
    F = matrix(SWISS, method)[1]
    model.reconstruction_error_ = float(((F @ model.embedding_) ** 2).sum())
    checked = audited(model, SWISS)
    assert not checked.holds
    lost = model.reconstruction_error_ - model.certificate_.objective
    assert_allclose(checked.gap, lost, rtol=1e-4)


def test_a_rotation_of_the_coordinates_is_noticed():
    """As good a sum of errors, but not the eigenvectors."""
    model = embed(SWISS)
    c, s = np.cos(0.3), np.sin(0.3)
    model.embedding_ = model.embedding_ @ np.array([[c, -s], [s, c]])
    assert audited(model, SWISS).failures()[0].startswith("eigenvector residuals")


@each_method
def test_columns_out_of_order_are_noticed(method):
    model = embed(SWISS, method=method)
    model.embedding_ = model.embedding_[:, ::-1].copy()
    (failure,) = audited(model, SWISS).failures()
    assert failure.startswith("columns out of order")


@each_method
@each_table
def test_bounds_are_honest_for_any_embedding(name, method):
    """Whatever the coordinates, the bound is below the true optimum: NumPy's eigenvalues."""
    X = TABLES[name]
    M, _ = matrix(X, method)
    best = np.linalg.eigvalsh(M)[1:3].sum()
    model = embed(X, method=method)
    slack = 1e-14 * np.abs(M).max()
    assert model.certificate_.bound <= best * (1 + 1e-9) + slack
    rng = np.random.default_rng(0)
    for size in (1e-5, 1e-2):
        model.embedding_ = np.linalg.qr(model.embedding_ + size * rng.normal(size=model.embedding_.shape))[0]
        assert audited(model, X).bound <= best * (1 + 1e-9) + slack


def test_other_rows_do_not_pass():
    model = embed(SWISS)
    assert not audited(model, make_swiss_roll(N, random_state=1)[0]).holds
    with pytest.raises(DataError, match="400 rows and a table of 300"):
        audited(model, SWISS[:300])
    with pytest.raises(DataError, match="rows other than those it was fitted on"):
        model.objective(SWISS + 1)


def test_what_cannot_be_audited_is_refused():
    model = manifold.LocallyLinearEmbedding(n_neighbors=12, eigen_solver="dense").fit(SWISS)
    model.method = "isomap"
    with pytest.raises(DataError, match="method='isomap'"):
        audited(model, SWISS, 1e-4)
    with pytest.raises(DataError, match="rows of a locally linear embedding have no weights"):
        audit_lle(embed(SWISS), SWISS, None, np.ones(N), 1e-6)


def test_stopping_early_is_said():
    X = np.random.default_rng(0).normal(size=(400, 8))  # eigenvalues close together
    with pytest.warns(CertificateWarning, match="LocallyLinearEmbedding"):
        model = embed(X, max_iter=0, eigen_solver="arpack")
    assert not audited(model, X).holds
    assert embed(X, eigen_solver="arpack").n_iter_ > 0


# --------------------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_neighbors": N}, "n_neighbors=400 and n_samples=400; wanted fewer neighbours than rows"),
        ({"n_neighbors": 0}, "n_neighbors=0; wanted a whole number of at least 1"),
        ({"n_components": 4}, "n_components=4 with n_features=3"),
        ({"n_neighbors": 1, "n_components": 2}, "n_components=2 .* n_neighbors=1; wanted at most 1"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"reg": -1.0}, "reg=-1.0; wanted a finite number of at least 0"),
        ({"tol": np.nan}, "tol=nan"),
        ({"method": "isomap"}, "method='isomap'; wanted one of"),
        ({"eigen_solver": "magic"}, "eigen_solver='magic'"),
        ({"neighbors_algorithm": "hash"}, "neighbors_algorithm='hash'"),
        ({"reg": 0.0}, "reg=0 with n_neighbors=12 > n_features=3"),
    ],
)
def test_impossible_settings_are_refused(params, words):
    with pytest.raises(DataError, match=words):
        embed(SWISS, **params)


def test_local_systems_without_one_solution_are_refused():
    """Every row twice: without regularisation a copy's weight is not determined by the others."""
    with pytest.raises(DataError, match=r"reg=0 with 12 neighbours that do not span as many directions.*Use reg > 0"):
        embed(np.repeat(CLOUD[:100], 2, axis=0), reg=0.0, n_neighbors=12)


def test_differences_that_overflow_are_refused():
    with pytest.raises(DataError, match=r"differences overflow.*Rescale the columns"):
        embed(SWISS / np.abs(SWISS).max() * 1.7e308)


def test_weights_of_rows_are_refused():
    with pytest.raises(TypeError, match="sample_weight"):
        LocallyLinearEmbedding().fit(SWISS, sample_weight=np.ones(N))


def test_missing_entries_are_refused():
    X = SWISS.copy()
    X[3, 1] = np.nan
    with pytest.raises(DataError, match="NaN in row 3"):
        embed(X)


@each_method
def test_duplicate_rows(method):
    """Each row four times: neighbours at distance 0, whose weights are equal; nothing is NaN and it is proved."""
    X = np.repeat(np.random.default_rng(0).uniform(size=(120, 2)), 4, axis=0)
    model = embed(X, n_neighbors=14, method=method)
    assert np.isfinite(model.embedding_).all()
    assert model.certificate_.holds
    assert audited(model, X).holds


@each_method
@pytest.mark.parametrize("seed", range(3))
def test_rows_in_fewer_directions_than_columns(method, seed):
    """Local spreads that are 0 but for rounding decide nothing: fit and checker build the same problem."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 6))
    model = embed(X, n_neighbors=7, method=method, disconnected="join")
    assert model.certificate_.holds
    assert audited(model, X).holds


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_rows_that_are_all_the_same_are_refused(value):
    with pytest.raises(DataError, match=r"all the same \(n_samples=40\); wanted rows that differ"):
        embed(np.full((40, 3), value))


@pytest.mark.parametrize(("n", "k"), [(290, 4), (290, 6), (300, 6), (300, 10)])
def test_points_on_a_line_at_equal_distances(n, k):
    """The smallest eigenvalue is 1e-10: what LAPACK is given must not be larger than it has to be."""
    X = np.linspace(0, 1, n)[:, None]
    model = embed(X, n_neighbors=k, n_components=1)
    assert model.certificate_.holds
    assert audited(model, X).holds
    assert abs(np.corrcoef(model.embedding_[:, 0], X[:, 0])[0, 1]) > 0.99


def test_all_neighbours_are_copies():
    """More copies than neighbours: equal weights where copies are all there is, and a clear word on the parts."""
    X = np.repeat(np.random.default_rng(0).uniform(size=(30, 2)), 8, axis=0)
    with pytest.raises(DataError, match=r"in 30 parts .* and 27 more.*duplicate"):
        embed(X, n_neighbors=7, disconnected="error")
    weights = barycentric_weights(X, X, nearest_others(X, 7, "auto"), 1e-3).weights
    assert_allclose(weights, 1 / 7)


@pytest.mark.parametrize("n", [4, 5, 6, 10])
def test_few_rows(n):
    X = np.random.default_rng(0).normal(size=(n, 3))
    for k in range(1, 4):
        if k < n:
            model = embed(X, n_neighbors=n - 1, n_components=min(k, n - 1))
            assert_allclose(model.embedding_.T @ model.embedding_, np.eye(k), atol=1e-12)
            assert model.certificate_.holds


@pytest.mark.filterwarnings("ignore::certifit.manifold.neighbours.DisconnectedWarning")  # its tables fall into parts
@pytest.mark.parametrize("params", [{}, {"disconnected": "join"}, {"method": "modified"}], ids=str)
def test_every_check_of_scikit_learn_passes(params):
    results = check_estimator(LocallyLinearEmbedding(**params), on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed, failed
    assert len(results) > 40


def test_progress_and_interruption():
    """Every pass is told; an interrupt leaves nothing of a fit."""
    seen = []

    class Callback:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def teardown(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            seen.append(context.task_name)
            if len(seen) == 2 and stop:
                raise KeyboardInterrupt

    stop = False
    model = LocallyLinearEmbedding(n_neighbors=12, eigen_solver="arpack").set_callbacks(Callback())
    model.fit(SWISS)
    assert seen.count("pass") == model.n_iter_ + 1
    seen.clear()
    stop = True
    with pytest.raises(KeyboardInterrupt):
        model.fit(SWISS)
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("__")]


def test_fit_by_fronts_is_the_fit_by_superlu():
    plain = embed(CLOUD, eigen_solver="arpack")
    by_fronts = EigenvectorTuning(factor=SparseCholeskyTuning(dense_work=0.0))
    model = LocallyLinearEmbedding(n_neighbors=12, eigen_solver="arpack")
    fronts = tuned(model, eigenvectors=by_fronts).fit(CLOUD)
    assert_allclose(fronts.embedding_, plain.embedding_, atol=1e-8)
    assert fronts.certificate_.holds
