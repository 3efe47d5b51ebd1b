"""The ways to the principal axes: every solver finds the same axes and proves it, also where no matrix is formed."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.datasets import load_digits, load_iris, load_wine

from certifit import PCA, CertificateWarning, DataError, IncrementalPCA, TrimmedPCA, TruncatedSVD, audit
from certifit.checkers.decomposition.adapter import audit_pca
from certifit.checkers.decomposition.captured_variance import PCACheckTuning
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue
from certifit.decomposition.pca.choose_components import held_out_likelihood
from certifit.decomposition.pca.principal_axes import SOLVERS
from certifit.numerics.covariance import Covariance, column_moments
from certifit.rows import as_rows
from tests.common.tuning import tuned

DIGITS = load_digits().data
IRIS = load_iris().data


def long_sparse(n=600, d=500, seed=0):
    """Sparse counts with a few strong directions."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) - 4)
    return sparse.csr_array(rng.poisson(rate).astype(float))


def large_pca(*args, **settings):
    """A PCA for which neither the covariance nor the Gram matrix can be held."""
    return tuned(PCA(*args, **settings), largest_order=20)


def audit_large(model, X):
    """What `audit` does where neither can be held."""
    return audit_pca(model, X, None, None, model.tol, tuning=PCACheckTuning(largest_order=20))


# ---------------------------------------------------------------------------------------------- solvers
@pytest.mark.parametrize("svd_solver", SOLVERS)
@pytest.mark.parametrize("rows", [slice(None), slice(40)], ids=["tall", "wide"])
def test_every_solver_finds_the_same_axes(svd_solver, rows):
    X = DIGITS[rows]
    theirs = decomposition.PCA(5, svd_solver="full").fit(X)
    model = PCA(5, svd_solver=svd_solver, random_state=0).fit(X)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(np.abs((model.components_ * theirs.components_).sum(axis=1)), 1, rtol=1e-5)
    np.testing.assert_allclose(model.noise_variance_, theirs.noise_variance_, rtol=1e-6)
    assert model.certificate_.kind == "optimal"
    assert model.certificate_.holds
    assert audit(model, X).holds


@pytest.mark.parametrize("svd_solver", ["randomized", "power"])
def test_iterative_solvers_that_are_asked_for_all_axes_give_them(svd_solver):
    model = PCA(4, svd_solver=svd_solver).fit(IRIS)
    exact = PCA(svd_solver="full").fit(IRIS)
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=1e-10)


@pytest.mark.parametrize(
    ("svd_solver", "wanted", "words"),
    [
        ("arpack", 4, "n_components=4 must be strictly less than min"),
        ("arpack", 0, "must be between 1 and min"),
        ("randomized", 0.5, "must be between 1 and min"),
        ("randomized", "mle", "n_components='mle' cannot be a string with svd_solver='randomized'"),
        ("auto", 5, "n_components=5 must be between 0 and min"),
    ],
)
def test_what_scikit_learns_solvers_refuse_is_refused(svd_solver, wanted, words):
    for cls in (PCA, decomposition.PCA):
        with pytest.raises(ValueError, match=words):
            cls(wanted, svd_solver=svd_solver).fit(IRIS)


@pytest.mark.parametrize("svd_solver", ["auto", "arpack", "randomized", "power"])
@pytest.mark.parametrize("form", [np.asarray, lambda X: sparse.csr_array(X)], ids=["dense", "csr"])
def test_axes_without_either_matrix(svd_solver, form):
    """Against scikit-learn's dense decomposition; the proof is by products alone and says so."""
    dense = long_sparse().toarray()
    X = form(dense)
    theirs = decomposition.PCA(3, svd_solver="full").fit(dense)
    model = large_pca(3, svd_solver=svd_solver, random_state=0).fit(X)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(model.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-7)
    c = model.certificate_
    assert c.kind == "statistical"
    assert "except with probability 1e-09" in c.claim
    assert c.holds
    left = dense.var(axis=0).sum() - theirs.explained_variance_.sum() * (len(dense) - 1) / len(dense)
    assert c.bound <= left * (1 + 1e-10)
    np.testing.assert_allclose(c.objective, left, rtol=1e-7)
    assert audit_large(model, X).holds


