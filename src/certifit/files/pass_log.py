"""A file that remembers the passes of a fit: after the program was killed, the same call goes on from the last one.

It begins with a line `certifit-passes FORMAT` and a line of JSON that says of which fit it is; no other fit goes on
from it. Each pass is a record of its length, its hash, the hash of what was asked and the answer; a record that was
cut short counts as not there. Answers are numbers, arrays, records and fitted models of certifit: nothing else is
read, and no code. Where a loop stands that is no sequence of passes is a file of its own beside it, named `….loop`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, NoReturn, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from certifit.exceptions import DataError, NoSolutionError
from certifit.files.atomic_file import open_atomically, write_atomically
from certifit.files.checkpoint import DAMAGE, CheckpointTuning, error_words
from certifit.rows.sources.regular_file import check_regular

T = TypeVar("T")

FORMAT = 2
HEADER = f"certifit-passes {FORMAT}\n".encode()
LOOP_HEADER = f"certifit-loop {FORMAT}\n".encode()
PROTOCOL = 4  # of pickle; later ones make arrays that cannot be written to
MOST_WORDS = 2**20  # bytes of the line that says of which fit it is
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
        self._loops = 0  # begun since that record
        self._goes_on = False  # whether anything of an earlier run was used

    @property
    def loop_path(self) -> Path:
        """The file that says where a loop stands."""
        return self.path.with_name(self.path.name + ".loop")

    def __enter__(self) -> PassLog:
        if self.path.exists():
            check_regular(self.path)
        else:
            self._begin()
        self._open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        """Close the file; a fit that is complete leaves none."""
        assert self._file is not None
        self._file.close()
        if error is None:
            self.path.unlink(missing_ok=True)
            self.loop_path.unlink(missing_ok=True)
        elif self._goes_on and isinstance(error, DAMAGE) and not isinstance(error, DataError | NoSolutionError):
            self._refuse(f"from which the fit went on, but not far ({error_words(error)})")

    def found(self, question: Any, make: Callable[[], T]) -> T:
        asked = _question_digest(question)
        before = next(self._before, None)
        if before is not None and before.asked == asked:
            self._end, self._loops = before.end, 0
            self._goes_on = True
            return self._decode(before.answer) if before.answer else make()
        self._before = iter(())  # this run goes another way, or further
        answer = make()
        self._before = iter(())  # also where a loop in it found where it stood
        content = b"" if asked == UNNAMED else _encode(answer)
        self._append(asked, content)
        self._loops = 0
        # As it will be read: also of which objects it is made is then the same in every run, and so are questions.
        return self._decode(content) if content else answer

    def loop(self, start: Any) -> KeptLoop:
        """A loop is known by its fit, by the passes before it, by its number after these and by where it begins."""
        self._loops += 1
        asked = _question_digest((start, self._end, self._loops, sorted(self.fit.items()), self.seed))
        return KeptLoop(self, asked)

    def go_on_at(self, end: int) -> bool:
        """Skip the passes up to a place in the file; false where it does not reach as far."""
        if end > self.path.stat().st_size:
            return False
        self._before, self._end, self._goes_on = _records(self.path, end), end, True
        return True

    @property
    def end(self) -> int:
        """Where the next record will be."""
        return self._end

    def _begin(self) -> None:
        """Write the lines that say of which fit it is, all of them or nothing."""
        write_atomically(self.path, HEADER + self._head())

    def _head(self) -> bytes:
        head = {"fit": self.fit, "seed": self.seed, "hash": _head_digest(self.fit, self.seed)}
        return json.dumps(head).encode() + b"\n"

    def _open(self) -> None:
        self._file = open(self.path, "rb+")  # noqa: SIM115  (closed when the fit ends)
        if self._file.readline(len(HEADER)) != HEADER:
            self._refuse("which is no checkpoint that this version of certifit reads")
        try:
            head = json.loads(self._file.readline(MOST_WORDS))
            fit, self.seed = dict(head["fit"]), int(head["seed"])
            if head["hash"] != _head_digest(fit, self.seed) or not 0 <= self.seed < 2**32:
                raise ValueError
        except DAMAGE:
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
        except (NotKept, pickle.UnpicklingError, *DAMAGE):
            self._refuse("a checkpoint with answers that no fit gives")

    def _refuse(self, what: str) -> NoReturn:
        if self._file is not None:
            self._file.close()
        raise DataError(
            got=f"{str(self.path)!r}, {what}",
            wanted="the checkpoint of this very fit, or no file",
            fix="Make the call that wrote it, or name another file, or delete this one to begin anew.",
        )


class KeptLoop:
    """Where one loop stands: a file that is replaced as a whole, now and then.

    A line `certifit-loop FORMAT`, the hash of the loop, where the passes before it end, a pickle, and a hash of all.
    """

    tuning: ClassVar[CheckpointTuning] = CheckpointTuning()

    def __init__(self, log: PassLog, asked: bytes) -> None:
        self.log, self.asked, self.path = log, asked, log.loop_path
        self._due = time.monotonic() + self.tuning.seconds

    def stood(self) -> Any:
        if self.asked == UNNAMED or not self.path.is_file():
            return None
        with open(self.path, "rb") as file:
            head = file.read(len(LOOP_HEADER) + DIGEST + 8)
            if not head.startswith(LOOP_HEADER + self.asked) or not _is_whole(file):
                return None
            file.seek(len(head))
            try:
                state = _Reader(file).load()
            except (NotKept, pickle.UnpicklingError, *DAMAGE):
                return None
        return state if self.log.go_on_at(int.from_bytes(head[-8:], "little")) else None

    def note(self, state: Callable[[], Any]) -> None:
        if self.asked == UNNAMED or time.monotonic() < self._due:
            return
        begin = time.monotonic()
        with open_atomically(self.path, "where the fit stands") as file:
            hashed = HashedFile(file)
            hashed.write(LOOP_HEADER + self.asked + self.log.end.to_bytes(8, "little"))
            pickle.dump(state(), hashed, PROTOCOL)
            file.write(hashed.hash.digest())
        end = time.monotonic()
        self._due = end + max(self.tuning.seconds, (end - begin) / self.tuning.share)


class HashedFile:
    """A file and the hash of what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.hash = file, hashlib.sha256()

    def write(self, content: Any) -> int:
        self.hash.update(content)
        return self.file.write(content)


