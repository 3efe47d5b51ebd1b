"""`certifit explore`: a look at a table without a target, on the screen and on a page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np

from certifit.cli.files import TableFiles, check_writable, read_table
from certifit.cli.screen import Screen
from certifit.report.exploration.explore_page import render_exploration
from certifit.report.exploration.findings import TableFindings, explore_table, findings_document
from certifit.store import write_atomically
from certifit.table.columns import pick


class ExploreSettings(NamedTuple):
    """What `certifit explore` was asked to do."""

    groups: int = 0  # 0 chooses
    drop: tuple[str, ...] = ()
    seed: int = 0


def run_explore(path: TableFiles, settings: ExploreSettings, report: Path, screen: Screen) -> None:
    """Look at the table, say what was found and write the page."""
    check_writable(report, *path.paths)
    table = read_table(path)
    for name in settings.drop:
        pick(table, name, "column to drop")
    found = explore_table(table.drop_columns(list(settings.drop)), groups=settings.groups, seed=settings.seed)
    _show(screen, path.name, found)
    words = ["certifit", "explore", *path.paths, *(word for name in settings.drop for word in ("--drop", name))]
    words += ["--groups", str(settings.groups)] if settings.groups else []
    page = render_exploration(found, path.name, shlex.join([*words, "--seed", str(settings.seed)]))
    write_atomically(report, page.encode())
    screen.heading("Written")
    screen.pairs([("page", str(report))])
    screen.document(findings_document(found) | {"table": str(path), "page": str(report)})


def _show(screen: Screen, name: str, found: TableFindings) -> None:
    screen.say(f"{name}: {found.table.num_rows:,} rows, {len(found.columns)} columns")
    screen.table(
        ["column", "type", "used as", "missing", "distinct", "what is done"],
        [(c.name, c.type, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.done) for c in found.columns],
        right=(3, 4),
    )
    share = found.pca.explained_variance_ratio_
    screen.heading("Map")
    screen.say(
        f"two axes hold {100 * share[:2].sum():.1f} % of the variance, {len(share)} hold {100 * share.sum():.1f} %"
    )
    screen.heading("Groups")
    if found.groups is None:
        screen.say("no groups stand out")
    else:
        sizes = ", ".join(f"{size:,}" for size in np.bincount(found.labels))
        screen.say(f"{found.n_groups} groups, of {sizes} rows")
        screen.certificate(found.groups.certificate_)
        screen.table(
            ["column", "explained by the groups", *(f"group {g + 1}" for g in range(min(5, found.n_groups)))],
            [(s.name, f"{100 * s.share:.0f} %", *s.in_groups[:5]) for s in found.shares[:8]],
            right=(1,),
        )
    if found.mixture is not None:
        best = found.mixture.best
        agree = (
            "" if np.isnan(found.agreement) else f"; agreement with the groups {found.agreement:.2f} (1: the same)"
        )
        screen.say(
            f"a mixture of {best.n_components} normal distributions ({best.covariance_type}) has the best BIC{agree}"
        )
    screen.heading("Outliers")
    if not found.outliers:
        screen.say("none: no row is further out than chance puts one")
    for row in found.outliers[:5]:
        screen.say(f"row {row.row:,}: unusual in {row.why}")
