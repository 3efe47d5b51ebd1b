"""Write docs/evidence/scaling.md and its picture from what `python -m benchmarks.scaling_rows` has measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.reporting import RESULTS

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = DOCS / "evidence" / "scaling.md", DOCS / "images" / "scaling.svg"
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # rows, of four columns
WIDTHS = (1, 4, 16)  # times four columns, of so many rows:
ROWS_AT_ONCE = 100_000
HEAD = """# Cost against rows and columns

`python -m benchmarks.scaling_rows --missing --write` writes this page: every estimator whose fit reads files block by
block ([what streams](../tables/streams.md)), at the settings of its tests but two iterations at most, because more of
them read the same blocks again; on Parquet files of 10⁴ to 10⁷ rows and four columns (rows repeat after 10⁵), and of
10⁵ rows and up to 64 columns. Seconds are processor time, reading included; passes are over the file; *sum* is the
largest sum over rows that one pass of a fit gives, which is what a client of a Dask cluster receives. Empty: not
measured, because it would have taken too long, or time was over.

![Processor time and memory against rows, processor time against columns](../images/scaling.svg)

"""
KEPT = """Trees are grown on codes of a byte for each column, beside targets, weights, slopes or scores, and
an order of the rows for each tree that grows; forests know the order and the weights of draws; linear machines of the
plain hinge hold the slacks of all rows, among which the middle of the best intercepts is found; TrimmedPCA's
attributes say of each row how far away it is."""
TASKS = ("fit", "answer", "audit")


def write_page(record: Mapping[str, Any], page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Write both from the record."""
    costs = record["costs"]
    m = record["machine"]
    where = f"{m['date'][:10]}; {m['cpu']}, {m['cores']} cores, shared with other programs: processor time only."
    told = f"{_times(costs)}\n{where}\n{_peaks(costs)}{_clusters(RESULTS / 'scaling_out.json')}"
    page.write_text(f"{HEAD}{told}", encoding="utf-8")
    draw(costs, picture)


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *lines]) + "\n"


def _times(costs: Mapping[str, Any]) -> str:
    """The table of processor time, and whether it is linear in the rows."""
    powers = [f"10{'⁴⁵⁶⁷'[k]}" for k in range(len(SIZES))]
    head = ["estimator", *(f"fit, s, {power} rows" for power in powers), "passes", "answers, s, 10⁶ rows",
            "audit, s, 10⁶ rows", "passes of the audit", "bytes of a sum"]  # fmt: skip
    grown = []
    for name, sizes in sorted(costs.items()):
        before, after = (_at(sizes, rows, "fit", "seconds") for rows in SIZES[2:])
        if before is not None and after is not None:
            grown.append((after / before, name))
    told = ""
    if grown:
        beyond = [f"`{name}` ({factor:.0f})" for factor, name in sorted(grown) if factor > 12]
        more = f"; beyond that: {', '.join(beyond)}" if beyond else ""
        told = f"\nFrom 10⁶ to 10⁷ rows the time of {len(grown) - len(beyond)} of {len(grown)} fits grows at most "
        told += f"twelvefold{more}.\n"
    return _table(head, [_line(name, sizes) for name, sizes in sorted(costs.items())]) + told


def _line(name: str, sizes: Mapping[str, Any]) -> list[str]:
    seconds = [_short(_at(sizes, rows, "fit", "seconds")) for rows in SIZES]
    passes = ["–".join(dict.fromkeys(f"{p}" for rows in SIZES if (p := _at(sizes, rows, task, "passes")) is not None))
              for task in ("fit", "audit")]  # fmt: skip
    others = [_short(_at(sizes, SIZES[2], task, "seconds")) for task in ("answer", "audit")]
    sums = [b for rows in SIZES if (b := _at(sizes, rows, "fit", "sum_bytes")) is not None]
    told = "" if not sums else f"{sums[0]:,.0f}" + ("" if max(sums) <= 1.1 * sums[0] else f"–{max(sums):,.0f}")
    return [f"`{name}`", *seconds, passes[0], *others, passes[1], told]


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.2g}"


