"""Encodings and dialects of CSV files: each case beside the same table in UTF-8 with commas."""

import gzip
import warnings

import pytest

from certifit.exceptions import DataError
from certifit.rows.sources.csv import CsvFile
from certifit.rows.sources.open_source import open_source
from certifit.rows.sources.text_encoding import EncodedPath, check_encoding

TEXT = "x;näme;y\n" + "".join(f"{i};{'äöé€'[i % 4]};{i % 2}\n" for i in range(200))
CYRILLIC = "x,имя\n" + "".join(f"{i},{'абвгЁ'[i % 5]}\n" for i in range(200))


def read(path, content, encoding=None):
    path.write_bytes(content)
    return open_source(str(path) if encoding is None else EncodedPath(str(path), encoding)).whole()


@pytest.fixture
def place(tmp_path):
    return tmp_path / "t.csv"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_marks_and_zero_bytes_say_the_encoding(place, encoding):
    assert read(place, TEXT.encode(encoding)).equals(read(place, TEXT.encode()))


def test_windows_1252_is_read_where_utf_8_fails_and_said_so(place, tmp_path):
    plain = read(place, TEXT.encode())
    with pytest.warns(UserWarning, match=r"'t.csv' is not UTF-8: read as Windows-1252 \(--encoding"):
        assert read(place, TEXT.encode("cp1252")).equals(plain)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(TEXT.encode("cp1252")))
    with pytest.warns(UserWarning, match="Windows-1252"):
        assert CsvFile(packed).whole().equals(plain)


def test_a_byte_far_behind_the_first_block_is_found_before_anything_is_learnt(place):
    text = "x,y\n" + "1,plain text that goes on\n" * 300_000 + "2,é\n"
    with pytest.warns(UserWarning, match="Windows-1252"):
        assert read(place, text.encode("cp1252"))["y"][-1].as_py() == "é"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TEXT.encode()[:-2] + b"\xff\n", "bytes that are not UTF-8 text, the first of them in line 201"),
        ((TEXT + "9;ä").encode()[:-1], "not UTF-8 text, the first of them in line 202"),
        (TEXT.encode("utf-16")[:-1], "not UTF-16 text"),
        (b"x,y\n1,\x81\x8d\n", "not UTF-8 or Windows-1252 text, the first of them in line 2"),
    ],
)
def test_damaged_text_is_refused_with_its_line(place, content, words):
    with pytest.raises(DataError, match=words):
        read(place, content)


def test_an_encoding_that_is_named_is_taken_and_checked(place):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(place, CYRILLIC.encode("cp1251"), "cp1251").equals(read(place, CYRILLIC.encode()))
    with pytest.raises(DataError, match="not UTF-8 text"):
        read(place, CYRILLIC.encode("cp1251"), "utf-8")
    assert check_encoding("Latin-1") == "iso8859-1"
    for name in ("klingon", "hex"):
        with pytest.raises(DataError, match="one that Python knows"):
            check_encoding(name)


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\n" + TEXT,
        '"sep=|"\n' + TEXT.replace(";", "|"),
        "\n\n" + TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r"),
        TEXT.replace(";", "\t"),
        TEXT.replace("x;", '"x";'),
        TEXT.replace(";", "; "),
        TEXT.replace(";", " , "),
        TEXT.replace(";näme;", '; "näme";').replace(";ä;", ';"ä";').replace(";", "; "),
    ],
)
def test_dialects_of_the_same_table(place, text):
    assert read(place, text.encode()).equals(read(place, TEXT.replace(";", ",").encode()))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("price, EUR;amount\n1,5;2\n2;3\n", ["price, EUR", "amount"]),
        ('"price, EUR";amount\n1,5;2\n2,5;3\n', ["price, EUR", "amount"]),
        ('a,b\n1,"{x;y|z}"\n2,"line one\nline, two; x"\n', ["a", "b"]),
        ("P(a|b)\n1\n2\n", ["P(a|b)"]),
        ("a,b;c\n1,2;3\n", ["a", "b;c"]),
    ],
)
def test_the_separator_stands_as_often_in_every_line(place, text, columns):
    assert read(place, text.encode()).column_names == columns
