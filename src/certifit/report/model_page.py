"""`certifit.report(model, X, y)`: a page about any fitted model, also scikit-learn's, in a pipeline or a search."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certifit.checkers.auditing import audit, unwrap
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.files.atomic_file import write_atomically
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
from certifit.report.table_page import Report, render
from certifit.report.words import shortened
from certifit.rows import Array
from certifit.table.alerts import kept_alerts, table_alerts
from certifit.table.cross_validation import FoldScore
from certifit.table.labelled_table import fingerprint
from certifit.table.reading import as_table
from certifit.table.streaming.streamed_table import StreamedTable
from certifit.table.table_model import TableModel


@dataclass(frozen=True)
class ModelPage:
    """A page about a model: shows itself in a notebook, and can be saved."""

    html: str
    certificate: Certificate | None  # what was proved, or None where no checker knows the model

    def save(self, path: str | Path) -> Path:
        """Write the page to a file."""
        write_atomically(Path(path), self.html.encode())
        return Path(path)

    def _repr_html_(self) -> str:
        frame = '<iframe srcdoc="{}" width="100%" height="640" style="border:0" sandbox="allow-scripts"></iframe>'
        return frame.format(html.escape(self.html))

    def __repr__(self) -> str:
        found = "no checker knows this model" if self.certificate is None else str(self.certificate)
        return f"A page of {len(self.html.encode()):,} bytes; page.save('report.html') writes it.\n{found}"


def report(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    test: tuple[Any, Any] | None = None,
    name: str = "",
    path: str | Path | None = None,
) -> ModelPage:
    """Make a page about a fitted model: what is proved of it, how good it is, what drives it, where it is wrong.

    Parameters
    ----------
    model : any fitted model with `predict`: certifit's or scikit-learn's, also in a pipeline or a search
    X, y, sample_weight : the rows it was fitted to; of a model of a table y may be the name of a column
    test : (X, y) of rows that it was not fitted to, for scores; without them the page says that it was not tested
    name : of the table, for the page's title
    path : where the page is written, if anywhere

    Returns
    -------
    ModelPage : shows itself in a notebook; `save` writes it

    Examples
    --------
    >>> import certifit
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> page = certifit.report(LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y), X, y)
    >>> page.certificate.holds, "What drives the predictions" in page.html
    (True, True)
    """
    if isinstance(model, TableModel):
        data = model._labelled(X, y, sample_weight)
        why = "not tested here: the page was made from the fitted model alone"
        rows, drawn = (data.sample, data.sample_numbers) if isinstance(data, StreamedTable) else (data, None)
        alerts = kept_alerts(model) or tuple(table_alerts(rows))
        page = Report(model, rows, why, name or "a table", model.get_params(), "", alerts, drawn=drawn)
        found = ModelPage(render(page), model.certificate_)
    else:
        found = _PageMaker(model, X, y, sample_weight, test, name).page()
    if path is not None:
        found.save(path)
    return found


@dataclass(frozen=True)
class _PageMaker:
    """A model and its rows, as `report` was given them."""

    model: Any
    X: Any
    y: Any
    sample_weight: Any
    test: tuple[Any, Any] | None
    name: str

    def page(self) -> ModelPage:
        if not hasattr(self.model, "predict"):
            raise DataError(got=f"a {type(self.model).__name__}", wanted="a fitted model with predict")
        if self.y is None:
            raise DataError(got="no y", wanted="the targets of the rows", fix="certifit.report(model, X, y)")
        certificate, unaudited = self._audited()
        inner, inner_X = self._inside()
        answers = self._answers()
        sections = [PageSection("verdict", self._verdicts(certificate, unaudited, answers))]
        score = self._score(answers)
        if score is not None:
            sections.append(PageSection("new_rows", _score_table(score, answers)))
        held_out = self.test is not None
        if answers is not None:
            charts = number_charts(answers) if answers.classes is None else class_charts(answers)
            if charts:
                shown = {"held_out": False, "rows": self._row_words(), "charts": charts}
                sections.append(PageSection("curves", shown))
        if certificate is not None:
            sections.append(certificate_section(certificate, inner, ""))
        sections.append(PageSection("drivers", self._drivers(inner, inner_X, certificate, answers)))
        if answers is not None:
            table = as_table(self.test[0] if self.test is not None else self.X)
            worst = worst_rows(answers, table, table.column_names[:6])
            sections.append(PageSection("mistakes", {"held_out": held_out, **worst}))
        truth = np.asarray(self.y)
        sections.append(PageSection("settings", self._settings(inner_X, truth)))
        proof: dict[str, Any] = {"form": "none", "why": unaudited}
        if certificate is not None and inner_X is not None:
            weights = None if self.sample_weight is None else np.asarray(self.sample_weight, dtype=np.float64)
            proof = model_proof(inner, inner_X, FitSource(truth, weights), certificate)
        kind = type(self.model).__name__
        title = f"{kind} of {shortened(self.name, 80)}" if self.name else f"A fitted {kind}"
        inside = "" if inner is self.model else f" with {type(inner).__name__} inside"
        words = f"{kind}{inside}, fitted to {len(truth):,} rows · certifit {versions()['certifit']} · {written_at()}"
        return ModelPage(compose(title, words, sections, proof), certificate)

    def _audited(self) -> tuple[Certificate | None, str]:
        try:
            return audit(self.model, self.X, self.y, self.sample_weight), ""
        except (DataError, TypeError, ValueError) as error:
            return None, f"No checker has an answer: {error}"

    def _inside(self) -> tuple[Any, Array | None]:
        """The model inside pipelines and searches, and the rows that it was given, as numbers."""
        model, X, y = self.model, self.X, self.y
        while (found := unwrap(model, X, y)) is not None:
            model, X, y = found.model, found.X, found.y
        try:
            rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        except (TypeError, ValueError):
            return model, None
        return model, rows if rows.ndim == 2 else None

    def _answers(self) -> ModelAnswers | None:
        X, y = (self.X, self.y) if self.test is None else self.test
        truth, classes = np.asarray(y), getattr(self.model, "classes_", None)
        folds = 0 if self.test is None else 1
        if classes is None:
            said = np.asarray(self.model.predict(X), dtype=np.float64)
            return ModelAnswers(truth.astype(np.float64), said, None, folds) if said.ndim == 1 else None
        if not np.isin(truth, classes).all():
            return None
        return model_answers(self.model, X, truth, np.asarray(classes), folds)

    def _row_words(self) -> str:
        if self.test is None:
            return "Of the rows that the model was fitted to: new rows look worse than this."
        return "Of rows that were given for a test."

    def _score(self, answers: ModelAnswers | None) -> FoldScore | None:
        """Accuracy or absolute error on the test, with the standard error over its rows; None without a test."""
        if answers is None or self.test is None:
            return None
        truth = np.asarray(self.y)
        if answers.classes is None:
            ours, base = answers.loss, np.abs(answers.y - truth.astype(np.float64).mean())
        else:
            labels, counts = np.unique(truth, return_counts=True)
            ours = (answers.classes[answers.said.argmax(axis=1)] == answers.y).astype(float)
            base = (answers.y == labels[counts.argmax()]).astype(float)
        name = "mean absolute error" if answers.classes is None else "accuracy"
        ends = [float(value) for rows in (ours, base) for value in (rows.mean(), rows.std() / np.sqrt(len(rows)))]
        return FoldScore(name, *ends)

    def _verdicts(
        self, certificate: Certificate | None, unaudited: str, answers: ModelAnswers | None
    ) -> dict[str, Any]:
        score = self._score(answers)
        why = "not tested: give test=(X, y) of rows that it was not fitted to"
        useful: dict[str, Any] = {"state": "", "head": "Not tested.", "score": None, "why": why}
        if score is not None:
            gained = (score.mean - score.baseline) * (-1 if score.name != "accuracy" else 1)
            better = gained > float(np.hypot(score.error, score.baseline_error))
            head = "Better than guessing." if better else "No better than guessing."
            useful = {"state": "good" if better else "bad", "head": head, "score": score, "why": ""}
        shown = {"certificate": certificate, "unaudited": unaudited, "alerts": (), "useful": useful, "corrected": ""}
        return {**shown, "classifies": hasattr(self.model, "classes_"), "target": "target"}

    def _drivers(
        self, inner: Any, inner_X: Array | None, certificate: Certificate | None, answers: ModelAnswers | None
    ) -> dict[str, Any]:
        classes = getattr(self.model, "classes_", None)
        names = self._inner_names(0 if inner_X is None else inner_X.shape[1])
        coefficients = FittedCoefficients.of(inner, names, classes, certificate)
        log_link = any(word in type(inner).__name__ for word in ("Poisson", "Gamma", "Tweedie"))
        shown = importance_table(self._importance(answers), loss_words(self.model, classes), self._importance_rows())
        shown |= {"classifies": classes is not None, "log_odds": type(inner).__name__ == "LogisticRegression"}
        return {
            **shown,
            "log_link": log_link,
            "standardised": False,
            "shapes": shape_charts(inner, names, {}),
            **coefficient_table(coefficients, 200, 12),
        }

    def _importance_rows(self) -> str:
        return "the rows that the model was fitted to" if self.test is None else "the rows given for a test"

    def _importance(self, answers: ModelAnswers | None, tuning: ImportanceTuning = ImportanceTuning()) -> Any:
        X = self.X if self.test is None else self.test[0]
        named = hasattr(X, "iloc")
        if answers is None or not (named or isinstance(X, np.ndarray)):
            return []
        rows = np.random.default_rng(0).permutation(len(answers.y))[: tuning.most_rows]
        some, truth, classes = X.iloc[rows] if named else X[rows], answers.y[rows], answers.classes
        columns: Sequence[Any] = [*X.columns] if named else range(X.shape[1])
        listed = [(str(c) if named else f"column {c}", c if named else slice(c, c + 1)) for c in columns]
        return shuffled_importance(
            lambda moved: model_answers(self.model, moved, truth, classes).loss, some, listed, tuning
        )

    def _inner_names(self, count: int) -> list[str]:
        """The names of the columns that the model inside was given, where somebody knows them."""
        model = getattr(self.model, "best_estimator_", self.model)
        found: Any = getattr(self.X, "columns", None)
        if hasattr(model, "steps"):
            try:
                found = model[:-1].get_feature_names_out()
            except (AttributeError, TypeError, ValueError):
                found = None
        if found is None or len(found) != count:
            return [f"column {j}" for j in range(count)]
        return [str(name) for name in found]

    def _settings(self, inner_X: Array | None, truth: Array) -> dict[str, Any]:
        weights = None if self.sample_weight is None else np.asarray(self.sample_weight, dtype=np.float64)
        digest = "not known: rows that are no numbers" if inner_X is None else ""
        if inner_X is not None:
            kept = truth if hasattr(self.model, "classes_") else truth.astype(np.float64)
            digest = fingerprint(np.ascontiguousarray(inner_X), kept, weights)
        params: dict[str, Any] = getattr(self.model, "get_params", dict)()
        plain = {
            name: repr(value)
            for name, value in params.items()
            if isinstance(value, (int, float, str, bool, type(None)))
        }
        return {"settings": plain, "versions": versions(), "fingerprint": digest, "recheck": "", "reproduce": ""}


def _score_table(score: FoldScore, answers: ModelAnswers | None) -> dict[str, Any]:
    ours, base = (
        (mean - 1.96 * error, mean, mean + 1.96 * error)
        for mean, error in ((score.mean, score.error), (score.baseline, score.baseline_error))
    )
    share = score.name == "accuracy"
    axis = ChartAxis("", 0.0, 1.0) if share else axis_around("", np.array([*ours, *base, 0.0]))
    known = "most frequent class" if share else "mean"
    how = (
        f"{0 if answers is None else len(answers.y):,} rows that were given for a test; mean ± standard error over "
        f"them, drawn with intervals of 95 %. The baseline knows the {known} of the rows of the fit only. That the "
        "model was not fitted to them is taken on trust."
    )
    lines = [{"score": score, "ours": ours, "base": base, "axis": axis, "share": share}]
    return {
        "lines": lines, "how": how, "notes": (), "classifies": share, "smaller": ("mean absolute error",),
        "classes": (), "more_classes": 0, "confusion": (), "why": "",
    }  # fmt: skip