@pytest.mark.parametrize("damage", ["drop the first axis", "turn", "scale", "variances", "mean"])
def test_damage_is_noticed_without_either_matrix(damage):
    X = long_sparse()
    model, four = large_pca(3).fit(X), large_pca(4).fit(X)
    best, B = model.certificate_.objective, four.components_
    if damage == "drop the first axis":  # eigenvectors still, but not the leading ones
        model.components_ = B[1:]
        model.explained_variance_ = four.explained_variance_[1:]
    elif damage == "turn":
        model.components_[0] += 0.01 * B[3]
    elif damage == "scale":
        model.components_ = model.components_ * 1.001
    elif damage == "variances":
        model.explained_variance_[0] *= 1.001
    else:
        model.mean_ = model.mean_ + 0.01
    found = audit_large(model, X)
    assert found.kind == "statistical"
    assert not found.holds
    assert found.bound <= best * (1 + 1e-12)


def test_an_axis_with_a_little_less_variance_than_one_left_out_is_noticed():
    """The third variance is 1.05 times the fourth: taking the fourth instead gives next to nothing away."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(120, 60)))[0]
    Q -= Q.mean(axis=0)
    X = np.linalg.qr(Q)[0] * np.sqrt(np.append([9.0, 4.0, 1.05, 1.0], np.linspace(0.5, 0.1, 56)))
    model, four = large_pca(3).fit(X), large_pca(4).fit(X)
    assert audit_large(model, X).holds
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        setattr(model, name, getattr(four, name)[[0, 1, 3]])
    found = audit_large(model, X)
    assert any("largest variance left out" in words for words in found.failures())


def test_what_lanczos_steps_cannot_tell_is_bounded():
    """Against bounds of random spectra, whose excess beyond the true largest eigenvalue is never larger."""
    tuning = PCACheckTuning(lanczos_steps=40)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = np.sort(rng.uniform(size=300) ** rng.choice([0.1, 1.0, 4.0]))
        found = largest_eigenvalue(np.diag(values), seed=seed, failure=tuning.failure, steps=40)
        assert values[-1] <= found.upper <= (1 + tuning.lanczos_excess(300)) * values[-1]
    assert tuning.lanczos_excess(300) < 0.15


def test_the_certificate_says_what_a_cheap_solver_gave_away():
    """One product per axis is not enough: fit warns, and the true loss is within what the certificate states."""
    X = long_sparse(400, 300, seed=1).toarray() + np.random.default_rng(0).normal(size=(400, 300))
    with pytest.warns(CertificateWarning, match="residual of the eigenvectors"):
        cheap = tuned(large_pca(5, svd_solver="randomized", random_state=0), krylov_depth=1).fit(X)
    best = PCA(5, svd_solver="full").fit(X).explained_variance_.sum()
    lost = (best - cheap.explained_variance_.sum()) * (len(X) - 1) / len(X)
    assert 0 < lost <= cheap.certificate_.gap


def test_products_with_the_covariance():
    X = long_sparse(300, 40)
    w = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    dense, Q = X.toarray(), np.random.default_rng(1).normal(size=(40, 3))
    S = np.cov(dense.T, fweights=w.astype(int), bias=True)
    for table in (X, dense, dense.astype(np.float32)):
        rows = as_rows(table, sample_weight=w, sparse=True)
        A = Covariance(rows, column_moments(rows))
        eps = np.finfo(rows.dtype).eps * np.abs(S).max()
        np.testing.assert_allclose(A @ Q, S @ Q, atol=1e3 * eps)
        np.testing.assert_allclose(A @ Q[:, 0], S @ Q[:, 0], atol=1e3 * eps)
        np.testing.assert_allclose(A.columns.total, np.trace(S), rtol=1e2 * np.finfo(rows.dtype).eps)
        np.testing.assert_allclose((A.T @ Q), S @ Q, atol=1e3 * eps)


def test_explicit_zeros_and_order_of_indices_do_not_matter():
    X = long_sparse(60, 30)
    zeros = X.copy()
    zeros.data[::5] = 0.0
    clean = zeros.copy()
    clean.eliminate_zeros()
    kept = zeros.nnz
    assert clean.nnz < kept
    np.testing.assert_allclose(PCA(3).fit(zeros).components_, PCA(3).fit(clean).components_, atol=1e-12)
    assert zeros.nnz == kept  # the caller's matrix is as it was


@pytest.mark.parametrize("rank", [1, 3])
def test_more_components_than_rank(rank):
    """The rest is orthonormal and carries no variance, however it is found."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, rank)) @ rng.normal(size=(rank, 8))
    for solver in SOLVERS:
        model = PCA(6, svd_solver=solver, random_state=0).fit(X)
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(6), atol=1e-10)
        np.testing.assert_allclose(model.explained_variance_[rank:], 0, atol=1e-12)
        assert model.certificate_.holds


