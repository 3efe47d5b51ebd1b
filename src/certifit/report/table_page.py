"""The page about a fitted model of a table: verdicts, scores, curves, certificate, drivers, mistakes, columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t

from certifit.report.answers import (
    ModelAnswers,
    class_charts,
    loss_words,
    model_answers,
    number_charts,
    worst_rows,
)
from certifit.report.certificate_section import certificate_section
from certifit.report.charts import ChartAxis, axis_around
from certifit.report.drivers import (
    ColumnImportance,
    FittedCoefficients,
    ImportanceTuning,
    coefficient_table,
    importance_table,
    shape_charts,
    shuffled_importance,
)
from certifit.report.page import PageSection, compose, versions, written_at
from certifit.report.sealing.convex_fits import model_proof
from certifit.report.sealing.proof import FitSource
from certifit.report.words import FAMILY_WORDS, shortened, target_words
from certifit.rows import Array
from certifit.table.alerts import Alert, choice_alert
from certifit.table.cross_validation import CrossValidation, FoldScore
from certifit.table.portfolio.leaderboard import (
    choice_words,
    corrected_words,
    header,
    leaderboard_lines,
    unscored_words,
)
from certifit.table.portfolio.ledger import SearchLedger
from certifit.table.table_model import TableModel

SMALLER_IS_BETTER = ("log loss", "mean absolute error", "root mean squared error")


@dataclass(frozen=True)
class Report:
    """What the page is about."""

    model: TableModel  # fitted
    data: Any  # the rows it was fitted to, a `LabelledTable` or a `StreamedTable`
    assessment: CrossValidation | str  # its cross-validation, or why there is none
    table: str  # name of the table, as the reader knows it
    settings: Mapping[str, Any]  # names and values of the settings to list
    recheck: str  # the command that checks the certificate again
    alerts: tuple[Alert, ...] = ()  # what to know before the model is trusted
    most_features: int = 200  # listed with their coefficients; the largest come first
    most_classes: int = 12  # with a column of coefficients each
    most_columns: int = 300  # of the table that are listed
    largest_page: int = 2_000_000  # bytes
    reproduce: str = ""  # the command that does all of this again
    drawn: Array | None = None  # numbers of the rows of `data`, where they were drawn from those of the fit


def render(report: Report) -> str:
    """The report as HTML text, of at most `largest_page` bytes."""
    page = _render(report)
    if len(page.encode()) > report.largest_page:  # words of the data may be long: fewer of them are shown
        page = _render(replace(report, most_features=40, most_classes=6, most_columns=60), with_rows=False)
    return page


def _render(report: Report, with_rows: bool = True) -> str:
    model, classes = report.model, _classes(report.model)
    answers = _answers(report, classes)
    importance = _importance(report, classes)
    named = [column.name for column in importance] or [c.name for c in model.columns_ if c.kind != "left out"]
    sections = [
        PageSection("verdict", _verdicts(report)),
        PageSection("new_rows", _scores(report)),
    ]
    if answers is not None:
        charts = class_charts(answers) if classes is not None else number_charts(answers)
        if charts:
            sections.append(PageSection("curves", {"held_out": answers.folds > 0, "charts": charts}))
    if hasattr(model, "search_"):
        sections.append(PageSection("leaderboard", _leaderboard(model.search_)))
    inner = getattr(model, "model_", model)
    sections.append(certificate_section(model.certificate_, inner, report.recheck))
    sections.append(PageSection("drivers", _drivers(report, importance)))
    if answers is not None:
        worst = _mistakes(report, answers, named[:6])
        sections.append(PageSection("mistakes", {"held_out": answers.folds > 0, **worst}))
    sections.append(PageSection("columns", _columns(report)))
    sections.append(PageSection("settings", _settings(report)))
    proof = _proof(report) if with_rows else {"form": "none", "why": "the rows do not fit into the page"}
    columns = f"{len(model.features_):,} encoded columns"
    rows = f"{model.n_rows_:,} rows"
    shown = report.drawn if _shown_rows(report) is None else _shown_rows(report)
    if shown is not None:
        rows += (
            f" (pictures and scores: {len(shown):,} {'of them' if report.drawn is None else 'rows drawn at random'})"
        )
    subtitle = f"{_kind_words(model)} on {rows} and {columns} · certifit {versions()['certifit']} · {written_at()}"
    title = f"Predicting {shortened(model.target_ or 'target', 80)} from {shortened(report.table, 80)}"
    return compose(title, subtitle, sections, proof)


def _leaderboard(ledger: SearchLedger) -> dict[str, Any]:
    """A line for each model that was tried, by the same headings, and notes."""
    lines = [dict(zip(header(ledger), line, strict=True)) for line in leaderboard_lines(ledger)]
    return {"lines": lines, "notes": (choice_words(ledger), *unscored_words(ledger))}


def _classes(model: TableModel) -> Array | None:
    return getattr(model, "classes_", None)


def _answers(report: Report, classes: Array | None) -> ModelAnswers | None:
    """What the model says of rows held out, or of its own rows where nothing was kept."""
    data, assessment = report.data, report.assessment
    rows = _shown_rows(report)
    y, table = (data.y, data.table) if rows is None else (data.y[rows], data.table.take(rows))
    if isinstance(assessment, CrossValidation) and assessment.predicted is not None:
        held = assessment.predicted
        if len(held) == len(y) and (classes is None or held.shape[1:] == classes.shape):
            return ModelAnswers(y, held, classes, assessment.folds, labels_alone=not assessment.probable)
    method = report.model.predict if classes is None else getattr(report.model, "predict_proba", None)
    if method is None and classes is not None:
        return ModelAnswers.of_labels(y, report.model.predict(table), classes)
    return None if method is None else ModelAnswers(y, method(table), classes)


def _shown_rows(report: Report) -> Array | None:
    """The numbers of the rows that answers and mistakes are about, among those of the data; None: all of them."""
    return report.assessment.rows if isinstance(report.assessment, CrossValidation) else None


def _mistakes(report: Report, answers: ModelAnswers, named: list[str]) -> dict[str, Any]:
    rows, numbers = _shown_rows(report), report.drawn
    if rows is None:
        return worst_rows(answers, report.data.table, named, numbers)
    return worst_rows(answers, report.data.table.take(rows), named, rows if numbers is None else numbers[rows])


def _kind_words(model: TableModel) -> str:
    family = getattr(model, "family_", None)
    if family is None:
        inner = type(getattr(model, "model_", model)).__name__
        return {"LogisticRegression": "Logistic regression"}.get(inner, inner)
    plain = {"gaussian": "Least squares", "gamma": "Gamma regression"}
    return plain.get(family, family.replace("_", " ").capitalize() + " regression")


# Verdicts and scores. ------------------------------------------------------------------------------------------


def _verdicts(report: Report) -> dict[str, Any]:
    certificate, assessment = report.model.certificate_, report.assessment
    ledger = getattr(report.model, "search_", None)
    useful: dict[str, Any] = {"state": "", "head": "Not tested.", "score": None, "why": assessment}
    if isinstance(assessment, CrossValidation):
        score = assessment.scores[0]
        by_odds = any(alert.kind == "threshold" for alert in report.alerts)
        better = score.mean - score.baseline > float(np.hypot(score.error, score.baseline_error))
        shown = assessment.scores[0] if assessment.classes else assessment.scores[1]
        shown = assessment.scores[2] if by_odds else shown
        useful = _usefulness(report.alerts, better) | {"score": shown, "why": ""}
    elif ledger is not None:  # a page of a saved model
        better = choice_alert(ledger) is None
        useful = _usefulness(report.alerts, better) | {"score": None, "why": choice_words(ledger)}
    return {
        "certificate": certificate,
        "unaudited": "",
        "alerts": report.alerts,
        "useful": useful,
        "corrected": "" if useful["score"] is None or ledger is None else corrected_words(ledger),
        "classifies": _classes(report.model) is not None,
        "target": report.model.target_ or "target",
    }


def _usefulness(alerts: Sequence[Alert], better: bool) -> dict[str, str]:
    """The verdict of use and its colour, of a model whose score is better than its baseline's, or is not."""
    kinds = {alert.kind for alert in alerts}
    by_odds = "threshold" in kinds
    if not (better or by_odds) or "no use" in kinds:
        return {"state": "bad", "head": "No better than guessing."}
    doubts = [alert.kind for alert in alerts if alert.kind in ("leak", "copies", "too good")]
    if doubts:
        return {
            "state": "doubtful",
            "head": f"Better than guessing, if the alert ({', '.join(doubts)}) is no matter.",
        }
    how = ", by its probabilities alone" if by_odds else ""
    return {"state": "good", "head": f"Better than guessing{how}."}


