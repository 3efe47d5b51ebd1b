"""Certificates: fit and checker agree, sabotage is noticed, bounds are honest, the written forms are sound."""

import copy
import json
import math
import pickle
import re
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn import decomposition, linear_model

from certifit import (
    PCA,
    SVC,
    Certificate,
    CertificateWarning,
    GeneralizedLinearRegressor,
    LogisticRegression,
    NoSolutionError,
    NuSVR,
    OneClassSVM,
    RidgeClassifier,
    audit,
)
from certifit.core import Check
from tests.common.catalogue import every_converging, every_estimator, every_sum, fitted_part, set_fitted_part


# ---------------------------------------------------------------------------------------- fit and audit
@every_estimator
def test_fit_proves_and_the_checker_agrees(entry):
    X, y = entry.data()
    model = entry.fitted()
    mine, checked = model.certificate_, audit(model, X, y)
    assert mine.holds
    assert checked.holds
    assert (mine.kind, mine.claim, mine.tol) == (checked.kind, checked.claim, checked.tol)
    scale = abs(mine.objective) + mine.limit
    np.testing.assert_allclose(mine.objective, checked.objective, rtol=1e-10, atol=1e-10 * scale)
    np.testing.assert_allclose(mine.objective, model.objective(X, y).total, rtol=1e-10, atol=1e-10 * scale)


@every_sum
def test_fit_and_checker_agree_with_weights(entry):
    X, y = entry.data()
    w = np.random.default_rng(0).exponential(size=len(X)) + np.arange(len(X)) % 2
    model = entry.make().fit(X, y, sample_weight=w)
    checked = audit(model, X, y, w)
    assert model.certificate_.holds
    assert checked.holds
    np.testing.assert_allclose(model.certificate_.objective, checked.objective, rtol=1e-10, atol=1e-12)


@every_estimator
def test_the_wrong_data_do_not_pass(entry):
    """A certificate is about a model and its data: on other rows of the same kind it does not hold."""
    model = entry.fitted()
    X, y = entry.data(50 + len(entry.data()[0]))
    assert not audit(model, X[50:], None if y is None else y[50:]).holds


@every_estimator
def test_the_bound_is_below_the_objective_of_scikit_learn(entry):
    X, y = entry.data()
    model, peer = entry.fitted(), entry.peer().fit(X, y)
    theirs = audit(peer, X, y)
    for mine in (model.certificate_, audit(model, X, y)):
        assert mine.bound <= theirs.objective * (1 + 1e-12)
        assert theirs.bound <= mine.objective * (1 + 1e-12)


# --------------------------------------------------------------------------------------------- sabotage
def negate(a):
    """The largest entry changes sign. (All of them may: -v is as good an axis as v.)"""
    a.flat[np.abs(a).argmax()] *= -1


def scale(a):
    a *= 1.01


def swap(a):
    """Two entries that differ change places."""
    low, high = a.argmin(), a.argmax()
    a.flat[low], a.flat[high] = a.flat[high], a.flat[low]


def noise(a):
    a.flat += 0.02 * np.abs(a).max() * (1 - 2 * (np.arange(a.size) % 2))


@every_estimator
def test_sabotage_of_each_attribute_is_noticed(entry):
    X, y = entry.data()
    whole = entry.fitted()
    best = whole.certificate_.objective
    for name, damage in product(entry.audited, (negate, scale, swap, noise)):
        model = copy.deepcopy(whole)
        hurt = np.array(fitted_part(model, name))
        numbers = hurt.dtype.kind == "i"  # labels: changing places is the only damage that leaves labels
        if (numbers and damage is not swap) or (damage is swap and hurt.size == 1):
            continue
        damage(hurt)
        set_fitted_part(model, name, hurt)
        checked = audit(model, X, y)
        assert not checked.holds, (name, damage)
        assert checked.failures(), (name, damage)
        assert not checked.bound > best * (1 + 1e-12), (
            name,
            damage,
        )  # a bound for any model whatever, where there is one


@every_converging
def test_stopping_after_one_iteration_is_noticed(entry):
    X, y = entry.data()
    solved = (GeneralizedLinearRegressor, RidgeClassifier, SVC, NuSVR, OneClassSVM)
    at_once = issubclass(entry.cls, solved)  # which 1 may solve
    with pytest.warns(CertificateWarning) as caught:
        model = entry.fit(max_iter=0 if at_once else 1)
    (warning,) = caught
    words = str(warning.message)
    assert words.startswith(type(model).__name__)
    told = "; ".join(model.certificate_.failures())
    ours, _, theirs = words.partition("; scikit-learn would say: ")
    assert re.fullmatch(
        re.escape(f"{type(model).__name__}: {told}") + r"(; stopped by max_iter=[01]; about \d+ would do)?", ours
    )
    assert "converge" not in ours
    assert not theirs or "solver" in entry.params  # to whoever asks for one of its solvers by name
    assert warning.filename.endswith("catalogue.py")  # where fit was called, not inside the library
    assert not model.certificate_.holds
    assert not audit(model, X, y).holds


