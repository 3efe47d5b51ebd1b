"""First fits with nothing compiled: what the benchmark fits, what its processes say, and its tables."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import certifit
from benchmarks import cold_start
from certifit.registry import ESTIMATORS


@pytest.mark.parametrize("name", [entry.name for entry in ESTIMATORS])
def test_every_estimator_can_be_made_and_has_a_small_table(name):
    """Nothing is fitted: that takes processes of their own."""
    surroundings = {"np": np, "certifit": certifit, "load_iris": load_iris, "load_diabetes": load_diabetes}
    exec(cold_start.table_of(name), surroundings)
    model = eval(f"certifit.{name}({cold_start.ARGUMENTS.get(name, '')})", surroundings)
    assert np.prod(surroundings["X"].shape) <= 10_000
    assert hasattr(model, "fit")


def test_a_process_says_what_its_fits_took(tmp_path):
    code = {"imports": "", "table": "X, y = np.arange(18.0).reshape(9, 2), None", "model": "certifit.PCA(1)"}
    found = cold_start.run_child(cold_start.SCRIPT.format(fits=2, **code), NUMBA_CACHE_DIR=str(tmp_path))
    assert len(found["fits"]) == 2
    assert found["loops"] == 0


def test_a_process_that_fails_is_told():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        cold_start.run_child("1 / 0")


def test_the_slowest_stand_first():
    quick, slow = (cold_start.ColdStart(name, 1.0, cold, 0.1, 0.1, 0) for name, cold in (("a", 0.2), ("b", 3.0)))
    table = cold_start.as_table("fits", [quick, slow], 0.5)
    assert [row[0] for row in table.rows] == ["b", "a"]
    assert "1 of 2 are above it" in table.note