def test_wide_sparse_rows_with_a_far_mean():
    """Stored everywhere at 1e6: products would cancel, so the rows are centred first."""
    X = np.random.default_rng(0).normal(size=(20, 50)) + 1e6
    exact = PCA(4).fit(X)
    np.testing.assert_allclose(
        PCA(4).fit(sparse.csr_array(X)).explained_variance_, exact.explained_variance_, rtol=1e-6
    )


# -------------------------------------------------------------------------------------- how many components
def test_rows_held_out_choose_the_planted_dimension():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, 10)) + 0.5 * rng.normal(size=(3000, 10)) + 1e6
    assert PCA("cv").fit(X).n_components_ == 3


def test_likelihood_of_rows_held_out_is_scikit_learns():
    """Five folds by hand, each scored by scikit-learn's PCA with the maximum-likelihood variances."""
    X = DIGITS[:, 20:30]
    n, fold = len(X), np.arange(len(X)) % 5
    for M, found in enumerate(held_out_likelihood(as_rows(X))[:4]):
        scores = []
        for f in range(5):
            train, test = X[fold != f], X[fold == f]
            S = np.cov(train.T, bias=True)
            values, vectors = np.linalg.eigh(S)
            noise = values[: 10 - M].mean()
            C = (vectors[:, 10 - M :] * (values[10 - M :] - noise)) @ vectors[:, 10 - M :].T + noise * np.eye(10)
            Z = test - train.mean(axis=0)
            quadratic = (Z @ np.linalg.inv(C) * Z).sum()
            scores.append(-0.5 * (quadratic + len(test) * (np.linalg.slogdet(C)[1] + 10 * np.log(2 * np.pi))))
        np.testing.assert_allclose(found, sum(scores) / n, rtol=1e-10)


def test_too_few_rows_for_folds():
    with pytest.raises(DataError, match=r"n_components='cv' with 7 rows.*at least two rows"):
        PCA("cv").fit(IRIS[:7])


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_minkas_choice_does_not_depend_on_the_unit(scale):
    """scikit-learn compares variances with an absolute 1e-16: at 1e-9 it finds another dimension."""
    assert PCA("mle").fit(scale * IRIS).n_components_ == PCA("mle").fit(IRIS).n_components_


# ------------------------------------------------------------------------------------------- incremental
def test_batches_give_what_all_rows_give():
    X = DIGITS
    whole, parts = PCA(10).fit(X), IncrementalPCA(10)
    for start in range(0, len(X), 211):
        parts.partial_fit(X[start : start + 211])
    for name in ("mean_", "explained_variance_", "singular_values_", "components_", "noise_variance_"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(parts.var_, X.var(axis=0), rtol=1e-10, atol=1e-12)
    assert parts.n_samples_seen_ == len(X)
    assert parts.certificate_.holds
    assert audit(parts, X).holds
    theirs = audit(decomposition.IncrementalPCA(10, batch_size=211).fit(X), X)
    assert not theirs.holds  # an approximation: the audit says how much it gave away
    assert theirs.objective > parts.certificate_.objective


def test_batches_at_an_offset_lose_nothing():
    X = 1e8 + IRIS[np.argsort(IRIS[:, 0])]  # batches that lie apart
    parts = IncrementalPCA()
    for start in range(0, 150, 7):
        parts.partial_fit(X[start : start + 7])
    exact = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    variances = np.linalg.svd(exact.astype(float), compute_uv=False) ** 2 / 149
    np.testing.assert_allclose(parts.explained_variance_, variances, rtol=1e-7)


def test_weights_in_batches():
    w = np.arange(150) % 3 + 0.5
    whole = PCA(2).fit(IRIS, sample_weight=w)
    parts = (
        IncrementalPCA(2).partial_fit(IRIS[:90], sample_weight=w[:90]).partial_fit(IRIS[90:], sample_weight=w[90:])
    )
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-12)
    np.testing.assert_allclose(parts.explained_variance_, whole.explained_variance_, rtol=1e-12)


def test_the_first_batch_may_be_smaller_than_the_number_of_components():
    model = IncrementalPCA(3).partial_fit(IRIS[:2])
    assert model.n_components_ == 2
    assert model.partial_fit(IRIS[2:]).n_components_ == 3
    np.testing.assert_allclose(model.explained_variance_, PCA(3).fit(IRIS).explained_variance_, rtol=1e-10)


