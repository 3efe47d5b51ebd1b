"""What a reader should know before trusting a model of a table, whatever its certificate proves.

A certificate says that a problem was solved, not that the problem was worth solving. Alerts are about the table (a
column that gives the target away, copies of rows, rows in order of time, rare classes) and about the use of the
model: whether it predicts better than somebody who knows the target's frequencies, or its mean, alone.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from certifit.model_selection.assessment.leakage import told_by_column
from certifit.rows import Array
from certifit.table.columns import Column
from certifit.table.cross_validation import CrossValidation, FoldScore
from certifit.table.labelled_table import LabelledTable
from certifit.table.overdispersion import OverdispersionTuning, PredictedCounts, score_statistic
from certifit.table.portfolio.leaderboard import score_number
from certifit.table.portfolio.ledger import SearchLedger
from certifit.table.portfolio.metrics import COMMON_CLASS
from certifit.table.table_model import TableModel
from certifit.table.text.readings import read_text


@dataclass(frozen=True)
class AlertTuning:
    """When something is worth an alert."""

    fewest_rows: int = 40  # of a table whose columns are looked at one by one
    most_rows: int = 2000  # that are looked at
    bins: int = 32  # of a column of numbers
    told: float = 0.98  # share of what is open about the target that a single column tells
    copies: float = 0.01  # share of rows that equal an earlier one
    different: float = 0.5  # of different rows, values of some column without which equal rows are no surprise
    fewest_faultless: int = 100  # rows without a mistake, or with hardly any error
    explained: float = 0.999  # of a quantity's variance, which leaves hardly any error
    rare_class: int = 10  # rows
    most_named: int = 5  # columns or classes in one sentence


class Alert(NamedTuple):
    """A sentence on what was seen and what to do about it."""

    kind: Literal[
        "leak", "copies", "same columns", "same words", "time", "imbalance", "rare classes", "few rows",
        "overdispersion", "no use", "threshold", "too good", "not solved",
    ]  # fmt: skip
    words: str


def table_alerts(data: LabelledTable, tuning: AlertTuning = AlertTuning()) -> list[Alert]:
    """Say what is suspicious about labelled rows before anything is fitted."""
    found = [_telling_columns(data, tuning), _copies(data, tuning), _same_columns(data, tuning)]
    found += [_same_words(data, tuning), _order(data), _few_rows(data)]
    if data.choice.task == "classification":
        found += [_common_class(data.y), _rare_classes(data.y, tuning)]
    return [alert for alert in found if alert is not None]


def usefulness_alert(assessment: CrossValidation | str) -> Alert | None:
    """Say where a model is no better than its baseline by more than the standard error of the difference."""
    if isinstance(assessment, str):
        return None
    score = assessment.scores[0]  # accuracy or R²: the larger, the better
    if _gains(score, score.mean - score.baseline):
        return None
    known = "class frequencies" if assessment.classes else "the mean"
    loss = next((score for score in assessment.scores if score.name == "log loss"), None)
    if loss is not None and _gains(loss, loss.baseline - loss.mean):
        words = (
            f"the most probable class is right no more often than the most frequent one ({score.name} "
            f"{score.mean:.3f} against {score.baseline:.3f}), but probabilities are better than {known} alone "
            f"({loss.name} {loss.mean:.3f} against {loss.baseline:.3f}): rank rows by them, or choose a threshold"
        )
        return Alert("threshold", words)
    words = (
        f"on rows it has not seen the model is no better than {known} alone "
        f"({score.name} {score.mean:.3f} against {score.baseline:.3f}): it is solved, but of no use"
    )
    return Alert("no use", words)


def _gains(score: FoldScore, gained: float) -> bool:
    """Whether a score is better than the baseline's by more than the standard error of the difference."""
    return gained > float(np.hypot(score.error, score.baseline_error))


