"""Support vector machines of all classes at once: known solutions, identities, scikit-learn's, sabotage."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn import svm
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from certifit import DataError, LinearSVC, audit
from certifit.checkers.plain.hinges import PLAIN_MULTICLASS_HINGES
from certifit.checkers.svm.joint import ClaimedJointSvm, feasible
from certifit.checkers.svm.joint_linear import certify
from certifit.checkers.svm.linear_machines.linear_adapter import audit_linear_svc
from certifit.exceptions import CertificateWarning
from certifit.rows import ArrayRows, set_threads
from certifit.svm.joint_linear.proximal_multipliers import JointSvmObjective, JointSvmProblem
from certifit.svm.joint_linear.tuning import JointSvmTuning
from tests.svm.linear.linear_cases import free_svc

KINDS = {"weston-watkins": (2.0, False), "crammer-singer": (1.0, True)}
INTERCEPTS = [{}, {"penalize_intercept": True, "intercept_scaling": 2.0}, {"fit_intercept": False}]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)


def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


def value(coef, intercept, X, y, kind, C=1.0, rho=0.0, w=1.0):
    """The objective, row by row."""
    margin, largest = KINDS[kind]
    total = 0.5 * (coef**2).sum() + 0.5 * rho * (intercept**2).sum()
    for x, c, weight in zip(X, y, np.broadcast_to(w, len(y)), strict=True):
        f = coef @ x + intercept
        slack = [max(0.0, margin + f[k] - f[c]) for k in range(len(f)) if k != c]
        total += C * weight * (max(slack) if largest else sum(slack))
    return total


def rho(model):
    return model.intercept_weight() or 0.0


# ------------------------------------------------------------------------------------------- known solutions
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_three_symmetric_points(kind, C):
    """Corners x_c of an equilateral triangle: β_c = t x_c by symmetry, f_c - f_k = 3t/2. So 3t²/2 + 3C (m - 3t/2)₊
    times 1 (largest slack) or 2 (their sum): t = min(2m/3, 3C/2 or 3C)."""
    angle = 2 * np.pi / 3 * np.arange(3)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    margin, largest = KINDS[kind]
    t = min(2 * margin / 3, (1.5 if largest else 3.0) * C)
    model = free_svc(C, multi_class=kind, tol=1e-12).fit(X, [0, 1, 2])
    np.testing.assert_allclose(model.coef_, t * X, atol=1e-6)
    slack = max(0.0, margin - 1.5 * t) * (1 if largest else 2)
    np.testing.assert_allclose(model.certificate_.objective, 1.5 * t * t + 3 * C * slack, rtol=1e-10)


@pytest.mark.parametrize(("kind", "times"), [("weston-watkins", 1.0), ("crammer-singer", 2.0)])
@every_intercept
def test_two_classes_are_the_binary_machine(kind, times, intercept):
    X, y = iris()
    X, y = X[50:], y[50:]
    model = free_svc(0.5, multi_class=kind, tol=1e-10, **intercept).fit(X, y)
    binary = free_svc(0.5 * times, loss="hinge", tol=1e-10, fit_intercept=model.fit_intercept).fit(X, y)
    if model.penalize_intercept:
        binary.set_params(penalize_intercept=True, intercept_scaling=2.0).fit(X, y)
    assert model.coef_.shape == (1, 4)
    half = 0.5 if kind == "crammer-singer" else 1.0  # f_1 - f_0 is the binary score, or twice that
    np.testing.assert_allclose(half * 2 * binary.coef_, model.coef_, rtol=1e-4, atol=1e-5)
    scale = 2.0 if kind == "weston-watkins" else 0.5
    np.testing.assert_allclose(model.certificate_.objective, scale * binary.certificate_.objective, rtol=1e-8)
    assert audit_linear_svc(model, X, y, None, 1e-8).holds
    np.testing.assert_array_equal(model.predict(X), binary.predict(X))


@every_kind
def test_free_biases_against_a_general_solver(kind):
    """min ½ |β|² + C Σ ξ subject to the margins, by SLSQP."""
    rng = np.random.default_rng(0)
    X, y, C, k = rng.normal(size=(12, 2)), np.arange(12) % 3, 0.7, 3
    margin, largest = KINDS[kind]
    pairs = [(i, c) for i in range(12) for c in range(k) if c != y[i]]
    slots = 12 if largest else len(pairs)
    slack = [i if largest else j for j, (i, _) in enumerate(pairs)]

    def lead(v):
        theta, xi = v[: k * 3].reshape(k, 3), v[k * 3 :]
        F = np.column_stack([X, np.ones(12)]) @ theta.T
        return np.array([F[i, y[i]] - F[i, c] - margin + xi[s] for (i, c), s in zip(pairs, slack, strict=True)])

    def cost(v):
        return 0.5 * (v[: k * 3].reshape(k, 3)[:, :2] ** 2).sum() + C * v[k * 3 :].sum()

    start = np.append(np.zeros(k * 3), np.full(slots, 2.0 * margin))
    bounds = [(None, None)] * (k * 3) + [(0, None)] * slots
    options = {"maxiter": 500, "ftol": 1e-12}
    best = minimize(cost, start, bounds=bounds, constraints={"type": "ineq", "fun": lead}, method="SLSQP",
                    options=options)  # fmt: skip
    assert best.success
    model = free_svc(C, multi_class=kind, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.certificate_.objective, best.fun, rtol=1e-6)


# --------------------------------------------------------------------------------------------- scikit-learn
@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_liblinear_finds_the_same_minimum(load):
    X, y = load(return_X_y=True)
    X, C = scale(X), 0.1
    peer = svm.LinearSVC(C=C, multi_class="crammer_singer", tol=1e-6, max_iter=10**5, random_state=0).fit(X, y)
    model = free_svc(C, multi_class="crammer_singer", penalize_intercept=True, tol=1e-7).fit(X, y)
    theirs = value(peer.coef_, peer.intercept_, X, y, "crammer-singer", C, 1.0)
    np.testing.assert_allclose(model.certificate_.objective, theirs, rtol=1e-5)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-3 * np.abs(peer.coef_).max())
    assert model.certificate_.bound <= theirs


def test_liblinears_machine_is_audited():
    X, y = iris()
    peer = svm.LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    assert audit_linear_svc(peer, X, y, None, 1e-5).holds
    best = audit_linear_svc(peer, X, y, None, 1e-5).objective
    for name in ("coef_", "intercept_"):
        hurt = svm.LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
        setattr(hurt, name, 1.05 * getattr(hurt, name))
        found = audit_linear_svc(hurt, X, y, None, 1e-5)
        assert not found.holds
        assert found.bound <= best


# ------------------------------------------------------------------------------------ what is said is so
@every_kind
@every_intercept
def test_objective_certificate_and_checker_agree(kind, intercept):
    X, y = iris()
    w = np.random.default_rng(0).exponential(size=len(y))
    model = free_svc(0.5, multi_class=kind, tol=1e-8, **intercept).fit(X, y, sample_weight=w)
    mine = model.certificate_
    expected = value(model.coef_, model.intercept_, X, y, kind, 0.5, rho(model), w)
    assert mine.holds
    np.testing.assert_allclose(mine.objective, expected, rtol=1e-12)
    np.testing.assert_allclose(model.objective(X, y, w).total, expected, rtol=1e-12)
    checked = audit_linear_svc(model, X, y, w, 1e-8)
    assert checked.holds
    del model.dual_coef_  # the scores alone prove it too
    alone = audit_linear_svc(model, X, y, w, 1e-7)
    assert alone.holds
    assert max(alone.bound, checked.bound) <= expected * (1 + 1e-12)


@every_kind
def test_bounds_are_honest_for_any_model(kind):
    """Whatever the coefficients, no bound is above the minimum."""
    X, y = iris()
    best = free_svc(2.0, multi_class=kind, tol=1e-10).fit(X, y).certificate_.objective
    rng = np.random.default_rng(0)
    claimed = ClaimedJointSvm(PLAIN_MULTICLASS_HINGES[kind], 2.0, 0.0)
    for size in (0.0, 0.1, 100.0):
        coef, b = size * rng.normal(size=(3, 4)), size * rng.normal(size=3)
        dual = size * rng.normal(size=(3, len(y)))
        for witness in (None, dual):
            found = certify(coef, b, claimed, 1e-9, ArrayRows(X, y), witness)
            assert 0 <= found.bound <= best * (1 + 1e-12)


@every_kind
@pytest.mark.parametrize("free", [True, False])
def test_feasible_points_are_feasible(kind, free):
    rng = np.random.default_rng(1)
    y, u = rng.integers(0, 5, 40), rng.exponential(size=40)
    claimed = ClaimedJointSvm(PLAIN_MULTICLASS_HINGES[kind], 1.0, 0.0 if free else 1.0)
    alpha = feasible(claimed, rng.normal(size=(40, 5)), y, u)
    rivals = np.where(np.arange(5) == y[:, None], 0.0, -alpha)
    limit = rivals.sum(axis=1) if KINDS[kind][1] else rivals.max(axis=1)
    assert rivals.min() >= 0
    assert (limit <= u * (1 + 1e-12)).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 0, atol=1e-12)
    assert rivals.sum() > 0
    if free:
        np.testing.assert_allclose(alpha.sum(axis=0), 0, atol=1e-12 * rivals.sum())


# ---------------------------------------------------------------------------------------------- corners
@every_kind
def test_sparse_rows_offsets_and_weights(kind):
    X, y = iris()
    fit = partial(free_svc, multi_class=kind, tol=1e-9)
    plain = fit().fit(X, y)
    np.testing.assert_allclose(fit().fit(sparse.csr_array(X), y).coef_, plain.coef_, atol=1e-4)
    far = fit().fit(X + 1e6, y)
    assert far.certificate_.holds
    np.testing.assert_allclose(far.certificate_.objective, plain.certificate_.objective, rtol=1e-6)
    twice, weighted = np.repeat([1, 2], 75), fit().fit(X, y, sample_weight=np.repeat([1, 2], 75))
    repeated = fit().fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
    np.testing.assert_allclose(weighted.certificate_.objective, repeated.certificate_.objective, rtol=1e-8)


@every_kind
def test_rows_without_entries_and_opposite_labels(kind):
    """All rows the same: every score is the same, and what is lost is the margin of each wrong class."""
    model = free_svc(multi_class=kind, tol=1e-9).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    margin, largest = KINDS[kind]
    np.testing.assert_allclose(model.certificate_.objective, 6 * margin * (1 if largest else 2), rtol=1e-9)
    assert model.certificate_.holds


def corner(name):
    """X, y and settings of problems that are hard on rounding or on the steps."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    return {
        "huge C": (X, y, {"C": 1e10}),
        "tiny C": (X, y, {"C": 1e-6}),
        "unscaled": (*load_wine(return_X_y=True), {}),
        "columns of very unequal scale": (X * [1e-6, 1.0, 1e6, 1e3], y, {}),
        "far from 0": (X + 1e8, y, {}),
        "tiny": (1e-9 * X, y, {"C": 1e18}),
        "opposite labels": (np.repeat(X, 3, axis=0), np.tile([0, 1, 2], 150), {}),
        "one row a class": (rng.normal(size=(5, 3)), np.arange(5), {"C": 1e6}),
        "unequal classes": (X, y, {"class_weight": {0: 1e-6, 1: 1.0, 2: 1e6}}),
    }[name]


