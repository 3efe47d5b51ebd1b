"""What pictures of theorems show is what mathematics says: terms, axes and residuals against SciPy and by hand."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import rel_entr
from sklearn.datasets import load_iris
from sklearn.metrics import mean_gamma_deviance

import certifit
from certifit.families import Binomial, Poisson
from certifit.plots import (
    plot_estimates,
    plot_glm,
    plot_kl_terms,
    plot_log_normaliser,
    plot_pmf_and_density,
    plot_quadratic_form,
    plot_two_views,
)

IRIS = load_iris().data


def test_bars_of_a_divergence_are_its_terms():
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.25, 0.4, 0.1, 0.25])
    ax = plot_kl_terms(p, q)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], rel_entr(p, q), atol=1e-15)
    infinite = plot_kl_terms(q, p)
    assert infinite.get_title(loc="left").startswith("KL(p, q) = inf")
    assert [bar.get_hatch() for bar in infinite.patches] == [None, None, None, "//"]


def test_bars_of_counts_are_the_terms_of_both_distributions():
    ax = plot_kl_terms(Binomial(0.3, 10), Poisson(3.0))
    x = np.array([bar.get_x() + bar.get_width() / 2 for bar in ax.patches])
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, rel_entr(stats.binom.pmf(x, 10, 0.3), stats.poisson.pmf(x, 3.0)), atol=1e-14)


def test_areas_of_bars_and_curve_are_probabilities():
    ax = plot_pmf_and_density(Binomial(0.3, 20))
    areas = [bar.get_height() * bar.get_width() for bar in ax.patches]
    x, density = ax.lines[0].get_data()
    assert sum(areas) == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(density, stats.norm.pdf(x, 6.0, np.sqrt(4.2)), rtol=1e-9)


def test_half_axes_of_the_ellipse_end_on_it():
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    for line in plot_quadratic_form(A).lines:
        v = np.array(line.get_data())[:, 0]
        assert v @ A @ v == pytest.approx(1, rel=1e-12)
    titles = [
        plot_quadratic_form(B).get_title(loc="left") for B in (-A, [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1], [1, 1]])
    ]
    assert [title.partition(":")[0] for title in titles] == ["negative definite", "indefinite", "semidefinite"]


def test_residuals_of_a_line_meet_it_at_right_angles():
    rows = IRIS[:, 2:]
    ax = plot_two_views(certifit.PCA(1).fit(rows), rows)
    ends = np.array(ax.collections[0].get_segments())
    axis = np.linalg.eigh(np.cov(rows.T))[1][:, -1]
    across = ends[:, 0] - ends[:, 1]
    np.testing.assert_allclose(ends[:, 0], rows)
    np.testing.assert_allclose(across @ axis, 0, atol=1e-12)
    assert f"{(across**2).sum(axis=1).mean():.4g}" in ax.get_title(loc="left")


def test_a_line_that_misses_the_mean_is_given_away():
    rows = IRIS[:, 2:]
    views = certifit.TruncatedSVD(1).fit(rows)
    assert "more than the variance of the rows" in plot_two_views(views, rows).get_title(loc="left")


def test_band_and_residuals_of_a_glm():
    """The band of least squares in closed form; residuals of a gamma regression add up to scikit-learn's deviance."""
    x, y = IRIS[:, [2]], IRIS[:, 3]
    design = np.column_stack([np.ones(150), x])
    beta, rss, *_ = np.linalg.lstsq(design, y, rcond=None)
    fit, _ = plot_glm(certifit.LinearRegression().fit(x, y), x, y, level=0.9)
    places, mean = fit.lines[0].get_data()
    at = np.column_stack([np.ones(len(places)), places])
    error = np.sqrt((at @ np.linalg.inv(design.T @ design) * at).sum(axis=1) * rss[0] / 148)
    np.testing.assert_allclose(mean, at @ beta, rtol=1e-9)
    edge = fit.collections[1].get_paths()[0].vertices[:, 1]
    top = mean + stats.norm.ppf(0.95) * error
    assert edge.max() == pytest.approx(top.max(), rel=1e-6)
    model = certifit.GammaRegressor(alpha=0.0).fit(x, y)
    _, residuals = plot_glm(model, x, y)
    drawn = np.asarray(residuals.collections[0].get_offsets())
    np.testing.assert_allclose(drawn[:, 0], model.predict(x), rtol=1e-12)
    assert (drawn[:, 1] ** 2).mean() == pytest.approx(mean_gamma_deviance(y, model.predict(x)), rel=1e-9)
    assert ((drawn[:, 1] > 0) == (y > model.predict(x))).all()


def test_tangent_and_parabola_touch_the_log_normaliser():
    """A(η) = exp η of Poisson, drawn as far as there are members; their distance is of second and of third order."""
    ax = plot_log_normaliser(Poisson(3.0))
    eta, A = ax.lines[0].get_data()
    step = eta - np.log(3.0)
    np.testing.assert_allclose(A, np.exp(eta), rtol=1e-12)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 3 + 3 * step, rtol=1e-12)
    np.testing.assert_allclose(ax.lines[2].get_ydata(), 3 + 3 * step + 1.5 * step**2, rtol=1e-12)


def test_estimates_are_drawn_with_their_means():
    ax = plot_estimates({"a": np.arange(101.0), "b": [1.0, 3.0]}, 40.0)
    truth, dots, mean, _, other = (line.get_xdata() for line in ax.lines)
    assert list(truth) == [40.0, 40.0]
    assert list(dots) == list(range(101))
    assert (mean[0], other[0]) == (50.0, 2.0)
