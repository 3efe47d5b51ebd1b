"""The command line, end to end: penguins, bad input, exit codes."""

import contextlib
import csv
import errno
import gzip
import importlib
import io
import json
import os
import pkgutil
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

import certifit
from certifit.cli.app import app
from certifit.cli.screen import VisibleText
from certifit.datasets import penguins_path, penguins_table
from certifit.files import atomic_file


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0, page=False, piped=None):
    """Run a command; a fit is that of the linear model and writes no page, unless told: both have their tests."""
    if arguments[0] == "fit" and "--help" not in arguments:
        arguments += () if {"--model", "--replay"} & set(arguments) else ("--model", "linear")
        arguments += () if page or "--report" in arguments else ("--no-report",)
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=piped)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments):
    """The message of a command that must end with code 2, no traceback, and nothing written."""
    before = sorted(os.listdir())
    result = run(*arguments, code=2)
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir()) == before
    return " ".join(result.stderr.split())  # lines are broken between words


def write(name, text):
    with open(name, "w") as file:
        file.write(text)
    return name


def small(n=30, **columns):
    """A table of n rows with a number, and the target y (yes/no)."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return pa.table({"x": rng.normal(size=n) + y, **columns, "y": np.where(y == 1, "yes", "no")})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The penguins' model, fitted once on the command line."""
    place = tmp_path_factory.mktemp("model")
    path = place / "m.certifit"
    run("fit", penguins_path(), "--target", "species", "-o", path, "--folds", 0)
    return path


def test_penguins_from_table_to_report():
    out = run("fit", penguins_path(), "--target", "species", page=True).output
    for part in ("344 rows", "Adelie 152", "flipper_length_mm", "accuracy", "Gentoo"):
        assert part in out
    assert re.search("holds +yes", out)
    assert sorted(os.listdir()) == ["penguins-model.certifit", "penguins-report.html"]
    assert re.search("holds +yes", run("audit", "penguins-model.certifit", penguins_path()).output)


def test_the_accuracy_is_that_of_a_scikit_learn_pipeline():
    """The same encoding and objective built from scikit-learn's parts, on the same folds."""
    found = json.loads(run("fit", penguins_path(), "--target", "species", "--json").output)
    frame = penguins_table().to_pandas()
    frame["sex"] = frame["sex"].astype(object).where(frame["sex"].notna(), "missing")
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year"]
    theirs = make_pipeline(
        make_column_transformer(
            (make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True)), numbers),
            (OneHotEncoder(handle_unknown="ignore"), ["island", "sex"]),
        ),
        LogisticRegression(tol=1e-8, max_iter=10_000),
    )
    y = frame.pop("species").to_numpy(dtype=str)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    for score, scoring in zip(
        found["cross_validation"]["scores"], ("accuracy", "balanced_accuracy", "neg_log_loss"), strict=True
    ):
        assert score["mean"] == pytest.approx(
            abs(cross_val_score(theirs, frame, y, cv=splitter, scoring=scoring).mean()), abs=2e-4
        )
    assert found["certificate"]["holds"]
    assert found["certificate"]["gap"] <= 1e-6 * found["certificate"]["objective"]


def test_the_demo_ends_well():
    out = run("demo", "--budget", "0s").output
    assert len(re.findall("holds +yes", out)) == 2
    assert "Try next" in out
    assert sorted(os.listdir()) == ["penguins-model.certifit", "penguins-report.html"]


def test_quiet_and_json():
    assert run("fit", penguins_path(), "--target", "species", "--folds", 0, "--quiet").output == ""
    out = run("fit", penguins_path(), "--target", "sex", "--folds", 2, "--json").output
    found = json.loads(out)
    assert (found["rows"], found["rows_without_target"]) == (333, 11)
    assert found["columns"][0]["name"] == "species"
    assert json.loads(run("audit", found["model"], penguins_path(), "--json").output)["same_table"] is True


