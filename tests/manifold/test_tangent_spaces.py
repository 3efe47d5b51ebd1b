"""Hessian eigenmaps and local tangent space alignment: scikit-learn's answers, flat sheets, and wrong models."""

import copy
import warnings

import numpy as np
import pytest
from sklearn import manifold
from sklearn.datasets import load_digits, make_swiss_roll

from certifit import DataError, LocallyLinearEmbedding, audit
from certifit.manifold.tangent_spaces import tangent_systems

METHODS = ("hessian", "ltsa")


def roll(n=400):
    return make_swiss_roll(n, random_state=0)


@pytest.mark.parametrize("solver", ["dense", "arpack"])
def test_tangent_space_alignment_is_scikit_learns(solver):
    X, _ = roll()
    mine = LocallyLinearEmbedding(n_neighbors=10, method="ltsa", eigen_solver=solver).fit(X)
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=10, method="ltsa", eigen_solver="dense").fit(X)
    assert mine.certificate_.holds
    assert audit(mine, X).holds
    assert audit(theirs, X).holds
    np.testing.assert_allclose(np.abs(mine.embedding_), np.abs(theirs.embedding_), atol=1e-7)
    assert mine.reconstruction_error_ == pytest.approx(theirs.reconstruction_error_, rel=1e-6)


def test_scikit_learns_hessian_is_its_tangent_space_alignment():
    """Its matrix of local errors holds every direction orthogonal to the tangent space; the audit says so."""
    X, _ = roll()
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=10, method="hessian", eigen_solver="dense").fit(X)
    aligned = manifold.LocallyLinearEmbedding(n_neighbors=10, method="ltsa", eigen_solver="dense").fit(X)
    np.testing.assert_allclose(np.abs(theirs.embedding_), np.abs(aligned.embedding_), atol=1e-8)
    found = audit(theirs, X)
    assert found.holds
    assert any("quadratic" in str(words) for words in found.facts.values())


def test_hessian_by_the_definition():
    """F has the orthonormal quadratic columns of a QR factorisation, as in Donoho & Grimes' section 4.2."""
    X, _ = roll(300)
    model = LocallyLinearEmbedding(n_neighbors=9, method="hessian").fit(X)
    M = np.zeros((300, 300))
    for near in model.neighbors_:
        U = np.linalg.svd(X[near] - X[near].mean(axis=0))[0][:, :2]
        columns = [np.ones(9), *U.T, U[:, 0] ** 2, U[:, 0] * U[:, 1], U[:, 1] ** 2]
        H = np.linalg.qr(np.column_stack(columns))[0][:, 3:]
        M[np.ix_(near, near)] += H @ H.T
    values, vectors = np.linalg.eigh(M)
    assert abs(values[0]) < 1e-12
    assert model.reconstruction_error_ == pytest.approx(values[1:3].sum(), rel=1e-8)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(vectors[:, 1:3]), atol=1e-7)
    # With as many neighbours as columns there is nothing else outside: both methods are the same then.
    few = [LocallyLinearEmbedding(n_neighbors=6, method=m).fit(X).reconstruction_error_ for m in METHODS]
    assert few[0] == pytest.approx(few[1], rel=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_a_flat_sheet_with_a_hole_is_unrolled(method):
    """Coordinates of an isometric sheet are found up to an affine map, hole or not."""
    rng = np.random.default_rng(0)
    sheet = rng.uniform(size=(1200, 2)) * [6.0, 3.0]
    sheet = sheet[(np.abs(sheet - [3.0, 1.5]) > 0.6).any(axis=1)]
    angle = 1 + sheet[:, 0] / 3
    X = np.column_stack([3 * np.cos(angle), sheet[:, 1], 3 * np.sin(angle)])
    model = LocallyLinearEmbedding(n_neighbors=12, method=method).fit(X)
    assert model.certificate_.holds
    design = np.column_stack([np.ones(len(X)), sheet])
    fitted = design @ np.linalg.lstsq(design, model.embedding_, rcond=None)[0]
    assert ((model.embedding_ - fitted) ** 2).sum() < 1e-3 * (model.embedding_**2).sum()


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_are_nobodys_neighbour_have_coordinates(method):
    X = load_digits().data[:400]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocallyLinearEmbedding(n_neighbors=10, method=method).fit(X)
        theirs = manifold.LocallyLinearEmbedding(n_neighbors=10, method=method, eigen_solver="dense").fit(X)
    lone = np.bincount(model.neighbors_.ravel(), minlength=400) == 0
    assert lone.any()
    assert model.certificate_.holds
    assert audit(model, X).holds
    # No coordinate is spent on a single row.
    assert np.abs(model.embedding_[lone]).max() < 0.9
    found = audit(theirs, X)
    assert not found.holds
    assert any("free" in words for words in found.failures())


@pytest.mark.parametrize("hessian", [False, True])
def test_local_errors_vanish_on_affine_functions(hessian):
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(80, 2))
    X = flat @ rng.normal(size=(2, 5)) + 3.0
    near = LocallyLinearEmbedding(n_neighbors=8).fit(X).neighbors_
    F = tangent_systems(X, near, 2, hessian).F
    assert np.abs(F @ np.column_stack([np.ones(80), X])).max() < 1e-12
    assert np.abs(F @ flat[:, 0] ** 2).max() > 0.01


