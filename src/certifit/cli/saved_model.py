"""A model that `certifit fit` wrote, and what its user should know about the table it meets."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certifit.cli.screen import Screen
from certifit.exceptions import DataError
from certifit.store import load
from certifit.table.table_model import TableModel


@contextmanager
def warnings_as_notes(screen: Screen) -> Iterator[None]:
    """Warnings become notes: what the table has that training did not see."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    # The same is seen by every answer of a model: labels, probabilities, intervals.
    for words in dict.fromkeys(str(warning.message) for warning in caught):
        screen.note(words.removeprefix("TableClassifier: ").removeprefix("TableRegressor: "))


def load_table_model(path: Path) -> TableModel:
    """The model in this file; a model of another kind is refused."""
    model = load(path)
    if not isinstance(model, TableModel):
        raise DataError(
            got=f"a saved {type(model).__name__}",
            wanted="a model written by `certifit fit`",
            fix="Other models are checked in Python: certifit.audit(certifit.load(path), X, y).",
        )
    return model
