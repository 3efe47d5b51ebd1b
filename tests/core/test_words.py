"""What people read: certificates within 80 columns, warnings that name the cure, progress, one line on compiling."""

import io
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from certifit import (
    PCA,
    Certificate,
    CertificateWarning,
    GaussianMixture,
    GeneralizedLinearRegressor,
    KMeans,
    LogisticRegression,
    ProgressBar,
    RobustPCA,
    TableClassifier,
)
from certifit.core import Check, Mark
from certifit.core.compiling import CompileNotice
from certifit.core.cure import cure
from certifit.datasets import penguins_table
from tests.common.catalogue import CATALOGUE, counts, far_groups, table, three, two

WORDS = "a claim that goes on and on about rows, columns and everything that was proved about them, and more"


def test_a_certificate_is_printed_within_80_columns_and_broken_between_words():
    long = Check("a check whose name is far longer than a label should ever be (1: yes)", 1e-3, 1e-2)
    found = Certificate("exact", WORDS, checks=(long, Check("short", 0.0, 1.0)), facts={"fact": WORDS})
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    assert WORDS in " ".join(text.split())
    assert "0.001 <= 0.01" in text
    assert "-0 <= " not in str(Certificate("exact", "x", checks=(Check("fall", -0.0, 1.0),)))
    assert text.splitlines()[-1].split() == ["holds", "yes"]


@pytest.mark.parametrize("entry", CATALOGUE, ids=str)
def test_every_certificate_fits_the_page(entry):
    assert max(map(len, str(entry.fit().certificate_).splitlines())) <= 80


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (LogisticRegression(max_iter=1), three),
        (KMeans(3, max_iter=1, random_state=0), table),
        (GaussianMixture(3, max_iter=2, random_state=0), far_groups),
        (GeneralizedLinearRegressor("poisson", max_iter=1), counts),
        (RobustPCA(lam=0.1, max_iter=3), table),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_warning_names_the_cure_and_the_cure_works(model, data):
    X, y = data()
    with pytest.warns(CertificateWarning, match="stopped by max_iter=[123]; about [0-9]+ would do") as found:
        model.fit(X, y)
    enough = int(re.search("about ([0-9]+) would do", str(found[0].message))[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.set_params(max_iter=enough).fit(X, y).certificate_.holds


def test_the_cure_of_a_wrapper_is_that_of_the_model_inside():
    with pytest.warns(CertificateWarning, match="stopped by max_iter=1; about [0-9]+ would do"):
        TableClassifier(max_iter=1).fit(penguins_table(), "species")


def test_what_is_named_is_the_limit_that_was_reached():
    marks = [Mark(1.0, 10.0**-i, float(i)) for i in range(6)]
    settings = {"tol": 1e-9, "max_iter": 5, "max_time": None}
    assert cure(settings, {"history_": marks}) == "stopped by max_iter=5; about 100 would do"
    assert cure({**settings, "max_iter": 6}, {"history_": marks}) == ""
    timed = cure({**settings, "max_iter": 6, "max_time": 4.5}, {"history_": marks})
    # The last mark, at 5 s, is one pass before the limit; two passes before it the limit did not stop the fit.
    assert cure({**settings, "max_iter": 6, "max_time": 5.9}, {"history_": marks}) == timed.replace("4.5", "5.9")
    assert cure({**settings, "max_iter": 6, "max_time": 7.1}, {"history_": marks}) == ""
    # Several loops share the limit: restarts of three seconds each.
    assert "max_time=9.5" in cure({"max_iter": 50, "max_time": 9.5}, {"history_": (marks[:4],) * 3})
    assert timed == "stopped by max_time=4.5; more time, or None, would do"
    slow = [Mark(1.0, 0.99**i, 0.0) for i in range(1001)]
    assert (
        cure({"tol": 1e-9, "max_iter": 1000}, {"history_": slow}) == "stopped by max_iter=1000; about 10000 would do"
    )
    assert cure({"tol": 1e-9, "max_iter": 50}, {"history_": slow[:51]}, usual=300).endswith("about 300 would do")
    assert cure({}, {}) == ""


@pytest.mark.parametrize("model", [LogisticRegression(), GeneralizedLinearRegressor("poisson"), KMeans(3)])
def test_a_progress_line_has_at_most_80_columns(model):
    X, y = counts() if isinstance(model, GeneralizedLinearRegressor) else two()
    screen = io.StringIO()
    console = Console(file=screen, width=200, force_terminal=True, color_system=None)
    model.set_callbacks(ProgressBar(console)).fit(X, y)
    lines = [line for line in re.split("[\r\n]", re.sub("\x1b\\[[0-9?]*[a-zA-Z]", "", screen.getvalue())) if line]
    assert lines
    assert max(map(len, lines)) <= 80
    assert re.search(r"pass +\d+ +objective +\S+ +gap +\S+ 0:00:\d\d", lines[-1])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def event(module, start=True):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)}, is_start=start)


def test_compiling_is_told_once_on_a_terminal_and_only_of_this_package():
    screen = Terminal()
    notice = CompileNotice(screen)
    notice.notify(event("scipy.loops"))
    notice.notify(event("certifit.cluster.lloyd_loops", start=False))
    assert screen.getvalue() == ""
    notice.notify(event("certifit.cluster.lloyd_loops"))
    notice.notify(event("certifit.svm.kernel.smo_loops"))
    assert len(screen.getvalue().splitlines()) == 1
    assert "compiling" in screen.getvalue()
    assert len(screen.getvalue()) <= 80
    piped = io.StringIO()
    CompileNotice(piped).notify(event("certifit.cluster.lloyd_loops"))
    assert piped.getvalue() == ""


@pytest.mark.compiled
def test_numba_tells_when_it_compiles():
    """A loop that no cache knows."""
    numba = pytest.importorskip("numba")
    screen = Terminal()
    notice = CompileNotice(screen)
    notice.install()

    def double(x):
        return 2 * x

    double.__module__ = "certifit.test_loops"
    assert numba.njit(double)(np.float64(2.0)) == 4.0
    assert numba.config.DISABLE_JIT or "compiling" in screen.getvalue()


def test_models_that_are_not_iterated_have_no_cure():
    assert cure(PCA(2).get_params(), vars(PCA(2).fit(table()[0]))) == ""
