"""Probabilistic PCA: closed form and EM, missing entries, codes, imputation, the number of components, corners."""

import pickle

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import multivariate_normal
from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine

from certifit import CertificateWarning, DataError, audit
from certifit.checkers.decomposition import probabilistic_pca as certificates
from certifit.decomposition.probabilistic.closed_form import filled_variances, random_parameters, summarise_columns
from certifit.decomposition.probabilistic.em import measure, update, update_relevant
from certifit.decomposition.probabilistic.parameters import PPCAParameters, PPCATuning
from certifit.decomposition.probabilistic.posterior import posterior
from certifit.decomposition.probabilistic.probabilistic_pca import MODEL, ProbabilisticPCA
from certifit.numerics.packed import unpack
from certifit.rows import as_rows
from tests.common.tuning import tuned

IRIS = load_iris().data
WINE = load_wine().data / load_wine().data.std(axis=0)


def factors(n=200, d=7, k=2, noise=0.4, seed=0):
    """Rows from the model itself."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(d, k)) * np.linspace(3, 1, k)
    return 5 + rng.normal(size=(n, k)) @ W.T + noise * rng.normal(size=(n, d))


def with_missing(X, share=0.2, seed=1):
    X = np.array(X, copy=True)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def checked(model, X, w=None, tol=1e-6):
    """The independent checker's certificate."""
    attributes = certificates.PPCAModel(*(getattr(model, name) for name in MODEL), model.n_components)
    return certificates.certify(attributes, tol, as_rows(X, None, w, missing=True))


def gaussian(X, mean, covariance):
    """Log-density of the observed entries of each row, by SciPy."""
    out = []
    for x in X:
        o = ~np.isnan(x)
        out.append(multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(x[o]) if o.any() else 0.0)
    return np.array(out)


# ------------------------------------------------------------------------------------------ complete rows
@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_closed_form_is_scikit_learns_with_variances_divided_by_n(k):
    """scikit-learn divides by n - 1; the likelihood asks for n. Its axes, and its density once that is mended."""
    n = len(IRIS)
    model, peer = ProbabilisticPCA(k).fit(IRIS), decomposition.PCA(k).fit(IRIS)
    np.testing.assert_allclose(model.explained_variance_, peer.explained_variance_ * (n - 1) / n, rtol=1e-10)
    assert model.noise_variance_ == pytest.approx(peer.noise_variance_ * (n - 1) / n, rel=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * peer.components_, axis=1)), 1, rtol=1e-10)
    covariance = peer.get_covariance() * (n - 1) / n
    np.testing.assert_allclose(model.get_covariance(), covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.get_precision(), np.linalg.inv(covariance), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.score_samples(IRIS), gaussian(IRIS, model.mean_, covariance), rtol=1e-9)
    assert model.score(IRIS) >= peer.score(IRIS)
    assert model.certificate_.kind == "optimal"
    assert model.certificate_.holds


def test_likelihood_is_at_least_factor_analysis_with_equal_noise():
    """scikit-learn's FactorAnalysis has d noise variances: its likelihood bounds ours from above."""
    peer = decomposition.FactorAnalysis(2, tol=1e-8, max_iter=5000).fit(WINE)
    ours = ProbabilisticPCA(2).fit(WINE).score(WINE)
    assert ours <= peer.score(WINE) + 1e-9
    equal = multivariate_normal(peer.mean_, peer.components_.T @ peer.components_ + np.eye(13) * 0.6)
    assert ours >= equal.logpdf(WINE).mean()


@pytest.mark.parametrize("data", [IRIS, WINE, IRIS * 1e-6 + 1e3])
def test_em_on_complete_rows_is_the_closed_form(data):
    closed = ProbabilisticPCA(2).fit(data)
    em = ProbabilisticPCA(2, solver="em", tol=1e-11, random_state=0).fit(data)
    assert em.certificate_.kind == "optimal"
    assert em.certificate_.holds
    scale = np.abs(closed.get_covariance()).max()
    np.testing.assert_allclose(em.get_covariance(), closed.get_covariance(), atol=1e-5 * scale)
    np.testing.assert_allclose(em.components_, closed.components_, atol=1e-4)  # the same signs too
    assert em.loglikelihood_ == pytest.approx(closed.loglikelihood_, rel=1e-9)


def test_loadings_and_orthonormal_axes():
    model = ProbabilisticPCA(3).fit(WINE)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)
    W = model.loadings_
    np.testing.assert_allclose(W.T @ W, np.diag(model.explained_variance_ - model.noise_variance_), atol=1e-10)
    np.testing.assert_allclose(W @ W.T + model.noise_variance_ * np.eye(13), model.get_covariance(), atol=1e-10)


