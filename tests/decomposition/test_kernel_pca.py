"""Kernel PCA: scikit-learn's answers, PCA's with a linear kernel, zero eigenvalues, pre-images, and wrong models."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.datasets import load_iris, make_circles
from sklearn.exceptions import NotFittedError

from certifit import PCA, RBF, DataError, KernelPCA, Polynomial, audit


def smaller(x, z):
    """A histogram kernel: positive semidefinite, of two rows."""
    return float(np.minimum(x, z).sum())


SETTINGS = [
    {"n_components": 2},
    {},
    {"n_components": 6},
    {"n_components": 6, "remove_zero_eig": True},
    {"kernel": "rbf"},
    {"n_components": 5, "kernel": "rbf", "gamma": 0.3, "fit_inverse_transform": True, "alpha": 0.1},
    {"n_components": 3, "kernel": "poly"},
    {"n_components": 3, "kernel": "sigmoid", "gamma": 1e-3},
    {"n_components": 3, "kernel": "cosine"},
    {"n_components": 3, "kernel": smaller},
    {"n_components": 2, "kernel": "rbf", "eigen_solver": "arpack", "random_state": 0},
    {"n_components": 2, "kernel": "rbf", "eigen_solver": "randomized", "random_state": 0},
]


@pytest.fixture(scope="module")
def iris():
    return load_iris().data


def words(settings):
    return " ".join(getattr(value, "__name__", str(value)) for value in settings.values())


@pytest.mark.parametrize("settings", SETTINGS, ids=words)
def test_it_is_scikit_learns(iris, settings):
    mine, theirs = KernelPCA(**settings).fit(iris), decomposition.KernelPCA(**settings).fit(iris)
    assert mine.certificate_.holds
    assert audit(mine, iris).holds
    assert audit(theirs, iris).holds
    size = theirs.eigenvalues_[0]
    np.testing.assert_allclose(mine.eigenvalues_, theirs.eigenvalues_, atol=1e-12 * size)
    first = min(3, len(mine.eigenvalues_))
    np.testing.assert_allclose(
        np.abs(mine.transform(iris + 0.1)[:, :first]), np.abs(theirs.transform(iris + 0.1)[:, :first]), atol=1e-8
    )
    assert [*mine.get_feature_names_out()] == [*theirs.get_feature_names_out()]
    if "alpha" in settings:
        codes = mine.transform(iris)
        signs = np.sign((codes * theirs.transform(iris)).sum(axis=0))
        np.testing.assert_allclose(mine.inverse_transform(codes), theirs.inverse_transform(codes * signs), atol=1e-8)


def test_a_linear_kernel_is_pca(iris):
    """Far from zero too: the rows are centred before their products are taken."""
    for offset in (0.0, 1e6):
        model, pca = KernelPCA(3).fit(iris + offset), PCA(3).fit(iris + offset)
        assert model.certificate_.holds
        assert audit(model, iris + offset).holds
        np.testing.assert_allclose(model.eigenvalues_ / (len(iris) - 1), pca.explained_variance_, rtol=1e-6)
        np.testing.assert_allclose(
            np.abs(model.transform(iris + offset)), np.abs(pca.transform(iris + offset)), atol=1e-6
        )
        assert model.certificate_.objective == pytest.approx(pca.certificate_.objective, rel=1e-6)


def test_coordinates_of_the_fitted_rows(iris):
    model = KernelPCA(4, kernel="rbf")
    codes = model.fit_transform(iris)
    np.testing.assert_allclose(codes, model.transform(iris), atol=1e-12)
    np.testing.assert_allclose((codes**2).sum(axis=0), model.eigenvalues_, rtol=1e-12)
    # New rows: distances in feature space are at least those of their coordinates.
    assert model.objective(iris[::2] + 0.3).total > 0


def test_circles_come_apart():
    X, y = make_circles(300, factor=0.3, noise=0.05, random_state=0)
    z = KernelPCA(1, kernel="rbf", gamma=2.0).fit_transform(X)[:, 0]
    assert max(np.mean((z > np.median(z)) == y), np.mean((z <= np.median(z)) == y)) == 1.0


def test_kernels_of_our_algebra_and_given_gram_matrices(iris):
    kernel = RBF(0.2) + 0.1 * Polynomial(2)
    model = KernelPCA(3, kernel=kernel).fit(iris)
    G = kernel(iris, iris)
    given = KernelPCA(3, kernel="precomputed").fit(G)
    assert audit(model, iris).holds
    assert audit(given, G).holds
    assert audit(decomposition.KernelPCA(3, kernel="precomputed").fit(G), G).holds
    np.testing.assert_allclose(given.transform(G), model.transform(iris), atol=1e-9)


def test_sparse_and_float32_rows(iris):
    for kernel in ("linear", "rbf", "cosine"):
        whole = KernelPCA(2, kernel=kernel).fit(iris)
        for table in (sparse.csr_array(iris), iris.astype(np.float32)):
            other = KernelPCA(2, kernel=kernel).fit(table)
            assert other.certificate_.holds
            assert audit(other, table).holds
            np.testing.assert_allclose(other.transform(table), whole.transform(iris), atol=1e-5)


def test_rows_that_are_all_the_same():
    X = np.full((10, 3), 0.1)
    for settings, columns in (({}, 0), ({"n_components": 2}, 2), ({"n_components": 2, "remove_zero_eig": True}, 0)):
        for kernel in ("linear", "rbf", "poly"):
            model = KernelPCA(kernel=kernel, **settings).fit(X)
            assert model.transform(X).shape == (10, columns)
            assert not model.transform(X).any()
            assert model.certificate_.holds, model.certificate_
            assert audit(model, X).holds


def test_many_rows_are_proved_by_lanczos():
    X = np.random.default_rng(0).normal(size=(2100, 3))
    model = KernelPCA(2, kernel="rbf", gamma=0.5).fit(X)
    assert model.certificate_.kind == "statistical"
    assert model.certificate_.holds
    assert audit(model, X).holds
    model.eigenvectors_ = np.roll(model.eigenvectors_, 1, axis=0)
    assert not audit(model, X).holds


def test_wrong_models_that_look_right(iris):
    theirs = decomposition.KernelPCA(3, kernel="rbf", fit_inverse_transform=True).fit(iris)
    every = decomposition.KernelPCA(5, kernel="rbf").fit(iris)
    missed = copy.deepcopy(theirs)  # the second component was not found
    missed.eigenvalues_, missed.eigenvectors_ = every.eigenvalues_[[0, 2, 3]], every.eigenvectors_[:, [0, 2, 3]]
    missed.X_transformed_fit_ = missed.eigenvectors_ * np.sqrt(missed.eigenvalues_)
    wrong = [missed]
    for name, factor in (
        ("eigenvalues_", 1.01),
        ("eigenvectors_", 1.01),
        ("X_fit_", 1.01),
        ("gamma_", 2.0),
        ("dual_coef_", 1.1),
    ):
        model = copy.deepcopy(theirs)
        setattr(model, name, getattr(model, name) * factor)
        wrong.append(model)
    for name, value in (("gamma", 0.3), ("kernel", "poly"), ("n_components", 4), ("alpha", 0.5)):
        wrong.append(copy.deepcopy(theirs).set_params(**{name: value}))
    for model in wrong:
        assert not audit(model, iris).holds
    short = KernelPCA(kernel="rbf").fit(iris)
    short.eigenvalues_, short.eigenvectors_ = short.eigenvalues_[:20], short.eigenvectors_[:, :20]
    assert not audit(short, iris).holds


@pytest.mark.parametrize("seed", range(20))
def test_honest_fits_hold(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 40)), int(rng.choice([1, 2, 5, 300]))
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 3))) * 10.0 ** rng.uniform(-5, 5)
    kernel = ("linear", "rbf", "poly", "cosine")[seed % 4]
    settings = {"kernel": kernel, "n_components": (None, 1, 3)[seed % 3]}
    model = KernelPCA(**settings, gamma=1.0 / (X.var() * d) if X.var() else 1.0).fit(X)
    assert model.certificate_.holds, model.certificate_
    assert audit(model, X).holds


def test_what_is_refused(iris):
    G = np.diag([3.0, 2.0, -4.0, 1.0])
    with pytest.raises(DataError, match="significant negative eigenvalues"):
        KernelPCA(kernel="precomputed").fit(G)
    assert KernelPCA(1, kernel="precomputed").fit(G).certificate_.holds
    for settings, table, words in (
        ({"kernel": "precomputed"}, iris, "square"),
        ({"kernel": "precomputed", "fit_inverse_transform": True}, G, "precomputed"),
        ({"kernel": "precomputed", "n_components": 2}, np.random.default_rng(0).normal(size=(5, 5)), "symmetric"),
        ({"kernel": "spline"}, iris, "kernel"),
        ({"n_components": 0}, iris, "n_components"),
    ):
        with pytest.raises(DataError, match=words):
            KernelPCA(**settings).fit(table)
    with pytest.raises(NotImplementedError, match="sparse"):
        KernelPCA(2, fit_inverse_transform=True).fit(sparse.csr_array(iris))
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        KernelPCA(2).fit(iris).inverse_transform(iris[:, :2])


def test_sparse_rows_far_from_0_have_the_components_of_dense_ones():
    # Products of rows at 210 leave 1e-11 of kernel values open, as much as the centred ones are large.
    X = 210.106 + 1e-4 * np.array([[0.8], [3.6], [5.5], [1.6], [2.4], [9.1], [3.3]])
    thin, thick = (KernelPCA(1, kernel="rbf").fit(form(X)) for form in (sparse.csr_array, np.asarray))
    np.testing.assert_allclose(thin.eigenvalues_, thick.eigenvalues_, rtol=1e-6)
    assert thin.certificate_.holds
    assert audit(thin, sparse.csr_array(X)).holds


def test_a_singular_inverse_is_refused_in_words():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 4, axis=0) * 1e5
    with pytest.raises(DataError, match="singular beside alpha"):
        KernelPCA(1, kernel="poly", alpha=1e-3, fit_inverse_transform=True).fit(X)


def test_eigenvalues_of_rounding_are_judged_as_such():
    """All cosines of rows that lie far from 0 are 1 to rounding."""
    for seed in range(8):
        X = (np.random.default_rng(seed).normal(size=(19, 4)) * [1, 1e2, 1e-3, 10] + 1e6).astype(np.float32)
        model = KernelPCA(2, kernel="cosine").fit(X)
        assert audit(model, X).holds == model.certificate_.holds
