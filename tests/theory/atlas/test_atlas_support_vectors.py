"""The statements of docs/atlas/05_support_vectors on data; each with a broken variant that must fail."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.preprocessing import PolynomialFeatures

from certifit import SVC, HardMarginSVC, LinearSVC, NoSolutionError, Polynomial, is_psd, load_penguins
from certifit.losses import Hinge, HuberisedHinge

BIRDS = load_penguins().dropna()
IRIS = load_iris()
PETALS, SPECIES = IRIS.data[:, 2:], IRIS.target_names[IRIS.target]


def columns(*names):
    """Measurements of the penguins, of mean 0 and variance 1."""
    X = BIRDS[list(names)].to_numpy(dtype=float)
    return (X - X.mean(axis=0)) / X.std(axis=0)


# ------------------------------------------------------------------------------------------------- losses
BODY, GENTOO = columns("flipper_length_mm", "body_mass_g"), np.where(BIRDS["species"] == "Gentoo", 1, -1)


def bounds_the_errors(losses, margins):
    """Row by row, on the rows and on a grid of margins, a loss is at least 1 for an error and 0 else."""
    return bool((losses >= (margins <= 0)).all())


def test_hinge_bounds_the_errors():
    model = LinearSVC(loss="hinge", C=0.5).fit(BODY, GENTOO)
    margins = GENTOO * model.decision_function(BODY)
    errors = int((model.predict(BODY) != GENTOO).sum())
    assert errors > 5  # the bound is about something
    for m in (margins, np.linspace(-5, 5, 1001)):
        assert bounds_the_errors(Hinge().value(m), m)
    assert errors <= Hinge().value(margins).sum() <= model.certificate_.objective / 0.5


def test_control_without_the_one_errors_cost_too_little():
    model = LinearSVC(loss="hinge", C=0.5).fit(BODY, GENTOO)
    margins = GENTOO * model.decision_function(BODY)
    assert not bounds_the_errors(np.maximum(0, -margins), margins)
    assert np.maximum(0, -margins).sum() < (margins <= 0).sum()


def joins(value, points, step=1e-6):
    """The value and the slope come to the same from both sides at every one of these points."""
    m = np.asarray(points)
    left, here, right = value(m - step), value(m), value(m + step)
    jump, kink = np.abs(right - left), np.abs((right - here) - (here - left)) / step
    return bool((jump < 10 * step).all() and (kink < 1e-4).all())


def gradient_vanishes(model, slopes, y, X):
    """w = -C Σ φ'(m) y x, and the slopes of the two classes balance (the gradient of the free intercept)."""
    misses = model.coef_[0] + (slopes * y) @ X
    return bool(np.abs(np.append(misses, slopes @ y)).max() < 1e-5)


@pytest.mark.parametrize("h", [0.1, 0.5, 1.0])
def test_huber_joins_line_and_parabola(h):
    assert joins(HuberisedHinge(h).value, [1 - h, 1.0, 1 + h])
    m = np.linspace(-3, 3, 2001)
    above = HuberisedHinge(h).value(m) - np.maximum(0, 1 - m)
    assert -1e-12 <= above.min() <= above.max() <= h / 4 + 1e-12


def test_the_gradient_of_a_machine_with_slopes_everywhere_vanishes():
    model = LinearSVC(loss="huberised_hinge", penalize_intercept=False, tol=1e-12).fit(BODY, GENTOO)
    m = GENTOO * model.decision_function(BODY)
    slopes = np.where(m > 1.5, 0.0, np.where(m < 0.5, -1.0, (m - 1.5)))  # by hand, for h = ½
    assert gradient_vanishes(model, slopes, GENTOO, BODY)


def test_control_another_parabola_does_not_join():
    h = 0.5

    def twice_as_steep(m):
        return np.where(m > 1 + h, 0.0, np.where(m < 1 - h, 1 - m, (1 + h - m) ** 2 / (2 * h)))

    assert not joins(twice_as_steep, [1 - h, 1 + h])


def test_control_the_hinge_has_no_slope_at_its_kink():
    assert not joins(Hinge().value, [1.0])
    model = LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-12).fit(BODY, GENTOO)
    m = GENTOO * model.decision_function(BODY)
    for at_the_kink in (-1.0, 0.0):
        slopes = np.where(np.abs(m - 1) < 1e-6, at_the_kink, np.where(m < 1, -1.0, 0.0))
        assert not gradient_vanishes(model, slopes, GENTOO, BODY)


# ------------------------------------------------------------------------------------------------- duality
TWO = (BIRDS["species"] != "Gentoo").to_numpy()
BILLS, SIDE = columns("bill_depth_mm", "bill_length_mm")[TWO], np.where(BIRDS["species"][TWO] == "Chinstrap", 1, -1)
MACHINES = {C: SVC(kernel="linear", C=C).fit(BILLS, SIDE) for C in (0.1, 1.0, 10.0)}


