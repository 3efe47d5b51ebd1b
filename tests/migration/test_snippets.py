"""Everyday scripts, written against scikit-learn, give equivalent results with only their import lines changed.

Each script leaves `result`, whose values must agree, or `at_most`, whose values must not be larger with certifit.
They agree up to one part in a hundred of the largest, because scikit-learn's solvers stop early at their defaults;
where random starts or single rows near a boundary decide, a line `# tolerance: 0.05` says how closely.
"""

import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from certifit import CertificateWarning
from certifit.migration.counterparts import counterpart
from certifit.migration.script_check import check_script

SNIPPETS = sorted((Path(__file__).parent / "snippets").glob("*.py"))
# Scripts that do not run with certifit, and why.
DOES_NOT_RUN: dict[str, str] = {}
IMPORT = re.compile(r"^from sklearn\.(\w+) import ([\w, ]+)$", flags=re.MULTILINE)


def swapped(source):
    """The script with every class that certifit has imported from there."""

    def lines(match):
        room, names = match[1], [name.strip() for name in match[2].split(",")]
        moved = [name for name in names if counterpart(room, name) is not None]
        kept = [name for name in names if name not in moved]
        parts = [f"from certifit.{room} import {', '.join(moved)}"] if moved else []
        return "\n".join(parts + ([f"from sklearn.{room} import {', '.join(kept)}"] if kept else []))

    return IMPORT.sub(lines, source)


def run(source, name):
    space = {"__name__": f"snippet_{name}"}
    with warnings.catch_warnings(), threadpool_limits(1):  # small tables: threads would only wait for each other
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", CertificateWarning)
        try:
            exec(compile(source, name, "exec"), space)
        finally:
            plt.close("all")
    return space.get("result", {}), space.get("at_most", {})


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_snippet(path):
    source = path.read_text()
    changed = swapped(source)
    assert changed != source, "imports nothing that certifit has"
    if path.stem in DOES_NOT_RUN:
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is, the reason is in the list
            run(changed, path.stem)
        return
    tolerance = float((re.findall(r"^# tolerance: (.*)$", source, flags=re.MULTILINE) or ["1e-2"])[0])
    (wanted, most), (got, least) = run(source, path.stem), run(changed, path.stem)
    assert got.keys() == wanted.keys()
    assert least.keys() == most.keys()
    for name, value in wanted.items():
        theirs, ours = np.asarray(value, dtype=float), np.asarray(got[name], dtype=float)
        assert ours.shape == theirs.shape, name
        np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max(), rtol=0, err_msg=name)
    for name, value in most.items():
        assert least[name] <= value + 1e-4 * abs(value), name  # as closely as both converge


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_certifit_check_agrees(path):
    """What the command says of a script is what happens."""
    assert check_script(path.read_text()).runs == (path.stem not in DOES_NOT_RUN)


def test_the_list_is_long_enough():
    assert len(SNIPPETS) >= 43
    assert len(DOES_NOT_RUN) <= 2
    assert {*DOES_NOT_RUN} <= {path.stem for path in SNIPPETS}
