"""A pytest plugin: fitted models are audited in tests, and their predictions held against a golden set.

    def test_model(certifit_audit):
        certifit_audit(model, X, y)                         # fails where the certificate does not hold
        certifit_audit(model, X, y, golden="churn")         # and where predictions changed: which, and by how much

The golden set is a file beside the test, `golden/churn.json`; `pytest --certifit-update-golden` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden sets."""
    group = parser.getgroup("certifit")
    group.addoption(
        "--certifit-update-golden", action="store_true", help="write golden sets of predictions instead of comparing"
    )


@pytest.fixture
def certifit_audit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A function that audits a fitted model, and fails the test where its certificate does not hold.

    `certifit_audit(model, X, y, golden=None, atol=1e-6, tol=None)` gives the certificate.
    """
    folder, update = request.path.parent / "golden", request.config.getoption("--certifit-update-golden")

    def run(
        model: Any, X: Any, y: Any = None, *, golden: str | None = None, atol: float = 1e-6, tol: float | None = None
    ) -> Any:
        __tracebackhide__ = True
        from certifit.checkers.auditing import audit

        certificate = audit(model, X, y, tol=tol)
        if not certificate.holds:
            pytest.fail(f"the certificate of this {type(model).__name__} does not hold\n{certificate}", pytrace=False)
        if golden is not None:
            words = compare_golden(folder / f"{golden}.json", predictions(model, X), atol, update)
            if words:
                pytest.fail(words, pytrace=False)
        return certificate

    return run


def predictions(model: Any, X: Any) -> dict[str, Any]:
    """What the model says of every row: labels or numbers, and probabilities where it has them."""
    import numpy as np

    found: dict[str, Any] = {"predict": np.asarray(model.predict(X)).tolist()}
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = np.asarray(model.predict_proba(X)).tolist()
    return found


def compare_golden(path: Path, found: dict[str, Any], atol: float, update: bool) -> str:
    """What changed against a golden set, in words; empty where nothing did, or where the set was written."""
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        return ""
    if not path.exists():
        return f"there is no golden set {path}; pytest --certifit-update-golden writes it"
    kept = json.loads(path.read_text(encoding="utf-8"))
    lines = [_changes(name, kept.get(name), values, atol) for name, values in found.items()]
    changed = [line for line in lines if line]
    return "\n".join([f"predictions differ from the golden set {path}", *changed]) if changed else ""


def _changes(name: str, old: Any, new: Any, atol: float, most: int = 10) -> str:
    """Which rows of one method's answers changed, and by how much."""
    import numpy as np

    if old is None or len(old) != len(new):
        return f"{name}: {0 if old is None else len(old)} rows in the set, {len(new)} here"
    before, after = np.asarray(old), np.asarray(new)
    if before.shape != after.shape:
        return f"{name}: of shape {before.shape} in the set, {after.shape} here"
    if after.dtype.kind in "fiu" and before.dtype.kind in "fiu":
        distance = np.abs(after.astype(float) - before).reshape(len(after), -1).max(axis=1)
        moved = np.flatnonzero(~(distance <= atol))
        order = moved[np.argsort(-distance[moved], kind="stable")][:most]
        shown = [f"row {i}: {_words(before[i])} -> {_words(after[i])} (by {distance[i]:.3g})" for i in order]
    else:
        moved = np.flatnonzero(before != after)
        shown = [f"row {i}: {before[i]} -> {after[i]}" for i in moved[:most]]
    if not len(moved):
        return ""
    more = f"\n  and {len(moved) - most} more" if len(moved) > most else ""
    return f"{name}: {len(moved)} of {len(after)} rows changed\n  " + "\n  ".join(shown) + more


def _words(value: Any) -> str:
    import numpy as np

    return np.array2string(np.asarray(value), precision=6, threshold=6)
