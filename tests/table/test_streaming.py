"""Tables that are read block by block: the encoding, coefficients and proof are those of the table in memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from certifit import (
    DataError,
    LinearSVC,
    NaiveBayes,
    SourceChangedError,
    TableClassifier,
    TableRegressor,
    audit,
    fit,
    report,
)
from certifit.cli.app import app
from certifit.rows.block import BlockTuning, block_tuning
from certifit.rows.sources.open_source import open_source
from certifit.table.portfolio.digest import fitted_digest
from certifit.table.portfolio.fitting import TableRoles, fit_prepared, prepare, streaming
from certifit.table.portfolio.search import SearchSettings
from certifit.table.streaming.distributed_table import PiecedFiles, PieceTuning, cut_files, learn_pieces
from certifit.table.streaming.learning_pass import StreamPlan
from certifit.table.streaming.memory import StreamTuning, available_bytes, bytes_in_memory, is_large
from certifit.table.streaming.row_sample import RowSample
from certifit.table.streaming.streamed_table import StreamedTable, labelled_rows, streamed_table

N = 200


@pytest.fixture(autouse=True)
def small_blocks():
    """Blocks of 32 rows, so that there are several."""
    with block_tuning(BlockTuning(fixed_rows=32)):
        yield


def mixed():
    """Numbers at an offset, words, dates as text, holes, weights of 0, counts, labels of which some are missing."""
    rng = np.random.default_rng(0)
    kind = np.arange(N) % 3
    x = 1e8 + kind + rng.normal(size=N)
    return pa.table(
        {
            "id": np.arange(N),
            "x": x,
            "z": pa.array(kind - rng.normal(size=N), mask=rng.random(N) < 0.1),
            "word": np.where(rng.random(N) < 0.2, "?", np.array(["a", "b"])[np.arange(N) % 2]),
            "day": [f"{1 + (7 * i) % 28}.02.2024" for i in range(N)],
            "copies": rng.integers(0, 3, N).astype(float),
            "amount": x - 1e8 + rng.normal(size=N),
            "visits": rng.negative_binomial(2, 0.3, N),
            "kind": pa.array(np.array(["low", "middle", "high"])[kind], mask=np.arange(N) % 50 == 7),
        }
    )


@pytest.fixture
def path(tmp_path):
    """The table in two Parquet files, the first with small groups of rows."""
    table = mixed()
    pq.write_table(table.slice(0, 77), tmp_path / "1.parquet", row_group_size=20)
    pq.write_table(table.slice(77), tmp_path / "2.parquet")
    return tmp_path


def streamed(path, target, drop=(), task="auto", **options):
    return streamed_table(path, StreamPlan(target, drop=drop, task=task, **options))


CASES = [
    (TableClassifier(C=0.5), "kind", "copies", ("amount", "visits")),
    (TableClassifier(estimator=NaiveBayes("auto")), "kind", None, ("amount", "visits")),
    (TableRegressor(), "amount", None, ("kind", "visits")),
    (TableRegressor(), "visits", None, ("kind", "amount")),
]


@pytest.mark.parametrize(("model", "target", "weight", "drop"), CASES, ids=["logistic", "bayes", "squares", "counts"])
def test_a_stream_gives_the_model_of_the_table_in_memory(path, model, target, weight, drop):
    memory = model.fit(mixed().drop_columns([*drop]), target, weight)
    found = clone(model).fit(streamed(path, target, drop, model.task, weight=weight))
    assert found.columns_ == memory.columns_
    assert (found.n_rows_, found.unlabelled_, found.weight_) == (memory.n_rows_, memory.unlabelled_, weight)
    assert found.fingerprint_ == memory.fingerprint_
    assert found.certificate_.holds
    assert fitted_digest(found) == fitted_digest(memory)  # the same bits in all that was fitted
    again = audit(found, streamed(path, target, drop, model.task, weight=weight))
    assert again.holds
    assert again.bound == audit(found, mixed().drop_columns([*drop])).bound
    broken = replace(found.columns_[1], centre=found.columns_[1].centre + 1.0)
    found.columns_ = (found.columns_[0], broken, *found.columns_[2:])
    assert not audit(found, streamed(path, target, drop, model.task, weight=weight)).holds


def test_labels_types_and_text_amounts_are_as_in_memory(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    for name, values in {
        "numbers": np.where(x > 0, 3, 7), "booleans": x > 0, "money": [f"${1000 * v:,.2f}" for v in np.exp(x)],
    }.items():  # fmt: skip
        table = pa.table({"x": x + rng.normal(size=60), "y": values})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        data, memory = streamed(tmp_path / f"{name}.parquet", "y"), labelled_rows(table, "y", task="auto")
        assert data.choice == memory.choice
        assert data.encode().load().y.dtype == memory.encode().y.dtype
        np.testing.assert_array_equal(data.encode().load().y, memory.y)


def test_csv_streams_too(tmp_path):
    table = mixed().drop_columns(["amount", "visits", "day"])
    pa.csv.write_csv(table, tmp_path / "t.csv")
    memory = TableClassifier().fit(tmp_path / "t.csv", "kind")
    found = TableClassifier().fit(streamed(tmp_path / "t.csv", "kind"))
    np.testing.assert_array_equal(found.model_.coef_, memory.model_.coef_)


def test_a_support_vector_machine_streams(path):
    data = streamed(path, "kind", ("amount", "visits"))
    model = TableClassifier(estimator=LinearSVC(tol=1e-8)).fit(data)
    memory = TableClassifier(estimator=LinearSVC(tol=1e-8)).fit(mixed().drop_columns(["amount", "visits"]), "kind")
    assert model.certificate_.holds
    np.testing.assert_allclose(model.model_.coef_, memory.model_.coef_, atol=1e-4)
    assert model.score(data) == memory.score(mixed())
    assert "rows drawn at random" in report(model, model.stream(path)).html


def test_what_a_stream_cannot_be_is_said(path, tmp_path):
    with pytest.raises(DataError, match="Did you mean 'kind'"):
        streamed(path, "kinds")
    with pytest.raises(DataError, match="quantity"):
        TableClassifier().fit(streamed(path, "x", task="classification"))
    with pytest.raises(DataError, match="numbers"):
        streamed(path, "kind", task="regression")
    with pytest.raises(DataError, match="missing, negative or no numbers"):
        streamed(path, "kind", weight="z")
    data = streamed(path, "kind")
    pq.write_table(mixed(), tmp_path / "2.parquet")
    with pytest.raises(SourceChangedError):
        TableClassifier().fit(data)


def test_files_are_streamed_where_they_would_take_much_of_the_memory(path):
    table = streamed(path, "kind").source
    assert bytes_in_memory(table) == N * 9 * 24
    assert not is_large(path)
    assert is_large(path, StreamTuning(share=1000 / available_bytes()))
    assert is_large([path / "1.parquet"], StreamTuning(share=1000 / available_bytes()))
    assert not is_large(mixed(), StreamTuning(share=0.0))
    assert not isinstance(labelled_rows(path, "kind"), StreamedTable)


def test_a_sample_depends_on_row_numbers_and_seed_alone():
    rows = pa.table({"row": np.arange(5000)})
    found = []
    for size, seed in ((37, 0), (1000, 0), (1000, 1)):
        sample = RowSample(100, seed)
        for first in range(0, 5000, size):
            sample.add(rows.slice(first, size), np.arange(first, min(first + size, 5000)))
        table, numbers = sample.drawn()
        np.testing.assert_array_equal(table["row"].to_numpy(), numbers)
        found.append(numbers)
    np.testing.assert_array_equal(found[0], found[1])
    assert len(found[0]) == 100
    assert (np.diff(found[0]) > 0).all()
    assert not np.array_equal(found[1], found[2])
    assert found[0].mean() == pytest.approx(2500, abs=4 * 5000 / np.sqrt(12 * 100))


def test_models_are_compared_on_a_sample_and_the_chosen_one_is_fitted_to_all_rows(path):
    """150 of 196 rows are drawn; a replay draws the same, and gives the same bits."""
    kinds = "linear, naive_bayes, additive"
    settings = SearchSettings(1e6, kinds, folds=2, least_sample=150, rows_per_second=0, tunes=False)
    roles = TableRoles("kind", group="copies", drop=("amount", "visits"))
    table = prepare(path, roles, "auto", streaming(settings, asked=True))
    model, assessment = fit_prepared(table, settings)
    ledger = model.search_
    assert (model.n_rows_, ledger.rows_compared, ledger.streamed) == (196, 150, "blocks")
    assert [a.fate for a in ledger.attempts] == ["scored", "scored", "scored", "skipped"]
    assert ledger.attempts[-1].why == "it would hold all rows in memory"
    assert "drawn at random" in assessment.notes[-1]
    numbers = table.drawn
    np.testing.assert_array_equal(table.sample.table["id"].to_numpy(), numbers)
    memory = mixed().drop_columns(["amount", "visits", "copies"])
    assert model.fingerprint_ == type(model)(**model.get_params(deep=False)).fit(memory, "kind").fingerprint_
    again = fit_prepared(prepare(path, roles, "auto", streaming(settings, ledger)), settings, replay=ledger)[0]
    assert fitted_digest(again) == ledger.digest == fitted_digest(model)
    assert model.predict_set(path).shape == (N, 3)


def test_fit_takes_files_block_by_block(path):
    model = fit(path, "amount", model="linear", stream=True, cv=2, drop=["kind", "visits"])
    assert model.search_.streamed == "blocks"
    assert model.certificate_.holds
    assert fit(path, "amount", drop=["kind", "visits"], replay=model).search_.digest == model.search_.digest
    with pytest.raises(DataError, match="block by block"):
        fit(mixed().to_pandas(), "kind", stream=True)


def test_a_file_of_which_every_column_is_left_out_is_refused(path):
    others = [name for name in mixed().column_names if name != "kind"]
    with pytest.raises(DataError, match="no column to learn from beside the target"):
        fit(path, "kind", stream=True, drop=others)


def test_workers_of_a_cluster_learn_and_fit_the_same(path, tmp_path):
    """Threads of this process stand for workers; pieces of 40 rows and more."""
    plan = StreamPlan("kind", "copies", "classification", drop=("amount", "visits"), sample_rows=30)
    source = open_source(path)
    pieces = cut_files(source, PieceTuning(rows=40))
    assert [piece.start for piece in pieces] == [0, 40, 77]
    data, local = learn_pieces(PiecedFiles(source.schema, pieces), plan), streamed_table(path, plan)
    assert data.columns == local.columns
    assert sum(data.piece_rows) == data.n_rows == local.n_rows
    np.testing.assert_array_equal(data.sample_numbers, local.sample_numbers)
    found, wanted = TableClassifier().fit(data), TableClassifier().fit(local)
    np.testing.assert_allclose(found.model_.coef_, wanted.model_.coef_, rtol=1e-10, atol=1e-12)
    assert found.fingerprint_.startswith("pieces:")
    assert audit(found, data).holds
    assert audit(found, local).holds
    pa.csv.write_csv(mixed(), tmp_path / "t.csv")
    squares = fit(tmp_path / "t.csv", "amount", model="linear", cv=2, drop=["kind", "visits"], dask=True)
    assert (squares.search_.streamed, squares.certificate_.holds) == ("dask", True)
    with pytest.raises(DataError, match="a replay without a Dask cluster"):
        fit(tmp_path / "t.csv", "amount", drop=["kind", "visits"], replay=squares)


def test_the_command_works_on_a_cluster(path, tmp_path, monkeypatch):
    from distributed import LocalCluster, default_client

    monkeypatch.chdir(tmp_path)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp://"}
    with LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster:
        words = ["--target", "amount", "--cv", "0", "--no-report", "--drop", "kind", "-o", "m.certifit"]
        run = CliRunner().invoke(app, ["fit", str(path), *words, "--dask", cluster.scheduler_address])
    assert run.exit_code == 0, run.output
    again = CliRunner().invoke(app, ["audit", "m.certifit", str(path)])
    assert again.exit_code == 0, again.output
    assert "has the 200 rows the model was fitted to" in again.output
    run = CliRunner().invoke(app, ["fit", str(path), "--target", "kind", "--dask", "nowhere"])
    assert run.exit_code == 2
    assert "no scheduler answers" in run.output
    with pytest.raises(ValueError, match="No clients found"):  # whom later sums of this process would wait for
        default_client()


def test_the_command_streams_and_its_page_says_so(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--target", "kind", "--stream", "--model", "linear", "--cv", "2", "--drop", "amount", "--drop", "visits"]
    run = CliRunner().invoke(app, ["fit", str(path), *words, "-o", "m.certifit", "--report", "m.html"])
    assert run.exit_code == 0, run.output
    assert "read block by block" in run.output
    assert "kind: high 65, low 66, middle 65" in run.output  # of all rows, not of the sample
    page = (tmp_path / "m.html").read_text()
    assert "rows drawn at random" in page
    monkeypatch.setattr("certifit.cli.files.is_large", lambda source: True)
    again = CliRunner().invoke(app, ["audit", "m.certifit", str(path)])
    assert again.exit_code == 0, again.output
    assert "has the 196 rows the model was fitted to" in again.output
