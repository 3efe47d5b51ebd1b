"""Gaussian mixtures of rows with missing entries, from any source."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax

from certifit.mixture.em import EMPoint, MixtureEM
from certifit.mixture.gaussian.components import GaussianComponents
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.rows import as_rows
from tests.mixture.mixture_tables import IRIS, audit, every_shape, joint, two_groups, with_missing


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


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_to_leave_missing_entries_out_is_to_complete_them_where_columns_are_independent(kind, monkeypatch):
    """The sums of one E step, by features of the observed entries and by conditional means of the others."""
    X = with_missing(IRIS, 0.3)
    at = EMPoint(GaussianMixture(3, covariance_type=kind, random_state=0, max_iter=3, tol=0.5).fit(X)._at())

    def step():
        em = MixtureEM(as_rows(X, missing=True))
        found = em.update(at, em.measure(at))
        return found.objective, found.params.mixture.components

    assert at.mixture.components.leaves_out
    objective, new = step()
    monkeypatch.setattr(GaussianComponents, "leaves_out", False)
    expected, completed = step()
    assert objective == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(new.means, completed.means, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(new.C, completed.C, rtol=1e-10)


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
