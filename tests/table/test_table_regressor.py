"""TableRegressor: against scikit-learn's and statsmodels' own models, and the rules that choose a family."""

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import statsmodels.api as sm
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import GammaRegressor, Ridge
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import certifit
from certifit import DataError, TableClassifier, TableRegressor, audit, fit
from certifit.datasets import penguins_table
from certifit.rows import ArrayRows
from certifit.table.overdispersion import PredictedCounts, likeliest_theta, score_statistic
from certifit.table.targets import choose_family, choose_task


def at_means(y, mean):
    """Counts beside a model that predicts these means."""
    return PredictedCounts(ArrayRows(mean[:, None], y), SimpleNamespace(predict=np.ravel))


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(as_frame=True, scaled=False).frame


@pytest.fixture(scope="module")
def visits():
    """Visits to a doctor in the RAND health insurance experiment: counts, and more varied than Poisson's."""
    return sm.datasets.randhie.load_pandas().data.iloc[:2000]


def test_least_squares_is_scikit_learns_ridge_on_the_same_encoding(diabetes):
    theirs = make_pipeline(StandardScaler(), Ridge(alpha=2.0)).fit(diabetes.drop(columns="target"), diabetes.target)
    ours = TableRegressor(alpha=2.0).fit(diabetes, "target")
    assert (ours.family_, ours.certificate_.holds) == ("gaussian", True)
    np.testing.assert_allclose(ours.predict(diabetes), theirs.predict(diabetes.drop(columns="target")), rtol=1e-6)
    assert ours.score(diabetes) == pytest.approx(theirs.score(diabetes.drop(columns="target"), diabetes.target))
    assert audit(ours, diabetes).holds


def test_a_bound_belongs_to_the_encoding_of_the_rows(diabetes):
    """Columns that were scaled by other rows make another problem, whose minimum says nothing about this one."""
    other = TableRegressor(alpha=2.0).fit(diabetes.iloc[:200], "target")
    found = audit(other, diabetes)
    assert np.isnan(found.bound)
    assert not found.proved
    assert audit(TableRegressor(alpha=2.0).fit(diabetes, "target"), diabetes).bound > 0


def test_positive_amounts_are_scikit_learns_gamma_regression():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "city": rng.choice(["Bern", "Rome", "Oslo"], 400)})
    frame["price"] = rng.gamma(0.7, np.exp(1 + frame["x"] + (frame["city"] == "Bern")))
    ours = TableRegressor(alpha=3.0, tol=1e-12).fit(frame, "price")
    assert ours.family_ == "gamma"
    assert "skewed" in ours.family_because_
    encoder = make_column_transformer((StandardScaler(), ["x"]), (OneHotEncoder(), ["city"]))
    theirs = make_pipeline(encoder, GammaRegressor(alpha=3.0 / 400, tol=1e-10, max_iter=10_000))
    theirs.fit(frame[["x", "city"]], frame["price"])
    np.testing.assert_allclose(ours.predict(frame), theirs.predict(frame[["x", "city"]]), rtol=1e-5)
    assert ours.score(frame) == pytest.approx(d2_tweedie_score(frame["price"], ours.predict(frame), power=2))


def test_poisson_counts_are_statsmodels():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=300), "z": rng.normal(size=300)})
    frame["n"] = rng.poisson(np.exp(0.5 + 0.4 * frame["x"]))
    ours = TableRegressor(alpha=0.0).fit(frame, "n")
    assert ours.family_ == "poisson"
    theirs = sm.GLM(frame["n"], sm.add_constant(frame[["x", "z"]]), sm.families.Poisson()).fit(tol=1e-12)
    np.testing.assert_allclose(ours.predict(frame), theirs.fittedvalues, rtol=1e-6)
    assert audit(ours, frame).holds


def test_varied_counts_are_statsmodels_negative_binomial(visits):
    ours = TableRegressor(alpha=0.0).fit(visits, "mdvis")
    assert ours.family_ == "negative_binomial"
    X = sm.add_constant(visits.drop(columns="mdvis"))
    theirs = sm.NegativeBinomial(visits["mdvis"], X).fit(disp=0, maxiter=1000, gtol=1e-8)
    assert ours.model_.theta == pytest.approx(1 / theirs.params["alpha"], rel=1e-4)
    np.testing.assert_allclose(ours.predict(visits), theirs.predict(X), rtol=1e-3)
    assert audit(ours, visits).holds


