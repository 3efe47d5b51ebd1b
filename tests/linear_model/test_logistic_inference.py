"""Standard errors of logistic regression against statsmodels, and classes for which no fit exists."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn import linear_model

from certifit import CertificateWarning, DataError, LogisticRegression, audit
from tests.common.catalogue import three, two
from tests.linear_model.logistic_tables import SOLVERS, exact


def contrasts(model):
    """Standard errors of each class's (intercept, coefficients) minus those of class 0, (k - 1, d1)."""
    k = len(model.classes_)
    C = model.covariance_.reshape(k, -1, k, len(model.covariance_) // k)
    return np.sqrt([np.diag(C[c, :, c] + C[0, :, 0] - C[c, :, 0] - C[0, :, c]) for c in range(1, k)])


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("kind", "theirs"), [("classical", "nonrobust"), ("sandwich", "HC0")])
def test_standard_errors_agree_with_statsmodels(kind, theirs, offset):
    X, y = two()
    other = sm.Logit(y, sm.add_constant(X)).fit(disp=0, tol=1e-14, cov_type=theirs)
    model = LogisticRegression(None, covariance=kind).fit(X + offset, y)
    rest = slice(1 if offset else 0, None)  # the intercept is another one at an offset
    np.testing.assert_allclose(model.standard_errors_[rest], other.bse[rest], rtol=1e-6)
    np.testing.assert_allclose(model.p_values_[rest], other.pvalues[rest], rtol=1e-4)
    np.testing.assert_allclose(model.confidence_intervals(0.9)[rest], other.conf_int(0.1)[rest], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.loglikelihood_, other.llf, rtol=1e-10)
    np.testing.assert_allclose([model.aic_, model.bic_], [other.aic, other.bic], rtol=1e-10)
    assert model.deviance_ == -2 * model.loglikelihood_


@pytest.mark.parametrize(("kind", "theirs"), [("classical", "nonrobust"), ("sandwich", "HC0")])
@pytest.mark.parametrize("solver", SOLVERS)
def test_softmax_standard_errors_agree_with_statsmodels(solver, kind, theirs):
    X, y = three()
    other = sm.MNLogit(y, sm.add_constant(X)).fit(disp=0, tol=1e-14, cov_type=theirs)
    model = LogisticRegression(None, covariance=kind, solver=solver, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(contrasts(model), np.asarray(other.bse).reshape(5, 2).T, rtol=1e-4)
    np.testing.assert_allclose([model.aic_, model.bic_], [other.aic, other.bic], rtol=1e-9)
    table = model.coefficient_table()
    assert table.names[0] == "0: intercept"
    assert len(table.names) == 15
    np.testing.assert_allclose(table.estimate[1:5], model.coef_[0])
    np.testing.assert_allclose(model.covariance_.reshape(3, 5, 3, 5).sum(axis=0), 0, atol=1e-10)  # they sum to 0


def test_standard_errors_of_a_two_by_two_table():
    """Of the log odds ratio: the root of the sum of the reciprocal counts (delta method); rows may be weights."""
    counts = np.array([30, 10, 5, 25])
    model = exact(penalty=None).fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], counts)
    expected = np.sqrt([1 / 30 + 1 / 10, (1 / counts).sum()])
    np.testing.assert_allclose(model.standard_errors_, expected, rtol=2e-6)
    z = np.append(model.intercept_, model.coef_) / expected
    np.testing.assert_allclose(model.p_values_, 2 * stats.norm.sf(np.abs(z)), rtol=1e-5)
    free = exact(penalty=None, fit_intercept=False).fit([[1.0], [1.0]], [0, 1], [5, 25])
    np.testing.assert_allclose(free.standard_errors_, [np.sqrt(1 / 5 + 1 / 25)], rtol=2e-6)
    for word in ("intercept", "x0", "std err", "log-likelihood", "AIC", "optimal", "classical"):
        assert word in model.summary()


