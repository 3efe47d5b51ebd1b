"""The pictures of PCA draw the numbers they say: against scikit-learn's PCA and against definitions."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.datasets import load_digits, load_iris

from certifit import (
    PCA,
    DataError,
    LocallyLinearEmbedding,
    ProbabilisticPCA,
    RobustPCA,
    TrimmedPCA,
    TruncatedSVD,
)
from certifit.decomposition.pca.compression_plots import (
    RateDistortion,
    plot_images,
    plot_rate_distortion,
    rate_distortion,
)
from certifit.decomposition.pca.plots import plot_components, plot_scree, proved_share
from certifit.feature_selection.plots import plot_l1_path, plot_scores, plot_search
from certifit.plots.convergence import plot_convergence
from certifit.plots.style import COLOURS

X, y = load_digits(return_X_y=True)
IRIS = load_iris().data


# --------------------------------------------------------------------------------------------------- scree
def test_scree_shows_shares_and_the_choice():
    theirs = decomposition.PCA().fit(IRIS)
    ax = plot_scree(PCA(2).fit(IRIS), theirs.explained_variance_)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], theirs.explained_variance_ratio_)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.cumsum(theirs.explained_variance_ratio_))
    assert ax.lines[1].get_xdata()[0] == 2
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["together", "each component", "not chosen"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component", "share of the variance")


def test_scree_of_the_model_alone():
    ax = plot_scree(PCA().fit(IRIS))
    assert len(ax.patches) == 4
    assert ax.get_title(loc="left") == "4 components keep 100.00 % of the variance"
    one = plot_scree(PCA(1).fit(IRIS))
    assert one.get_title(loc="left").startswith("1 component keeps 92.46 % of the variance")


def test_scree_draws_what_is_proved():
    """An error whose proved least is 20 % less leaves room for 20 % of what is left out."""
    model = PCA(10).fit(X)
    kept = model.explained_variance_ratio_.sum()
    assert kept <= proved_share(model) <= kept + 1e-9
    model.certificate_ = replace(model.certificate_, bound=0.8 * model.certificate_.objective)
    assert proved_share(model) == pytest.approx(kept + 0.2 * (1 - kept))
    ax = plot_scree(model)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((kept, proved_share(model)))
    assert f"at most {100 * 0.2 * (1 - kept):.2g} % more" in ax.get_title(loc="left")


@pytest.mark.parametrize(
    "model", [RobustPCA(), TruncatedSVD(2), TrimmedPCA(2, random_state=0), decomposition.PCA(2)], ids=repr
)
def test_scree_says_nothing_of_variances_that_a_certificate_does_not_bound(model):
    """Norms of parts, errors around zero and fixed points are other claims, and other libraries make none."""
    ax = plot_scree(model.fit(IRIS))
    assert "proved" not in ax.get_title(loc="left")
    assert len(ax.collections) == 0


def test_scree_refuses_nothing_to_draw():
    with pytest.raises(DataError, match="without components; wanted at least one"):
        plot_scree(PCA(0).fit(IRIS))


# ---------------------------------------------------------------------------------------------- components
@pytest.mark.parametrize("draw", [plot_scree, plot_convergence, plot_scores, plot_search, plot_l1_path])
def test_models_that_are_not_fitted_are_refused(draw):
    with pytest.raises(DataError, match=r"a PCA that is not fitted; wanted a .*fitted.* Call fit first"):
        draw(PCA(2))
    with pytest.raises(DataError, match=r"the class PCA; wanted a .*fitted"):
        draw(PCA)


@pytest.mark.parametrize("draw", [plot_convergence, plot_scores, plot_search, plot_l1_path])
def test_models_without_what_a_picture_shows_are_refused(draw):
    with pytest.raises(DataError, match=r"a PCA without .*; wanted a .*fitted"):
        draw(decomposition.PCA(2).fit(load_iris().data))


def test_closed_forms_have_no_convergence_to_draw():
    with pytest.raises(DataError, match="solved in closed form; wanted one fitted by iteration"):
        plot_convergence(ProbabilisticPCA(1).fit(load_iris().data))


def test_components_of_models_without_shares():
    ax = plot_components(LocallyLinearEmbedding(n_neighbors=40).fit(load_iris().data), load_iris().data)
    assert ax.get_ylabel() == "component 2"


def test_components_are_the_codes():
    model = PCA(3).fit(X)
    ax = plot_components(model, X, y)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [str(c) for c in range(10)]
    codes = model.transform(X)
    for c, points in enumerate(ax.collections):
        np.testing.assert_allclose(points.get_offsets(), codes[y == c, :2])
    styles = {(tuple(p.get_facecolor()[0]), len(p.get_paths()[0].vertices)) for p in ax.collections}
    assert len(styles) == 10  # ten classes, eight colours: the markers tell the rest apart
    assert ax.get_ylabel() == f"component 2 ({100 * model.explained_variance_ratio_[1]:.1f} % of the variance)"


def test_components_without_classes_and_with_hostile_names():
    ax = plot_components(PCA(2).fit(IRIS), IRIS)
    assert ax.get_legend() is None
    np.testing.assert_allclose(ax.collections[0].get_offsets(), PCA(2).fit_transform(IRIS))
    ax = plot_components(PCA(2).fit(IRIS), IRIS, np.repeat(["$x_{", "b", "c"], 50))
    ax.figure.canvas.draw()  # a dollar in a name is not mathematics


def test_components_refuse():
    with pytest.raises(DataError, match="1 component; wanted two or more"):
        plot_components(PCA(1).fit(IRIS), IRIS)
    with pytest.raises(DataError, match=r"y of shape \(149,\) for 150 rows"):
        plot_components(PCA(2).fit(IRIS), IRIS, np.zeros(149))
    with pytest.raises(DataError, match="150 classes"):
        plot_components(PCA(2).fit(IRIS), IRIS, [f"row {i}" for i in range(150)])


def test_colours_are_apart_for_readers_without_red_or_green():
    """Through the matrices of Viénot, Brettel & Mollon (1999) no two colours are closer than 0.1 of the scale."""
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS]) ** 2.2
    protan = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
    deutan = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])
    for matrix in (protan, deutan):
        seen = np.clip(rgb @ matrix.T, 0, 1) ** (1 / 2.2)
        apart = np.linalg.norm(seen[:, None] - seen, axis=2) + np.eye(len(seen))
        assert apart.min() > 0.1


# ---------------------------------------------------------------------------------------------- compression
@pytest.fixture(scope="module")
def curve():
    return rate_distortion([PCA(M).fit(X[:1200]) for M in (2, 8, 32)], X[1200:], peak=16.0)


def test_rate_distortion_against_scikit_learn(curve):
    for i, M in enumerate((2, 8, 32)):
        other = decomposition.PCA(M, svd_solver="full").fit(X[:1200])

        def error(rows, other=other):
            return ((rows - other.inverse_transform(other.transform(rows))) ** 2).mean()

        assert curve.error[i] == pytest.approx(error(X[:1200]), rel=1e-9)
        assert curve.unseen[i] == pytest.approx(error(X[1200:]), rel=1e-9)
        assert curve.ratio[i] == pytest.approx(1200 * 64 / (1200 * M + M * 64 + 64))
        random = decomposition.PCA(M, svd_solver="randomized", random_state=0, iterated_power=0).fit(X[:1200])
        assert curve.bound[i] <= min(error(X[:1200]), error(X[:1200], random))  # no peer is below what is proved
        assert curve.bound[i] >= curve.error[i] * (1 - 1e-8)


def test_psnr(curve):
    """20 log10(peak / root mean squared error)."""
    assert curve.psnr(1.0) == pytest.approx(20 * np.log10(16.0))
    assert curve.psnr(0.0) == np.inf


def test_rate_distortion_is_drawn(curve):
    ax = plot_rate_distortion(curve)
    fitted, unseen = ax.lines
    np.testing.assert_allclose(fitted.get_xydata(), np.column_stack([curve.sizes, curve.psnr(curve.error)]))
    np.testing.assert_allclose(unseen.get_ydata(), curve.psnr(curve.unseen))
    beyond = ax.collections[0].get_paths()[0].vertices
    np.testing.assert_allclose(beyond[1:4, 1], curve.psnr(curve.bound))
    assert [label.get_text().split("\n")[0] for label in ax.get_xticklabels()] == ["2", "8", "32"]


def test_a_code_without_error_is_drawn():
    """All components: the error is rounding or 0, and the axis stays finite."""
    exact = RateDistortion(*np.array([[1.0, 2.0, 0.1, 0.1, 0.1], [2.0, 1.0, 0.0, 0.0, 0.0]]).T, 1.0)
    ax = plot_rate_distortion(exact)
    ax.figure.canvas.draw()
    assert np.isfinite(ax.get_ylim()).all()


def test_images_are_where_they_belong():
    ax = plot_images({"original": X[:3], "half": X[:3] / 2}, (8, 8))
    sheet = ax.images[0].get_array()
    np.testing.assert_array_equal(sheet[:8, 9:17], X[1].reshape(8, 8))
    np.testing.assert_array_equal(sheet[9:17, 18:26], X[2].reshape(8, 8) / 2)
    assert ax.images[0].get_clim() == (0, 16)


def test_compression_refuses():
    with pytest.raises(DataError, match="no models; wanted at least one"):
        rate_distortion([], X)
    with pytest.raises(DataError, match=r"half: images of shape \(2, 64\); wanted \(3, 64\)"):
        plot_images({"original": X[:3], "half": X[:2]}, (8, 8))
