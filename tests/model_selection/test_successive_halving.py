"""Successive halving: rungs as scikit-learn has them, an honest score, and a checker that is not fooled."""

import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import HalvingGridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from certifit import DataError, assess_values, choose_setting, prove_penalty
from certifit.checkers.model_selection.choices import HalvingRung, certify_choice
from certifit.checkers.model_selection.splits import SplitDeclaration, certify_splits, row_keys
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.assessment.plans import FoldSplits
from certifit.model_selection.choosing.choose_setting import make_claim
from certifit.model_selection.choosing.successive_halving import rung_rows

X, Y = (part[:900] for part in load_digits(return_X_y=True))
GRID = {"var_smoothing": np.geomspace(1e-9, 1.0, 9).tolist()}


@pytest.fixture(scope="module")
def found():
    return choose_setting(GaussianNB(), GRID, X, Y, factor=3, n_splits=3, draws=50)


def test_rungs_are_scikit_learns(found):
    """HalvingGridSearchCV(factor=3) of 9 settings on 900 rows: 9, 3 and 1 settings on 100, 300 and 900 rows."""
    search = HalvingGridSearchCV(GaussianNB(), GRID, factor=3, cv=3, refit=False, random_state=0).fit(X, Y)
    rungs = [*found.claim.rungs, found.claim]
    assert [len(rung.settings) for rung in rungs] == search.n_candidates_ == [9, 3, 1]
    # Every class has its own share, rounded.
    sizes = [len(rung.rows) for rung in found.claim.rungs]
    np.testing.assert_allclose(sizes, search.n_resources_[:2], atol=5)
    whole = choose_setting(GaussianNB(), GRID, X, Y, n_splits=3, draws=20).claim.scores.mean(axis=0)
    assert whole[found.claim.settings[0]] >= np.sort(whole)[-3]
    assert "9 on " in str(found)
    assert found.to_frame()["rows"].max() == 900
    assert found.certificate.holds


def test_rungs_are_nested_with_shares_of_classes_and_folds():
    rng = np.random.RandomState(0)
    y, folds = rng.randint(3, size=600), np.arange(600) % 5
    problem = AssessedProblem(GaussianNB(), np.zeros((600, 1)), y, np.arange(3))
    small, large = rung_rows(problem, FoldSplits(folds[None], 5), [1 / 9, 1 / 3], rng)
    assert np.isin(small, large).all()
    for kind in range(3):
        assert abs(np.count_nonzero(y[small] == kind) - np.count_nonzero(y == kind) / 9) <= 0.5
        counts = np.bincount(folds[large][y[large] == kind], minlength=5)
        assert counts.max() - counts.min() <= 1
    groups = np.arange(600) // 6
    whole = replace(problem, groups=groups)
    (rows,) = rung_rows(whole, FoldSplits((groups % 5)[None], 5), [0.25], rng)
    assert set(np.bincount(groups[rows])) <= {0, 6}
    assert len(rows) == 150


def test_a_choice_among_useless_settings_is_not_believed():
    """Coins: the better third of 27 settings on 60 of 180 rows looks better by 1.1 · 0.065 on a third of the rows."""
    rng, corrected, naive = np.random.default_rng(0), [], []
    for seed in range(20):
        scores = rng.integers(2, size=(180, 27)).astype(float)
        rung = np.arange(60)
        kept = np.sort(np.argsort(-scores[rung].mean(axis=0), kind="stable")[:9])
        rungs = (HalvingRung(rung, tuple(range(27)), scores[rung]),)
        terms = {"rule": "best", "draws": 40, "n_splits": 5, "rungs": rungs, "settings": tuple(kept.tolist())}
        claim = make_claim(scores[:, kept], "accuracy", 0.9, seed, terms)
        without = make_claim(scores[:, kept], "accuracy", 0.9, seed, terms | {"rungs": ()})
        corrected.append(claim.corrected)
        naive.append(without.corrected)
    assert np.mean(corrected) == pytest.approx(0.5, abs=0.03)  # three errors: 0.5 / √(120 · 20) each
    assert np.mean(naive) - np.mean(corrected) == pytest.approx(0.024, abs=0.014)


def test_the_checker_refuses_what_does_not_follow(found):
    splits = certify_splits(found.plan.splits, row_keys(X), SplitDeclaration(tested=1))
    claim = found.claim
    first, second = claim.rungs
    assert certify_choice(claim, splits).holds
    others = tuple(i for i in first.settings if i not in second.settings)
    for wrong in (
        replace(claim, rungs=()),
        replace(claim, rungs=(first,)),
        replace(claim, rungs=(replace(first, rows=np.arange(len(first.rows))), second)),
        replace(claim, rungs=(replace(first, scores=-first.scores), second)),
        replace(claim, rungs=(replace(first, scores=first.scores[1:]), second)),
        replace(claim, rungs=(replace(first, scores=np.full_like(first.scores, np.nan)), second)),
        replace(claim, rungs=(first, replace(second, rows=np.arange(900), scores=np.zeros((900, 3))))),
        replace(claim, settings=others[:1]),
        replace(claim, corrected=claim.corrected + 0.01),
    ):
        assert not certify_choice(wrong, splits).holds, wrong


def test_settings_are_drawn_from_laws_and_grids():
    drawn = choose_setting(
        GaussianNB(), {"var_smoothing": loguniform(1e-9, 1.0)}, X, Y, n_candidates=6, factor=2, n_splits=3, draws=20
    )
    assert len(drawn.given) == 6
    assert all(1e-9 <= setting["var_smoothing"] <= 1 for setting in drawn.given)
    assert drawn.certificate.holds
    some = choose_setting(GaussianNB(), GRID, X, Y, n_candidates=2, n_splits=3, draws=20).given
    assert len(some) == 2
    assert some[0]["var_smoothing"] < some[1]["var_smoothing"]
    with pytest.raises(DataError, match="n_candidates=50"):
        choose_setting(GaussianNB(), {"var_smoothing": loguniform(1e-9, 1.0)}, X, Y)
    with pytest.raises(DataError, match="factor=1"):
        choose_setting(GaussianNB(), GRID, X, Y, factor=1)


def test_a_time_budget_is_kept_on_every_rung():
    found = choose_setting(GaussianNB(), GRID, X, Y, factor=3, n_splits=3, draws=20, max_time=0)
    assert [len(rung.settings) for rung in (*found.claim.rungs, found.claim)] == [1, 1, 1]
    assert "1 of 9 settings were tried" in str(found)
    assert found.certificate.holds


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_searches_count_on_a_terminal_and_nowhere_else(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    small = X[:90], Y[:90]
    for screen, words in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", screen)
        choose_setting(GaussianNB(), [{}, {}], *small, n_splits=2, draws=20)
        assess_values(KNeighborsClassifier(), *small, values={"n_neighbors": [1, 3]}, n_splits=2)
        for what in ("scoring settings", "scoring values of n_neighbors", "2/2"):
            assert (what in screen.getvalue()) == words, what
        assert screen.getvalue() == "" or words


def test_a_range_of_penalties_keeps_its_time():
    two = Y < 2
    found = prove_penalty(LogisticRegression(), X[two][:, 18:24] / 16, Y[two], eps=1e-6, n_splits=2, max_time=0)
    least = prove_penalty(LogisticRegression(), X[two][:, 18:24] / 16, Y[two], eps=1e-6, n_splits=2, max_solutions=2)
    assert len(found.claim.Cs) == 2
    assert found.eps == least.eps