# ------------------------------------------------------------------------------------------ missing entries
@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_likelihood_and_codes_with_missing_entries_are_those_of_a_gaussian(share, k):
    """Against SciPy's density of the observed sub-vectors, and the conditional of the joint Gaussian of (z, x)."""
    X = with_missing(factors(60), share)
    X[3] = np.nan
    rng = np.random.default_rng(0)
    at = PPCAParameters(rng.normal(size=7), rng.normal(size=(7, k)), 0.7)
    C = at.W @ at.W.T + at.noise * np.eye(7)
    found = posterior(at, X)
    np.testing.assert_allclose(found.log_likelihood, gaussian(X, at.mean, C), rtol=1e-10, atol=1e-10)
    for i in range(0, 60, 7):
        o = ~np.isnan(X[i])
        gain = at.W[o].T @ np.linalg.inv(C[np.ix_(o, o)])
        np.testing.assert_allclose(found.z[i], gain @ (X[i] - at.mean)[o], rtol=1e-9, atol=1e-10)
        M = unpack(found.inverse, k)[found.sets.which[i]]
        np.testing.assert_allclose(at.noise * M, np.eye(k) - gain @ at.W[o], rtol=1e-8, atol=1e-10)


def test_fit_with_missing_is_stationary():
    """Central differences of SciPy's likelihood in every parameter vanish."""
    X = with_missing(factors(80, d=5))
    model = ProbabilisticPCA(2, tol=1e-11).fit(X)
    assert model.certificate_.kind == "stationary"
    W, mean, noise = model.loadings_, model.mean_, model.noise_variance_

    def likelihood(theta):
        W = theta[5:15].reshape(5, 2)
        return gaussian(X, theta[:5], W @ W.T + np.exp(theta[15]) * np.eye(5)).mean()

    theta = np.concatenate([mean, W.ravel(), [np.log(noise)]])
    steps = 1e-4 * np.eye(len(theta))
    slopes = [(likelihood(theta + h) - likelihood(theta - h)) / 2e-4 for h in steps]
    np.testing.assert_allclose(slopes, 0, atol=2e-5)
    assert likelihood(theta) == pytest.approx(model.score(X), rel=1e-10)
    assert model.loglikelihood_ == pytest.approx(len(X) * likelihood(theta), rel=1e-10)


@pytest.mark.parametrize("step", [update, update_relevant])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_no_em_step_falls_and_each_gains_what_it_promised(step, share):
    X = with_missing(WINE, share)
    rows = as_rows(X, missing=True)
    at, seen = random_parameters(summarise_columns(rows), 3, np.random.RandomState(0)), []
    for _ in range(30):
        seen.append(step(float(len(X)), at, measure(rows, at)))
        at = seen[-1].params
    objective, gain = np.array([s.objective for s in seen]), np.array([s.gain for s in seen])
    assert (-np.diff(objective) >= gain[:-1] - 1e-12).all()
    assert gain[0] > 0.1


def test_rows_with_the_same_missing_columns_share_the_work():
    """The same sums whether sets of missing columns repeat or each row has its own."""
    X = factors(40)
    X[::2, 1] = np.nan
    X[::4, 5] = np.nan
    at = PPCAParameters(np.full(7, 5.0), np.random.default_rng(0).normal(size=(7, 3)), 0.5)
    assert len(posterior(at, X).sets.missing) == 3
    whole, single = measure(as_rows(X, missing=True), at), [measure(as_rows(x[None], missing=True), at) for x in X]
    for name in ("log_likelihood", "entries", "squares", "cross", "moment", "by_column"):
        parts = sum(np.broadcast_to(getattr(e, name), np.shape(getattr(whole, name))) for e in single)
        np.testing.assert_allclose(getattr(whole, name), parts, rtol=1e-10, atol=1e-10)


def test_a_row_without_entries_changes_nothing():
    X = with_missing(factors(60))
    empty = np.vstack([X, np.full((3, 7), np.nan)])
    model, more = ProbabilisticPCA(2).fit(X), ProbabilisticPCA(2).fit(empty)
    assert more.loglikelihood_ == pytest.approx(model.loglikelihood_, rel=1e-7)
    np.testing.assert_allclose(more.get_covariance(), model.get_covariance(), rtol=1e-3, atol=1e-3)
    z, C = more.posterior(empty[-1:])  # the prior
    np.testing.assert_array_equal(z, np.zeros((1, 2)))
    np.testing.assert_allclose(C, np.eye(2)[None], atol=1e-12)
    assert more.score_samples(empty)[-1] == 0
    filled, error = more.impute(empty[-1:], return_std=True)
    np.testing.assert_allclose(filled[0], more.mean_)
    np.testing.assert_allclose(error[0] ** 2, np.diag(more.get_covariance()), rtol=1e-10)


