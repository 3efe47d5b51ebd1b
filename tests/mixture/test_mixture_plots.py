"""Pictures of mixtures say what the models say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from scipy.stats import chi2, multivariate_normal
from sklearn import mixture as scikit
from sklearn.datasets import load_iris

from certifit import DataError
from certifit.mixture.choose_components import select_mixture
from certifit.mixture.families.mixture import Mixture
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.mixture.plots import em_frames, plot_em_steps, plot_em_trace, plot_mixture, plot_mixture_choice
from certifit.plots.style import COLOURS

X = load_iris().data[:, 2:]
START = {"means_init": [[2.0, 0.5], [5.0, 1.5]], "weights_init": [0.5, 0.5], "random_state": 0}


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("library", [scikit.GaussianMixture, GaussianMixture])
def test_ellipses_hold_half_and_most_of_each_component(kind, library):
    """On an ellipse the Mahalanobis distance is the quantile of chi² with two degrees of freedom."""
    model = library(2, covariance_type=kind, random_state=0).fit(X)
    ax = plot_mixture(model, X)
    C = {
        "full": lambda C, i: C[i],
        "tied": lambda C, i: C,
        "diag": lambda C, i: np.diag(C[i]),
        "spherical": lambda C, i: C[i] * np.eye(2),
    }[kind]
    for i in range(2):
        for line, share in zip(ax.lines[2 * i : 2 * i + 2], (0.5, 0.95), strict=True):
            away = line.get_xydata() - model.means_[i]
            square = np.einsum("ni,ij,nj->n", away, np.linalg.inv(C(model.covariances_, i)), away)
            np.testing.assert_allclose(square, chi2.ppf(share, 2), rtol=1e-9)
    points = ax.collections[0].get_offsets()
    np.testing.assert_array_equal(points, X)


def test_a_row_has_a_colour_between_those_of_its_components():
    model = GaussianMixture(2, random_state=0).fit(X)
    ax = plot_mixture(model, X)
    colours = ax.collections[0].get_facecolors()[:, :3]
    R = model.predict_proba(X)
    np.testing.assert_allclose(colours, R @ [to_rgb(colour) for colour in COLOURS[:2]], atol=1e-12)


def test_two_columns_of_several_with_their_names():
    frame = pd.DataFrame(load_iris().data, columns=["a", "b $x", "c", "d"])
    ax = plot_mixture(GaussianMixture(2, random_state=0).fit(frame), frame, columns=(1, 3))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("b $x", "d")
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), frame.to_numpy()[:, [1, 3]])


def test_frames_are_em():
    """Against densities by SciPy: every number of every step."""
    model = GaussianMixture(2, reg_covar=0.0, **START)
    frames = em_frames(model, X, 3)
    assert [f.name for f in frames] == ["start"] + [f"{step} step {i}" for i in (1, 2, 3) for step in "EM"]
    q = np.full((len(X), 2), 0.5)
    for frame in frames:
        pi, own = frame.mixture.weights, frame.mixture.components
        C = own.shape.matrices(own.C, 2, 2)
        joint = np.column_stack(
            [pi[i] * multivariate_normal(own.means[i] + own.shift, C[i]).pdf(X) for i in range(2)]
        )
        p = joint / joint.sum(axis=1, keepdims=True)
        q = p if frame.name.startswith("E") else q
        np.testing.assert_allclose(frame.q, q, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(frame.loglik, np.log(joint.sum(axis=1)).mean(), rtol=1e-8)
        some = np.where(q > 1e-300, q, 1.0)
        np.testing.assert_allclose(frame.kl, (q * np.log(some / np.maximum(p, 1e-300))).sum(axis=1).mean(), atol=1e-9)
        np.testing.assert_allclose(frame.loglik, frame.bound + frame.kl, rtol=1e-13)
    fitted = model.fit(X).em_trace_["loglik"]
    np.testing.assert_allclose([f.loglik for f in frames[2::2]], fitted[1:4], rtol=1e-11)


def test_the_stepwise_picture_shows_what_it_says():
    axes = plot_em_steps(GaussianMixture(2, **START), X, [1, 3], ("length", "width"))
    frames = em_frames(GaussianMixture(2, **START), X, 3)
    titles = [ax.get_title(loc="left").splitlines() for ax in axes]
    assert [t[0] for t in titles] == ["start", "E step 1", "M step 1", "E step 3", "M step 3", "at rest"]
    shown = [frames[0], frames[1], frames[2], frames[5], frames[6]]
    for frame, (_, total, parts) in zip(shown, titles[:-1], strict=True):
        assert total == f"log-likelihood {frame.loglik:.4f}"
        assert parts == f"= bound {frame.bound:.4f} + KL {abs(frame.kl):.4f}"
    for frame, bar in zip(shown, [ax.child_axes[0] for ax in axes], strict=False):
        blue, red = bar.patches
        np.testing.assert_allclose(blue.get_y() + blue.get_height(), frame.bound, rtol=1e-12)
        np.testing.assert_allclose(red.get_height(), frame.kl, atol=1e-12)
        # Steps are seen: the axis spans log-likelihoods and bounds, but for the bound before the first E step.
        low, high = bar.get_ylim()
        assert low < frame.loglik < high
        assert (low < frame.bound) == (frame.name != "start")
    labels = [ax.child_axes[0].get_ylabel() for ax in axes]
    assert labels == [*[""] * 3, "bound (blue) + KL (red), nats a row", "", "bound (blue) + KL (red), nats a row"]


def test_the_staircase_is_the_trace():
    model = GaussianMixture(2, **START).fit(X)
    stairs, rest = plot_em_trace(model, steps=4)
    trace = model.em_trace_
    np.testing.assert_array_equal(stairs.lines[0].get_ydata(), trace["loglik"][1:6])
    for i, (rise, close) in enumerate(zip(stairs.lines[1::2], stairs.lines[2::2], strict=True), start=2):
        np.testing.assert_array_equal(rise.get_ydata(), [trace["loglik"][i - 1], trace["bound"][i]])
        np.testing.assert_array_equal(close.get_ydata(), [trace["bound"][i], trace["loglik"][i]])
    assert rest.get_yscale() == "log"
    short = Mixture("poisson", random_state=0).fit([[0.0], [1.0], [7.0], [9.0]])
    assert len(plot_em_trace(short)[0].lines[0].get_ydata()) >= 2


def test_criteria_by_number_of_components():
    choice = select_mixture(X, range(1, 4), ["diag", "full"], random_state=0)
    bic, aic = plot_mixture_choice(choice, ("bic", "aic"))
    assert [text.get_text() for text in aic.get_legend().get_texts()] == ["diag", "full", "chosen by BIC"]
    diag = [c for c in choice.candidates if c.covariance_type == "diag"]
    np.testing.assert_array_equal(bic.lines[0].get_xydata(), [(c.n_components, c.bic) for c in diag])
    np.testing.assert_array_equal(aic.lines[0].get_ydata(), [c.aic for c in diag])
    ring = aic.collections[0].get_offsets()[0]
    np.testing.assert_array_equal(ring, [choice.best.n_components, choice.best.aic])


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(DataError, match="GaussianMixture that is not fitted"):
        plot_mixture(GaussianMixture(2), X)
    with pytest.raises(DataError, match="a model of 1 columns and a table of 1"):
        plot_mixture(GaussianMixture(1).fit(X[:, :1]), X[:, :1])
    with pytest.raises(DataError, match="no ellipses in a plane"):
        plot_em_steps(Mixture("gaussian", random_state=0), X)
    with pytest.raises(DataError, match="without em_trace_"):
        plot_em_trace(scikit.GaussianMixture(2).fit(X))