def test_a_batch_that_fails_changes_nothing():
    model = IncrementalPCA(2).partial_fit(IRIS[:100])
    before = model.explained_variance_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 4), np.nan))
    np.testing.assert_array_equal(model.explained_variance_, before)
    fresh = IncrementalPCA(2)
    with pytest.raises(DataError, match="more than 1 sample"):
        fresh.partial_fit(IRIS[:1])
    assert not hasattr(fresh, "n_features_in_")


# ------------------------------------------------------------------------------ the right plane, other axes
TURN = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
OTHER_AXES = {
    "turned": TURN,
    "nearly": np.array([[1.0, -1e-3, 0], [1e-3, 1.0, 0], [0, 0, 1.0]]),
    "swapped": np.eye(3)[[1, 0, 2]],
}


def upright(B):
    """The axes with the sign that all of ours have: the largest entry is positive."""
    return B * np.sign(B[np.arange(len(B)), np.abs(B).argmax(axis=1)])[:, None]


@pytest.mark.parametrize("turn", OTHER_AXES)
@pytest.mark.parametrize("solver", ["covariance_eigh", "gram", "randomized"])
def test_other_axes_of_the_same_plane_are_noticed(turn, solver):
    """They capture as much, and their variances are what is claimed; but they are not the principal axes."""
    X = DIGITS[:50] if solver == "gram" else DIGITS
    R = np.linalg.qr(OTHER_AXES[turn].T)[0].T
    pca = PCA(3, svd_solver=solver, random_state=0).fit(X)
    pca.components_ = upright(R @ pca.components_)
    pca.explained_variance_ = (pca.components_ @ np.cov(X.T) * pca.components_).sum(axis=1)
    pca.explained_variance_ratio_ = pca.explained_variance_ / np.cov(X.T).trace()
    pca.singular_values_ = np.sqrt(pca.explained_variance_ * (len(X) - 1))
    svd = TruncatedSVD(3, algorithm=solver, random_state=0).fit(X)
    svd.components_ = upright(R @ svd.components_)
    svd.singular_values_ = np.linalg.norm(X @ svd.components_.T, axis=0)
    svd.explained_variance_ = (X @ svd.components_.T).var(axis=0)
    svd.explained_variance_ratio_ = svd.explained_variance_ / X.var(axis=0).sum()
    for model in (pca, svd):
        (failure,) = audit(model, X).failures()
        assert failure.startswith("axes turned within the plane, or out of order")


@pytest.mark.parametrize("kept", [[1, 2, 3], [0, 1, 3]])
def test_a_missing_axis_of_nearly_equal_variance_is_noticed_without_either_matrix(kept):
    """Noise alone: the bound cannot tell the axes apart, but a direction with more variance is seen."""
    X = sparse.random_array((900, 700), density=0.05, format="csr", rng=0)
    more, model = large_pca(4, svd_solver="arpack", random_state=0).fit(X), large_pca(3).fit(X)
    assert audit_large(model, X).holds
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        setattr(model, name, getattr(more, name)[kept])
    total = X.toarray().var(axis=0, ddof=1).sum()
    model.noise_variance_ = (total - model.explained_variance_.sum()) / (700 - 3)
    assert more.explained_variance_[0] < 1.1 * more.explained_variance_[3]
    failures = audit_large(model, X).failures()
    assert failures[0].startswith("largest variance left out, at least")
    assert all(failure.startswith("largest variance left out") for failure in failures)


def test_other_axes_are_noticed_without_either_matrix():
    X = long_sparse()
    model = large_pca(3).fit(X)
    model.components_ = TURN @ model.components_
    model.explained_variance_ = (model.components_ @ np.cov(X.toarray().T) * model.components_).sum(axis=1)
    assert any(failure.startswith("axes turned") for failure in audit_large(model, X).failures())


@pytest.mark.parametrize("name", ["explained_variance_ratio_", "singular_values_"])
@pytest.mark.parametrize("pca", [PCA, IncrementalPCA, decomposition.PCA])
def test_numbers_that_follow_from_the_variances_are_checked(pca, name):
    model = pca(3).fit(IRIS)
    assert audit(model, IRIS).holds
    setattr(model, name, getattr(model, name) * 1.01)
    assert len(audit(model, IRIS).failures()) == 1


# ------------------------------------------------------------------------------------------ other manners
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("codes", [np.zeros((3, 1)), np.zeros((3, 5)), np.zeros((3, 0))])
def test_codes_of_another_width_are_refused(codes, whiten):
    """Above all one column, which NumPy would stretch where codes are whitened."""
    for model in (PCA(2, whiten=whiten).fit(IRIS), TruncatedSVD(2).fit(IRIS)):
        with pytest.raises(DataError, match=f"codes of {codes.shape[1]} columns; wanted one for each of 2"):
            model.inverse_transform(codes)
        with pytest.raises(ValueError, match="contains NaN"):
            model.inverse_transform(np.full((1, 2), np.nan))


