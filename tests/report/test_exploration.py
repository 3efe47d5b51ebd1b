"""`certifit explore`: planted groups, holes and outliers are found, and nothing where there is nothing."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

import certifit
from certifit.cli.app import app
from certifit.datasets import penguins_path
from certifit.report.exploration.explore_page import render_exploration
from certifit.report.exploration.findings import DrawnRows, ExploreTuning, explore_table

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def planted():
    """Three groups in two columns, one of noise, holes that come together, and one row far out."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    x = rng.normal(size=120) * 0.3 + np.array([0.0, 4.0, 8.0])[truth]
    y = rng.normal(size=120) * 0.3 + np.array([0.0, 6.0, 0.0])[truth]
    noise, same = rng.normal(size=120), rng.normal(size=120)
    noise[17] = 40.0
    holes = np.arange(120) % 20 == 3
    table = pa.table(
        {
            HOSTILE: x,
            "y": y,
            "noise": noise,
            "p": pa.array(same, mask=holes),
            "q": pa.array(same[::-1], mask=holes),
            "constant": np.ones(120),
        }
    )
    return truth, explore_table(table, groups=3, tuning=ExploreTuning(most_components=2))


def test_money_and_dates_in_text_have_their_mean_in_a_group():
    """€ 10 and € 12 in March, € 1,000 and € 1,020 in June: means 11 and 1010, the 2nd and the 11th of the month."""
    money, days = ["€ 10", "€ 12", "€ 1,000", "€ 1,020"], ["2021-03-01", "2021-03-03", "2021-06-10", "2021-06-12"]
    table = pa.table({"money": money * 10, "day": days * 10})
    found = explore_table(table, groups=2, tuning=ExploreTuning(most_components=2))
    said = {share.name: sorted(share.in_groups) for share in found.shares}
    assert said == {"money": ["1010", "11"], "day": ["2021-03-02", "2021-06-11"]}


def test_planted_groups_are_found_with_their_columns(planted):
    truth, found = planted
    assert adjusted_rand_score(truth, found.labels) > 0.95
    assert {found.shares[0].name, found.shares[1].name} == {HOSTILE, "y"}
    assert found.shares[0].share > 0.9
    assert found.groups.certificate_.holds
    assert found.pca.certificate_.holds


def test_the_share_is_that_of_the_analysis_of_variance(planted):
    """η² of a column of numbers, by its definition."""
    _, found = planted
    y = found.table["y"].to_numpy()
    between = sum((found.labels == g).mean() * (y[found.labels == g].mean() - y.mean()) ** 2 for g in range(3))
    share = next(share for share in found.shares if share.name == "y")
    assert share.share == pytest.approx(between / y.var())


def test_holes_and_outliers_are_named(planted):
    _, found = planted
    assert [(pair.first, pair.second, pair.together) for pair in found.holes] == [("p", "q", 6)]
    assert found.outliers[0].row == 18
    assert found.outliers[0].why.startswith("noise")


def test_no_groups_are_made_up():
    rng = np.random.default_rng(1)
    table = pa.table({name: rng.normal(size=60) for name in "abcd"})
    found = explore_table(table, tuning=ExploreTuning(most_groups=3, most_components=2))
    assert found.n_groups == 1
    assert found.groups is None
    assert found.mixture.best.n_components == 1
    assert "None that stand out" in render_exploration(found, "t", "")


def test_the_page_shows_it_and_runs_nothing(planted):
    text = render_exploration(planted[1], HOSTILE, "certifit explore")
    assert HOSTILE not in text
    assert text.count("<script") == 3
    assert "Which columns drive the groups" in text
    assert len(text.encode()) < 2_000_000


def test_the_command_writes_page_and_document(tmp_path):
    page, source = tmp_path / "p.html", tmp_path / "t.csv"
    source.write_text("a,b,c\n" + "".join(f"{i % 7 + 20 * (i % 2)},{i * i % 11},w{i % 3}\n" for i in range(30)))
    arguments = ["explore", str(source), "--report", str(page), "--groups", "2", "--drop", "c", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert (found["groups"], sum(found["sizes"])) == (2, 30)
    assert all(column["name"] != "c" for column in found["columns"])
    assert "certifit explore" in page.read_text()


def test_bad_input_is_refused():
    assert CliRunner().invoke(app, ["explore", str(penguins_path()), "--drop", "x"]).exit_code == 2
    with pytest.raises(certifit.DataError, match="a table to look at"):
        explore_table(pa.table({"a": [1, 1, 1, 1]}))
    with pytest.raises(certifit.DataError, match="9 groups of 4 rows"):
        explore_table(pa.table({"a": [1.5, 2.0, 3.0, 7.0]}), groups=9)


def test_a_large_table_is_drawn_from_in_one_pass_over_blocks(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    a = rng.normal(size=3000)
    source, page = tmp_path / "t.parquet", tmp_path / "t.html"
    pq.write_table(pa.table({"a": a, "b": a + rng.normal(size=3000), "number": np.arange(3000.0)}), source)

    def refuse(_):
        raise AssertionError("the whole table was read")

    monkeypatch.setattr("certifit.cli.files.is_large", lambda source: True)
    monkeypatch.setattr("certifit.rows.sources.table.Table.whole", refuse)
    arguments = ["explore", str(source), "--report", str(page), "--groups", "1", "--json"]
    told = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert (told["rows"], told["rows_looked_at"]) == (3000, 3000)  # fewer than a sample of a larger one would have
    result = CliRunner().invoke(app, [*arguments[:-1], "--rows", "200"])
    assert result.exit_code == 0, result.output
    sentence = "3,000 rows, of which 200 drawn at random are looked at"
    assert sentence in result.output
    assert sentence in page.read_text()


def test_outliers_of_drawn_rows_have_the_numbers_of_the_whole_table():
    rng = np.random.default_rng(1)
    a = rng.normal(size=100)
    a[7] = 40.0
    rows = DrawnRows(pa.table({"a": a, "b": rng.normal(size=100)}), np.arange(0, 1000, 10), 1000)
    found = explore_table(rows, groups=1, tuning=ExploreTuning(most_components=1))
    assert found.outliers[0].row == 71
    assert "40.0</td>" in render_exploration(found, "t", "certifit explore")