def too_good_alert(
    assessment: CrossValidation | str, n_rows: int, tuning: AlertTuning = AlertTuning()
) -> Alert | None:
    """Say where a model makes no mistake, or hardly any: more often a leak than a law of nature."""
    if isinstance(assessment, str) or n_rows < tuning.fewest_faultless:
        return None
    score = assessment.scores[0]
    if score.mean < (1.0 if assessment.classes else tuning.explained):
        return None
    what = "there was no mistake" if assessment.classes else f"hardly anything was left open (R² {score.mean:.4f})"
    words = (
        f"{what} on {n_rows:,} rows that the model had not seen, which is rare: is what drives its predictions known "
        "when one is needed, or does it follow from the target?"
    )
    return Alert("too good", words)


def choice_alert(ledger: SearchLedger) -> Alert | None:
    """Say where the chosen model is no better than its baseline, by its score corrected for the choice."""
    gained = ledger.corrected - ledger.baseline.score
    gained = gained if ledger.larger_is_better else -gained
    # Files of earlier versions do not have the error of the gain: that of the score is larger.
    reach = (ledger.corrected_high - ledger.corrected_low) / 2
    error = reach / NormalDist().inv_cdf((1 + ledger.confidence) / 2)
    if gained > (ledger.gain_error if np.isfinite(ledger.gain_error) else error):
        return None
    ours, base = score_number(ledger.corrected), score_number(ledger.baseline.score)
    words = (
        f"the chosen model is no better than its baseline, once corrected for the choice ({ledger.metric} "
        f"{ours} against {base}): it is solved, but of no use"
    )
    return Alert("no use", words)


def unsolved_alert(ledger: SearchLedger) -> Alert | None:
    """Say where the chosen model's fits to the folds are not proved to be solved, and why it was chosen."""
    if ledger.winner.proved:
        return None
    solved = [a for a in ledger.attempts if a.fate == "scored" and a.proved and a is not ledger.baseline]
    others = "no model that was solved is within one standard error of it" if solved else "no model was solved"
    words = (
        f"the certificate of the chosen model, {ledger.winner.label}, did not hold in some of the folds: its score "
        f"is that of fits that were not solved. It was chosen because {others}"
    )
    return Alert("not solved", words)


def overdispersion_alert(
    model: TableModel, data: LabelledTable, tuning: OverdispersionTuning = OverdispersionTuning()
) -> Alert | None:
    """Say where counts vary more about the means of a count model than Poisson's law allows."""
    family = getattr(model, "family_", "")
    if family not in ("poisson", "negative_binomial"):
        return None
    statistic = score_statistic(PredictedCounts(data.encode_as(model.columns_), model.model_))
    if statistic <= tuning.significant:
        return None
    allowed = "the negative binomial model that was fitted allows for it, a Poisson model would not"
    asked = "standard errors of this Poisson model are too small; --family negative_binomial allows for it"
    words = (
        f"the counts vary more than Poisson's law says (score test {statistic:.2g}, above {tuning.significant:g}): "
        f"{allowed if family == 'negative_binomial' else asked}"
    )
    return Alert("overdispersion", words)


def later_alerts(model: TableModel, data: LabelledTable, assessment: CrossValidation | str) -> list[Alert]:
    """What is known of a model only when it is fitted: whether it is of use, too good, unsolved or overdispersed."""
    ledger, useless = getattr(model, "search_", None), usefulness_alert(assessment)
    if useless is None and ledger is not None:
        useless = choice_alert(ledger)
    unsolved = None if ledger is None else unsolved_alert(ledger)
    found = (useless, too_good_alert(assessment, len(data.y)), unsolved, overdispersion_alert(model, data))
    return [alert for alert in found if alert is not None]


def keep_alerts(model: TableModel, alerts: list[Alert]) -> None:
    """Write alerts into a model's ledger, where models were compared: its file, notebooks and pages show them."""
    if hasattr(model, "search_"):
        model.search_ = replace(model.search_, alerts=tuple((alert.kind, alert.words) for alert in alerts))


def kept_alerts(model: TableModel) -> tuple[Alert, ...]:
    """The alerts of a model's ledger; none where models were not compared."""
    ledger = getattr(model, "search_", None)
    return () if ledger is None else tuple(Alert(*pair) for pair in ledger.alerts)


