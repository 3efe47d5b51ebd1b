"""Gaussian mixtures: published fits, scikit-learn's, rows with missing entries, degenerate tables."""

import warnings
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn import mixture
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from certifit.checkers.mixture import gaussian as checker
from certifit.checkers.mixture.adapter import audit_gaussian_mixture, refuse_bayesian_mixture
from certifit.exceptions import DataError
from certifit.mixture.choose_components import select_mixture
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.rows import as_rows
from tests.mixture.mixture_tables import every_shape, two_groups, with_missing

IRIS = load_iris().data


def audit(model, X, w=None, tol=1e-6):
    return audit_gaussian_mixture(model, X, None, w, tol)


def covariances(model):
    """As matrices (k, d, d)."""
    expand, _ = checker.KINDS[model.covariance_type]
    return expand(np.asarray(model.covariances_), *model.means_.shape)


def joint(model, X):
    """log π_k f_k of the observed entries by SciPy, row by row (n, k)."""
    out = np.zeros((len(X), len(model.weights_)))
    for i, x in enumerate(X):
        here = ~np.isnan(x)
        for k, (m, C) in enumerate(zip(model.means_, covariances(model), strict=True)):
            if here.any():
                out[i, k] = multivariate_normal.logpdf(x[here], m[here], C[np.ix_(here, here)])
    return out + np.log(model.weights_)


# ------------------------------------------------------------------------------------------ published, and peers
@pytest.fixture(scope="module")
def geyser():
    """Old Faithful, 272 eruptions (Härdle, Smoothing Techniques, 1991; R's data set `faithful`)."""
    path = Path(__file__).parents[1] / "published" / "data" / "old_faithful.csv"
    return np.loadtxt(path, delimiter=",", skiprows=1)


@pytest.mark.parametrize(("k", "kind", "printed"), [(3, "tied", -1126.316), (2, "full", -1130.264)])
def test_old_faithful(geyser, k, kind, printed):
    """The maxima that R's package mclust prints for its models EEE and VVV."""
    assert geyser.shape == (272, 2)
    model = GaussianMixture(k, covariance_type=kind, reg_covar=0, tol=1e-8, random_state=0).fit(geyser)
    assert model.loglikelihood_ == pytest.approx(printed, abs=5e-4)
    assert model.certificate_.holds


def test_old_faithful_is_best_with_three_equal_covariances(geyser):
    """mclust's choice by BIC too, 11 log 272 + 2 · 1126.316 there; ICL, which wants groups apart, prefers two."""
    choice = select_mixture(geyser, [2, 3], ["full", "tied"], random_state=0)
    assert (choice.best.n_components, choice.best.covariance_type) == (3, "tied")
    assert choice.best.bic == pytest.approx(11 * np.log(272) + 2 * 1126.316, abs=5e-3)
    assert choice.model.bic(geyser) == pytest.approx(choice.best.bic, rel=1e-12)
    assert choice.model.aic(geyser) == pytest.approx(choice.best.aic, rel=1e-12)
    R = choice.model.predict_proba(geyser)
    assert choice.best.icl == pytest.approx(choice.best.bic - 2 * (R * np.log(R)).sum(), rel=1e-10)
    by_icl = select_mixture(geyser, [2, 3], ["full"], "icl", random_state=0)
    assert by_icl.best.n_components == 2
    assert str(choice).count("<- best") == 1
    assert len(str(choice).splitlines()) == 1 + 4


def test_a_choice_takes_any_iterable_and_rows_with_entries_only():
    X = np.concatenate([two_groups(), np.full((50, 2), np.nan)])
    choice = select_mixture(X, (k for k in (1, 2)), (kind for kind in ("full", "diag")), random_state=0)
    plain = select_mixture(two_groups(), [1, 2], ["full", "diag"], random_state=0)
    assert len(choice.candidates) == 4
    for a, b in zip(choice.candidates, plain.candidates, strict=True):
        np.testing.assert_allclose(a[4:7], b[4:7], rtol=1e-9)
    assert select_mixture(two_groups(), [2], "diag", random_state=0).best == plain.candidates[3]


