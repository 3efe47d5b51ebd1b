"""One kernel machine for all classes: closed forms, LIBSVM, a general solver, proofs that notice damage."""

import copy

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn import svm
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from certifit import CertificateWarning, LinearSVC
from certifit.checkers.svm.adapter import audit_svc
from certifit.svm.joint_kernel.joint_machine import JOINT_SCHEMES
from certifit.svm.joint_kernel.joint_smo import least_worst_biases
from certifit.svm.joint_kernel.joint_smo_loops import (
    project_rows,
    restore_balance,
    solve_rows,
    violations,
    worst_pairs,
)
from certifit.svm.kernel.svc import SVC
from tests.common.catalogue import three, two

KINDS = ("weston-watkins", "crammer-singer")
every_kind = pytest.mark.parametrize("kind", KINDS)


def standard(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def audit(model, X, y, w=None, tol=None):
    return audit_svc(model, X, y, w, model.tol if tol is None else tol)


def loss(kind, F, y):
    """As Weston & Watkins (1999) and Crammer & Singer (2001) write it."""
    total = 0.0
    for f, own in zip(F, y, strict=True):
        rivals = [c for c in range(len(f)) if c != own]
        if kind == "weston-watkins":
            total += sum(max(0.0, 2.0 + f[c] - f[own]) for c in rivals)
        else:
            total += max(0.0, *(1.0 + f[c] - f[own] for c in rivals))
    return total


# ------------------------------------------------------------------------------------------ closed forms
@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("C", [0.01, 100.0])
@every_kind
def test_three_points(kind, radius, C):
    """Corners v of a triangle: by symmetry f_c(x) = s v_c·x, margins are 1.5 s radius, and a = s / (3 radius)."""
    angles = 2 * np.pi * np.arange(3) / 3
    v = np.column_stack([np.cos(angles), np.sin(angles)])
    margin, share = (2.0, 1.0) if kind == "weston-watkins" else (1.0, 0.5)
    a = min(share * C, margin / (4.5 * radius**2))
    s = 3 * radius * a
    miss = margin - 1.5 * s * radius
    model = SVC(multi_class=kind, kernel="linear", C=C).fit(radius * v, [0, 1, 2])
    np.testing.assert_allclose(model.coef_, s * v, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, 0.0, atol=1e-7)
    np.testing.assert_allclose(model.dual_coef_, a * (3 * np.eye(3) - 1), atol=1e-7)
    np.testing.assert_allclose(model.slacks_, 2 * share * miss, atol=1e-7)
    np.testing.assert_allclose(model.certificate_.objective, 1.5 * s**2 + 3 * C * 2 * share * miss, rtol=1e-9)
    assert set(model.support_kinds_) == {"non-margin" if a == share * C else "margin"}


@every_kind
def test_two_classes_are_libsvms_machine(kind):
    """Weston-Watkins with the same C, and scores ±f; Crammer-Singer with 2 C, and scores ±f/2."""
    X, y = two()
    price, scale, part = (1.0, 1.0, 2.0) if kind == "weston-watkins" else (2.0, 0.5, 0.5)
    theirs = svm.SVC(C=price * 0.7, gamma=0.2, tol=1e-9).fit(X, y)
    mine = SVC(multi_class=kind, C=0.7, gamma=0.2, tol=1e-9).fit(X, y)
    f = theirs.decision_function(X)
    np.testing.assert_allclose(mine.decision_function(X), 2 * scale * f, atol=1e-6)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))
    np.testing.assert_allclose(mine.intercept_, scale * theirs.intercept_ * [-1, 1], atol=1e-6)
    np.testing.assert_allclose(
        mine.certificate_.objective, part * audit_svc(theirs, X, y, None, 1e-3).objective, rtol=1e-7
    )
    np.testing.assert_array_equal(np.sort(mine.support_), np.sort(theirs.support_))


