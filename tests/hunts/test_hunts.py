"""The standing hunts, short: fixed cases of each, and hunts that are shown to find what is there to be found."""

from __future__ import annotations

import time
from copy import deepcopy
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock
from sklearn.datasets import load_iris

from benchmarks.hunts import brute_force, forty_digits
from benchmarks.hunts.cases import Hunt, HuntCase, run_case, run_hunts
from benchmarks.hunts.command import all_hunts, listing, main
from benchmarks.hunts.foreign_verdicts import judge
from benchmarks.hunts.honest_fits import riddle, rounding_of_covariances
from benchmarks.hunts.page import add_runs, write_page
from benchmarks.hunts.random_models import MODELS
from benchmarks.hunts.random_tables import NASTY, nasty_table, random_table
from benchmarks.hunts.separation import separable
from benchmarks.hunts.tampered_attributes import _as_good, _equal_softmax, _said_so, _ties_alone
from benchmarks.hunts.tampering import TYPE_TAMPERS, damage, damages, differ, negate, said
from benchmarks.hunts.wrong_models import _check_against
from certifit import (
    BaggingClassifier,
    GaussianMixture,
    GaussianNB,
    LinearRegression,
    LogisticRegression,
    Ridge,
    audit,
)
from certifit.core import Certificate, Estimator

SHORT = {
    "wrong_models": 8,
    "tampered_attributes": 1,
    "honest_fits": 20,
    "brute_force": 60,
    "forty_digits": 60,
    "foreign_verdicts": 8,
    "foreign_boosters": 8,
}


@pytest.mark.parametrize("name", SHORT)
def test_nothing_is_found(name):
    hunt, found = all_hunts()[name], []
    for number in range(2_000_000, 2_000_000 + SHORT[name]):
        found += run_case(hunt, number)[0].findings
    assert not found, "\n".join(f"{f.replay}: {f.what}: {f.detail}" for f in found)


def test_every_hunt_has_a_short_version():
    assert set(SHORT) == set(all_hunts())


def test_a_case_is_made_again_by_its_number():
    hunt = all_hunts()["honest_fits"]
    assert run_case(hunt, 5)[0].notes == run_case(hunt, 5)[0].notes != run_case(hunt, 6)[0].notes


def test_every_estimator_with_a_certificate_is_hunted():
    import certifit

    public = [name for name in dir(certifit) if isinstance(getattr(certifit, name), type)]
    own = {name for name in public if issubclass(getattr(certifit, name), Estimator)}
    assert own == {model.name for model in MODELS}


def test_every_nasty_table_is_made():
    rng = np.random.default_rng(0)
    words = " ".join(nasty_table(rng, "classes").words for _ in range(800))
    assert [name for name in NASTY if name not in words] == []


def test_random_tables_have_their_targets():
    rng = np.random.default_rng(0)
    for kind, least in (("two", 0), ("classes", 0), ("counts", 0), ("positive", 1e-300), ("shares", 0)):
        for _ in range(20):
            table = random_table(rng, kind)
            assert table.X.shape[0] == len(table.y) >= 5
            assert table.y.min() >= least
            assert kind not in ("two", "classes") or len(np.unique(table.y)) > 1


@pytest.mark.parametrize(
    ("certificate", "found"),
    [
        (Certificate("optimal", "false bound", objective=3.0, bound=2.5, tol=1e-6), "bound above the optimum"),
        (Certificate("optimal", "far off", 3.0, 3.0 - 1e-7, tol=1e-6), "holds, and is no optimum"),
        (Certificate("optimal", "true", 2.0, 2.0 - 1e-7, tol=1e-6), None),
    ],
)
def test_a_false_certificate_is_found(certificate, found):
    case = HuntCase("wrong_models", 0)
    table = random_table(case.rng, "numbers")
    _check_against(case, LinearRegression(), "made up", certificate, 2.0, table)
    assert found in [finding.what for finding in case.findings] or (found is None and not case.findings)


