"""Tampered attributes: damage to one fitted attribute after another; what changes an answer must not pass an audit.

As `tests/common/test_ledger.py`, over random tables and settings instead of one table for each estimator.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.random_models import random_model
from benchmarks.hunts.random_tables import random_table
from benchmarks.hunts.tampering import TAMPERS, differ, fitted_attributes, said, tampered
from certifit import audit


def try_tampering(case: HuntCase) -> None:
    rng = case.rng
    chosen = random_model(rng)
    table = random_table(rng, chosen.kind, min(chosen.most_rows, 80), 6, weights=False)
    whole = chosen.make(rng, *table.shape)
    X, y = table.X, table.y
    words = f"{whole} on {table}, target {chosen.kind}"
    case.note(words)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole.fit(X, y)
            holds = audit(whole, X, y).holds
    except ValueError as error:
        case.note(error)
        return
    if not holds:
        return
    case.count("models")
    before = said(whole, X, y)
    for name in fitted_attributes(whole):
        if name not in whole.diagnostics:
            for tamper in TAMPERS:
                _try_one(case, words, whole, name, tamper, before, X, y)


def _try_one(
    case: HuntCase, words: str, whole: Any, name: str, tamper: Any, before: dict[str, Any], X: Any, y: Any
) -> None:
    hurt = tampered(copy.deepcopy(getattr(whole, name)), tamper)
    if hurt is None:
        return
    case.count("attributes damaged")
    model = copy.deepcopy(whole)
    setattr(model, name, hurt)
    try:
        holds = audit(model, X, y).holds
    except ValueError:
        case.count("refused")
        return
    except Exception as error:
        case.find(f"audit raised {type(error).__name__}", whole, f"{words}: {name} {tamper.__name__}: {error}")
        return
    case.count("audits that hold", int(holds))
    if not holds:
        return
    after = said(model, X, y)
    # What a certificate leaves open: an answer may move by about the root of the tolerance.
    close = max(1e-5, 10 * whole.certificate_.tol**0.5, 1e-2 if np.asarray(X).dtype == np.float32 else 0.0)
    changed = [method for method in before if differ(before[method], after.get(method), close)]
    if changed:
        case.find("damage unseen", whole, f"{words}: {name} {tamper.__name__} changes {', '.join(changed)}")


TAMPERED_ATTRIBUTES = Hunt(
    "tampered_attributes",
    "Tampered attributes",
    "each fitted attribute damaged in nine ways: what changes any method's answer must fail the audit",
    try_tampering,
    30.0,
)
