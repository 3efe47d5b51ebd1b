"""TableClassifier: the encoding against scikit-learn's own transformers, and every kind of column."""

import copy
import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import certifit
from certifit import DataError, GaussianNB, LinearSVC, NaiveBayes, audit, load, save
from certifit.datasets import penguins_table
from certifit.table.table_classifier import TableClassifier

NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def table(n=40, **columns):
    """A small table: `x` separates the classes in part, `y` is the target."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return pa.table({"x": rng.normal(size=n) + y, **columns, "y": np.where(y == 1, "yes", "no")})


def column(model, name):
    return next(c for c in model.columns_ if c.name == name)


def scikit_pipeline():
    """The same encoding and the same objective, from scikit-learn's parts."""
    numbers = make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True))
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((numbers, [*NUMBERS, "year"]), (categories, ["island", "sex"]))
    return make_pipeline(encoder, LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000))


def test_agrees_with_a_scikit_learn_pipeline():
    frame = penguins_table().to_pandas()
    frame["sex"] = frame["sex"].astype(object).where(frame["sex"].notna(), "missing")
    X, y = frame.drop(columns="species"), frame["species"].to_numpy(dtype=str)
    theirs = scikit_pipeline().fit(X, y)
    ours = TableClassifier(tol=1e-10).fit(penguins_table(), "species")
    np.testing.assert_allclose(ours.predict_proba(penguins_table()), theirs.predict_proba(X), atol=1e-6)
    assert ours.certificate_.holds
    assert ours.score(penguins_table(), "species") == theirs.score(X, y)


def test_every_kind_of_table_gives_the_same_model():
    arrow = penguins_table()
    models = [TableClassifier().fit(t, "species") for t in (arrow, arrow.to_pandas(), pl.from_arrow(arrow))]
    assert {m.fingerprint_ for m in models} == {models[0].fingerprint_}
    assert all((m.predict(arrow) == models[0].predict(arrow)).all() for m in models)


def test_the_index_of_a_pandas_frame_is_not_a_column():
    """The penguins are sorted by species: their row numbers would give the answer away."""
    frame = penguins_table().to_pandas().sample(frac=0.5, random_state=0)
    model = TableClassifier().fit(frame, "species")
    assert model.columns_[-1].name == "year"


def test_numbers_are_standardised_by_weight_over_the_observed():
    x = np.array([1.0, 2.0, np.nan, 4.0] * 10)
    w = np.tile([1.0, 2.0, 5.0, 3.0], 10)
    data = table(40, z=pa.array(x, from_pandas=True))
    model = TableClassifier().fit(data, "y", w)
    matrix, names = model.encode(data)
    seen = ~np.isnan(x)
    mean = np.average(x[seen], weights=w[seen])
    deviation = np.sqrt(np.average((x[seen] - mean) ** 2, weights=w[seen]))
    z, missing = matrix[:, names.index("z")], matrix[:, names.index("z is missing")]
    np.testing.assert_allclose(z[seen], (x[seen] - mean) / deviation, rtol=1e-12)
    assert (z[~seen] == 0).all()
    assert (missing == ~seen).all()


def test_standardising_survives_a_large_offset():
    spread = np.random.default_rng(1).normal(size=40) * 1e-2
    data = table(40, far=1e8 + spread)
    model = TableClassifier().fit(data, "y")
    far = model.encode(data)[0][:, model.features_.index("far")]
    assert far.mean() == pytest.approx(0, abs=1e-6)
    assert far.std() == pytest.approx(1, abs=1e-6)


def test_categories_are_one_hot_in_sorted_order_with_a_place_for_holes():
    data = table(40, city=["Rome", "Bern", None, "Oslo"] * 10)
    model = TableClassifier().fit(data, "y")
    matrix, names = model.encode(data)
    assert [n for n in names if "city" in n] == ["city=Bern", "city=Oslo", "city=Rome", "city is missing"]
    hot = matrix[:4, names.index("city=Bern") :][:, :4]
    assert (hot == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]).all()


def test_booleans_dates_and_dictionaries():
    day = [datetime.date(2020, 1, 1) + datetime.timedelta(days=7 * i) for i in range(40)]
    city = pa.array(["b", "a"] * 20).dictionary_encode()
    flag = [True, False, None, True] * 10
    model = TableClassifier().fit(table(40, day=day, city=city, flag=flag), "y")
    assert [column(model, name).kind for name in ("day", "city", "flag")] == ["date", "category", "yes/no"]
    assert column(model, "day").centre == pytest.approx(18262 + 7 * 19.5)  # 2020-01-01 is day 18262 of Unix time
    assert column(model, "city").categories == ("a", "b")
    flags = model.encode(table(40, day=day, city=city, flag=flag))[0][:4, model.features_.index("flag")]
    np.testing.assert_allclose(flags, [1, 0, 2 / 3, 1])  # a hole takes the mean


