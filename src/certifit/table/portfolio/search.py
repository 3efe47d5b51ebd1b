"""From labelled rows to one model: candidates are compared, one is chosen and fitted to all rows.

The choice is by the one-standard-error rule, of differences row by row where that is less, the simplest kind first;
its score is corrected for the choice (`model_selection.choosing`), and the claim is certified. Scores come from folds
in which everything is learnt again, the encoding of the columns included; only which columns tell the rows apart is
known from all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.checkers.model_selection.choices import certify_choice
from certifit.checkers.model_selection.splits import (
    Split,
    SplitDeclaration,
    certify_partition,
    certify_splits,
    row_keys,
)
from certifit.exceptions import CertificateWarning, DataError
from certifit.model_selection.assessment.assess import make_problem
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.assessment.plans import FoldSplits, make_plan
from certifit.model_selection.choosing.choose_setting import make_claim
from certifit.rows import Array
from certifit.rows.folds import shuffled_folds, stratified_folds
from certifit.rows.named_columns import nearest_names
from certifit.table.cross_validation import CrossValidation, assess_answers
from certifit.table.labelled_table import LabelledTable
from certifit.table.portfolio.calibration import unseen_errors
from certifit.table.portfolio.candidates import KINDS, RUN_ORDER, Settings, TableFacts, build
from certifit.table.portfolio.clock import Clock
from certifit.table.portfolio.contest import Contest, Trial
from certifit.table.portfolio.digest import fitted_digest
from certifit.table.portfolio.later_rows import later_splits
from certifit.table.portfolio.ledger import SearchLedger
from certifit.table.portfolio.metrics import find_metric
from certifit.table.portfolio.rivals import Rivals, gain_error
from certifit.table.streaming.row_sample import frequent
from certifit.table.streaming.streamed_table import StreamedTable
from certifit.table.table_model import LabelledData, TableModel
from certifit.table.text.dates import date_formats


@dataclass(frozen=True)
class SearchSettings:
    """What a search was asked to do."""

    budget: float = 20.0  # seconds for comparing models and for fitting the chosen one to all rows
    model: str = "auto"  # or one kind of model alone, or several with commas between them
    metric: str = "auto"
    folds: int = 5
    seed: int = 0
    class_weight: Any = None
    family: str = "auto"
    settings: Settings | None = None  # of the named model
    tunes: bool = True  # whether further settings are tried in the time left
    rule: str = "one standard error of the difference"
    confidence: float = 0.9
    fewest_rows: int = 20  # of a table on which models are compared
    rows_per_second: int = 500  # of the budget: on so many rows models are compared, drawn from all
    least_sample: int = 5_000  # such rows
    fewest_of_class: int = 5  # such rows, of a class that takes part
    largest_sample: int = 50_000
    draws: int = 300  # of the correction for the choice

    @property
    def most_rows(self) -> int:
        """On how many rows models are compared; the chosen one is fitted to all."""
        return int(np.clip(self.rows_per_second * self.budget, self.least_sample, self.largest_sample))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of models to try, in this order."""
        return RUN_ORDER if self.model == "auto" else tuple(name.strip() for name in self.model.split(","))


@dataclass(frozen=True)
class RowOrder:
    """Columns that say which rows belong together, and which come later; they are not learnt from."""

    groups: Array | None = None  # (n,)
    times: Array | None = None  # (n,)
    group: str = ""  # names of the columns
    time: str = ""

    def among(self, rows: Array) -> RowOrder:
        """The same for some of the rows."""
        groups, times = (None if values is None else values[rows] for values in (self.groups, self.times))
        return replace(self, groups=groups, times=times)


@dataclass(frozen=True)
class FoundModel:
    """A fitted model, how it came about, and what it is worth on new rows."""

    model: TableModel
    assessment: CrossValidation

    @property
    def ledger(self) -> SearchLedger:
        """Everything that was decided."""
        return self.model.search_


def in_memory(data: LabelledData) -> LabelledTable:
    """The rows themselves, or those drawn from a table that is read block by block."""
    return data.sample if isinstance(data, StreamedTable) else data


def why_not_compared(data: LabelledTable, settings: SearchSettings) -> str:
    """Why models cannot be compared on these rows; empty where they can."""
    if len(data.y) < settings.fewest_rows:
        return f"{len(data.y)} rows are too few to compare models"
    if data.choice.task == "classification":
        classes, counts = np.unique(data.y, return_counts=True)
        if (counts >= 2).sum() < 2:
            rarest = str(classes[counts.argmin()])
            return f"class {rarest!r} has a single row; merge it with another class or leave it out"
    return ""


