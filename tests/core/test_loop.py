"""The one loop: it returns what it measured, says why it stopped, and never returns a NaN."""

import math
from types import SimpleNamespace

import pytest

from certifit.core import Step, fixed_point


def halve(x, _):
    """Objective x², of which half a step leaves a quarter: the promised gain is exact."""
    return Step(x / 2, x * x, x * x * 0.75)


def run(update=halve, x=8.0, **options):
    return fixed_point(lambda x: x, update, x, **{"tol": 1e-3, "max_iter": 100, **options})


def test_returns_the_parameters_it_measured():
    found = run(tol=1.0)
    assert found.status == "converged"
    assert (found.objective, found.gain) == (found.params**2, 0.75 * found.params**2)
    assert found.params == 1.0  # the first of 8, 4, 2, 1 with 0.75 x² <= 1; one update later it would be 0.5
    assert found.n_iter == 3


def test_history_has_one_line_for_each_pass():
    found = run(tol=1.0)
    assert [m.objective for m in found.history] == [64.0, 16.0, 4.0, 1.0]
    assert [m.gain for m in found.history] == [48.0, 12.0, 3.0, 0.75]
    seconds = [m.seconds for m in found.history]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0


def test_measures_once_for_each_line_of_history():
    calls = []
    found = fixed_point(lambda x: calls.append(x), halve, 8.0, tol=1.0, max_iter=100)
    assert calls == [8.0, 4.0, 2.0, 1.0]
    assert len(found.history) == len(calls)


@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_max_iter_counts_updates(max_iter):
    found = run(tol=0.0, max_iter=max_iter)
    assert found.status == "max_iter"
    assert found.n_iter == max_iter
    assert len(found.history) == max_iter + 1
    assert found.params == 8.0 / 2**max_iter


def test_out_of_iterations_returns_the_best_seen():
    objectives = iter([5.0, 2.0, 9.0, 7.0])
    found = fixed_point(lambda _: None, lambda x, _: Step(x + 1, next(objectives), 1.0), 0, tol=0.0, max_iter=3)
    assert (found.params, found.objective, found.n_iter) == (1, 2.0, 1)


def test_convergence_wins_over_a_smaller_objective_seen_before():
    steps = iter([Step(1, 1.0, 5.0), Step(2, 1.5, 0.0)])  # rounding may raise the objective at the very end
    found = fixed_point(lambda _: None, lambda *_: next(steps), 0, tol=0.0, max_iter=9)
    assert (found.params, found.objective, found.gain, found.status) == (1, 1.5, 0.0, "converged")


def test_no_promise_yet_goes_on():
    steps = iter([Step(1, 3.0, math.inf), Step(2, 2.0, math.inf), Step(3, 1.0, 0.0)])
    assert fixed_point(lambda _: None, lambda *_: next(steps), 0, tol=1e-3, max_iter=9).params == 2


def test_max_time_returns_the_best_so_far(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("certifit.core.loop.time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    found = run(tol=0.0, max_time=3.0)
    assert found.status == "max_time"
    assert [m.seconds for m in found.history] == [1.0, 2.0, 3.0]
    assert found.params == 2.0


def test_max_time_zero_measures_once():
    found = run(max_time=0.0)
    assert (found.status, found.n_iter, found.params) == ("max_time", 0, 8.0)


@pytest.mark.parametrize("bad", [Step(1.0, math.nan, 1.0), Step(1.0, 1.0, math.nan)])
def test_nan_is_an_error_that_says_what_to_do(bad):
    with pytest.raises(FloatingPointError, match=r"not a number after 0 iterations.*rescale the columns"):
        run(update=lambda *_: bad)


class Recorder:
    def __init__(self, stop_at=math.inf):
        self.seen, self.begun, self.stop_at = [], 0, stop_at

    def begin(self):
        self.begun += 1

    def end(self, params, step, tol):
        self.seen.append((params, step.objective, step.gain, tol))
        return len(self.seen) >= self.stop_at


def test_watcher_is_told_of_every_pass():
    watcher = Recorder()
    found = run(tol=1.0, watcher=watcher)
    assert watcher.begun == len(found.history)
    assert watcher.seen == [(8.0 / 2**i, m.objective, m.gain, 1.0) for i, m in enumerate(found.history)]


def test_watcher_may_stop_the_loop():
    found = run(watcher=Recorder(stop_at=2))
    assert (found.status, found.n_iter, found.params) == ("stopped", 1, 4.0)


def test_watcher_cannot_undo_convergence():
    assert run(tol=100.0, watcher=Recorder(stop_at=1)).status == "converged"
