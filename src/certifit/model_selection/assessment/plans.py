"""Which rows are fitted and which tested, by the method's name; and the default, with the reason for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

from certifit.checkers.model_selection.splits import (
    Split,
    SplitDeclaration,
    SplitSizes,
    certify_partition,
    certify_splits,
    row_keys,
)
from certifit.core import Certificate, Setting
from certifit.core.settings import did_you_mean
from certifit.exceptions import DataError
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.splitting.bootstrap_split import BootstrapSplit
from certifit.model_selection.splitting.check import list_splits
from certifit.rows import Array

_SHARE = Setting(float, above=0, below=1)
_FOLDS, _REPEATS = Setting(int, least=2), Setting(int, least=1)
# The options of each method, and what they are by default.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "holdout": {"test_size": 0.25},
    "subsampling": {"test_size": 0.2, "n_splits": 25},
    "k-fold": {"n_splits": 10},
    "repeated": {"n_splits": 10, "n_repeats": 5},
    "nested": {"n_splits": 10, "n_repeats": 3},
    "leave-one-out": {},
    "bootstrap": {"n_splits": 100},
    ".632": {"n_splits": 100},
    ".632+": {"n_splits": 100},
    "out-of-bag": {},
}
_ALLOWED = {"test_size": _SHARE, "n_splits": _FOLDS, "n_repeats": _REPEATS}


@dataclass(frozen=True)
class PlanTuning:
    """Where the default method changes."""

    few_rows: int = 1000  # below, folds are repeated: fits are quick and single folds tell little
    many_rows: int = 20_000  # from here, a holdout has rows enough to test
    few_members: int = 2  # rows of a class that a holdout needs to share them out


@dataclass(frozen=True)
class SingleRows(Sequence[Split]):
    """The splits that leave out one row at a time, made when they are asked for: all at once are n² numbers."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, at: Any) -> Any:
        places = range(self.n)[at]
        if isinstance(places, range):
            return [self[i] for i in places]
        everything = np.arange(self.n)
        return np.delete(everything, places), everything[places : places + 1]


@dataclass(frozen=True)
class FoldSplits(Sequence[Split]):
    """Folds that are tested in turn by what all others fit, drawn once or several times; made when asked for."""

    folds: Array  # (draws, n) the number of each row's fold
    n_folds: int  # of a draw

    @classmethod
    def of(cls, splits: Sequence[Split], n: int) -> FoldSplits | None:
        """Return splits as folds of one draw, or None where some row is not tested once and fitted otherwise."""
        folds = np.full((1, n), -1)
        for number, (train, test) in enumerate(splits):
            roles = np.bincount(np.concatenate([train, test]), minlength=n)
            if len(roles) != n or roles.min() != 1 or roles.max() != 1 or (folds[0, test] >= 0).any():
                return None
            folds[0, test] = number
        return None if (folds < 0).any() else cls(folds, len(splits))

    def __len__(self) -> int:
        return len(self.folds) * self.n_folds

    def __getitem__(self, at: Any) -> Any:
        places = range(len(self))[at]
        if isinstance(places, range):
            return [self[i] for i in places]
        draw, fold = divmod(places, self.n_folds)
        tested = self.folds[draw] == fold
        return np.flatnonzero(~tested), np.flatnonzero(tested)

    def draws(self) -> list[FoldSplits]:
        """Return every draw by itself."""
        return [FoldSplits(folds[None], self.n_folds) for folds in self.folds]

    def tests(self) -> list[Array]:
        """Return the numbers of the rows of each fold, ascending, draw by draw."""
        found: list[Array] = []
        for folds in self.folds:
            order = np.argsort(_short(folds), kind="stable")
            found += np.split(order, np.cumsum(np.bincount(folds, minlength=self.n_folds))[:-1])
        return found

    def among(self, rows: Array) -> FoldSplits | None:
        """Return the folds of some of the rows, numbered anew; None where all are in one."""
        kinds, folds = np.unique(self.folds[0, rows], return_inverse=True)
        return FoldSplits(folds[None], len(kinds)) if len(kinds) > 1 else None


@dataclass(frozen=True)
class AssessmentPlan:
    """A method with its splits."""

    method: str
    why: str  # one line
    splits: Sequence[Split] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def sizes(self) -> SplitSizes | None:
        """Return what an average split fits and tests; None where the estimator splits itself."""
        if isinstance(self.splits, SingleRows):
            n = len(self.splits)
            return SplitSizes(n, n, 1 / (n - 1))
        if isinstance(self.splits, FoldSplits):
            return SplitSizes.of_folds(self.splits.folds)
        return SplitSizes.of(self.splits) if self.splits else None

    @property
    def ratio(self) -> float:
        """Return rows tested over rows fitted, of an average split."""
        sizes = self.sizes()
        return np.nan if sizes is None else sizes.ratio


