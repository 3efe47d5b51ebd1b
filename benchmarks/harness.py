"""Contestants side by side: one process, the same data objects, interleaved calls, one independent judge."""

from __future__ import annotations

import gc
import math
import os
import resource
import statistics
import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_in_child
from benchmarks.reporting import Report, Table, as_number, as_percent, as_seconds, say

NOISY = 0.05  # share of the machine's processor time used by others above which a case is flagged
SETTLE = 0.05  # seconds between calls, for the last contestant's idle threads to stop spinning
PACKAGES = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex", "faiss": "faiss-cpu"}  # by module


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    shrink: int = 1  # sizes are divided by this
    repeat: int = 5  # warm calls of each contestant
    peers: tuple[str, ...] = ()  # parts of names; empty: every peer
    memory: bool = False
    slow: bool = False
    budget: float = 300.0  # seconds after which a contestant gets no further call
    mnist: Path | None = None
    scratch: Path = Path("/tmp")
    keep: bool = False

    def rows(self, n: int) -> int:
        return max(1, n // self.shrink)

    def wants(self, c: Contestant) -> bool:
        return c.ours or not self.peers or any(part in f"{c.name} {c.package} {c.module}" for part in self.peers)


@dataclass(frozen=True)
class Contestant:
    """One way to solve the problem. `fit(tol)` returns a model with scikit-learn's attribute names."""

    name: str
    module: str  # imported before the clock starts
    fit: Callable[[float], Any]
    tols: tuple[float, ...] = (math.nan,)  # loosest first; the loosest that reaches the quality is timed
    slow: bool = False  # runs only with --slow
    cannot: str = ""  # why it is shown without being run

    @property
    def package(self) -> str:
        top = self.module.partition(".")[0]
        return PACKAGES.get(top, top)

    @property
    def ours(self) -> bool:
        return self.package == "certifit"


@dataclass(frozen=True)
class Case:
    """One problem: who competes, who judges, what counts as equal and which ratio is wanted."""

    name: str
    what: str  # the data and the objective, in words
    contestants: Sequence[Contestant]
    objective: Callable[[Any], float]  # of a fitted model; smaller is better; float64, written in the benchmark
    quality: float  # relative suboptimality up to which objectives count as equal
    target: float  # wanted: our median / the best peer's
    optimum: Callable[[], tuple[float, float]] | None = None  # (best known, proved relative gap); None: best seen
    patience: float = 30.0  # seconds of one call after which there is neither a tighter tolerance nor a warm call
    limit: Limit | None = None  # where the target may be out of reach


@dataclass
class Limit:
    """What every method has to do at least, done by itself: it is timed in every round, as contestants are."""

    words: str
    call: Callable[[], Any]
    warm: list[float] = field(default_factory=list)


@dataclass(eq=False)
class Entry:
    """A contestant's results."""

    contestant: Contestant
    problem: str = ""  # why there are no timings
    tol: float = math.nan
    first: float = math.nan  # seconds of its first call in this case
    trial: float = math.nan  # seconds of the call that chose its tolerance
    gave_up: bool = False  # that call took too long to try a tighter one: it would need longer still
    warm: list[float] = field(default_factory=list)
    objective: float = math.nan  # the worst of its calls at this tolerance
    others: float = 0.0  # processor seconds used by other processes during the warm calls
    warnings: set[str] = field(default_factory=set)
    peak_mb: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.warm) if self.warm else self.trial


def contest(cases: Callable[[Options], Iterable[Case]], title: str, options: Options) -> Report:
    """Run every case; the report has one table for each."""
    peaks: dict[tuple[str, str], float | None] = {}
    if options.memory:  # before anything is fitted in this process: see peak_in_child
        for case in cases(options):
            for entry in _enter(case, options):
                peaks[case.name, entry.contestant.name] = _peak(entry)
    results = []
    for case in cases(options):
        best = case.optimum() if case.optimum else (math.inf, math.nan)
        entries = run_case(case, best[0], options)
        for entry in entries:
            entry.peak_mb = peaks.get((case.name, entry.contestant.name))
        results.append(summarise(case, best, entries))
    packages = {c["package"] for result in results for c in result["contestants"]}
    return Report(title, [case_table(result) for result in results], {"cases": results}, packages)