def dual_variables(model):
    """α of every row."""
    alpha = np.zeros(len(SIDE))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


def primal_is_dual(C, w, b, alpha):
    """α is feasible, makes w, and has the primal's value; so complementary slackness holds row by row."""
    made = (alpha * SIDE) @ BILLS
    slack = np.maximum(0, 1 - SIDE * (BILLS @ w + b))
    primal, dual = w @ w / 2 + C * slack.sum(), alpha.sum() - made @ made / 2
    feasible = alpha.min() >= 0 and alpha.max() <= C * (1 + 1e-12) and abs(alpha @ SIDE) < 1e-9 * C * len(SIDE)
    idle = alpha * (SIDE * (BILLS @ w + b) - 1 + slack), (C - alpha) * slack
    return bool(
        feasible
        and abs(primal - dual) < 1e-6 * primal
        and np.abs(made - w).max() < 1e-5
        and np.abs(idle).max() < 1e-4 * C
    )


@pytest.mark.parametrize("C", MACHINES)
def test_primal_is_dual(C):
    model = MACHINES[C]
    assert primal_is_dual(C, model.coef_[0], model.intercept_[0], dual_variables(model))


def test_control_other_dual_points_stay_below():
    model = MACHINES[1.0]
    alpha = dual_variables(model)
    assert not primal_is_dual(1.0, model.coef_[0], model.intercept_[0], 0.9 * alpha)
    assert not primal_is_dual(1.0, model.coef_[0], model.intercept_[0], np.clip(alpha, 0.1, 0.9))
    assert not primal_is_dual(1.0, 1.1 * model.coef_[0], model.intercept_[0], alpha)


def kinds_follow(C, model, alpha):
    """A row's margin is 1 where 0 < α < C, at most 1 where α = C, at least 1 where α = 0, and errors have α = C."""
    m = SIDE * model.decision_function(BILLS)
    on, bound = (alpha > 1e-9 * C) & (alpha < C * (1 - 1e-9)), alpha >= C * (1 - 1e-9)
    kinds = on, bound & (m > 0), bound & (m <= 0), ~on & ~bound
    placed = np.abs(m[on] - 1).max() < 1e-5 and m[bound].max() < 1 + 1e-5 and m[~on & ~bound].min() > 1 - 1e-5
    return bool(placed and all(kind.any() for kind in kinds) and bound[m <= 0].all())


def test_rows_are_of_the_kind_their_dual_variable_says():
    assert kinds_follow(1.0, MACHINES[1.0], dual_variables(MACHINES[1.0]))


def test_control_kinds_by_another_C():
    assert not kinds_follow(1.0, MACHINES[10.0], dual_variables(MACHINES[1.0]))


def each_is_best_for_its_own(machines, strengths):
    """λ/2 |w|² + Σ ξ is least, of all these machines, for the one that goes with this λ."""
    slacks = np.array([np.maximum(0, 1 - SIDE * model.decision_function(BILLS)).sum() for model in machines])
    norms = np.array([model.coef_[0] @ model.coef_[0] for model in machines])
    values = np.outer(strengths, norms) / 2 + slacks
    return values.argmin(axis=1).tolist() == list(range(len(machines)))


def test_C_is_one_over_lambda():
    assert each_is_best_for_its_own(MACHINES.values(), [1 / C for C in MACHINES])


def test_control_C_is_not_lambda():
    assert not each_is_best_for_its_own(MACHINES.values(), list(MACHINES))


# ------------------------------------------------------------------------------------------------- features, kernels
ADELIE = np.where(BIRDS["species"] == "Adelie", 1, -1)
BILL = columns("bill_length_mm", "bill_depth_mm")


def separable(X, y, degree):
    """Whether the linear program y (w·φ(x) + b) >= 1 over all products up to this degree has a solution (HiGHS)."""
    features = PolynomialFeatures(degree).fit_transform(X) * y[:, None]
    free = np.zeros(features.shape[1])
    return linprog(free, A_ub=-features, b_ub=-np.ones(len(y)), bounds=(None, None)).status == 0


def finds_a_margin(X, y, degree):
    try:
        model = HardMarginSVC(kernel="poly", degree=degree, coef0=1.0, gamma=1.0, ridge=0.0).fit(X, y)
    except NoSolutionError:
        return False
    return bool((y * model.decision_function(X) > 0).all())


def test_features_make_rows_separable():
    found = [finds_a_margin(BILL, ADELIE, degree) for degree in (1, 2, 3)]
    assert found == [separable(BILL, ADELIE, degree) for degree in (1, 2, 3)] == [False, False, True]


def test_control_equal_rows_are_never_separated():
    assert not separable(BODY, ADELIE, 4)
    assert not finds_a_margin(BODY, ADELIE, 4)
    alike = {tuple(x) for x in BODY[ADELIE > 0]} & {tuple(x) for x in BODY[ADELIE < 0]}
    assert alike


