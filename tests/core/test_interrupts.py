"""Ctrl-C is noted where something must not be left half done, and raised afterwards."""

import signal
import subprocess
import sys
import threading

import pytest

from certifit.core.interrupts import HeldInterrupt


@pytest.fixture
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(times, done, error=None):
    """Ctrl-C so many times inside a context, then something that must not be left out, or an error."""
    with HeldInterrupt():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error
        done.append(times)


@pytest.mark.usefixtures("usual_handler")
def test_a_first_interrupt_waits_and_a_second_does_not():
    done = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(1, done)
    assert done == [1]
    with pytest.raises(KeyboardInterrupt):
        interrupted(2, done)
    assert done == [1]
    with pytest.raises(ZeroDivisionError):
        interrupted(1, done, ZeroDivisionError())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("usual_handler")
def test_other_answers_and_other_threads_are_left_alone():
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with HeldInterrupt() as held:
        signal.raise_signal(signal.SIGINT)
    assert seen == [signal.SIGINT]
    assert not held.noted

    def work():
        with HeldInterrupt():
            seen.append("entered")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[-1] == "entered"


IMPORTED = """
import signal, sys
import numpy as np
from certifit.neural_network.training.optimiser_loops import MomentumRates, momentum_step

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.typing":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
try:
    momentum_step.dispatcher
except KeyboardInterrupt:
    momentum_step.dispatcher
    print("usable")
"""


def test_numba_is_imported_whole_although_the_import_is_interrupted():
    found = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "usable", found.stderr
