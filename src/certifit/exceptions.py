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
    return visible(f"Got {got}; wanted {wanted}." + (f" {fix}" if fix else ""))


def visible(text: str) -> str:
    """Text with control characters from data as their escapes: a terminal would obey them."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


class DataError(ValueError):
    """The input cannot be used as it is: the message says what was got, what was wanted and what to do.

    Attributes
    ----------
    got, wanted, fix : the three parts of the message

    >>> import certifit
    >>> try:
    ...     certifit.PCA(1).fit([[1.0, 2.0]])
    ... except certifit.DataError as error:
    ...     print(error.wanted)
    more than 1 sample: a variance needs two
    """

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
    """A file changed between two passes over it; sums over the two versions must not be mixed.

    >>> import certifit, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pathlib.Path(folder) / "table.csv"
    ...     _ = table.write_text("a,b\\n1,2\\n3,4\\n")
    ...     rows = certifit.as_rows(str(table))
    ...     _ = table.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    ...     certifit.PCA(1).fit(rows)
    Traceback (most recent call last):
    certifit.exceptions.SourceChangedError: Got ...table.csv', which changed or vanished since it was first read; ...
    """


class NoSolutionError(ValueError):
    """The problem has no solution; `certificate` (kind `impossible`) carries the witness.

    >>> import certifit, numpy as np
    >>> try:
    ...     certifit.LogisticRegression(C=np.inf).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    ... except certifit.NoSolutionError as error:
    ...     print(error.certificate.claim)
    the classes are separable: the likelihood rises for ever along the separating direction and has no maximum
    """

    def __init__(self, message: str, certificate: Certificate) -> None:
        super().__init__(message)
        self.certificate = certificate

    def __reduce__(self) -> tuple[object, tuple[str, Certificate]]:
        return NoSolutionError, (str(self), self.certificate)


class InseparableWarning(UserWarning):
    """Two classes cannot be separated; `certificate` (kind `impossible`), where there is one, carries the witness.

    >>> import certifit, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = certifit.HardMarginSVC().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> caught[0].message.certificate.claim
    'one convex combination of each class meet in one point: no hyperplane separates the classes'
    """

    def __init__(self, message: str, certificate: Certificate | None = None) -> None:
        super().__init__(message)
        self.certificate = certificate

    def __reduce__(self) -> tuple[object, tuple[str, Certificate | None]]:
        return InseparableWarning, (str(self), self.certificate)


class CertificateWarning(ConvergenceWarning):
    """A fit's certificate does not hold; the message states the gap that is proved.

    It is scikit-learn's ConvergenceWarning too: filters for that one work.

    >>> import certifit, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = certifit.LogisticRegression(max_iter=1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> caught[0].category.__name__, model.certificate_.holds
    ('CertificateWarning', False)
    """


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