def search(
    data: LabelledData,
    settings: SearchSettings,
    order: RowOrder = RowOrder(),
    tell: Callable[[Contest, Trial], Any] = lambda contest, trial: None,
    replay: SearchLedger | None = None,
) -> FoundModel:
    """Compare, choose and fit; `replay` repeats what a ledger says and looks at no clock."""
    check_names(settings)
    compared, rows = _compared_rows(data, settings)
    contest, notes = _make_contest(
        compared, settings, order.among(rows), Clock(None if replay else settings.budget), tell
    )
    contest.whole_rows = data.n_rows
    contest.facts = replace(contest.facts, whole_rows=data.n_rows)
    if isinstance(data, StreamedTable):
        contest.facts = replace(contest.facts, streamed_rows=data.n_rows)
    notes += _drawn_notes(data, compared)
    _run(contest, settings, replay)
    rivals = Rivals.of(contest)
    terms = {"n_splits": len(contest.splits), "rule": settings.rule, "draws": settings.draws}
    claim = make_claim(rivals.scores, contest.metric.of_rows, settings.confidence, settings.seed, terms)
    winner = rivals.trials[claim.chosen]
    model = build(winner.name, winner.settings, replace(contest.facts, reading=data.reading))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # the certificate itself is shown
        model.fit(data)
    if winner.name == "least_squares" and "linear" in settings.kinds:
        model.family_because_ = "it did better than a log link where both were compared"
    tested, metric = winner.tested, contest.metric
    answers = {method: values[tested] for method, values in winner.answers.items()}
    attempts = replay.attempts if replay else tuple(contest.attempt(trial) for trial in contest.trials)
    low, high = metric.ends(claim.low, claim.high)
    model.search_ = SearchLedger(
        metric.name, metric.larger_is_better, len(contest.splits), settings.metric, settings.folds, settings.seed,
        settings.budget, len(compared.y), settings.model, order.group, order.time, settings.class_weight,
        settings.family, settings.rule, attempts, _chosen(contest, winner, attempts), metric.shown(claim.corrected),
        low, high, settings.confidence,
        certify_choice(claim, _certified_splits(contest, compared, order.among(rows))),
        unseen_errors(compared.y[tested], contest.problem.classes, answers), fitted_digest(model),
        data.engine if isinstance(data, StreamedTable) else "", len(rivals.trials),
        gain_error(contest, winner),
    )  # fmt: skip
    assessment = _with_all_classes(assess_answers(compared, winner.answers, contest.splits, notes), compared, model)
    seen = rows if assessment.rows is None else rows[assessment.rows]
    return FoundModel(model, replace(assessment, rows=seen if len(seen) < len(in_memory(data).y) else None))


def _with_all_classes(found: CrossValidation, compared: LabelledTable, model: TableModel) -> CrossValidation:
    """The assessment with answers (n, k) for all classes of a model, also those that had no part in it."""
    classes, held = getattr(model, "classes_", None), found.predicted
    if classes is None or held is None or held.shape[1] == len(classes):
        return found
    predicted = np.zeros((len(held), len(classes)))
    predicted[:, np.isin(classes, np.unique(compared.y))] = held
    return replace(found, predicted=predicted)


def check_names(settings: SearchSettings) -> None:
    for name in settings.kinds:
        if name not in KINDS:
            near = nearest_names(name, [*KINDS])
            raise DataError(
                got=f"the model {name!r}", wanted=f"auto, or some of {', '.join(KINDS)}",
                fix=f"Did you mean {near[0]!r}?" if near else "",
            )  # fmt: skip


def _compared_rows(whole: LabelledData, settings: SearchSettings) -> tuple[LabelledTable, Array]:
    """The rows on which models are compared, and their numbers; columns that tell rows apart are left out."""
    data = in_memory(whole)
    # Part of the rows may have numbers with gaps: what tells rows apart is judged by all of them.
    table = data.table.drop_columns([c.name for c in whole.columns if c.identifies])
    keep = tuple(c.name for c in whole.columns if c.kind != "left out")
    rows = np.arange(len(data.y))
    drawn = len(rows) > settings.most_rows
    if drawn:
        rows = np.sort(np.random.default_rng(settings.seed).permutation(rows)[: settings.most_rows])
    if data.choice.task == "classification":  # a class with a single row is either learnt or tested
        rows = rows[frequent(data.y[rows], settings.fewest_of_class if drawn else 2)]
    if len(rows) < len(data.y):
        table = table.take(rows)
    w = None if data.w is None else data.w[rows]
    categorical = tuple(name for name in data.categorical if name in table.column_names)
    dates = tuple(word for word in data.dates if date_formats([word]).keys() & {*table.column_names})
    part = replace(data, table=table, y=data.y[rows], w=w, keep=keep, categorical=categorical, dates=dates)
    return part, rows


def _drawn_notes(whole: LabelledData, compared: LabelledTable) -> tuple[str, ...]:
    """What to know where models are compared on rows drawn from the table."""
    if len(compared.y) == whole.n_rows:
        return ()
    drawn = f"models were compared on {len(compared.y):,} of {whole.n_rows:,} rows, drawn at random"
    notes: tuple[str, ...] = (drawn,)
    if whole.choice.task == "regression":
        return notes
    labels, counts = whole.label_counts
    gone = ~np.isin(labels, np.unique(compared.y))
    if not gone.any():
        return notes
    notes = notes if whole.n_rows - len(compared.y) > counts[gone].sum() else ()
    pairs = [*zip(labels[gone].tolist(), counts[gone].tolist(), strict=True)]
    listed = ", ".join(f"{str(label)!r} ({count:,})" for label, count in pairs[:5])
    more = f" and {len(pairs) - 5:,} more" if len(pairs) > 5 else ""
    among = " among those drawn" if notes else " to be learnt and tested"
    words = f"have too few rows{among}, and no part in the scores; the chosen model is fitted to them too"
    return (*notes, f"classes {listed}{more} {words}")