def test_every_form_of_table_gives_the_same_model():
    text = penguins_path().read_bytes()
    with gzip.open("zipped.csv.gz", "wb") as file:
        file.write(text)
    write("tabs.tsv", text.decode().replace(",", "\t"))
    write("semicolons.csv", text.decode().replace(",", ";"))
    table = penguins_table()
    parquet.write_table(table, "t.parquet")
    parquet.write_table(table.slice(0, 100), "part1.parquet")
    parquet.write_table(table.slice(100), "part2.parquet")
    feather.write_feather(table, "t.feather")
    write("t.jsonl", "".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    with pa.CompressedOutputStream("zipped.csv.zst", "zstd") as file:
        file.write(text)
    with contextlib.closing(sqlite3.connect("t.db")) as database:
        table.to_pandas().to_sql("birds", database, index=False)
    with duckdb.connect("t.duckdb") as database:
        database.register("given", table)
        database.sql("create table birds as select * from given")
    forms = [
        [penguins_path()],
        ["zipped.csv.gz"],
        ["zipped.csv.zst"],
        ["tabs.tsv"],
        ["semicolons.csv"],
        ["t.parquet"],
    ]
    forms += [
        ["part1.parquet", "part2.parquet"],
        ["part*.parquet"],
        ["t.feather"],
        ["t.jsonl"],
        ["t.db::birds"],
        ["t.duckdb::birds"],
        ["-"],
    ]
    found = set()
    for form in forms:
        run("fit", *form, "--target", "species", "--cv", 0, "--out", "m.certifit", piped=text)
        found.add(certifit.load("m.certifit").fingerprint_)
    for name in ("t.jsonl", "t.feather", "t.parquet"):
        with open(name, "rb") as file:
            run("fit", "-", "--target", "species", "--cv", 0, "--out", "m.certifit", piped=file.read())
        found.add(certifit.load("m.certifit").fingerprint_)
    assert len(found) == 1
    said = run("predict", "m.certifit", "t.db::birds").stdout
    assert said == run("predict", "m.certifit", "-", piped=text).stdout
    assert "Did you mean 'birds'?" in refused("fit", "t.db::bird", "--target", "species")
    assert "wanted an intact SQLite or DuckDB file" in refused("fit", "t.parquet::birds", "--target", "species")
    assert "one JSON object in each line" in refused("fit", write("bad.jsonl", "{1"), "--target", "species")


def test_options_reach_the_model():
    table = small(weights=[1.0, 2.0, 0.0] * 10, junk=["a", "b"] * 15, code=[1, 2, 3, -9, 5] * 6)
    parquet.write_table(table, "t.parquet")
    options = ("--C", 0.5, "--class-weight", "balanced", "--weight", "weights", "--drop", "junk")
    options += ("--categorical", "code", "--missing", -9)
    said = run("fit", "t.parquet", "--target", "y", "--folds", 0, *options).stdout
    assert "30 rows," in said
    assert "10 rows have weight 0; they are left out" in said
    model = certifit.load("t-model.certifit")
    assert (model.C, model.class_weight, model.weight_, model.features_, model.n_rows_) == (
        *(0.5, "balanced", "weights"),
        ["x", "code=1", "code=2", "code=3", "code=5", "code is missing"],
        20,
    )
    run("audit", "t-model.certifit", "t.parquet")


def test_audit_fails_on_other_data_and_on_a_changed_model(model):
    fewer = penguins_table().slice(0, 300)
    parquet.write_table(fewer, "fewer.parquet")
    out = " ".join(run("audit", model, "fewer.parquet", code=1).output.split())
    assert "differs from the table" in out
    assert "300 rows here, 344 there" in out
    assert re.search("holds +NO", out)
    sabotaged = certifit.load(model)
    sabotaged.model_.coef_ *= 1.01
    certifit.save(sabotaged, "sabotaged.certifit")
    out = run("audit", "sabotaged.certifit", penguins_path(), code=1).output
    assert "has the 344 rows the model was fitted to" in out


def test_a_report_can_be_read_block_by_block(model):
    run("report", model, penguins_path(), "--stream", "-o", "p.html")
    assert "344 rows drawn at random" in Path("p.html").read_text()


def test_a_fit_without_proof_ends_with_code_1(monkeypatch):
    monkeypatch.setattr(
        "certifit.table.table_classifier.TableClassifier.__init__.__wrapped__.__kwdefaults__", _one_step()
    )
    out = run("fit", penguins_path(), "--target", "species", "--folds", 0, code=1).output
    assert re.search("holds +NO", out)
    assert os.path.exists("penguins-model.certifit")


def _one_step():
    from certifit.table.table_classifier import TableClassifier

    return {**TableClassifier.__init__.__wrapped__.__kwdefaults__, "max_iter": 1}


def test_predictions_are_the_models(model):
    rows = list(csv.DictReader(io.StringIO(run("predict", model, penguins_path()).stdout)))
    fitted = certifit.load(model)
    assert [row["prediction"] for row in rows] == fitted.predict(penguins_table()).tolist()
    proba = [[float(row[f"probability {c}"]) for c in fitted.classes_] for row in rows]
    assert (np.array(proba) == fitted.predict_proba(penguins_table())).all()  # every digit is written
    assert run("predict", model, penguins_path(), "-o", "p.csv").output == ""
    with open("p.csv", newline="") as file:
        assert list(csv.DictReader(file)) == rows


def test_prediction_says_what_training_did_not_see(model):
    write("new.csv", penguins_path().read_text().replace("Torgersen", "Mars", 2).replace(",2007", ",", 1))
    result = run("predict", model, "new.csv")
    notes = " ".join(result.stderr.split())
    assert "2 value(s) of 'island'" in notes
    assert "'Mars'" in notes
    assert "1 value(s) of 'year' are missing" in notes
    assert len(result.stdout.splitlines()) == 345


@pytest.mark.parametrize("labels", ["0,1", "true,false", "b,a"])
def test_targets_of_any_type(labels):
    values = labels.split(",")
    write("t.csv", "x,y\n" + "".join(f"{i % 7},{values[i % 2]}\n" for i in range(40)))
    found = json.loads(run("fit", "t.csv", "--target", "y", "--folds", 2, "--json").output)
    rows = list(csv.DictReader(io.StringIO(run("predict", "t-model.certifit", "t.csv").stdout)))
    assert {row["prediction"].lower() for row in rows} <= set(values)
    assert len(found["classes"]) == 2


def test_one_bad_line_is_named():
    write("ragged.csv", "a,b,y\n1,2,u\n3,v\n4,5,u\n")
    message = refused("fit", "ragged.csv", "--target", "y")
    assert "line 3 of 'ragged.csv' with 2 fields" in message
    assert "wanted 3 fields" in message


def test_the_nearest_target_is_suggested():
    message = refused("fit", penguins_path(), "--target", "Specie")
    assert "no target column 'Specie'" in message
    assert "Did you mean 'species'?" in message


def test_a_quantity_is_fitted_as_one_and_said_so():
    found = json.loads(run("fit", penguins_path(), "--target", "body_mass_g", "--json").output)
    assert (found["task"], found["family"]) == ("regression", "gaussian")
    assert "quantity" in found["why"]
    assert found["certificate"]["holds"]
    out = " ".join(run("audit", found["model"], penguins_path()).output.split())
    assert "has the 342 rows the model was fitted to" in out
    whole = penguins_table().drop_null()
    parquet.write_table(whole, "whole.parquet")
    rows = list(csv.DictReader(io.StringIO(run("predict", found["model"], "whole.parquet").stdout)))
    expected = certifit.load(found["model"]).predict(whole)
    assert [float(row["prediction"]) for row in rows] == expected.tolist()


def test_the_errors_of_a_regression_are_those_of_a_scikit_learn_pipeline():
    """The same encoding and objective built from scikit-learn's parts, on the same folds."""
    found = json.loads(run("fit", penguins_path(), "--target", "body_mass_g", "--json").output)
    frame = penguins_table().to_pandas().dropna(subset="body_mass_g")
    frame["sex"] = frame["sex"].astype(object).where(frame["sex"].notna(), "missing")
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "year"]
    theirs = make_pipeline(
        make_column_transformer(
            (StandardScaler(), numbers),
            (OneHotEncoder(handle_unknown="ignore"), ["species", "island", "sex"]),
        ),
        Ridge(),
    )
    y = frame.pop("body_mass_g").to_numpy()
    folds = KFold(5, shuffle=True, random_state=0)
    wanted = ("r2", "neg_mean_absolute_error", "neg_root_mean_squared_error")
    for score, scoring in zip(found["cross_validation"]["scores"], wanted, strict=True):
        values = cross_val_score(theirs, frame, y, cv=folds, scoring=scoring)
        assert score["mean"] == pytest.approx(abs(values.mean()), rel=1e-5)


