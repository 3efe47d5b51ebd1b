"""The main job: read a table, say what is in it, fit, prove, cross-validate, save, report."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from certifit.cli.cluster import dask_cluster
from certifit.cli.files import TableFiles, check_writable, table_to_fit
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen
from certifit.exceptions import DataError
from certifit.report import Report, render
from certifit.report.words import FAMILY_WORDS, shortened, target_words, with_error
from certifit.rows import set_threads
from certifit.store import save, write_atomically
from certifit.table.alerts import Alert, keep_alerts, later_alerts, table_alerts
from certifit.table.columns import Column
from certifit.table.cross_validation import CrossValidation
from certifit.table.portfolio.clock import read_budget
from certifit.table.portfolio.digest import fitted_digest
from certifit.table.portfolio.fitting import (
    PreparedTable,
    TableRoles,
    fit_prepared,
    prepare,
    replayed_settings,
    streaming,
)
from certifit.table.portfolio.leaderboard import (
    choice_words,
    header,
    leaderboard_lines,
    ledger_document,
    unscored_words,
)
from certifit.table.portfolio.ledger import SearchLedger
from certifit.table.portfolio.metrics import METRICS
from certifit.table.portfolio.search import SearchSettings, check_names
from certifit.table.streaming.streamed_table import StreamedTable
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_model import LabelledData, TableModel
from certifit.table.table_regressor import FAMILIES, TableRegressor
from certifit.table.text.dates import fitting_dates

MOST_CLASSES = 20  # listed on the screen


@dataclass(frozen=True)
class FitSettings:
    """What `certifit fit` was asked to do."""

    target: str
    folds: int = 5
    C: float | None = None
    class_weight: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    seed: int = 0
    task: str = "auto"
    family: str = "auto"
    keep: tuple[str, ...] = ()
    model: str = "auto"
    metric: str = "auto"
    budget: str | None = None
    group: str | None = None
    time: str | None = None
    replay: Path | None = None
    jobs: int | None = None
    categorical: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    stream: bool = False
    dask: str | None = None
    date: tuple[str, ...] = ()

    @property
    def roles(self) -> TableRoles:
        """What the columns are for."""
        return TableRoles(
            self.target,
            self.weight,
            self.group,
            self.time,
            self.drop,
            self.keep,
            self.categorical,
            self.missing,
            self.date,
        )

    def search(self, task: str) -> SearchSettings:
        """The comparison that these settings ask for; a strength of the penalty asks for the linear model alone."""
        model = "linear" if self.model == "auto" and self.C is not None else self.model
        strength = {} if self.C is None else {"C": self.C} if task == "classification" else {"alpha": 1 / self.C}
        budget = SearchSettings.budget if self.budget is None else read_budget(self.budget)
        tunes = model == "auto" or "," in model or self.budget is not None
        return SearchSettings(
            model=model, metric=self.metric, folds=self.folds, seed=self.seed, class_weight=self.class_weight,
            family=self.family, settings=strength, tunes=tunes, budget=budget,
        )  # fmt: skip


class FitPlaces(NamedTuple):
    """Where the model and the report go; no report where that is None."""

    model: Path
    report: Path | None


def run_fit(path: TableFiles, settings: FitSettings, places: FitPlaces, screen: Screen) -> bool:
    """Do the job; True if the certificate holds and, of a replay, the bits are the same."""
    with nullcontext() if settings.dask is None else dask_cluster(settings.dask):
        return _fit_table(path, settings, places, screen)


def _fit_table(path: TableFiles, settings: FitSettings, places: FitPlaces, screen: Screen) -> bool:
    for place in places:  # before the work, not after it
        if place is not None:
            check_writable(place, *path.paths)
    _check_settings(settings)
    replayed = None if settings.replay is None else load_table_model(settings.replay)
    if settings.jobs is not None:
        set_threads(settings.jobs)
    with warnings_as_notes(screen):
        prepared = _prepare(path, settings, replayed)
    data = prepared.data
    _check_task(settings, data)
    search = settings.search(data.choice.task)
    ledger = None if replayed is None else _ledger(replayed, data)
    if ledger is not None:
        search = replayed_settings(search, ledger)
    _show_table(screen, path.name, settings, data)
    alerts = table_alerts(prepared.sample)
    _show_alerts(screen, alerts)

    with screen.contest() as tell:
        model, assessment = fit_prepared(prepared, search, tell, ledger)
    later = later_alerts(model, prepared.sample, assessment)
    keep_alerts(model, [*later, *alerts])
    save(model, places.model)
    _show_leaderboard(screen, model)
    if hasattr(model, "family_"):
        screen.say(f"fitted as {FAMILY_WORDS[model.family_]}: {model.family_because_} (--family names another)")
    screen.heading("Certificate")
    screen.certificate(model.certificate_)
    _show_assessment(screen, assessment)
    _show_alerts(screen, later)
    alerts = [*later, *alerts]
    recheck = shlex.join(["certifit", "audit", str(places.model), *path.typed])
    repeat = shlex.join([*_typed(path, settings), "--replay", str(places.model)])
    if places.report is not None:
        page = Report(
            model, prepared.sample, assessment, path.name, _listed(settings, model), recheck, tuple(alerts),
            reproduce=repeat, drawn=prepared.drawn,
        )  # fmt: skip
        write_atomically(places.report, render(page).encode())
    screen.heading("Written")
    report = [] if places.report is None else [("report", str(places.report))]
    screen.pairs([("model", str(places.model)), *report, ("check again", recheck), ("do it again", repeat)])
    files = {"model": str(places.model), "report": None if places.report is None else str(places.report)}
    same = _same_bits(screen, replayed, model)
    screen.document(_document(path, model, data, assessment, alerts) | files | same)
    return model.certificate_.holds and same.get("same_bits", True)


def _prepare(path: TableFiles, settings: FitSettings, replayed: TableModel | None) -> PreparedTable:
    """The table with the roles of its columns; a replay reads it as the first run did."""
    search = settings.search("classification")
    ledger = getattr(replayed, "search_", None)
    if ledger is not None:
        search = replayed_settings(search, ledger)
    how = streaming(search, ledger, settings.stream, settings.dask)
    return prepare(table_to_fit(path, how.asked), settings.roles, settings.task, how)


def _typed(path: TableFiles, settings: FitSettings) -> list[str]:
    """The command that reads the table in the same way."""
    words = ["certifit", "fit", *path.typed, "--target", settings.target]
    words += ["--task", settings.task] if settings.task != "auto" else []
    words += ["--stream"] if settings.stream else []
    words += ["--dask", settings.dask] if settings.dask else []
    for name in ("weight", "group", "time"):
        words += [f"--{name}", getattr(settings, name)] if getattr(settings, name) else []
    for name in ("drop", "keep", "categorical", "missing", "date"):
        words += [word for value in getattr(settings, name) for word in (f"--{name}", value)]
    return words


def _check_settings(settings: FitSettings) -> None:
    """Refuse settings that are wrong by themselves, before the table is read."""
    if settings.C is not None and not settings.C > 0:
        raise DataError(got=f"--C {settings.C:g}", wanted="a number above 0", fix="Smaller values penalise more.")
    if settings.C is not None and settings.model not in ("auto", "linear"):
        raise DataError(got=f"--C with --model {settings.model}", wanted="--C with the linear model only")
    if settings.folds == 1:
        raise DataError(got="--cv 1", wanted="at least 2 folds, or 0 for no cross-validation")
    tasks = ("auto", "classification", "regression")
    for name, choices in (("task", tasks), ("family", FAMILIES), ("metric", METRICS)):
        value = getattr(settings, name)
        if value not in choices:
            raise DataError(got=f"--{name} {value}", wanted=f"one of {', '.join(choices)}")
    check_names(settings.search("classification"))


def _check_task(settings: FitSettings, data: LabelledData) -> None:
    """Refuse settings that are not for this kind of target."""
    if data.choice.task == "classification":
        if settings.family != "auto":
            raise DataError(
                got=f"--family {settings.family} for classes",
                wanted="a family only with a quantity",
                fix="--task regression takes the target for a quantity.",
            )
    elif settings.class_weight is not None:
        raise DataError(
            got=f"--class-weight {settings.class_weight} for a quantity",
            wanted="class weights only with classes",
            fix="--task classification takes the target for classes.",
        )


def _ledger(model: TableModel, data: LabelledData) -> SearchLedger:
    """The ledger of a model to replay on the rows that it was fitted to; other rows are refused."""
    if not hasattr(model, "search_"):
        raise DataError(got="a model without a ledger to replay", wanted="one for which models were compared")
    if data.encode().fingerprint != model.fingerprint_:
        raise DataError(
            got="a table that differs from the one the model was fitted to",
            wanted="the same rows, columns and options, so that a replay can give the same bits",
        )
    return model.search_


def _same_bits(screen: Screen, replayed: TableModel | None, model: TableModel) -> dict[str, bool]:
    """Whether a replay gave the same bits as the model that was replayed."""
    if replayed is None:
        return {}
    same = fitted_digest(model) == fitted_digest(replayed)
    screen.say("the replay gave the same bits" if same else "the replay gave OTHER bits", "green" if same else "red")
    return {"same_bits": same}


def _show_leaderboard(screen: Screen, model: TableModel) -> None:
    if not hasattr(model, "search_"):
        return
    ledger = model.search_
    screen.heading("Models compared on the same folds")
    screen.table(header(ledger), leaderboard_lines(ledger), right=(1, 2, 4))
    screen.say(choice_words(ledger))
    for words in unscored_words(ledger):
        screen.note(words)


def _show_table(screen: Screen, name: str, settings: FitSettings, data: LabelledData) -> None:
    columns = data.columns
    rows = f"{data.n_rows + data.unlabelled + data.weightless:,} rows, {len(columns)} columns beside the target"
    screen.say(f"{name}: {rows}" + (f"; dropped: {', '.join(settings.drop)}" if settings.drop else ""))
    screen.say(f"target {settings.target}: {target_words(data, MOST_CLASSES)}")
    task, why = data.choice
    other = "regression" if task == "classification" else "classification"
    doubtful = settings.task == "auto" and data.has_numeric_target
    screen.say(f"{task}: {why}" + (f" (--task {other} says otherwise)" if doubtful else ""))
    if isinstance(data, StreamedTable):
        drawn = f"models are compared, and pictures drawn, on {data.sample.n_rows:,} rows drawn at random"
        screen.say(f"read block by block, never all of it in memory; {drawn}")
    if data.unlabelled:
        screen.say(f"{data.unlabelled:,} rows have no {settings.target}; they are left out")
    if data.weightless:
        screen.say(f"{data.weightless:,} rows have weight 0; they are left out")
    shown = _columns_to_show(columns)
    screen.table(
        ["column", "type", "used as", "missing", "distinct", "what is done"],
        [(shortened(c.name, 40), c.type, c.kind, f"{c.missing:,}", _distinct_words(c), c.done) for c in shown],
        right=(3, 4),
    )
    if len(shown) < len(columns):
        screen.say(
            f"and {len(columns) - len(shown):,} more columns, {_kinds_words(columns, shown)}; --json lists all"
        )
    told = ", ".join(shortened(c.name, 40) or "(no name)" for c in columns if c.identifies)
    if told:
        screen.say(f"left out because they tell the rows apart: {told} (--keep uses one)")
    for column in columns:
        if column.kind == "category" and len(fitting_dates(pa.array(column.categories))) > 1:
            words = "may be dates, day or month first, and stays text"
            screen.say(f"{column.name} {words}; --date {column.name} reads them, day first")
    if any(c.marks_missing and c.kind != "category" for c in columns):
        screen.say("a missing entry takes its column's mean; a further 0/1 column marks it")


def _columns_to_show(columns: Sequence[Column], most: int = 40) -> list[Column]:
    """All columns where they are few; else those first of which something is to be said."""
    if len(columns) <= most:
        return [*columns]
    plain = [c.kind == "number" and not c.reading and not c.missing for c in columns]
    order = sorted(range(len(columns)), key=lambda number: (plain[number], number))
    return [columns[number] for number in sorted(order[: most // 2])]


def _kinds_words(columns: Sequence[Column], shown: Sequence[Column]) -> str:
    """How many of the columns that are not shown are used as what."""
    counts = Counter(c.kind for c in columns) - Counter(c.kind for c in shown)
    named = {kind: "left out" if kind == "left out" else f"used as {kind}" for kind in counts}
    return ", ".join(f"{count:,} {named[kind]}" for kind, count in counts.items())


def _distinct_words(column: Column) -> str:
    """How many different values a column has; of a type that is not used nobody has counted them."""
    return "-" if column.kind == "left out" and "type of column" in column.done else f"{column.distinct:,}"


def _show_alerts(screen: Screen, alerts: list[Alert]) -> None:
    """What to know before the model is trusted, above all else."""
    if alerts:
        screen.heading("Alerts")
    for alert in alerts:
        screen.say(f"! {alert.words}", style="yellow")


def _show_assessment(screen: Screen, assessment: CrossValidation | str) -> None:
    screen.heading("On rows the model has not seen")
    if isinstance(assessment, str):
        screen.say(assessment)
        return
    baseline = "class frequencies only" if assessment.classes else "mean only"
    screen.table(
        [f"{assessment.folds}-fold cross-validation", "this model", baseline],
        [(s.name, with_error(s.mean, s.error), with_error(s.baseline, s.baseline_error)) for s in assessment.scores],
        right=(1, 2),
    )
    if assessment.classes:
        screen.say()
        screen.table(
            ["class", "rows", "precision", "recall"],
            [
                (c.label, f"{c.rows:,}", f"{c.precision:.4f}", f"{c.recall:.4f}")
                for c in assessment.classes[:MOST_CLASSES]
            ],
            right=(1, 2, 3),
        )
    if len(assessment.classes) > MOST_CLASSES:
        screen.say(f"and {len(assessment.classes) - MOST_CLASSES:,} more classes: see the report")
    for note in assessment.notes:
        screen.note(note)


def _listed(settings: FitSettings, model: TableModel) -> dict[str, Any]:
    """Settings for the report, those with a value, and those of the model inside."""
    listed = {name: ", ".join(v) if isinstance(v, tuple) else v for name, v in asdict(settings).items()}
    listed |= {"fitted model": type(model.model_).__name__}
    inner = model.model_.get_params(deep=False)
    listed |= {name: inner[name] for name in ("tol", "max_iter") if name in inner}
    return {name.replace("_", " "): value for name, value in listed.items() if value not in (None, "")}


def _document(
    path: TableFiles,
    model: TableModel,
    data: LabelledData,
    assessment: CrossValidation | str,
    alerts: list[Alert],
) -> dict[str, Any]:
    return {
        "table": str(path),
        "rows": model.n_rows_,
        "rows_without_target": model.unlabelled_,
        "rows_of_weight_0": data.weightless,
        "target": model.target_,
        **data.choice._asdict(),
        **_target_document(model),
        "columns": [
            {name: getattr(c, name) for name in ("name", "type", "kind", "missing", "distinct", "done")}
            for c in model.columns_
        ],
        "fitted": type(model.model_).__name__,
        "certificate": model.certificate_.to_dict(),
        "comparison": ledger_document(model.search_) if hasattr(model, "search_") else None,
        "cross_validation": assessment if isinstance(assessment, str) else _assessment_document(assessment),
        "alerts": [alert._asdict() for alert in alerts],
        "useful": None if isinstance(assessment, str) else all(alert.kind != "no use" for alert in alerts),
    }


def _target_document(model: TableModel) -> dict[str, Any]:
    if isinstance(model, TableRegressor):
        known = hasattr(model, "family_")
        return {"family": model.family_, "family_because": model.family_because_} if known else {"family": None}
    assert isinstance(model, TableClassifier)
    return {"classes": [str(c) for c in model.classes_]}


def _assessment_document(assessment: CrossValidation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "folds": assessment.folds,
        "scores": [s._asdict() for s in assessment.scores],
        "notes": list(assessment.notes),
    }
    if assessment.confusion is not None:
        found["classes"] = [c._asdict() for c in assessment.classes]
        found["confusion"] = assessment.confusion.tolist()
    return found