@pytest.mark.parametrize(("bound", "wrong"), [(1.9, False), (2.99, True)])
def test_a_bounded_verdict_is_held_to_its_bound(bound, wrong):
    """It claims no optimum: the best objective known may be less, but not below the bound."""
    best, rough = Certificate("optimal", "", 2.0, 2.0, tol=1e-6), Certificate("bounded", "", 3.0, bound, tol=1e-6)
    case = HuntCase("foreign_verdicts", 0)
    judge(case, LinearRegression(), "made up", best, rough, None)
    assert rough.holds
    assert bool(case.findings) == wrong


def test_a_compilation_is_not_broken_off_by_the_end_of_a_case():
    done = []

    def run(_case):
        with global_compiler_lock:  # what Numba holds while it compiles
            time.sleep(0.2)
            done.append("compiled")
        time.sleep(5)
        done.append("too late")

    _, seconds, finished = run_case(Hunt("slow", "", "", run, seconds=0.05), 0)
    assert done == ["compiled"]
    assert not finished
    assert seconds < 4


def test_errors_that_no_user_should_see():
    def caught(call):
        with pytest.raises(Exception) as info:  # noqa: PT011
            call()
        return riddle(info.value)

    assert caught(lambda: np.linalg.cholesky(-np.eye(2))) == "raised LinAlgError"
    assert caught(lambda: np.ones(3) @ np.ones(4)) != ""
    assert caught(lambda: [][0]) == "raised IndexError"
    assert caught(lambda: LinearRegression().fit(np.full((3, 1), np.nan), np.ones(3))) == ""


def test_newton_in_40_digits_solves_a_system_with_a_known_answer():
    """Least squares through (0, 1/3), (1, 1/3): the line is flat at 1/3, and nothing is left."""
    with localcontext() as context:
        context.prec = forty_digits.DIGITS
        third, one = Decimal(1) / 3, Decimal(1)
        rows = [[Decimal(0), one], [one, one]]
        problem = forty_digits.SmoothProblem(forty_digits.squares, rows, [third, third], [one, one], [Decimal(0)] * 2)
        beta, value = forty_digits.minimise(problem, [Decimal(7), Decimal(-2)])
    assert abs(beta[0]) < Decimal("1e-40")
    assert abs(beta[1] - third) < Decimal("1e-40")
    assert value < Decimal("1e-60")


def test_brute_force_on_problems_with_known_answers():
    assert brute_force.best_clustering(np.array([[0.0], [1.0], [10.0], [12.0]]), np.ones(4), 2) == pytest.approx(2.5)
    # rows at ±1: f(x) = x has the margin 1 and the objective ½
    X, s = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    assert brute_force.best_margin(X, s) == pytest.approx(0.5)
    assert brute_force.best_machine(X @ X.T, s, np.full(2, 100.0)) == pytest.approx(0.5)
    # rows at ±1e6, and one further out: f(x) = x / 1e6, whose coefficients balance beside kernel values of 1e12
    X = np.array([[-1e6], [1e6], [3e6]])
    balanced = brute_force.best_machine(X @ X.T, [-1, 1, 1], [1.0] * 3)
    assert balanced == pytest.approx(0.5e-12, rel=1e-12)
    # soft thresholding: min ½ (2 - b)² + ½ |b| is at b = 1.5
    assert brute_force.best_line(np.ones((1, 1)), np.array([2.0]), np.ones(1), 0.5, 1.0, False) == pytest.approx(
        0.875
    )
    A = np.array([[2.0, 1.0], [1.0, 2.0]], dtype=np.longdouble)
    assert brute_force.eigenvalues(A) == pytest.approx([3.0, 1.0])
    assert separable(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]), strictly=True)
    assert not separable(np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0]), strictly=True)


def finds(case):
    case.count("tries")
    case.find("something", "Model(1)", "in detail")


