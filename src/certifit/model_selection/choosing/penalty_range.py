"""A range of penalties of which none is better by more than eps, proved from solutions at some of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from certifit.checkers.model_selection.penalty_range import (
    FoldedTable,
    PenaltyClaim,
    certify_penalty,
    not_certainly_right,
    segment_bound,
)
from certifit.core import Certificate, Setting
from certifit.core.progress import counted
from certifit.core.settings import MAX_TIME
from certifit.exceptions import DataError
from certifit.model_selection.assessment.assess import make_problem
from certifit.model_selection.assessment.plans import draw_folds
from certifit.model_selection.assessment.without_refits.left_out_by_proof import (
    LeftOutTuning,
    MarginProblem,
    margin_problem,
    minimum_of_all,
)
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array


@dataclass(frozen=True, repr=False)
class PenaltyRange(TabledResult):
    """Cross-validated errors over a range of C with lower bounds in between; prints as a table."""

    picture = "plot_penalty_range"

    model: str
    claim: PenaltyClaim
    errors: Array  # (m,) shares of rows left out that are not certainly right, at every C solved for
    bounds: Array  # (m - 1,) lower bounds on the error between them
    certificate: Certificate
    rows: FoldedTable  # the rows and their folds

    @property
    def best_C(self) -> float:
        """Return the C with the smallest error."""
        return float(self.claim.Cs[self.claim.best])

    @property
    def eps(self) -> float:
        """Return by how much a C in the range may be better, at most."""
        return self.claim.eps

    def table(self) -> ResultTable:
        """Return a line for each C solved for, some of them where they are many."""
        at = np.unique(np.linspace(0, len(self.claim.Cs) - 1, 12).astype(int))
        between = [float(self.bounds[i:j].min()) for i, j in pairwise(at)]
        columns: dict[str, Any] = {
            "C": self.claim.Cs[at].tolist(),
            "error": self.errors[at].tolist(),
            "at least, up to the next": [*between, np.nan],
        }
        return ResultTable(f"{self.model}: error by C", columns, (self.certificate.claim,))


def prove_penalty(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    between: tuple[float, float] = (1e-2, 1e2),
    eps: float = 0.02,
    random_state: Any = 0,
    **options: Any,
) -> PenaltyRange:
    """Prove that no C in a range has a cross-validated share of wrong classes that is lower by more than eps.

    C is solved for where the range is still open, until it is not, `max_solutions` are found or `max_time` is over:
    `eps` of the result says what is proved then.

    Parameters
    ----------
    estimator : a ridge-penalised LogisticRegression or squared-hinge LinearSVC of either library, of two classes
    X, y : table of finite numbers and target
    between : the range of C
    eps : a share of the rows
    random_state : int, RandomState or None: how folds are drawn
    **options : n_splits (5 folds), max_solutions (200), max_time (seconds), groups (n,)

    Returns
    -------
    PenaltyRange : `best_C`, `eps`, `certificate`; prints as a table

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> found = prove_penalty(LogisticRegression(), X[:, :5], y, between=(0.01, 1.0), eps=0.05)
    >>> found.eps <= 0.05, found.certificate.holds
    (True, True)
    """
    terms: dict[str, Any] = {"n_splits": 5, "max_solutions": 200, "max_time": None}
    terms |= {name: options.pop(name) for name in terms if name in options}
    Setting(float, above=0, below=1).check("eps", eps)
    Setting(int, least=2).check("n_splits", terms["n_splits"])
    Setting(int, least=2).check("max_solutions", terms["max_solutions"])
    MAX_TIME.check("max_time", terms["max_time"])
    low, high = _range(between)
    problem = make_problem(estimator, X, y, options)
    if options:
        raise DataError(got=f"the option {next(iter(options))}", wanted="n_splits, max_solutions, max_time or groups")
    known = margin_problem(replace(problem, estimator=clone(estimator).set_params(C=1.0)))
    if known is None or problem.weights is not None:
        raise DataError(
            got=f"a {type(estimator).__name__} on this table",
            wanted="a ridge-penalised LogisticRegression or squared-hinge LinearSVC of two classes, finite numbers",
        )
    seed = check_random_state(random_state)
    folds = draw_folds(problem, terms["n_splits"], 1, seed)[0].folds[0]
    free = not known.ridge.all()
    table = FoldedTable(known.X[:, :-1] if free else known.X, known.y, folds, free, known.loss.self_concordant)
    search = PenaltySearch(known, table, {})
    claim = search.run((low, high), eps, terms["max_solutions"], terms["max_time"])
    errors = np.array([search.error(C) for C in claim.Cs])
    bounds = np.array([search.bound(*pair) for pair in pairwise(claim.Cs)])
    return PenaltyRange(type(estimator).__name__, claim, errors, bounds, certify_penalty(claim, table), table)


def _range(between: Any) -> tuple[float, float]:
    found = np.asarray(between, dtype=np.float64)
    if found.shape != (2,) or not np.isfinite(found).all() or not 0 < found[0] < found[1]:
        raise DataError(got=f"between={between!r}", wanted="two positive numbers, the smaller first")
    return float(found[0]), float(found[1])


@dataclass(frozen=True)
class PenaltySearch:
    """Solutions by C, found where they are needed."""

    problem: MarginProblem
    table: FoldedTable
    solved: dict[float, Array]  # by C: models (folds, p)

    def run(self, between: tuple[float, float], eps: float, most: int, limit: float | None) -> PenaltyClaim:
        """Solve at the ends and wherever the bound is lowest, until it is high enough or time is up."""
        start = time.monotonic()
        with counted("solving for C, at most", most) as advance:
            bounds = {between: self.bound(*between)}
            while True:
                advance(len(self.solved), most)
                best = min(self.error(C) for C in self.solved)
                open_pair = min(bounds, key=lambda pair: (bounds[pair], -pair[1] / pair[0]))
                if best - bounds[open_pair] <= eps or len(self.solved) >= most:
                    break
                if limit is not None and time.monotonic() - start > limit:
                    break
                middle = float(np.sqrt(open_pair[0] * open_pair[1]))
                del bounds[open_pair]
                for pair in ((open_pair[0], middle), (middle, open_pair[1])):
                    bounds[pair] = self.bound(*pair)
        Cs = np.array(sorted(self.solved))
        errors = np.array([self.error(C) for C in Cs])
        place = int(np.argmin(errors))
        models = np.stack([self.solved[C] for C in Cs])
        proved = max(0.0, float(errors[place]) - min(bounds.values()))
        return PenaltyClaim(Cs, models, place, float(errors[place]), proved)

    def models(self, C: float) -> Array:
        """Return the minimum without each fold (folds, p)."""
        if C not in self.solved:
            found = []
            near = min(self.solved, key=lambda other: abs(np.log(other / C)), default=None)
            for k in range(int(self.table.folds.max()) + 1):
                keep = self.table.folds != k
                part = replace(self.problem, X=self.problem.X[keep], y=self.problem.y[keep], C=float(C))
                w = minimum_of_all(part, LeftOutTuning(), None if near is None else self.solved[near][k])
                if w is None:
                    raise DataError(
                        got=f"C={C:.4g}, at which Newton's method does not reach the minimum without fold {k + 1}",
                        wanted="a range of C with minima that can be found", fix="Scale the columns.",
                    )  # fmt: skip
                found.append(w)
            self.solved[C] = np.array(found)
        return self.solved[C]

    def error(self, C: float) -> float:
        """Return the share of rows left out that are not certainly right at C."""
        return not_certainly_right(self.table, C, self.models(C)) / len(self.table.y)

    def bound(self, low: float, high: float) -> float:
        """Return a lower bound on the error of every C between two."""
        return segment_bound(self.table, (low, self.models(low)), (high, self.models(high))) / len(self.table.y)
