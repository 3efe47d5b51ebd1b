"""Alerts about a table and about the use of a model, each with a table that has the fault and one that has not."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from certifit import fit, load, report, save
from certifit.datasets import penguins_table
from certifit.table.alerts import (
    choice_alert,
    kept_alerts,
    overdispersion_alert,
    table_alerts,
    too_good_alert,
    usefulness_alert,
)
from certifit.table.cross_validation import cross_validate
from certifit.table.labelled_table import labelled_table
from certifit.table.portfolio.leaderboard import choice_words, corrected_words, leaderboard_lines
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_regressor import TableRegressor
from tests.cli.test_cli import run


def frame(seed=0, n=200):
    """Two columns of chance, of which the target knows nothing, in 200 rows."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n)})
    return table.assign(kind=rng.choice(["no", "yes"], n), amount=rng.normal(size=n))


def kinds(table, target="kind", **options):
    task = "regression" if target == "amount" else "classification"
    other = {"kind", "amount"} - {target}
    data = labelled_table(table.drop(columns=list(other & {*table.columns})), target, task=task, **options)
    return {alert.kind: alert.words for alert in table_alerts(data)}


def test_a_plain_table_has_none():
    assert kinds(frame()) == {}
    assert kinds(frame(), "amount") == {}
    assert table_alerts(labelled_table(penguins_table(), "species")) == []


@pytest.mark.parametrize("target", ["kind", "amount"])
def test_a_column_that_follows_from_the_target(target):
    table = frame(n=4000)
    told = table["kind"].str.upper() if target == "kind" else np.exp(table["amount"])
    found = kinds(table.assign(later=told), target)
    assert [*found] == ["leak"]
    assert found["leak"].startswith("later (")


def test_missing_entries_may_give_the_target_away():
    table = frame()
    found = kinds(table.assign(reason=np.where(table["kind"] == "yes", "late", None)))
    assert "reason (100.0 %)" in found["leak"]


def test_copies_of_rows():
    table = frame()
    found = kinds(pd.concat([table, table[:30]]))
    assert found["copies"].startswith("30 of 230 rows")
    few = pd.concat([table[["b", "kind", "amount"]]] * 3)  # three words in 600 rows: no wonder that rows are equal
    assert "copies" not in kinds(few)
    assert kinds(pd.concat([table] * 3))["copies"].startswith("400 of 600 rows")


def test_rows_in_order_of_time():
    table = frame().assign(day=pd.date_range("2024-01-01", periods=200, freq="D"))
    assert "in the order of day" in kinds(table)["time"]
    assert kinds(table.sample(frac=1, random_state=0)) == {}
    years = frame().assign(year=1959.0 + np.arange(200) // 4)
    assert "--time year tests on later rows" in kinds(years)["time"]
    assert kinds(years.rename(columns={"year": "size"})) == {}  # any column may be sorted


def test_classes_that_are_too_common_or_too_rare():
    table = frame()
    assert "'no'" in kinds(table.assign(kind=np.where(np.arange(200) < 190, "no", "yes")))["imbalance"]
    rare = kinds(table.assign(kind=np.where(np.arange(200) < 4, "odd", table["kind"])))
    assert rare == {"rare classes": "few rows of class 'odd' (4): what is said of them rests on these"}


def test_classes_of_a_single_row_and_words_in_a_quantity():
    n = 60
    table = frame(n=n).drop(columns="amount")
    words = np.array([f"name {i // 2 if i < 20 else i}" for i in range(n)])
    found = kinds(table.assign(kind=words))["rare classes"]
    assert found.startswith("40 of 50 classes have a single row")
    assert "numbers" not in found
    amounts = [f"${10 * i:,}.50" if i % 5 else "not known" for i in range(n)]
    found = kinds(table.assign(kind=amounts))["rare classes"]
    assert found.startswith("48 of 49 classes have a single row")
    assert "48 of them are numbers" in found
    assert "--missing 'not known' takes the other for a missing entry" in found
    assert kinds(table.assign(kind=[f"name {i // 3}" for i in range(n)])) == {}


def test_fewer_rows_than_columns():
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 40))).add_prefix("c")
    assert "few rows" in kinds(wide.assign(kind=["no", "yes"] * 15))


