"""PCA against NumPy's and scikit-learn's decompositions, and in the corners where squaring loses digits."""

import copy

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn import decomposition
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError

from certifit import PCA, CertificateWarning, DataError, IncrementalPCA, audit

TABLES = {"iris": load_iris().data, "wine": load_wine().data, "cancer": load_breast_cancer().data}
SOLVERS = ["auto", "full", "covariance_eigh", "arpack", "randomized"]


def spectrum(X, w=None):
    """Mean, variances (n - 1 below) and axes by NumPy's singular value decomposition of the centred rows."""
    w = np.ones(len(X)) if w is None else w
    mean = w @ X / w.sum()
    _, sigma, axes = np.linalg.svd(np.sqrt(w)[:, None] * (X - mean), full_matrices=False)
    return mean, sigma**2 / (w.sum() - 1), axes


def rotated(variances, n, seed=0):
    """Rows (n, d) whose covariance has exactly these eigenvalues (1/n below), and the axes."""
    rng = np.random.default_rng(seed)
    d = len(variances)
    Z = rng.normal(size=(n, d))
    Z -= Z.mean(axis=0)
    U = np.linalg.qr(Z)[0] * np.sqrt(n)  # orthonormal columns orthogonal to the constant
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0].T
    return (U * np.sqrt(variances)) @ axes, axes


def aligned(B, axes):
    """|cosine| of each pair of axes: 1 where they agree up to sign."""
    return np.abs((B * axes[: len(B)]).sum(axis=1))


# ------------------------------------------------------------------------------------- known solutions
@pytest.mark.parametrize("svd_solver", SOLVERS)
@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name, svd_solver):
    X = TABLES[name]
    mean, variances, axes = spectrum(X)
    model = PCA(3, svd_solver=svd_solver).fit(X)
    np.testing.assert_allclose(model.mean_, mean, rtol=1e-13)
    np.testing.assert_allclose(model.explained_variance_, variances[:3], rtol=1e-10)
    np.testing.assert_allclose(aligned(model.components_, axes), 1, rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio_, variances[:3] / variances.sum(), rtol=1e-10)
    np.testing.assert_allclose(model.singular_values_, np.sqrt(variances[:3] * (len(X) - 1)), rtol=1e-10)


