"""The page of cost against rows and columns says what was measured."""

import json

from benchmarks.reporting import RESULTS
from benchmarks.scaling_page import PAGE, write_page


def costs(seconds, mb):
    fit = {"seconds": seconds, "passes": 3, "mb": mb, "sum_bytes": 500}
    return {"fit": fit, "answer": {**fit, "mb": 7.0}, "audit": {**fit, "passes": 4, "mb": 8.0}}


def test_a_record_becomes_tables_and_a_picture(tmp_path):
    sizes = {"10000 x 4": costs(0.1, 20.0), "100000 x 4": costs(0.2, 20.0), "1000000 x 4": costs(1.0, 20.0)}
    record = {
        "machine": {"date": "2026-01-02T03:04", "cpu": "a processor", "cores": 2},
        "costs": {
            "Flat": {**sizes, "10000000 x 4": costs(9.0, 25.0), "100000 x 16": costs(0.4, 20.0)},
            "Grows": {**sizes, "10000000 x 4": costs(19.0, 200.0)},
            "Refuses": {"10000 x 4": {"fit": {"error": "DataError: no"}}},
        },
    }
    page, picture = tmp_path / "scaling.md", tmp_path / "scaling.svg"
    write_page(record, page, picture)
    text = page.read_text()
    assert "| `Flat` | 0.1 | 0.2 | 1 | 9 | 3 | 1 | 1 | 4 | 500 |" in text
    assert "| `Flat` | 20 | 25 | 7 | 7 | 8 | 8 |" in text
    assert "| `Refuses` |  |  |  |  |  |  |  |  |  |" in text
    assert "the time of 1 of 2 fits grows at most twelvefold; beyond that: `Grows` (19)" in text
    assert "Of 6 peaks measured at 10⁶ and at 10⁷ rows, 5 are flat; it grows" in text
    assert "by so many bytes a row, for fit of `Grows` (" in text
    assert picture.read_text().startswith("<?xml")


def test_the_page_is_that_of_the_record(tmp_path):
    write_page(
        json.loads((RESULTS / "scaling_rows.json").read_text()), tmp_path / "page.md", tmp_path / "picture.svg"
    )
    assert (tmp_path / "page.md").read_text() == PAGE.read_text()