def _scores(report: Report) -> dict[str, Any]:
    assessment = report.assessment
    if not isinstance(assessment, CrossValidation):
        return {"lines": (), "why": assessment}
    lines = []
    for score in assessment.scores:
        reach = float(t.ppf(0.975, assessment.folds - 1))
        ours, base = (_ends(mean, reach * error) for mean, error in _pairs(score))
        share = score.name in ("accuracy", "balanced accuracy")
        axis = ChartAxis("", 0.0, 1.0) if share else axis_around("", np.array([*ours, *base, 0.0]))
        lines.append({"score": score, "ours": ours, "base": base, "axis": axis, "share": share})
    most = 60
    return {
        "lines": lines,
        "how": _fold_words(assessment),
        "notes": assessment.notes,
        "classifies": bool(assessment.classes),
        "smaller": SMALLER_IS_BETTER,
        "classes": assessment.classes[:most],
        "more_classes": max(0, len(assessment.classes) - most),
        "confusion": _confusion(report) if len(assessment.classes) <= 20 else (),
        "why": "",
    }


def _fold_words(assessment: CrossValidation) -> str:
    known = ", stratified by class" if assessment.classes else ""
    baseline = "class frequencies" if assessment.classes else "mean"
    return (
        f"{assessment.folds}-fold cross-validation{known}; mean ± standard error over the folds, drawn with "
        "intervals of 95 %, the model in colour and the baseline in grey. The encoding is learnt again in each fold. "
        f"The baseline knows the {baseline} only."
    )


