"""`certifit explore`: a look at a table without a target, on the screen and on a page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from certifit.cli.files import TableFiles, block_source, check_writable, table_to_fit
from certifit.cli.saved_model import warnings_as_notes
from certifit.cli.screen import Screen
from certifit.exceptions import DataError
from certifit.report.exploration.explore_page import render_exploration
from certifit.report.exploration.findings import (
    DrawnRows,
    ExploreTuning,
    TableFindings,
    explore_table,
    findings_document,
)
from certifit.report.words import shortened
from certifit.store import write_atomically
from certifit.table.columns import pick
from certifit.table.reading import table_blocks
from certifit.table.streaming.row_sample import RowSample


class ExploreSettings(NamedTuple):
    """What `certifit explore` was asked to do."""

    groups: int = 0  # 0 chooses
    drop: tuple[str, ...] = ()
    seed: int = 0
    rows: int = 0  # to look at, drawn at random; 0 for all, or for some of a table that is large beside the memory


def run_explore(path: TableFiles, settings: ExploreSettings, report: Path, screen: Screen) -> None:
    """Look at the table, say what was found and write the page."""
    check_writable(report, *path.paths)
    with warnings_as_notes(screen):
        rows = _rows_to_look_at(path, settings)
    found = explore_table(rows, groups=settings.groups, seed=settings.seed)
    _show(screen, path.name, found)
    words = ["certifit", "explore", *path.typed, *(word for name in settings.drop for word in ("--drop", name))]
    words += ["--groups", str(settings.groups)] if settings.groups else []
    words += ["--rows", str(settings.rows)] if settings.rows else []
    page = render_exploration(found, path.name, shlex.join([*words, "--seed", str(settings.seed)]))
    write_atomically(report, page.encode())
    screen.heading("Written")
    screen.pairs([("page", str(report))])
    screen.document(findings_document(found) | {"table": str(path), "page": str(report)})


def _rows_to_look_at(path: TableFiles, settings: ExploreSettings) -> DrawnRows:
    """The table, or rows drawn from it by a hash of their numbers, in one pass over blocks."""
    source = table_to_fit(path, stream=False) if not settings.rows else block_source(path)
    most = settings.rows or (0 if isinstance(source, pa.Table) else ExploreTuning().most_rows)
    sample, seen = RowSample(most, settings.seed), 0
    for block in table_blocks(source, rows=65_536 if most else 0):
        for name in settings.drop if not seen else ():
            pick(block, name, "column to drop")
        table = block.drop_columns(list(settings.drop))
        if not most:
            return DrawnRows.all_of(table)
        sample.add(table, np.arange(seen, seen + table.num_rows))
        seen += table.num_rows
    if not seen:
        raise DataError(got=f"{str(path)!r}, which has no rows", wanted="at least one row below the column names")
    return DrawnRows(*sample.drawn(), seen)


def _show(screen: Screen, name: str, found: TableFindings) -> None:
    screen.say(f"{name}: {found.rows.in_words}, {len(found.columns)} columns")
    screen.table(
        ["column", "type", "used as", "missing", "distinct", "what is done"],
        [(shortened(c.name, 40), c.type, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.done) for c in found.columns],
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
            [(shortened(s.name, 40), f"{100 * s.share:.0f} %", *s.in_groups[:5]) for s in found.shares[:8]],
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