@pytest.mark.parametrize(("model", "target"), [(TableClassifier(), "kind"), (TableRegressor(), "amount")], ids=str)
def test_a_model_of_chance_is_of_no_use(model, target):
    table = frame(1)
    signal = table.assign(kind=np.where(table["a"] > 0, "yes", "no"), amount=table["a"] + 0.1 * table["amount"])
    for rows, useless in ((table, True), (signal, False)):
        data = labelled_table(rows[["a", "b", target]], target, task=model.task)
        assert (usefulness_alert(cross_validate(model, data)) is not None) == useless
    assert usefulness_alert("not cross-validated, as asked") is None


def test_a_choice_is_useful_by_its_corrected_score_alone():
    """The best of several on folds may be lucky: what counts is its score after the correction for the choice."""
    table = frame(1)
    signal = table.assign(kind=np.where(table["a"] > 0, "yes", "no"))
    found = fit(signal[["a", "b", "kind"]], "kind", model="linear").search_
    assert choice_alert(found) is None
    for corrected, useless in ((found.baseline.score, True), (found.corrected, False)):
        moved = replace(found, corrected=corrected)
        assert (choice_alert(moved) is not None) == useless
    assert "of no use" in choice_alert(replace(found, corrected=found.baseline.score)).words


def test_the_command_shows_them_on_the_screen_in_json_and_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = frame(1).drop(columns="amount")
    table.assign(**{"<b>late</b>": table["kind"]}).to_csv("leak.csv", index=False)
    table.to_csv("chance.csv", index=False)
    shown = run("fit", "leak.csv", "--target", "kind", page=True).output
    assert shown.index("! <b>late</b> (100.0 %) alone tells") < shown.index("Certificate")
    assert "&lt;b&gt;late&lt;/b&gt; (100.0 %)" in (tmp_path / "leak-report.html").read_text()
    told = json.loads(run("fit", "chance.csv", "--target", "kind", "--json").stdout)
    assert [alert["kind"] for alert in told["alerts"]] == ["no use"]
    assert (told["useful"], told["certificate"]["holds"]) == (False, True)


def test_python_files_notebooks_and_pages_keep_them(tmp_path):
    table = frame().drop(columns="amount")
    table = table.assign(reason=table["kind"].str.upper())
    model = fit(table, "kind", model="naive_bayes")
    assert [alert.kind for alert in kept_alerts(model)] == ["too good", "leak"]
    save(model, tmp_path / "m.certifit")
    again = load(tmp_path / "m.certifit")
    assert kept_alerts(again) == kept_alerts(model)
    words = "! reason (100.0 %) alone tells nearly all about the target"
    for shown in (repr(again), again._repr_html_(), run("show", str(tmp_path / "m.certifit")).stdout):
        assert words in " ".join(shown.split())
    assert "if the alert (too good, leak) is no matter" in report(again, table, "kind").html
    plain = fit(frame(1).drop(columns="amount"), "kind", model="naive_bayes")
    assert [alert.kind for alert in kept_alerts(plain)] == ["no use"]
    assert "No better than guessing." in report(plain, frame(1).drop(columns="amount"), "kind").html


def test_columns_that_say_the_same():
    table = frame()
    assert kinds(table.assign(c=table["a"] + 0.1)) == {}
    holes = table.assign(a=table["a"].where(table.index != 3))
    found = kinds(holes.assign(again=holes["a"], words=holes["b"]))
    assert [*found] == ["same columns"]
    assert found["same columns"].startswith("again (as a), words (as b) each say the same as another column")