def test_em_without_missing_entries():
    """With nothing missing the EM for missing entries is the closed form's."""
    X = factors()
    model = ProbabilisticPCA(2).fit(X)
    one = X.copy()
    one[0, 0] = np.nan
    np.testing.assert_allclose(ProbabilisticPCA(2).fit(one).get_covariance(), model.get_covariance(), rtol=0.05)


# --------------------------------------------------------------------------------------------- using it
def test_codes_are_shrunk_projections():
    """z = L^(1/2) (L + σ²)⁻¹ Bᵀ (x - μ) with L the excess variances: Tipping & Bishop (1999)."""
    model = ProbabilisticPCA(2).fit(IRIS)
    lengths = np.sqrt(model.explained_variance_ - model.noise_variance_)
    projected = (IRIS - IRIS.mean(axis=0)) @ model.components_.T
    np.testing.assert_allclose(model.transform(IRIS), projected * lengths / model.explained_variance_, atol=1e-10)
    back = model.inverse_transform(model.transform(IRIS))
    np.testing.assert_allclose(back, model.mean_ + model.transform(IRIS) @ model.loadings_.T)
    assert list(model.get_feature_names_out()) == ["probabilisticpca0", "probabilisticpca1"]


def test_imputation_is_the_conditional_gaussian():
    X = with_missing(IRIS, 0.3)
    model = ProbabilisticPCA(2).fit(X)
    filled, error = model.impute(X, return_std=True)
    C = model.get_covariance()
    for i in range(0, len(X), 11):
        o = ~np.isnan(X[i])
        regression = C[~o][:, o] @ np.linalg.inv(C[np.ix_(o, o)])
        np.testing.assert_allclose(filled[i, ~o], model.mean_[~o] + regression @ (X[i] - model.mean_)[o], rtol=1e-9)
        spread = np.diag(C[np.ix_(~o, ~o)] - regression @ C[o][:, ~o])
        np.testing.assert_allclose(error[i, ~o] ** 2, spread, rtol=1e-8)
    observed = ~np.isnan(X)
    np.testing.assert_array_equal(filled[observed], X[observed])
    np.testing.assert_array_equal(error[observed], 0)
    np.testing.assert_array_equal(model.impute(X), filled)


def test_samples_have_the_models_moments():
    model = ProbabilisticPCA(2).fit(IRIS)
    X = model.sample(200_000, random_state=0)
    np.testing.assert_allclose(X.mean(axis=0), model.mean_, atol=0.02)
    np.testing.assert_allclose(np.cov(X.T), model.get_covariance(), atol=0.05)
    np.testing.assert_array_equal(model.sample(3, random_state=1), model.sample(3, random_state=1))


def test_information_criteria():
    """A full covariance and a mean have 4 · 5 / 2 + 4 = 14 parameters, and so has the model of d - 1 components."""
    model = ProbabilisticPCA(3).fit(IRIS)
    full = multivariate_normal(IRIS.mean(axis=0), np.cov(IRIS.T, bias=True)).logpdf(IRIS).sum()
    assert model.loglikelihood_ == pytest.approx(full, rel=1e-10)
    assert model.aic(IRIS) == pytest.approx(28 - 2 * full, rel=1e-10)
    assert model.bic(IRIS) == pytest.approx(14 * np.log(150) - 2 * full, rel=1e-10)


# --------------------------------------------------------------------------------- number of components
@pytest.mark.parametrize("rule", ["bic", "ard"])
@pytest.mark.parametrize("share", [0.0, 0.15])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_the_planted_number_is_found(rule, share, k):
    X = with_missing(factors(400, d=8, k=k, seed=k), share)
    model = ProbabilisticPCA(rule).fit(X)
    assert (model.explained_variance_ > 1.5 * model.noise_variance_).sum() == k
    assert model.n_components_ == k or rule == "ard"  # which keeps the largest of the noise now and then
    assert model.certificate_.holds
    assert checked(model, X).holds