def test_the_warning_states_the_proven_gap():
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    with pytest.warns(CertificateWarning) as caught:
        model = LogisticRegression(max_iter=0).fit(X + y[:, None], y)
    c = model.certificate_
    gap = f"objective within {c.gap:.3g} ({100 * c.relative_gap:.0f} % of its value) of the optimum; asked for 1e-06"
    assert str(caught[0].message) == f"LogisticRegression: {gap}; stopped by max_iter=0; about 100 would do"
    best = LogisticRegression(tol=1e-12).fit(X + y[:, None], y).certificate_.objective
    assert c.objective - best <= c.gap  # and the gap is true


@every_estimator
def test_a_tighter_tolerance_is_judged_by_that_tolerance(entry):
    X, y = entry.data()
    damaged, name = entry.fitted(), entry.audited[0]
    set_fitted_part(damaged, name, fitted_part(damaged, name) * (1 + 1e-5))
    checked = audit(damaged, X, y, tol=1e-13)
    assert not checked.holds
    assert checked.tol == 1e-13


# ---------------------------------------------------------------------------------------------- honesty
def solve(X, y, w, **params):
    """scikit-learn's answer, as tight as it can be made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its line search complains when asked for the last digits
        tight = {"solver": "newton-cholesky", "tol": 1e-14, "max_iter": 10_000, **params}
        return linear_model.LogisticRegression(**tight).fit(X, y, w)


def log_loss(model, X, y, w, C, class_weight=None):
    """The objective in plain NumPy: sum of weighted losses plus |β|²/(2C)."""
    eta = model.decision_function(X)
    eta = np.column_stack([np.zeros(len(X)), eta]) if eta.ndim == 1 else eta
    log_p = log_softmax(eta, axis=1)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    factor = np.ones(len(y)) if class_weight is None else np.array([class_weight[label] for label in y.tolist()])
    return -(w * factor * log_p).sum() + (model.coef_**2).sum() / (2 * C)


@st.composite
def problems(draw):
    """Small tables with every combination of what the objective knows."""
    n, d, k = draw(st.integers(4, 40)), draw(st.integers(1, 5)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, d) + draw(st.sampled_from([0.0, 1.0, 100.0]))
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    w = rng.exponential(size=n) if draw(st.booleans()) else np.ones(n)
    if draw(st.booleans()):
        w[k:] *= rng.random(n - k) < 0.7
    params = {
        "C": draw(st.sampled_from([1e-4, 0.1, 1.0, 100.0])),
        "fit_intercept": draw(st.booleans()),
        "class_weight": draw(st.sampled_from([None, dict(enumerate([1.0, 3.0, 0.2, 5.0][:k]))])),
    }
    return X.astype(draw(st.sampled_from([np.float32, np.float64]))), y, w, params


@given(problems(), st.sampled_from(["auto", "lbfgs"]))
def test_logistic_bounds_are_honest(problem, solver):
    X, y, w, params = problem
    mine = LogisticRegression(solver=solver, **params).fit(X, y, w)
    theirs = solve(X.astype(np.float64), y, w, **params)
    best = log_loss(theirs, X.astype(np.float64), y, w, params["C"], params["class_weight"])
    for certificate in (mine.certificate_, audit(mine, X, y, w), audit(theirs, X, y, w)):
        assert certificate.bound <= best * (1 + 1e-10)
    assert mine.certificate_.holds
    assert mine.certificate_.objective <= best * (1 + 2e-6)


@given(problems(), st.floats(-3, 3), st.integers(0, 99))
def test_logistic_bounds_are_honest_far_from_the_optimum(problem, size, seed):
    """Any coefficients whatever make a bound, however weak."""
    X, y, w, params = problem
    model = LogisticRegression(**params).fit(X, y, w)
    best = model.certificate_.objective
    rng = np.random.default_rng(seed)
    model.coef_ = model.coef_ + 10.0**size * rng.normal(size=model.coef_.shape)
    model.intercept_ = model.intercept_ + 10.0**size * rng.normal(size=model.intercept_.shape)
    checked = audit(model, X, y, w)
    assert checked.bound <= best * (1 + 1e-10)
    assert not math.isnan(checked.gap)


@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.booleans())
def test_likelihood_bounds_are_honest(seed, k, intercept):
    """Without a penalty: labels drawn at random from a weak model, so that a maximum exists."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(120, 3)) + 2, rng.exponential(size=120)
    y = rng.integers(0, k, 120)
    mine = LogisticRegression(penalty=None, fit_intercept=intercept).fit(X, y, w)
    theirs = solve(X, y, w, C=np.inf, fit_intercept=intercept)
    best = log_loss(theirs, X, y, w, np.inf)
    assert mine.certificate_.holds
    for certificate in (mine.certificate_, audit(mine, X, y, w), audit(theirs, X, y, w)):
        assert certificate.bound <= best * (1 + 1e-12)
    for size in (1e-4, 1e-2, 0.3):
        mine.coef_ = mine.coef_ + size * rng.normal(size=mine.coef_.shape)
        assert audit(mine, X, y, w).bound <= best * (1 + 1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(1, 12), st.floats(0, 1))