def test_a_choice_avoids_collapsed_components():
    X = np.concatenate([two_groups(), [[50.0, 50.0]]])
    choice = select_mixture(X, range(1, 4), ["full"], random_state=0)
    assert choice.best.sound
    assert not all(c.sound for c in choice.candidates)  # one component each for the far row
    assert "not sound" in str(choice)
    for bad in ({"criterion": "best"}, {"n_components": ()}):
        with pytest.raises(DataError, match="wanted"):
            select_mixture(X, **{"n_components": [1], **bad})


@every_shape
def test_iris_like_scikit_learn(kind):
    """From the same start, to the same maximum of the same objective (at a fixed reg_covar)."""
    start = {"means_init": IRIS[[10, 60, 120]], "weights_init": np.full(3, 1 / 3)}
    params = {"n_components": 3, "covariance_type": kind, "reg_covar": 1e-6, "max_iter": 5000, "random_state": 0}
    ours = GaussianMixture(**params, **start, tol=1e-10).fit(IRIS)
    theirs = mixture.GaussianMixture(**params, means_init=ours.means_, tol=1e-12).fit(IRIS)
    assert ours.score(IRIS) == pytest.approx(theirs.score(IRIS), abs=2e-6)
    assert audit(theirs, IRIS, tol=1e-4).holds
    assert ours.bic(IRIS) == pytest.approx(theirs.bic(IRIS), abs=2e-3)
    assert ours.n_parameters() == theirs._n_parameters()
    for name in ("covariances_", "precisions_", "precisions_cholesky_", "means_", "weights_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
    theirs.weights_, theirs.means_, theirs.covariances_ = ours.weights_, ours.means_, ours.covariances_
    theirs.precisions_cholesky_ = ours.precisions_cholesky_
    np.testing.assert_allclose(ours.predict_proba(IRIS), theirs.predict_proba(IRIS), atol=1e-10)
    np.testing.assert_allclose(ours.score_samples(IRIS), theirs.score_samples(IRIS), rtol=1e-10)
    np.testing.assert_array_equal(ours.predict(IRIS), theirs.predict(IRIS))


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data", "hierarchical"])
def test_starts(init):
    X = two_groups()
    model = GaussianMixture(2, init_params=init, n_init=3, random_state=0).fit(X)
    assert model.certificate_.holds
    assert model.converged_
    assert sorted(np.bincount(model.predict(X)).tolist()) == [100, 100]


def test_the_best_of_several_starts_is_kept():
    params = {"covariance_type": "spherical", "init_params": "random", "random_state": 3, "tol": 1e-4}
    many = GaussianMixture(5, n_init=4, **params).fit(IRIS)
    one = GaussianMixture(5, n_init=1, **params).fit(IRIS)
    assert many.lower_bound_ > one.lower_bound_ + 1e-3
    assert many.certificate_.objective == pytest.approx(-many.lower_bound_, rel=1e-12)


def test_warm_start_goes_on_from_the_last_fit():
    with pytest.warns(ConvergenceWarning):
        model = GaussianMixture(3, max_iter=2, warm_start=True, random_state=0).fit(IRIS)
    before = model.lower_bound_
    model.set_params(max_iter=1000).fit(IRIS)
    assert model.lower_bounds_[0] == pytest.approx(before, rel=1e-12)
    assert model.certificate_.holds


def test_another_shape_does_not_start_warm_nor_spoil_the_fit():
    """With as many components as columns, arrays of diagonal and of tied covariances look alike."""
    X = two_groups()
    model = GaussianMixture(2, covariance_type="diag", warm_start=True, random_state=0).fit(X)
    before = model.score_samples(X)
    model.set_params(covariance_type="tied")
    np.testing.assert_array_equal(model.score_samples(X), before)
    fresh = GaussianMixture(2, covariance_type="tied", random_state=0).fit(X)
    np.testing.assert_array_equal(model.fit(X).lower_bounds_, fresh.lower_bounds_)


def test_sampling():
    model = GaussianMixture(2, random_state=0).fit(two_groups())
    X, y = model.sample(20_000, random_state=0)
    again = GaussianMixture(2, means_init=model.means_, random_state=0).fit(X)
    np.testing.assert_allclose(again.means_, model.means_, atol=0.03)
    np.testing.assert_allclose(again.covariances_, model.covariances_, atol=0.03)
    np.testing.assert_allclose(np.bincount(y) / len(y), model.weights_, atol=0.02)
    for bad in (0, -1, 2.5):
        with pytest.raises(DataError, match="n_samples"):
            model.sample(bad)


# ------------------------------------------------------------------------------------------ the objective
@every_shape
def test_the_objective_is_what_it_says(kind):
    """Mean log-likelihood by SciPy, less the penalty with NumPy's inverses."""
    w = np.random.default_rng(0).exponential(size=len(IRIS))
    model = GaussianMixture(2, covariance_type=kind, reg_covar=0.01, random_state=0).fit(IRIS, sample_weight=w)
    data = w @ logsumexp(joint(model, IRIS), axis=1) / w.sum()
    penalty = 0.01 / 2 * np.mean([np.trace(np.linalg.inv(C)) for C in covariances(model)])
    assert model.lower_bound_ == pytest.approx(data - penalty, rel=1e-11)
    found = model.objective(IRIS, sample_weight=w)
    assert found.total == pytest.approx(penalty - data, rel=1e-11)
    assert found.penalty == pytest.approx(penalty, rel=1e-11)
    assert model.loglikelihood_ == pytest.approx(data * w.sum(), rel=1e-11)
    assert audit(model, IRIS, w).holds


@every_shape
@pytest.mark.parametrize("reg", [0.0, 1e-3, 0.1])
def test_em_never_falls_and_the_gradient_vanishes(kind, reg):
    """Against central differences of the objective along random directions, at a tight tolerance."""
    X = with_missing(IRIS, 0.05)
    model = GaussianMixture(2, covariance_type=kind, reg_covar=reg, tol=1e-13, max_iter=5000, random_state=0).fit(X)
    assert np.diff(model.lower_bounds_).min(initial=0.0) >= -1e-13
    rng = np.random.default_rng(0)
    for name in ("means_", "covariances_"):
        at = getattr(model, name)
        for _ in range(2):
            v = rng.normal(size=at.shape) * np.abs(at).mean()
            v = v if at.ndim < 2 or name == "means_" or at.shape[-1] != at.shape[-2] else v + np.swapaxes(v, -1, -2)
            values = []
            for h in (-1e-6, 1e-6):
                setattr(model, name, at + h * v)
                values.append(model.objective(X).total)
            setattr(model, name, at)
            assert abs(values[1] - values[0]) / 2e-6 < 1e-5


def test_units_do_not_matter():
    X = two_groups()
    plain = GaussianMixture(2, random_state=0).fit(X)
    for scale in (1e-9, 1e9, np.array([1e-9, 1e6])):
        model = GaussianMixture(2, random_state=0).fit(X * scale)
        np.testing.assert_allclose(model.means_, plain.means_ * scale, rtol=1e-9)
        np.testing.assert_allclose(model.predict_proba(X * scale), plain.predict_proba(X), atol=1e-9)


@every_shape
def test_far_from_the_origin(kind):
    """Standard deviation 1e-2 at 1e8: the same model as at 0, of rows rounded as they are there."""
    far = two_groups() * 1e-2 + 1e8
    near = far - 1e8  # exact
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(far)
    plain = GaussianMixture(2, covariance_type=kind, random_state=0).fit(near)
    np.testing.assert_allclose(model.covariances_, plain.covariances_, rtol=1e-9)
    np.testing.assert_allclose(model.means_ - 1e8, plain.means_, atol=2e-8)
    np.testing.assert_allclose(model.predict_proba(far), plain.predict_proba(near), atol=1e-5)
    assert audit(model, far).holds


@every_shape
def test_means_that_cannot_be_stored_are_not_claimed(kind):
    """Doubles near 1e15 are 0.125 apart: the certificate is that of the rounded means, which are not at rest."""
    X = two_groups() + 1e15
    with pytest.warns(ConvergenceWarning, match="gain of one more EM step"):
        model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert not audit(model, X).holds
    assert model.certificate_.objective == pytest.approx(audit(model, X).objective, rel=1e-9)
    assert len(model.lower_bounds_) == model.n_iter_ + 1


@every_shape
def test_narrow_components_far_apart(kind):
    """1e5 standard deviations between them: each is measured about its own mean, and nothing cancels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) * 1e-2 + 1e3 * (np.arange(90) % 3)[:, None]
    model = GaussianMixture(3, covariance_type=kind, reg_covar=0, random_state=0).fit(X)
    S = np.stack([np.cov(X[j::3].T, ddof=0) for j in range(3)])
    expected = {
        "full": S,
        "tied": np.stack([S.mean(axis=0)] * 3),
        "diag": S * np.eye(3),
        "spherical": np.trace(S, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3),
    }[kind]
    floor = np.diag(model.reg_covar_)
    floor = floor.mean(axis=0).sum() * np.eye(3) if kind == "spherical" else floor
    found = covariances(model)[np.argsort(model.means_[:, 0])] - floor
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert audit(model, X).holds
    X = with_missing(X, 0.1)
    assert audit(GaussianMixture(3, covariance_type=kind, reg_covar=0, random_state=0).fit(X), X).holds


# ------------------------------------------------------------------------------------------ missing entries
@every_shape
def test_missing_entries_are_left_out_of_the_likelihood(kind):
    X = with_missing(IRIS, 0.2)
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    expected = joint(model, X)
    empty = np.isnan(X).all(axis=1)
    np.testing.assert_allclose(
        model.score_samples(X)[~empty], logsumexp(expected[~empty], axis=1), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(model.predict_proba(X), softmax(expected, axis=1), atol=1e-9)
    assert (model.score_samples(X)[empty] == 0).all()
    np.testing.assert_array_equal(model.predict_proba(X)[empty], np.tile(model.weights_, (empty.sum(), 1)))
    assert model.certificate_.holds
    assert audit(model, X).holds
    for criterion in ("bic", "aic", "score"):  # a row without entries does not count
        assert getattr(model, criterion)(X) == pytest.approx(getattr(model, criterion)(X[~empty]), rel=1e-12)
    assert model.score(X) == pytest.approx(model.loglikelihood_ / (~empty).sum(), rel=1e-12)
    without = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X[~empty])
    np.testing.assert_allclose(without.means_, model.means_, rtol=1e-6)


def test_one_component_on_two_columns_with_a_staircase_of_missing_entries():
    """Closed form (Anderson, Maximum likelihood estimates when some observations are missing, 1957)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ [[1.0, 0.7], [0.0, 0.5]] + [3, -1]
    whole = X[:120].copy()
    X[120:, 1] = np.nan
    model = GaussianMixture(1, reg_covar=0, tol=1e-14, max_iter=5000).fit(X)
    m, v = X[:, 0].mean(), X[:, 0].var()
    slope = np.cov(whole.T, ddof=0)[0, 1] / whole[:, 0].var()
    rest = np.mean((whole[:, 1] - whole[:, 1].mean() - slope * (whole[:, 0] - whole[:, 0].mean())) ** 2)
    np.testing.assert_allclose(model.means_[0], [m, whole[:, 1].mean() + slope * (m - whole[:, 0].mean())], rtol=1e-6)
    np.testing.assert_allclose(model.covariances_[0], [[v, slope * v], [slope * v, rest + slope**2 * v]], rtol=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_any_source_gives_the_same_answer(share, tmp_path, blocks_of):
    """Small blocks in memory, a Parquet file and Dask partitions, with and without missing entries."""
    blocks_of(64)
    X = with_missing(two_groups(400), share)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.to_parquet(tmp_path / "t.parquet")
    sources = [X, tmp_path / "t.parquet", da.from_array(X, chunks=(128, 2)), dd.from_pandas(frame, npartitions=3)]
    plain, *others = [GaussianMixture(2, random_state=0).fit(source) for source in sources]
    for model in others:
        np.testing.assert_allclose(model.means_, plain.means_, rtol=1e-10)
        np.testing.assert_allclose(model.covariances_, plain.covariances_, rtol=1e-9)
        assert model.certificate_.holds
    assert audit(others[0], tmp_path / "t.parquet").holds


# ------------------------------------------------------------------------------------------ degenerate tables
@pytest.mark.parametrize("size", [1e12, 1e140])
def test_a_far_outlier_is_one_component_and_named(size):
    X = np.concatenate([two_groups(), [[size, -size]]])
    with pytest.warns(ConvergenceWarning, match=r"component \d is held up by reg_covar alone: row 200\.") as caught:
        model = GaussianMixture(3, random_state=0).fit(X)
    assert caught[0].filename == __file__
    assert "row 200" in " ".join(map(str, model.certificate_.facts.values()))
    others = np.sort(model.means_[np.abs(model.means_[:, 0]) < 1e6, 0])
    plain = GaussianMixture(2, random_state=0).fit(two_groups())
    np.testing.assert_allclose(others, np.sort(plain.means_[:, 0]), atol=1e-3)
    assert model.certificate_.holds
    assert audit(model, X).holds


@every_shape
def test_more_components_than_distinct_rows(kind):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 5.0]], 5, axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GaussianMixture(5, covariance_type=kind, random_state=0).fit(X)
    assert any("has no rows" in str(warning.message) for warning in caught)
    assert model.certificate_.holds
    assert np.isfinite(model.predict_proba(X)).all()
    np.testing.assert_allclose(np.sort(model.weights_), [0, 0, 1 / 3, 1 / 3, 1 / 3], atol=1e-12)