def test_the_task_and_the_family_can_be_named():
    fit = ("fit", penguins_path(), "--folds", 0, "--json")
    year = json.loads(run(*fit, "--target", "year").output)
    assert (year["task"], year["classes"]) == ("classification", ["2007", "2008", "2009"])
    year = json.loads(run(*fit, "--target", "year", "--task", "regression").output)
    assert (year["task"], year["why"], year["family"]) == ("regression", "as asked", "gaussian")
    mass = json.loads(run(*fit, "--target", "body_mass_g", "--family", "gamma").output)
    assert (mass["family"], mass["certificate"]["holds"]) == ("gamma", True)
    assert "--task tree" in refused(*fit, "--target", "year", "--task", "tree")
    assert "--family tweedie" in refused(*fit, "--target", "year", "--family", "tweedie")
    assert "--family gamma for classes" in refused(*fit, "--target", "species", "--family", "gamma")
    assert "--class-weight balanced for a quantity" in refused(
        *fit, "--target", "body_mass_g", "--class-weight", "balanced"
    )
    assert "a target of type string" in refused(*fit, "--target", "species", "--task", "regression")


def test_columns_that_tell_rows_apart_are_left_out_and_said_so():
    """The penguins are sorted by species, so that a row number gives their species away."""
    frame = penguins_table().to_pandas()
    frame.to_csv("t.csv")
    result = run("fit", "t.csv", "--target", "species", "--report", "r.html")
    out = " ".join(result.output.split())
    assert "left out because they tell the rows apart: (no name) (--keep uses one)" in out
    assert certifit.load("t-model.certifit").left_out_ == {"": "it has no name, like an index"}
    with open("r.html", encoding="utf-8") as page:
        assert "Left out because they tell the rows apart" in page.read()
    frame["bird"] = np.arange(1, 345)
    frame.to_csv("t.csv", index=False)
    found = json.loads(run("fit", "t.csv", "--target", "species", "--json").output)
    assert found["columns"][-1]["done"] == "left out: it numbers the rows from 1 to 344"
    kept = json.loads(run("fit", "t.csv", "--target", "species", "--keep", "bird", "--json").output)
    assert kept["columns"][-1]["kind"] == "number"
    assert "no column to keep 'birds' in the table" in refused(
        "fit", "t.csv", "--target", "species", "--keep", "birds"
    )


