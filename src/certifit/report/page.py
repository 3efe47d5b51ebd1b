"""The report: one HTML file with everything in it, no scripts, nothing loaded from elsewhere.

A section of the page is a template in `sections/` and, where it needs numbers or pictures, a function below that
gives them; `render` lists the sections in the order of the page.
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.axes import Axes

from certifit.core.proved_digits import proved_digits
from certifit.plots import plot_coefficients, plot_confusion, plot_convergence, svg
from certifit.plots.style import figures_apart
from certifit.report.pictures import plot_held_out
from certifit.report.words import FAMILY_WORDS, target_words, with_error
from certifit.rows import Array
from certifit.table.alerts import Alert
from certifit.table.cross_validation import CrossValidation
from certifit.table.labelled_table import LabelledTable
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_model import TableModel
from certifit.table.table_regressor import TableRegressor


@dataclass(frozen=True)
class Report:
    """What the page is about."""

    model: TableModel  # fitted
    data: LabelledTable  # the rows it was fitted to
    assessment: CrossValidation | str  # its cross-validation, or why there is none
    table: str  # name of the table, as the reader knows it
    settings: Mapping[str, Any]  # names and values of the settings to list
    recheck: str  # the command that checks the certificate again
    alerts: tuple[Alert, ...] = ()  # what to know before the model is trusted
    most_features: int = 200  # listed with their coefficients; the largest come first
    most_classes: int = 12  # with a column of coefficients each
    leaderboard: Sequence[Mapping[str, Any]] = ()  # a line for each model that was tried, with the same headings
    reproduce: str = ""  # the command that does all of this again


def render(report: Report) -> str:
    """The report as HTML text."""
    environment = Environment(
        loader=PackageLoader("certifit.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        sections=_sections(report),
        lines=report.leaderboard,
        style=files("certifit.report").joinpath("style.css").read_text(encoding="utf-8"),
        model=report.model,
        certificate=report.model.certificate_,
        alerts=report.alerts,
        assessment=report.assessment,
        validated=isinstance(report.assessment, CrossValidation),
        table=report.table,
        target=report.model.target_ or "target",
        pictures=_pictures(report),
        settings=report.settings,
        versions=_versions(),
        recheck=report.recheck,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        with_error=with_error,
        **_model_words(report),
        **_coefficients(report),
    )


def _sections(report: Report) -> list[str]:
    """The names of the sections, in the order of the page."""
    found = ["verdict", "leaderboard", "columns", "new_rows", "certificate", "coefficients", "settings"]
    left_out = [] if report.leaderboard else ["leaderboard"]
    left_out += [] if hasattr(report.model.model_, "coef_") else ["coefficients"]
    return [name for name in found if name not in left_out]


def _pictures(report: Report) -> dict[str, str]:
    """The pictures of all sections, as data addresses."""
    with figures_apart():
        model = report.model
        pictures = {}
        if getattr(model.model_, "history_", ()):
            pictures["convergence"] = _image(plot_convergence(model.model_))
        if hasattr(model.model_, "coef_"):
            pictures["coefficients"] = _image(plot_coefficients(model))
        if not isinstance(report.assessment, CrossValidation):
            return pictures
        if isinstance(model, TableClassifier):
            pictures["confusion"] = _image(plot_confusion(report.assessment.confusion, classes=model.classes_))
        elif report.assessment.predicted is not None:
            pictures["held_out"] = _image(plot_held_out(report.data.y, report.assessment.predicted))
    return pictures


def _model_words(report: Report) -> dict[str, Any]:
    """What kind of model this is, and what its target is like."""
    model, classes = report.model, isinstance(report.model, TableClassifier)
    kind = "Logistic regression" if model.estimator is None else type(model.model_).__name__
    family = getattr(model, "family_", "")
    if isinstance(model, TableRegressor) and family:
        kind = {"gaussian": "Least squares", "gamma": "Gamma regression"}.get(
            model.family_, model.family_.replace("_", " ").capitalize() + " regression"
        )
    return {
        "classifies": classes,
        "kind": kind,
        "family": f"{FAMILY_WORDS[family]}: {getattr(model, 'family_because_', '')}" if family else "",
        "log_link": family not in ("", "gaussian"),
        "task": report.data.choice,
        "target_words": target_words(report.data, most_classes=20),
        "identifiers": [column.name for column in model.columns_ if column.identifies],
    }


def _coefficients(report: Report) -> dict[str, Any]:
    """The table of coefficients: the features with the largest ones first, as many as fit on a page."""
    model, most = report.model, report.most_classes
    if not hasattr(model.model_, "coef_"):
        return {}
    coef, intercept = np.atleast_2d(model.model_.coef_), np.atleast_1d(model.model_.intercept_)
    classes = [str(c) for c in model.classes_] if isinstance(model, TableClassifier) else ["", "coefficient"]
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")
    listed = order[: report.most_features]
    errors = model.certificate_.parameter_error
    printed = _printed(np.column_stack([coef, intercept]), np.array(errors))
    return {
        "coefficient_classes": (classes if len(coef) > 1 else classes[1:])[:most],
        "coefficients": [(model.features_[j], [row[j] for row in printed[:most]]) for j in listed],
        "complete": len(coef) <= most and len(listed) == len(order),
        "intercept": [row[-1] for row in printed[:most]],
        "proved": bool(errors),
    }


def _printed(values: Array, errors: Array) -> list[list[str]]:
    """Coefficients with the digits that are proved; with four decimals where nothing is proved about any."""
    if not errors.size:
        return [[f"{value:.4f}" for value in row] for row in values.tolist()]
    pairs = zip(values.tolist(), errors.tolist(), strict=True)
    return [[proved_digits(value, error) for value, error in zip(*pair, strict=True)] for pair in pairs]


def _image(ax: Axes) -> str:
    """A picture as a data address: its words and identifiers cannot meet those of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg(ax).encode()).decode()


def _versions() -> dict[str, str]:
    names = ("certifit", "numpy", "scipy", "scikit-learn", "numba", "pyarrow")
    return {"Python": platform.python_version(), **{name: version(name) for name in names}}
