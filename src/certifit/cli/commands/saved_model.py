"""What is done with a saved model: check its certificate again, predict."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

import certifit
from certifit.cli.files import check_writable, read_table
from certifit.cli.screen import Screen
from certifit.exceptions import DataError
from certifit.store import load
from certifit.table.table_classifier import TableClassifier


def run_audit(model_path: Path, table_path: Path, screen: Screen) -> bool:
    """Recompute the certificate from the table; True if it holds."""
    model = _load(model_path)
    with _notes(screen):
        data = model.encode_labelled(read_table(table_path))
    same = data.fingerprint == model.fingerprint_
    if same:
        screen.say(f"{table_path.name} has the {model.n_rows_:,} rows the model was fitted to")
    else:
        screen.say(
            f"{table_path.name} differs from the table the model was fitted to "
            f"({data.n_rows:,} rows here, {model.n_rows_:,} there): the claim below is about this table"
        )
    certificate = certifit.audit(model.model_, data)
    screen.certificate(certificate)
    screen.document({"same_table": same, "rows": data.n_rows, "certificate": certificate.to_dict()})
    return certificate.holds


def predictions_csv(model_path: Path, table_path: Path, output: Path | None, screen: Screen) -> bytes:
    """CSV with the prediction and the probability of each class, one line for each row of the table."""
    if output is not None:
        for source in (table_path, model_path):
            check_writable(output, source)
    model = _load(model_path)
    with _notes(screen):
        matrix, _ = model.encode(read_table(table_path))
    columns = {"prediction": pa.array(model.model_.predict(matrix))}
    for label, p in zip(model.classes_, model.model_.predict_proba(matrix).T, strict=True):
        columns[f"probability {label}"] = pa.array(p)
    buffer = io.BytesIO()
    csv.write_csv(pa.table(columns), buffer, csv.WriteOptions(quoting_style="needed", quoting_header="needed"))
    return buffer.getvalue()


@contextmanager
def _notes(screen: Screen) -> Iterator[None]:
    """Warnings become notes: what the table has that training did not see."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        screen.note(str(warning.message).removeprefix("TableClassifier: "))


def _load(path: Path) -> TableClassifier:
    model = load(path)
    if not isinstance(model, TableClassifier):
        raise DataError(
            got=f"a saved {type(model).__name__}",
            wanted="a model written by `certifit fit`",
            fix="Other models are checked in Python: certifit.audit(certifit.load(path), X, y).",
        )
    return model