def run_case(case: Case, best: float, options: Options) -> list[Entry]:
    """First calls (with the search for each tolerance), then `repeat` interleaved rounds of warm calls."""
    entries = _enter(case, options)
    for entry in entries:
        if not entry.problem:
            _attempt(entry, partial(_choose_tol, entry, case, best))
            say(f"{case.name}: {entry.contestant.name}: {entry.problem or as_seconds(entry.trial)}")
    for turn in range(options.repeat):
        say(f"{case.name}: round {turn + 1} of {options.repeat}")
        alive = [e for e in entries if not e.problem and e.trial < case.patience and sum(e.warm) < options.budget]
        shift = turn % max(1, len(alive))
        for entry in alive[shift:] + alive[:shift]:  # nobody goes first every time
            _attempt(entry, partial(_warm_call, entry, case))
        if case.limit is not None:
            case.limit.warm.append(timed(case.limit.call)[1])
    return entries


def _enter(case: Case, options: Options) -> list[Entry]:
    entries = [Entry(c) for c in case.contestants if options.wants(c)]
    for entry in entries:
        c = entry.contestant
        if c.cannot:
            entry.problem = c.cannot
        elif c.slow and not options.slow:
            entry.problem = "takes minutes, the search for its tolerance included: run with --slow"
        else:
            _attempt(entry, partial(import_module, c.module))
    return entries