def certify_plan(plan: AssessmentPlan, problem: AssessedProblem) -> Certificate | None:
    """Return the proof that no row is fitted and tested in the same split; None where the estimator splits itself."""
    keys, terms = row_keys(problem.X), SplitDeclaration(groups=problem.groups)
    if isinstance(plan.splits, SingleRows):
        return certify_partition(np.arange(len(keys))[None], keys, terms)
    if isinstance(plan.splits, FoldSplits):
        return certify_partition(plan.splits.folds, keys, terms)
    return certify_splits(plan.splits, keys, terms) if plan.splits else None


def make_plan(problem: AssessedProblem, method: Any, options: dict[str, Any], seed: int) -> AssessmentPlan:
    """Return the splits of a method, of a splitter, or of what suits this table."""
    if not isinstance(method, str):
        _refuse_unknown("a splitter", options, {})
        _, splits = list_splits(method, problem.X, problem.y, problem.groups)
        _refuse_empty(splits, len(problem.y))
        words = f"as {method!r} splits" if hasattr(method, "split") else f"{len(splits)} of them"
        return AssessmentPlan("given splits", words, splits)
    why = "as asked for"
    if method == "auto":
        method, why = _suitable(problem)
        members = len(problem.y if problem.groups is None else np.unique(problem.groups))
        if "n_splits" in METHODS[method] and 2 <= members < METHODS[method]["n_splits"]:
            options = {"n_splits": members, **options}
    if method not in METHODS:
        raise DataError(
            got=f"method={method!r}",
            wanted=f"'auto', a splitter or one of {', '.join(map(repr, METHODS))}",
            fix=did_you_mean(method, METHODS),
        )
    _refuse_unknown(f"method={method!r}", options, METHODS[method])
    chosen = {**METHODS[method], **options}
    for name, value in chosen.items():
        _ALLOWED[name].check(name, value)
    drawn, notes = _splits(problem, method, chosen, seed)
    return AssessmentPlan(method, why, drawn, chosen, notes)


def _refuse_empty(splits: Sequence[Split], n: int) -> None:
    """Refuse splits with nothing to fit or to test, or with rows that are not there."""
    if not len(splits):
        raise DataError(got="a splitter that gives no split", wanted="at least one")
    for number, (train, test) in enumerate(splits):
        for side, rows in (("fit", train), ("test", test)):
            where = f"split {number + 1} of {len(splits)}"
            if not len(rows):
                raise DataError(got=f"{where} without a row to {side}", wanted="rows on both sides")
            if side == "test" and len(np.unique(rows)) < len(rows):
                raise DataError(
                    got=f"{where} that tests a row more than once", wanted="every row at most once in a test"
                )
            if rows.min() < 0 or rows.max() >= n:
                raise DataError(got=f"{where} with row {rows.max()} to {side}", wanted=f"row numbers 0 to {n - 1}")


def _suitable(problem: AssessedProblem, tuning: PlanTuning = PlanTuning()) -> tuple[str, str]:
    """Return the default method for a table, and why."""
    n = len(problem.y)
    if problem.groups is not None:
        return "k-fold", "rows come in groups: folds of whole groups"
    if n >= tuning.many_rows:
        return "holdout", f"{n} rows are enough to keep a quarter for one test, whose interval is exact"
    if n >= tuning.few_rows:
        return "k-fold", f"{n} rows: every row is tested once by ten fits"
    return "repeated", f"{n} rows are few: folds are drawn several times, which narrows the interval"


OF_ALL_METHODS = ("method", "metrics", "confidence", "random_state", "groups", "sample_weight", "n_jobs")

# What scikit-learn's functions call otherwise.
SCIKIT_NAMES = {
    "cv": "n_splits takes a number of folds, method a splitter.",
    "scoring": "metrics takes names of scorers, or scorers.",
}


