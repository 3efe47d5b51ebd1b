"""A file that remembers the passes of a fit: after the program was killed, the same call goes on from the last one.

It begins with a line `certifit-passes FORMAT` and a line of JSON that says of which fit it is; no other fit goes on
from it. Each pass is a record of its length, its hash, the hash of what was asked and the answer; a record that was
cut short counts as not there. Answers are numbers, arrays and records of certifit: nothing else is read, and no code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, TypeVar

from certifit.exceptions import DataError
from certifit.files.atomic_file import write_atomically

T = TypeVar("T")

FORMAT = 1
HEADER = f"certifit-passes {FORMAT}\n".encode()
PROTOCOL = 4  # of pickle; later ones make arrays that cannot be written to
DIGEST = hashlib.sha256().digest_size
UNNAMED = bytes(DIGEST)  # stands for a question that cannot be told from others: such passes are made again


class KeptPass(NamedTuple):
    """A record of the file."""

    asked: bytes  # the hash of the question
    answer: bytes  # empty where it cannot be kept, and is asked for again
    end: int  # of the record, in the file


class PassLog:
    """The passes of one fit, which is known by words such as 'rows' and 'settings' and a text or hash for each.

    `seed` is a number that the first run of the fit drew, and later runs find again.
    """

    def __init__(self, path: str | os.PathLike[str], fit: Mapping[str, str], seed: int) -> None:
        self.path, self.fit, self.seed = Path(path), dict(fit), seed
        self._before: Iterator[KeptPass] = iter(())  # records of an earlier run, not asked for yet
        self._end = 0  # of the last record that this run has read or written
        self._file: IO[bytes] | None = None

    def __enter__(self) -> PassLog:
        if not self.path.exists():
            self._begin()
        self._open()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Close the file; a fit that is complete leaves none."""
        assert self._file is not None
        self._file.close()
        if error is None:
            self.path.unlink(missing_ok=True)

    def found(self, question: Any, make: Callable[[], T]) -> T:
        asked = _question_digest(question)
        before = next(self._before, None)
        if before is not None and before.asked == asked:
            self._end = before.end
            return self._decode(before.answer) if before.answer else make()
        self._before = iter(())  # this run goes another way, or further
        answer = make()
        content = b"" if asked == UNNAMED else _encode(answer)
        self._append(asked, content)
        # As it will be read: also of which objects it is made is then the same in every run, and so are questions.
        return self._decode(content) if content else answer

    def _begin(self) -> None:
        """Write the lines that say of which fit it is, all of them or nothing."""
        write_atomically(self.path, HEADER + json.dumps({"fit": self.fit, "seed": self.seed}).encode() + b"\n")

    def _open(self) -> None:
        self._file = open(self.path, "rb+")  # noqa: SIM115  (closed when the fit ends)
        if self._file.readline(len(HEADER)) != HEADER:
            self._refuse("which is no checkpoint that this version of certifit reads")
        try:
            head = json.loads(self._file.readline())
            fit, self.seed = dict(head["fit"]), int(head["seed"])
        except (ValueError, KeyError, TypeError):
            self._refuse("a checkpoint whose first lines are damaged")
        other = [name for name in self.fit if fit.get(name) != self.fit[name]]
        if other:
            self._refuse(f"a checkpoint of a fit with other {' and other '.join(other)}")
        self._end = self._file.tell()
        self._before = _records(self.path, self._end)

    def _append(self, asked: bytes, answer: bytes) -> None:
        """Write a record behind the last one that this run has read or written."""
        assert self._file is not None
        body = asked + answer
        self._file.seek(self._end)
        self._file.truncate()
        self._file.write(len(body).to_bytes(8, "little") + hashlib.sha256(body).digest() + body)
        self._file.flush()
        self._end = self._file.tell()

    def _decode(self, answer: bytes) -> Any:
        try:
            return _Reader(io.BytesIO(answer)).load()
        except (NotKept, pickle.UnpicklingError):
            self._refuse("a checkpoint with answers that no fit gives")

    def _refuse(self, what: str) -> NoReturn:
        if self._file is not None:
            self._file.close()
        raise DataError(
            got=f"{str(self.path)!r}, {what}",
            wanted="the checkpoint of this very fit, or no file",
            fix="Make the call that wrote it, or name another file, or delete this one to begin anew.",
        )


class NotKept(Exception):
    """An answer that is no number, array or record of certifit."""


def _records(path: Path, start: int) -> Iterator[KeptPass]:
    """The passes in a file, up to the first that is not whole."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(start)
        while True:
            length, digest = int.from_bytes(file.read(8), "little"), file.read(DIGEST)
            if length < DIGEST or length > size - file.tell():
                return
            body = file.read(length)
            if hashlib.sha256(body).digest() != digest:
                return
            yield KeptPass(body[:DIGEST], body[DIGEST:], file.tell())


def _question_digest(question: Any) -> bytes:
    """A hash of what a pass is asked, from its content alone."""
    try:
        return hashlib.sha256(pickle.dumps(question, PROTOCOL)).digest()
    except (pickle.PicklingError, AttributeError, TypeError):  # functions that have no name
        return UNNAMED


def _encode(answer: Any) -> bytes:
    """The bytes of an answer; none where it cannot be read back."""
    content = pickle.dumps(answer, PROTOCOL)
    try:
        _Reader(io.BytesIO(content)).load()
    except NotKept:
        return b""
    return content


class _Reader(pickle.Unpickler):
    """Reads arrays, numbers and certifit's own records; any other name is refused before it is looked up."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _NUMPY:
            return super().find_class(module, name)
        if module.startswith("certifit.") and name.isidentifier():
            found = super().find_class(module, name)
            if isinstance(found, type) and (is_dataclass(found) or issubclass(found, (tuple, float))):
                return found
        raise NotKept


_NUMPY = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
}
