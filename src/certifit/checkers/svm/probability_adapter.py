"""Probabilities of a fitted SVC: its slopes are the likeliest, and `predict_proba` is what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.fitted import numbers
from certifit.checkers.svm import calibration
from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class ProbabilityCheckTuning:
    """How many probabilities are recomputed, and how close they have to be."""

    sampled_rows: int = 500
    close: float = 1e-4  # values of float32 rows may come from float32 kernels


class ProbabilityClaim(NamedTuple):
    """A fitted model that says how likely each class is, the table it was fitted on, and its machines."""

    model: Any
    X: Any
    code: Array  # (n,) class numbers
    weight: Array  # (n,) row weights times those of classes
    pairs: bool  # whether machines are for pairs of classes
    values: Callable[[Array], Array]  # values (m, machines) at rows with these numbers


def with_probabilities(
    found: Certificate, claim: ProbabilityClaim, tuning: ProbabilityCheckTuning = ProbabilityCheckTuning()
) -> Certificate:
    """A certificate of machines, extended by what is true of the probabilities made of their values."""
    model, X, code, weight, pairs, values = claim
    used, k, slopes = np.flatnonzero(weight > 0), len(model.classes_), numbers(model, "probability_slopes_")
    held_out = numbers(model, "held_out_values_")[used]
    sample = used[np.linspace(0, len(used) - 1, min(len(used), tuning.sampled_rows)).astype(np.int64)]
    winner = np.searchsorted(model.classes_, np.asarray(model.predict(X))[sample])
    p, expected = np.asarray(model.predict_proba(X))[sample], np.empty((0, k))
    if held_out.shape[1] == len(slopes) or not pairs:
        expected = calibration.probabilities(values(sample), slopes, k, pairs, winner)
    off = float(np.abs(p - expected).max()) if p.shape == expected.shape else np.inf
    checks = (
        *calibration.slope_checks(held_out, code[used], weight[used], slopes, k, pairs),
        Check("probabilities differ from what slopes and values give by", off, tuning.close),
        Check("rows whose likeliest class is not predicted", float((p.argmax(axis=1) != winner).sum()), 0.0),
    )
    facts = {**found.facts, "values of rows left out": "recomputed from machines that have not seen them"}
    words = f"{found.claim}; {calibration.CLAIM}"
    return replace(found, claim=words, checks=(*found.checks, *checks), facts=facts)
