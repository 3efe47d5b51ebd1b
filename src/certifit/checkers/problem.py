"""What a fitted model says it has minimised, in words that can be compared.

A lower bound proved with the help of one model holds for every model of an equal problem, and for no other.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Problem:
    """An objective in words; two are the same problem if all words are equal."""

    loss: str  # such as "logistic loss" or "squared distances to 3 centres"
    penalty: str = "none"  # its form and strength
    penalised: str = "coefficients"  # whether the intercept is penalised too
    weights: str = "none"  # of classes or rows, beyond sample_weight
    offset: str = "none"
    further: str = ""  # whatever else tells two problems apart
    rows: str = "as given"  # or what was done to them before
    digest: str = ""  # of the numbers in those rows, where they are not as given
    model: int | None = None  # the number of the only model that solves it, where no other can

    def __str__(self) -> str:
        """The loss and whatever else is not as usual, in one line."""
        usual = {
            "penalty": "none",
            "penalised": "coefficients",
            "weights": "none",
            "offset": "none",
            "further": "",
            "rows": "as given",
        }
        return "; ".join(
            [self.loss, *(f"{k}: {getattr(self, k)}" for k, v in usual.items() if getattr(self, k) != v)]
        )

    def differences(self, other: Problem) -> list[str]:
        """Return what differs, such as `penalty: C=1 against C=10`."""
        names = [f.name for f in fields(self) if f.name not in ("model", "digest")]
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in names]
        found = [f"{name}: {a} against {b}" for name, a, b in pairs if a != b]
        if self.loss.startswith("that of") and self.loss == other.loss:
            return [f"each is the problem {self.loss}: whether they are the same is not known"]
        return found or ["rows: what was done to them before left different numbers"]


def unshared_problem(model: Any) -> Problem:
    """A problem that no other model shares."""
    return Problem(f"that of a {type(model).__name__}", model=id(model))
