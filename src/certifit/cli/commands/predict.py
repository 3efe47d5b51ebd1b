"""`certifit predict`: the class of each row of a table, with probabilities, as CSV."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from certifit.cli.files import check_writable, read_table
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen


def predictions_csv(model_path: Path, table_path: Path, output: Path | None, screen: Screen) -> bytes:
    """CSV with the prediction and the probability of each class, one line for each row of the table."""
    if output is not None:
        for source in (table_path, model_path):
            check_writable(output, source)
    model = load_table_model(model_path)
    with warnings_as_notes(screen):
        matrix, _ = model.encode(read_table(table_path))
    columns = {"prediction": pa.array(model.model_.predict(matrix))}
    for label, p in zip(model.classes_, model.model_.predict_proba(matrix).T, strict=True):
        columns[f"probability {label}"] = pa.array(p)
    buffer = io.BytesIO()
    csv.write_csv(pa.table(columns), buffer, csv.WriteOptions(quoting_style="needed", quoting_header="needed"))
    return buffer.getvalue()