def test_pca_bounds_are_honest(seed, n, d, share):
    """The bound is one for any basis: against the discarded eigenvalues of NumPy's decomposition."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, d) + 10
    k = max(1, round(share * min(n, d)))
    variances = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2 / n
    best, total = variances[k:].sum(), variances.sum()
    model = PCA(k).fit(X)
    assert model.certificate_.holds
    assert model.certificate_.bound <= best + 1e-13 * total
    assert model.certificate_.objective <= best + 1e-9 * total
    for size in (0.0, 1e-6, 1e-3, 1.0):  # a basis that is worse and worse, and not even orthonormal
        model.components_ = model.components_ + size * rng.normal(size=model.components_.shape)
        assert audit(model, X).bound <= best + 1e-13 * total


def test_pca_of_other_solvers_says_what_was_given_away():
    """Randomised without iterations on a slowly falling spectrum: not exact, and the gap covers what is missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60)) * np.linspace(2, 1, 60)
    rough = decomposition.PCA(5, svd_solver="randomized", iterated_power=0, n_oversamples=1, random_state=0).fit(X)
    exact = PCA(5).fit(X)
    checked = audit(rough, X)
    lost = checked.objective - exact.certificate_.objective
    assert not checked.holds
    assert 1e-3 * checked.objective < lost <= checked.gap


# --------------------------------------------------------------------------------------------- impossible
def overlapping(rng, k):
    """Labels that no direction orders, in one column."""
    return rng.normal(size=60), rng.integers(0, k, 60)


def separable(kind, k, seed=0):
    """`complete`: every row can be put strictly on its side; `quasi`: some rows only on the border."""
    rng = np.random.default_rng(seed)
    x, y = overlapping(rng, k)
    if kind == "complete":
        return np.column_stack([x, 3.0 * y + rng.random(60)]), y
    first = (np.arange(60) % 3 == 0).astype(float)  # where this column is 1 there is one class only
    return np.column_stack([x, first]), np.where(first == 1, k - 1, y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["complete", "quasi"])
def test_separable_data_have_no_solution_and_the_witness_proves_it(kind, k, intercept):
    X, y = separable(kind, k)
    if not intercept:
        X = np.column_stack([X, np.ones(len(X))])
    with pytest.raises(NoSolutionError, match="no maximum") as caught:
        LogisticRegression(penalty=None, fit_intercept=intercept).fit(X, y)
    certificate = caught.value.certificate
    assert certificate.kind == "impossible"
    assert certificate.proved
    assert not certificate.holds
    v = np.array(certificate.witness)
    assert v.shape == (1 if k == 2 else k, X.shape[1] + intercept)
    Z = np.column_stack([X, np.ones(len(X))]) if intercept else X
    scores = Z @ v.T
    if k == 2:
        scores = np.column_stack([np.zeros(len(X)), scores])
    strict = 0
    for i, label in enumerate(y):  # row by row: its own score is the largest, for some row strictly
        lead = scores[i, label] - np.delete(scores[i], label).max()
        assert lead >= -1e-12 * np.abs(Z[i]).max() * np.abs(v).max()
        strict += lead > 1e-9
    assert strict > 0
    if kind == "complete":
        assert strict == len(X)
    else:
        assert strict < len(X)


@pytest.mark.parametrize("k", [2, 3])
def test_no_solution_survives_pickling_and_json(k):
    X, y = separable("quasi", k)
    with pytest.raises(NoSolutionError) as caught:
        LogisticRegression(penalty=None).fit(X, y)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert error.certificate.to_dict() == caught.value.certificate.to_dict()
    back = Certificate.from_dict(json.loads(error.certificate.to_json()))
    assert back.witness == error.certificate.witness
    assert str(back) == str(error.certificate)


