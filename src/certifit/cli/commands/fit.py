"""The main job: read a table, say what is in it, fit, prove, cross-validate, save, report."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from certifit.cli.files import check_writable, read_table
from certifit.cli.screen import Screen
from certifit.exceptions import CertificateWarning, DataError
from certifit.report import Report, render
from certifit.store import save, write_atomically
from certifit.table.columns import pick
from certifit.table.cross_validation import CrossValidation, cross_validate
from certifit.table.labelled_table import LabelledTable, labelled_table
from certifit.table.table_classifier import TableClassifier

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


def run_fit(path: Path, settings: FitSettings, output: Path | None, report: Path | None, screen: Screen) -> bool:
    """Do the job; True if the certificate holds."""
    stem = Path(path.name.removesuffix(".gz")).stem
    output = Path(f"{stem}-model.certifit") if output is None else output
    report = Path(f"{stem}-report.html") if report is None else report
    for place in (output, report):  # before the work, not after it
        check_writable(place, path)
    if not settings.C > 0:
        raise DataError(got=f"--C {settings.C:g}", wanted="a number above 0", fix="Smaller values penalise more.")
    if settings.folds == 1:
        raise DataError(got="--folds 1", wanted="at least 2 folds, or 0 for no cross-validation")
    table = read_table(path)
    for name in settings.drop:
        pick(table, name, "column to drop")
        if name in (settings.target, settings.weight):
            raise DataError(got=f"--drop {name}, which is also the target or the weight", wanted="another column")
    table = table.drop_columns(list(settings.drop))
    data = labelled_table(table, settings.target, settings.weight)
    _show_table(screen, path.name, settings, data)

    model = TableClassifier(settings.C, class_weight=settings.class_weight)
    with screen.watch(model), warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # the certificate itself is printed
        model.fit(data)
    save(model, output)
    screen.heading("Certificate")
    screen.certificate(model.certificate_)

    assessment = _assess(model, data, settings, screen)
    _show_assessment(screen, assessment)
    recheck = shlex.join(["certifit", "audit", str(output), str(path)])
    page = Report(model, data, assessment, path.name, _listed(settings, model), recheck)
    write_atomically(report, render(page).encode())
    screen.heading("Written")
    for what, where in (("model", output), ("report", report), ("check again", recheck)):
        screen.say(f"  {what:<11}  {where}")
    screen.document(_document(path, model, assessment, output, report))
    return model.certificate_.holds


def _assess(
    model: TableClassifier, data: LabelledTable, settings: FitSettings, screen: Screen
) -> CrossValidation | str:
    if settings.folds == 0:
        return "not cross-validated, as asked"
    with screen.progress("cross-validating", settings.folds) as progress:
        return cross_validate(model, data, folds=settings.folds, seed=settings.seed, progress=progress)


def _show_table(screen: Screen, name: str, settings: FitSettings, data: LabelledTable) -> None:
    columns = data.columns
    labels, counts = np.unique(data.y, return_counts=True)
    rows = f"{len(data.y) + data.unlabelled:,} rows, {len(columns)} columns beside the target"
    screen.say(f"{name}: {rows}" + (f"; dropped: {', '.join(settings.drop)}" if settings.drop else ""))
    few = slice(MOST_CLASSES)
    shown = ", ".join(f"{label} {count:,}" for label, count in zip(labels[few], counts[few], strict=True))
    more = f" and {len(labels) - MOST_CLASSES:,} more classes" if len(labels) > MOST_CLASSES else ""
    screen.say(f"target {settings.target}: {shown}{more}")
    if data.unlabelled:
        screen.say(f"{data.unlabelled:,} rows have no {settings.target}; they are left out")
    screen.table(
        ["column", "type", "used as", "missing", "distinct", "what is done"],
        [(c.name, c.type, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.done) for c in columns],
        right=(3, 4),
    )
    if any(c.marks_missing and c.kind != "category" for c in columns):
        screen.say("a missing entry takes its column's mean; a further 0/1 column marks it")


def _show_assessment(screen: Screen, assessment: CrossValidation | str) -> None:
    screen.heading("On rows the model has not seen")
    if isinstance(assessment, str):
        screen.say(assessment)
        return
    screen.table(
        [f"{assessment.folds}-fold cross-validation", "this model", "class frequencies only"],
        [
            (s.name, f"{s.mean:.4f} ± {s.error:.4f}", f"{s.baseline:.4f} ± {s.baseline_error:.4f}")
            for s in assessment.scores
        ],
        right=(1, 2),
    )
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


def _listed(settings: FitSettings, model: TableClassifier) -> dict[str, Any]:
    """FitSettings for the report, those with a value."""
    listed = {**settings._asdict(), "tol": model.tol, "max_iter": model.max_iter}
    listed["drop"] = ", ".join(settings.drop)
    return {name.replace("_", " "): value for name, value in listed.items() if value not in (None, "")}


def _document(
    path: Path,
    model: TableClassifier,
    assessment: CrossValidation | str,
    output: Path,
    report: Path,
) -> dict[str, Any]:
    return {
        "table": str(path),
        "rows": model.n_rows_,
        "rows_without_target": model.unlabelled_,
        "target": model.target_,
        "classes": [str(c) for c in model.classes_],
        "columns": [
            {
                "name": c.name,
                "type": c.type,
                "kind": c.kind,
                "missing": c.missing,
                "distinct": c.distinct,
                "done": c.done,
            }
            for c in model.columns_
        ],
        "certificate": model.certificate_.to_dict(),
        "cross_validation": assessment
        if isinstance(assessment, str)
        else {
            "folds": assessment.folds,
            "scores": [s._asdict() for s in assessment.scores],
            "classes": [c._asdict() for c in assessment.classes],
            "confusion": assessment.confusion.tolist(),
            "notes": list(assessment.notes),
        },
        "model": str(output),
        "report": str(report),
    }