@pytest.mark.parametrize("n_components", [None, 1, 3, 0.95, 0.5, "mle"])
@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_scikit_learn(name, n_components):
    X = TABLES[name]
    mine, theirs = PCA(n_components).fit(X), decomposition.PCA(n_components, svd_solver="full").fit(X)
    assert mine.n_components_ == theirs.n_components_
    assert mine.n_samples_ == theirs.n_samples_
    np.testing.assert_allclose(mine.explained_variance_, theirs.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(mine.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(mine.singular_values_, theirs.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(mine.noise_variance_, theirs.noise_variance_, rtol=1e-6, atol=1e-12)
    signs = np.sign((mine.components_ * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(mine.components_, signs[:, None] * theirs.components_, atol=1e-9)
    np.testing.assert_allclose(mine.transform(X), signs * theirs.transform(X), atol=1e-8 * np.abs(X).max())
    names = mine.get_feature_names_out().tolist()
    assert names == theirs.get_feature_names_out().tolist()
    assert certified(mine, X)


def certified(model, X, w=None):
    return model.certificate_.holds and audit(model, X, sample_weight=w).holds


@pytest.mark.parametrize("n_components", [2, 10, 30])
def test_likelihood_agrees_with_scikit_learn(n_components):
    X = TABLES["cancer"]
    mine, theirs = PCA(n_components).fit(X), decomposition.PCA(n_components, svd_solver="full").fit(X)
    np.testing.assert_allclose(mine.get_covariance(), theirs.get_covariance(), rtol=1e-8, atol=1e-10)
    ours, inverse = mine.get_precision(), theirs.get_precision()
    np.testing.assert_allclose(ours, inverse, rtol=1e-5, atol=1e-9 * np.abs(inverse).max())
    np.testing.assert_allclose(mine.score(X), theirs.score(X), rtol=1e-8)
    exact = log_density(mine, X)  # scikit-learn's own rows are off by 5e-8 here: its inverse covariance cancels
    np.testing.assert_allclose(mine.score_samples(X), exact, atol=1e-10)
    np.testing.assert_allclose(theirs.score_samples(X), exact, atol=1e-6)


def log_density(model, X):
    """The model's Gaussian in extended precision, along its components and across them."""
    fitted = model.components_, model.mean_, model.explained_variance_
    B, mean, variances = (a.astype(np.longdouble) for a in fitted)
    noise, rest = np.longdouble(model.noise_variance_), B.shape[1] - len(B)
    Z = X - mean
    codes = Z @ B.T
    distance, log_det = (codes**2 / variances).sum(axis=1), np.log(variances).sum()
    if rest:
        distance += ((Z - codes @ B) ** 2).sum(axis=1) / noise
        log_det += rest * np.log(noise)
    return (-0.5 * (B.shape[1] * np.log(2 * np.pi) + log_det + distance)).astype(np.float64)


def test_likelihood_is_that_of_the_gaussian():
    X = TABLES["iris"]
    model = PCA(2).fit(X)
    gaussian = multivariate_normal(model.mean_, model.get_covariance())
    np.testing.assert_allclose(model.score_samples(X), gaussian.logpdf(X), rtol=1e-10)
    np.testing.assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(4), atol=1e-10)


def test_weights():
    X = TABLES["wine"]
    w = np.random.default_rng(0).exponential(size=len(X)) * 3
    mean, variances, axes = spectrum(X, w)
    model = PCA(5).fit(X, sample_weight=w)
    np.testing.assert_allclose(model.mean_, mean, rtol=1e-13)
    np.testing.assert_allclose(model.explained_variance_, variances[:5], rtol=1e-10)
    np.testing.assert_allclose(aligned(model.components_, axes), 1, rtol=1e-9)
    assert certified(model, X, w)


def test_objective_is_the_mean_squared_reconstruction_error():
    X = TABLES["wine"]
    model = PCA(2).fit(X)
    lost = X - model.inverse_transform(model.transform(X))
    total, data, penalty = model.objective(X)
    np.testing.assert_allclose(total, (lost**2).sum() / len(X), rtol=1e-9)
    assert (data, penalty) == (total, 0.0)
    np.testing.assert_allclose(total, model.certificate_.objective, rtol=1e-9)


# --------------------------------------------------------------------------------------- n_components
def test_fraction_is_reached_and_not_before():
    X = TABLES["cancer"]
    share = np.cumsum(PCA().fit(X).explained_variance_ratio_)
    for fraction in (0.5, 0.98, 0.999, 0.9999, np.float32(0.99)):
        k = PCA(fraction).fit(X).n_components_
        assert share[k - 1] >= fraction
        assert k == 1 or share[k - 2] < fraction


def test_mle_finds_the_planted_dimension():
    """Three strong directions in noise: Minka's evidence must choose three."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 10)) + 0.3 * rng.normal(size=(400, 10))
    assert PCA("mle").fit(X).n_components_ == 3


def test_no_components_is_the_mean_alone():
    X = TABLES["iris"]
    model = PCA(0).fit(X)
    assert model.transform(X).shape == (150, 0)
    np.testing.assert_allclose(model.inverse_transform(np.empty((3, 0))), np.tile(X.mean(axis=0), (3, 1)), rtol=1e-12)
    np.testing.assert_allclose(model.certificate_.objective, X.var(axis=0).sum(), rtol=1e-12)
    np.testing.assert_allclose(model.noise_variance_, X.var(axis=0, ddof=1).mean(), rtol=1e-12)
    assert certified(model, X)


@pytest.mark.parametrize("bad", [-1, True, False, -0.5, np.nan, "all", [2]], ids=str)
def test_what_is_no_number_of_components_is_refused(bad):
    with pytest.raises(DataError, match=r"n_components=.*wanted 'mle', 'cv', a number of at least 0 or None"):
        PCA(bad).fit(TABLES["iris"])


@pytest.mark.parametrize("bad", [5, 0.0, 1.0, 2.0, np.inf], ids=str)
def test_impossible_numbers_of_components_are_refused(bad):
    with pytest.raises(DataError, match=r"n_components=.*between 0 and min\(n_samples, n_features\)=4"):
        PCA(bad).fit(TABLES["iris"])


def test_mle_needs_as_many_rows_as_columns():
    with pytest.raises(DataError, match="n_components='mle' with n_samples=5 < n_features=20"):
        PCA("mle").fit(np.random.default_rng(0).normal(size=(5, 20)))


def test_unknown_solver_is_refused():
    with pytest.raises(DataError, match=r"svd_solver='quick'; wanted one of 'auto'"):
        PCA(svd_solver="quick").fit(TABLES["iris"])


def test_one_row_is_refused():
    with pytest.raises(DataError, match=r"total weight of 1 \(n_samples=1\)"):
        PCA().fit([[1.0, 2.0]])
    with pytest.raises(DataError, match=r"total weight of 0\.5"):
        PCA().fit([[1.0, 2.0], [3.0, 5.0]], sample_weight=[0.25, 0.25])


# -------------------------------------------------------------------------------------------- corners
@pytest.mark.parametrize("svd_solver", ["auto", "full"])
@pytest.mark.parametrize(("offset", "spread"), [(1e8, 1.0), (1e8, 1e-2), (-1e6, 1e-3), (1e12, 10.0)])
def test_an_offset_costs_no_digits(offset, spread, svd_solver):
    """Against exact integers: centring in extended precision, then NumPy."""
    X = offset + spread * TABLES["iris"]
    exact = (X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)).astype(np.float64)
    sigma, axes = np.linalg.svd(exact, full_matrices=False)[1:]
    model = PCA(svd_solver=svd_solver).fit(X)
    np.testing.assert_allclose(model.explained_variance_, sigma**2 / 149, rtol=1e-8)
    np.testing.assert_allclose(aligned(model.components_, axes), 1, rtol=1e-8)
    assert certified(model, X)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
def test_scale_does_not_matter(scale):
    X = TABLES["iris"]
    plain, scaled = PCA(3).fit(X), PCA(3).fit(scale * X)
    np.testing.assert_allclose(scaled.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-12)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-12)
    np.testing.assert_allclose(scaled.singular_values_, scale * plain.singular_values_, rtol=1e-12)
    assert certified(scaled, scale * X)


@pytest.mark.parametrize("shape", [(50, 4), (4, 50)])
def test_squares_that_overflow_are_refused(shape):
    X = 1e160 * np.random.default_rng(0).normal(size=shape)
    with pytest.raises(DataError, match=r"squares overflow.*Rescale the columns"):
        PCA(2).fit(X)


def test_squares_that_underflow_do_not_pass_for_proved():
    """At 1e-161 variances have a digit or none left: nothing is proved, and fit says so."""
    with pytest.warns(CertificateWarning, match="allowed 0"):
        PCA(2).fit(1e-161 * TABLES["iris"])


@pytest.mark.parametrize("svd_solver", ["auto", "full"])
def test_faint_directions_are_found(svd_solver):
    """Standard deviations down to 1e-9 of the largest, where the covariance has nothing but rounding."""
    deviations = np.array([1.0, 1e-3, 1e-6, 1e-8, 1e-9])
    X, axes = rotated(deviations**2, 300)
    sigma = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    model = PCA(svd_solver=svd_solver).fit(X)
    accuracy = 1e-15 / deviations  # of any method: rounding of X relative to the direction
    assert (np.abs(model.singular_values_ / sigma - 1) < 10 * accuracy).all()
    assert (1 - aligned(model.components_, axes) < 10 * accuracy).all()
    assert certified(model, X)


def test_faint_directions_that_are_not_asked_for_cost_no_second_pass():
    X, _ = rotated(np.array([1.0, 1e-3, 1e-20]), 300)
    np.testing.assert_allclose(PCA(2).fit(X).explained_variance_, np.array([1.0, 1e-3]) * 300 / 299, rtol=1e-10)


@pytest.mark.parametrize("shape", [(10, 3), (3, 10)])
@pytest.mark.parametrize("value", [0.0, 7.0, 1e8 + 0.1])
def test_constant_data(shape, value):
    X = np.full(shape, value)
    model = PCA().fit(X)
    assert not model.explained_variance_.any()
    assert not model.explained_variance_ratio_.any()
    np.testing.assert_array_equal(model.transform(X), np.zeros((len(X), 3)))
    np.testing.assert_array_equal(PCA(whiten=True).fit(X).transform(X), np.zeros((len(X), 3)))
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-15)
    assert certified(model, X)


def test_constant_columns():
    X = np.column_stack([TABLES["iris"], np.full(150, 1e8 + 0.1), np.zeros(150)])
    model = PCA().fit(X)
    np.testing.assert_allclose(model.explained_variance_[:4], spectrum(TABLES["iris"])[1], rtol=1e-10)
    assert not model.explained_variance_[4:].any()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-13)
    assert certified(model, X)


def test_duplicate_columns():
    X = np.column_stack([TABLES["iris"]] * 2)
    model = PCA().fit(X)
    np.testing.assert_allclose(model.explained_variance_[:4], 2 * spectrum(TABLES["iris"])[1], rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_[4:], 0, atol=1e-15)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(8), atol=1e-12)
    assert certified(model, X)


def test_duplicate_rows():
    X = TABLES["wine"]
    once, thrice = PCA(4).fit(X), PCA(4).fit(np.tile(X, (3, 1)))
    np.testing.assert_allclose(thrice.components_, once.components_, atol=1e-10)
    n = len(X)
    np.testing.assert_allclose(
        thrice.explained_variance_, once.explained_variance_ * (n - 1) / n * 3 * n / (3 * n - 1), rtol=1e-10
    )


@pytest.mark.parametrize("n_components", [None, 5, 20])
def test_fewer_rows_than_columns(n_components):
    X = np.random.default_rng(0).normal(size=(20, 100)) + 1e6
    _, variances, axes = spectrum(X)
    model = PCA(n_components).fit(X)
    k = model.n_components_
    assert k == (n_components or 20)
    np.testing.assert_allclose(model.explained_variance_[:19], variances[: min(k, 19)], rtol=1e-8)
    np.testing.assert_allclose(aligned(model.components_[:19], axes), 1, rtol=1e-8)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(k), atol=1e-12)
    if k == 20:
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-14)
    assert certified(model, X)


def test_one_column():
    x = np.array([[1.0], [2.0], [4.0]])
    model = PCA().fit(x)
    assert model.components_.tolist() == [[1.0]]
    np.testing.assert_allclose(model.explained_variance_, x.var(ddof=1), rtol=1e-14)


def test_equal_variances_leave_the_axes_free_but_the_proof_whole():
    X, _ = rotated(np.array([2.0, 2.0, 2.0, 1.0]), 100)
    model = PCA(2).fit(X)
    np.testing.assert_allclose(model.explained_variance_, 2.0 * 100 / 99, rtol=1e-10)
    assert certified(model, X)


def test_an_outlier_does_not_hide_the_rest():
    X = np.vstack([np.full((1, 4), 1e9), TABLES["iris"]])
    model = PCA().fit(X)
    _, variances, _ = spectrum(X)
    np.testing.assert_allclose(model.explained_variance_, variances, rtol=1e-6)
    assert certified(model, X)


# ------------------------------------------------------------------------------------ what it is used for
def test_signs_do_not_depend_on_the_order_of_rows_or_the_solver():
    X = TABLES["cancer"]
    shuffled = X[np.random.default_rng(0).permutation(len(X))]
    first = PCA(5).fit(X).components_
    np.testing.assert_allclose(PCA(5).fit(shuffled).components_, first, atol=1e-9)
    np.testing.assert_allclose(PCA(5, svd_solver="full").fit(X).components_, first, atol=1e-9)
    largest = np.take_along_axis(first, np.abs(first).argmax(axis=1)[:, None], axis=1)
    assert (largest > 0).all()


def test_whitened_codes_have_unit_variance():
    X = TABLES["wine"]
    model = PCA(6, whiten=True).fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(6), atol=1e-8)
    np.testing.assert_allclose(
        model.inverse_transform(Z), PCA(6).fit(X).inverse_transform(PCA(6).fit_transform(X)), atol=1e-8
    )


def test_whitening_leaves_directions_without_variance_at_zero():
    X = np.column_stack([TABLES["iris"], np.ones(150), TABLES["iris"][:, 0]])
    Z = PCA(whiten=True).fit(X).transform(X)
    np.testing.assert_allclose(Z.var(axis=0, ddof=1)[:4], 1, rtol=1e-9)
    np.testing.assert_array_equal(Z[:, 4:], 0)


def test_all_components_give_the_rows_back():
    X = TABLES["cancer"]
    for model in (PCA().fit(X), PCA(whiten=True).fit(X)):
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-10, atol=1e-9)


def test_singular_covariances_have_no_density():
    X = np.column_stack([TABLES["iris"], np.ones(150)])
    with pytest.raises(DataError, match=r"singular covariance.*Drop constant or collinear columns"):
        PCA().fit(X).score(X)
    assert np.isfinite(PCA(2).fit(X).score(X))  # with noise in all other directions there is one


@pytest.mark.parametrize("model", [PCA(3), IncrementalPCA(3)], ids=str)
@pytest.mark.parametrize("narrow", [1e-7, 1e-6, 1e-5])
def test_a_density_hangs_on_no_variance_that_the_audit_cannot_see(model, narrow):
    X = np.random.default_rng(0).normal(size=(40, 4)) * [1.0, 0.3, 1e-4, narrow]
    model.fit(X)
    assert audit(model, X).holds
    if narrow == 1e-7:
        with pytest.raises(DataError, match="singular covariance"):
            model.score(X)
        return
    assert np.isfinite(model.score(X))
    for share in (0.5, 1.5):
        wrong = copy.deepcopy(model)
        wrong.noise_variance_ *= share
        assert not audit(wrong, X).holds


@pytest.mark.parametrize("shape", [(200, 30), (20, 60)])
def test_sparse_rows_are_dense_rows(shape):
    rng = np.random.default_rng(0)
    X = np.where(rng.random(shape) < 0.1, rng.normal(size=shape) + 3, 0.0)
    dense, csr = PCA(5).fit(X), PCA(5).fit(sparse.csr_array(X))
    np.testing.assert_allclose(csr.components_, dense.components_, atol=1e-12)
    np.testing.assert_allclose(csr.explained_variance_, dense.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(csr.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-12)
    np.testing.assert_allclose(csr.score_samples(sparse.csr_array(X)), dense.score_samples(X), rtol=1e-10)
    np.testing.assert_allclose(csr.objective(sparse.csr_array(X)).total, dense.objective(X).total, rtol=1e-12)
    assert certified(csr, sparse.csr_array(X))


def test_float32_digits():
    X = load_digits().data.astype(np.float32)
    model = PCA(20).fit(X)
    theirs = decomposition.PCA(20, svd_solver="full").fit(X.astype(np.float64))
    assert model.transform(X).dtype == np.float32
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(aligned(model.components_, theirs.components_), 1, rtol=1e-6)
    assert certified(model, X)


def test_sums_over_blocks_are_the_whole():
    """Three blocks of rows against NumPy on all of them at once."""
    X = np.random.default_rng(0).normal(size=(80_000, 6)) * [5, 4, 3, 2, 1, 0.5] + 100
    mean, variances, axes = spectrum(X)
    for solver in ("auto", "full"):
        model = PCA(svd_solver=solver).fit(X)
        np.testing.assert_allclose(model.mean_, mean, rtol=1e-13)
        np.testing.assert_allclose(model.explained_variance_, variances, rtol=1e-11)
        np.testing.assert_allclose(aligned(model.components_, axes), 1, rtol=1e-11)


def test_a_first_block_far_from_the_rest():
    """The shift is chosen from the first block; where the others lie elsewhere a second pass repairs it."""
    X = np.random.default_rng(0).normal(size=(70_000, 3)) * [3, 2, 1]
    X[32768:] += 1e7
    exact = X.astype(np.longdouble)
    exact = (exact - exact.mean(axis=0)).astype(np.float64)
    sigma = np.linalg.svd(exact, compute_uv=False)
    np.testing.assert_allclose(PCA().fit(X).singular_values_, sigma, rtol=1e-8)


@pytest.mark.parametrize("method", ["transform", "score", "score_samples", "inverse_transform", "objective"])
def test_unfitted(method):
    with pytest.raises(NotFittedError):
        getattr(PCA(), method)(TABLES["iris"])
    with pytest.raises(NotFittedError):
        PCA().get_covariance()
    with pytest.raises(NotFittedError):
        PCA().get_precision()


def test_running_sums_of_float32_rows_are_judged_in_float64():
    """The variance left out is far below what float32 would forgive beside the largest one."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30, 4)) * [1e4, 1e2, 1.0, 1.0]).astype(np.float32)
    model = IncrementalPCA(2).fit(X)
    assert model.certificate_.holds
    assert audit(model, X).holds
    model.noise_variance_ += 1
    assert not audit(model, X).holds