def _used(data: LabelledTable) -> list[Column]:
    return [column for column in data.columns if column.kind != "left out"]


def _telling_columns(data: LabelledTable, tuning: AlertTuning) -> Alert | None:
    """Whether a column alone tells nearly all about the target, on rows left out."""
    n, classes = len(data.y), data.choice.task == "classification"
    if n < tuning.fewest_rows:
        return None
    rows = np.random.default_rng(0).permutation(n)[: tuning.most_rows]
    target = np.unique(data.y[rows], return_inverse=True)[1] if classes else data.y[rows].astype(np.float64)
    if classes and len(np.unique(target)) < 2:
        return None
    found = []
    for column in _used(data):
        values = _values(column, data.table[column.name].take(pa.array(rows)))
        share = told_by_column(values, target, classes, tuning.bins)
        if share >= tuning.told:
            found.append(f"{column.name} ({100 * share:.1f} %)")
    if not found:
        return None
    verb = "tells" if len(found) == 1 else "each tell"
    words = (
        f"{_named(found, tuning)} alone {verb} nearly all about the target: is it known when a prediction is needed, "
        "or does it follow from the target? --drop leaves it out"
    )
    return Alert("leak", words)


def _values(column: Column, values: pa.ChunkedArray) -> Array:
    """Numbers, or texts, with one value for all missing entries."""
    if column.kind == "category":
        text = values.cast(pa.string(), safe=False) if not pa.types.is_dictionary(values.type) else values
        return np.array([str(value) for value in text.to_pylist()])
    numbers = column.encode(values)[0][:, 0]
    if column.marks_missing and column.kind != "missing or not":
        numbers[column.encode(values)[0][:, -1] > 0] = np.nan
    return numbers


def _copies(data: LabelledTable, tuning: AlertTuning) -> Alert | None:
    """Whether rows are equal, target included, though some column has many different values."""
    n, columns = len(data.y), _used(data)
    widest = max((column.distinct for column in columns), default=0)
    if widest < tuning.fewest_rows:
        return None
    # Rows that two columns tell apart are not equal: few tables need to be looked at as a whole.
    names = [column.name for column in sorted(columns, key=lambda column: -column.distinct)]
    keys = data.table.select(names).append_column("target of the table", pa.array(data.y))
    try:
        for wide in (2, len(keys.column_names)):
            groups = keys.select(range(wide)).group_by(keys.column_names[:wide]).aggregate([]).num_rows
            if n - groups < max(2, tuning.copies * n):
                return None
        if widest <= tuning.different * groups:
            return None
    except pa.ArrowNotImplementedError:  # a type that Arrow cannot group by
        return None
    words = (
        f"{n - groups:,} of {n:,} rows are copies of an earlier row, target included: folds then test on rows that "
        "the model has learnt, and scores are too good"
    )
    return Alert("copies", words)


def _same_words(data: LabelledTable, tuning: AlertTuning) -> Alert | None:
    """Whether categories, or classes, differ in upper and lower case or in spaces alone."""
    columns = [(column.name, column.categories) for column in data.columns if column.kind == "category"]
    if data.choice.task == "classification" and data.y.dtype.kind in "UO":
        columns.append(("the target", tuple(map(str, np.unique(data.y)))))
    found = []
    for name, words in columns:
        first: dict[str, str] = {}
        pairs = [(first.setdefault(" ".join(word.split()).casefold(), word), word) for word in words]
        alike = [f"{one!r} and {other!r}" for one, other in pairs if one != other]
        if alike:
            found.append(f"{name}: {_named(alike, tuning)}")
    if not found:
        return None
    return Alert("same words", f"words that differ in case or spaces alone count as different ({'; '.join(found)})")


