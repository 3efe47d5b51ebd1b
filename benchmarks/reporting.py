"""What was measured and on what machine: to the screen, to JSON and into the documentation's tables."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs" / "evidence" / "benchmarks.md"
README = Path(__file__).parents[1] / "README.md"
ALWAYS = ("certifit", "numpy", "scipy", "numba", "scikit-learn")  # versions reported with every benchmark


@dataclass(frozen=True)
class Table:
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        body = "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
        return f"**{self.caption}**\n\n{body}\n" + (f"\n{self.note}\n" if self.note else "")


@dataclass(frozen=True)
class Report:
    """A benchmark's outcome: tables for people, plain data for programs."""

    title: str
    tables: Sequence[Table]
    data: dict[str, Any]
    packages: Iterable[str] = ()
    machine: dict[str, Any] = field(default_factory=lambda: machine())
    page: str = ""  # a page of its own, beside that of all benchmarks

    def to_dict(self, name: str) -> dict[str, Any]:
        versions = {package: _version(package) for package in sorted({*ALWAYS, *self.packages})}
        return {"name": name, "title": self.title, "machine": self.machine, "versions": versions, **self.data}

    def markdown(self, name: str) -> str:
        facts = self.to_dict(name)
        m, versions = facts["machine"], ", ".join(f"{k} {v}" for k, v in facts["versions"].items() if v)
        where = f"{m['date'][:10]}; {m['cpu']}, {m['cores']} cores, {m['memory_gb']:.0f} GB, {m['system']}"
        tables = "\n".join(table.markdown() for table in self.tables)
        return f"## {name}: {self.title}\n\n{tables}\n{where}; Python {m['python']}, {versions}; {m['blas']}.\n"


def machine() -> dict[str, Any]:
    """Processor, cores, memory, BLAS, Python, date."""
    import numpy  # noqa: F401  (loads the BLAS that is reported)

    cpu = re.search(r"model name\s*:\s*(.+)", _read("/proc/cpuinfo"))
    blas = [
        f"{b['internal_api']} {b['version']} ({b.get('architecture', '?')}, {b['num_threads']} threads)"
        for b in threadpool_info()
        if b["user_api"] == "blas" and "numpy" in b["filepath"]
    ]
    # Where the shell forces kernels on OpenBLAS, products are not those that its users have.
    kernels = os.environ.get("OPENBLAS_CORETYPE")
    forced = [f"OPENBLAS_CORETYPE={kernels} set"] if kernels else []
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu[1].strip() if cpu else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": ", ".join([*blas, *forced]) or "BLAS unknown",
        "load_average": os.getloadavg()[0],
    }


def _read(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write(report: Report, name: str, *, trial: bool, results: Path = RESULTS, docs: Path = DOCS) -> Path:
    """Save as JSON; a full run also rewrites its part of the documentation, a trial does not."""
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{name}.{'trial.' if trial else ''}json"
    path.write_text(json.dumps(plain(report.to_dict(name)), indent=1, allow_nan=False) + "\n")
    if not trial:
        rewrite(docs.with_name(report.page) if report.page else docs, name, report.markdown(name))
        write_summaries(results, docs)
    return path


def write_summaries(results: Path = RESULTS, docs: Path = DOCS) -> None:
    """Write the tables that follow from all records, into the page and into the README."""
    rewrite(docs, "summary", summary(results).markdown())
    if docs == DOCS:
        rewrite(README, "benchmarks", worst_of_each_kind(results))


def rewrite(docs: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name begin -->` and `<!-- name end -->`; add both at the end if missing."""
    page = docs.read_text() if docs.exists() else "# Benchmarks\n"
    begin, end = f"<!-- {name} begin -->", f"<!-- {name} end -->"
    if begin not in page:
        page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
    before, _, rest = page.partition(begin)
    docs.write_text(f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}")


HEADER = ["benchmark", "certifit", "best peer at the same objective", "ratio", "target", "met"]


def summary(results: Path = RESULTS) -> Table:
    """One line for each case of every full run on record."""
    return Table("Warm medians, seconds", HEADER, [_line(*one) for one in _cases(results)])


def worst_of_each_kind(results: Path = RESULTS) -> str:
    """For the front door: how many cases met their targets, and of each kind of model the case furthest from its."""
    cases = [(name, case) for name, case in _cases(results) if case["ratio"] is not None]
    worst: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, case in cases:
        kind = name.partition("_")[0]
        if kind not in worst or _distance(case) > _distance(worst[kind][1]):
            worst[kind] = name, case
    met = sum(case["met"] for _, case in cases)
    caption = f"{met} of {len(cases)} cases meet their targets; of each kind of model the one furthest from its own"
    return Table(caption, HEADER, [_line(*one) for one in worst.values()]).markdown()


def _distance(case: dict[str, Any]) -> float:
    return case["ratio"] / case["target"]


def _cases(results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of a benchmark and one of its cases, for all full runs."""
    for path in sorted(results.glob("*.json")):
        if not path.name.endswith(".trial.json"):
            result = json.loads(path.read_text())
            yield from ((result["name"], case) for case in result.get("cases", []))


def _line(name: str, case: dict[str, Any]) -> list[str]:
    return [
        f"{name} {case['name']}",
        as_seconds(case["ours"]),
        f"{as_seconds(case['best_peer_median'])} ({case['best_peer']})",
        as_number(case["ratio"]),
        f"{case['target']:g}",
        _answer(case) + (" (noisy)" if case["noisy"] else ""),
    ]


def _answer(case: dict[str, Any]) -> str:
    """Whether the target is met; if not, whether there is no more to be had."""
    if case["met"]:
        return "yes"
    words, seconds = case.get("limit") or ("", 0.0)
    return f"no: {words} alone takes {as_seconds(seconds)}" if case["ours"] <= 1.1 * seconds else "no"


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def as_seconds(x: float | None) -> str:
    return "" if x is None or math.isnan(x) else f"{x:.3g} s"


def as_number(x: float | None) -> str:
    return "" if x is None or math.isnan(x) else f"{x:.2g}"


def as_percent(x: float) -> str:
    return f"{100 * x:.1f} %"


def plain(x: Any) -> Any:
    """JSON has no NaN and no infinity: None stands for both."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [plain(v) for v in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
