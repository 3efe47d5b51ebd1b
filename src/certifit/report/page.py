"""The report: one HTML file with everything in it, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.axes import Axes

from certifit.plots import plot_coefficients, plot_confusion, plot_convergence, svg
from certifit.table.cross_validation import CrossValidation
from certifit.table.labelled_table import LabelledTable
from certifit.table.table_classifier import TableClassifier

MOST_FEATURES, MOST_CLASSES = 200, 12  # in the table of coefficients; the largest come first


def render(
    model: TableClassifier,
    data: LabelledTable,
    assessment: CrossValidation | str,
    *,
    table: str,
    settings: Mapping[str, Any],
    recheck: str,
) -> str:
    """The report as HTML text.

    Parameters
    ----------
    model, data : a fitted table model and the rows it was fitted to
    assessment : its cross-validation, or why there is none
    table : name of the table, as the reader knows it
    settings : names and values of the settings to list
    recheck : the command that checks the certificate again
    """
    environment = Environment(
        loader=PackageLoader("certifit.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    classes = [str(c) for c in model.classes_]
    coef, intercept = model.model_.coef_, np.atleast_1d(model.model_.intercept_)
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")
    labels, counts = np.unique(data.y, return_counts=True)
    pictures = {
        "convergence": _image(plot_convergence(model.model_)),
        "coefficients": _image(plot_coefficients(coef, model.features_, classes)),
    }
    if isinstance(assessment, CrossValidation):
        pictures["confusion"] = _image(plot_confusion(assessment.confusion, classes))
    return environment.get_template("page.html.j2").render(
        model=model,
        certificate=model.certificate_,
        assessment=assessment,
        validated=isinstance(assessment, CrossValidation),
        table=table,
        target=model.target_ or "target",
        class_counts=list(zip(map(str, labels), counts.tolist(), strict=True)),
        coefficient_classes=(classes if len(coef) > 1 else classes[1:])[:MOST_CLASSES],
        coefficients=[(model.features_[j], coef[:MOST_CLASSES, j].tolist()) for j in order[:MOST_FEATURES]],
        complete=len(coef) <= MOST_CLASSES and len(order) <= MOST_FEATURES,
        intercept=intercept[:MOST_CLASSES].tolist(),
        pictures=pictures,
        settings=settings,
        versions=_versions(),
        recheck=recheck,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _image(ax: Axes) -> str:
    """A picture as a data address: its words and identifiers cannot meet those of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg(ax).encode()).decode()


def _versions() -> dict[str, str]:
    names = ("certifit", "numpy", "scipy", "scikit-learn", "numba", "pyarrow")
    return {"Python": platform.python_version(), **{name: version(name) for name in names}}
