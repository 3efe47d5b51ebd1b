"""Which errors are the input's and what to say; any other error is a bug and keeps its traceback."""

from __future__ import annotations

from certifit.exceptions import DataError, NoSolutionError, SourceChangedError


def words(error: Exception) -> str | None:
    """The message for the user, or None if this is not the input's fault."""
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename else what
    if isinstance(error, DataError | NoSolutionError | SourceChangedError | FloatingPointError):
        return str(error)
    return None