def test_bic_is_the_smallest_of_all():
    model = ProbabilisticPCA("bic").fit(WINE)
    scores = [ProbabilisticPCA(k).fit(WINE).bic(WINE) for k in range(13)]
    assert model.n_components_ == np.argmin(scores)


def test_relevance_objective_is_what_its_certificate_states():
    X = with_missing(WINE, 0.1)
    model = ProbabilisticPCA("ard").fit(X)
    parts = model.objective(X)
    assert parts.total == pytest.approx(model.certificate_.objective, rel=1e-10)
    assert parts.data == pytest.approx(-model.score(X), rel=1e-10)
    assert model.loglikelihood_ == pytest.approx(-parts.data * len(X), rel=1e-10)


def test_all_components_leave_one_direction_of_noise():
    assert ProbabilisticPCA().fit(IRIS).n_components_ == 3
    assert ProbabilisticPCA().fit(np.column_stack([IRIS, np.ones(150)])).n_components_ == 3
    assert ProbabilisticPCA().fit(WINE[:6]).n_components_ == 4  # 6 rows vary in 5 directions


# ------------------------------------------------------------------------------------------ certificate
def damaged(model, name, how):
    hurt = clone(model)
    vars(hurt).update({key: value for key, value in vars(model).items() if key.endswith("_")})
    value = np.array(getattr(model, name), float)
    setattr(hurt, name, how(value))
    return hurt


DAMAGE = {
    "scale": lambda a: a * 1.01,
    "sign": lambda a: np.where(np.abs(a) == np.abs(a).max(), -a, a),
    "swap": lambda a: a.ravel()[::-1].reshape(a.shape) if a.size > 1 else a / 2,
    "noise": lambda a: a + 0.02 * np.abs(a).max() * np.cos(np.arange(a.size)).reshape(a.shape),
}


@pytest.mark.parametrize("name", MODEL)
@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("case", ["complete", "missing", "ard"])
def test_sabotage_is_noticed(case, how, name):
    X = WINE if case == "complete" else with_missing(WINE, 0.15)
    model = ProbabilisticPCA("ard" if case == "ard" else 3).fit(X)
    assert checked(model, X).holds
    found = checked(damaged(model, name, DAMAGE[how]), X)
    assert not found.holds
    assert found.failures()


def test_stopping_early_is_noticed():
    X = with_missing(WINE)
    for data, settings in ((X, {}), (WINE, {"solver": "em", "random_state": 0}), (X, {"max_time": 0.0})):
        with pytest.warns(CertificateWarning):
            model = ProbabilisticPCA(3, **{"max_iter": 1, **settings}).fit(data)
        assert not model.certificate_.holds
        assert not checked(model, data).holds


def test_the_wrong_rows_do_not_pass():
    X = with_missing(WINE)
    assert not checked(ProbabilisticPCA(3).fit(X), X[40:]).holds


@pytest.mark.parametrize(("n", "d"), [(50, 6), (5, 9)])
def test_the_bound_is_below_every_model(n, d):
    rng = np.random.default_rng(0)
    X = factors(n, d)
    model = ProbabilisticPCA(2).fit(X)
    best = model.certificate_
    assert best.objective - best.bound <= 1e-9
    for size in (1e-8, 1e-4, 1e-2, 1.0):
        other = damaged(model, "components_", lambda B, size=size: B + size * rng.normal(size=B.shape))
        found = checked(other, X)
        assert found.bound <= best.objective * (1 + 1e-12)
        assert found.objective >= best.objective - 1e-9


# ------------------------------------------------------------------------------------- weights and sources
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_weight_two_is_a_row_twice_and_zero_a_row_absent(share):
    X = with_missing(factors(90), share)
    times = np.arange(90) % 3
    weighted = ProbabilisticPCA(2, tol=1e-9).fit(np.where(times[:, None] == 0, 1e6, X), sample_weight=times)
    repeated = ProbabilisticPCA(2, tol=1e-9).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.get_covariance(), repeated.get_covariance(), rtol=1e-6, atol=1e-6)
    assert weighted.loglikelihood_ == pytest.approx(repeated.loglikelihood_, rel=1e-9)
    assert checked(weighted, X, times).holds


