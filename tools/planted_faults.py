"""Plant faults in solvers, files and tables, and write down what certificates and audits say of them.

    python tools/planted_faults.py            # writes docs/evidence/planted_faults.md

Sums over rows go through one place, `Rows`. While a model is fitted, those that a solver asks for are spoilt there,
as a broken BLAS, a broken loop or a loose summation would; sums of checkers are left alone. The audit comes
afterwards, with sums that are right. How bad the model has become is taken from its objective beside that of a fit
without fault or, where there is none, from its fitted numbers.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_breast_cancer

import certifit
from certifit.core import Certificate
from certifit.rows.rows import Rows
from certifit.svm.kernel.gram import RadialGram

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "planted_faults.md"
SOUND = ("certifit.checkers", "certifit.rows")  # what asks for sums that stay right


# ------------------------------------------------------------------------------------------------------- faults
def entry_off(total: Any) -> Any:
    return _changed(total, lambda values: _at_largest(values, 1.001))


def sign_flipped(total: Any) -> Any:
    return _changed(total, lambda values: _at_largest(values, -1.0))


def single_precision(total: Any) -> Any:
    return _changed(total, lambda values: values.astype(np.float32).astype(np.float64))


def row_skipped(f: Callable[[Any], Any], block: Any) -> Any:
    weights = np.array(block.w)
    weights[len(weights) // 2] = 0.0
    return f(block._replace(w=weights))


def _spoilt(damage: Callable[[Any], Any], f: Callable[[Any], Any], block: Any) -> Any:
    return damage(f(block))


def _changed(total: Any, change: Callable[[Any], Any]) -> Any:
    """A sum with every table of numbers in it changed."""
    if isinstance(total, np.ndarray) and total.dtype == np.float64:
        return change(total)
    if not is_dataclass(total):
        return total
    tables = {field.name: getattr(total, field.name) for field in fields(total)}
    tables = {name: x for name, x in tables.items() if isinstance(x, np.ndarray) and x.dtype == np.float64 and x.size}
    return replace(total, **{name: change(values) for name, values in tables.items()})


def _at_largest(values: Any, factor: float) -> Any:
    out = np.array(values)
    out.flat[np.abs(out).argmax()] *= factor
    return out


FAULTS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "the largest entry of each sum off by 0.1 %": lambda f: partial(_spoilt, entry_off, f),
    "the largest entry of each sum with the wrong sign": lambda f: partial(_spoilt, sign_flipped, f),
    "a row of every block skipped": lambda f: partial(row_skipped, f),
    "sums in single precision": lambda f: partial(_spoilt, single_precision, f),
}


@contextmanager
def planted(fault: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> Iterator[None]:
    """Spoil the sums that solvers ask for."""
    sound = Rows.sum

    def summed(rows: Rows, f: Callable[[Any], Any]) -> Any:
        return sound(rows, f if _asks(f).startswith(SOUND) else fault(f))

    with patch.object(Rows, "sum", summed):
        yield


def _asks(f: Any) -> str:
    while isinstance(f, partial):
        f = f.func
    return getattr(f, "__module__", "")


@contextmanager
def wrong_kernel() -> Iterator[None]:
    """Kernel values of the first row of every block are too small by a tenth."""
    sound = RadialGram.block

    def block(gram: RadialGram, rows: Any, columns: Any) -> Any:
        found = np.array(sound(gram, rows, columns))
        found[0] *= 0.9
        return found

    with patch.object(RadialGram, "block", block):
        yield


# ------------------------------------------------------------------------------------------------------- trials
MODELS: dict[str, Callable[[], Any]] = {
    "PCA(3)": lambda: certifit.PCA(3),
    "LogisticRegression": lambda: certifit.LogisticRegression(),
    "Ridge": lambda: certifit.Ridge(),
    "Lasso(alpha=0.01)": lambda: certifit.Lasso(alpha=0.01),
    "PoissonRegressor": lambda: certifit.PoissonRegressor(),
    "KMeans(3)": lambda: certifit.KMeans(3, random_state=0),
    "GaussianMixture(2)": lambda: certifit.GaussianMixture(2, covariance_type="diag", random_state=0),
    "GaussianNB": lambda: certifit.GaussianNB(),
    "LinearDiscriminantAnalysis": lambda: certifit.LinearDiscriminantAnalysis(),
}


@dataclass(frozen=True)
class Trial:
    """What became of a fit with a fault, and what was said of it."""

    model: str
    fault: str
    harm: str
    fit_says: str
    audit_says: str
    verdict: str  # seen, refused, harmless or MISSED

    def cells(self) -> list[str]:
        return [self.model, self.fault, self.harm, self.fit_says, self.audit_says, self.verdict]


def table() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :6]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def trial(name: str, title: str, surroundings: Callable[[], Any], data: tuple[Any, Any] | None = None) -> Trial:
    """Fit with a fault, audit without, and compare with a fit without fault."""
    X, y = data or table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sound = MODELS[name]().fit(X, y) if name in MODELS else certifit.SVC().fit(X, y)
        model = MODELS[name]() if name in MODELS else certifit.SVC()
        try:
            with surroundings():
                model.fit(X, y)
        except Exception as error:
            return Trial(name, title, "no model", f"{type(error).__name__}", "", "refused")
        found = certifit.audit(model, X, y)
        best = certifit.audit(sound, X, y)
    harm = excess(model, found, sound, best)
    allowed = max(best.tol, 1e-9)
    verdict = "seen" if not found.holds else "harmless" if harm <= allowed else "MISSED"
    return Trial(name, title, f"{harm:.1g}", words(model.certificate_), words(found), verdict)


def excess(model: Any, found: Certificate, sound: Any, best: Certificate) -> float:
    """How much worse the objective is, as a share of its size; without one, how far a fitted number is off."""
    if np.isfinite(found.objective) and np.isfinite(best.objective):
        return max(0.0, found.objective - best.objective) / max(abs(best.objective), 1e-300)
    pairs = [(getattr(model, key), value) for key, value in vars(sound).items() if key.endswith("_")]
    numbers = [(np.asarray(a), b) for a, b in pairs if isinstance(b, np.ndarray) and b.dtype == np.float64]
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)) for a, b in numbers if a.shape == b.shape)


def words(found: Certificate) -> str:
    return "holds" if found.holds else "does not hold"


def file_trials(times: int = 200) -> list[Trial]:
    """Bits of a model file flipped; a coefficient changed in memory; a cell of the table changed before the audit."""
    X, y = table()
    model = certifit.LogisticRegression().fit(X, y)
    rng = np.random.default_rng(0)
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.certifit"
        certifit.save(model, path)
        content = path.read_bytes()
        for _ in range(times):
            damaged, bit = bytearray(content), int(rng.integers(8 * len(content)))
            damaged[bit // 8] ^= 1 << (bit % 8)
            path.write_bytes(damaged)
            try:
                certifit.load(path)
            except Exception:
                refused += 1
    name = "LogisticRegression"
    verdict = "refused" if refused == times else "MISSED"
    found = [Trial(name, f"a bit of its file flipped, {times} times", "", f"{refused} refused", "", verdict)]
    model.coef_ = model.coef_ * 1.01
    found.append(_audited(name, "a coefficient 1 % too large", model, X, y))
    sound = certifit.LogisticRegression().fit(X, y)
    other = np.array(X)
    other[:20] *= -1
    found.append(_audited(name, "20 of 569 rows of the table changed before the audit", sound, other, y))
    return found


def _audited(name: str, title: str, model: Any, X: Any, y: Any) -> Trial:
    found = certifit.audit(model, X, y)
    verdict = "MISSED" if found.holds else "seen"
    return Trial(name, title, f"{found.relative_gap:.1g}", words(model.certificate_), words(found), verdict)


def trials() -> list[Trial]:
    """Every fault in every model, then those of kernels and files."""
    found = [trial(name, title, partial(planted, fault)) for name in MODELS for title, fault in FAULTS.items()]
    found.append(trial("SVC", "kernel values of a row in each block 10 % too small", wrong_kernel))
    return found + file_trials()


# --------------------------------------------------------------------------------------------------------- page
def page(found: list[Trial]) -> str:
    counts = {word: sum(one.verdict == word for one in found) for word in ("seen", "refused", "harmless", "MISSED")}
    missed_by_fits = sum(one.verdict == "seen" and one.fit_says == "holds" for one in found)
    header = ["model", "fault", "harm", "the fit's own certificate", "audit, with sums that are right", "verdict"]
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * 6, *(one.cells() for one in found))]
    return INTRODUCTION.format(trials=len(found), missed_by_fits=missed_by_fits, **counts) + "\n".join(lines) + "\n"


INTRODUCTION = """# What the checker caught