def test_predictions_can_be_parquet(model):
    assert run("predict", model, penguins_path(), "-o", "p.parquet").output == ""
    found = parquet.read_table("p.parquet")
    assert found["prediction"].to_pylist() == certifit.load(model).predict(penguins_table()).tolist()
    assert found.column_names[1:] == ["probability Adelie", "probability Chinstrap", "probability Gentoo"]
    assert "ends in .parquet, .pq or .csv" in refused("predict", model, penguins_path(), "-o", "p.txt")


def test_everything_printed_is_within_80_columns(monkeypatch):
    """In a pipe, too; commands and paths stay whole, so that they can be copied."""
    monkeypatch.setenv("COLUMNS", "80")
    out = run("fit", penguins_path(), "--target", "species").output
    out += run("fit", penguins_path(), "--target", "body_mass_g").output
    out += run("audit", "penguins-model.certifit", penguins_path()).output
    out += run("fit", penguins_path(), "--target", "nothing", code=2).stderr
    long = [line for line in out.splitlines() if len(line) > 80]
    assert all(str(penguins_path()) in line for line in long), long
    assert not [line for line in out.splitlines() if line != line.rstrip()]
    for command in ("fit", "audit", "predict", "demo", "warm-up"):
        assert max(map(len, run(command, "--help").output.splitlines())) <= 80