@pytest.mark.parametrize("method", METHODS)
def test_equal_spreads_are_left_out_together(method):
    """On a square grid the first of two equal directions would be drawn by rounding."""
    X = np.array([(a, b) for a in range(7) for b in range(7)], dtype=float)
    model = LocallyLinearEmbedding(n_neighbors=8, n_components=1, method=method).fit(X)
    assert model.certificate_.facts["rows whose tangent space is open"] > 0
    assert audit(model, X).holds


@pytest.mark.parametrize("method", METHODS)
def test_fitted_rows_keep_their_coordinates(method):
    X, _ = roll()
    model = LocallyLinearEmbedding(n_neighbors=10, method=method).fit(X)
    np.testing.assert_array_equal(model.transform(X[::7]), model.embedding_[::7])
    near = model.transform(X[::7] + 1e-3)
    assert np.abs(near - model.embedding_[::7]).max() < 0.02
    assert (near != model.embedding_[::7]).any()


@pytest.mark.parametrize("method", METHODS)
def test_wrong_models_that_look_right(method):
    X, _ = roll(200)
    good = LocallyLinearEmbedding(n_neighbors=10, method=method).fit(X)
    every = LocallyLinearEmbedding(n_neighbors=10, n_components=3, method="ltsa").fit(X)
    wrong = []
    for name, value in (
        ("embedding_", every.embedding_[:, 1:]),
        ("embedding_", good.embedding_[:, ::-1]),
        ("embedding_", np.roll(good.embedding_, 1, axis=0)),
        ("reconstruction_error_", good.reconstruction_error_ * 1.01),
        ("neighbors_", np.roll(good.neighbors_, 1, axis=0)),
    ):
        model = copy.deepcopy(good)
        setattr(model, name, value)
        wrong.append(model)
    other = "ltsa" if method == "hessian" else "hessian"
    wrong.append(copy.deepcopy(good).set_params(method=other))
    for model in wrong:
        assert not audit(model, X).holds


@pytest.mark.parametrize("seed", range(12))
def test_honest_fits_hold(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 120)), int(rng.integers(2, 6))
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(1, 6))) * 10.0 ** rng.uniform(-4, 4)
    X += 10.0 ** rng.uniform(-3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # graphs in parts
        model = LocallyLinearEmbedding(n_neighbors=10, n_components=1 + seed % 2, method=METHODS[seed % 2]).fit(X)
        assert model.certificate_.holds, model.certificate_
        assert audit(model, X).holds


def test_too_few_neighbours_are_refused():
    X, _ = roll(100)
    with pytest.raises(DataError, match="must be greater than"):
        LocallyLinearEmbedding(n_neighbors=5, method="hessian").fit(X)
    with pytest.raises(DataError, match="greater than n_components"):
        LocallyLinearEmbedding(n_neighbors=2, method="ltsa").fit(X)
