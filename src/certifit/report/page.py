"""The report: one HTML file with everything in it, no scripts, nothing loaded from elsewhere.

A section of the page is a template in `sections/` and, where it needs numbers or pictures, a function below that
gives them; `render` lists the sections in the order of the page.
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping
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
from certifit.rows import Array
from certifit.table.cross_validation import CrossValidation
from certifit.table.labelled_table import LabelledTable
from certifit.table.table_classifier import TableClassifier


@dataclass(frozen=True)
class Report:
    """What the page is about."""

    model: TableClassifier  # fitted
    data: LabelledTable  # the rows it was fitted to
    assessment: CrossValidation | str  # its cross-validation, or why there is none
    table: str  # name of the table, as the reader knows it
    settings: Mapping[str, Any]  # names and values of the settings to list
    recheck: str  # the command that checks the certificate again
    most_features: int = 200  # listed with their coefficients; the largest come first
    most_classes: int = 12  # with a column of coefficients each


def render(report: Report) -> str:
    """The report as HTML text."""
    environment = Environment(
        loader=PackageLoader("certifit.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        sections=("verdict", "columns", "new_rows", "certificate", "coefficients", "settings"),
        style=files("certifit.report").joinpath("style.css").read_text(encoding="utf-8"),
        model=report.model,
        certificate=report.model.certificate_,
        assessment=report.assessment,
        validated=isinstance(report.assessment, CrossValidation),
        table=report.table,
        target=report.model.target_ or "target",
        pictures=_pictures(report),
        settings=report.settings,
        versions=_versions(),
        recheck=report.recheck,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **_class_counts(report),
        **_coefficients(report),
    )


def _pictures(report: Report) -> dict[str, str]:
    """The pictures of all sections, as data addresses."""
    model, classes = report.model, [str(c) for c in report.model.classes_]
    pictures = {
        "convergence": _image(plot_convergence(model.model_)),
        "coefficients": _image(plot_coefficients(model.model_.coef_, model.features_, classes)),
    }
    if isinstance(report.assessment, CrossValidation):
        pictures["confusion"] = _image(plot_confusion(report.assessment.confusion, classes))
    return pictures


def _class_counts(report: Report) -> dict[str, Any]:
    """How many rows each class has."""
    labels, counts = np.unique(report.data.y, return_counts=True)
    return {"class_counts": list(zip(map(str, labels), counts.tolist(), strict=True))}


def _coefficients(report: Report) -> dict[str, Any]:
    """The table of coefficients: the features with the largest ones first, as many as fit on a page."""
    model, most = report.model, report.most_classes
    coef, intercept = model.model_.coef_, np.atleast_1d(model.model_.intercept_)
    classes = [str(c) for c in model.classes_]
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