@pytest.mark.parametrize("size", [5.0, 20.0, 30.0, 40.0, 800.0])
def test_no_certificate_where_there_is_no_maximum(size):
    """Coefficients of any size along a separating direction must not pass for a maximum-likelihood fit."""
    X, y = separable("quasi", 2)
    rest = X[:, 1] == 0
    model = solve(X[rest][:, :1], y[rest], None, C=np.inf)
    model.coef_ = np.append(model.coef_, [[size]], axis=1)
    model.n_features_in_ = 2
    found = audit(model, X, y)
    assert found.kind == "impossible"
    assert found.proved
    assert not found.holds


def test_a_penalty_makes_separable_data_solvable():
    X, y = separable("complete", 3)
    assert LogisticRegression(C=1e6).fit(X, y).certificate_.holds


def test_nearly_separable_data_are_fitted():
    """One row on the wrong side, and a maximum exists."""
    x = np.linspace(-1, 1, 40)
    y = (x > 0).astype(int)
    y[0] = 1
    model = LogisticRegression(penalty=None).fit(x[:, None], y)
    assert model.certificate_.holds


# ------------------------------------------------------------------------------------------ written forms
def example(**changes):
    parts = {
        "kind": "optimal",
        "claim": "cost within gap of the minimum",
        "objective": 10.0,
        "bound": 9.99,
        "tol": 1e-2,
        "checks": (Check("balance", 1e-9, 1e-6),),
        "facts": {"rows": 7.0, "solver": "newton"},
    }
    return Certificate(**{**parts, **changes})


def test_text():
    assert str(example()) == (
        "optimal: cost within gap of the minimum\n"
        "  objective    10\n"
        "  lower bound  9.99\n"
        "  gap          0.01 (0.1 %), allowed 0.1\n"
        "  balance      1e-09 <= 1e-06\n"
        "  rows         7\n"
        "  solver       newton\n"
        "  holds        yes"
    )


def test_text_points_at_what_fails():
    text = str(example(checks=(Check("balance", 2e-3, 1e-6),)))
    assert "balance      0.002 <= 1e-06  <- fails" in text
    assert text.endswith("holds        NO")


def test_bounded_shows_its_ratio():
    assert "at most 1.25 times the optimum" in str(example(kind="bounded", bound=8.0))
    assert example(kind="bounded", bound=8.0).holds  # a loose bound is no failure of a `bounded` claim
    assert example(kind="bounded", bound=-1.0).ratio == math.inf


@pytest.mark.parametrize("objective", [math.nan, math.inf])
def test_what_is_not_a_number_does_not_hold(objective):
    assert not example(objective=objective).holds
    assert not example(bound=-math.inf).holds
    assert not example(bound=math.nan).holds
    assert not Check("x", math.nan, math.inf).passed


def test_holds_is_a_plain_bool():
    c = example(objective=np.float64(10.0), checks=(Check("balance", np.float64(0), np.float64(1)),))
    assert c.holds is True
    assert json.loads(c.to_json())["holds"] is True


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="wanted one of"):
        example(kind="certain")


NUMBERS = st.floats(allow_nan=False) | st.just(math.inf) | st.just(-math.inf)


@given(NUMBERS, NUMBERS, st.floats(0, 1), NUMBERS, st.text(), st.text(), st.lists(st.floats(-1e9, 1e9), max_size=3))
def test_json_round_trip(objective, bound, tol, residual, claim, fact, witness):
    c = example(
        objective=objective,
        bound=bound,
        tol=tol,
        limit=1.0,
        claim=claim,
        checks=(Check(claim, residual, 1.0),),
        facts={"number": residual, "words": "a " + fact},
        witness=(tuple(witness),),
    )
    text = c.to_json()

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    data = json.loads(text, parse_constant=refuse)  # NaN and Infinity are not JSON
    assert Certificate.from_dict(data) == c
    assert data["holds"] == c.holds
    assert [check["passed"] for check in data["checks"]] == [check.passed for check in c.checks]


def test_json_round_trip_of_nan():
    c = Certificate("stationary", "no bound", objective=1.0, tol=0.1)
    back = Certificate.from_dict(json.loads(c.to_json()))
    assert math.isnan(back.bound)
    assert str(back) == str(c)


@every_estimator
def test_json_and_html_of_real_certificates(entry):
    c = entry.fitted().certificate_
    assert Certificate.from_dict(json.loads(c.to_json())) == c
    assert "<table" in c._repr_html_()
    with pytest.raises(AttributeError):
        c.objective = 0.0


def test_html_is_escaped():
    evil = "<script>alert('x')</script>"
    page = example(claim=evil, checks=(Check(evil, 0.0, 1.0),), facts={evil: evil})._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4
    assert "&#x27;" in page
