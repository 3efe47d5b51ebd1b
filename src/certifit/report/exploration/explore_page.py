"""The page about a table without a target."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from certifit.report.certificate_section import certificate_section
from certifit.report.charts import ChartLayer, axis_around, draw_chart, thinned
from certifit.report.exploration.findings import ExploreTuning, TableFindings
from certifit.report.page import PageSection, compose, versions, written_at
from certifit.report.words import shortened
from certifit.rows import Array
from certifit.table.columns import encode_columns
from certifit.table.labelled_table import fingerprint

NO_MEANING = (
    "It does not say that the groups mean anything, that this is the right number of them, or that another measure "
    "of distance would find the same."
)
SHOWN_GROUPS = 8  # with a colour of their own


def render_exploration(found: TableFindings, name: str, command: str) -> str:
    """The page as HTML text."""
    sections = [
        PageSection("explored", _summary(found)),
        PageSection(
            "map",
            {
                "map": _map(found),
                "scree": _scree(found),
                "axes": _axes(found),
                "proved": found.pca.certificate_.holds,
            },
        ),
        PageSection("groups", _groups(found)),
    ]
    if found.groups is not None:
        sections.append(certificate_section(found.groups.certificate_, found.groups, "", NO_MEANING))
    sections.append(PageSection("holes", _holes(found)))
    sections.append(PageSection("outliers", _outliers(found)))
    rows, _, _ = encode_columns(found.columns, found.table)
    settings = {
        "settings": {},
        "versions": versions(),
        "fingerprint": fingerprint(rows, np.zeros(0), None),
        "reproduce": command,
        "recheck": "",
    }
    sections.append(PageSection("settings", settings))
    used = sum(column.kind != "left out" for column in found.columns)
    subtitle = f"{found.rows.in_words}, {used:,} of {len(found.columns):,} columns used"
    subtitle += f" · certifit {versions()['certifit']} · {written_at()}"
    why = "a page's script has no proof of clusterings; what is printed was checked when the page was written"
    proof = {"form": "none", "why": why}
    return compose(f"What is in {shortened(name, 80)}", subtitle, sections, proof)


def _summary(found: TableFindings) -> dict[str, Any]:
    certificate = None if found.groups is None else found.groups.certificate_
    return {
        "n_groups": found.n_groups,
        "sizes": np.bincount(found.labels).tolist(),
        "certificate": certificate,
        "first_two": float(found.pca.explained_variance_ratio_[:2].sum()),
        "drivers": [shortened(share.name) for share in found.shares[:3]],
        "outliers": len(found.outliers),
        "holes": sum(column.missing > 0 for column in found.columns),
        "weak": ExploreTuning().weak,
    }


def _map(found: TableFindings) -> Markup | None:
    """The rows on the first two axes, coloured by group."""
    if found.scores.shape[1] < 2:
        return None
    at = thinned(len(found.scores), 1200)
    x, y = found.scores[at, 0], found.scores[at, 1]
    labels = np.minimum(found.labels[at], SHOWN_GROUPS)
    few = len(at) <= 400
    layers = []
    for g in np.unique(labels):
        mine = labels == g
        words = [f"row {found.rows.numbers[i] + 1:,}, group {found.labels[i] + 1}" for i in at[mine]] if few else []
        kind = f"faint g{g}" if found.n_groups > 1 else "faint"
        layers.append(ChartLayer("dots", x[mine], y[mine], words=words, kind=kind))
    share = found.pca.explained_variance_ratio_
    across, up = (
        axis_around(f"axis {j + 1} ({100 * share[j]:.0f} % of the variance)", v) for j, v in enumerate((x, y))
    )
    return draw_chart(layers, across, up, "The rows on the first two principal components, coloured by group")


def _scree(found: TableFindings) -> Markup:
    """The share of the variance that each axis holds."""
    share = found.pca.explained_variance_ratio_
    numbers = np.arange(1.0, len(share) + 1)
    said = [f"axis {j:.0f}: {100 * s:.1f} %" for j, s in zip(numbers, share, strict=True)]
    across = axis_around("axis", np.array([0.5, len(share) + 0.5]), room=0.0)
    up = axis_around("share of the variance", np.array([0.0]), share, room=0.0)
    return draw_chart(
        [ChartLayer("bars", numbers, share, words=said)], across, up, "Share of the variance of each axis"
    )


def _axes(found: TableFindings, axes: int = 3, most: int = 5) -> list[tuple[str, str, str]]:
    """What the first axes are made of: the encoded columns with the largest entries."""
    names = [name for column in found.columns for name in column.features]
    out = []
    for j, axis in enumerate(found.pca.components_[:axes]):
        order = np.argsort(-np.abs(axis), kind="stable")[:most]
        words = ", ".join(f"{shortened(names[i], 30)} {axis[i]:+.2f}" for i in order)
        out.append((f"{j + 1}", f"{100 * found.pca.explained_variance_ratio_[j]:.1f} %", words))
    return out


def _groups(found: TableFindings) -> dict[str, Any]:
    sizes = np.bincount(found.labels)
    choice, mixture = found.choice, found.mixture
    shown = slice(SHOWN_GROUPS)
    return {
        "choice": None if choice is None else [*choice.table()],
        "preferred": {} if choice is None else choice.choices,
        "n_groups": found.n_groups,
        "sizes": sizes[shown].tolist(),
        "shares": [(shortened(s.name), s.share, s.in_groups[shown]) for s in found.shares[:40]],
        "components": 0 if mixture is None else mixture.best.n_components,
        "covariances": "" if mixture is None else mixture.best.covariance_type,
        "agreement": found.agreement,
    }


def _holes(found: TableFindings) -> dict[str, Any]:
    n = found.table.num_rows
    holes = sorted((column for column in found.columns if column.missing), key=lambda column: -column.missing)
    lines = [(shortened(column.name), f"{column.missing:,}", column.missing / n) for column in holes[:60]]
    columns = [(column, _histogram(column, found)) for column in found.columns[:300]]
    more = max(0, len(found.columns) - 300)
    return {"holes": lines, "pairs": found.holes, "columns": columns, "more": more}


def _histogram(column: Any, found: TableFindings, bins: int = 16) -> Array | None:
    """How the values of a column of numbers are spread: counts in bins (b,)."""
    if column.kind != "number":
        return None
    numbers = column.encode(found.table[column.name])[0][:, 0]
    return np.histogram(numbers, bins)[0]


def _outliers(found: TableFindings) -> dict[str, Any]:
    shown = [column.name for column in found.columns if column.kind != "left out"][:6]
    places = np.searchsorted(found.rows.numbers, [row.row - 1 for row in found.outliers])
    cells = found.table.select(shown).take(places).to_pydict()
    rows = [
        [f"{row.row:,}", f"{row.distance:.1f}", row.why, *(shortened(cells[name][i], 40) for name in shown)]
        for i, row in enumerate(found.outliers)
    ]
    header = ["row", "distance²", "unusual in", *(shortened(name, 30) for name in shown)]
    return {"header": header, "rows": rows, "limit": found.outlier_limit, "chance": ExploreTuning().chance}