def test_an_empty_column_is_left_out_and_named():
    lines = small(12).to_pylist()
    write("t.csv", "x,nothing,y\n" + "".join(f"{r['x']},,{r['y']}\n" for r in lines))
    found = json.loads(run("fit", "t.csv", "--target", "y", "--folds", 0, "--json").output)
    nothing = found["columns"][1]
    assert (nothing["kind"], nothing["missing"], nothing["done"]) == ("left out", 12, "left out: empty")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\n1,a\n2,a\n", "one class: 'a'"),
        ("x,y\n", "without rows"),
        ("", "without rows"),
        ("x,x,y\n1,2,a\n1,2,b\n", "same name"),
        ("y\na\nb\n", "no column to learn from"),
    ],
)
def test_tables_without_a_fit(content, message):
    write("t.csv", content)
    assert message in refused("fit", "t.csv", "--target", "y")


def test_files_that_cannot_be_read(model):
    assert "does not exist" in refused("fit", "nothing.csv", "--target", "y")
    write("t.txt", "x,y\n1,a\n")
    assert "rename it" in refused("fit", "t.txt", "--target", "y")
    for name, advice in [
        ("t.json", "table.jsonl"),
        ("t.xlsx", "as CSV"),
        ("t.db", "Name the table"),
        ("t.odd", ".csv"),
    ]:
        write(name, "{}")
        assert advice in refused("fit", name, "--target", "y")
        assert advice in refused("explore", name)
    Path("broken.csv").write_bytes(b"x,y\n1,\x81\n2,a\n")
    assert "not UTF-8 or Windows-1252" in refused("fit", "broken.csv", "--target", "y")
    assert "the encoding 'klingon'" in refused("fit", "broken.csv", "--target", "y", "--encoding", "klingon")
    parquet.write_table(small(), "t.parquet")
    with open("cut.parquet", "wb") as file, open("t.parquet", "rb") as whole:
        file.write(whole.read()[:-100])
    assert "cannot be read" in refused("fit", "cut.parquet", "--target", "y")
    assert "nothing.certifit" in refused("audit", "nothing.certifit", "t.parquet")
    with open("damaged.certifit", "wb") as file:
        file.write(model.read_bytes()[:-1])
    assert "damaged" in refused("predict", "damaged.certifit", penguins_path())
    assert "without the column 'island'" in refused("predict", model, "t.parquet")
    write("header.csv", penguins_path().read_text().split("\n")[0] + "\n")
    assert "no rows" in refused("predict", model, "header.csv", "--out", "p.csv")