@every_kind
def test_a_general_solver_agrees(kind):
    """The primal with its slacks as variables, by SciPy's SLSQP."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(14, 2)), np.arange(14) % 3
    X += 1.2 * np.eye(3, 2)[y]
    rivals = np.array([(i, c) for i in range(14) for c in range(3) if c != y[i]])
    i = rivals[:, 0]
    slots = np.arange(len(i)) if kind == "weston-watkins" else i  # which slack a constraint has
    margin, n = (2.0, len(i)) if kind == "weston-watkins" else (1.0, 14)
    A = np.zeros((len(i), 9 + n))  # W (3, 2), b (3,), slacks
    for line, (row, rival) in enumerate(rivals):
        for d in range(2):
            A[line, [2 * y[row] + d, 2 * rival + d]] += [X[row, d], -X[row, d]]
        A[line, [6 + y[row], 6 + rival]] += [1.0, -1.0]
        A[line, 9 + slots[line]] += 1.0

    def objective(x):
        return 0.5 * x[:6] @ x[:6] + 0.8 * x[9:].sum()

    def gradient(x):
        return np.concatenate([x[:6], np.zeros(3), np.full(n, 0.8)])

    start = np.concatenate([np.zeros(9), np.full(n, margin)])
    found = optimize.minimize(
        objective, start, jac=gradient, method="SLSQP", bounds=[(None, None)] * 9 + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda x: A @ x - margin, "jac": lambda x: A},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    model = SVC(multi_class=kind, kernel="linear", C=0.8, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.certificate_.objective, found.fun, rtol=1e-7)
    np.testing.assert_allclose(model.coef_.ravel(), found.x[:6], atol=1e-4)
    F = model.decision_function(X)
    np.testing.assert_allclose(model.objective(X, y).data, 0.8 * loss(kind, F, y), rtol=1e-12)
    np.testing.assert_allclose(model.slacks_.sum(), loss(kind, F, y), rtol=1e-9)


@every_kind
def test_a_linear_kernel_is_the_linear_machine(kind):
    X, y = standard(load_iris)
    mine = SVC(multi_class=kind, kernel="linear").fit(X, y)
    linear = LinearSVC(multi_class=kind, loss="hinge", penalize_intercept=False, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(mine.certificate_.objective, linear.certificate_.objective, rtol=1e-6)
    np.testing.assert_allclose(mine.coef_, linear.coef_, atol=5e-3)
    assert linear.certificate_.bound <= mine.certificate_.objective
    assert mine.certificate_.bound <= linear.certificate_.objective


# ----------------------------------------------------------------------------------------- proofs
PROBLEMS = {
    "iris": (load_iris, {}),
    "iris steep": (load_iris, {"C": 1e4}),
    "wine linear": (load_wine, {"kernel": "linear", "C": 100.0}),
    "wine balanced": (load_wine, {"class_weight": "balanced", "kernel": "poly", "coef0": 1.0}),
}


@pytest.mark.parametrize("name", PROBLEMS)
@every_kind
def test_gap_of_one_millionth(kind, name):
    load, params = PROBLEMS[name]
    X, y = standard(load)
    model = SVC(multi_class=kind, tol=1e-6, **params).fit(X, y)
    checked = audit(model, X, y)
    assert model.certificate_.kind == checked.kind == "optimal"
    assert model.certificate_.holds
    assert checked.holds
    np.testing.assert_allclose(model.certificate_.objective, checked.objective, rtol=1e-9)
    np.testing.assert_allclose(model.objective(X, y).total, checked.objective, rtol=1e-9)


@every_kind
def test_ten_classes_in_batches(kind):
    X, y = load_digits(return_X_y=True)
    X, y = X[:700], np.array([f"digit {i}" for i in y[:700]])
    model = SVC(multi_class=kind, tol=1e-6).fit(X, y)
    assert audit(model, X, y).holds
    assert model.dual_coef_.shape == (10, len(model.support_))
    assert model.decision_function(X[:5]).shape == (5, 10)
    assert model.slacks_.shape == (700,)
    (history,) = model.history_
    best = model.certificate_.objective
    for mark in history:  # every gap on the way is true
        assert mark.objective * (1 - mark.gain) <= best * (1 + 1e-9)
        assert mark.objective >= best * (1 - 1e-6)
    small = SVC(multi_class=kind, cache_size=0.2).fit(X, y)  # 35 rows
    assert audit(small, X, y).holds
    assert small.certificate_.bound <= best
    assert SVC(multi_class=kind, tol=1e-4, max_iter=200).fit(X[:300], y[:300]).certificate_.holds


@every_kind
def test_rows_are_of_the_kind_their_coefficients_say(kind):
    X, y = three()
    model = SVC(multi_class=kind).fit(X, y)
    F = model.decision_function(X)
    np.testing.assert_allclose(F.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-12)
    behind = F - F[np.arange(len(y)), y][:, None] + (2.0 if kind == "weston-watkins" else 1.0)
    behind[np.arange(len(y)), y] = -np.inf
    worst, kinds = behind.max(axis=1), model.support_kinds_
    np.testing.assert_allclose(worst[kinds == "margin"], 0.0, atol=1e-7)
    assert (worst[kinds == "none"] <= 1e-7).all()
    assert (worst[kinds == "non-margin"] >= -1e-7).all()
    assert len(set(kinds)) == 3
    assert model.kkt_residuals_.max() <= 1e-7
    assert set(np.flatnonzero(kinds != "none")) == set(model.support_)


def _drop(model):
    model.dual_coef_[:, int(np.abs(model.dual_coef_).max(axis=0).argmax())] = 0.0


def _swap(model):
    model.dual_coef_[[0, 1]] = model.dual_coef_[[1, 0]]


def _swap_two(model):
    size = np.abs(model.dual_coef_).sum(axis=0)
    i, j = int(size.argmax()), int(size.argmin())
    model.dual_coef_[:, [i, j]] = model.dual_coef_[:, [j, i]]


def _bias(model):
    model.intercept_[0] += 0.05


def _biases(model):
    model.intercept_ += 0.05


def _own(model):
    model.dual_coef_[0, 0] *= 1.01


def _scale(model):
    model.dual_coef_ *= 1.05


def _slack(model):
    model.slacks_[model.slacks_.argmax()] *= 0.9


def _residual(model):
    model.kkt_residuals_[0] += 0.1


def _kind(model):
    model.support_codes_[0] = (model.support_codes_[0] + 1) % 3


def _vector(model):
    model.support_vectors_[0] += 0.1


@pytest.mark.parametrize(
    "damage", [_drop, _swap, _swap_two, _bias, _biases, _own, _scale, _slack, _residual, _kind, _vector]
)
@every_kind
def test_damage_is_noticed(kind, damage):
    X, y = three()
    model = SVC(multi_class=kind).fit(X, y)
    assert audit(model, X, y).holds
    damage(model)
    assert not audit(model, X, y).holds


@every_kind
def test_no_machine_is_below_the_bound(kind):
    """Neither one that is moved a little, nor those of other prices, nor the other kind's."""
    X, y = three()
    model = SVC(multi_class=kind, tol=1e-2).fit(X, y)
    bound = audit(model, X, y).bound
    assert bound <= model.objective(X, y).total
    rng = np.random.default_rng(0)
    others = [SVC(multi_class=kind, C=C).fit(X, y).set_params(C=1.0) for C in (0.1, 0.9, 1.1, 10.0)]
    others.append(SVC(multi_class=KINDS[kind == KINDS[0]]).fit(X, y).set_params(multi_class=kind))
    for size in (1e-4, 1e-3, 1e-2, 0.1):
        near = copy.deepcopy(model)
        near.dual_coef_ *= 1 + size * rng.normal(size=near.dual_coef_.shape)
        near.intercept_ += size * rng.normal(size=3)
        others.append(near)
    for other in others:
        assert bound <= other.objective(X, y).total
        assert audit(other, X, y).bound <= model.objective(X, y).total
        assert not audit(other, X, y, tol=1e-6).holds


