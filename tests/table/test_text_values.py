"""Columns of text that stand for numbers, dates or holes: read at the fit and at every prediction in the same way."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from certifit import DataError, audit, load, save
from certifit.table.learning.learn_columns import TableSummary
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_regressor import TableRegressor
from certifit.table.text.readings import find_reading, read_text
from tests.cli.test_cli import run


def people(n=120):
    rng = np.random.default_rng(0)
    pay, share = rng.integers(900, 90_000, n), rng.integers(1, 99, n)
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    return pd.DataFrame({"pay": pay, "share": share, "day": day, "rich": np.where(pay > 40_000, "yes", "no")})


def written(table):
    """The same table as people write it."""
    return table.assign(
        pay=[f"${pay:,}" for pay in table["pay"]],
        share=[f"{share} %" for share in table["share"]],
        day=table["day"].dt.strftime("%d.%m.%Y"),
    )


def test_text_is_read_as_what_it_stands_for():
    plain, text = TableClassifier().fit(people(), "rich"), TableClassifier().fit(written(people()), "rich")
    assert [c.kind for c in text.columns_] == ["number", "number", "date"]
    assert [c.done for c in text.columns_] == [
        "text read as numbers, in $ (commas part thousands; as decimal commas they fit too), standardised",
        "text read as numbers, in %, standardised",
        "text read as dates, days, standardised",
    ]
    np.testing.assert_allclose(text.model_.coef_, plain.model_.coef_, rtol=1e-6)
    np.testing.assert_allclose(text.predict_proba(written(people())), plain.predict_proba(people()), rtol=1e-6)
    # Numbers and dates may come as such at the prediction.
    np.testing.assert_allclose(text.predict_proba(people()), plain.predict_proba(people()), rtol=1e-6)
    assert audit(text, written(people()), "rich").holds


def test_a_saved_model_reads_as_before(tmp_path):
    model = TableClassifier().fit(written(people()), "rich")
    save(model, tmp_path / "m.certifit")
    np.testing.assert_array_equal(
        load(tmp_path / "m.certifit").predict_proba(written(people())), model.predict_proba(written(people()))
    )


def test_words_for_holes():
    table = people().assign(pay=lambda t: t["pay"].astype(str), town=["?", "Rome", " Rome", "Oslo"] * 30)
    table.loc[:9, "pay"] = "n/a"
    model = TableClassifier().fit(table, "rich")
    columns = {c.name: c for c in model.columns_}
    assert (columns["pay"].kind, columns["pay"].missing) == ("number", 10)
    assert (columns["town"].categories, columns["town"].missing) == (("Oslo", "Rome"), 30)
    unreadable = model.predict_proba(table.assign(pay="many"))  # counts as missing
    np.testing.assert_array_equal(unreadable, model.predict_proba(table.assign(pay=None)))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["01234", "98765", "00501"] * 20, "category"),  # postal codes
        (["1,5", "2,25", "1.000,5"] * 20, "number"),
        (["5 %", "7", "9 %"] * 20, "category"),  # shares, or not
        (["01/02/2024", "03/04/2024", "05/06/2024"] * 20, "category"),  # months first, or days
        (["1 234,5", "7", "9"] * 20, "number"),
        (["+", "-", "+"] * 20, "category"),
        (["EUR 1,200.50", "EUR 7", "30 EUR"] * 20, "number"),
        (["$5", "€5", "$7"] * 20, "category"),  # two currencies
        (["120 m²", "80 m²", "35.5 m²"] * 20, "number"),
        (["5 kg", "900 g", "7 kg"] * 20, "category"),  # two units
        (["room 12", "room 13", "room 14"] * 20, "category"),
        (["(1,200)", "300", "-5"] * 20, "number"),
        (["1'234.5", "2", "3"] * 20, "number"),
        (["18-25", "26-35", "36-45"] * 20, "category"),
        (["1.2.3", "1.2.4", "1.3.0"] * 20, "category"),
        (["Yes", "no", "TRUE "] * 20, "yes/no"),
        (["Yes", "No", "Yes"] * 20, "category"),  # always written alike
        (["Yes", "no", "maybe"] * 20, "category"),
        (["5 Jan 2024", "17 March 2023", "1 Feb 2022"] * 20, "date"),
        (["Mar 2023", "Apr 2023", "Dec 2022"] * 20, "date"),
        (["01/31/24", "02/03/24", "12/24/23"] * 20, "date"),
        (["01/02/24", "02/03/24", "12/11/23"] * 20, "category"),
        (["1/31/2024 3:04 PM", "2/3/2024 11:00 AM", "2/4/2024 9:15 AM"] * 20, "date"),
    ],
)
def test_what_can_be_read_in_one_way_only_is(values, kind):
    table = pd.DataFrame({"x": values, "z": np.arange(60) % 7, "y": ["a", "b"] * 30})
    column = {c.name: c for c in TableClassifier().fit(table, "y").columns_}["x"]
    assert column.kind == kind


@pytest.mark.parametrize(
    ("text", "reading", "values"),
    [
        (["EUR 1,200.50", "-7 EUR", "8"], "numbers, in EUR", [1200.5, -7, 8]),
        (["1.234,50 €", "−7,5 €"], "numbers with decimal commas, in €", [1234.5, -7.5]),
        (["(1,200.00)", "300"], "numbers", [-1200, 300]),
        (["1 234,5", "7"], "numbers with decimal commas", [1234.5, 7]),
        (["1'234.5", ".5"], "numbers", [1234.5, 0.5]),
        (["20 °C", "-3.5 °C"], "numbers, in °C", [20, -3.5]),
        (["1e3 km/h", "80 km/h"], "numbers, in km/h", [1000, 80]),
        (["No", "y", "TRUE", "f"], "yes or no", [False, True, True, False]),
    ],
)
def test_what_is_read(text, reading, values):
    column = pa.chunked_array([text])
    assert find_reading(column) == reading
    assert read_text(column, reading).to_pylist() == values


def test_other_units_are_not_taken_for_the_known_one():
    """Of a column in m² an entry in feet is missing; one without unit, and a number, are what they say."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 200, 80)
    text = [None, *(f"{size} m²" for size in sizes[1:])]
    table = pd.DataFrame({"size": text, "y": np.where(sizes > 90, "large", "small")})
    model = TableClassifier().fit(table, "y")
    answers = [model.predict_proba(pd.DataFrame({"size": [size]})) for size in ("120 m²", "120", "120 ft²", None)]
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], model.predict_proba(pd.DataFrame({"size": [120]})))
    np.testing.assert_array_equal(answers[2], answers[3])
    assert (answers[0] != answers[2]).any()


