"""What a pass over blocks learns of columns: the same wherever rows are cut, and as exact arithmetic has it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from certifit.table.learning.distinct_values import DistinctTuning, DistinctValues, hashed_numbers, hashed_texts
from certifit.table.learning.exact_moments import ExactMoments
from certifit.table.learning.learn_columns import TableSummary, TableTuning, learn_columns


def mixed_table(n=300):
    """Columns of all kinds, with values that only late rows have."""
    rng = np.random.default_rng(0)
    late = np.arange(n) >= n - 2
    days = rng.integers(1, 29, n)
    days[-1] = 31
    return pa.table(
        {
            "offset": 1e8 + rng.normal(size=n),
            "holes": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.2),
            "word": np.where(late, "rare", np.array(["a", "b", "?"])[np.arange(n) % 3]),
            "money": np.where(late, "n/a", [f"${x:,.2f}" for x in rng.uniform(0, 1e5, n)]),
            "share": np.where(late, "5", [f"{x} %" for x in range(n)]),  # neither all shares nor none
            "date": [f"{day:02d}/{month:02d}/2024" for day, month in zip(days, 1 + np.arange(n) % 12, strict=True)],
            "code": np.where(late, "007", [str(x) for x in rng.integers(1, 900, n)]),
            "row": np.arange(5, n + 5),
            "name": [f"person {x}" for x in range(n)],
            "constant": np.ones(n),
            "flag": rng.random(n) < 0.5,
            "kind": pa.array(np.array(["x", " y"])[np.arange(n) % 2]).dictionary_encode(),
            "only late": pa.array(np.where(late, "3.5", None)),
        }
    )


@pytest.mark.parametrize("cuts", [[1], [2, 299], [*range(29, 300, 29)]])
def test_blocks_and_merged_summaries_teach_what_the_whole_table_teaches(cuts):
    table, w = mixed_table(), np.random.default_rng(1).uniform(0.5, 2, 300)
    whole = learn_columns(table, w, keep=["row"])
    blocks, merged = (TableSummary(table.schema, ["row"]) for _ in range(2))
    for first, last in zip([0, *cuts], [*cuts, 300], strict=True):
        part, alone = table.slice(first, last - first), TableSummary(table.schema, ["row"])
        blocks.add(part, w[first:last])
        alone.add(part, w[first:last])
        merged.merge(alone)
    assert blocks.decide() == merged.decide() == whole
    kinds = {column.name: (column.kind, column.reading) for column in whole}
    assert kinds["date"] == ("date", "%d/%m/%Y")  # by the 31 of the last row alone
    assert kinds["money"] == ("number", "numbers, in $")
    assert kinds["only late"] == ("missing or not", "numbers")
    assert kinds["share"] == ("left out", "")
    assert kinds["code"] == ("category", "")


def test_threads_do_not_matter(threads):
    table = mixed_table()
    tuning, found = replace(TableTuning(), block_rows=64, threaded_rows=1), []
    for number in (1, 4):
        threads(number)
        found.append(learn_columns(table, np.ones(300), tuning=tuning))
    assert found[0] == found[1]


def test_moments_are_those_of_exact_arithmetic():
    rng = np.random.default_rng(0)
    x, w = 1e8 + rng.exponential(size=500), rng.uniform(0.1, 3, 500)
    found = ExactMoments(3)
    for first in range(0, 500, 37):
        part = ExactMoments(3)
        part.add(x[first : first + 37], w[first : first + 37])
        found.merge(part)
    exact, weights = [Fraction(v) for v in x], [Fraction(v) for v in w]
    mean = sum(a * b for a, b in zip(exact, weights, strict=True)) / sum(weights)
    second, third = (
        sum(b * (a - mean) ** p for a, b in zip(exact, weights, strict=True)) / sum(weights) for p in (2, 3)
    )
    assert found.mean == float(mean)
    assert found.variance == pytest.approx(float(second), rel=1e-15)
    assert found.skewness == pytest.approx(float(third) / float(second) ** 1.5, rel=1e-14)


def test_few_values_are_counted_and_many_are_estimated_within_their_error():
    tuning = DistinctTuning(kept=1024)
    exact, many, parts = (DistinctValues(tuning) for _ in range(3))
    exact.add(hashed_numbers(np.arange(50_000.0) % 1000))
    assert exact.count(50_000) == 1000
    for first in range(0, 200_000, 10_000):
        hashes = hashed_numbers(np.arange(first, first + 10_000) // 2.0)
        many.add(hashes)
        part = DistinctValues(tuning)
        part.add(hashes)
        parts.merge(part)
    assert many.count(200_000) == parts.count(200_000) == pytest.approx(100_000, rel=4 / 32)
    assert many.count(100_000) == 100_000  # as many as there are rows, as far as the estimate can tell


def test_texts_have_hashes_of_their_own():
    texts = [f"{a}{b}" for a in ("", "x", "é", "long " * 9) for b in range(500)]
    hashes = hashed_texts(pa.array(["unused", *texts]).slice(1))
    assert len(np.unique(hashes)) == len(texts)
    assert np.array_equal(hashes[[3, 700]], hashed_texts(pa.array([texts[3], texts[700]])))