@pytest.mark.parametrize("limit", [{"max_iter": 0}, {"max_iter": 2}, {"max_time": 0.0}])
@every_kind
def test_stopped_early_says_what_is_proved(kind, limit):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    best = SVC(multi_class=kind).fit(X, y).certificate_
    with pytest.warns(CertificateWarning, match="of the optimum; asked for 0.001"):
        model = SVC(multi_class=kind, **limit).fit(X, y)
    for found in (model.certificate_, audit(model, X, y)):
        assert not found.holds
        assert found.bound <= best.objective
        assert found.objective >= best.bound
    assert set(model.predict(X)) <= set(y)


# ------------------------------------------------------------------------------------- same answer, same bits
@every_kind
def test_names_of_classes_and_order_of_rows_do_not_matter(kind):
    X, y = standard(load_wine)
    order = np.random.default_rng(0).permutation(len(y))
    renamed = np.array([2, 0, 1])[y]  # class c is now column renamed[c]
    plain = SVC(multi_class=kind).fit(X, y).decision_function(X)
    np.testing.assert_allclose(SVC(multi_class=kind).fit(X[order], y[order]).decision_function(X), plain, atol=1e-8)
    other = SVC(multi_class=kind).fit(X, renamed).decision_function(X)
    np.testing.assert_allclose(other[:, [2, 0, 1]], plain, atol=1e-8)