@every_shape
def test_identical_rows(kind):
    model = GaussianMixture(1, covariance_type=kind).fit(np.full((20, 2), 5.0))
    np.testing.assert_array_equal(model.means_, [[5, 5]])
    assert model.certificate_.holds


@pytest.mark.parametrize("reg", ["auto", 0])
def test_a_constant_column_is_no_collapse(reg):
    X = np.column_stack([two_groups(), np.full(200, 7.0)])
    model = GaussianMixture(2, reg_covar=reg, random_state=0).fit(X)
    assert model.certificate_.holds
    plain = GaussianMixture(2, reg_covar=reg, random_state=0).fit(X[:, :2])
    own, others = np.sort(model.predict_proba(X)), np.sort(plain.predict_proba(X[:, :2]))  # in either order
    np.testing.assert_allclose(own, others, atol=1e-6)


def test_a_start_that_collapses_is_held_by_the_penalty():
    X = two_groups()
    params = {
        "means_init": [[0, 0], [4, 3], X[7]],
        "precisions_init": np.eye(2) * np.array([1, 1, 1e8])[:, None, None],
    }
    for reg in ("auto", 0):
        with pytest.warns(ConvergenceWarning, match="component 2 is held up by reg_covar alone: rows? 7"):
            model = GaussianMixture(3, reg_covar=reg, **params).fit(X)
        assert model.certificate_.holds
        assert np.diff(model.lower_bounds_).min() >= -1e-12