def test_columns_that_say_nothing_are_left_out_and_named():
    data = table(
        40,
        empty=pa.nulls(40),
        empty_text=pa.nulls(40, pa.string()),
        same=[7] * 40,
        same_text=["a"] * 40,
        name=[f"person {i}" for i in range(40)],
        nested=[[1, 2]] * 40,
    )
    model = TableClassifier().fit(data, "y")
    left_out = {c.name: c.done for c in model.columns_ if c.kind == "left out"}
    assert list(left_out) == ["empty", "empty_text", "same", "same_text", "name", "nested"]
    for name, reason in zip(
        left_out, ("empty", "empty", "same value", "same value", "40 different texts", "type"), strict=True
    ):
        assert reason in left_out[name]
    assert model.features_ == ["x"]


def test_a_constant_with_holes_keeps_only_where_it_is_missing():
    data = table(40, z=[5.0, None] * 20)
    model = TableClassifier().fit(data, "y")
    assert model.features_ == ["x", "z is missing"]
    assert (model.encode(data)[0][:, 1] == [0, 1] * 20).all()


def test_unseen_categories_count_as_none_and_are_counted():
    model = TableClassifier().fit(table(40, city=["Rome", "Bern"] * 20), "y")
    new = pa.table({"x": [0.0, 0.0, 0.0], "city": ["Bern", "Paris", "Wien"]})
    with pytest.warns(UserWarning, match=r"2 value\(s\) of 'city'.*'Paris'"):
        matrix, _ = model.encode(new)
    assert (matrix[:, 1:] == [[1, 0], [0, 0], [0, 0]]).all()


def test_holes_only_at_prediction_take_the_training_mean():
    model = TableClassifier().fit(table(40, city=["Rome", "Bern"] * 20), "y")
    with pytest.warns(UserWarning, match=r"1 value\(s\) of '(x|city)' are missing"):
        matrix, _ = model.encode(pa.table({"x": pa.array([None], pa.float64()), "city": pa.nulls(1)}))
    assert (matrix == 0).all()


def test_columns_are_found_by_name():
    data = penguins_table()
    model = TableClassifier().fit(data, "species")
    turned = data.select(data.column_names[::-1])
    assert (model.predict_proba(turned) == model.predict_proba(data)).all()
    with pytest.raises(DataError, match=r"without the column 'sex', which the model was fitted with"):
        model.predict(data.drop_columns(["sex"]))


def test_another_type_at_prediction_is_converted_or_refused():
    model = TableClassifier().fit(table(40, code=["1", "b"] * 20), "y")
    assert (model.encode(pa.table({"x": [1], "code": [1]}))[0][0, 1:] == [1, 0]).all()
    with pytest.raises(DataError, match=r"'x'.*numbers, as in training"):
        model.encode(pa.table({"x": ["high"], "code": ["b"]}))


def test_rows_without_target_and_rows_of_weight_zero_are_left_out():
    data = table(40)
    some = data.set_column(1, "y", pa.array([None, *data["y"].to_pylist()[1:]]))
    w = np.r_[1.0, 0.0, np.ones(38)]
    model = TableClassifier().fit(some, "y", w)
    assert (model.n_rows_, model.unlabelled_) == (38, 1)
    rest = TableClassifier().fit(data.slice(2), "y")
    assert (model.model_.coef_ == rest.model_.coef_).all()


def test_a_weight_of_two_is_a_row_twice():
    data = table(40, city=["Rome", "Bern", None, "Oslo"] * 10)
    w = np.arange(40) % 3 + 1
    twice = data.take(np.repeat(np.arange(40), w))
    a, b = TableClassifier(tol=1e-12).fit(data, "y", w), TableClassifier(tol=1e-12).fit(twice, "y")
    np.testing.assert_allclose(a.predict_proba(data), b.predict_proba(data), atol=1e-6)


@pytest.mark.parametrize("labels", [[3, 7], [False, True], ["b", "a"], [1.0, 2.0]])
def test_labels_keep_their_type(labels):
    y = pa.array(labels * 20)
    model = TableClassifier().fit(table().set_column(1, "y", y), "y")
    assert model.classes_.tolist() == sorted(labels)
    assert type(model.predict(table())[0].item()) is type(labels[0])


