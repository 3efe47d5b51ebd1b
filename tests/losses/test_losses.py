"""Losses: one battery for all of them, then what is particular to losses of the margin.

Expected values come from central differences, suprema over a grid, SciPy's scalar minimiser, NumPy and SciPy
formulas, 360-digit decimals, scikit-learn, and the examples of Bartlett, Jordan & McAuliffe (JASA 101, 2006).
"""

import pickle
from dataclasses import FrozenInstanceError, dataclass
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import entropy
from sklearn.metrics import hinge_loss, log_loss

from certifit import DataError
from certifit.losses import (
    EpsilonInsensitive,
    Exponential,
    Hinge,
    HuberisedHinge,
    Logistic,
    MarginLoss,
    Quadratic,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    ZeroOne,
)
from certifit.losses.plots import plot_losses

getcontext().prec = 360
CONVEX_MARGIN = [
    Hinge(),
    SquaredHinge(),
    HuberisedHinge(),
    HuberisedHinge(1.0),
    HuberisedHinge(0.01),
    Quadratic(),
    Logistic(),
    Logistic(base=2),
    Logistic(base=10),
    Exponential(),
]
RESIDUAL = [cls(e) for cls in (EpsilonInsensitive, SquaredEpsilonInsensitive) for e in (0.0, 0.25, 3.0)]
CONVEX = [*CONVEX_MARGIN, *RESIDUAL]
each_convex = pytest.mark.parametrize("loss", CONVEX, ids=str)
each_margin = pytest.mark.parametrize("loss", CONVEX_MARGIN, ids=str)
each_loss = pytest.mark.parametrize("loss", [*CONVEX, ZeroOne()], ids=str)

X = np.linspace(-6, 6, 97) + 0.0123  # not at a kink or a jump of the curvature
GRID = np.linspace(-60, 60, 120_001)  # steps of 0.001
EXTREMES = np.array([-np.inf, -1e300, -1e200, -1e30, -800.0, -1.0, 0.0, 1.0, 800.0, 1e30, 1e200, 1e300, np.inf])
reals = st.floats(-50, 50)


# ------------------------------------------------------------------------------------------------ definitions
def test_values_by_definition():
    """Formulas as the papers print them; for the Huberised hinge, Chapelle (2007)."""
    h = 0.5
    pieces = [h + 1 < X, np.abs(1 - X) <= h, 1 - h > X]
    printed = {
        Hinge(): np.where(X < 1, 1 - X, 0),
        SquaredHinge(): np.where(X < 1, (1 - X) ** 2, 0),
        HuberisedHinge(h): np.select(pieces, [0 * X, (1 + h - X) ** 2 / (4 * h), 1 - X]),
        Quadratic(): (1 - X) ** 2,
        Logistic(): np.log(1 + np.exp(-X)),
        Logistic(base=2): np.log2(1 + np.exp(-X)),
        Exponential(): np.exp(-X),
        ZeroOne(): np.where(X <= 0, 1, 0),
        EpsilonInsensitive(0.25): np.where(np.abs(X) > 0.25, np.abs(X) - 0.25, 0),
        SquaredEpsilonInsensitive(0.25): np.where(np.abs(X) > 0.25, (np.abs(X) - 0.25) ** 2, 0),
    }
    for loss, expected in printed.items():
        np.testing.assert_allclose(loss.value(X), expected, rtol=1e-13, atol=1e-15, err_msg=loss.name)


def test_means_against_scikit_learn():
    rng = np.random.default_rng(0)
    y, f = np.repeat([-1, 1], 20), rng.normal(size=40)
    assert Hinge().value(y * f).mean() == pytest.approx(hinge_loss(y, f))
    assert Logistic().value(y * f).mean() == pytest.approx(log_loss(y, expit(f)))
    assert ZeroOne().value(y * f).mean() == np.mean(np.sign(f) != y)


@pytest.mark.parametrize("m", [-700.0, -30.0, -1e-9, 0.25, 30.0, 700.0])
def test_logistic_to_the_last_digits(m):
    tail = (-Decimal(m)).exp()
    assert Logistic().value(m) == pytest.approx(float((1 + tail).ln()), rel=4e-16, abs=0)
    assert Logistic().derivative(m) == pytest.approx(float(-tail / (1 + tail)), rel=4e-16, abs=0)
    assert Logistic().second_derivative(m) == pytest.approx(float(tail / (1 + tail) ** 2), rel=8e-16, abs=0)


