"""In which encoding the text of a file is: by its first bytes, and by all of them where these say nothing.

Text is UTF-8 unless a byte order mark or zero bytes beside every letter say UTF-16 or UTF-32. Text that is not UTF-8
is taken for Windows-1252, which holds Latin-1's letters, where all its bytes have a meaning there and hardly any
of them are UTF-8: a UTF-8 file with a few damaged bytes is not. What was taken for granted is said in a warning.
The whole file is decoded once, before anything is learnt from it: what a later pass would not understand is refused
here.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from certifit.exceptions import DataError
from certifit.rows.sources.table import FileStamp

ASSUMED = "cp1252"
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class EncodingTuning:
    """How much of a file is looked at."""

    head: int = 2**16  # bytes that decide between UTF-8 and UTF-16
    piece: int = 2**22  # bytes decoded at a time
    many_zeros: float = 0.3  # of every second byte: UTF-16 of text that is mostly Latin
    few_zeros: float = 0.01  # of the others


@dataclass(frozen=True)
class EncodedPath(os.PathLike[str]):
    """A path, and the encoding of the text in its files."""

    path: str
    encoding: str

    def __fspath__(self) -> str:
        return self.path


@dataclass(frozen=True)
class TextEncoding:
    """The encoding of a file."""

    name: str  # as Python's codecs know it
    assumed: bool = False  # whether nothing but the failure of UTF-8 speaks for it

    def words(self, path: Path) -> str:
        """What was taken for granted."""
        return f"{path.name!r} is not UTF-8: read as Windows-1252 (--encoding, or pandas, names another)"


def check_encoding(name: str) -> str:
    """The name of an encoding of text as Python knows it; any other name is refused."""
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise DataError(
            got=f"the encoding {name!r}", wanted="one that Python knows: utf-8, cp1252, latin-1, cp1251, shift_jis, …"
        ) from None


@lru_cache(maxsize=256)
def find_encoding(stamp: FileStamp, asked: str | None = None) -> TextEncoding:
    """The encoding that was asked for, or that the bytes of a file speak for; bytes that mean nothing are refused."""
    found = TextEncoding(asked or _by_first_bytes(stamp.path))
    valid, broken, line = _decoded(stamp.path, found.name)
    if not broken:
        return found
    if asked is None and found.name == "utf-8" and broken > valid:
        found = TextEncoding(ASSUMED, assumed=True)
        broken, line = _decoded(stamp.path, ASSUMED)[1:]
        if not broken:
            return found
    kind = "UTF-8 or Windows-1252" if found.assumed else found.name.upper()
    raise DataError(
        got=f"{str(stamp.path)!r} with bytes that are not {kind} text, the first of them in line {line}",
        wanted="text in one encoding",
        fix="Name its encoding: --encoding cp1251, for instance; in Python pass the frame of "
        "pandas.read_csv(..., encoding=...). Where single bytes are damaged, correct them.",
    )


def _by_first_bytes(path: Path, tuning: EncodingTuning = EncodingTuning()) -> str:
    """UTF-16 or UTF-32 where a mark, or zeros in every second place, say so; else UTF-8."""
    with pa.input_stream(path) as file:
        head = file.read(tuning.head)
    for mark, name in MARKS:
        if head.startswith(mark):
            return name
    first, second = (part.count(0) / max(len(part), 1) for part in (head[::2], head[1::2]))
    if second > tuning.many_zeros and first < tuning.few_zeros:
        return "utf-16-le"
    if first > tuning.many_zeros and second < tuning.few_zeros:
        return "utf-16-be"
    return "utf-8"


def _decoded(path: Path, encoding: str) -> tuple[int, int, int]:
    """How many characters beyond ASCII there are, how many bytes stand for none, and the first such line."""
    valid, broken, lines, line = 0, 0, 1, 0
    for text in _texts(path, encoding):
        if not text.isascii():
            lost = text.count(_LOST)
            valid += len(text) - len(text.encode("ascii", "ignore")) - lost
            if lost and not broken:
                line = lines + text[: text.index(_LOST)].count("\n")
            broken += lost
        lines += text.count("\n")
    return valid, broken, line


def _texts(path: Path, encoding: str, tuning: EncodingTuning = EncodingTuning()) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(_MARKING)
    with pa.input_stream(path) as file:
        while content := file.read(tuning.piece):
            yield decoder.decode(content)
    yield decoder.decode(b"", final=True)


# Half of a pair of UTF-16: no text that was decoded holds it.
_LOST, _MARKING = "\udcff", "certifit.mark_lost_bytes"


def _mark_lost_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _LOST, error.end


codecs.register_error(_MARKING, _mark_lost_bytes)
