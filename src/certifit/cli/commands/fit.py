"""The main job: read a table, say what is in it, fit, prove, cross-validate, save, report."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from certifit.cli.files import check_writable, read_table
from certifit.cli.screen import Screen
from certifit.exceptions import CertificateWarning, DataError
from certifit.report import Report, render
from certifit.report.words import FAMILY_WORDS, target_words, with_error
from certifit.store import save, write_atomically
from certifit.table.alerts import Alert, table_alerts, usefulness_alert
from certifit.table.columns import pick
from certifit.table.cross_validation import CrossValidation, cross_validate
from certifit.table.labelled_table import LabelledTable, labelled_table
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_model import TableModel
from certifit.table.table_regressor import FAMILIES, TableRegressor

MOST_CLASSES = 20  # listed on the screen


class FitSettings(NamedTuple):
    """What `certifit fit` was asked to do."""

    target: str
    folds: int = 5
    C: float = 1.0
    class_weight: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    seed: int = 0
    task: str = "auto"
    family: str = "auto"
    keep: tuple[str, ...] = ()


def run_fit(path: Path, settings: FitSettings, output: Path | None, report: Path | None, screen: Screen) -> bool:
    """Do the job; True if the certificate holds."""
    stem = Path(path.name.removesuffix(".gz")).stem
    output = Path(f"{stem}-model.certifit") if output is None else output
    report = Path(f"{stem}-report.html") if report is None else report
    for place in (output, report):  # before the work, not after it
        check_writable(place, path)
    _check_settings(settings)
    table = read_table(path)
    for name in settings.drop:
        pick(table, name, "column to drop")
        if name in (settings.target, settings.weight):
            raise DataError(got=f"--drop {name}, which is also the target or the weight", wanted="another column")
    table = table.drop_columns(list(settings.drop))
    task: Any = settings.task
    data = labelled_table(table, settings.target, settings.weight, task=task, keep=settings.keep)
    model = _make_model(settings, data)
    _show_table(screen, path.name, settings, data)
    alerts = table_alerts(data)
    _show_alerts(screen, alerts)

    with screen.watch(model), warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # the certificate itself is printed
        model.fit(data)
    save(model, output)
    if isinstance(model, TableRegressor):
        screen.say(f"fitted as {FAMILY_WORDS[model.family_]}: {model.family_because_} (--family names another)")
    screen.heading("Certificate")
    screen.certificate(model.certificate_)

    assessment = _assess(model, data, settings, screen)
    _show_assessment(screen, assessment)
    useless = usefulness_alert(assessment)
    if useless is not None:
        alerts = [useless, *alerts]
        _show_alerts(screen, [useless])
    recheck = shlex.join(["certifit", "audit", str(output), str(path)])
    page = Report(model, data, assessment, path.name, _listed(settings, model), recheck, tuple(alerts))
    write_atomically(report, render(page).encode())
    screen.heading("Written")
    screen.pairs([("model", str(output)), ("report", str(report)), ("check again", recheck)])
    files = {"model": str(output), "report": str(report)}
    screen.document(_document(path, model, data, assessment, alerts) | files)
    return model.certificate_.holds


def _check_settings(settings: FitSettings) -> None:
    """Refuse settings that are wrong by themselves, before the table is read."""
    if not settings.C > 0:
        raise DataError(got=f"--C {settings.C:g}", wanted="a number above 0", fix="Smaller values penalise more.")
    if settings.folds == 1:
        raise DataError(got="--folds 1", wanted="at least 2 folds, or 0 for no cross-validation")
    for name, choices in (("task", ("auto", "classification", "regression")), ("family", FAMILIES)):
        value = getattr(settings, name)
        if value not in choices:
            raise DataError(got=f"--{name} {value}", wanted=f"one of {', '.join(choices)}")


def _make_model(settings: FitSettings, data: LabelledTable) -> TableModel:
    """The model for this target, with the settings that it has; one that it has not is refused."""
    if data.choice.task == "classification":
        if settings.family != "auto":
            raise DataError(
                got=f"--family {settings.family} for classes",
                wanted="a family only with a quantity",
                fix="--task regression takes the target for a quantity.",
            )
        return TableClassifier(settings.C, class_weight=settings.class_weight, keep=settings.keep)
    if settings.class_weight is not None:
        raise DataError(
            got=f"--class-weight {settings.class_weight} for a quantity",
            wanted="class weights only with classes",
            fix="--task classification takes the target for classes.",
        )
    return TableRegressor(1 / settings.C, family=settings.family, keep=settings.keep)


def _assess(model: TableModel, data: LabelledTable, settings: FitSettings, screen: Screen) -> CrossValidation | str:
    if settings.folds == 0:
        return "not cross-validated, as asked"
    with screen.progress("cross-validating", settings.folds) as progress:
        return cross_validate(model, data, folds=settings.folds, seed=settings.seed, progress=progress)


def _show_table(screen: Screen, name: str, settings: FitSettings, data: LabelledTable) -> None:
    columns = data.columns
    rows = f"{len(data.y) + data.unlabelled:,} rows, {len(columns)} columns beside the target"
    screen.say(f"{name}: {rows}" + (f"; dropped: {', '.join(settings.drop)}" if settings.drop else ""))
    screen.say(f"target {settings.target}: {target_words(data, MOST_CLASSES)}")
    task, why = data.choice
    other = "regression" if task == "classification" else "classification"
    doubtful = settings.task == "auto" and data.y.dtype.kind in "iuf"
    screen.say(f"{task}: {why}" + (f" (--task {other} says otherwise)" if doubtful else ""))
    if data.unlabelled:
        screen.say(f"{data.unlabelled:,} rows have no {settings.target}; they are left out")
    screen.table(
        ["column", "type", "used as", "missing", "distinct", "what is done"],
        [(c.name, c.type, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.done) for c in columns],
        right=(3, 4),
    )
    told = ", ".join(c.name or "(no name)" for c in columns if c.identifies)
    if told:
        screen.say(f"left out because they tell the rows apart: {told} (--keep uses one)")
    if any(c.marks_missing and c.kind != "category" for c in columns):
        screen.say("a missing entry takes its column's mean; a further 0/1 column marks it")


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
    """FitSettings for the report, those with a value."""
    listed = {**settings._asdict(), "tol": model.get_params()["tol"], "max_iter": model.get_params()["max_iter"]}
    listed |= {"drop": ", ".join(settings.drop), "keep": ", ".join(settings.keep)}
    return {name.replace("_", " "): value for name, value in listed.items() if value not in (None, "")}


def _document(
    path: Path,
    model: TableModel,
    data: LabelledTable,
    assessment: CrossValidation | str,
    alerts: list[Alert],
) -> dict[str, Any]:
    return {
        "table": str(path),
        "rows": model.n_rows_,
        "rows_without_target": model.unlabelled_,
        "target": model.target_,
        **data.choice._asdict(),
        **_target_document(model),
        "columns": [
            {name: getattr(c, name) for name in ("name", "type", "kind", "missing", "distinct", "done")}
            for c in model.columns_
        ],
        "certificate": model.certificate_.to_dict(),
        "cross_validation": assessment if isinstance(assessment, str) else _assessment_document(assessment),
        "alerts": [alert._asdict() for alert in alerts],
        "useful": None if isinstance(assessment, str) else all(alert.kind != "no use" for alert in alerts),
    }


def _target_document(model: TableModel) -> dict[str, Any]:
    if isinstance(model, TableRegressor):
        return {"family": model.family_, "family_because": model.family_because_}
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