def test_refusals():
    X = two_groups()
    bad = [
        ("covariance_type", "round", "one of"),
        ("init_params", "guess", "one of"),
        ("reg_covar", -1.0, "'auto' or a finite number of at least 0"),
        ("reg_covar", "none", "'auto' or a finite number of at least 0"),
        ("n_components", 0, "at least 1"),
        ("n_init", 0, "at least 1"),
        ("means_init", np.zeros((3, 2)), r"of shape \(1, 2\)"),
        ("weights_init", [-1.0], "not all of them 0"),
        ("precisions_init", -np.eye(2)[None], "positive definite"),
        ("precisions_init", [[[1.0, 0.5], [0.0, 1.0]]], "symmetric"),
    ]
    for name, value, words in bad:
        with pytest.raises(DataError, match=words):
            GaussianMixture(**{name: value}).fit(X)
    with pytest.raises(DataError, match="fewer rows than components"):
        GaussianMixture(3).fit(X[:2])
    with pytest.raises(DataError, match="overflow"):
        GaussianMixture(1).fit(np.concatenate([X, [[1e200, 0.0]]]))
    for scale in (1e-200, 1e154, [1.0, 1e-160]):
        with pytest.raises(DataError, match=r"quartiles are from .* wanted 1e-130 to"):
            GaussianMixture(1).fit(X * scale)
    with pytest.raises(DataError, match="column 1 of X without a single value"):
        GaussianMixture(1).fit(np.column_stack([X[:, 0], np.full(len(X), np.nan)]))
    with pytest.raises(DataError, match="variational"):
        refuse_bayesian_mixture(mixture.BayesianGaussianMixture())