def _same_columns(data: LabelledTable, tuning: AlertTuning) -> Alert | None:
    """Whether columns have the same entry as another in every row."""
    first: dict[tuple[Any, ...], list[str]] = {}
    found = []
    for column in _used(data):
        values = data.table[column.name]
        earlier = first.setdefault((column.kind, column.distinct, column.missing, values.type), [])
        same = next((name for name in earlier if data.table[name].equals(values)), None)
        if same is None:
            earlier.append(column.name)
        else:
            found.append(f"{column.name} (as {same})")
    if not found:
        return None
    verb = "says" if len(found) == 1 else "each say"
    words = (
        f"{_named(found, tuning)} {verb} the same as another column in every row: the two share their importance and "
        "their coefficients; --drop leaves one out"
    )
    return Alert("same columns", words)


def _order(data: LabelledTable) -> Alert | None:
    """Whether rows are in the order of a date, or of a year."""
    for column in _used(data):
        timely = column.kind == "date" or (column.kind == "number" and _is_year(column))
        if not timely or column.missing or column.distinct < 3:
            continue
        steps = np.diff(column.encode(data.table[column.name])[0][:, 0])
        if (steps >= 0).all() or (steps <= 0).all():
            words = (
                f"rows are in the order of {column.name}: folds mix earlier and later rows, and on later ones the "
                f"model may do worse than its scores say; --time {column.name} tests on later rows alone"
            )
            return Alert("time", words)
    return None


def _is_year(column: Column) -> bool:
    """Whether a column of numbers has the name of years, and their size."""
    return "year" in column.name.lower() and 1_000 < column.centre < 3_000


def _few_rows(data: LabelledTable) -> Alert | None:
    """Whether there are more columns of numbers than rows."""
    features = sum(len(column.features) for column in data.columns)
    if features < len(data.y):
        return None
    words = f"{len(data.y):,} rows for {features:,} columns of numbers: the penalty says more than the rows"
    return Alert("few rows", words)


def _common_class(y: Array) -> Alert | None:
    labels, counts = np.unique(y, return_counts=True)
    share, label = counts.max() / len(y), labels[counts.argmax()]
    if share < COMMON_CLASS or len(labels) == 1:
        return None
    words = (
        f"{100 * share:.1f} % of all rows are of class {str(label)!r}: whoever says so of every row is right as "
        "often, so that models are compared by log loss unless --metric says otherwise. To find rows of other "
        "classes, rank by probability or choose a threshold; --class-weight balanced weighs all classes alike"
    )
    return Alert("imbalance", words)


def _rare_classes(y: Array, tuning: AlertTuning) -> Alert | None:
    labels, counts = np.unique(y, return_counts=True)
    rare = [f"{str(label)!r} ({n})" for label, n in zip(labels, counts, strict=True) if n < tuning.rare_class]
    if len(y) < tuning.rare_class * len(labels):
        return _single_rows(labels, counts)
    if not rare:
        return None
    return Alert("rare classes", f"few rows of class {_named(rare, tuning)}: what is said of them rests on these")


def _single_rows(labels: Array, counts: Array) -> Alert | None:
    """Whether one of many classes has a single row, and whether the target may be a quantity with words in it."""
    single = int((counts == 1).sum())
    if single == 0:
        return None
    words = (
        f"{single:,} of {len(labels):,} classes have a single row, which is either learnt or tested: group rare "
        "classes, or leave their rows out"
    )
    texts = [str(label) for label in labels]
    read = read_text(pa.chunked_array([texts]), "numbers", any_unit=True).is_valid().to_pylist()
    others = [text for text, number in zip(texts, read, strict=True) if not number]
    if labels.dtype.kind == "U" and 0 < len(others) < 0.5 * len(texts):
        fix = shlex.join([word for text in others[:3] for word in ("--missing", text)])
        words += (
            f". {len(texts) - len(others):,} of them are numbers: where the target is a quantity, {fix} takes "
            f"{'the other for a missing entry' if len(others) == 1 else 'the others for missing entries'}"
        )
    return Alert("rare classes", words)


def _named(names: list[str], tuning: AlertTuning) -> str:
    more = f" and {len(names) - tuning.most_named} more" if len(names) > tuning.most_named else ""
    return ", ".join(names[: tuning.most_named]) + more