def _refuse_unknown(of: str, options: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in options:
        if name not in known:
            more = f"or of any method ({', '.join(OF_ALL_METHODS)})"
            wanted = f"an option of it ({', '.join(known)}), {more}" if known else f"no options of its own, {more}"
            near = SCIKIT_NAMES.get(name) or did_you_mean(name, (*known, *OF_ALL_METHODS))
            raise DataError(got=f"{name}={options[name]!r} with {of}", wanted=wanted, fix=near)


def _splits(
    problem: AssessedProblem, method: str, options: Mapping[str, Any], seed: int
) -> tuple[Sequence[Split], tuple[str, ...]]:
    """Return the splits of a method, and what is to be said of them."""
    n, rng = len(problem.y), np.random.RandomState(seed)
    if problem.groups is not None and method in ("nested", "leave-one-out", "out-of-bag", ".632", ".632+"):
        raise DataError(
            got=f"method={method!r} with groups", wanted="a method that keeps groups together",
            fix="Use 'k-fold', 'repeated', 'subsampling' or 'bootstrap'.",
        )  # fmt: skip
    if method == "out-of-bag":
        return [], ()
    if method in ("bootstrap", ".632", ".632+"):
        return [*BootstrapSplit(options["n_splits"], rng).split(range(n), groups=problem.groups)], ()
    if method == "leave-one-out":
        return SingleRows(n), ()
    if method in ("holdout", "subsampling"):
        return _shuffled(problem, options, rng), ()
    return draw_folds(problem, options["n_splits"], options.get("n_repeats", 1), rng)


def _shuffled(problem: AssessedProblem, options: Mapping[str, Any], rng: np.random.RandomState) -> list[Split]:
    terms = {"n_splits": options.get("n_splits", 1), "test_size": options["test_size"], "random_state": rng}
    places = np.zeros((len(problem.y), 1))
    if problem.groups is not None:
        return [*GroupShuffleSplit(**terms).split(places, groups=problem.groups)]
    if problem.classes is not None:
        strata, _ = share_out(problem.classes, problem.codes, PlanTuning.few_members)
        kinds = len(np.unique(strata))
        if 1 < kinds <= min(options["test_size"], 1 - options["test_size"]) * len(strata):
            return [*StratifiedShuffleSplit(**terms).split(places, strata)]
    return [*ShuffleSplit(**terms).split(places)]


def draw_folds(
    problem: AssessedProblem, n_splits: int, n_repeats: int, rng: np.random.RandomState
) -> tuple[FoldSplits, tuple[str, ...]]:
    """Return shuffled folds, drawn several times; of classes each fold has its share, of groups each is whole."""
    n = len(problem.y)
    members = n if problem.groups is None else len(np.unique(problem.groups))
    if members < n_splits:
        raise DataError(
            got=f"{members} {'rows' if problem.groups is None else 'groups'} for {n_splits} folds",
            wanted="at least one for each fold",
            fix=f"n_splits={members}, say." if members > 1 else "",
        )
    strata, notes = (None, ()) if problem.classes is None else share_out(problem.classes, problem.codes, n_splits)
    # Folds of one member each are the same in every draw, and tell as much as one.
    draws = []
    for _ in range(1 if members == n_splits else n_repeats):
        if problem.groups is not None:
            notes = ()
            draws.append(_group_folds(problem.groups, n_splits, rng))
        else:
            draws.append(_deal_out(strata, n, n_splits, rng))
    return FoldSplits(np.array(draws), n_splits), tuple(notes)


def _deal_out(strata: Array | None, n: int, n_splits: int, rng: np.random.RandomState) -> Array:
    """Return the fold of each row (n,): rows are shuffled, put stratum after stratum, and dealt out in turn."""
    order = np.random.default_rng(rng.randint(2**31)).permutation(n)  # several times as fast as `rng` itself
    if strata is not None:
        order = order[np.argsort(_short(strata[order]), kind="stable")]
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.tile(np.arange(n_splits), -(-n // n_splits))[:n]
    return folds


def _short(numbers: Array) -> Array:
    """Return whole numbers from 0 in as few bytes as they need, which are sorted in as many passes."""
    return numbers.astype(np.min_scalar_type(int(numbers.max())))


def _group_folds(groups: Array, n_splits: int, rng: np.random.RandomState) -> Array:
    """Return the fold of each row (n,), the same for all rows of a group."""
    folds = np.empty(len(groups), dtype=np.intp)
    cv = GroupKFold(n_splits, shuffle=True, random_state=rng.randint(2**31))
    for number, (_, test) in enumerate(cv.split(np.zeros((len(groups), 1)), groups=groups)):
        folds[test] = number
    return folds


def share_out(classes: Array, codes: Array, least: int) -> tuple[Array, tuple[str, ...]]:
    """Return the stratum of each row (n,): its class, or one for all classes with fewer than `least` rows.

    >>> strata, notes = share_out(np.array(list("abcd")), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 3]), 3)
    >>> strata
    array([0, 0, 0, 0, 1, 1, 1, 1, 0, 0])
    >>> notes
    ('classes with fewer than 3 rows are not in every fold: c, d',)
    """
    counts = np.bincount(codes, minlength=len(classes))
    rare = counts < least
    if not rare.any():
        return codes, ()
    merged = int(np.argmax(counts)) if counts[rare].sum() < least else int(np.flatnonzero(rare)[0])
    words = ", ".join(str(name) for name in classes[rare][:10])
    return np.where(rare[codes], merged, codes), (
        f"classes with fewer than {least} rows are not in every fold: {words}",
    )