def fails(_case):
    raise KeyError("riddle")


def sleeps(_case):
    while True:
        pass


def test_findings_are_counted_listed_and_written(tmp_path):
    hunts = [
        Hunt("a", "A", "nothing", finds),
        Hunt("b", "B", "nothing", fails),
        Hunt("c", "C", "nothing", sleeps, 0.05),
    ]
    tallies = run_hunts(hunts, seed=3, minutes=1, most=2)
    assert [t.cases for t in tallies] == [2, 2, 2]
    assert tallies[2].too_slow == 2
    assert "python -m benchmarks hunt --only a --case 3000000" in listing(tallies)
    assert "the hunt itself failed" in listing(tallies)
    page = written(tallies, hunts, tmp_path)
    assert "| tries | 2 |" in page
    assert "seed 3, 0.0 minutes, commit abc" in page
    assert "**found: something**" in page
    assert "given up after 0.05 s | 2" in page
    assert page.count("--case 3000000`") == 2  # the first case in which each was found


def written(tallies, hunts, folder, seed=3, **how):
    """The page after this run."""
    add_runs(tallies, seed, "commit abc", path=folder / "record.json", **how)
    write_page({hunt.name: hunt for hunt in hunts}, folder / "page.md", folder / "record.json")
    return (folder / "page.md").read_text()


def test_runs_of_several_seeds_add_up_and_hunts_that_did_not_run_stay(tmp_path):
    hunts = [Hunt("a", "A", "nothing", finds), Hunt("b", "B", "nothing", fails)]
    both = run_hunts(hunts, seed=3, minutes=1, most=2)
    written(both, hunts, tmp_path)
    assert "| tries | 2 |" in written(both, hunts, tmp_path)  # the same run again, not a second one
    page = written(both[:1], hunts, tmp_path, seed=4)
    assert "| tries | 4 |" in page
    assert "**B: nothing**" in page
    assert page.count("seed 4") == 1
    page = written(both[:1], hunts, tmp_path, seed=5, anew=True)
    assert "| tries | 2 |" in page
    assert "**B: nothing**" in page
    assert "seed 4" not in page


def test_the_command_replays_a_case(capsys):
    with pytest.raises(SystemExit):
        main(["--case", "3"])
    assert main(["--only", "brute_force", "--case", "3"]) in (0, 1)
    assert "brute_force 3:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("deviance 12.3456, 3 rows", "deviance 12.3457,  3 rows", False),  # one more in the last digit
        ("deviance 12.3456, 3 rows", "deviance 12.3459, 3 rows", True),
        ("deviance 12.3456, 3 rows", "deviance 12.3456, 4 rows", True),  # a count
        ("p 1.234e-05", "p 1.235e-05", False),
        ("p 1.234e-05", "p 1.234e-04", True),
        ("class a", "class b", True),
        ("x -0.00", "x 0.00", False),
        ("x -0.51", "x 0.51", True),
        ("x 0.5", "x nan", True),
    ],
)
def test_numbers_in_texts_are_compared_as_numbers(before, after, differs):
    assert differ(before, after, 1e-6) == differs


def test_the_rounding_of_a_log_density_is_that_of_its_covariance():
    eps, model = np.finfo(float).eps, GaussianMixture(1)
    for off, expected in ((0.0, 64 * eps), (1 - 1e-8, 64e8 * eps), (1.0, 1.0)):
        model.covariances_ = np.array([[[1.0, 10 * off], [10 * off, 100.0]]])
        np.testing.assert_allclose(rounding_of_covariances(model), expected, rtol=1e-6)
    assert rounding_of_covariances(GaussianMixture(1, covariance_type="diag")) == 0.0


def test_a_score_near_zero_is_compared_with_one():
    assert differ(1e-16, 3e-16)
    assert not differ(1e-16, 3e-16, least=1.0)
    assert differ(1e-16, 1e-5, least=1.0)