def test_the_audit_sees_another_family_another_theta_and_another_penalty(visits):
    model = TableRegressor().fit(visits, "mdvis")
    assert audit(model, visits).holds
    for change in ({"theta": 2 * model.model_.theta}, {"alpha": 2 * model.model_.alpha}, {"family": "poisson"}):
        hurt = copy.deepcopy(model)
        hurt.model_.set_params(**change)
        assert not audit(hurt, visits).holds, change
    plain = TableRegressor(family="poisson").fit(visits, "mdvis").set_params(family="auto")
    assert not audit(plain, visits).holds
    fewer = copy.deepcopy(model)
    fewer.n_features_in_ = 99
    assert not audit(fewer, visits).holds


def test_the_score_test_keeps_poisson_for_poisson_counts():
    """Under Poisson's law the statistic is standard normal: beyond 3 in about one of 740 tables."""
    rng = np.random.default_rng(2)
    mean = rng.uniform(1, 5, 400)
    found = [score_statistic(at_means(rng.poisson(mean).astype(float), mean)) for _ in range(400)]
    assert abs(np.mean(found)) < 0.15
    assert np.std(found) == pytest.approx(1, abs=0.15)
    assert max(found) < 4.5


def test_theta_is_found_again_and_infinite_for_less_varied_counts():
    rng = np.random.default_rng(3)
    y = rng.negative_binomial(2.5, 2.5 / (2.5 + 6.0), 20_000).astype(float)
    assert likeliest_theta(at_means(y, np.full(len(y), 6.0))) == pytest.approx(2.5, rel=0.05)
    assert likeliest_theta(at_means(np.array([2.0, 3.0] * 9), np.full(18, 2.5))) == np.inf


@pytest.mark.parametrize(
    ("y", "family"),
    [
        ([0, 1, 2, 5], "poisson"),
        ([1.0, 2.0, 30.0], "poisson"),
        ([0, 1, 1, 0], "gaussian"),  # two values are no counts
        ([25, 40, 80, 300], "gamma"),  # none is small
        ([0, 30_000, 45_000], "gaussian"),  # an amount in whole coins
        ([-1.0, 3.0, 4.0], "gaussian"),
        ([0.5, 0.6, 0.7], "gaussian"),
        ([0.1, 0.2, 0.3, 9.0, 0.2], "gamma"),
        ([5.0, 5.0, 5.0], "gaussian"),
    ],
)
def test_the_family_follows_from_the_values(y, family):
    y = np.array(y, dtype=float)
    assert choose_family(y, np.ones(len(y))).family == family
    assert choose_family(np.repeat(y, 3), np.ones(3 * len(y))).family == family  # a weight is a row several times
    assert choose_family(y, np.full(len(y), 3.0)).family == family


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        (pa.array(["x", "y"]).dictionary_encode(), "classification"),
        ([0, 1], "classification"),
        ([1.0, 2.0, None], "classification"),
        ([0, 1, 2] * 5, "classification"),
        ([0, 1, 2], "regression"),  # one row each
        (list(range(12)) * 100, "regression"),
        ([0.5, 1.0] * 9, "regression"),
        ([439, 510, 525, *range(44)], "regression"),
        ([*range(20), 30], "regression"),
    ],
)
def test_classes_are_told_from_a_quantity(values, task):
    found = choose_task(pa.array(values) if isinstance(values, list) else values)
    assert found.task == task
    assert found.why


@pytest.mark.parametrize("stream", [False, True])
def test_the_numbers_of_the_rows_are_no_target(tmp_path, stream):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=40), "number": rng.permutation(40) + 7})
    pq.write_table(table, tmp_path / "t.parquet")
    source = tmp_path / "t.parquet" if stream else table
    with pytest.raises(DataError, match=r"numbers the rows, from 7 to 46; .*--task regression"):
        fit(source, "number", stream=stream)
    ranks = fit(source, "number", stream=stream, task="regression", model="least_squares", cv=0)
    assert ranks.certificate_.holds


def test_a_classifier_refuses_numbers_that_are_different_in_most_rows():
    """As many as 45 different crime rates in 47 rows are no classes."""
    rates = [*range(400, 445), 400, 401]
    with pytest.raises(DataError, match=r"45 different numbers in 47 rows.*TableRegressor"):
        TableClassifier().fit(pa.table({"x": np.arange(47.0), "y": rates}), "y")


def test_a_regressor_refuses_text_and_infinity():
    x = np.arange(6.0)
    with pytest.raises(DataError, match=r"a target of type string.*TableClassifier"):
        TableRegressor().fit(pa.table({"x": x, "y": list("abcabc")}), "y")
    with pytest.raises(DataError, match="infinity"):
        TableRegressor().fit(pa.table({"x": x, "y": [1.0, np.inf, 2, 3, 4, 5]}), "y")
    with pytest.raises(ValueError, match="family='normal'"):
        TableRegressor(family="normal").fit(pa.table({"x": x, "y": x}), "y")


