"""Each class that both libraries have: every name of scikit-learn's is here, ignored, or listed with a reason."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest
from sklearn.cluster import KMeans as SklearnKMeans

from certifit import KMeans
from certifit.migration.counterparts import Counterpart, counterpart, counterparts
from certifit.migration.differences import all_differences, compare_pair, open_differences, public_methods
from certifit.migration.small_fits import documented_attributes, fitted_attributes

ROOT = Path(__file__).parents[2]
CLASSES = [pair for pair in counterparts() if pair.is_class]
every_class = pytest.mark.parametrize("pair", CLASSES, ids=lambda pair: pair.name)


# The next three fit every class of both libraries, once: each is one test, so that one process has the fits.
def test_every_difference_has_a_reason():
    assert len(all_differences()) == len(counterparts()) > 60
    assert open_differences() == []


def test_reasons_are_sentences_about_names_of_scikit_learns_class():
    for pair in CLASSES:
        theirs = {*inspect.signature(pair.theirs).parameters, *public_methods(pair.theirs)}
        theirs |= fitted_attributes(pair, pair.theirs) | documented_attributes(pair.theirs)
        for name, reason in pair.reasons.items():
            method = re.split("[(=]", name)[0]  # `fit(check_input)` and `alpha=0` speak of a part of it
            assert name in theirs or method in theirs, f"scikit-learn's {pair.name} has no {name}"
            assert reason.endswith("."), f"{pair.name}, {name}: {reason!r} is no sentence"
            assert len(reason.split()) > 2, f"{pair.name}, {name}: {reason!r} is no sentence"


def test_the_page_is_current():
    spec = importlib.util.spec_from_file_location("tools_differences", ROOT / "tools" / "differences.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = (ROOT / "docs" / "start" / "differences.md").read_text(encoding="utf-8")
    assert page == tool.page(), "run python tools/differences.py"


@every_class
def test_ignored_parameters_are_accepted_and_documented(pair):
    ours = inspect.signature(pair.ours).parameters
    for name in pair.ignored:
        assert name in ours, f"{name} is not accepted"
        assert name in (pair.ours.__doc__ or ""), f"the docstring says nothing of {name}"


@every_class
def test_calls_of_scikit_learn_are_accepted(pair):
    """All of scikit-learn's defaults, given by name, but for what is listed as missing."""
    theirs = inspect.signature(pair.theirs).parameters.values()
    here = inspect.signature(pair.ours).parameters
    given = {one.name: one.default for one in theirs if one.default is not one.empty and one.name in here}
    needed = {one.name: None for one in theirs if one.default is one.empty}
    pair.ours(**given, **needed)


# --------------------------------------------------------------------------------- the comparison sees what it should
class Fewer(SklearnKMeans):
    """A class that lacks, ignores or changes one name of each kind."""

    ignored = ("verbose",)
    differences = {"tol": "It is a proved gap."}  # noqa: RUF012

    def __init__(self, *, n_clusters=8, init="k-means++", n_init=1, max_iter=300, tol=1e-9, verbose=0, copy_x=True):
        super().__init__(n_clusters, init=init, max_iter=max_iter)

    def fit(self, X, y=None):
        super().fit(X, y)
        del self.inertia_
        return self

    def score(self, X, y=None):
        return 0.0


def test_a_class_that_lacks_names_is_seen_through():
    found = {one.name: one for one in compare_pair(Counterpart("KMeans", "cluster", Fewer, SklearnKMeans))}
    kinds = {name: (one.kind, one.ours, bool(one.reason)) for name, one in found.items()}
    assert kinds == {
        "n_clusters": ("parameter", "by name", False),
        "n_init": ("default", "1", False),
        "tol": ("default", "1e-09", True),
        "verbose": ("parameter", "ignored", False),
        "random_state": ("parameter", "not there", False),
        "algorithm": ("parameter", "not there", False),
        "inertia_": ("attribute", "not there", False),
        "fit(sample_weight)": ("argument", "not there", False),
        "score(sample_weight)": ("argument", "not there", False),
    }


def test_names_are_compared_within_their_room():
    """`RBF` of scikit-learn is a kernel of Gaussian processes, which ours does not replace."""
    pair = counterpart("cluster", "KMeans")
    assert (pair.ours, pair.theirs) == (KMeans, SklearnKMeans)
    assert counterpart("svm", "RBF") is None
    assert counterpart("cluster", "DBSCAN") is None
    assert counterpart("no_such_room", "KMeans") is None
