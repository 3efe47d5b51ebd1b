"""`certifit audit` for CI servers and of other libraries' models, and the pytest plugin."""

from pathlib import Path
from xml.etree import ElementTree

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from typer.testing import CliRunner

from certifit import save
from certifit.cli.app import app
from certifit.datasets import penguins_path, penguins_table
from certifit.pytest_plugin import compare_golden
from certifit.table.table_classifier import TableClassifier

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Our model of the penguins, a tampered one, scikit-learn's of a table of numbers, and that table."""
    place = tmp_path_factory.mktemp("models")
    model = TableClassifier().fit(penguins_table(), "species")
    save(model, place / "good.certifit")
    model.model_.coef_ = model.model_.coef_ + 0.1
    save(model, place / "bad.certifit")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    frame["y"] = (frame["a"] > 0).astype(int)
    frame.to_csv(place / "t.csv", index=False)
    joblib.dump(LogisticRegression(tol=1e-9).fit(frame[["a", "b"]], frame["y"]), place / "theirs.pkl")
    return place


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def cases(path):
    suite = ElementTree.parse(path).getroot()[0]
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert int(suite.get("tests")) == len([*suite.iter("testcase")])
    assert int(suite.get("failures")) == len(failed)
    return failed


def test_a_good_model_passes_and_a_tampered_one_fails(models):
    assert run(models / "good.certifit", penguins_path(), "--ci").exit_code == 0
    assert cases("good-audit.xml") == []
    assert run(models / "bad.certifit", penguins_path(), "--ci").exit_code == 1
    assert any("optimal" in name for name in cases("bad-audit.xml"))


def test_another_table_fails_on_a_ci_server(models):
    lines = penguins_path().read_text().splitlines(keepends=True)
    Path("fewer.csv").write_text("".join(lines[:-5]))
    assert run(models / "good.certifit", "fewer.csv", "--ci").exit_code == 1
    assert "the table is the one that the model was fitted to" in cases("good-audit.xml")


def test_pickles_are_loaded_only_where_that_is_asked_for(models):
    refused = run(models / "theirs.pkl", models / "t.csv", "--target", "y")
    assert refused.exit_code == 2
    assert "run the code inside it" in " ".join(refused.stderr.split())
    assert run(models / "theirs.pkl", models / "t.csv", "--target", "y", "--unsafe-pickle").exit_code == 0
    assert run(models / "theirs.pkl", models / "t.csv", "--unsafe-pickle").exit_code == 2
    assert run(models / "theirs.pkl", models / "t.csv", "--target", "z", "--unsafe-pickle").exit_code == 2


def test_a_saved_model_shows_itself_and_its_page(models):
    shown = CliRunner().invoke(app, ["show", str(models / "good.certifit")])
    assert shown.exit_code == 0
    assert "LogisticRegression of species" in shown.output
    written = CliRunner().invoke(app, ["report", str(models / "good.certifit"), str(penguins_path())])
    assert written.exit_code == 0, written.output
    assert '"form":"rows"' in Path("good-report.html").read_text()
    lines = penguins_path().read_text().splitlines(keepends=True)
    Path("fewer.csv").write_text("".join(lines[:-5]))
    other = CliRunner().invoke(app, ["report", str(models / "good.certifit"), "fewer.csv", "-o", "other.html"])
    assert "not the table that the model was fitted to" in " ".join(other.stderr.split())
    assert '"form":"none"' in Path("other.html").read_text()


PLUGIN_TEST = """
import numpy as np
from sklearn.linear_model import LogisticRegression

X = np.random.default_rng(0).normal(size=(40, 2))
y = (X[:, 0] > 0).astype(int)

def test_it(certifit_audit):
    model = LogisticRegression(tol=1e-9).fit(X, y)
    model.coef_ = model.coef_ + {shift}
    certifit_audit(model, X, y, golden="it", tol={tol})
"""


def test_a_golden_set_that_is_not_there_is_no_success(tmp_path):
    assert "there is no golden set" in compare_golden(tmp_path / "none.json", {"predict": [1]}, 0.0, False)
    assert compare_golden(tmp_path / "golden" / "a.json", {"predict": ["x", "y"]}, 0.0, True) == ""
    words = compare_golden(tmp_path / "golden" / "a.json", {"predict": ["x", "z"]}, 0.0, False)
    assert "predict: 1 of 2 rows changed\n  row 1: y -> z" in words


def test_the_plugin_audits_and_compares_with_the_golden_set(pytester):
    def outcome(shift, tol, *options):
        pytester.makepyfile(PLUGIN_TEST.format(shift=shift, tol=tol))
        return pytester.inline_run("-p", "certifit.pytest_plugin", "-p", "no:cacheprovider", *options)

    outcome(0.0, 1e-4, "--certifit-update-golden").assertoutcome(passed=1)
    assert (Path(pytester.path) / "golden" / "it.json").exists()
    outcome(0.0, 1e-4).assertoutcome(passed=1)
    found = outcome(0.01, 0.9)  # proved as loosely as was asked for, but its answers moved
    found.assertoutcome(failed=1)
    words = str(found.matchreport("test_it").longrepr)
    assert "predict_proba: 40 of 40 rows changed" in words
    broken = outcome(0.5, 1e-4)
    broken.assertoutcome(failed=1)
    assert "does not hold" in str(broken.matchreport("test_it").longrepr)


def stranger(X):
    return X


def test_skops_files_are_audited_and_load_no_code(models):
    table = pd.read_csv(models / "t.csv")
    theirs = LogisticRegression(tol=1e-9).fit(table[["a", "b"]], table["y"])
    skops.io.dump(theirs, "theirs.skops")
    assert run("theirs.skops", models / "t.csv", "--target", "y").exit_code == 0
    theirs.coef_ = theirs.coef_ * 1.1
    skops.io.dump(theirs, "wrong.skops")
    assert run("wrong.skops", models / "t.csv", "--target", "y").exit_code == 1
    skops.io.dump(make_pipeline(FunctionTransformer(stranger), theirs), "strange.skops")
    refused = run("strange.skops", models / "t.csv", "--target", "y")
    assert refused.exit_code == 2
    assert "stranger" in refused.output


@pytest.mark.parametrize("name", ["broken.skops", "broken.pkl", "broken.onnx"])
def test_broken_files_of_other_libraries_are_refused_in_a_sentence(models, name):
    Path(name).write_bytes(b"junk")
    refused = run(name, models / "t.csv", "--target", "y", "--unsafe-pickle")
    assert refused.exit_code == 2
    assert "cannot be read" in refused.output
