"""The page of coverages is what was measured, for simulated tables and real ones and every way to an interval."""

import json

import numpy as np

from benchmarks.coverage import KEPT, PAGE, PROBLEMS, TESTS, coverage, page


def test_the_page_is_written_from_what_was_measured():
    kept = json.loads(KEPT.read_text())
    assert PAGE.read_text(encoding="utf-8") == page(kept)
    intervals = {f"{name} {method}" for name, one in PROBLEMS.items() for method in one.methods}
    assert intervals | {f"verdicts {test} {n}" for test in TESTS for n in (40, 100)} == set(kept)
    ways = {kept[name].get("way") for name in intervals}
    wanted = {"binomial", "betting", "corrected t", "normal", "percentiles", "order statistic", "log scale"}
    assert ways == {*wanted, None}  # of copies there is no interval


def test_what_claims_to_cover_does():
    """A share that is two standard errors below 90 % is seen where an interval says that it may cover less."""
    found = [one for one in json.loads(KEPT.read_text()).values() if one.get("covers") in ("at least", "about")]
    assert len(found) > 40
    assert [one for one in found if one["covered"] + 2 * one["error"] < 0.9] == []


def test_hits_are_counted():
    """A holdout's interval of one table holds the truth or does not; conformal prediction has 20 rows of each."""
    assert coverage(PROBLEMS["bayes"], "holdout", 1)["covered"] in (0.0, 1.0)
    share = coverage(PROBLEMS["squares"], "conformal split", 1)["covered"]
    assert np.isclose(share * 20, round(share * 20))