CORNERS = ("huge C", "tiny C", "unscaled", "columns of very unequal scale", "far from 0", "tiny",
           "opposite labels", "one row a class", "unequal classes")  # fmt: skip


@every_kind
@pytest.mark.parametrize("name", CORNERS)
def test_corners_end_proved(kind, name):
    X, y, settings = corner(name)
    model = free_svc(multi_class=kind, **settings).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-4
    assert audit_linear_svc(model, X, y, None, 1e-4).holds


@every_kind
def test_units_do_not_matter(kind):
    """β x stays where x is 1e-9 x, β 1e9 β and C 1e18 C; the objective is 1e18 as large."""
    X, y = iris()
    plain, tiny = free_svc(multi_class=kind).fit(X, y), free_svc(1e18, multi_class=kind).fit(1e-9 * X, y)
    np.testing.assert_allclose(tiny.certificate_.objective, 1e18 * plain.certificate_.objective, rtol=1e-10)
    np.testing.assert_allclose(tiny.coef_, 1e9 * plain.coef_, rtol=1e-5, atol=1e-5)


@every_kind
def test_rows_without_weight_decide_nothing(kind):
    """A whole class and some more: the same digits as without these rows, and the same shapes."""
    X, y = iris()
    w = ((y != 1) & (np.arange(150) % 7 > 0)).astype(float)
    model, rest = (
        free_svc(multi_class=kind).fit(X, y, sample_weight=w),
        free_svc(multi_class=kind).fit(X[w > 0], y[w > 0]),
    )
    np.testing.assert_allclose(model.certificate_.objective, rest.certificate_.objective, rtol=1e-10)
    np.testing.assert_allclose(model.coef_, rest.coef_, atol=1e-6)
    assert not model.dual_coef_[:, w == 0].any()


