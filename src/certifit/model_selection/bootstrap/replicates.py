"""Coefficients of a linear model fitted to rows drawn with replacement, a thousand times for the price of a few fits.

How often a replicate draws each row is a weight. Sums of products of columns over weighted rows are one product of
matrices, weights (replicates, rows) times products (rows, pairs of columns), block by block: every replicate's
normal equations come out of one pass. Weights are measured from 1 and rows in coordinates in which the fit to all is
the origin, so that digits are spent on what a replicate changes. Models that do not follow from such sums are fitted
to the rows drawn.

Reference: Efron & Tibshirani, An introduction to the bootstrap (1993).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit.checkers.model_selection.replicates import ReplicateClaim, certify_replicates, replicate_keys
from certifit.core import Certificate, Setting
from certifit.exceptions import DataError
from certifit.model_selection.bootstrap.draw_loops import add_drawn_rows
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array


@dataclass(frozen=True)
class ReplicateTuning:
    """How work is cut."""

    counts_at_once: int = 128_000_000  # of rows by replicates, a byte each
    rows_of_block: int = 2048  # fewer are summed in short numbers; sums of 11 bits over so many are exact in 24
    largest_condition: float = 1e6  # of columns of unit length; beyond, normal equations lose too many digits
    short_numbers: float = 0.1  # moves of sums of products, in the sums, up to which these need half as many digits


@dataclass(frozen=True, repr=False)
class CoefficientReplicates(TabledResult):
    """Coefficients over replicates, with their errors and intervals; prints as a table."""

    picture = "plot_intervals"
    what = "coefficient"

    model: str
    names: tuple[str, ...]  # of the coefficients
    claim: ReplicateClaim
    certificate: Certificate

    @property
    def values(self) -> Array:
        """Return coefficients by replicate (B, p), the intercept last where there is one."""
        return self.claim.values

    @property
    def claims(self) -> list[Any]:
        """Return the coefficients as estimates with an interval."""
        return [
            _Coefficient(name, float(estimate), float(low), float(high), self.claim.confidence)
            for name, estimate, low, high in zip(
                self.names, self.claim.estimate, self.claim.low, self.claim.high, strict=True
            )
        ]

    def table(self) -> ResultTable:
        """Return a line for each coefficient: its error over replicates, and the interval of their percentiles."""
        columns: dict[str, Any] = {
            "coefficient": [*self.names],
            "all rows": self.claim.estimate.tolist(),
            "error": self.values.std(axis=0, ddof=1).tolist(),
            "from": self.claim.low.tolist(),
            "to": self.claim.high.tolist(),
        }
        note = (
            f"percentiles of {len(self.values)} fits to rows drawn with replacement; rests on: rows are independent "
            f"draws, and many"
        )
        return ResultTable(f"{self.model}, {100 * self.claim.confidence:g} % intervals", columns, (note,))


@dataclass(frozen=True)
class _Coefficient:
    """A coefficient as pictures of intervals take it."""

    metric: str
    estimate: float
    low: float
    high: float
    confidence: float


def bootstrap_coefficients(
    estimator: Any, X: Any, y: Any, *, n_replicates: int = 1000, confidence: float = 0.9, random_state: int = 0
) -> CoefficientReplicates:
    """Fit a linear model to rows drawn with replacement many times, and say how much its coefficients change.

    Replicates of least squares and ridge come from one pass over the rows; other models are fitted to each draw.

    Parameters
    ----------
    estimator : a regressor or classifier of two classes with `coef_`, of any library; it is copied, never changed
    X, y : table of numbers and target, in memory
    n_replicates : how many times rows are drawn, B
    confidence : of each interval, of percentiles
    random_state : a whole number: the rows drawn follow from it by a hash, so that the checker can draw them again

    Returns
    -------
    CoefficientReplicates : prints as a table; `values` (B, p) has every replicate

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = bootstrap_coefficients(Ridge(0.1), X[:, :2], y, n_replicates=100)
    >>> found.values.shape
    (100, 3)
    >>> found.certificate.holds
    True
    """
    Setting(int, least=10).check("n_replicates", n_replicates)
    Setting(float, above=0, below=1).check("confidence", confidence)
    Setting(int, least=0).check("random_state", random_state)
    table, target = np.asarray(X, dtype=np.float64), np.asarray(y)
    if table.ndim != 2 or target.shape != (len(table),) or len(table) < 2:
        raise DataError(
            got=f"X of shape {table.shape} and y of shape {target.shape}", wanted="a table and one target a row"
        )
    if not np.isfinite(table).all():
        raise DataError(got="missing or infinite entries", wanted="finite numbers", fix="Leave such rows out.")
    alpha, with_intercept = _ridge_penalty(estimator), bool(getattr(estimator, "fit_intercept", True))
    found = None if alpha is None else replicates_by_sums(
        table, _numbers(target), alpha, with_intercept, (random_state, n_replicates)
    )  # fmt: skip
    if found is None or not np.isfinite(found[1]).all():
        found, alpha = _refitted(estimator, X, target, (random_state, n_replicates)), None
    estimate, values = found
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    claim = ReplicateClaim(values, estimate, low, high, confidence, random_state, with_intercept, alpha)
    certificate = certify_replicates(claim, table, target, estimator if alpha is None else None)
    given = getattr(X, "columns", None)
    names = [*map(str, given)] if given is not None else [f"x{j}" for j in range(table.shape[1])]
    names += ["intercept"] * (values.shape[1] - len(names))
    return CoefficientReplicates(type(estimator).__name__, tuple(names), claim, certificate)


def coefficients(fitted: Any) -> Array:
    """Return slopes and the intercept, where there is one, of a fitted linear model (p,)."""
    slopes = np.ravel(np.asarray(fitted.coef_, dtype=np.float64))
    with_intercept = getattr(fitted, "fit_intercept", True)
    return np.append(slopes, np.ravel(fitted.intercept_)[0]) if with_intercept else slopes


def _numbers(target: Array) -> Array:
    """Return targets as numbers."""
    try:
        found = target.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(got=f"targets that are no numbers ({error})", wanted="numbers, for a regressor") from error
    if not np.isfinite(found).all():
        raise DataError(got="missing or infinite targets", wanted="finite numbers", fix="Leave such rows out.")
    return found


def _ridge_penalty(estimator: Any) -> float | None:
    """Return the ridge penalty of a model that follows from sums, or None."""
    kind = type(estimator)
    is_known = kind.__module__.partition(".")[0] in ("certifit", "sklearn")
    if not is_known or kind.__name__ not in ("LinearRegression", "Ridge"):
        return None
    settings = estimator.get_params()
    alpha: Any = settings.get("alpha", 0.0)
    return None if settings.get("positive") or not isinstance(alpha, int | float) else float(alpha)


def drawn_counts(n: int, seed: int, n_replicates: int, at_once: int) -> Iterator[tuple[int, Array]]:
    """Give (first replicate, how often each of its replicates draws each row (b, n)), some replicates at a time."""
    keys = replicate_keys(seed, n_replicates)
    for first in range(0, n_replicates, at_once):
        part = keys[first : first + at_once]
        # Rows are drawn in a vector that the cache holds. More than 255 draws of a row happen once in 10⁵⁰⁰.
        counts, drawn = np.empty((len(part), n), dtype=np.uint8), np.empty(n, dtype=np.uint8)
        for key, row in zip(part, counts, strict=True):
            drawn[:] = 0
            # Hashes are meant to overflow; only loops that are not compiled would say so.
            with np.errstate(over="ignore"):
                add_drawn_rows(key, drawn)
            row[:] = drawn
        yield first, counts


def replicates_by_sums(
    X: Array,
    y: Array,
    alpha: float,
    centred: bool,
    draws: tuple[int, int],
    tuning: ReplicateTuning = ReplicateTuning(),
) -> tuple[Array, Array] | None:
    """Return slopes and the intercept of all rows (p,) and of replicates (B, p), from weighted sums.

    None where normal equations would lose digits. `draws` are the seed and the number of replicates, B.
    """
    whole = _all_rows(X, y, alpha, centred, tuning)
    if whole is None:
        return None
    found = np.empty((draws[1], X.shape[1] + centred))
    for first, counts in drawn_counts(len(X), *draws, max(16, tuning.counts_at_once // len(X))):
        moved = _moved(whole, counts, tuning)
        if moved is None:
            return None
        found[first : first + len(counts)] = whole.coefficients(moved)
    return whole.coefficients(whole.fit[None])[0], found


@dataclass(frozen=True)
class WhitenedRows:
    """All rows in coordinates in which their columns are orthogonal, and their fit: a replicate moves it a little.

    With weights w, the moved fit solves (A'A + P + A'(w - 1)A) step = A'(w - 1)r, r what the fit to all rows leaves.
    """

    columns: Array  # (p, n) of squared length n, and ones where there is an intercept
    axes: Array  # (d, d) the columns of X, less their means, times this
    penalty: Array  # (p, p) P
    fit: Array  # (p,) to all rows
    left: Array  # (n,) r
    centre: tuple[Array, float] | None  # of X and y; None without an intercept

    def coefficients(self, moved: Array) -> Array:
        """Return slopes, and the intercept, of fits in these coordinates (b, p)."""
        d = len(self.axes)
        slopes = moved[:, :d] @ self.axes.T
        if self.centre is None:
            return slopes
        return np.column_stack([slopes, self.centre[1] + moved[:, d] - slopes @ self.centre[0]])

    def are_many(self, most: float) -> bool:
        """Say whether no few rows decide: the fourth powers of lengths say how far sums of products can move."""
        lengths = np.einsum("pn,pn->n", self.columns, self.columns)
        return bool(np.sqrt(lengths @ lengths) <= most * len(lengths))


def _all_rows(X: Array, y: Array, alpha: float, centred: bool, tuning: ReplicateTuning) -> WhitenedRows | None:
    n, d = X.shape
    centre = (X.mean(axis=0), float(y.mean())) if centred else None
    Z, target = (X - centre[0], y - centre[1]) if centre else (X, y)
    gram = Z.T @ Z / n
    lengths = np.sqrt(np.diag(gram))
    if not np.isfinite(gram).all() or not lengths.all():
        return None
    scaled = gram / np.outer(lengths, lengths)
    ends = np.linalg.eigvalsh(scaled)
    if not ends[-1] <= tuning.largest_condition * ends[0]:
        return None
    axes = np.linalg.inv(np.linalg.cholesky(scaled)).T / lengths[:, None]
    columns = np.ones((d + centred, n))
    np.matmul(axes.T, Z.T, out=columns[:d])
    penalty = np.zeros((len(columns), len(columns)))
    penalty[:d, :d] = alpha * axes.T @ axes
    fit = np.linalg.solve(columns @ columns.T + penalty, columns @ target)
    return WhitenedRows(columns, axes, penalty, fit, target - fit @ columns, centre)


def _moved(whole: WhitenedRows, counts: Array, tuning: ReplicateTuning) -> Array | None:
    """Return the fits of replicates (b, p) that draw rows so many times (b, n), or None where one is not determined.

    Where no few rows decide, half as many digits do for the sums of products: what they lack is a share of a step
    that is small itself, since weights are measured from 1.
    """
    width, n = whole.columns.shape
    kind: Any = np.float32 if whole.are_many(tuning.short_numbers) else np.float64
    pairs = np.triu_indices(width)
    size, unit = len(pairs[0]), float(np.abs(whole.left).max()) or 1.0
    sums = np.zeros((len(counts), size + width * (2 if kind is np.float32 else 1)))
    # Written over in every block: fresh pages of memory would take as long as the products.
    every = np.empty((len(counts), min(n, tuning.rows_of_block)), kind)
    for start in range(0, n, tuning.rows_of_block):
        block = slice(start, start + tuning.rows_of_block)
        columns, weights = whole.columns[:, block], every[:, : min(n - start, tuning.rows_of_block)]
        np.subtract(counts[:, block], kind(1), out=weights)
        sums += weights @ _products(columns.astype(kind), _pieces(columns * (whole.left[block] / unit), kind)).T
    square = np.empty((len(counts), width, width))
    square[:, pairs[0], pairs[1]] = square[:, pairs[1], pairs[0]] = sums[:, :size]
    square += whole.columns @ whole.columns.T + whole.penalty
    if not _are_determined(square, whole.columns @ whole.columns.T + whole.penalty, tuning):
        return None
    slopes = sums[:, size:].reshape(len(counts), -1, width).sum(axis=1) * unit
    slopes += whole.columns @ whole.left - whole.penalty @ whole.fit
    return whole.fit + np.linalg.solve(square, slopes[:, :, None])[:, :, 0]


def _are_determined(squares: Array, of_all: Array, tuning: ReplicateTuning) -> bool:
    """Say whether matrices (b, p, p) near one can be solved with: eigenvalues are no further off than entries."""
    ends = np.linalg.eigvalsh(of_all)
    off = float(np.sqrt(((squares - of_all) ** 2).sum(axis=(1, 2)).max()))
    if off < 0.5 * ends[0]:
        return bool(ends[-1] + off <= tuning.largest_condition * (ends[0] - off))
    every = np.linalg.eigvalsh(squares)
    return bool((every[:, -1] <= tuning.largest_condition * every[:, 0]).all())


def _pieces(values: Array, kind: Any) -> Array:
    """Return values (p, m) as numbers of a kind that add up to them (p, m) or (2 p, m).

    Of short numbers the first has 11 bits: its sums over a block of weights are exact. What is left is 2⁻¹² as large.
    """
    if kind is np.float64:
        return values
    largest = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
    unit = np.exp2(np.ceil(np.log2(largest)) - 11)
    first = np.rint(values / unit) * unit
    return np.concatenate([first, values - first]).astype(kind)


def _products(columns: Array, more: Array) -> Array:
    """Return the products of all pairs of columns (p, m), a line for each (p (p + 1) / 2, m), and more lines."""
    width, m = columns.shape
    end = width * (width + 1) // 2
    out = np.empty((end + len(more), m), dtype=columns.dtype)
    out[end:] = more
    end = 0
    for j in range(width):
        np.multiply(columns[j], columns[j:], out=out[end : end + width - j])
        end += width - j
    return out


def _refitted(estimator: Any, X: Any, y: Array, draws: tuple[int, int]) -> tuple[Array, Array]:
    """Return coefficients of all rows (p,) and of copies fitted to the rows drawn, each as often as it was (B, p)."""
    table = np.asarray(X)
    fitted = clone(estimator).fit(X, y)
    if not hasattr(fitted, "coef_") or np.size(fitted.coef_) != table.shape[1]:
        raise DataError(
            got=f"a {type(estimator).__name__}", wanted="a linear model of one target: an estimator with coef_ (d,)"
        )
    found = []
    for first, counts in drawn_counts(len(y), *draws, 1):
        rows = np.repeat(np.arange(len(y)), counts[0])
        try:
            found.append(coefficients(clone(estimator).fit(table[rows], y[rows])))
        except Exception as error:
            raise DataError(
                got=f"{type(estimator).__name__} that fails on replicate {first + 1} of {draws[1]} "
                f"({type(error).__name__}: {error})",
                wanted="an estimator that can be fitted to any rows drawn",
                fix="A rare class may be missing among the rows drawn: merge it with another.",
            ) from error
    return coefficients(fitted), np.array(found)