def test_a_target_of_which_nothing_can_be_learnt_is_refused():
    rows = [f"{i % 7},w{i}" for i in range(30)]
    write("unique.csv", "x,y\n" + "\n".join(rows))
    assert "different in each of 30 rows" in refused("fit", "unique.csv", "--target", "y")
    write("same.csv", "x,y\n" + "\n".join(f"{i % 7},3.5" for i in range(30)))
    assert "3.5 in every row" in refused("fit", "same.csv", "--target", "y")
    write("word.csv", "x,y\n" + "\n".join(f"{i % 7},no" for i in range(30)))
    assert "a target with one class: 'no'" in refused("fit", "word.csv", "--target", "y")
    write("alone.csv", "y\n" + "a\nb\n" * 15)
    assert "no column to learn from beside the target" in refused("fit", "alone.csv", "--target", "y")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (["a", "b"], "weights in column 'w' of type string; wanted numbers"),
        (["1", "inf"], "the weight inf in row 1 of column 'w'; wanted a finite weight"),
        (["1", "-2"], "negative sample_weight (-2 in row 1)"),
        (["1", ""], "missing weight(s) in column 'w'"),
        (["0", "0"], "at least one positive weight"),
    ],
)
def test_weights_that_are_none_are_refused(weights, words):
    write("t.csv", "x,w,y\n" + "\n".join(f"{i % 7},{weights[i % 2]},{'ab'[i % 2]}" for i in range(30)))
    assert words in refused("fit", "t.csv", "--target", "y", "--weight", "w")


def test_places_that_cannot_be_written_are_refused_before_the_work():
    write("t.csv", "x,y\n" + "1,a\n2,b\n" * 15)
    os.mkdir("folder")
    assert "which is a folder" in refused("fit", "t.csv", "--target", "y", "--out", "folder")
    assert "does not exist" in refused("fit", "t.csv", "--target", "y", "--out", "none/m.certifit")


def test_utf_16_is_read_and_a_surprise_is_told_once(model):
    text = "x;kind;y\n" + "".join(f"{i % 7};{'äö'[i % 2]};{['no', 'yes'][i // 3 % 2]}\n" for i in range(30))
    Path("wide.csv").write_bytes(text.encode("utf-16"))
    write("narrow.csv", text)
    wide, narrow = (
        json.loads(run("fit", name, "--target", "y", "--json", "--cv", 0).stdout)
        for name in ("wide.csv", "narrow.csv")
    )
    assert wide["certificate"] == narrow["certificate"]
    table = write(
        "one.csv", penguins_path().read_text().split("\n")[0] + "\nAdelie,Mars,39.1,18.7,181,3750,male,2007\n"
    )
    assert run("predict", model, table).stderr.count("'Mars'") == 1


def test_text_of_other_encodings_is_read_and_what_was_assumed_is_said():
    text = "x;kind;y\n" + "".join(f"{i % 7};{'äö'[i % 2]};{['no', 'yes'][i // 3 % 2]}\n" for i in range(30))
    write("t.csv", text)
    Path("western.csv").write_bytes(text.encode("cp1252"))
    Path("old.csv").write_bytes(text.encode("cp437"))
    fit = ("--target", "y", "--json", "--cv", 0, "--no-report")
    western = run("fit", "western.csv", *fit[:2], *fit[3:])
    assert western.stderr.count("note: 'western.csv' is not UTF-8: read as Windows-1252") == 1
    run("fit", "t.csv", *fit, "--out", "m.certifit")
    old = run("audit", "m.certifit", "old.csv", "--encoding", "cp437")
    assert "has the 30 rows the model was fitted to" in old.stdout
    named = run("fit", "old.csv", "--encoding", "cp437", *fit[:2], *fit[3:]).stdout
    assert "old-model.certifit old.csv --encoding cp437" in " ".join(named.split())


def test_settings_that_make_no_sense():
    parquet.write_table(small(), "t.parquet")
    fit = ("fit", "t.parquet", "--target", "y")
    assert "--C -1" in refused(*fit, "--C", -1)
    assert "--cv 1" in refused(*fit, "--folds", 1)
    assert "--C with --model forest" in refused(*fit, "--C", 1, "--model", "forest")
    assert "the model 'tree'" in refused(*fit, "--model", "tree")
    assert "--metric auc" in refused(*fit, "--metric", "auc")
    assert "60s, 2m or 1h" in refused(*fit, "--budget", "soon")
    assert "class_weight='even'" in refused(*fit, "--class-weight", "even")
    assert "no weight column 'w'" in refused(*fit, "--weight", "w")
    assert "no column to drop 'z'" in refused(*fit, "--drop", "z")
    assert "also the target" in refused(*fit, "--drop", "y")
    assert "folder that does not exist" in refused(*fit, "-o", "no/where.certifit")
    assert "as input and output" in refused(*fit, "--report", "t.parquet")