def test_missing_entries_in_rows_without_weight():
    X, w = factors(60), np.ones(60)
    X[:5, 2], w[:5] = np.nan, 0
    model = ProbabilisticPCA(2, tol=1e-9).fit(X, sample_weight=w)
    assert checked(model, X, w).holds
    np.testing.assert_allclose(
        model.get_covariance(), ProbabilisticPCA(2).fit(X[5:]).get_covariance(), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("settings", [{}, {"solver": "em", "random_state": 0}, {"n_components": "ard"}])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_every_source_gives_the_same_bits(share, settings, tmp_path, blocks_of):
    blocks_of(64)
    X = with_missing(factors(300), share)
    model = ProbabilisticPCA(**{"n_components": 2, **settings})
    here = clone(model).fit(X)
    columns = {f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(7)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=50)
    for source in (tmp_path / "t.parquet", da.from_array(X, chunks=(128, 3))):
        there = clone(model).fit(source)
        for name in MODEL:
            np.testing.assert_array_equal(getattr(there, name), getattr(here, name), err_msg=name)
        np.testing.assert_array_equal(there.transform(source), here.transform(X))
        np.testing.assert_array_equal(there.impute(source), here.impute(X))


def test_threads_do_not_change_the_bits(threads, blocks_of):
    blocks_of(64)
    X, seen = with_missing(factors(500)), []
    for n in (1, 2, 5):
        threads(n)
        seen.append(ProbabilisticPCA(2).fit(X))
    for name in MODEL:
        np.testing.assert_array_equal(getattr(seen[1], name), getattr(seen[0], name))
        np.testing.assert_array_equal(getattr(seen[2], name), getattr(seen[0], name))


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_single_precision(share):
    X = with_missing(factors(), share)
    model, single = ProbabilisticPCA(2).fit(X), ProbabilisticPCA(2).fit(X.astype(np.float32))
    assert single.certificate_.holds
    assert checked(single, X.astype(np.float32)).holds
    np.testing.assert_allclose(single.get_covariance(), model.get_covariance(), rtol=1e-4, atol=1e-4)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.impute(X.astype(np.float32)).dtype == np.float32


def test_warm_start_goes_on_where_it_was():
    X = with_missing(load_digits().data[:300], 0.2)
    model = ProbabilisticPCA(10, warm_start=True).fit(X)
    assert model.n_iter_ > 3
    assert model.fit(X).n_iter_ <= 1
    assert model.set_params(n_components=5).fit(X).n_components_ == 5


def test_pickling():
    X = with_missing(IRIS)
    model = ProbabilisticPCA(2).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


# --------------------------------------------------------------------------------------------- corners
@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e8), (1e-9, 0.0), (1e9, 0.0), (1e-2, 1e6)])
def test_scale_and_offset(scale, offset, share):
    X = with_missing(factors(), share)
    model, moved = ProbabilisticPCA(2).fit(X), ProbabilisticPCA(2).fit(X * scale + offset)
    assert moved.certificate_.holds
    assert checked(moved, X * scale + offset).holds
    np.testing.assert_allclose(moved.get_covariance() / scale**2, model.get_covariance(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(moved.transform(X * scale + offset), model.transform(X), atol=2e-3)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_more_components_than_directions_are_refused(share):
    rng = np.random.default_rng(0)
    X = with_missing(rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6)), share)
    with pytest.raises(DataError, match="noise variance falls to 0") as caught:
        ProbabilisticPCA(2).fit(X)
    assert "Lower n_components" in caught.value.fix
    assert ProbabilisticPCA(1).fit(X).certificate_.holds


def test_constant_and_repeated_columns_and_rows():
    X = factors(60)
    for data in (np.column_stack([X, np.ones(60)]), np.column_stack([X, X[:, 0]]), np.repeat(X[:12], 5, axis=0)):
        for share in (0.0, 0.1):
            model = ProbabilisticPCA(2).fit(with_missing(data, share))
            assert model.certificate_.holds


def test_a_column_seen_once_and_rows_seen_once():
    X = factors(60)
    X[1:, 3] = np.nan
    assert ProbabilisticPCA(2).fit(X).certificate_.holds
    lonely = np.full((70, 7), np.nan)
    lonely[np.arange(70), np.arange(70) % 7] = factors(70)[:, 0]
    assert ProbabilisticPCA(1).fit(lonely).certificate_.holds


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_components": 4}, "n_components=4 with n_features=4"),
        ({"n_components": -1}, "n_components=-1"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"n_components": "mle"}, "'mle'"),
        ({"solver": "svd"}, "solver='svd'"),
        ({"max_iter": -1}, "max_iter=-1"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_time": "long"}, "max_time='long'"),
    ],
)
def test_settings_that_are_refused(settings, words):
    with pytest.raises(DataError) as caught:
        ProbabilisticPCA(**settings).fit(IRIS)
    assert words in caught.value.got