@every_kind
def test_weights_are_repeated_rows(kind):
    X, y = three()
    times = np.arange(len(X)) // 3 % 3
    keep = times > 0
    weighted = SVC(multi_class=kind).fit(np.where(keep[:, None], X, 1e6), y, sample_weight=times)
    repeated = SVC(multi_class=kind).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-7)
    assert audit(weighted, np.where(keep[:, None], X, 1e6), y, times).holds
    assert (weighted.support_kinds_[~keep] == "none").all()


@every_kind
def test_a_class_without_weight_is_not_there(kind):
    X, y = three()
    w = (y != 1).astype(float)
    model = SVC(multi_class=kind, gamma=0.2).fit(X, y, w)
    assert model.classes_.tolist() == [0, 2]
    rest = SVC(multi_class=kind, gamma=0.2).fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(model.decision_function(X), rest.decision_function(X), atol=1e-7)
    assert audit(model, X, y, w).holds


@every_kind
def test_forms_of_the_same_rows(kind):
    X, y = standard(load_iris)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    settings = {"multi_class": kind, "gamma": 0.3}
    plain = SVC(**settings).fit(X, y)
    F = plain.decision_function(X)
    G = rbf_kernel(X, gamma=0.3)
    given = SVC(multi_class=kind, kernel="precomputed").fit(G, y)
    thin = SVC(**settings).fit(sparse.csr_array(X), y)
    called = SVC(multi_class=kind, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3)).fit(X, y)
    np.testing.assert_allclose(given.decision_function(G), F, atol=1e-7)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_array(X)), F, atol=1e-7)
    np.testing.assert_allclose(called.decision_function(X), F, atol=1e-7)
    single = SVC(**settings).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X.astype(np.float32)), F, atol=1e-4)
    for model, table in ((given, G), (thin, sparse.csr_array(X)), (called, X), (single, X.astype(np.float32))):
        assert audit(model, table, y).holds


@every_kind
def test_any_number_of_threads_gives_the_same_bits(kind, threads):
    X, y = three(4200)
    seen = []
    for n in (1, 2):
        threads(n)
        seen.append(SVC(multi_class=kind, tol=0.3, C=0.1).fit(X, y))
    assert seen[0].dual_coef_.tobytes() == seen[1].dual_coef_.tobytes()
    assert seen[0].certificate_ == seen[1].certificate_
    assert audit(seen[0], X, y).holds  # kernel values were float32


# ---------------------------------------------------------------------------------------- hard and degenerate
@every_kind
def test_the_same_rows_in_every_class(kind):
    """Nothing can be learnt: scores are 0, and every row costs its margin, once or for each rival."""
    X, _ = three(30)
    y = np.repeat([0, 1, 2], len(X))
    for table in (np.tile(X, (3, 1)), np.zeros((90, 2))):
        model = SVC(multi_class=kind).fit(table, y)
        np.testing.assert_allclose(model.decision_function(table), 0.0, atol=1e-7)
        np.testing.assert_allclose(model.certificate_.objective, 90 * (4 if kind == KINDS[0] else 1), rtol=1e-8)


@every_kind
def test_columns_of_any_scale_and_huge_c(kind):
    X, y = load_wine(return_X_y=True)
    unscaled = SVC(multi_class=kind, kernel="linear").fit(X, y)
    assert audit(unscaled, X, y).holds
    X = StandardScaler().fit_transform(X)
    hard = SVC(multi_class=kind, kernel="linear", C=1e10).fit(X, y)
    assert audit(hard, X, y).holds
    assert (hard.support_kinds_ != "non-margin").all()
    with pytest.warns(CertificateWarning, match="of the optimum; asked for"):  # losses of rounding alone cost more
        hopeless = SVC(multi_class=kind, kernel="linear", C=1e10).fit(X * np.logspace(-4, 4, 13), y)
    assert np.isfinite(hopeless.decision_function(X)).all()


# ------------------------------------------------------------------------------------------ numba and NumPy
def limits(kind, y, k, u):
    return JOINT_SCHEMES[kind].limits(y[:, None] == np.arange(k), u[:, None])


@every_kind
@pytest.mark.compiled
def test_loop_projects_as_bisection_does(kind):
    rng = np.random.default_rng(0)
    y, u = rng.integers(4, size=200), rng.exponential(size=200)
    bounds = low, high = limits(kind, y, 4, u)
    V = rng.normal(size=(200, 4)) * rng.choice([0.01, 1.0, 100.0], (200, 1))
    found = project_rows(V, bounds)
    for row in range(200):

        def total(t, row=row):
            return np.clip(V[row] - t, low[row], high[row]).sum()

        t = optimize.brentq(total, -1e4, 1e4, xtol=1e-14)
        np.testing.assert_allclose(found[row], np.clip(V[row] - t, low[row], high[row]), atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)