@every_kind
def test_any_number_of_threads_gives_the_same_bits(kind):
    """Several blocks of rows, and of rows with free variables."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9000, 300)).astype(np.float32), rng.integers(0, 4, 9000)
    found = []
    for n in (1, 2, 3):
        set_threads(n)
        try:
            with pytest.warns(CertificateWarning):
                found.append(free_svc(0.01, multi_class=kind, max_iter=4).fit(X, y))
        finally:
            set_threads(None)
    for other in found[1:]:
        np.testing.assert_array_equal(other.coef_, found[0].coef_)
        np.testing.assert_array_equal(other.dual_coef_, found[0].dual_coef_)
        assert other.certificate_ == found[0].certificate_


def test_out_of_time_and_passes():
    X, y = load_digits(return_X_y=True)
    for limit in ({"max_time": 0.0}, {"max_iter": 0}):
        with pytest.warns(CertificateWarning, match="of the optimum"):
            model = free_svc(multi_class="crammer-singer", tol=1e-9, **limit).fit(X / 16, y)
        assert model.coef_.shape == (10, 64)


def test_unknown_kind():
    with pytest.raises(DataError, match="multi_class='all'"):
        free_svc(multi_class="all").fit(*iris())


def test_rounding_in_scores_of_rows_far_from_0_is_counted_by_the_fit():
    """Hinge losses of scores that cancel at 1e9, in float64 and with 11 bits more: they differ by what is counted."""
    rng = np.random.default_rng(0)
    X, y = 1.9e9 + 45_000 * rng.normal(size=(26, 33)), np.arange(26) % 2
    coef = 1e-3 * rng.normal(size=33)
    coef -= coef.mean()
    signs = np.where(y == 1, 1.0, -1.0)
    lossy = np.maximum(0.0, 1 - signs * (X @ coef)).sum()
    exact = np.maximum(0.0, 1 - signs * (X.astype(np.longdouble) @ coef.astype(np.longdouble))).sum()
    svm = JointSvmObjective(LinearSVC.multiclass_hinges["crammer-singer"], 1.0, 1.0)
    problem = JointSvmProblem(ArrayRows(X, y), 2, svm, 1e-4, JointSvmTuning())
    off = abs(float(lossy - exact))
    assert problem.rounding < off < problem.score_rounding(coef[None]) < 1e4 * off


def test_what_rounding_makes_of_scores_belongs_to_what_a_fit_states():
    """Small losses of rows far from 0: objectives in float64, by fit and audit, differ by no more than they state."""
    rng = np.random.default_rng(13)
    X, y = 5340 + 2 * rng.normal(size=(10, 4)), np.arange(10) % 3
    free = {"fit_intercept": False, "penalize_intercept": False, "multi_class": "crammer-singer"}
    model = LinearSVC(C=7e4, loss="huberised_hinge", tol=1e-3, **free).fit(X, y)
    again = audit(model, X, y)
    (stated,) = [check.residual for check in model.certificate_.checks if check.name.startswith("rounding")]
    assert abs(model.certificate_.objective - again.objective) <= stated * again.objective


def test_rounding_of_scores_far_from_zero_excuses_next_to_nothing():
    """Penalised biases keep rows from being centred: in float64 scores of 1e8 would lose what a wrong bias costs."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 4)) + 1e8, np.arange(9) % 3
    model = LinearSVC(C=2e3, loss="hinge", multi_class="weston-watkins", penalize_intercept=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    found = audit(model, X, y)
    (rounding,) = [check.residual for check in found.checks if check.name.startswith("rounding")]
    assert rounding < 1e-3
    assert found.limit <= 1.1 * (model.tol + rounding) * found.objective