def test_weights_and_missing_targets():
    table = penguins_table()
    w = np.where(np.arange(344) % 3 == 0, 0.0, 2.0)
    weighted = TableRegressor(alpha=2.0).fit(table, "body_mass_g", w)
    rest = table.take(np.flatnonzero(w))
    plain = TableRegressor(alpha=1.0).fit(rest, "body_mass_g")
    assert weighted.n_rows_ == plain.n_rows_
    assert weighted.unlabelled_ == 2
    whole = table.drop_null()
    np.testing.assert_allclose(weighted.predict(whole), plain.predict(whole), rtol=1e-6)
    assert audit(weighted, table, "body_mass_g", w).holds


def test_collinear_columns_are_named():
    rng = np.random.default_rng(0)
    table = pa.table({"city": ["a", "b"] * 20, "y": rng.normal(size=40)})
    with pytest.warns(UserWarning, match="'city=b': combinations of the columns before them"):
        model = TableRegressor(alpha=0.0).fit(table, "y")
    assert model.certificate_.holds


def test_works_in_scikit_learn(diabetes):
    X, y = diabetes.drop(columns="target"), diabetes["target"]
    theirs = cross_val_score(make_pipeline(StandardScaler(), Ridge()), X, y, cv=3)
    np.testing.assert_allclose(cross_val_score(TableRegressor(), X, y, cv=3), theirs, rtol=1e-6)


# Columns that tell the rows apart ------------------------------------------------------------------------------


def fitted(**columns):
    n = len(next(iter(columns.values())))
    rng = np.random.default_rng(0)
    return TableRegressor().fit(pa.table({"x": rng.normal(size=n), **columns, "y": rng.normal(size=n)}), "y")


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("", list(range(30)), "no name"),
        ("Unnamed: 0", [1, 1, 2] * 10, "no name"),
        ("row", list(range(1, 31)), "numbers the rows from 1 to 30"),
        ("shuffled", np.random.default_rng(0).permutation(30), "numbers the rows from 0 to 29"),
        ("half", list(range(0, 60, 2)), "numbers the rows, from 0 to 58 with gaps"),
        ("customer_id", [i * i + 1000 for i in range(30)], "a different number in each row"),
        ("customerID", [i * i + 1000 for i in range(30)], "a different number in each row"),
        ("name", [f"person {i}" for i in range(30)], "30 different texts in 30 rows"),
    ],
)
def test_what_tells_rows_apart_is_left_out(name, values, reason):
    model = fitted(**{name: values})
    assert list(model.left_out_) == [name]
    assert reason in model.left_out_[name]
    assert model.features_ == ["x"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("age", [18 + 5 * i % 60 for i in range(30)]),  # repeats
        ("income", [i * i + 1000 for i in range(30)]),  # all different, but wide apart
        ("id", [1, 2, 3] * 10),
        ("measured", np.arange(30.0)),  # not whole numbers by type
        ("few", [3, 4, 5]),
        ("holiday", [i * i for i in range(30)]),  # "id" inside a word
    ],
)
def test_measurements_are_kept(name, values):
    assert fitted(**{name: values}).left_out_ == {}


def test_a_column_can_be_kept():
    table = pa.table({"x": np.r_[0.0:30.0] % 7, "row": range(30), "y": np.arange(30.0) ** 2 / 7})
    assert TableRegressor().fit(table, "y").features_ == ["x"]
    kept = TableRegressor(keep=["row"]).fit(table, "y")
    assert kept.features_ == ["x", "row"]
    assert kept.left_out_ == {}
    assert audit(kept, table).holds
    assert not audit(copy.deepcopy(kept).set_params(keep=()), table).holds
    with pytest.raises(DataError, match=r"no column to keep 'rows'.*Did you mean 'row'"):
        TableRegressor(keep=["rows"]).fit(table, "y")
    with pytest.raises(ValueError, match="keep='row'"):
        TableRegressor(keep="row").fit(table, "y")


def test_folds_of_a_cross_validation_leave_row_numbers_out_too():
    """Part of the rows has row numbers with gaps: they are known all the same."""
    frame = penguins_table().to_pandas()
    frame["row"] = np.arange(344)
    for seed in range(3):
        part = frame.sample(frac=0.6, random_state=seed)
        assert "row" in certifit.TableClassifier().fit(part, "species").left_out_


def test_a_saved_model_says_the_same(tmp_path, diabetes):
    model = TableRegressor().fit(diabetes, "target")
    certifit.save(model, tmp_path / "m.certifit")
    again = certifit.load(tmp_path / "m.certifit")
    assert (again.predict(diabetes) == model.predict(diabetes)).all()
    assert again.family_ == model.family_
    assert audit(again, diabetes).holds
