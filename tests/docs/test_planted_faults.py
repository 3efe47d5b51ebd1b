"""Some of the faults that docs/evidence/planted_faults.md lists, planted again; and the page lists them all."""

import re
from functools import partial

import pytest

from certifit.rows.rows import Rows
from tests.common.test_house import load_tool

tool = load_tool("planted_faults")


@pytest.mark.parametrize("name", ["PCA(3)", "Ridge", "GaussianNB"])
def test_a_row_that_solvers_skip_is_seen_by_the_audit(name):
    title = "a row of every block skipped"
    found = tool.trial(name, title, partial(tool.planted, tool.FAULTS[title]))
    assert (found.audit_says, found.verdict) == ("does not hold", "seen")


@pytest.mark.parametrize("title", tool.FAULTS)
def test_no_fault_in_sums_of_logistic_regression_is_missed(title):
    assert tool.trial("LogisticRegression", title, partial(tool.planted, tool.FAULTS[title])).verdict != "MISSED"


def test_sums_are_right_again_after_a_fault():
    sound = Rows.sum
    with tool.planted(tool.FAULTS["sums in single precision"]):
        assert Rows.sum is not sound
    assert Rows.sum is sound


def test_damaged_files_coefficients_and_tables_are_seen():
    assert [found.verdict for found in tool.file_trials(times=20)] == ["refused", "seen", "seen"]


def test_the_page_lists_every_fault_and_none_was_missed():
    text = tool.PAGE.read_text()
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .* \| (.+?) \|$", text, flags=re.MULTILINE)
    assert {(model, fault) for model, fault, _ in rows} >= {(m, f) for m in tool.MODELS for f in tool.FAULTS}
    assert "MISSED" not in [verdict for *_, verdict in rows]


def test_the_readme_has_the_numbers_of_the_page():
    seen, fooled = re.search(r"(\d+) seen,.*?saw,\n(\d+) were not", tool.PAGE.read_text(), flags=re.DOTALL).groups()
    readme = " ".join((tool.PAGE.parents[2] / "README.md").read_text().split())
    assert f"of {seen} planted faults that an audit saw, the fit's own certificate had not seen {fooled}" in readme