def test_counts_that_vary_more_than_poissons_law_says():
    """Counts of mean 4 and variance 4 + 16 (negative binomial, theta 1), and Poisson's of the same mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    for y, families in ((rng.negative_binomial(1, 0.2, 400), ("auto", "poisson")), (rng.poisson(4.0, 400), ())):
        data = labelled_table(pd.DataFrame({"x": x, "y": y}), "y", task="regression")
        for family in families or ("auto",):
            alert = overdispersion_alert(TableRegressor(family=family).fit(data), data)
            assert (alert is not None) == bool(families)
            if alert is not None:
                assert ("--family negative_binomial" in alert.words) == (family == "poisson")
    assert overdispersion_alert(TableRegressor(family="gaussian").fit(data), data) is None


def test_rows_that_all_score_alike_have_no_interval():
    x = np.r_[0:30.0, 100:130.0]
    ledger = fit(pd.DataFrame({"x": x, "y": np.where(x < 50, "low", "high")}), "y", model="naive_bayes").search_
    assert ledger.winner.score == 1.0
    assert "none: rows alike" in leaderboard_lines(ledger)[0]
    assert "without an interval, as all rows score alike" in choice_words(ledger)
    # Where a rival was drawn now and then, the correction has two ends and tells no more of the error.
    drawn = replace(ledger, corrected_low=ledger.corrected - 1e-6, rivals=2)
    assert "without an interval" in choice_words(drawn)
    assert corrected_words(drawn) == ""


@pytest.mark.parametrize("target", ["kind", "amount"])
def test_a_number_or_date_that_is_missing_for_one_class_gives_it_away(target):
    """The day of a cancellation is known of those who cancelled: which day it is says nothing."""
    table, rng = frame(n=600), np.random.default_rng(3)
    gone = (table["kind"] == "yes").to_numpy()
    table["amount"] = np.where(gone, 5.0, -5.0) + 0.01 * rng.normal(size=600)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 600), unit="D")
    by_chance = rng.random(600) < 0.5
    assert "leak" not in kinds(table.assign(on=day.where(by_chance)), target)
    assert kinds(table.assign(on=day.where(gone)), target)["leak"].startswith("on (")


def test_no_mistake_at_all_is_rare():
    table = frame(n=200)
    rule = table.assign(kind=np.where((table["a"] > 0) == (table["b"] == "x"), "yes", "no"))
    found = cross_validate(TableClassifier(), labelled_table(rule[["a", "b", "kind"]], "kind"))
    scores = tuple(score._replace(mean=1.0) for score in found.scores)
    faultless = replace(found, scores=scores)
    assert "no mistake on 200 rows" in too_good_alert(faultless, 200).words
    assert too_good_alert(faultless, 99) is None
    assert too_good_alert(found, 200) is None


def test_words_that_differ_in_case_alone():
    table = frame()
    found = kinds(
        table.assign(town=np.resize(["Rome", "rome ", "Oslo"], 200), kind=np.resize(["Yes", "yes", "no"], 200))
    )
    assert found["same words"].count("'Rome' and 'rome'") == found["same words"].count("'Yes' and 'yes'") == 1


def test_rare_classes_are_compared_by_log_loss_and_probabilities_may_be_of_use():
    """One row in 25 is a yes, and the more likely the larger a: no row is a yes at even odds."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=3000)
    table = pd.DataFrame({"a": a, "kind": np.where(rng.random(3000) < 1 / (1 + np.exp(4 - a)), "yes", "no")})
    model = fit(table, "kind", model="linear, naive_bayes", budget=60)
    assert model.search_.metric == "log loss"
    found = cross_validate(model, labelled_table(table, "kind"))
    alert = usefulness_alert(found)
    assert alert.kind == "threshold"
    assert "rank rows by them" in alert.words
    chance = cross_validate(model, labelled_table(table.assign(a=rng.normal(size=3000)), "kind"))
    assert usefulness_alert(chance).kind == "no use"
    even = table.groupby("kind").head(100)
    assert fit(even, "kind", model="linear").search_.metric == "accuracy"
    assert fit(table, "kind", model="linear", metric="accuracy").search_.metric == "accuracy"
