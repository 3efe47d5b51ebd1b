"""What makes an interval cover less often than it says, looked for in the table and in its scores.

Every interval rests on rows that are independent draws, and all but the exact ones on means that are about normal.
Both can be put to the test: rows that equal fitted ones with their targets are copies; errors of independent rows do
not follow those of their neighbours; means of few or very skewed scores are not normal. What is found is said beside
the interval, which then no longer claims to cover at least as often as it says. Where rows are so far from
independent draws that no interval by this road would be honest, there is none.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.model_selection.copies import equal_by_chance
from certifit.checkers.model_selection.intervals import IntervalClaim, rows_for_normal
from certifit.checkers.model_selection.splits import Split, SplitSizes, row_keys
from certifit.core import Certificate
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.leakage import columns_at
from certifit.model_selection.assessment.metrics import ROW_METRICS
from certifit.model_selection.assessment.resampled_errors import score_rows
from certifit.rows import Array


@dataclass(frozen=True)
class CautionTuning:
    """From where on an interval says that it may cover less often."""

    fewest_rows: int = 30  # tested, for a mean whose error is widened as rows of several folds depend on each other
    fewest_groups: int = 30  # of which as few tests are made as of rows
    fewest_of_class: int = 20  # tested rows of every class, for scores of whole tests: areas, F1 and the like
    fewest_of_class_a_test: float = 4.0  # of an average test
    rows_of_class: int = 10  # on average, for folds, which leave fewer of each to fit
    copied: float = 0.02  # share of tested rows that are copies of fitted ones, or of classes that were not fitted
    mostly_copied: float = 0.1  # from where on there is no interval: scores may be too good by as much
    agreeing: float = 0.95  # share of equal rows that have equal targets, where they are copies
    alike: float = 0.1  # correlation of the errors of rows that follow each other
    too_alike: float = 0.2  # from where on there is no interval: √(1.2 / 0.8) wider ones would cover 90 % (Bartlett)
    sure: float = 4.0  # standard errors that this correlation is from 0
    most_followed: int = 20_000  # rows whose errors are followed
    most_told: int = 2000  # rows and columns from which trees tell errors
    most_columns: int = 200
    whole_table: float = 0.5  # groups a row, from where on most rows are by themselves


@dataclass(frozen=True)
class IntervalDoubt:
    """Why an interval may cover less often than it says."""

    reason: str
    refutes: bool = False  # what the interval rests on, so that there is none


def caution(
    claims: Sequence[IntervalClaim],
    problem: AssessedProblem,
    metrics: Mapping[str, Any],
    tests: tuple[UnseenAnswers, int],
    common: Sequence[IntervalDoubt],
) -> list[IntervalClaim]:
    """Return claims that say why they may cover less often than they say, where there is a reason.

    `metrics` are those of the claims, by name; `tests` are every tested row once, and the rows of an average test;
    `common` are doubts of the rows, for all claims alike.
    """
    found = []
    for claim in claims:
        few = _few_doubts(claim, problem, metrics[claim.metric], tests)
        found.append(doubted(claim, [*common, *few]) if claim.way != "none" else claim)
    return found


def doubted(claim: IntervalClaim, doubts: Sequence[IntervalDoubt]) -> IntervalClaim:
    """Return a claim that may cover less often than it says, or has no interval, for the reasons given."""
    if not doubts:
        return claim
    if is_refuted(doubts):
        # The mean of the scores that were kept is the estimate, but for those of tests drawn anew and logarithms.
        kept = np.array([claim.estimate]) if claim.way in ("percentiles", "log scale") else claim.values
        words = f"no interval: {why_none(doubts)}"
        return replace(claim, way="none", low=np.nan, high=np.nan, values=kept, assumption=words, covers="")
    words = f"{claim.assumption}; {less_often(doubts)}"
    return replace(claim, assumption=words, covers="perhaps less")


def is_refuted(doubts: Sequence[IntervalDoubt]) -> bool:
    """Say whether there is to be no interval."""
    return any(doubt.refutes for doubt in doubts)


def why_none(doubts: Sequence[IntervalDoubt]) -> str:
    """Return in words why there is no interval."""
    return ", and ".join(doubt.reason for doubt in doubts if doubt.refutes)


def sizes_of_tests(splits: Certificate | None, sizes: SplitSizes | None, tested: int) -> tuple[int, float]:
    """Return the rows of an average test, and the share of tested rows that equal a fitted one in every column."""
    if splits is None or sizes is None:
        return tested, 0.0
    equal = float(splits.facts.get("tested rows equal to a fitted row", 0))
    return round(sizes.tested / max(1, sizes.splits)), equal / max(1, sizes.tested)


def less_often(doubts: Sequence[IntervalDoubt]) -> str:
    """Return doubts in words."""
    return f"may cover less often than it says: {', and '.join(doubt.reason for doubt in doubts)}"


# Rows that are no independent draws ---------------------------------------------------------------------------------


def doubts_of_rows(problem: AssessedProblem, tested: UnseenAnswers, equal: float) -> list[IntervalDoubt]:
    """Return why tested rows are no independent draws; `equal` is the share of them that equal a fitted one."""
    return dependence_doubts(problem, tested.test, answer_errors(problem, tested), equal)


def dependence_doubts(
    problem: AssessedProblem,
    rows: Array,
    errors: Array | None,
    equal: float,
    tuning: CautionTuning = CautionTuning(),
) -> list[IntervalDoubt]:
    """Return why tested rows (m,), ascending, are no independent draws, as far as table and errors (m,) show it."""
    doubts = []
    if equal > tuning.copied and targets_agree(problem, tuning.agreeing):
        first = np.unique(row_keys(problem.X), return_index=True)[1]
        if not equal_by_chance(problem.X, problem.y, first):
            words = (
                f"{100 * equal:.3g} % of tested rows are copies of fitted ones; groups='copies' keeps them together"
            )
            doubts.append(IntervalDoubt(words, equal > tuning.mostly_copied))
    if problem.groups is not None:
        groups = len(np.unique(problem.groups[rows]))
        if groups < tuning.fewest_groups:
            doubts.append(IntervalDoubt(f"{groups} groups are few"))
        if groups < tuning.whole_table * len(rows):
            return doubts
    share = 0.0 if problem.reconstructs or errors is None else neighbours_alike(problem, rows, errors, tuning)
    if share and errors is not None:
        words = (
            f"errors of rows that follow each other are alike (correlation {share:.2f}), as where rows follow in "
            "time or belong together: groups= keeps such rows, or whole stretches of time, on one side"
        )
        refutes = share > tuning.too_alike and not told_by_columns(problem, rows, errors, tuning)
        doubts.append(IntervalDoubt(words, refutes))
    return doubts


def told_by_columns(problem: AssessedProblem, rows: Array, errors: Array, tuning: CautionTuning) -> bool:
    """Say whether errors (m,) of neighbours are alike because these are alike in their columns.

    A model that misses a bend errs alike for rows that are near each other, of independent rows too where the table
    is sorted by a place, say. Once trees have told the errors from the columns they are then no longer alike.
    """
    rows, errors = rows[: tuning.most_told], errors[: tuning.most_told]
    if sparse.issparse(problem.X):
        return False
    columns = [_numbers(values) for _, values in columns_at(problem.X, rows, tuning.most_columns)]
    if not columns:
        return False
    from sklearn.ensemble import RandomForestRegressor

    trees = RandomForestRegressor(50, min_samples_leaf=2, oob_score=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that every tree has drawn: they are told 0
        said = np.nan_to_num(trees.fit(np.column_stack(columns), errors).oob_prediction_)
    return neighbour_correlation(problem, rows, errors - said) <= tuning.too_alike


def _numbers(values: Array) -> Array:
    """Return a column (m,) as finite numbers, what is missing as their mean, and words as their places."""
    if values.dtype.kind in "OUS":
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.float64)
    found = values.astype(np.float32).astype(np.float64)  # as trees have them
    finite = np.isfinite(found)
    return np.where(finite, found, found[finite].mean() if finite.any() else 0.0)


def unseen_class_doubts(
    problem: AssessedProblem, splits: Sequence[Split], tuning: CautionTuning = CautionTuning()
) -> list[IntervalDoubt]:
    """Return why given splits say nothing of a model fitted to all rows, which knows classes that theirs do not.

    Folds in the order of a sorted table are like this, whose tests are of one class that no other fold has.
    """
    if problem.classes is None or problem.groups is not None:
        return []
    unseen, tested = 0, 0
    for train, test in splits:
        known = np.bincount(problem.codes[train], minlength=len(problem.classes)) > 0
        unseen += int(np.count_nonzero(~known[problem.codes[test]]))
        tested += len(test)
    share = unseen / max(1, tested)
    if share <= tuning.copied:
        return []
    words = f"{100 * share:.3g} % of tested rows are of classes that were not fitted: rows want to be shuffled"
    return [IntervalDoubt(words, share > tuning.mostly_copied)]


def targets_agree(problem: AssessedProblem, least: float) -> bool:
    """Say whether rows that are equal in every column nearly all have the target of the first such row."""
    keys = row_keys(problem.X)
    _, first, kinds, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    others = (counts[kinds] > 1) & (first[kinds] != np.arange(len(keys)))
    same = problem.y[others] == problem.y[first[kinds[others]]]
    return bool(len(same) and np.mean(same) >= least)


def answer_errors(problem: AssessedProblem, tested: UnseenAnswers) -> Array | None:
    """Return by how much tested rows are missed (m,): of classes, 1 for a wrong one."""
    said = tested.answers.get("predict")
    if said is None or np.shape(said) != tested.test.shape:
        return None
    y = problem.y[tested.test]
    return np.asarray(said != y if problem.classes is not None else y - said, dtype=np.float64)


def neighbours_alike(
    problem: AssessedProblem, rows: Array, errors: Array, tuning: CautionTuning = CautionTuning()
) -> float:
    """Return the correlation of the errors (m,) of rows (m,) that follow each other, 0 where it may be chance."""
    rows, errors = rows[: tuning.most_followed], errors[: tuning.most_followed]
    share = neighbour_correlation(problem, rows, errors)
    return share if share > tuning.alike and share * np.sqrt(len(rows)) > tuning.sure else 0.0


def neighbour_correlation(problem: AssessedProblem, rows: Array, errors: Array) -> float:
    """Return the correlation of the errors (m,) of rows (m,) that follow each other.

    In a table that is sorted by its target neighbours have like errors although rows are independent: nothing is
    told there, and errors of classes are compared with those of their own class.
    """
    if problem.classes is not None:
        codes = problem.codes[rows]
        errors = errors - (np.bincount(codes, errors) / np.maximum(np.bincount(codes), 1))[codes]
    ascends = np.diff(problem.y[rows].astype(np.float64) if problem.classes is None else problem.codes[rows])
    if len(rows) < 2 or (ascends >= 0).all() or (ascends <= 0).all() or not np.isfinite(errors).all():
        return 0.0
    apart = errors - errors.mean()
    size = float(np.abs(apart).max())
    if size == 0:
        return 0.0
    apart /= size
    return float(apart[1:] @ apart[:-1]) / float(apart @ apart)


# Rows that are too few ----------------------------------------------------------------------------------------------


def _few_doubts(
    claim: IntervalClaim,
    problem: AssessedProblem,
    metric: Any,
    tests: tuple[UnseenAnswers, int],
    tuning: CautionTuning = CautionTuning(),
) -> list[IntervalDoubt]:
    """Return why the tested rows are too few for an interval by a limit theorem; exact ones need none."""
    if claim.way == "betting" or (claim.way == "binomial" and claim.worth == 1) or claim.covers == "perhaps less":
        return []
    tested, of_a_test = tests
    n = len(tested.test)
    if metric == "r2":
        # Linearised rows: of folds of one row each they are the scores, of larger ones there are to be enough.
        return skewness_doubts(claim.values if len(claim.values) == n else np.arange(n), tuning)
    if not isinstance(metric, str) or metric not in ROW_METRICS:
        return _few_of_class(problem, tested, of_a_test, tuning)
    if claim.way != "binomial":
        of_rows = claim.way == "normal" or len(claim.values) == n
        scores = claim.values if of_rows else score_rows(ROW_METRICS[metric], problem, tested)
        scores = scores if of_rows else problem.weighed(scores, tested.test)
        skewed = skewness_doubts(scores, tuning)
        if skewed:
            return skewed
    kinds = 0 if problem.classes is None else len(problem.classes)
    if claim.way != "normal" and n < tuning.rows_of_class * kinds:
        return [IntervalDoubt(f"{n} rows are few for {kinds} classes, of which folds leave fewer still to fit")]
    return []


def skewness_doubts(scores: Array, tuning: CautionTuning = CautionTuning()) -> list[IntervalDoubt]:
    """Return why the mean of scores of rows (n,) is not about normal."""
    if (scores == scores[0]).all():
        return [IntervalDoubt("all scores are alike, and tell nothing of their error")]
    if len(scores) >= rows_for_normal(scores, tuning.fewest_rows):
        return []
    words = f"{len(scores)} tested rows are few for a limit theorem where scores are as skewed as these"
    return [IntervalDoubt(words)]


def _few_of_class(
    problem: AssessedProblem, tested: UnseenAnswers, of_a_test: int, tuning: CautionTuning
) -> list[IntervalDoubt]:
    """Return why scores of whole tests, which are no means over rows, have too few rows of some class."""
    if problem.classes is None:
        return []
    counts = np.bincount(problem.codes[tested.test], minlength=len(problem.classes))
    rare = int(counts.argmin())
    each = counts[rare] * of_a_test / len(tested.test)
    if counts[rare] >= tuning.fewest_of_class and each >= tuning.fewest_of_class_a_test:
        return []
    words = f"{counts[rare]} tested rows of class {problem.classes[rare]}, {each:.2g} a test, are few for a score"
    return [IntervalDoubt(f"{words} of the whole test")]
