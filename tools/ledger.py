"""Write docs/evidence/attributes.md: for every fitted attribute of every estimator, whether an audit looks at it.

    python tools/ledger.py            # writes the page
    python tools/ledger.py --check    # fails where the page is not what it would write

A fitted attribute is *checked* by `audit`, *derived* (a property computed from checked ones), or *diagnostic*
(nothing computes with it). tests/common/test_ledger.py tampers with every one of them.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from importlib import import_module
from inspect import getattr_static
from pathlib import Path
from typing import Any

from sklearn.linear_model import LogisticRegression

import certifit
from certifit.registry import ESTIMATORS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence" / "attributes.md"
HEAD = """# Fitted attributes and who watches them

`python tools/ledger.py` writes this page. When a model is audited, every fitted attribute is one of three things:

- *checked*: `audit` recomputes it, or what it must satisfy, from the data. A wrong one fails the certificate.
- *derived*: a read-only property, computed from checked attributes whenever it is read.
- *diagnostic*: it tells how the fit went. No method computes with it, so nothing follows from it, and no audit looks.

`tests/common/test_ledger.py` tampers with every attribute of every estimator and fails when any method then says
something else while the audit still holds. `certificate_` is the claim itself: every audit makes it anew.
`n_features_in_` and `feature_names_in_` are held against the columns of the table.

| estimator | checked | derived | diagnostic |
| --- | --- | --- | --- |
"""


def fitted_models() -> dict[str, list[Any]]:
    """Some fitted models of every estimator, so that every attribute is met."""
    digests = import_module("digests")
    found: dict[str, list[Any]] = {entry.name: [] for entry in ESTIMATORS}
    with tempfile.TemporaryDirectory() as folder:
        for name, model, X, y, _ in digests.cases(Path(folder)):
            if "150x4 dense" in name or "penguins" in name:
                found[type(model).__name__].append(digests.fit(model, X, y))
    X, y = digests.groups(60, 4, "two")
    searches = ("SequentialSelector", "RecursiveElimination", "RFE", "RFECV", "SequentialFeatureSelector")
    for name in (*searches, "SelectFromModel"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name].append(getattr(certifit, name)(LogisticRegression()).fit(X, y))
    return found


def page() -> str:
    lines = []
    for name, models in fitted_models().items():
        cls, told = type(models[0]), {"certificate_", "n_features_in_", "feature_names_in_"}
        stored = {a for m in models for a in vars(m) if a.endswith("_") and not a.startswith("_")} - told
        derived = {a for a in dir(cls) if a.endswith("_") and not a.startswith("_")}
        derived = {a for a in derived if hasattr(type(getattr_static(cls, a)), "__get__")}
        diagnostic = stored & set(cls.diagnostics)
        parts = (stored - diagnostic, derived, diagnostic)
        lines.append(
            f"| `{name}` | " + " | ".join(", ".join(f"`{a}`" for a in sorted(part)) for part in parts) + " |"
        )
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv and PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/evidence/attributes.md is not current: run python tools/ledger.py")
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
