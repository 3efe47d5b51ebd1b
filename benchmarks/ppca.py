"""What missing entries cost probabilistic PCA: an EM step on incomplete rows beside one on complete rows."""

from __future__ import annotations

from functools import partial

from benchmarks.datasets import mnist
from benchmarks.harness import Options
from benchmarks.missing_entries import cost_of_missing, with_missing
from benchmarks.reporting import Report
from certifit.decomposition.probabilistic.closed_form import variances
from certifit.decomposition.probabilistic.em import measure, update
from certifit.decomposition.probabilistic.parameters import PPCAParameters
from certifit.rows import Rows, as_rows

COMPONENTS = 50


def ppca_missing(title: str, options: Options) -> Report:
    X, _, words = mnist(options)
    at = variances(as_rows(X), COMPONENTS).parameters(COMPONENTS)
    tables = with_missing(X, 100)
    steps = {name: partial(one_step, as_rows(data, missing=True), at) for name, data in tables.items()}
    return cost_of_missing(title, f"one EM step, {words}, {COMPONENTS} components", steps, options)


def one_step(rows: Rows, at: PPCAParameters) -> float:
    """Negative log-likelihood a row, from one E step and one M step."""
    return update(float(rows.n_rows), at, measure(rows, at)).objective