# ------------------------------------------------------------------------------------------------ derivatives
@each_loss
def test_derivatives_against_central_differences(loss):
    h = 1e-5
    slope = (loss.value(X + h) - loss.value(X - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(X), slope, rtol=1e-7, atol=1e-8)
    curvature = (loss.derivative(X + h) - loss.derivative(X - h)) / (2 * h)
    np.testing.assert_allclose(loss.second_derivative(X), curvature, rtol=1e-7, atol=1e-8)


@each_convex
def test_smoothness_is_the_largest_slope_of_the_derivative(loss):
    at = np.append(GRID, [*loss.kinks, 1.0])
    steepest = (np.diff(loss.derivative(GRID)) / np.diff(GRID)).max()
    if np.isfinite(loss.smoothness):
        assert loss.second_derivative(at).max() == pytest.approx(loss.smoothness, rel=1e-6)
        assert steepest <= loss.smoothness * (1 + 1e-6)
    else:
        assert steepest > 900  # a jump of the derivative over a step of 0.001, or a curvature that grows for ever


@each_convex
def test_kinks_are_where_the_derivative_jumps(loss):
    step = 1e-9
    for kink in loss.kinks:
        assert loss.derivative(kink + step) - loss.derivative(kink - step) >= 1
        assert loss.derivative(kink) == loss.second_derivative(kink) == 0
    away = GRID[(GRID > -5) & np.all(np.abs(GRID[:, None] - np.array([*loss.kinks, np.inf])) > 2 * step, axis=1)]
    assert np.all(np.abs(loss.derivative(away + step) - loss.derivative(away - step)) < 1e-6)


def test_where_the_curvature_jumps_it_is_the_larger():
    assert SquaredHinge().second_derivative(1.0) == 2
    assert HuberisedHinge(0.25).second_derivative([0.75, 1.25]).tolist() == [2, 2]
    assert SquaredEpsilonInsensitive(0.25).second_derivative([-0.25, 0.25]).tolist() == [2, 2]
    assert SquaredEpsilonInsensitive(0.0).second_derivative(0.0) == 2  # least squares: no jump at all


# ------------------------------------------------------------------------------------------------ conjugates
def conjugate_points(loss):
    low, high = np.clip(loss.domain, -20, 20)
    return np.linspace(low, high, 41)


@each_convex
def test_conjugate_against_the_supremum(loss):
    """sup of u x - φ(x): over a fine grid, which reaches every slope of the domain but its open ends."""
    low, high = loss.domain
    for u in conjugate_points(loss):
        sup = (u * GRID - loss.value(GRID)).max()
        assert loss.conjugate(u) == pytest.approx(sup, rel=1e-5, abs=1e-5)
        assert loss.conjugate(u) >= sup - 1e-12 * abs(sup)
    for end, far in ((low, -1e12), (high, 1e12)):
        beyond = end + 1e-9 * np.sign(far)
        assert loss.conjugate(beyond) == np.inf
        if np.isfinite(end):  # the supremum grows for ever
            assert beyond * far - loss.value(far) > 900


@each_convex
def test_fenchel_young(loss):
    """φ(x) + φ*(u) >= x u for all x and u, with equality at u = φ'(x)."""
    u = conjugate_points(loss)
    excess = loss.value(X)[:, None] + loss.conjugate(u) - X[:, None] * u
    assert excess.min() >= -1e-12
    slope = loss.derivative(X)
    np.testing.assert_allclose(loss.conjugate(slope), X * slope - loss.value(X), rtol=1e-11, atol=1e-11)
    for kink in loss.kinks:  # every subgradient gives equality at a kink
        between = np.linspace(loss.derivative(kink - 0.1), loss.derivative(kink + 0.1), 7)
        np.testing.assert_allclose(loss.value(kink) + loss.conjugate(between), kink * between, atol=1e-15)


@each_convex
def test_biconjugate_is_the_loss(loss):
    """Fenchel & Moreau: sup over u of x u - φ*(u) is φ(x) again, exactly if φ is convex and closed."""
    low, high = np.clip(loss.domain, -500, 500)
    near = np.geomspace(1e-6, 1, 2001)  # small slopes, where the conjugates of smooth losses bend most
    u = np.unique(np.clip(np.concatenate([np.linspace(low, high, 40_001), -near, near]), low, high))
    twice = np.array([(x * u - loss.conjugate(u)).max() for x in X])
    np.testing.assert_allclose(twice, loss.value(X), rtol=2e-4, atol=2e-4)
    assert np.all(twice <= loss.value(X) * (1 + 1e-12) + 1e-12)


def test_zero_one_jumps_and_has_the_conjugate_of_nothing():
    loss = ZeroOne()
    assert loss.value([-5e-324, 0.0, 5e-324]).tolist() == [1, 1, 0]
    assert loss.conjugate([-1.0, 0.0, 1e-300]).tolist() == [np.inf, 0.0, np.inf]
    assert not loss.convex
    with pytest.raises(DataError, match=r"proximal step of the 0-1 loss; wanted one of a convex loss.*Hinge"):
        loss.prox(0.0)


def test_conjugates_keep_small_numbers():
    """q log q + (1 - q) log(1 - q) and v log v - v near 0, in decimals."""
    q = Decimal("1e-20")
    assert Logistic().conjugate(-1e-20) == pytest.approx(float(q * q.ln() + (1 - q) * (1 - q).ln()), rel=1e-15, abs=0)
    assert Exponential().conjugate(-1e-300) == pytest.approx(1e-300 * (np.log(1e-300) - 1), rel=1e-15, abs=0)
    assert Exponential().conjugate(-5e-324) <= 0


# ------------------------------------------------------------------------------------------------ proximal steps
@each_convex
def test_prox_is_optimal(loss):
    """(v - x)/t is a subgradient at x: between the derivatives just left and just right of it."""
    v, t = (a.ravel() for a in np.meshgrid(np.linspace(-30, 30, 241), [1e-6, 0.03, 1.0, 7.0, 1e3]))
    x = loss.prox(v, t)
    room = 1e-9 * (1 + np.abs(x))
    force = (v - x) / t
    slack = 1e-8 * (1 + np.abs(force)) + 1e-14 * (np.abs(v) + np.abs(x)) / t
    assert np.all(loss.derivative(x - room) <= force + slack)
    assert np.all(force - slack <= loss.derivative(x + room))


@each_convex
def test_prox_against_scipy(loss):
    for v, t in [(-3.0, 0.5), (-0.2, 2.0), (0.9, 0.3), (1.2, 4.0), (5.0, 1.0)]:
        found = minimize_scalar(lambda x, v=v, t=t: loss.value(x) + (x - v) ** 2 / (2 * t), options={"xtol": 1e-12})
        assert loss.prox(v, t) == pytest.approx(found.x, abs=2e-7)


@given(st.sampled_from(CONVEX), reals, reals, st.floats(1e-6, 1e6))
def test_prox_is_firmly_nonexpansive(loss, a, b, t):
    """Moreau: |prox a - prox b|² <= (prox a - prox b)(a - b)."""
    step = loss.prox(a, t) - loss.prox(b, t)
    assert step * step <= step * (a - b) + 1e-9


@given(st.floats(-300, 300), st.floats(-300, 300), st.sampled_from([-1, 1]), st.sampled_from([np.e, 2.0]))
def test_logistic_prox_at_any_scale(size, step, sign, base):
    """x = v + t φ'(x) to rounding, for |v| and t from 1e-300 to 1e300."""
    v, t, loss = sign * 10.0**size, 10.0**step, Logistic(base)
    x = loss.prox(v, t)
    pull = -t * loss.derivative(x)
    assert abs(x - v - pull) <= 1e-15 * (abs(v) + pull + abs(x) * (1 + t * loss.second_derivative(x)))


@given(st.floats(-300, 300), st.floats(-300, 300), st.sampled_from([-1, 1]))
def test_exponential_prox_at_any_scale(size, step, sign):
    """x = v + t exp(-x): in logarithms, since exp(-x) may be too large a number."""
    v, t = sign * 10.0**size, 10.0**step
    x = Exponential().prox(v, t)
    z = np.exp(np.log(t) - x)  # = x - v
    assert abs(x - v - z) <= 1e-12 * (abs(v) + abs(x) * (1 + z) + z)


def test_prox_steps():
    loss = Hinge()
    np.testing.assert_array_equal(loss.prox([0.0, 0.0, 0.5], [0.25, 3.0, 1.0]), [0.25, 1.0, 1.0])
    for t in (0.0, -1.0, np.inf, np.nan, [1.0, 0.0]):
        with pytest.raises(DataError, match="wanted t > 0"):
            loss.prox([0.0, 1.0], t)


# ------------------------------------------------------------------------------------------------ invariances
@given(st.sampled_from(CONVEX), reals, reals, st.floats(0, 1))
def test_convex(loss, a, b, share):
    chord = share * loss.value(a) + (1 - share) * loss.value(b)
    assert loss.value(share * a + (1 - share) * b) <= chord * (1 + 1e-12) + 1e-12


@given(st.sampled_from(RESIDUAL), reals, st.floats(0.01, 100))
def test_residual_losses_are_even(loss, r, t):
    assert loss.value(-r) == loss.value(r)
    assert loss.derivative(-r) == -loss.derivative(r)
    assert loss.conjugate(-r) == loss.conjugate(r)
    assert loss.prox(-r, t) == -loss.prox(r, t)


@given(st.floats(0, 10), reals)
def test_epsilon_insensitive_is_a_hinge_on_both_sides(epsilon, r):
    """max(0, |r| - ε) = hinge(1 + ε + r) + hinge(1 + ε - r), and the same for the squares."""
    for loss, hinge in ((EpsilonInsensitive, Hinge()), (SquaredEpsilonInsensitive, SquaredHinge())):
        both = hinge.value(1 + epsilon + r) + hinge.value(1 + epsilon - r)
        assert loss(epsilon).value(r) == pytest.approx(both, rel=1e-12, abs=1e-12)


@given(st.floats(0.01, 1), reals)
def test_huberised_hinge_is_near_the_hinge(width, m):
    above = HuberisedHinge(width).value(m) - Hinge().value(m)
    assert -1e-14 <= above <= width / 4 + 1e-14


# ------------------------------------------------------------------------------------------------ the 0-1 loss
BOUNDS = {Hinge(), SquaredHinge(), HuberisedHinge(), HuberisedHinge(1.0), HuberisedHinge(0.01), Quadratic(),
          Logistic(base=2), Logistic(base=1.5), Exponential(), ZeroOne()}  # fmt: skip


@pytest.mark.parametrize("loss", [*CONVEX_MARGIN, Logistic(base=1.5), Logistic(base=2.001), ZeroOne()], ids=str)
def test_which_bound_the_zero_one_loss(loss):
    m = np.concatenate([GRID, EXTREMES, [-5e-324, 5e-324]])
    assert loss.bounds_zero_one == (loss in BOUNDS)
    assert loss.bounds_zero_one == bool(np.all(loss.value(m) >= ZeroOne().value(m)))


@dataclass(frozen=True)
class Parabola(Quadratic):
    """(c - m)² + a."""

    c: float
    a: float

    def _value(self, x):
        return (self.c - x) ** 2 + self.a

    def _derivative(self, x):
        return 2 * (x - self.c)

    def _conjugate(self, u):
        return u * (self.c + u / 4) - self.a


@pytest.mark.parametrize(
    ("c", "a", "bounds"),
    [
        (1, 0, True),
        (2, 0, True),
        (1, -1e-9, False),  # below 1 at m = 0
        (2, -1e-9, False),  # below 0 at m = 2
        (-1, 0, False),  # the wrong slope at 0: below 1 at m = -1
    ],
)
def test_a_bound_needs_each_of_its_conditions(c, a, bounds):
    loss = Parabola(c, a)
    assert loss.bounds_zero_one == bounds == bool(np.all(loss.value(GRID) >= ZeroOne().value(GRID)))
    assert loss.calibrated == (c > 0)


@each_margin
def test_calibrated_losses_prefer_the_more_probable_class(loss):
    assert loss.calibrated
    p = np.linspace(0, 1, 21)
    assert np.array_equal(np.sign(loss.risk_minimiser(p)), np.sign(p - 0.5))


def test_absolute_loss_has_a_kink_at_zero_and_is_not_of_the_margin():
    assert EpsilonInsensitive(0.0).kinks == (0.0,)
    assert not isinstance(EpsilonInsensitive(0.0), MarginLoss)


@pytest.mark.parametrize("loss", [*CONVEX_MARGIN, ZeroOne()], ids=str)
def test_risk_minimisers_against_scipy(loss):
    """No m has a smaller conditional risk, by search; and φ(0) - least risk is ψ(2p - 1)."""
    for p in (0.03, 0.3, 0.5, 0.6, 0.85, 0.999):

        def risk(m, p=p):
            return p * loss.value(m) + (1 - p) * loss.value(-m)

        least = risk(loss.risk_minimiser(p))
        start = float(loss.risk_minimiser(p))
        searched = min(minimize_scalar(risk, bounds=(start - r, start + r), method="bounded").fun for r in (1.0, 9.0))
        assert least <= searched + 1e-14
        assert least == pytest.approx(searched, abs=1e-6)
        if loss.convex:
            assert loss.psi(2 * p - 1) == pytest.approx(loss.value(0.0) - least, abs=1e-12)


def test_risk_minimisers_in_closed_form():
    p = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    with np.errstate(divide="ignore"):
        log_odds = np.log(p) - np.log(1 - p)
    assert Hinge().risk_minimiser(p).tolist() == [-1, -1, 0, 1, 1]
    np.testing.assert_allclose(Quadratic().risk_minimiser(p), 2 * p - 1)
    np.testing.assert_allclose(SquaredHinge().risk_minimiser(p), 2 * p - 1)
    np.testing.assert_allclose(Exponential().risk_minimiser(p), log_odds / 2, atol=1e-15)
    for base in (2, np.e):
        np.testing.assert_allclose(Logistic(base).risk_minimiser(p), log_odds, atol=1e-15)


def test_psi_as_published():
    """The examples of Bartlett, Jordan & McAuliffe; logistic: 1 bit less the entropy, by scipy.stats."""
    theta = np.linspace(-1, 1, 81)
    published = {
        Exponential(): 1 - np.sqrt(1 - theta**2),
        SquaredHinge(): theta**2,
        Quadratic(): theta**2,
        Hinge(): np.abs(theta),
        Logistic(base=2): 1 - entropy([(1 + theta) / 2, (1 - theta) / 2], base=2),
    }
    for loss, psi in published.items():
        np.testing.assert_allclose(loss.psi(theta), psi, atol=3e-14, err_msg=loss.name)
    assert Exponential().psi(1e-9) == pytest.approx(5e-19, rel=1e-15, abs=0)  # no digits lost near 0
    assert Logistic().psi(1e-9) == pytest.approx(5e-19, rel=1e-15, abs=0)


@each_margin
def test_psi_bounds_the_excess_of_errors(loss):
    """ψ(R(f) - best R) <= R_φ(f) - best R_φ for random f on a table of 30 points with random probabilities."""
    rng = np.random.default_rng(1)
    share, p = rng.dirichlet(np.ones(30)), rng.uniform(size=30)

    def risk(loss, f):
        return share @ (p * loss.value(f) + (1 - p) * loss.value(-f))

    for scale in (0.1, 1.0, 4.0):
        f = scale * rng.normal(size=30)
        errors = risk(ZeroOne(), f) - risk(ZeroOne(), ZeroOne().risk_minimiser(p))
        assert errors > 0.1
        assert loss.psi(errors) <= risk(loss, f) - risk(loss, loss.risk_minimiser(p)) + 1e-12


# ------------------------------------------------------------------------------------------------ numbers and arrays
METHODS = ("value", "derivative", "second_derivative", "conjugate", "prox")


@each_convex
def test_extreme_arguments(loss):
    """No NaN and no warning; limits at infinity; a value below infinity wherever it is a number."""
    for method in METHODS:
        assert not np.isnan(getattr(loss, method)(EXTREMES)).any()
        with np.errstate(over="ignore"):
            small = EXTREMES.astype(np.float32)
        assert not np.isnan(getattr(loss, method)(small)).any()
    low, high = loss.domain
    assert loss.derivative(-np.inf) == low
    assert loss.derivative(np.inf) == high
    assert loss.value(-np.inf) == np.inf
    assert loss.value(np.inf) == (0 if high == 0 else np.inf)
    assert loss.prox([-np.inf, np.inf]).tolist() == [-np.inf, np.inf]
    for t in (5e-324, 1e-30, 1.0, 1e30, 1.7e308):
        assert np.all(np.diff(loss.prox(EXTREMES, t)[:-1]) >= 0)  # not NaN, and in order
    if np.isfinite(low):  # straight for ever
        assert loss.value(-1e300) == pytest.approx(-low * 1e300)


@each_loss
def test_arrays_and_numbers(loss):
    methods = METHODS if loss.convex else METHODS[:-1]
    table = np.linspace(-0.9, 2.0, 6).reshape(2, 3)
    before = table.copy()
    for method in methods:
        call = getattr(loss, method)
        out = call(table)
        assert (out.shape, out.dtype) == ((2, 3), np.float64)
        single = call(table.astype(np.float32))
        assert (single.shape, single.dtype) == ((2, 3), np.float32)
        np.testing.assert_allclose(single, out, rtol=3e-6, atol=3e-6)
        assert call(0.5) == call([0.5])[0]
        assert isinstance(call(0.5), np.float64)
        assert isinstance(call(np.float32(0.5)), np.float32)
        np.testing.assert_array_equal(call(np.array([-1, 0, 2])), call(np.array([-1.0, 0.0, 2.0])))
        assert call(np.empty(0)).shape == (0,)
        assert not np.signbit(out[out == 0]).any()
        for bad, words in ((np.nan, "NaN"), ([1j], "complex128"), (["a"], "<U1")):
            with pytest.raises(DataError, match=f"{words}; wanted real numbers"):
                call(bad)
    np.testing.assert_array_equal(table, before)


@each_loss
def test_losses_are_values(loss):
    again = pickle.loads(pickle.dumps(loss))
    assert again == loss
    assert hash(again) == hash(loss)
    assert eval(repr(loss)) == loss
    with pytest.raises(FrozenInstanceError):
        loss.width = 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HuberisedHinge(0), "width=0; wanted a finite number above 0 and at most 1"),
        (lambda: HuberisedHinge(1.5), "width=1.5; wanted"),
        (lambda: Logistic(base=1), "base=1; wanted a finite number above 1"),
        (lambda: Logistic(base=np.inf), "base=inf; wanted"),
        (lambda: EpsilonInsensitive(-0.1), "epsilon=-0.1; wanted a finite number at least 0"),
        (lambda: SquaredEpsilonInsensitive(np.nan), "epsilon=nan; wanted"),
        (
            lambda: Hinge().risk_minimiser([0.2, 1.2]),
            "probabilities from 0.2 to 1.2; wanted .* from 0 to 1",
        ),
        (lambda: Hinge().psi(-2.0), "excess risks from -2 to -2; wanted"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(DataError, match=words):
        make()


def test_settings_keep_float32():
    loss = HuberisedHinge(np.float64(0.25))
    assert type(loss.width) is float
    assert loss.value(np.float32(1.0)).dtype == np.float32


# ------------------------------------------------------------------------------------------------ the picture
def test_picture():
    ax = plot_losses()
    step, *curves = ax.lines
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["0-1", "hinge", "Huberised hinge", "squared hinge", "quadratic", "logistic, base 2",
                      "logistic (not a bound)", "exponential"]  # fmt: skip
    np.testing.assert_array_equal(step.get_xydata()[1:3], [[0, 1], [0, 0]])
    for curve in curves:
        m, phi = curve.get_data()
        bounds = np.all(phi >= np.where(m <= 0, 1, 0))
        assert curve.get_linestyle() == ("-" if bounds else "--")
    assert len({curve.get_color() for curve in ax.lines}) == 8
    assert ax.get_ylim()[1] == 4.0
    ax.figure.canvas.draw()


def test_picture_of_some():
    first = plot_losses([])
    ax = plot_losses([ZeroOne(), Exponential()], ax=first)
    assert ax is first
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), np.exp(-ax.lines[-1].get_xdata()))
    with pytest.raises(DataError, match=r"EpsilonInsensitive\(epsilon=0.1\); wanted losses of the margin"):
        plot_losses([Hinge(), EpsilonInsensitive()])