@pytest.mark.parametrize("tol", [-1.0, np.nan, "small"])
@pytest.mark.parametrize("cls", [PCA, IncrementalPCA, TruncatedSVD])
def test_impossible_tolerances_are_refused(cls, tol):
    with pytest.raises(DataError, match=r"tol=.*; wanted a number of at least 0"):
        cls(2, tol=tol).fit(IRIS)


@pytest.mark.parametrize("ours", [PCA, IncrementalPCA, TruncatedSVD])
def test_every_setting_of_scikit_learns_is_accepted(ours):
    theirs = getattr(decomposition, ours.__name__)().get_params()
    assert theirs.keys() <= ours().get_params().keys()


@pytest.mark.parametrize(
    "model", [PCA(3), IncrementalPCA(3), TruncatedSVD(3), TrimmedPCA(2, random_state=0)], ids=str
)
def test_float32_rows_far_from_zero_pass_the_checker_too(model):
    """Proline in the wine data: mean 2.4 deviations from zero, not far enough to be shifted before squaring."""
    X = load_wine().data.astype(np.float32)
    assert model.fit(X).certificate_.holds
    assert audit(model, X).holds


# ---------------------------------------------------------------------------------------- truncated SVD
@pytest.mark.parametrize("algorithm", SOLVERS)
def test_singular_vectors_are_numpys(algorithm):
    X = long_sparse(80, 60)
    _, sigma, Vt = np.linalg.svd(X.toarray())
    model = TruncatedSVD(4, algorithm=algorithm, random_state=0).fit(X)
    np.testing.assert_allclose(model.singular_values_, sigma[:4], rtol=1e-8)
    np.testing.assert_allclose(np.abs((model.components_ * Vt[:4]).sum(axis=1)), 1, rtol=1e-6)
    codes = model.transform(X)
    np.testing.assert_allclose(model.explained_variance_, codes.var(axis=0), rtol=1e-8)
    np.testing.assert_allclose(model.explained_variance_ratio_, codes.var(axis=0) / X.toarray().var(axis=0).sum())
    np.testing.assert_allclose(model.certificate_.objective, (sigma[4:] ** 2).sum() / 80, rtol=1e-7)
    np.testing.assert_allclose(model.score(X), -model.certificate_.objective, rtol=1e-9)
    assert model.certificate_.holds


@pytest.mark.parametrize("algorithm", ["arpack", "randomized"])
def test_scikit_learns_truncated_svd_is_audited(algorithm):
    X = sparse.csr_array(DIGITS)
    theirs = decomposition.TruncatedSVD(5, algorithm=algorithm, n_iter=1, random_state=0).fit(X)
    found, best = audit(theirs, X, tol=1e-9), TruncatedSVD(5).fit(X).certificate_
    assert found.holds == (algorithm == "arpack")
    assert found.bound <= best.objective * (1 + 1e-12)
    assert found.objective >= best.bound


@pytest.mark.parametrize("svd_solver", ["full", "covariance_eigh", "arpack", "randomized"])
def test_scikit_learns_pca_is_audited(svd_solver):
    theirs = decomposition.PCA(5, svd_solver=svd_solver, random_state=0).fit(DIGITS)
    assert audit(theirs, DIGITS).holds


@pytest.mark.parametrize("bad", [0, -1, 2.0, "two", True, None])
def test_what_is_no_rank_is_refused(bad):
    with pytest.raises(DataError, match=r"n_components=.*wanted a whole number of at least 1"):
        TruncatedSVD(bad).fit(DIGITS)


def test_a_rank_above_the_number_of_columns_is_refused():
    with pytest.raises(DataError, match="a whole number between 1 and the number of features, 64"):
        TruncatedSVD(65).fit(DIGITS)


def test_unknown_algorithms_are_refused():
    with pytest.raises(DataError, match="algorithm='quick'"):
        TruncatedSVD(2, algorithm="quick").fit(DIGITS)


def test_arpack_leaves_one_axis_out_unless_told_how_many_as_scikit_learns_does():
    for X in (IRIS, IRIS[:3]):
        model, theirs = (cls(svd_solver="arpack", random_state=0).fit(X) for cls in (PCA, decomposition.PCA))
        assert model.n_components_ == theirs.n_components_ == min(X.shape) - 1
        assert model.certificate_.holds
        assert audit(model, X).holds