def test_units_are_those_of_all_blocks():
    """Two currencies in two blocks are as bad as in one, however rows are cut."""
    money = pa.table({"cost": ["$5"] * 30 + ["€5", "€6"] * 15})
    found = [TableSummary(money.schema) for _ in range(3)]
    found[0].add(money, np.ones(60))
    for summary, start in ((found[1], 0), (found[2], 30)):
        summary.add(money.slice(start, 30), np.ones(30))
    assert found[1].decide()[0].reading == "numbers, in $"
    assert found[0].decide() == found[1].merge(found[2]).decide()
    assert found[0].decide()[0].kind == "category"


def test_times_of_the_day_and_durations_are_numbers():
    """Half past nine is 9.5 hours, twelve hours are half a day."""
    minutes = np.arange(60) * 7
    table = pa.table({
        "at": pa.array([60 * int(m) for m in minutes], pa.time32("s")),
        "took": pa.array([12 * 3600 * int(m % 5) for m in minutes], pa.duration("s")),
        "y": np.where(minutes > 200, "late", "early"),
    })  # fmt: skip
    at, took = TableClassifier().fit(table, "y").columns_
    assert (at.kind, at.done, took.done) == ("number", "hours, standardised", "days, standardised")
    assert at.centre == pytest.approx(minutes.mean() / 60)
    assert took.centre == pytest.approx((minutes % 5).mean() / 2)


def test_codes_of_digits_in_a_file_stay_text(tmp_path):
    """Also where the first of several files has none that begins with 0."""
    (tmp_path / "a.csv").write_text("zip,n,y\n" + "01234,1,a\n98765,2,b\n" * 20)
    (tmp_path / "b.csv").write_text("zip,n,y\n" + "31234,1,a\n98765,2,b\n" * 20)
    for names in (["a.csv"], ["b.csv", "a.csv"]):
        model = TableClassifier().fit([tmp_path / name for name in names], "y")
        assert [column.kind for column in model.columns_] == ["category", "number"]
        assert "01234" in model.columns_[0].categories
    assert model.columns_[0].distinct == 3


def test_dates_that_were_asked_for(tmp_path):
    """Days 1 to 12 may be months: the day is first, or where the format says; what cannot be read is missing."""
    rng = np.random.default_rng(0)
    days = [f"{1 + i % 12:02d}/0{1 + i % 9}/2024" for i in range(72)]
    odd = ["soon" if i == 5 else f"2024 {1 + i % 9} {1 + i % 12}" for i in range(72)]
    table = pa.table({"when": days, "odd": odd, "x": rng.normal(size=72), "y": rng.random(72) < 0.5})
    plain = TableClassifier().fit(table, "y")
    assert [column.kind for column in plain.columns_[:2]] == ["category", "category"]
    model = TableClassifier(dates=["when", "odd=%Y %m %d"]).fit(table, "y")
    when, other = model.columns_[:2]
    assert (when.kind, when.reading, other.reading, other.missing) == ("date", "%d/%m/%Y", "%Y %m %d", 1)
    assert "day first; month first fits too" in when.done
    want = pd.to_datetime(pd.Series(days), format="%d/%m/%Y").to_numpy().astype("datetime64[D]").astype(float)
    np.testing.assert_allclose(model.encode(table)[0][:, 0], (want - want.mean()) / want.std(), atol=1e-12)
    other = TableClassifier(dates=["when=%m/%d/%Y"]).fit(table, "y")
    assert other.columns_[0].reading == "%m/%d/%Y"
    assert audit(model, table).holds
    assert not audit(model.set_params(dates=()), table).holds
    model.set_params(dates=["when", "odd=%Y %m %d"])
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(table), model.predict(table))
    for words, message in ((["x"], "to be read as dates"), (["odd"], "usual formats"), (["then"], "column of dates")):
        with pytest.raises(DataError, match=message):
            TableClassifier(dates=words).fit(table, "y")


def test_row_numbers_as_text_are_left_out():
    table = people().assign(row=[f"{i:,}" for i in range(1, 121)])
    assert "numbers the rows" in TableClassifier().fit(table, "rich").left_out_["row"]


def test_amounts_of_money_as_a_target(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = people()
    text = pd.DataFrame({"share": table["share"], "cost": [f"${3 * x + 1000:,}.50" for x in table["share"]]})
    text.to_csv("costs.csv", index=False)
    assert "regression" in run("fit", "costs.csv", "--target", "cost").output
    model = TableRegressor(alpha=1e-6).fit(text, "cost")
    np.testing.assert_allclose(model.predict(text), 3 * table["share"] + 1000.5, rtol=1e-4)
    assert audit(model, text, "cost").holds
