"""Random tables for hunts: all sizes, scales and offsets, with the oddities that real tables have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

Array = Any


@dataclass(frozen=True)
class RandomTable:
    """Rows, targets and weights, and in a few words what is odd about them."""

    X: Any
    y: Any
    weight: Any
    words: str

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def __str__(self) -> str:
        n, d = self.shape
        return f"{n} x {d} {self.words}"


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    """One of these, each as likely."""
    return choices[int(rng.integers(len(choices)))]


def decades(rng: np.random.Generator, low: float, high: float) -> float:
    """A number between 10^low and 10^high, its logarithm uniform; three digits, which a person can type."""
    return float(f"{10.0 ** rng.uniform(low, high):.3g}")


def random_size(rng: np.random.Generator, most_rows: int = 200, most_columns: int = 12) -> tuple[int, int]:
    """Rows and columns; now and then fewer rows than columns."""
    d = int(rng.integers(1, most_columns + 1))
    if rng.random() < 0.15:
        return int(rng.integers(5, max(6, d + 1))), d
    return round(decades(rng, np.log10(5), np.log10(most_rows))), d


def random_columns(rng: np.random.Generator, n: int, d: int) -> tuple[Array, list[str]]:
    """Numbers with correlated, scaled, shifted, constant or repeated columns, and repeated rows."""
    X, words = rng.normal(size=(n, d)), []
    if rng.random() < 0.4:
        X = X @ rng.normal(size=(d, d))
    if rng.random() < 0.4:
        X = X * 10.0 ** rng.uniform(-6, 6, size=1 if rng.random() < 0.5 else d)
        words.append("scaled")
    if rng.random() < 0.3:
        X = X + 10.0 ** rng.uniform(0, 6, size=1 if rng.random() < 0.5 else d) * np.abs(X).mean()
        words.append("far from 0")
    if rng.random() < 0.1:
        X = np.round(X / (np.abs(X).max() or 1.0) * 3)
        words.append("few values")
    if rng.random() < 0.1:
        X[:, rng.integers(d)] = pick(rng, 0.0, 1.0, float(X[0, 0]))
        words.append("constant column")
    if d > 1 and rng.random() < 0.1:
        X[:, 0] = X[:, -1]
        words.append("repeated column")
    if rng.random() < 0.1:
        X[rng.integers(n, size=n // 2)] = X[0]
        words.append("repeated rows")
    return X, words


def random_weights(rng: np.random.Generator, n: int) -> tuple[Any, str]:
    """No weights most often; else of one size, with zeros, or of very unequal sizes."""
    draw = rng.random()
    if draw < 0.5:
        return None, ""
    if draw < 0.7:
        return rng.exponential(size=n), "weights"
    if draw < 0.85:
        w = rng.integers(0, 4, size=n).astype(float)
        w[: min(n, 3)] = 1.0
        return w, "whole weights with zeros"
    return 10.0 ** rng.uniform(-4, 4, size=n), "weights of eight decades"


def random_target(rng: np.random.Generator, kind: str, X: Array) -> Any:
    """Targets of one kind that depend on the columns, more or less."""
    n, d = X.shape
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    score = Z @ rng.normal(size=d) / np.sqrt(d) * decades(rng, -1, 0.7) + rng.normal()
    noise = rng.normal(size=n)
    if kind == "none":
        return None
    if kind == "two":
        return _with_all(rng, (score + decades(rng, -2, 0.5) * rng.logistic(size=n) > 0).astype(int), 2)
    if kind == "classes":
        k = int(rng.integers(2, 5))
        scores = Z @ rng.normal(size=(d, k)) + decades(rng, -2, 0.5) * rng.gumbel(size=(n, k))
        return _with_all(rng, scores.argmax(axis=1), k)
    if kind == "counts":
        return rng.poisson(np.exp(np.clip(score, -8, 6))).astype(float)
    if kind == "positive":
        return np.exp(np.clip(score, -20, 20) + decades(rng, -2, 0) * noise)
    if kind == "shares":
        return rng.binomial(4, 1 / (1 + np.exp(-np.clip(score, -9, 9)))) / 4.0
    y = score + decades(rng, -4, 1) * noise
    return y * 10.0 ** rng.uniform(-6, 6) + (10.0 ** rng.uniform(0, 5) if rng.random() < 0.2 else 0.0)


def _with_all(rng: np.random.Generator, y: Array, k: int) -> Array:
    """Class numbers in which each class occurs, where there are rows enough."""
    for c in range(min(k, len(y))):
        if not (y == c).any():
            y[rng.integers(len(y))] = c
    return y if len(np.unique(y)) > 1 else np.arange(len(y)) % 2


def random_table(
    rng: np.random.Generator, kind: str, most_rows: int = 200, most_columns: int = 12, weights: bool = True
) -> RandomTable:
    """A table for models whose target is of this kind; 'tallies' are whole numbers in X and classes in y."""
    n, d = random_size(rng, most_rows, most_columns)
    X, words = random_columns(rng, n, d)
    if kind in ("tallies", "tallies alone"):
        X, words = rng.poisson(decades(rng, -1, 1), size=(n, d)).astype(float), []
    y = random_target(rng, {"tallies": "classes", "tallies alone": "none"}.get(kind, kind), X)
    weight, word = random_weights(rng, n) if weights else (None, "")
    if rng.random() < 0.15:
        X = X.astype(np.float32)
        words.append("float32")
    return RandomTable(np.ascontiguousarray(X), y, weight, ", ".join([*words, *filter(None, [word])]) or "plain")


NASTY = (
    "one row", "two rows", "equal rows", "one class", "separable", "collinear", "huge", "denormal", "tiny", "nan",
    "infinite", "whole numbers", "booleans", "zero target", "zero table", "far", "one column", "wide", "words",
    "heavy row", "zero weights", "negative weight", "duplicates", "outlier", "nearly equal", "plain", "plain",
)  # fmt: skip


def nasty_table(rng: np.random.Generator, kind: str, most_rows: int = 40) -> RandomTable:
    """A small table with one nasty property; about one in thirteen has none."""
    table = random_table(rng, kind, most_rows, 5)
    name = str(pick(rng, *NASTY))
    table = replace(table, words=f"{table.words}, {name}" if table.words != "plain" else name)
    X, y, w = np.array(table.X), None if table.y is None else np.array(table.y), table.weight
    if name in ("one row", "two rows"):
        m = 1 if name == "one row" else 2
        return replace(table, X=X[:m], y=None if y is None else y[:m], weight=None if w is None else w[:m])
    if name in _ROWS:
        return replace(table, X=np.ascontiguousarray(_ROWS[name](rng, X, y)))
    if name in _TARGETS and y is not None:
        return replace(table, y=_TARGETS[name](y))
    if name in _WEIGHTS:
        return replace(table, weight=_WEIGHTS[name](rng, len(X)))
    return table


def _spoil(value: float) -> Any:
    def spoil(rng: np.random.Generator, X: Array, _y: Array) -> Array:
        X = X.astype(float)
        X.flat[rng.integers(X.size)] = value
        return X

    return spoil


def _separate(_rng: np.random.Generator, X: Array, y: Array) -> Array:
    X = X.astype(float)
    if y is not None:
        X[:, 0] = np.asarray(y, dtype=float) * (np.abs(X[:, 0]).max() + 1.0)
    return X


def _collinear(_rng: np.random.Generator, X: Array, _y: Array) -> Array:
    return np.column_stack([X, X.sum(axis=1), X[:, 0] * 2])


def _wide(rng: np.random.Generator, X: Array, _y: Array) -> Array:
    return np.hstack([X, rng.normal(size=(len(X), len(X) + 2))])


_ROWS: dict[str, Any] = {
    "equal rows": lambda rng, X, y: np.repeat(X[:1], len(X), axis=0),
    "separable": _separate,
    "collinear": _collinear,
    "huge": lambda rng, X, y: X.astype(float) / (np.abs(X).max() or 1.0) * 10.0 ** rng.uniform(140, 300),
    "denormal": lambda rng, X, y: X.astype(float) / (np.abs(X).max() or 1.0) * 1e-310,
    "tiny": lambda rng, X, y: X.astype(float) / (np.abs(X).max() or 1.0) * 10.0 ** rng.uniform(-200, -20),
    "nan": _spoil(np.nan),
    "infinite": _spoil(np.inf),
    "whole numbers": lambda rng, X, y: rng.integers(-3, 4, size=X.shape),
    "booleans": lambda rng, X, y: rng.random(X.shape) < 0.5,
    "zero table": lambda rng, X, y: np.zeros_like(X),
    "far": lambda rng, X, y: X.astype(float) + 1e9 * (np.abs(X).max() or 1.0),
    "one column": lambda rng, X, y: X[:, :1],
    "wide": _wide,
    "duplicates": lambda rng, X, y: X[rng.integers(min(3, len(X)), size=len(X))],
    "outlier": lambda rng, X, y: np.vstack([X[:-1], X[-1:] * 1e8]),
    "nearly equal": lambda rng, X, y: X[:1] * (1 + 1e-14 * rng.normal(size=X.shape)),
}
_TARGETS: dict[str, Any] = {
    "one class": lambda y: np.zeros_like(y),
    "zero target": lambda y: np.zeros_like(y),
    "words": lambda y: np.array([f"c{int(v)}" for v in y]),
}
_WEIGHTS: dict[str, Any] = {
    "heavy row": lambda rng, n: np.where(np.arange(n) == 0, 1e12, 1.0),
    "zero weights": lambda rng, n: np.zeros(n),
    "negative weight": lambda rng, n: np.where(np.arange(n) == 0, -1.0, 1.0),
}


def as_source(rng: np.random.Generator, table: RandomTable, sparse_too: bool, folder: Path) -> tuple[str, Any]:
    """The rows as an array most often, else as CSR, a data frame or a Parquet file, with the form's name."""
    import pandas

    draw = rng.random()
    if draw < 0.15 and sparse_too:
        return "CSR", sparse.csr_array(table.X)
    if draw < 0.9:
        return "array", table.X
    frame = pandas.DataFrame(np.asarray(table.X), columns=[f"x{j}" for j in range(table.X.shape[1])])
    if draw < 0.95:
        return "pandas", frame
    path = folder / "table.parquet"
    frame.to_parquet(path)
    return "Parquet", str(path)