def _attempt(entry: Entry, call: Callable[[], Any]) -> Any:
    """`call()`; a failure becomes the entry's problem, warnings are kept with its results."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return call()
        except ImportError as error:
            entry.problem = f"not installed ({error})"
        except Exception as error:
            entry.problem = f"failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        finally:
            entry.warnings |= {f"{w.category.__name__}: {' '.join(str(w.message).split())[:200]}" for w in caught}
    return None


def _choose_tol(entry: Entry, case: Case, best: float) -> None:
    """The loosest tolerance whose answer is good enough; if none is, the tightest that there was patience for.

    Steps from the loosest on grow until one is good enough; bisection follows. Few calls are tighter than need be.
    """
    seen: dict[float, tuple[float, float]] = {}  # tol -> objective, seconds

    def reaches(tol: float) -> bool:
        model, seconds, _ = timed(lambda: entry.contestant.fit(tol))
        seen[tol] = case.objective(model), seconds
        if math.isnan(entry.first):
            entry.first = seconds
        return suboptimality(seen[tol][0], best) <= case.quality

    tols = entry.contestant.tols
    low, high, step = 0, 0, 1
    while not (reached := reaches(tols[high])) and high < len(tols) - 1 and seen[tols[high]][1] < case.patience:
        low, high, step = high + 1, min(high + step, len(tols) - 1), 2 * step
    entry.gave_up = not reached and seen[tols[high]][1] >= case.patience
    entry.tol = tols[bisect_left(tols, True, low, high, key=reaches)] if reached else tols[high]
    entry.objective, entry.trial = seen[entry.tol]


def _warm_call(entry: Entry, case: Case) -> None:
    model, seconds, others = timed(lambda: entry.contestant.fit(entry.tol))
    entry.warm.append(seconds)
    entry.others += others
    entry.objective = max(entry.objective, case.objective(model))


def _peak(entry: Entry) -> float | None:
    if entry.problem:
        return None
    c = entry.contestant
    say(f"memory of {c.name}")
    return _attempt(entry, lambda: peak_in_child(lambda: c.fit(c.tols[0])))


def suboptimality(objective: float, best: float) -> float:
    return 0.0 if math.isinf(best) else (objective - best) / abs(best)


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """`call()`, its wall-clock seconds, and the processor seconds other processes used meanwhile."""
    gc.collect()
    time.sleep(SETTLE)
    others = cpu_of_others()
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    return result, seconds, cpu_of_others() - others


def cpu_of_others() -> float:
    """Processor seconds used since boot by everything but this process, time stolen by a hypervisor included."""
    ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(t) for t in ticks)
    own = resource.getrusage(resource.RUSAGE_SELF)
    busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return busy - own.ru_utime - own.ru_stime


def summarise(case: Case, optimum: tuple[float, float], entries: list[Entry]) -> dict[str, Any]:
    """Who reached the same objective, our ratio to the best of them, and everything measured."""
    done = [e for e in entries if not e.problem]
    best = min([optimum[0], *(e.objective for e in done)])
    equal = [e for e in done if suboptimality(e.objective, best) <= case.quality]
    peers = [e for e in done if not e.contestant.ours and (e in equal or e.gave_up)]
    best_peer = min(peers, key=lambda e: e.median, default=None)
    ours = next((e for e in done if e.contestant.ours), None)
    to_beat = best_peer.median if best_peer else math.nan
    ratio = ours.median / to_beat if ours in equal else math.nan
    capacity = sum(sum(e.warm) for e in done) * (os.cpu_count() or 1)
    others = max(0.0, sum(e.others for e in done) / capacity) if capacity else math.nan
    return {
        "name": case.name,
        "what": case.what,
        "quality": case.quality,
        "best_objective": best,
        "best_proved_within": optimum[1],
        "target": case.target,
        "ratio": ratio,
        "met": ratio <= case.target,
        "ours": ours.median if ours else math.nan,
        "best_peer": best_peer.contestant.name + ", given up" * best_peer.gave_up if best_peer else None,
        "best_peer_median": to_beat,
        "cpu_of_others": others,
        "noisy": others > NOISY,
        "limit": None if case.limit is None else [case.limit.words, statistics.median(case.limit.warm)],
        "contestants": [
            {
                "name": e.contestant.name,
                "package": e.contestant.package,
                "problem": e.problem,
                "tol": e.tol,
                "first": e.first,
                "warm": e.warm,
                "median": e.median,
                "objective": e.objective,
                "suboptimality": suboptimality(e.objective, best),
                "equal": e in equal,
                "gave_up": e.gave_up,
                "ratio": e.median / to_beat,
                "peak_mb": e.peak_mb,
                "warnings": sorted(e.warnings),
            }
            for e in entries
        ],
    }


def case_table(result: dict[str, Any]) -> Table:
    """The case for people: those that reached the same objective first, fastest first; then the others."""
    header = ["contestant", "first call", "median", "min – max", "suboptimality", "time / best peer", "tol"]
    with_memory = any(c["peak_mb"] is not None for c in result["contestants"])
    if with_memory:
        header.append("peak memory")
    rows = []
    for c in sorted(result["contestants"], key=lambda c: (bool(c["problem"]), not c["equal"], c["median"])):
        if c["problem"]:
            rows.append([c["name"], c["problem"], *[""] * (len(header) - 2)])
            continue
        span = f"{as_seconds(min(c['warm']))} – {as_seconds(max(c['warm']))}" if c["warm"] else "one call"
        row = [
            c["name"],
            as_seconds(c["first"]),
            as_seconds(c["median"]),
            span,
            as_number(c["suboptimality"]) + ("" if c["equal"] else " (given up)" if c["gave_up"] else " (worse)"),
            as_number(c["ratio"]),
            as_number(c["tol"]),
        ]
        rows.append(row + ([f"{c['peak_mb']:.0f} MB" if c["peak_mb"] is not None else ""] if with_memory else []))
    return Table(f"{result['name']}: {result['what']}", header, rows, verdict(result))


def verdict(result: dict[str, Any]) -> str:
    """One sentence: ratio and target, what counts as equal, and how quiet the machine was."""
    proved = result["best_proved_within"]
    reached = f"equal means within {result['quality']:.0e} of the best objective, {result['best_objective']:.10g}"
    if not math.isnan(proved):
        reached += f" (proved within {proved:.0e} of the optimum)" if proved else " (the optimum)"
    if math.isnan(result["ratio"]):
        ratio = "**No ratio**: certifit or every peer is missing or worse"
    else:
        word = "met" if result["met"] else "missed"
        ratio = (
            f"**Ratio {as_number(result['ratio'])}** to the best peer, {result['best_peer']}; "
            f"target {result['target']:g}: {word}"
        )
    if result.get("limit"):
        words, seconds = result["limit"]
        ratio += f"; {words} alone takes {as_seconds(seconds)}"
    load = f"others used {as_percent(result['cpu_of_others'])} of the processors"
    return f"{ratio}; {reached}; {load}{' — **noisy, do not trust**' if result['noisy'] else ''}."