def test_tables_that_are_refused():
    X = IRIS.copy()
    X[:, 2] = np.nan
    with pytest.raises(DataError, match="no value at all in column 2 of X"):
        ProbabilisticPCA(1).fit(X)
    with pytest.raises(DataError, match="no value at all in columns 'b', 'c' of X"):
        ProbabilisticPCA(1).fit(pa.table({"a": [1.0, 2.0], "b": pa.nulls(2, pa.float64()), "c": [np.nan, np.nan]}))
    with pytest.raises(DataError, match=r"all the same.*\(n_samples=1\)"):
        ProbabilisticPCA(1).fit(IRIS[:1])
    with pytest.raises(DataError, match="squares overflow"):
        ProbabilisticPCA(1).fit(IRIS * 1e200)
    for size in (1e150, 1e-160):
        with pytest.raises(DataError, match="products of variances must neither overflow nor vanish"):
            ProbabilisticPCA(1).fit(IRIS * size)
    with pytest.raises(DataError, match="infinity in row 3"):
        ProbabilisticPCA(1).fit(np.where(np.arange(150)[:, None] == 3, np.inf, IRIS))
    with pytest.raises(DataError, match="solver='closed' and rows with missing entries"):
        ProbabilisticPCA(1, solver="closed").fit(with_missing(IRIS))
    with pytest.raises(DataError, match="codes of 3 columns"):
        ProbabilisticPCA(1).fit(IRIS).inverse_transform(np.zeros((2, 3)))


def test_start_with_missing_is_near_the_end():
    """The closed form of pairwise moments: within a nat of where EM ends, on rows from the model."""
    X = with_missing(factors(400), 0.2)
    rows = as_rows(X, missing=True)
    start = filled_variances(rows, summarise_columns(rows)).parameters(2)
    first = update(400.0, start, measure(rows, start)).objective
    assert first - ProbabilisticPCA(2).fit(X).certificate_.objective < 1.0


def test_pieces_of_a_block_give_the_same_sums():
    X = with_missing(factors(300))
    at = PPCAParameters(np.full(7, 5.0), np.random.default_rng(0).normal(size=(7, 3)), 0.5)
    whole = measure(as_rows(X, missing=True), at)
    model = ProbabilisticPCA(2).fit(X)
    answers = [model.transform(X), *model.posterior(X), *model.impute(X, return_std=True), model.score_samples(X)]
    parts = measure(as_rows(X, missing=True), at, PPCATuning(matrix_numbers=1))  # 64 rows at a time
    model = tuned(model, matrix_numbers=1)
    np.testing.assert_allclose(parts.by_column, whole.by_column, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(parts.cross, whole.cross, rtol=1e-10, atol=1e-10)
    again = [model.transform(X), *model.posterior(X), *model.impute(X, return_std=True), model.score_samples(X)]
    for a, b in zip(again, answers, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_more_than_memory_holds_is_refused():
    X = np.random.default_rng(0).normal(size=(1500, 1200))
    X[0, 0] = np.nan
    with pytest.raises(DataError, match="1199 components of 1200 columns with missing entries: 7 GB"):
        ProbabilisticPCA().fit(X)


@pytest.mark.parametrize("spread", [1e-3, 1e-5, 1e-6])
def test_the_likelihood_of_rows_far_from_zero_is_that_of_the_stored_mean(spread):
    """At 1e8 a mean is rounded to 1.5e-8: the likelihood about the true mean is another than about the stored one."""
    X = 1e8 + spread * np.random.default_rng(0).normal(size=(40, 2)) * [1.0, 3.0]
    model = ProbabilisticPCA(1).fit(X)
    np.testing.assert_allclose(model.loglikelihood_, 40 * model.score(X), rtol=1e-9, atol=1e-9)
    assert model.certificate_.holds
    assert audit(model, X).holds


@pytest.mark.parametrize("rows", [20, 5])
def test_no_bound_is_made_larger_by_a_wrong_mean(rows):
    """About a mean that is off by 1e12 the rows' own mean is lost, and their scatter would be too large."""
    rng = np.random.default_rng(0)
    X, w = rng.integers(-2, 3, size=(rows, 8)).astype(float), 10.0 ** rng.uniform(-4, 4, size=rows)
    model = ProbabilisticPCA(1, solver="closed").fit(X, None, w)
    best = audit(model, X, None, w).objective
    for size in (1.0, 1e6, 1e12, 1e20):
        model.mean_ = rng.normal(size=8) * size
        assert audit(model, X, None, w).bound <= best + 1e-12 * abs(best)
