"""`certifit predict`: the class of each row of a table, with probabilities, or its quantity, as CSV or Parquet."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

from certifit.cli.files import TableFiles, block_source, check_writable
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen, VisibleText
from certifit.store import write_predictions
from certifit.store.predictions import write_csv


class PredictSettings(NamedTuple):
    """What to write beside the prediction."""

    coverage: float | None = None  # of intervals around quantities, or of sets of classes; None for none
    keep: tuple[str, ...] = ()  # columns of the table


def run_predict(
    model_path: Path,
    table_path: TableFiles,
    output: Path | None,
    screen: Screen,
    settings: PredictSettings = PredictSettings(),
) -> None:
    """Write the prediction and the probability of each class, one line for each row of the table."""
    if output is not None:
        check_writable(output, *table_path.paths, model_path)
    model = load_table_model(model_path)
    methods = ["predict", "predict_proba"] if hasattr(model, "predict_proba") else ["predict"]
    if settings.coverage is not None:
        model.unseen_radius(settings.coverage)  # refused before anything is written
        method = "predict_set" if hasattr(model, "predict_set") else "predict_interval"
        setattr(model, method, partial(getattr(model, method), coverage=settings.coverage))
        methods.append(method)
    with warnings_as_notes(screen):
        if output is None:
            out = VisibleText(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
            write_csv(model, block_source(table_path), out, methods, settings.keep)
        else:
            write_predictions(model, block_source(table_path), output, methods=methods, keep=settings.keep)