@pytest.mark.parametrize("kind", ["classical", "sandwich"])
@pytest.mark.parametrize("data", [two, three])
def test_standard_errors_from_a_file_and_from_dask(data, kind, tmp_path):
    X, y = data()
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    table.to_parquet(tmp_path / "table.parquet", row_group_size=40)
    here = LogisticRegression(None, covariance=kind).fit(X, y)
    frame = dd.from_pandas(table, npartitions=3)
    for there in (tmp_path / "table.parquet", frame):
        model = LogisticRegression(None, covariance=kind).fit(there, "y")
        np.testing.assert_allclose(model.covariance_, here.covariance_, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "penalised"),
        ({"penalty": "l1"}, "penalised"),
        ({"penalty": None, "covariance": None}, "none were asked for"),
        ({"penalty": None, "class_weight": "balanced"}, "class weights"),
    ],
    ids=str,
)
def test_standard_errors_are_refused_with_the_reason(params, reason):
    model = LogisticRegression(**params).fit(*two())
    with pytest.raises(DataError, match=reason):
        _ = model.standard_errors_
    assert reason in model.summary()
    assert hasattr(model, "aic_") == (params.get("penalty", "l2") is None)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"C": 2.0}, "l2, C=2"),
        ({"l1_ratio": 0.5}, "elasticnet, l1_ratio=0.5, C=1"),
        ({"C": np.inf}, "none"),
        ({"penalty": None}, "none"),
        ({"penalty": "firth"}, "firth"),
    ],
    ids=str,
)
def test_the_summary_names_the_penalty_that_counts(params, words):
    facts = dict(LogisticRegression(**params).fit(*two()).summary().facts)
    assert facts["penalty"] == words


def test_no_standard_errors_for_collinear_columns_or_unproved_fits():
    X, y = two()
    model = LogisticRegression(None).fit(np.column_stack([X, X[:, 0]]), y)
    with pytest.raises(DataError, match="combinations of others"):
        _ = model.standard_errors_
    np.testing.assert_allclose(model.aic_, LogisticRegression(None).fit(X, y).aic_, rtol=1e-8)
    with pytest.warns(CertificateWarning):
        short = LogisticRegression(None, max_iter=1).fit(X, y)
    with pytest.raises(DataError, match="certificate does not hold"):
        short.coefficient_table()


# -------------------------------------------------------------------------------------------- separation
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("complete", [True, False])
def test_another_librarys_fit_to_separable_classes_is_impossible(classes, complete):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.digitize(X[:, 0], [0.0, 0.7][: classes - 1])
    if not complete:  # rows on the border, of either class
        X, y = np.vstack([X, [[0.0, 1.0], [0.0, 1.0]]]), np.append(y, [0, 1])
    theirs = linear_model.LogisticRegression(C=np.inf, max_iter=200, tol=1e-6).fit(X, y)
    found = audit(theirs, X, y)
    assert found.kind == "impossible"
    assert found.proved
    assert not found.holds
    v = np.array(found.witness)
    scores = X @ v[:, :2].T + v[:, 2]
    scores = np.column_stack([np.zeros(len(y)), scores]) if classes == 2 else scores
    lead = scores[np.arange(len(y)), y][:, None] - scores
    assert lead.min() >= -1e-9
    assert lead.max() > 0


def test_overlapping_classes_are_not_impossible():
    X, y = two()
    theirs = linear_model.LogisticRegression(C=np.inf, max_iter=2, tol=0.1)
    with pytest.warns(UserWarning, match="converge"):
        theirs.fit(X, y)
    found = audit(theirs, X, y)
    assert found.kind == "optimal"
    assert not found.holds


@pytest.mark.parametrize("name", ["deviance_", "n_parameters_", "df_resid_"])
def test_numbers_of_the_likelihood_that_were_taken_away_are_missed(name):
    X, y = two()
    model = LogisticRegression(penalty=None).fit(X, y)
    assert audit(model, X, y).holds
    delattr(model, name)
    with pytest.raises(DataError, match=f"without {name}"):
        audit(model, X, y)