def _is_whole(file: IO[bytes]) -> bool:
    """Whether a file ends with the hash of what it holds."""
    left = file.seek(0, os.SEEK_END) - DIGEST
    found = hashlib.sha256()
    file.seek(0)
    while left > 0:
        content = file.read(min(left, 1 << 20))
        found.update(content)
        left -= len(content)
    return left == 0 and file.read(DIGEST) == found.digest()


class NotKept(Exception):
    """An answer that is no number, array, record or model of certifit."""


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


def _head_digest(fit: Mapping[str, str], seed: int) -> str:
    return hashlib.sha256(json.dumps([fit, seed], sort_keys=True).encode()).hexdigest()


def _question_digest(question: Any) -> bytes:
    """A hash of what a pass is asked, from its content alone."""
    try:
        return hashlib.sha256(pickle.dumps(question, PROTOCOL)).digest()
    except (pickle.PicklingError, AttributeError, TypeError):  # functions that have no name
        return UNNAMED


def _encode(answer: Any) -> bytes:
    """The bytes of an answer; none where it cannot be read back."""
    try:
        content = pickle.dumps(answer, PROTOCOL)
        _Reader(io.BytesIO(content)).load()
    except (NotKept, pickle.PicklingError, AttributeError, TypeError):  # another library's model, say
        return b""
    return content


class _Reader(pickle.Unpickler):
    """Reads arrays, numbers, certifit's records and its models; any other name is refused before it is looked up."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy", "ndarray"):
            return _AN_ARRAY
        if (module, name) in _NUMPY:
            return _empty_array if name == "_reconstruct" else super().find_class(module, name)
        if module.startswith("certifit.") and name.isidentifier():
            found = super().find_class(module, name)
            if isinstance(found, type) and (is_dataclass(found) or issubclass(found, (tuple, float, BaseEstimator))):
                return found
        raise NotKept


_AN_ARRAY = "numpy.ndarray"  # stands for the class, which a file could ask for an array of any size


def _empty_array(kind: Any, shape: Any, _: Any) -> Any:
    """The array without entries with which NumPy begins to read one."""
    if kind != _AN_ARRAY or shape != (0,):
        raise NotKept
    return np.empty(0, np.int8)


_NUMPY = {
    ("numpy", "dtype"),
    ("numpy", "record"),  # an array of nodes of trees
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
}