def test_a_full_disk_writes_nothing(monkeypatch):
    def full(file, content):
        file.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_file, "_write", full)
    message = refused("fit", penguins_path(), "--target", "species", "--folds", 0)
    assert "penguins-model.certifit: could not write" in message
    assert "No space left on device" in message


def test_names_from_data_are_not_markup_on_the_terminal():
    parquet.write_table(small().rename_columns(["[red]x\x1b[2J", "y"]), "t.parquet")
    out = run("fit", "t.parquet", "--target", "y", "--folds", 0).output
    assert "[red]x\\x1b[2J" in out
    assert "\x1b" not in out


def test_errors_do_not_send_names_and_cells_from_data_to_the_terminal_as_they_are():
    write("t.csv", "x,y\n" + "\n".join(f"{k * k},{k % 2}" for k in range(40)))
    run("fit", "t.csv", "--target", "y", "--model", "linear", "-o", "m.certifit")
    write("u.csv", "x,y\nno\x1b[2Jnumber,1\n")
    for command in (("predict", "m.certifit", "u.csv"), ("audit", "m\x1b[2J.certifit", "t.csv")):
        message = refused(*command)
        assert "\\x1b[2J" in message
        assert "\x1b" not in message


def test_a_class_of_one_row_is_not_cross_validated():
    table = small(31).set_column(1, "y", pa.array(["a", "b"] * 15 + ["c"]))
    parquet.write_table(table, "t.parquet")
    told = " ".join(run("fit", "t.parquet", "--target", "y", "--model", "linear").output.split())
    assert "classes 'c' (1) have too few rows to be learnt and tested, and no part in the scores" in told
    parquet.write_table(table.set_column(1, "y", pa.array(["a"] * 30 + ["c"])), "t.parquet")
    assert "class 'c' has a single row" in run("fit", "t.parquet", "--target", "y").output


def test_warm_up_leaves_no_kernel_cold():
    """Of all estimators that takes minutes: `make defaults` asks for it."""
    everything = bool(os.environ.get("CERTIFIT_DEFAULTS"))
    assert "ready: " in run("warm-up", *([] if everything else ["LocallyLinearEmbedding"])).output
    cold, path = [], certifit.__path__ if everything else certifit.manifold.__path__
    name = "certifit." if everything else "certifit.manifold."
    modules = [m.name for m in pkgutil.walk_packages(path, name) if m.name.endswith("loops")]
    assert len(modules) > (10 if everything else 0)
    for module in modules:
        functions = vars(importlib.import_module(module))
        compiled = {name: f for name, f in functions.items() if hasattr(f, "signatures")}
        # What only loops call is compiled into them, and has no signature of its own when they come from the cache.
        own = {n: f for n, f in compiled.items() if n[0] != "_" and not f.options.get("no_cpython_wrapper")}
        cold += [name for name, kernel in own.items() if not kernel.signatures]
        assert compiled or os.environ.get("NUMBA_DISABLE_JIT") == "1"
    assert not cold, " ".join(cold)


def test_warm_up_of_an_estimator_that_there_is_not():
    assert "Did you mean 'KMeans'?" in run("warm-up", "KMean", code=2).stderr