@every_kind
@pytest.mark.compiled
def test_loop_violations_are_those_of_every_pair(kind):
    rng = np.random.default_rng(0)
    y, u = rng.integers(3, size=40), np.ones(40)
    bounds = low, high = limits(kind, y, 3, u)
    beta = project_rows(2 * rng.normal(size=(40, 3)), bounds)
    G = rng.normal(size=(40, 3))
    pairs, rows = np.full((3, 3), -np.inf), np.zeros(40)
    for i in range(40):
        for c in range(3):
            for e in range(3):
                if c != e and beta[i, c] < high[i, c] and beta[i, e] > low[i, e]:
                    pairs[c, e] = max(pairs[c, e], G[i, c] - G[i, e])
                    rows[i] = max(rows[i], G[i, c] - G[i, e])
    np.testing.assert_array_equal(worst_pairs(G, beta, bounds), pairs)
    missed, pair = violations(G, beta, bounds)
    np.testing.assert_array_equal(missed, rows)
    here = missed > 0
    np.testing.assert_array_equal((G[np.arange(40), pair // 3] - G[np.arange(40), pair % 3])[here], rows[here])


@every_kind
@pytest.mark.compiled
def test_loop_rows_end_where_nothing_moves_and_in_balance(kind):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 3))
    y, u = np.arange(30) % 3, np.full(30, 0.3)
    bounds = low, high = limits(kind, y, 3, u)
    K, beta, r, G = Z @ Z.T + 1.0, np.zeros((30, 3)), np.zeros(3), np.zeros((3, 30))
    G[y, np.arange(30)] = 1.0
    start = G.copy()
    assert solve_rows(K, G, beta, bounds, r, 1.0, 1e-9, 10_000) <= 1e-9
    np.testing.assert_allclose(r, beta.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(r, 0.0, atol=1e-8)
    assert violations(np.ascontiguousarray(G.T), beta, bounds)[0].max() <= 1e-8
    np.testing.assert_allclose(np.ptp(start - (K @ beta).T - G, axis=1), 0.0, atol=1e-8)  # biases are left
    assert ((beta >= low) & (beta <= high)).all()


@every_kind
@pytest.mark.compiled
def test_loop_restores_balance(kind):
    rng = np.random.default_rng(0)
    y, u = np.arange(60) % 4, rng.exponential(size=60)
    bounds = low, high = limits(kind, y, 4, u)
    for _ in range(20):
        beta = project_rows(rng.normal(size=(60, 4)), bounds)
        r = beta.sum(axis=0)
        restore_balance(rng.normal(size=(4, 60)), beta, bounds, r, 1e-13)
        np.testing.assert_allclose(beta.sum(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-12)
        assert ((beta >= low - 1e-13) & (beta <= high + 1e-13)).all()


def test_the_biases_make_the_worst_violation_least():
    """Against a linear program."""
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        for _ in range(20):
            m = np.where(rng.random((k, k)) < 0.8, rng.normal(size=(k, k)), -np.inf)
            np.fill_diagonal(m, -np.inf)
            m[np.arange(k), np.roll(np.arange(k), 1)] = rng.normal(size=k)  # at least one cycle
            b = least_worst_biases(m)
            c, e = np.nonzero(np.isfinite(m))
            A = np.zeros((len(c), k + 1))
            A[np.arange(len(c)), c], A[np.arange(len(c)), e], A[:, k] = -1.0, 1.0, -1.0
            best = optimize.linprog(np.eye(k + 1)[k], A, -m[c, e], bounds=(None, None)).fun
            np.testing.assert_allclose((m - b[:, None] + b).max(), best, atol=1e-9)
            np.testing.assert_allclose(b.sum(), 0.0, atol=1e-12)


@pytest.mark.parametrize("scheme", ["weston-watkins", "crammer-singer"])
def test_of_equally_good_biases_of_two_classes_the_middle_ones_are_taken(scheme):
    # Balanced classes and a C so small that every row is beyond its margin: any bias between the margins is best.
    X, y = np.array([[-1.5], [-8.7], [-0.7], [-6.5], [1.4]]), [0, 1, 1, 1, 0]
    model = SVC(C=4e-4, class_weight="balanced", gamma="auto", multi_class=scheme).fit(X, y)
    assert abs(model.intercept_[1]) < 1e-2
    assert audit(model, X, y).holds
    model.intercept_ = np.array([-0.5, 0.5])
    assert not audit(model, X, y).holds
