"""The compiled loops of hinges against plain formulas, and what hinges say of their shape."""

import numpy as np
import pytest

from certifit.checkers.plain.hinges import PLAIN_HINGES, PLAIN_MULTICLASS_HINGES
from certifit.checkers.svm.joint import class_coefficients, slacks
from certifit.losses import Hinge, HuberisedHinge, SquaredHinge
from certifit.losses.hinge_loops import hinge_rows
from certifit.losses.hinges import HINGES, RESIDUAL_HINGES
from certifit.losses.multiclass.multiclass_hinge_loops import (
    apply_curvature,
    multiclass_loss,
    smoothed_multiclass_loss,
)
from certifit.losses.multiclass.multiclass_hinges import MULTICLASS_HINGES


@pytest.mark.parametrize("name", HINGES)
def test_shapes_say_what_the_losses_are(name):
    """The maximum over a of a (z + e) - a² / (2κ) is the loss, its maximiser minus the slope in the margin."""
    loss, (kappa, e, top) = HINGES[name], HINGES[name].shape
    m = np.linspace(-2.0, 3.0, 101)
    z = 1 - m
    a = np.where(z + e > 0, np.minimum(kappa * np.maximum(z + e, 1e-300), top), 0.0)
    np.testing.assert_allclose(a * (z + e) - a**2 / (2 * kappa), loss.value(m), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(-a, loss.derivative(m), rtol=1e-12)
    np.testing.assert_allclose(loss.shape.value(z), loss.value(m), rtol=1e-12, atol=1e-15)


def test_the_checker_knows_every_loss_of_the_estimators():
    for name, loss in (HINGES | RESIDUAL_HINGES).items():
        assert tuple(PLAIN_HINGES[name]) == tuple(loss.shape)


@pytest.mark.parametrize("shape", [(np.inf, 0.0, 1.0), (2.0, 0.0, np.inf), (1.0, 0.5, 1.0)])
@pytest.mark.parametrize("used", [(np.inf, 0.0, 1.0), (2.0, 0.0, np.inf), (5.0, 0.1, 1.0)])
@pytest.mark.compiled
def test_hinge_rows(shape, used):
    """Against the maximum over a grid of a, and certifit.losses."""
    rng = np.random.default_rng(0)
    eta, s = np.append(rng.normal(size=50), [1.0, -1.0, 0.9, 1.1]), np.resize([1.0, -1.0], 54)
    u = rng.exponential(size=54)
    u[3] = 0.0
    A, h = np.full((54, 2), np.nan), np.full(54, np.nan)
    reported, minimised, sides, curved = hinge_rows(eta, s, np.ones(54), u, (shape, used), A, h)

    def plain(z, kappa, e, top):
        a = np.where(z + e > 0, top, 0.0) if np.isinf(kappa) else np.clip(kappa * (z + e), 0, top)
        return a * (z + e) - a**2 / (2 * kappa), a

    z = 1 - s * eta
    value, a = plain(z, *used)
    np.testing.assert_allclose(reported, u @ plain(z, *shape)[0], rtol=1e-13)
    np.testing.assert_allclose(minimised, u @ value, rtol=1e-13)
    np.testing.assert_allclose(A, np.stack([u * a * (s > 0), u * a * (s < 0)], axis=1), rtol=1e-13)
    np.testing.assert_allclose(sides[:, 1], [u @ (a**2 * (s > 0)), u @ (a**2 * (s < 0))], rtol=1e-13)
    np.testing.assert_allclose(sides[:, 0], A.sum(axis=0), rtol=1e-13)
    assert curved == np.count_nonzero(h) == (0 if np.isinf(used[0]) else curved)
    grid = np.linspace(0, min(used[2], 20.0), 20_001)[:, None]
    best = (grid * (z + used[1]) - grid**2 / (2 * used[0])).max(axis=0)
    np.testing.assert_allclose(value, best, atol=1e-6)
    names = {(np.inf, 0.0, 1.0): Hinge(), (2.0, 0.0, np.inf): SquaredHinge(), (1.0, 0.5, 1.0): HuberisedHinge()}
    np.testing.assert_allclose(reported, u @ names[shape].value(s * eta), rtol=1e-13)


@pytest.mark.parametrize("kind", MULTICLASS_HINGES)
@pytest.mark.compiled
def test_multiclass_losses_and_their_smoothing(kind):
    """Against the checker's projection; slopes and curvature against differences of values and slopes."""
    rng = np.random.default_rng(0)
    F, y, u = rng.normal(size=(20, 4)), rng.integers(0, 4, 20), rng.exponential(size=20)
    u[3] = 0.0
    hinge, loss, h, t = MULTICLASS_HINGES[kind], PLAIN_MULTICLASS_HINGES[kind], 0.5, 1e-6
    z = slacks(loss, F, y)
    np.testing.assert_allclose(multiclass_loss(F, y, u, hinge), u @ loss.value(z), rtol=1e-13)
    centre = loss.project(rng.normal(size=F.shape), y, u)
    D, q, after = rng.normal(size=F.shape), np.empty_like(F), np.empty_like(F)

    def smooth(F, q):
        return smoothed_multiclass_loss(F, y, u, hinge, (h, centre), D, q)

    value, slope, moved = smooth(F, q)
    np.testing.assert_allclose(q, loss.project(centre + u[:, None] / h * z, y, u), atol=1e-13)
    counted = u > 0
    away = (((q - centre) ** 2).sum(axis=1)[counted] / u[counted]).sum()
    np.testing.assert_allclose([value, moved], [(q * z).sum() - 0.5 * h * away, 0.5 * h * away], rtol=1e-12)
    higher = smooth(F + t * D, after)[0]
    np.testing.assert_allclose((higher - smooth(F - t * D, np.empty_like(F))[0]) / (2 * t), slope, rtol=1e-7)
    free = (q > 0) & (hinge.shared | (q < u[:, None]))
    curved = D.copy()
    apply_curvature(curved, y, free, u / h, hinge.shared)
    np.testing.assert_allclose(curved, -(class_coefficients(after, y) - class_coefficients(q, y)) / t, atol=1e-5)