def test_an_interrupt_ends_with_its_own_code(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("certifit.cli.commands.fit.table_to_fit", interrupt)
    result = run("fit", penguins_path(), "--target", "species", code=130)
    assert result.stderr.strip() == "certifit: interrupted"


def test_as_a_program():
    """A real process: version, plain text in a pipe, exit codes."""
    environment = {**os.environ, "COLUMNS": "80"}
    program = [sys.executable, "-c", "from certifit.cli import main; main()"]
    version = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True, env=environment)
    assert version.stdout.strip() == f"certifit {certifit.__version__}"
    fit = subprocess.run(
        [*program, "fit", str(penguins_path()), "--target", "nothing"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (fit.returncode, fit.stdout) == (2, "")
    assert fit.stderr.startswith("certifit: Got no target column 'nothing'")


def test_help_loads_nothing_heavy():
    script = (
        "import sys\nfrom certifit.cli.app import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'sklearn', 'pyarrow', 'numba', 'matplotlib') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "warm-up" in shown.stdout
    assert shown.stdout.strip().endswith("[]")


def test_models_are_compared_and_a_replay_gives_the_same_bits():
    parquet.write_table(small(40, junk=["a", "b"] * 20), "t.parquet")
    fit = ("fit", "t.parquet", "--target", "y", "--json")
    found = json.loads(run(*fit, "--model", "auto", "--budget", "0s", "--drop", "junk", page=True).output)
    board = found["comparison"]
    assert (board["chosen"]["model"], board["attempts"][0]["model"]) == ("linear", "baseline")
    assert {a["fate"] for a in board["attempts"][2:]} == {"skipped"}
    assert board["choice_certificate"]["holds"]
    with open("t-report.html", encoding="utf-8") as page:
        assert "Models that were tried" in page.read()
    again = json.loads(run(*fit, "--drop", "junk", "--replay", found["model"], "-o", "again.certifit").output)
    assert again["same_bits"] is True
    assert again["comparison"]["digest"] == board["digest"]
    assert "differs from the one the model was fitted to" in refused(*fit, "--replay", found["model"])
    assert "no certifit model" in refused(*fit, "--replay", "t.parquet").replace("not a", "no")


def test_a_replay_that_gives_other_bits_ends_with_code_1():
    parquet.write_table(small(40), "t.parquet")
    run("fit", "t.parquet", "--target", "y")
    changed = certifit.load("t-model.certifit")
    changed.model_.coef_ *= 1.0000001
    certifit.save(changed, "changed.certifit")
    out = run("fit", "t.parquet", "--target", "y", "--replay", "changed.certifit", code=1).output
    assert "the replay gave OTHER bits" in out


def test_predictions_with_intervals_and_columns_that_are_kept(model):
    message = refused("predict", model, penguins_path(), "--intervals")
    assert "errors on unseen rows are not known" in message
    whole = penguins_table().drop_null()
    parquet.write_table(whole, "t.parquet")
    run("fit", "t.parquet", "--target", "body_mass_g", "-o", "m.certifit")
    out = run("predict", "m.certifit", "t.parquet", "--intervals", "--coverage", 0.8, "--keep", "island").stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["island", "prediction", "low", "high"]
    expected = certifit.load("m.certifit").predict_interval(whole, coverage=0.8)
    assert [[float(row["low"]), float(row["high"])] for row in rows] == expected.tolist()


def test_a_broken_database_is_refused_in_a_sentence():
    write("junk.db", "junk" * 500)
    assert "cannot be read" in refused("fit", "junk.db::birds", "--target", "species")


def test_a_terminal_does_not_obey_what_is_predicted():
    file = io.BytesIO()
    out = VisibleText(file)
    for part in ("a\x1b[2J,é\u202e".encode()[:9], "a\x1b[2J,é\u202e".encode()[9:], b"\x9b\r\n"):
        assert out.write(part) == len(part)
    assert file.getvalue().decode() == "a\\x1b[2J,é\\u202e\ufffd\\r\n"


def test_errors_of_what_is_piped_in_name_no_file():
    said = run("fit", "-", "--target", "y", piped=b"x,y\n1,a\n2\n", code=2).stderr
    assert "line 3 of standard input with 1 fields" in " ".join(said.split())
