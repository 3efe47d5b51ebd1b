"""Models in files of other libraries: ONNX networks, skops files, and pickles where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from certifit.cli.files import TableFiles, read_table
from certifit.exceptions import DataError

PICKLES = (".pkl", ".pickle", ".joblib")


def is_foreign(path: Path) -> bool:
    """Whether a file, by its ending, holds a model that is not certifit's."""
    return path.suffix.lower() in (".onnx", ".skops", *PICKLES)


def load_foreign(path: Path, unsafe_pickle: bool) -> Any:
    """The model in a file of another library; a pickle only where its code may run."""
    kind = path.suffix.lower()
    if kind in PICKLES:
        if not unsafe_pickle:
            raise DataError(
                got=f"{str(path)!r}, a pickle: to load it is to run the code inside it",
                wanted="a file that holds no code (.certifit, .skops, .onnx)",
                fix="--unsafe-pickle loads it all the same, where you trust whoever made it.",
            )
        import joblib

        return _loaded(path, "a pickle of a model", joblib.load)
    if kind == ".onnx":
        from certifit.store.onnx_reader import load_onnx

        return load_onnx(path)
    try:
        from skops import io
    except ImportError:
        raise DataError(
            got=f"{str(path)!r}, and no package skops to read it", wanted="skops", fix="pip install skops"
        ) from None
    untrusted = _loaded(path, "a skops file", lambda file: io.get_untrusted_types(file=file))
    if untrusted:
        raise DataError(
            got=f"{str(path)!r}, whose objects are not scikit-learn's alone: {', '.join(untrusted[:3])}",
            wanted="a model made of scikit-learn's and NumPy's classes: nothing else is loaded from a file",
        )
    return _loaded(path, "a skops file", lambda file: io.load(file, trusted=[]))


def _loaded(path: Path, wanted: str, load: Callable[[Path], Any]) -> Any:
    """What another library reads from a file; whatever it says of a broken one, in a sentence."""
    try:
        return load(path)
    except Exception as error:
        raise DataError(
            got=f"{str(path)!r}, which cannot be read ({type(error).__name__}: {error})", wanted=wanted
        ) from error


def foreign_data(model: Any, table: TableFiles, target: str | None) -> tuple[Any, Any]:
    """X and y of a table for such a model: its columns by name where it knows them, all but the target otherwise."""
    frame = read_table(table).to_pandas()
    if target is None or target not in frame.columns:
        got = "no --target" if target is None else f"--target {target}, which is no column of the table"
        raise DataError(got=f"{got}, for a model that does not say it", wanted=f"one of {', '.join(frame.columns)}")
    y = frame.pop(target)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return frame.to_numpy(), y.to_numpy()
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise DataError(got=f"a table without {missing[0]!r}", wanted="the columns that the model was fitted to")
    return frame[list(names)], y
