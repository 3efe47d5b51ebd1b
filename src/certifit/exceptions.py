"""Errors that say what was got, what was wanted and what to do; warnings that point at the caller's line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import TYPE_CHECKING

from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from certifit.core.certificate import Certificate


def _sentence(got: str, wanted: str, fix: str) -> str:
    return f"Got {got}; wanted {wanted}." + (f" {fix}" if fix else "")


class DataError(ValueError):
    """The input cannot be used as it is."""

    def __init__(self, *, got: str, wanted: str, fix: str = "") -> None:
        super().__init__(_sentence(got, wanted, fix))
        self.got, self.wanted, self.fix = got, wanted, fix

    def __reduce__(self) -> tuple[object, tuple[type[DataError], dict[str, str]]]:
        return _rebuild, (type(self), {"got": self.got, "wanted": self.wanted, "fix": self.fix})


def _rebuild(kind: type[DataError], fields: dict[str, str]) -> DataError:
    return kind(**fields)


class NotANumberError(DataError, FloatingPointError):
    """The objective overflowed or vanished."""


class NotAvailableError(DataError, AttributeError):
    """This fit does not have that attribute; `hasattr` says so too."""


class NotSupportedError(DataError, NotImplementedError):
    """scikit-learn's class does not do this either, and says so by a NotImplementedError."""


class SourceChangedError(RuntimeError):
    """A file changed between two passes over it; sums over the two versions must not be mixed."""


class NoSolutionError(ValueError):
    """The problem has no solution; `certificate` (kind `impossible`) carries the witness."""

    def __init__(self, message: str, certificate: Certificate) -> None:
        super().__init__(message)
        self.certificate = certificate

    def __reduce__(self) -> tuple[object, tuple[str, Certificate]]:
        return NoSolutionError, (str(self), self.certificate)


class InseparableWarning(UserWarning):
    """Two classes cannot be separated; `certificate` (kind `impossible`), where there is one, carries the witness."""

    def __init__(self, message: str, certificate: Certificate | None = None) -> None:
        super().__init__(message)
        self.certificate = certificate

    def __reduce__(self) -> tuple[object, tuple[str, Certificate | None]]:
        return InseparableWarning, (str(self), self.certificate)


class CertificateWarning(ConvergenceWarning):
    """A fit's certificate does not hold; the message states the gap that is proved."""


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called certifit; frames of certifit, scikit-learn and joblib do not count."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def tell_reader(line: str) -> None:
    """Print a line to standard error where somebody reads it: on a terminal or in a notebook."""
    if sys.stderr.isatty() or in_notebook():
        print(line, file=sys.stderr)


def in_notebook() -> bool:
    """Say whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("certifit", "sklearn", "joblib")
