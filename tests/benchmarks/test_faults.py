"""Faults, a few trials of each kind that needs no other program: nothing is lost, half-written or silent."""

import signal
from contextlib import nullcontext

import pytest

from benchmarks.faults.command import all_faults
from benchmarks.faults.page import PAGE, add_run, read_record, table, write_page
from benchmarks.faults.trials import FaultFinding, FaultTally

TIMES = {
    "flipped_bits": 40,
    "flipped_checkpoints": 15,
    "hostile_checkpoints": 25,
    "hostile_models": 20,
    "full_disks": 2,
    "hostile_tables": 30,
}


@pytest.fixture
def large_files_are_errors():
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.usefixtures("large_files_are_errors")
@pytest.mark.parametrize("name", TIMES)
def test_nothing_is_found(name, tmp_path):
    tally = FaultTally(all_faults()[name])
    tally.run(tmp_path, seed=1, times=TIMES[name])
    assert tally.findings == []
    assert tally.ends.total() == TIMES[name]


def test_what_is_not_survived_is_told(tmp_path):
    fault = all_faults()["flipped_bits"]

    def fail(_):
        raise FaultFinding("other bits")

    tally = FaultTally(type(fault)("bad", "a bad day", 2, lambda folder: nullcontext(fail)))
    tally.run(tmp_path, seed=0, times=2)
    assert tally.findings == ["trial 0 of seed 0: other bits", "trial 1 of seed 0: other bits"]
    assert table([tally]).rows == [["a bad day", "2", "2", ""]]
    record, page = tmp_path / "faults.json", tmp_path / "faults.md"
    for seed in (0, 1, 1):
        add_run(tally, seed, record)
    write_page({"bad": tally.fault}, page, record)
    assert [run["seed"] for run in read_record(record)["bad"]] == [0, 1]
    assert "| `bad`: a bad day | 2 | 4 | 4 |" in page.read_text()
    assert page.read_text().count("- `bad`: trial 0 of seed 0: other bits") == 2


def test_the_page_says_what_the_record_says(tmp_path):
    write_page(all_faults(), tmp_path / "faults.md")
    assert (tmp_path / "faults.md").read_text() == PAGE.read_text()
