"""`certifit diff`: the reason of a difference is named, and only that one."""

import json

import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from certifit import save
from certifit.cli.app import app
from certifit.datasets import penguins_path, penguins_table
from certifit.table.reading import table_blocks
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_regressor import TableRegressor


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place, table = tmp_path_factory.mktemp("models"), penguins_table()
    for name, model, rows in (
        ("usual", TableClassifier(), table),
        ("closer", TableClassifier(tol=1e-10), table),
        ("penalised", TableClassifier(0.01), table),
        ("fewer", TableClassifier(), table.slice(0, 300)),
        ("narrow", TableClassifier(), table.drop_columns(["sex"])),
    ):
        save(model.fit(rows, "species"), place / name)
    mass = table.filter(pa.compute.is_valid(table["body_mass_g"]))
    for name, alpha in (("mass", 1.0), ("mass2", 1.5)):
        save(TableRegressor(alpha).fit(mass, "body_mass_g"), place / name)
    csv.write_csv(mass, place / "mass.csv")
    return place


def run(models, first, second, *table, code):
    result = CliRunner().invoke(app, ["diff", str(models / first), str(models / second), *map(str, table), "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.output)


def test_nothing_differs_from_itself(models):
    found = run(models, "usual", "usual", penguins_path(), code=0)
    assert found["same_bits"]
    assert found["why"] == "nothing differs"
    assert found["rows"]["changed"] == 0


def test_a_smaller_tolerance_is_within_what_was_proved(models):
    """The same problem: objectives are closer than the larger gap, which is an answer."""
    found = run(models, "usual", "closer", penguins_path(), code=1)
    assert found["same_problem"]
    assert abs(found["objectives"][0] - found["objectives"][1]) <= max(found["gaps"])
    assert "smaller than what either solver proved" in found["solvers"]
    assert found["data"] == []
    assert found["settings"] == ["tol: 1e-06 -> 1e-10"]


def test_rows_are_added_up_block_by_block(models, monkeypatch):
    """In blocks of 50 rows the comparison is that of the whole table."""
    monkeypatch.setattr("certifit.table.table_model.table_blocks", lambda X: table_blocks(X, rows=50))
    parts = run(models, "mass", "mass2", models / "mass.csv", code=1)["rows"]
    monkeypatch.undo()
    whole = run(models, "mass", "mass2", models / "mass.csv", code=1)["rows"]
    numbers = ("compared", "changed", "difference", "difference_error", "largest_move")
    assert [parts[name] for name in numbers] == pytest.approx([whole[name] for name in numbers], rel=1e-9)
    assert [line["row"] for line in parts["moved"]] == [line["row"] for line in whole["moved"]]


def test_another_penalty_and_the_rows_that_it_moves(models):
    found = run(models, "usual", "penalised", penguins_path(), code=1)
    assert found["settings"] == ["C: 1.0 -> 0.01"]
    assert not found["same_problem"]
    rows = found["rows"]
    assert rows["compared"] == 344
    assert rows["changed"] > 0
    assert rows["difference"] == pytest.approx(rows["scores"][1] - rows["scores"][0])
    assert all(line["a"] != line["b"] for line in rows["moved"])


def test_rows_and_columns_are_named(models):
    fewer = run(models, "usual", "fewer", code=1)
    assert "rows: 344 -> 300" in fewer["data"]
    assert "column 'sex' is gone" in run(models, "usual", "narrow", code=1)["data"]
    assert "column 'sex' is new" in run(models, "narrow", "usual", code=1)["data"]


def test_quantities_move_by_amounts(models):
    found = run(models, "mass", "mass2", models / "mass.csv", code=1)
    assert found["settings"] == ["alpha: 1.0 -> 1.5"]
    assert found["rows"]["score"] == "mean absolute error"
    assert found["rows"]["largest_move"] > 0
    out = (
        CliRunner()
        .invoke(app, ["diff", str(models / "mass"), str(models / "mass2"), str(models / "mass.csv")])
        .output
    )
    assert "rows are judged otherwise" in out


def test_bad_input_is_refused(models):
    assert CliRunner().invoke(app, ["diff", str(models / "usual"), str(penguins_path())]).exit_code == 2