@pytest.mark.parametrize("values", [np.linspace(0, 1, 60), np.arange(60)])
def test_a_quantity_as_target_is_refused(values):
    with pytest.raises(DataError, match=r"quantity.*TableRegressor predicts quantities"):
        TableClassifier().fit(pa.table({"x": np.arange(60.0), "y": values}), "y")


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (table(), "Y ", r"no target column 'Y '.*Did you mean 'y'\?"),
        (table().set_column(1, "y", pa.array(["no"] * 40)), "y", "one class: 'no'"),
        (table().set_column(1, "y", pa.nulls(40)), "y", "missing in every row"),
        (table().select(["y"]), "y", "no column to learn from"),
        (table().set_column(0, "x", pa.array([np.inf] * 40)), "y", "infinity in row 0 of column 'x'"),
        (table().set_column(0, "x", pa.array([1e200, -1e200] * 20)), "y", "squares overflow"),
        (pa.table([[1.0], [2.0], ["a"]], names=["x", "x", "y"]), "y", r"same name: \['x'\]"),
        (table().slice(0, 0), "y", "no rows"),
        (pd.DataFrame({"x": [1, "a"], "y": ["a", "b"]}), "y", "one type of value in each column"),
    ],
)
def test_bad_tables_say_what_is_wrong(data, target, message):
    model = TableClassifier().fit(table(), "y")
    with pytest.raises(DataError, match=message):
        model.fit(data, target)
    assert not [name for name in vars(model) if name.endswith("_")]  # unfitted, not half-fitted


def test_the_inner_model_is_audited():
    data = penguins_table()
    model = TableClassifier().fit(data, "species")
    encoded = model.encode_labelled(data)
    assert encoded.fingerprint == model.fingerprint_
    again = certifit.audit(model.model_, encoded.X, encoded.y, encoded.w)
    assert again.holds
    assert again.objective == pytest.approx(model.objective(data, "species").total, rel=1e-12)
    other = model.encode_labelled(data.slice(1))
    assert other.fingerprint != model.fingerprint_


def test_works_in_scikit_learn():
    frame = penguins_table().to_pandas()
    scores = cross_val_score(clone(TableClassifier(C=2.0)), frame.drop(columns="species"), frame["species"], cv=3)
    assert scores.min() > 0.95


def test_the_audit_learns_the_encoding_again_and_compares_the_settings():
    table = penguins_table()
    model = TableClassifier().fit(table, "species")
    assert certifit.audit(model, table).holds
    first = model.columns_[0]
    damages = {
        "columns_": (replace(first, categories=first.categories[::-1]), *model.columns_[1:]),
        "C": 2.0,
        "class_weight": "balanced",
        "n_rows_": model.n_rows_ + 1,
        "unlabelled_": 7,
        "features_": model.features_[::-1],
    }
    for name, value in damages.items():
        broken = copy.deepcopy(model)
        setattr(broken, name, value)
        assert not certifit.audit(broken, table).holds, name
    inside = copy.deepcopy(model)
    inside.model_.C = 2.0
    assert not certifit.audit(inside, table).holds
    inside.classes_ = model.classes_[::-1]
    with pytest.raises(DataError, match="classes_ that do not ascend"):
        certifit.audit(inside, table)


@pytest.mark.parametrize("change", [{"done": "left out: it was too hot"}, {"identifies": False}])
def test_the_audit_reads_why_a_column_was_left_out(change):
    table = penguins_table()
    table = table.append_column("number", pa.array(range(table.num_rows)))
    model = TableClassifier().fit(table, "species")
    assert list(model.left_out_) == ["number"]
    assert certifit.audit(model, table).holds
    model.columns_ = (*model.columns_[:-1], replace(model.columns_[-1], **change))
    assert not certifit.audit(model, table).holds


@pytest.mark.parametrize("inner", [NaiveBayes("auto"), LinearSVC()], ids=["NaiveBayes", "LinearSVC"])
def test_another_estimator_is_fitted_to_the_encoded_columns(inner, tmp_path):
    """The same as by hand; the audit, the file and tampering know it too."""
    table = penguins_table()
    model = TableClassifier(estimator=inner).fit(table, "species")
    rows = TableClassifier().fit(table, "species").encode_labelled(table)
    families = ["gaussian" if name in rows.data.table.column_names else "bernoulli" for name in rows.features]
    settings = {"family": families} if isinstance(inner, NaiveBayes) else {}
    expected = clone(inner).set_params(**settings).fit(rows)
    assert (model.predict(table) == expected.predict(rows.X)).all()
    assert hasattr(model, "predict_proba") == isinstance(inner, NaiveBayes)
    save(model, tmp_path / "m.certifit")
    again = load(tmp_path / "m.certifit")
    assert audit(again, table).holds
    again.estimator = GaussianNB()
    assert not audit(again, table).holds
    with pytest.raises(DataError, match="one of certifit's estimators"):
        TableClassifier(estimator=TableClassifier()).fit(table, "species")