def _peaks(costs: Mapping[str, Any]) -> str:
    """The section of peaks of memory of fit, answers and audit."""
    lines, grown, both = [], [], 0
    for name, sizes in sorted(costs.items()):
        cells = []
        for task in TASKS:
            pair = [_at(sizes, rows, task, "mb") for rows in SIZES[2:]]
            cells += ["" if mb is None else f"{mb:.0f}" for mb in pair]
            if pair[0] is not None and pair[1] is not None:
                both += 1
                # what ten times the rows may add: 9,000,000 labels of a byte or so
                each = (pair[1] - pair[0]) * 1e6 / (SIZES[3] - SIZES[2])
                grown += [f"{task} of `{name}` ({each:.0f})"] if pair[1] > 1.5 * pair[0] + 30 else []
        lines.append([f"`{name}`", *cells])
    head = ["estimator", *(f"{task}, {size} rows" for task in ("fit", "answers", "audit") for size in ("10⁶", "10⁷"))]
    told = f"; it grows, by so many bytes a row, for {', '.join(grown)}. {KEPT}" if grown else "."
    return f"""
## Memory of fits, answers and audits

MB beyond what the process held after doing all three with 20,000 rows; answers go to a file.

{_table(head, lines)}
Of {both} peaks measured at 10⁶ and at 10⁷ rows, {both - len(grown)} are flat{told}
"""


def _clusters(path: Path) -> str:
    """The section of fits on Dask workers, where they were measured."""
    if not path.exists():
        return ""
    found = json.loads(path.read_text())
    head = ["fit", "workers", "s", "s in memory, as many threads", "over memory", "s of the first pass",
            "the same in memory", "later passes over memory's", "passes", "bytes a pass", "bits"]  # fmt: skip
    lines = [
        [f"`{fit['model']}`", str(fit["workers"]), f"{fit['seconds']:.2f}", f"{fit['memory_seconds']:.2f}",
         _over(fit["seconds"], fit["memory_seconds"]), f"{fit['opening']:.2f}", f"{fit['memory_opening']:.2f}",
         _later(fit), str(fit["passes"]), f"{fit['received']:,.0f}", fit["same"]]
        for fit in found["fits"]
    ]  # fmt: skip
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *lines])
    held = "held by the workers" if found["held"] else "read in the first pass"
    rows = f"{found['rows']:,} rows and {found['columns']} columns in 32 partitions, {held}"
    m = found["machine"]
    return f"""
## Dask workers

`python -m benchmarks.scaling_out --write`: {rows}, on local workers of one thread each, beside the same fit of a
pandas frame with as many threads; seconds of the clock, the best of some fits. Up to the sum of the first pass rows
are counted, cut out of the frame's columns, checked, and partitions brought together in runs, once in a fit. What the
client receives is the total of each pass.

{table}

{m["date"][:10]}; {m["cpu"]}, {m["cores"]} cores, load {m["load_average"]:.1f}.
"""


def _later(fit: Mapping[str, Any]) -> str:
    """What the passes after the first cost beyond those in memory."""
    later, there = fit["seconds"] - fit["opening"], fit["memory_seconds"] - fit["memory_opening"]
    return "" if fit["passes"] < 2 else _over(later, there)


def _over(seconds: float, plain: float) -> str:
    return f"{seconds / plain - 1:+.0%}"


def _at(sizes: Mapping[str, Any], rows: int, task: str, what: str, width: int = 4) -> float | None:
    return sizes.get(f"{rows} x {width}", {}).get(task, {}).get(what)


def draw(every: Mapping[str, Any], picture: Path) -> None:
    """Three panels: processor time and memory against rows, processor time against columns."""
    from matplotlib import pyplot as plt

    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "certifit", "font.size": 9}):
        figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
        panels = (
            (axes[0], "rows", "processor time (s)", [(rows, 4) for rows in SIZES], "seconds"),
            (axes[1], "rows", "peak of memory (MB)", [(rows, 4) for rows in SIZES], "mb"),
            (axes[2], "columns (10⁵ rows)", "processor time (s)", [(ROWS_AT_ONCE, 4 * k) for k in WIDTHS], "seconds"),
        )
        for axis, across, up, places, what in panels:
            for sizes in every.values():
                points = [
                    (rows if axis is not axes[2] else width, _at(sizes, rows, "fit", what, width))
                    for rows, width in places
                ]
                kept = [(x, max(y, 1e-3)) for x, y in points if y is not None]
                if len(kept) > 1:
                    axis.plot(*zip(*kept, strict=True), color="#3b6ea5", alpha=0.45, lw=1, marker=".", ms=3)
            axis.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
        axes[2].set_xticks([4 * k for k in WIDTHS], [str(4 * k) for k in WIDTHS])
        axes[2].minorticks_off()
        for axis, start in ((axes[0], 0.01), (axes[2], 0.05)):
            low, high = axis.get_xlim()
            axis.plot([low, high], [start, start * high / low], "--", color="#888", lw=1, label="linear")
            axis.legend(frameon=False)
        picture.parent.mkdir(exist_ok=True)
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)
