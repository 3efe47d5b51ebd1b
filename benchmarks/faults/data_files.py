"""Tables that nobody should have made: cut, scrambled, endless, or made to harm."""

from __future__ import annotations

import gzip
import io
import resource
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.faults.trials import Fault, FaultFinding, Trial

MOST_MEMORY = 1_000_000_000  # bytes that reading a hostile table may take


@contextmanager
def hostile_tables(folder: Path) -> Iterator[Trial]:
    """Fit a table that is damaged or made to harm: a fit, or a refusal in words, in bounded memory."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    import certifit

    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=300) for j in range(4)}
    table = pa.table({**columns, "y": (columns["x0"] > 0).astype(int)})
    parquet, text = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet, row_group_size=50)
    pa.csv.write_csv(table, text)

    def trial(rng: np.random.Generator) -> str:
        done, path, content = HostileTable(parquet.getvalue(), text.getvalue(), rng).make()
        file = folder / path
        file.write_bytes(content)
        before = _most_memory()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = certifit.TableClassifier() if rng.random() < 0.3 else certifit.GaussianNB()
                model.fit(file, y="y")
        except (certifit.DataError, certifit.NoSolutionError, OSError) as error:
            if len(str(error)) > 2000:
                raise FaultFinding(f"{done}: a refusal of {len(str(error))} characters") from error
            return "refused in words"
        except (Exception, RecursionError, MemoryError) as error:
            raise FaultFinding(
                f"{done}: {type(error).__module__}.{type(error).__name__}: {str(error)[:150]}"
            ) from error
        finally:
            file.unlink()
            if (more := _most_memory() - before) > MOST_MEMORY:
                raise FaultFinding(f"{done}: {more / 1e6:.0f} MB for {len(content)} bytes")
        return "fitted"

    yield trial


def _most_memory() -> int:
    """The most bytes that this program has held."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class HostileTable:
    """A table that is damaged or made to harm: the name of a file, and its bytes."""

    def __init__(self, parquet: bytes, text: bytes, rng: np.random.Generator) -> None:
        self.parquet, self.text, self.rng = parquet, text, rng

    def make(self) -> tuple[str, str, bytes]:
        """The name of what was done, of the file, and its bytes; what takes long is done seldom."""
        long = self.rng.random() < 0.1
        kinds = (self.endless_line, self.many_columns, self.packed_zeros) if long else (
            self.flipped_parquet, self.cut_parquet, self.flipped_csv, self.cut_csv, self.scrambled_lines,
            self.other_separators, self.noise, self.odd_words,
        )  # fmt: skip
        kind = kinds[self.rng.integers(len(kinds))]
        return kind.__name__, *kind()

    def _flipped(self, content: bytes) -> bytes:
        changed = bytearray(content)
        for place in self.rng.integers(len(changed), size=self.rng.integers(1, 6)):
            changed[place] ^= 1 << self.rng.integers(8)
        return bytes(changed)

    def flipped_parquet(self) -> tuple[str, bytes]:
        return "t.parquet", self._flipped(self.parquet)

    def cut_parquet(self) -> tuple[str, bytes]:
        return "t.parquet", self.parquet[: self.rng.integers(len(self.parquet))]

    def flipped_csv(self) -> tuple[str, bytes]:
        return "t.csv", self._flipped(self.text)

    def cut_csv(self) -> tuple[str, bytes]:
        return "t.csv", self.text[: self.rng.integers(len(self.text))]

    def scrambled_lines(self) -> tuple[str, bytes]:
        lines = self.text.splitlines()
        self.rng.shuffle(lines)
        return "t.csv", b"\n".join(lines)

    def other_separators(self) -> tuple[str, bytes]:
        mark = (b";", b"\t", b"|", b"\x00", b",,", b'"', b"\r")[self.rng.integers(7)]
        return "t.csv", self.text.replace(b",", mark, int(self.rng.integers(1, 300)))

    def noise(self) -> tuple[str, bytes]:
        name = ("t.csv", "t.parquet", "t.csv.gz", "t.tsv")[self.rng.integers(4)]
        return name, self.rng.bytes(int(self.rng.integers(0, 5000)))

    def endless_line(self) -> tuple[str, bytes]:
        return "t.csv", self.text[:200] + b"9" * 3_000_000

    def many_columns(self) -> tuple[str, bytes]:
        d = int(self.rng.integers(2000, 6000))
        head = ",".join([*(f"x{j}" for j in range(d)), "y"])
        return "t.csv", f"{head}\n{'1,' * d}0\n{'2,' * d}1\n{'3,' * d}1\n".encode()

    def packed_zeros(self) -> tuple[str, bytes]:
        """A few kilobytes of gzip that unpack to hundreds of megabytes of one line."""
        content = io.BytesIO()
        with gzip.GzipFile(fileobj=content, mode="wb") as file:
            file.write(b"x0,y\n")
            for _ in range(200):
                file.write(b"0" * 1_000_000)
        return "t.csv.gz", content.getvalue()

    def odd_words(self) -> tuple[str, bytes]:
        words = (b"<script>alert(1)</script>", b"=cmd|'/c calc'!A0", b"\x1b[31mred\x1b[0m", b"\xff\xfe", b"1e999",
                 b"nan", b"-0", b"99999999999999999999999", b"", b"\xe2\x80\xae", b'""', b"None")  # fmt: skip
        lines = [line.split(b",") for line in self.text.splitlines()]
        for _ in range(self.rng.integers(1, 10)):
            line = lines[self.rng.integers(len(lines))]
            line[self.rng.integers(len(line))] = words[self.rng.integers(len(words))]
        return "t.csv", b"\n".join(b",".join(line) for line in lines)


HOSTILE_TABLES = Fault("hostile_tables", "tables that are damaged or made to harm", 1000, hostile_tables)