# ------------------------------------------------------------------------------------------ certificates
@every_shape
@pytest.mark.parametrize("missing", [False, True])
def test_sabotage_is_noticed(kind, missing):
    X = with_missing(IRIS, 0.1) if missing else IRIS
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    assert audit(model, X).holds
    for name in ("weights_", "means_", "covariances_"):
        right = getattr(model, name)
        for wrong in (right * 1.01, right + 0.02 * np.abs(right).max() * np.eye(1, right.size).reshape(right.shape)):
            setattr(model, name, wrong)
            assert not audit(model, X).holds, name
        setattr(model, name, right)
    model.covariances_ = -model.covariances_
    assert not audit(model, X).holds


@every_shape
def test_what_a_mixture_reports_of_itself_is_checked(kind):
    """Numbers that repeat others: ours, and the factors that scikit-learn predicts with."""
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(IRIS)
    theirs = mixture.GaussianMixture(2, covariance_type=kind, tol=1e-8, max_iter=1000, random_state=0).fit(IRIS)
    trace = model.em_trace_.copy()
    trace["kl"][1] += 0.1
    wrong = [
        (model, "loglikelihood_", model.loglikelihood_ + 1.0),
        (model, "lower_bound_", model.lower_bound_ + 0.01),
        (model, "lower_bounds_", model.lower_bounds_ + 0.01),
        (model, "reg_covar_", model.reg_covar_ * 2),
        (model, "em_trace_", trace),
        (theirs, "precisions_cholesky_", theirs.precisions_cholesky_ * 1.01),
    ]
    for fitted, name, value in wrong:
        assert audit(fitted, IRIS, tol=1e-5).holds
        right = getattr(fitted, name)
        setattr(fitted, name, value)
        assert not audit(fitted, IRIS, tol=1e-5).holds, name
        setattr(fitted, name, right)


def test_scikit_learns_early_stop_is_noticed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early = mixture.GaussianMixture(3, max_iter=2, random_state=0).fit(IRIS)
    assert not audit(early, IRIS, tol=1e-4).holds


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_one_for_any_mixture(seed):
    """Mixtures drawn at random, some with components far narrower than the floor."""
    rng = np.random.default_rng(seed)
    X = with_missing(rng.normal(size=(30, 3)), 0.2)
    rows = as_rows(X, missing=True)
    floor = 10.0 ** rng.uniform(-3, 0, 3)
    for size in (1.0, 1e-2, 1e-5):
        C = np.stack([np.diag(floor * rng.exponential(size=3)) for _ in range(2)]) * size
        means = np.nan_to_num(X[rng.choice(30, 2)])
        found = checker.certify(checker.FittedGaussianMixture(np.full(2, 0.5), means, C, "full"), floor, 1e-6, rows)
        assert found.bound <= found.objective