ROOT = np.sqrt(2)


def explicit(X, root=ROOT):
    """1, √2 x_j, x_j² and √2 x_i x_j, in a loop over columns."""
    parts = [np.ones(len(X)), *(root * X.T)]
    for i in range(X.shape[1]):
        parts += [X[:, i] * X[:, j] * (1 if i == j else root) for j in range(i, X.shape[1])]
    return np.column_stack(parts)


def is_inner_product(G, features):
    """G has the inner products of these features, and no eigenvalue below 0 but for rounding (LAPACK)."""
    size = np.abs(G).max()
    return bool(
        np.abs(G - features @ features.T).max() < 1e-12 * size and np.linalg.eigvalsh(G)[0] > -1e-12 * size * len(G)
    )


FOUR = columns("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")


def test_a_kernel_is_an_inner_product():
    G = Polynomial(2, coef0=1.0)(FOUR, FOUR)
    assert is_inner_product(G, explicit(FOUR))
    assert is_psd(G)


def test_control_a_map_without_roots_of_two():
    assert not is_inner_product(Polynomial(2, coef0=1.0)(FOUR, FOUR), explicit(FOUR, root=1.0))


def same_machine(one, other, X, map_of_other):
    return np.allclose(one.decision_function(X), other.decision_function(map_of_other(X)), atol=1e-4)


def test_the_machine_on_the_map_is_the_kernel_machine():
    kernel = SVC(kernel=Polynomial(2, coef0=1.0)).fit(BILLS, SIDE)
    mapped = SVC(kernel="linear").fit(explicit(BILLS), SIDE)
    assert same_machine(kernel, mapped, BILLS, explicit)


def test_control_a_machine_on_another_map_is_another():
    kernel = SVC(kernel=Polynomial(2, coef0=1.0)).fit(BILLS, SIDE)
    other = SVC(kernel="linear").fit(explicit(BILLS, root=1.0), SIDE)
    assert not same_machine(kernel, other, BILLS, lambda X: explicit(X, root=1.0))


def test_control_a_function_that_is_no_kernel():
    distances = np.linalg.norm(FOUR[:, None] - FOUR, axis=2)
    values, vectors = np.linalg.eigh(distances)
    assert not is_inner_product(distances, vectors * np.sqrt(np.maximum(0, values)))
    answer = is_psd(distances)
    assert not answer
    assert answer.witness @ distances @ answer.witness < 0


# ------------------------------------------------------------------------------------------------- several classes
RARE = {"versicolor": np.r_[0:50, 50:65, 100:150], "setosa": np.r_[0:15, 50:150]}


def in_the_middle(X, own):
    """The mean of the class is a mean of other rows with shares of at most 1/m each (a linear program by HiGHS)."""
    others = X[~own]
    A = np.column_stack([others, np.ones(len(others))]).T
    b = np.append(X[own].mean(axis=0), 1.0)
    return linprog(np.zeros(len(others)), A_eq=A, b_eq=b, bounds=(0, 1 / own.sum())).status == 0


def machine_is_constant(name):
    """The machine of this rare class against the rest has w = 0, and costs 2 C m."""
    X, own = PETALS[RARE[name]], SPECIES[RARE[name]] == name
    model = LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-10).fit(X, own)
    cost = model.certificate_.objective
    return bool(np.abs(model.coef_).max() < 1e-5 and abs(cost - 2 * own.sum()) < 1e-5 * cost)


def test_the_machine_of_a_class_in_the_middle_is_constant():
    assert in_the_middle(PETALS[RARE["versicolor"]], SPECIES[RARE["versicolor"]] == "versicolor")
    assert machine_is_constant("versicolor")


def test_control_a_class_at_the_edge_has_a_machine():
    assert not in_the_middle(PETALS[RARE["setosa"]], SPECIES[RARE["setosa"]] == "setosa")
    assert not machine_is_constant("setosa")


def keeps_every_class(model, X, y, share=0.8):
    """Of the rows of each class, at least this share is recognised."""
    return all(np.mean(model.predict(X[y == name]) == name) >= share for name in np.unique(y))


@pytest.mark.parametrize("kind", ["weston-watkins", "crammer-singer"])
def test_a_joint_machine_keeps_the_class_in_the_middle(kind):
    X, y = PETALS[RARE["versicolor"]], SPECIES[RARE["versicolor"]]
    assert keeps_every_class(LinearSVC(multi_class=kind, penalize_intercept=False).fit(X, y), X, y)


def test_control_separate_machines_lose_it():
    X, y = PETALS[RARE["versicolor"]], SPECIES[RARE["versicolor"]]
    assert not keeps_every_class(LinearSVC(loss="hinge", penalize_intercept=False).fit(X, y), X, y)