def _make_contest(
    data: LabelledTable,
    settings: SearchSettings,
    order: RowOrder,
    clock: Clock,
    tell: Callable[[Contest, Trial], Any],
) -> tuple[Contest, tuple[str, ...]]:
    metric = find_metric(settings.metric, data, settings.family)
    facts = TableFacts.of(data, settings.seed, settings.class_weight, settings.family)
    options = {"sample_weight": data.w, "groups": order.groups}
    problem = make_problem(build("linear", {}, facts), data.table, data.y, options)
    splits, notes = _folds(problem, settings, order)
    _check_folds(problem, splits, order)
    return Contest(problem, splits, metric, facts, clock, tell, settings.confidence), notes


def _check_folds(problem: AssessedProblem, splits: Sequence[Split], order: RowOrder) -> None:
    """Refuse folds whose earlier rows, or whose groups, are all of one class."""
    if problem.classes is None:
        return
    for number, (train, _) in enumerate(splits):
        seen = np.unique(problem.y[train])
        if len(seen) < 2:
            raise DataError(
                got=f"class {str(seen[0])!r} alone in the rows to learn from in fold {number + 1} of {len(splits)}",
                wanted="at least two classes there",
                fix=f"Folds follow the column {order.time or order.group!r}: take fewer (--cv), or another column.",
            )


def _folds(
    problem: AssessedProblem, settings: SearchSettings, order: RowOrder
) -> tuple[Sequence[Split], tuple[str, ...]]:
    """Folds of whole groups, of later and later rows, of shuffled rows, or of rows shuffled class by class."""
    n, folds = len(problem.y), settings.folds
    if order.times is not None:
        splits = later_splits(order.times, order.groups, folds, (order.time, order.group))
        words = f"each fold tests rows that are later, by {order.time}, than those it was fitted to"
        words += "" if order.groups is None else f", and of other groups, by {order.group}"
        if len(splits) == folds:
            return splits, (words,)
        return splits, (words, f"{len(splits)} folds instead of {folds}: many rows have the same {order.time}")
    if problem.groups is not None:
        folds = min(folds, len(np.unique(problem.groups)))
        plan = make_plan(problem, "k-fold", {"n_splits": folds}, settings.seed)
        return plan.splits, (f"all rows of a group, by {order.group}, are in the same of {folds} folds",)
    notes: tuple[str, ...] = ()
    if problem.classes is None:
        made = shuffled_folds(n, folds, settings.seed)
    else:
        code, counts = np.unique(problem.y, return_inverse=True, return_counts=True)[1:]
        rarest = int(counts.argmin())
        few = min(folds, int(counts[rarest]))
        words = f"{few} folds instead of {folds}: class {str(problem.classes[rarest])!r} has {counts[rarest]} rows"
        notes = (words,) if few < folds else ()
        made = stratified_folds(code, few, settings.seed)
    found = FoldSplits.of(made, n)
    assert found is not None
    return found, notes


def _run(contest: Contest, settings: SearchSettings, replay: SearchLedger | None) -> None:
    """Score the baseline and all candidates; an interruption keeps what is scored."""
    contest.run_baseline()
    if replay is not None:
        for attempt in replay.attempts[1:]:
            if attempt.fate == "scored":
                contest.run_kind(attempt.name, attempt.settings)
        return
    try:
        for name in settings.kinds:
            contest.run_kind(name, (settings.settings if name == settings.model else None) or {})
        if not contest.scored:
            raise DataError(
                got="; ".join(f"{t.words}: {t.why}" for t in contest.trials[1:]), wanted="a model that can be fitted"
            )
        if settings.tunes:
            contest.halve_settings()
    except KeyboardInterrupt:
        if not contest.scored:
            raise
        for trial in contest.trials:
            if trial.fate == "running":
                trial.end("stopped", "interrupted")


def _chosen(contest: Contest, winner: Trial, attempts: Sequence[Any]) -> int:
    """The number of the winner among the attempts of the ledger."""
    if len(attempts) == len(contest.trials):
        return next(number for number, trial in enumerate(contest.trials) if trial is winner)
    return next(
        number
        for number, attempt in enumerate(attempts)
        if attempt.fate == "scored" and (attempt.name, attempt.settings) == (winner.name, winner.settings)
    )


def _certified_splits(contest: Contest, data: LabelledTable, order: RowOrder) -> Any:
    keys, terms = row_keys(data.encode().X), SplitDeclaration(groups=order.groups, times=order.times)
    if isinstance(contest.splits, FoldSplits):
        return certify_partition(contest.splits.folds, keys, terms)
    return certify_splits(contest.splits, keys, terms)