Written by `python tools/planted_faults.py`. Faults are planted on purpose, models are fitted with them, and the table
below says what their own certificates and a later audit said.

- *Harm* is how much larger the objective is than without the fault, as a share; of models without an objective, how
  far a fitted number is off, relative to the largest beside it. An audit looks at more than that: it also recomputes
  stored numbers, to rounding, and so sees faults that did no harm.
- *The fit's own certificate* is written while the fault is there (but for the last three lines, whose faults come
  after the fit). Several of them reuse sums that the solver made, which saves a pass, so that a fault in these sums
  can fool them.
- *Audit* is `certifit.audit(model, X, y)` afterwards, with its own sums: it trusts nothing of the fit.
- *Seen*: the audit does not hold. *Refused*: no model came out. *Harmless*: the audit holds, and the objective is
  within the tolerance that was asked for, so that there is nothing to see. *MISSED*: it holds and should not.
- Sums of a solver are gradients, Hessians, scatters and counts. A wrong Hessian only costs steps, which is why some
  models come out right all the same.

{trials} trials: {seen} seen, {refused} refused, {harmless} harmless, {MISSED} missed. Of those that the audit saw,
{missed_by_fits} were not seen by the fit's own certificate (two of them came after it): **audit a model that matters,
on another machine if you can.** A fault in what both use (the rows themselves, NumPy, the processor) is seen by
neither on one machine.

"""


if __name__ == "__main__":
    PAGE.write_text(page(trials()))
