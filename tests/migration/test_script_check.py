"""`certifit check` reads a script and says what an import swap changes in it."""

import json

import pytest
from typer.testing import CliRunner

from certifit import KMeans
from certifit.cli.app import app
from certifit.core.settings import Setting
from certifit.exceptions import DataError
from certifit.migration.script_check import check_script

IMPORTS = """\
from sklearn.cluster import KMeans as Clusters, DBSCAN
from sklearn import linear_model, datasets
import sklearn.decomposition
import sklearn.svm as machines
"""


@pytest.fixture(autouse=True)
def differing(monkeypatch):
    """A KMeans that ignores one parameter, lacks another, and lacks an attribute, a method and an argument."""
    reasons = {
        "thin": "Every row is used.",
        "fans_": "There are no fans.",
        "wave": "It does not wave.",
        "fit(slowly)": "It is always quick.",
        "tol": "It is a gap.",
    }
    monkeypatch.setattr(KMeans, "differences", reasons)
    monkeypatch.setattr(KMeans, "ignored", ("copy_x",))
    from sklearn.cluster import KMeans as Theirs

    def init(self, n_clusters=8, *, init="k-means++", tol=1e-4, copy_x=True, thin=1): ...

    def ours(self, n_clusters=8, *, init="k-means++", tol=1e-6, copy_x=True): ...

    monkeypatch.setattr(Theirs, "__init__", init)
    monkeypatch.setattr(KMeans, "__init__", ours)
    monkeypatch.setattr(KMeans, "settings", {"init": Setting(choices=("k-means++", "random"))})


def found(*lines):
    """The findings of a script with these lines below the import of KMeans: (line, verdict, subject)."""
    text = "\n".join(["from sklearn.cluster import KMeans", *lines])
    return [(one.line, one.verdict, one.subject) for one in check_script(text).findings if "(tol)" not in one.subject]


def test_imports_that_move_and_imports_that_stay():
    check = check_script(IMPORTS + "sklearn.decomposition.PCA(2)\n")
    assert check.moves == (
        (1, "from certifit.cluster import KMeans as Clusters"),
        (2, "from certifit import linear_model"),
        (4, "from certifit import svm as machines"),
        (5, "certifit.decomposition.PCA"),
    )
    assert check.stays == ((1, "sklearn.cluster.DBSCAN"), (2, "sklearn.datasets"))


def test_parameters():
    assert found("KMeans(3, copy_x=False)") == [(2, "ignored", "KMeans(copy_x=False)")]
    assert found("", "KMeans(thin=2)") == [(3, "fails", "KMeans(thin=2)")]
    assert found("KMeans(init='random')") == []
    assert found("KMeans(init='farthest')") == [(2, "fails", "KMeans(init='farthest')")]
    assert found("KMeans(init=chosen, **more)") == []


def test_a_default_that_differs_is_said_once_and_not_where_it_is_given():
    text = "from sklearn.cluster import KMeans\nKMeans(tol=1e-3)\nKMeans(2)\nKMeans(3)\n"
    (one,) = check_script(text).findings
    assert (one.line, one.verdict, one.subject) == (3, "differs", "KMeans(tol)")
    assert one.words == "The default is 1e-06 here and 0.0001 there. It is a gap."


def test_attributes_methods_and_arguments_of_models():
    assert found("m = KMeans(2).fit(X)", "m.labels_", "m.fans_") == [(3 + 1, "fails", "KMeans.fans_")]
    assert found("KMeans(2).fit(X).wave()") == [(2, "fails", "KMeans.wave")]
    assert found("m = KMeans(2)", "m.fit(X, slowly=True)") == [(3, "fails", "fit(slowly=…)")]


def test_a_variable_of_two_kinds_says_nothing():
    assert found("m = KMeans(2)", "m = Other()", "m.fans_") == []


def test_names_of_modules():
    text = "from sklearn import cluster\ncluster.KMeans()\ncluster.DBSCAN()\n"
    fails = [one for one in check_script(text).findings if one.verdict == "fails"]
    assert [(one.line, one.subject) for one in fails] == [(3, "cluster.DBSCAN")]
    assert fails[0].words == "certifit.cluster has no DBSCAN: import it from sklearn.cluster."


def test_what_is_not_python_is_refused():
    with pytest.raises(DataError, match="in line 1; wanted a Python script"):
        check_script("import (")


def run(path, *options, code):
    result = CliRunner().invoke(app, ["check", str(path), *options])
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_fits_80_columns_and_its_code_says_whether_it_runs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(IMPORTS + "model = Clusters(copy_x=False).fit(X)\n")
    text = run(script, code=0)
    assert "Accepted and ignored\n  line 5   KMeans(copy_x=False)" in text
    assert "script.py would run after the change." in text
    script.write_text(IMPORTS + f"model = Clusters(thin={'+'.join(map(str, range(60)))})\n" + "model.fans_\n")
    text = run(script, code=1)
    assert "2 places would not run" in text
    assert max(map(len, text.splitlines())) <= 80
    document = json.loads(run(script, "--json", code=1))
    assert not document["runs"]
    assert {one["place"] for one in document["findings"]} == {"line 5", "line 6"}


def test_a_script_without_scikit_learn(tmp_path):
    (tmp_path / "script.py").write_text("import numpy\n")
    assert run(tmp_path / "script.py", code=0) == "script.py imports nothing from scikit-learn.\n"


def test_a_notebook(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["from sklearn import nothing"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "from sklearn.cluster import KMeans"]},
        {"cell_type": "code", "source": "!pip list\n\nKMeans(thin=2)"},
    ]
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells}))
    text = run(tmp_path / "book.ipynb", code=1)
    assert "cell 2, line 2 from certifit.cluster import KMeans" in text
    assert "cell 3, line 3 KMeans(thin=2): Every row is used." in text


@pytest.mark.parametrize(("name", "text"), [("no.py", None), ("bad.py", "x = ("), ("bad.ipynb", "[]")])
def test_bad_input_is_refused_in_words(tmp_path, name, text):
    if text is not None:
        (tmp_path / name).write_text(text)
    result = CliRunner().invoke(app, ["check", str(tmp_path / name)])
    assert result.exit_code == 2
    assert result.stderr.startswith("certifit:")
