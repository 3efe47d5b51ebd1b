"""The models that were compared, as a table for a terminal, a notebook or a page."""

from __future__ import annotations

import math
from typing import Any

from certifit.core.summary import Summary
from certifit.table.portfolio.ledger import NO_TIME, Attempt, SearchLedger

MOST_LINES = 15  # shown; the ledger has them all


def header(ledger: SearchLedger) -> tuple[str, ...]:
    """The heads of the columns."""
    return "model", ledger.metric, f"{100 * ledger.confidence:g} % interval", "certificate", "time"


def leaderboard_lines(ledger: SearchLedger) -> list[tuple[str, ...]]:
    """A line for each candidate that was scored on all folds: the winner, the others by score, the baseline."""
    scored = [a for a in ledger.ranked() if a.fate == "scored" and a is not ledger.baseline][:MOST_LINES]
    return [attempt_line(a, chosen=a is ledger.winner) for a in (*scored, ledger.baseline)]


def attempt_line(attempt: Attempt, chosen: bool = False) -> tuple[str, ...]:
    """One candidate: its name, score, interval, kind of proof and time."""
    label = ("* " if chosen else "  ") + attempt.label
    proof = attempt.certificate if attempt.proved or not attempt.certificate else f"not {attempt.certificate}"
    ends = interval_words(attempt.low, attempt.high) if attempt.name != "baseline" else _baseline_ends(attempt)
    return label, score_number(attempt.score), ends, proof or "-", f"{attempt.seconds:.1f} s"


def interval_words(low: float, high: float) -> str:
    """The ends of an interval; rows that all score alike tell nothing of the error."""
    if low == high:
        return "none: rows alike"
    return f"{score_number(low)} to {score_number(high)}"


def _baseline_ends(attempt: Attempt) -> str:
    """The baseline's interval; of R² and D², which compare with it, it has none."""
    alike = attempt.high - attempt.low <= 1e-9 * abs(attempt.score)
    return "-" if alike else interval_words(attempt.low, attempt.high)


def choice_words(ledger: SearchLedger) -> str:
    """The choice and what it is worth, in a sentence."""
    among = f", corrected for a choice among {ledger.choices}" if ledger.choices > 1 else ""
    low, high = ledger.corrected_low, ledger.corrected_high
    reach = f"between {score_number(low)} and {score_number(high)} with confidence {100 * ledger.confidence:g} %"
    if _alike(ledger):
        reach = "without an interval, as all rows score alike"
    return (
        f"chosen by {ledger.rule}: {ledger.winner.label}; {ledger.metric} on new rows "
        f"{score_number(ledger.corrected)}{among}, {reach} (baseline {score_number(ledger.baseline.score)})"
    )


def corrected_words(ledger: SearchLedger) -> str:
    """What the chosen model's score is worth once it is known that it was chosen; empty where it had no rival."""
    low, high = ledger.corrected_low, ledger.corrected_high
    if ledger.choices < 2 or _alike(ledger):
        return ""
    return (
        f"Corrected for the choice among {ledger.choices} models, {ledger.metric} is "
        f"{score_number(ledger.corrected)}, between {score_number(low)} and {score_number(high)} with confidence "
        f"{100 * ledger.confidence:g} %."
    )


def _alike(ledger: SearchLedger) -> bool:
    """Whether all rows score alike, corrected or as the chosen model was scored: nothing is known of the error."""
    return ledger.corrected_low == ledger.corrected_high or ledger.winner.low == ledger.winner.high


def unscored_words(ledger: SearchLedger) -> list[str]:
    """What was not scored on all folds, and why: each kind of model by itself, further settings together."""
    rest = [a for a in ledger.attempts if a.fate != "scored" and not a.why.startswith("not for ")]
    found = [f"{a.words} {a.fate}: {a.why}" for a in rest if not a.settings and a.why != NO_TIME]
    late = [a.words for a in rest if not a.settings and a.why == NO_TIME]
    if late:
        found.append(f"not tried for want of time: {', '.join(late)} (--budget gives more)")
    variants = [a for a in rest if a.settings]
    dropped = sum(a.fate == "dropped" for a in variants)
    if dropped:
        found.append(f"{_settings_words(dropped)} dropped on the first folds")
    if len(variants) > dropped:
        found.append(f"{_settings_words(len(variants) - dropped)} not tried for want of time")
    return found


def leaderboard_summary(ledger: SearchLedger) -> Summary:
    """The leaderboard as a page of text or HTML."""
    facts = (("chosen", ledger.winner.label), ("folds", f"{ledger.folds}, of {ledger.rows_compared:,} rows"))
    alerts = (f"! {words}" for _, words in ledger.alerts)
    notes = (*alerts, choice_words(ledger), *unscored_words(ledger))
    return Summary(facts, (header(ledger), *leaderboard_lines(ledger)), notes)


def ledger_document(ledger: SearchLedger) -> dict[str, Any]:
    """The ledger as plain data, for JSON; numbers that are none are left out."""
    return {
        "metric": ledger.metric,
        "larger_is_better": ledger.larger_is_better,
        "folds": ledger.folds,
        "rows_compared": ledger.rows_compared,
        "budget_seconds": ledger.budget,
        "rule": ledger.rule,
        "chosen": _attempt_document(ledger.winner),
        "corrected_score": ledger.corrected,
        "corrected_interval": None if _alike(ledger) else [ledger.corrected_low, ledger.corrected_high],
        "confidence": ledger.confidence,
        "choice_certificate": ledger.choice.to_dict(),
        "attempts": [_attempt_document(a) for a in ledger.attempts],
        "digest": ledger.digest,
    }


def _attempt_document(attempt: Attempt) -> dict[str, Any]:
    found: dict[str, Any] = {
        "model": attempt.name,
        "settings": dict(attempt.settings),
        "fate": attempt.fate,
        "why": attempt.why,
    }
    found |= {name: getattr(attempt, name) for name in ("folds", "seconds", "certificate", "proved")}
    numbers = {"score": attempt.score, "low": attempt.low, "high": attempt.high}
    return found | {name: value for name, value in numbers.items() if math.isfinite(value)}


def _settings_words(count: int) -> str:
    return f"{count} further setting{'s' if count > 1 else ''}"


def score_number(value: float) -> str:
    """A score with four digits after the point, or four in all where it is large."""
    # A rounded -0 is 0.
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 100 else f"{value:,.4g}"
