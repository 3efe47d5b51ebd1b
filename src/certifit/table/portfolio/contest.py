"""Candidates scored on the same folds until the clock stops them: defaults of every kind first, then more settings.

A kind of model is begun only where a small fit says that the time left is enough, and goes on from fold to fold while
it is; the time of the fit to all rows is set aside. Further settings of the best kinds are halved: all of them on the
first fold, half of these on the second, half again on the rest (successive halving whose resource is folds, so that
no score is computed twice).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from certifit.checkers.model_selection.splits import Split
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.intervals import normal_claim
from certifit.model_selection.assessment.metrics import ROW_METRICS
from certifit.model_selection.assessment.resampled_errors import score_rows
from certifit.rows import Array
from certifit.table.portfolio.candidates import KINDS, Settings, TableFacts, build, suits, variants_of
from certifit.table.portfolio.clock import Clock
from certifit.table.portfolio.ledger import NO_TIME, Attempt
from certifit.table.portfolio.metrics import TableMetric


@dataclass(frozen=True)
class ContestTuning:
    """How time is shared out."""

    pilot_rows: tuple[int, ...] = (500, 2_000, 8_000)  # of fits that say how long a fold will take
    hopeless: float = 4.0  # times the time left that a fold may seem to take before a larger fit is tried
    kinds_tuned: int = 2  # whose further settings are tried
    dearer: float = 2.0  # times as long as the first of a kind its further settings may take, on average
    doubt: float = 2.0  # times as long as it will a fit to all rows may be foretold from small fits alone
    slack: float = 1.2  # seconds that a fold may take, in those of the folds before
    streamed_slack: float = 4.0  # the same of the fit to all rows where every pass reads them from files


@dataclass
class Trial:
    """A candidate on its way: the scores and answers of the folds so far."""

    name: str
    settings: Settings
    scores: Array  # (n,) of rows; NaN where they are not tested yet
    answers: dict[str, Array] = field(default_factory=dict)  # by method, for all rows
    fate: str = "running"
    why: str = ""
    folds: int = 0
    seconds: float = 0.0
    fit_seconds: float = 0.0  # of these
    pilot: tuple[int, float] = (0, 0.0)  # rows and seconds of the largest fit that was tried before
    certificate: str = ""
    proved: bool = True

    @property
    def words(self) -> str:
        return KINDS[self.name].words if self.name in KINDS else "baseline"

    @property
    def tested(self) -> Array:
        """(m,) numbers of the rows that are scored."""
        return np.flatnonzero(~np.isnan(self.scores))

    def end(self, fate: str, why: str = "") -> None:
        """Say what became of it."""
        self.fate, self.why = fate, why


@dataclass
class Contest:
    """Trials of one table on the same folds."""

    problem: AssessedProblem
    splits: Sequence[Split]
    metric: TableMetric
    facts: TableFacts
    clock: Clock
    tell: Callable[[Contest, Trial], Any]  # called before each fold and at the end of a trial
    confidence: float = 0.9
    tuning: ContestTuning = ContestTuning()
    trials: list[Trial] = field(default_factory=list)
    whole_rows: int = 0  # of the table that the chosen model is fitted to
    reserved: float = 0.0  # seconds for that fit, of the slowest candidate that may be chosen

    @property
    def scored(self) -> list[Trial]:
        """Trials of models on all folds: those that were solved, the simplest kind first, then the others likewise.

        Of models that are as good as the best the first is chosen: one whose certificate failed in some fold wins
        only where no model that was solved is as good.
        """
        order = [*KINDS]
        found = [trial for trial in self.trials if trial.fate == "scored" and trial.name in KINDS]
        return sorted(found, key=lambda trial: (not trial.proved, order.index(trial.name)))

    def row_scores(self, trial: Trial) -> Array:
        """Scores of the rows that are tested (m,), whose plain mean is the weighted one."""
        return self.problem.weighed(trial.scores[trial.tested], trial.tested)

    def baseline_scores(self, trial: Trial) -> Array:
        """What the baseline scores on the rows that a trial is tested on (m,)."""
        return self.problem.weighed(self.trials[0].scores[trial.tested], trial.tested)

    def left(self) -> float:
        """Seconds that are left for comparing, below 0 where there are none."""
        return self.clock.left() - self.reserved

    def run_baseline(self) -> None:
        """Score what knows the target's frequencies, or its mean, alone."""
        dummy = DummyRegressor() if self.problem.classes is None else DummyClassifier(strategy="prior")
        trial, nothing = self._begin("baseline", {}), np.zeros((len(self.problem.y), 1))
        for number in range(len(self.splits)):
            self._score_fold(trial, number, replace(self.problem, estimator=dummy, X=nothing))
        trial.end("scored")

    def run_kind(self, name: str, settings: Settings | None = None) -> None:
        """Score a candidate on all folds, as far as there is time; the first one in any case."""
        trial = self._begin(name, settings or {})
        why, late = suits(name, self.facts) or self._missing_answers(trial), ""
        if not why and self.scored:
            late = NO_TIME if self.left() <= 0 else self._too_long(trial)
        if why or late:
            trial.end("skipped", why or late)
        else:
            self._go_on(trial, range(len(self.splits)), must=not self.scored)
        self.tell(self, trial)
        quick = KINDS[name].quick
        if quick is not None and not trial.settings and (late or trial.fate == "stopped") and self.left() > 0:
            self.run_kind(name, quick)

    def halve_settings(self) -> None:
        """Try further settings of the best kinds: on each of the first folds the better half goes on."""
        able = [t for t in self.scored if variants_of(t.name, self.facts) and t.settings != KINDS[t.name].quick]
        best = sorted(able, key=lambda trial: -np.nanmean(trial.scores))[: self.tuning.kinds_tuned]
        lists = [[(t.name, s) for s in variants_of(t.name, self.facts)] for t in best]
        turns = range(max(map(len, lists), default=0))
        mixed = [pair for turn in turns for listed in lists for pair in listed[turn : turn + 1]]
        cost = {t.name: t.seconds / t.folds for t in best}
        # A half of them has a second fold, a quarter all the others: as many are begun as can end.
        share = self.tuning.dearer * (1.5 + (len(self.splits) - 2) / 4)
        many = int(np.searchsorted(np.cumsum([share * cost[name] for name, _ in mixed]), self.left(), "right"))
        live: list[Trial] = []
        for number in range(len(self.splits)):
            if number == 0:
                live = [
                    t
                    for t in (self._first_fold(*pair, cost[pair[0]]) for pair in mixed[:many])
                    if t.fate == "running"
                ]
                for pair in mixed[many:]:
                    self._begin(*pair).end("skipped", NO_TIME)
            else:
                for trial in live:
                    self._go_on(trial, [number])
                live = [trial for trial in live if trial.fate == "running"]
            if number < 2:
                live.sort(key=lambda trial: -np.nanmean(trial.scores))
                for trial in live[-(-len(live) // 2) :]:
                    trial.end("dropped", f"behind after {trial.folds} of {len(self.splits)} folds")
                    self.tell(self, trial)
                live = live[: -(-len(live) // 2)]
        for trial in live:
            self.tell(self, trial)

    def _first_fold(self, name: str, settings: Settings, seconds: float) -> Trial:
        trial = self._begin(name, settings)
        if seconds * len(self.splits) > self.left():
            trial.end("skipped", NO_TIME)
        else:
            self._go_on(trial, [0])
        return trial

    def _begin(self, name: str, settings: Settings) -> Trial:
        trial = Trial(name, dict(settings), np.full(len(self.problem.y), np.nan))
        self.trials.append(trial)
        return trial

    def _missing_answers(self, trial: Trial) -> str:
        needs = ROW_METRICS[self.metric.of_rows].needs
        return "" if hasattr(build(trial.name, trial.settings, self.facts), needs) else "it gives no probabilities"

    def _too_long(self, trial: Trial) -> str:
        """Why a candidate is not begun, by what compiling and a small fit take; empty where there is time."""
        needed = KINDS[trial.name].compiling_seconds(self.facts.n_entries)
        train, whole = self.splits[0][0], self.reserved
        if needed <= self.left() < np.inf and len(train) > self.tuning.pilot_rows[1]:
            try:
                fold = self._fold_seconds(trial, train)
            except (ValueError, ArithmeticError, MemoryError) as error:
                return f"it cannot be fitted ({_first_line(error)})"
            # Small fits take longer for each row than large ones: the first fold will say more.
            needed = len(self.splits) * fold
            whole = max(whole, self._whole_seconds(trial, fold) / self.tuning.doubt)
        left = max(self.clock.left(), 0.0)
        if needed + whole <= left:
            return ""
        further = f", and {whole:.0f} s for a fit to all rows" if whole >= 0.5 else ""
        return f"about {needed:.0f} s needed{further}; {left:.0f} s are left"

    def _whole_seconds(self, trial: Trial, fold: float) -> float:
        """How long the fit to all rows takes where one to a fold's takes so long: on a straight line, with slack."""
        slack = self.tuning.streamed_slack if self.facts.streamed_rows else self.tuning.slack
        (rows, seconds), n = trial.pilot, len(self.splits[0][0])
        slope = max((fold - seconds) / (n - rows), 0.5 * fold / n)
        return slack * (fold + slope * (max(self.whole_rows, len(self.problem.y)) - n))

    def _fold_seconds(self, trial: Trial, train: Array) -> float:
        """How long a fit to so many rows takes: on a straight line through fits to few and to more of them.

        A fit that takes longer than the one before lets expect may have waited for a compiler, and is done again.
        """
        problem, order = self._problem_of(trial), np.random.default_rng(self.facts.seed).permutation(train)
        before, taken, slope = 0, 0.0, 0.0
        for rows in self.tuning.pilot_rows:
            hopeless = slope * (len(train) - before) > self.tuning.hopeless * self.left()
            if rows >= len(train) or hopeless:
                break
            seconds = _timed_fit(problem, order[:rows])
            if before == 0 or seconds > self.tuning.slack * taken * rows / before:
                seconds = min(seconds, _timed_fit(problem, order[:rows]))
            slope = max(seconds - taken, 0.0) / (rows - before) if before else 0.0
            before, taken = rows, seconds
        trial.pilot = (before, taken)
        return taken + slope * (len(train) - before)

    def _go_on(self, trial: Trial, folds: Sequence[int], must: bool = False) -> None:
        """Score the next folds; after the last one of all the trial is scored, if its fit to all rows has time."""
        for number in folds:
            why = "" if must else self._no_time(trial)
            if why:
                trial.end("stopped", why)
                return
            self.tell(self, trial)
            try:
                with _quiet():
                    self._score_fold(trial, number, self._problem_of(trial))
            except (ValueError, ArithmeticError, MemoryError) as error:
                if must:
                    raise
                trial.end("failed", f"fold {number + 1}: {_first_line(error)}")
                return
        if trial.folds == len(self.splits):
            why = "" if must else self._no_time(trial)
            trial.end("stopped" if why else "scored", why)
            if not why:
                self.reserved = max(self.reserved, self._whole_seconds(trial, trial.fit_seconds / trial.folds))

    def _no_time(self, trial: Trial) -> str:
        """Why a trial cannot go on, by what its folds took so far; empty where it can."""
        done, of = trial.folds, len(self.splits)
        if not done:
            waits = KINDS[trial.name].compiling_seconds(self.facts.n_entries) > self.left()
            return f"no time left after 0 of {of} folds" if waits else ""
        expected = self.tuning.slack * trial.seconds / done if done < of else 0.0
        whole = self._whole_seconds(trial, trial.fit_seconds / done)
        left = self.clock.left()
        if expected + self.reserved > left:
            return f"no time left after {done} of {of} folds"
        fold = f"another fold about {expected:.0f} s and " if expected >= 0.5 else ""
        late = f"{fold}its fit to all rows would take about {whole:.0f} s, {max(left, 0):.0f} s are left"
        return late if expected + whole > left else ""

    def _problem_of(self, trial: Trial) -> AssessedProblem:
        return replace(self.problem, estimator=build(trial.name, trial.settings, self.facts))

    def _score_fold(self, trial: Trial, number: int, problem: AssessedProblem) -> None:
        train, test = self.splits[number]
        began = time.monotonic()
        fitted = problem.fit(train)
        trial.fit_seconds += time.monotonic() - began
        found = UnseenAnswers(test, len(train), problem.answers_of(fitted, test))
        rows = score_rows(ROW_METRICS[self.metric.of_rows], problem, found)
        if not np.isfinite(rows).all():
            raise ArithmeticError("scores that are no numbers")
        trial.seconds += time.monotonic() - began
        trial.folds += 1
        trial.scores[test] = rows
        for method, values in found.answers.items():
            whole = trial.answers.setdefault(method, np.zeros((len(problem.y), *values.shape[1:]), values.dtype))
            if whole.dtype.kind == "U" and values.dtype.itemsize > whole.dtype.itemsize:
                whole = trial.answers[method] = whole.astype(values.dtype)
            whole[test] = values
        certificate = getattr(fitted, "certificate_", None)
        if certificate is not None:
            trial.certificate = certificate.kind
            trial.proved = trial.proved and certificate.holds

    def attempt(self, trial: Trial) -> Attempt:
        """What the ledger keeps of a trial; the interval allows for what rows of several folds have in common."""
        score = low = high = np.nan
        if trial.folds:
            k, rows = len(self.splits), self.metric.steadied(self.row_scores(trial), self.baseline_scores(trial))
            metric = ROW_METRICS[self.metric.of_rows]
            span = metric.span(0 if self.problem.classes is None else len(self.problem.classes))
            claim = normal_claim(
                self.metric.name, rows, self.confidence, "", float(np.sqrt(1 + k / (k - 1))), span=span
            )
            score = self.metric.shown(claim.estimate)
            low, high = self.metric.ends(claim.low, claim.high)
        proved = trial.proved and bool(trial.certificate)
        return Attempt(
            trial.name, trial.words, trial.settings, trial.fate, trial.why, trial.folds, round(trial.seconds, 3),
            trial.certificate, proved, score, low, high,
        )  # fmt: skip


def _timed_fit(problem: AssessedProblem, rows: Array) -> float:
    """Seconds of a fit to some rows."""
    began = time.monotonic()
    with _quiet():
        problem.fit(np.sort(rows))
    return time.monotonic() - began


def _quiet() -> warnings.catch_warnings[Any]:
    """Without warnings: of a fold they would be many, and the ledger has what matters."""
    return warnings.catch_warnings(action="ignore")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
