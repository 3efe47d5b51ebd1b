"""Probabilities of a fitted SVC: its slopes are the likeliest, and `predict_proba` is what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.fitted import numbers
from certifit.checkers.svm import calibration
from certifit.core import Certificate, Check
from certifit.rows import Array

SAMPLE = 500  # rows whose probabilities are recomputed
CLOSE = 1e-4  # values of float32 rows may come from float32 kernels
TAKEN = "taken as the model has them"


def with_probabilities(
    found: Certificate, model: Any, X: Any, code: Array, weight: Array, pairs: bool, values: Callable[[Array], Array]
) -> Certificate:
    """A certificate of machines that also speaks of their probabilities; values(rows) (m, machines) are theirs."""
    used, k, slopes = np.flatnonzero(weight > 0), len(model.classes_), numbers(model, "probability_slopes_")
    held_out = numbers(model, "held_out_values_")[used]
    sample = used[np.linspace(0, len(used) - 1, min(len(used), SAMPLE)).astype(np.int64)]
    winner = np.searchsorted(model.classes_, np.asarray(model.predict(X))[sample])
    p, expected = np.asarray(model.predict_proba(X))[sample], np.empty((0, k))
    if held_out.shape[1] == len(slopes) or not pairs:
        expected = calibration.probabilities(values(sample), slopes, k, pairs, winner)
    off = float(np.abs(p - expected).max()) if p.shape == expected.shape else np.inf
    checks = (
        *calibration.calibrated(held_out, code[used], weight[used], slopes, k, pairs),
        Check("probabilities differ from what slopes and values give by", off, CLOSE),
        Check("rows whose likeliest class is not predicted", float((p.argmax(axis=1) != winner).sum()), 0.0),
    )
    facts = {**found.facts, "values of rows left out": TAKEN}
    claim = f"{found.claim}; {calibration.CLAIM}"
    return replace(found, claim=claim, checks=(*found.checks, *checks), facts=facts)
