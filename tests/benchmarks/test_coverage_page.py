"""The page of coverages is what was measured, for simulated tables and real ones and every way to an interval."""

import json

import numpy as np

from benchmarks.coverage import KEPT, PAGE, PROBLEMS, coverage, page


def test_the_page_is_written_from_what_was_measured():
    kept = json.loads(KEPT.read_text())
    assert PAGE.read_text(encoding="utf-8") == page(kept)
    assert {f"{name} {method}" for name, one in PROBLEMS.items() for method in one.methods} == set(kept)
    ways = {found["way"] for found in kept.values()}
    assert ways == {"binomial", "betting", "corrected t", "normal", "percentiles", "order statistic", "log scale"}


def test_hits_are_counted():
    """A holdout's interval of one table holds the truth or does not; conformal prediction has 20 rows of each."""
    assert coverage(PROBLEMS["bayes"], "holdout", 1)["covered"] in (0.0, 1.0)
    share = coverage(PROBLEMS["squares"], "conformal split", 1)["covered"]
    assert np.isclose(share * 20, round(share * 20))