def _pairs(score: FoldScore) -> tuple[tuple[float, float], tuple[float, float]]:
    return (score.mean, score.error), (score.baseline, score.baseline_error)


def _ends(mean: float, reach: float) -> tuple[float, float, float]:
    return mean - reach, mean, mean + reach


def _confusion(report: Report) -> list[tuple[str, list[tuple[str, float]]]]:
    """Rows by true class: how many were called what, and which share of the true class that is."""
    found, classes = getattr(report.assessment, "confusion", None), _classes(report.model)
    if found is None or classes is None:
        return []
    shares = found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    words = [[f"{n:,.4g}" if n != round(n) else f"{round(n):,}" for n in line] for line in found.tolist()]
    names = [str(label) for label in classes]
    return [
        (name, [*zip(line, part, strict=True)])
        for name, line, part in zip(names, words, shares.tolist(), strict=True)
    ]


# What drives the model. ----------------------------------------------------------------------------------------


def _importance(
    report: Report, classes: Array | None, tuning: ImportanceTuning = ImportanceTuning()
) -> list[ColumnImportance]:
    """The importance of the table's columns, on at most so many of the rows that the model was fitted to."""
    model, data = report.model, report.data
    inner = getattr(model, "model_", None)
    if inner is None or not hasattr(model, "encode"):
        return []
    rows = np.random.default_rng(0).permutation(len(data.y))[: tuning.most_rows]
    X, _ = model.encode(data.table.take(rows))
    if X.shape[1] != getattr(inner, "n_features_in_", X.shape[1]):
        return []
    columns, first = [], 0
    for column in model.columns_:
        wide = len(column.features) if column.kind != "left out" else 0
        if wide:
            columns.append((column.name, slice(first, first + wide)))
        first += wide
    if first != X.shape[1]:
        return []
    moves = np.array([X[:, place].std(axis=0).sum() for _, place in columns])
    columns = [columns[j] for j in np.argsort(-moves, kind="stable")]
    truth = data.y[rows]
    return shuffled_importance(lambda moved: model_answers(inner, moved, truth, classes).loss, X, columns, tuning)


def _drivers(report: Report, importance: list[ColumnImportance]) -> dict[str, Any]:
    model = report.model
    inner = getattr(model, "model_", model)
    units = {c.name: (c.centre, c.scale) for c in model.columns_ if c.kind in ("number", "date")}
    listed = FittedCoefficients.of(inner, model.features_, _classes(model), model.certificate_)
    return {
        **importance_table(importance, loss_words(inner, _classes(model))),
        "classifies": _classes(model) is not None,
        "log_odds": type(inner).__name__ == "LogisticRegression",
        "log_link": getattr(model, "family_", "gaussian") != "gaussian",
        "standardised": True,
        "shapes": shape_charts(inner, model.features_, units),
        **coefficient_table(listed, report.most_features, report.most_classes),
    }


# The table, the settings, the proof. -----------------------------------------------------------------------------


def _columns(report: Report) -> dict[str, Any]:
    model = report.model
    family = getattr(model, "family_", None)
    return {
        "model": model,
        "target": model.target_ or "target",
        "target_words": target_words(report.data, most_classes=20),
        "task": report.data.choice,
        "family": ""
        if family is None
        else f"{FAMILY_WORDS.get(family, family)}: {getattr(model, 'family_because_', '')}",
        "columns": model.columns_[: report.most_columns],
        "more": max(0, len(model.columns_) - report.most_columns),
        "identifiers": [column.name for column in model.columns_ if column.identifies][:20],
    }


def _settings(report: Report) -> dict[str, Any]:
    return {
        "settings": report.settings,
        "versions": versions(),
        "fingerprint": report.model.fingerprint_,
        "recheck": report.recheck,
        "reproduce": report.reproduce,
    }


def _proof(report: Report) -> dict[str, Any]:
    model, data = report.model, report.data
    if not hasattr(model, "model_"):
        return {"form": "none", "why": "a page's script knows no proof for this model"}
    if report.drawn is not None:
        return {"form": "none", "why": "the page has part of the rows only: the command below checks all of them"}
    rows, _ = model.encode(data.table)
    return model_proof(model.model_, rows, FitSource(data.y, data.w), model.certificate_)