@pytest.mark.parametrize(("share", "equal"), [(1e-5, True), (1e-1, False)])
def test_only_coefficients_that_the_objective_does_not_tell_apart_are_as_good(share, equal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=30)
    whole = Ridge(alpha=1.0).fit(X, y)
    model = deepcopy(whole)
    model.coef_ = whole.coef_ * (1 + share)
    assert _as_good(whole, model, X, y) == equal
    if equal:
        proved, found = audit(whole, X, y), audit(model, X, y)
        assert _said_so(whole, proved, found, "coef_", model.coef_)
        assert not _said_so(whole, proved, proved, "coef_", model.coef_)  # whose errors are 1e-13
        assert not _said_so(whole, proved, found, "deviance_", model.coef_)


@pytest.mark.parametrize(
    ("moved", "said", "tied"),
    [
        ([[1.0, 1.0 + 1e-9, 0.0], [2.0, 0.0, 0.0]], [1, 0], True),  # the first row was between two classes
        ([[1.0, 1.0 + 1e-9, 0.0], [2.0, 0.0, 0.0]], [2, 0], False),  # but not the third
        ([[1.0, 1.0 + 1e-9, 0.0], [2.0, 0.0, 0.0]], [0, 1], False),  # and the second row between none
    ],
)
def test_only_classes_that_were_as_good_may_change_places(moved, said, tied):
    model = LogisticRegression()
    model.classes_ = np.arange(3)
    before = {"decision_function": np.array([[1.0, 1.0 - 1e-9, 0.0], [2.0, 0.0, 0.0]]), "predict": np.array([0, 0])}
    assert _ties_alone(model, before, {"decision_function": np.array(moved), "predict": np.array(said)}) == tied


def test_only_equal_sizes_make_another_optimum_of_an_l1_softmax():
    whole = LogisticRegression(penalty="l1")
    whole.coef_ = np.array([[-3.0], [-2.0], [2.0], [4.0]])
    assert _equal_softmax(whole, "coef_", whole.coef_ + 1)
    assert not _equal_softmax(whole, "coef_", whole.coef_ + 3)
    assert not _equal_softmax(whole, "coef_", whole.coef_ * [[1.0], [1.0], [1.0], [1.5]])
    assert not _equal_softmax(whole.set_params(penalty="l2"), "coef_", whole.coef_ + 1)


def test_what_the_end_of_the_time_turns_into_another_error_is_no_finding():
    """A compiled function may hand on the exception of the timer as a SystemError of its own."""

    def run(case):
        case.find("found in time", "model", "kept")
        try:
            while True:
                pass
        except BaseException as error:
            case.find("raised SystemError", "model", "dropped")
            raise SystemError("returned a result with an exception set") from error

    case, _, finished = run_case(Hunt("spin", "Spin", "nothing", run, 0.05), 0)
    assert not finished
    assert [finding.what for finding in case.findings] == ["found in time"]


def test_members_of_bags_are_damaged_and_attributes_turned_to_other_types_or_removed():
    X, y = load_iris(return_X_y=True)
    bag = BaggingClassifier(GaussianNB(), n_estimators=2, random_state=0).fit(X, y)
    before, theta = said(bag, X, y), bag.estimators_[0].theta_.copy()
    hurt = [damage(bag, "estimators_", members) for _, members in damages(bag.estimators_, [negate])]
    assert any(differ(before["predict_proba"], said(model, X, y)["predict_proba"]) for model in hurt)
    assert (bag.estimators_[0].theta_ == theta).all()  # the damage is done to copies
    kinds = [getattr(damage(bag.estimators_[0], "theta_", value), "theta_", None)
             for _, value in damages(theta, TYPE_TAMPERS)]  # fmt: skip
    assert [type(kind).__name__ for kind in kinds] == ["NoneType", "list", "ndarray", "ndarray"]
    assert [kind.dtype.kind for kind in kinds[2:]] == ["U", "O"]
