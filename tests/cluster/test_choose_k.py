"""How many clusters to ask for: what each criterion finds, and that it is as defined."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score

from certifit.cluster.choose_k import choose_clusters
from certifit.cluster.plots import plot_cluster_choice
from certifit.exceptions import DataError


@pytest.fixture(scope="module")
def three():
    X, _ = make_blobs(120, centers=[[0, 0], [6, 0], [0, 6]], cluster_std=0.6, random_state=0)
    return X, choose_clusters(X, range(1, 6), random_state=0)


def test_all_criteria_find_clear_clusters(three):
    X, choice = three
    assert choice.choices == {"fall": 3, "silhouette": 3, "gap": 3}
    np.testing.assert_array_equal(choice.n_clusters, [1, 2, 3, 4, 5])
    assert (np.diff(choice.objective) < 0).all()
    assert (np.diff(choice.bound) <= 0).all()
    assert (choice.bound <= choice.objective).all()
    np.testing.assert_allclose(choice.fall[1:], choice.bound[:-1] / choice.objective[1:])
    theirs = [silhouette_score(X, model.labels_) for model in choice.models[1:]]
    np.testing.assert_allclose(choice.silhouette[1:], theirs, rtol=1e-10)
    assert np.isnan(choice.silhouette[0])
    lines = str(choice).splitlines()
    assert len(lines) == 6
    assert lines[3].endswith("fall, silhouette, gap")


def test_gap_statistic_is_as_defined(three):
    """log objective on uniform tables, less that on the data; standard error with the factor √(1 + 1/B)."""
    X, choice = three
    # one cluster: the objective is the scatter, whose mean over uniform boxes is n Σ side² / 12
    Z = (X - X.mean(axis=0)) @ np.linalg.svd(X - X.mean(axis=0))[2].T
    uniform = len(X) * (np.ptp(Z, axis=0) ** 2).sum() / 12
    assert choice.gap[0] == pytest.approx(np.log(uniform) - np.log((Z**2).sum()), abs=0.1)
    assert 0 < choice.gap_error[0] < 0.2


def test_no_clusters_are_found_in_uniform_rows():
    X = np.random.default_rng(0).random((150, 2))
    assert choose_clusters(X, range(1, 5), random_state=0).choices["gap"] == 1


def test_choosing_from_weights_samples_and_few_rows():
    X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], cluster_std=0.5, random_state=0)
    w = np.ones(90)
    w[::10] = 0.0
    weighted = choose_clusters(X, [2, 3, 5], sample_weight=w, references=3, sample=60, random_state=0)
    assert weighted.choices["silhouette"] == 3
    assert np.isnan(weighted.fall[2])  # 4 was not fitted
    scatter = w.sum() * np.cov(X.T, aweights=w, ddof=0).trace()  # of one centre, which need not be asked for
    assert weighted.fall[0] == pytest.approx(scatter / weighted.objective[0], rel=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(3\)"):
        few = choose_clusters([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0], [5.0, 5.0]], [2, 4], references=0, random_state=0)
    assert "gap" not in few.choices
    for numbers in ([], 3, "3"):
        with pytest.raises(DataError, match="at least one number of clusters"):
            choose_clusters(X, numbers)
    with pytest.raises(DataError, match="n_clusters=0"):
        choose_clusters(X, [0, 1])


def test_the_picture_names_what_each_criterion_prefers():
    X = load_iris().data
    choice = choose_clusters(X, range(1, 5), references=2, random_state=0)
    axes = plot_cluster_choice(choice)
    for ax, name, values in zip(
        axes, ("fall", "silhouette", "gap"), (choice.objective, choice.silhouette, choice.gap), strict=True
    ):
        chosen = choice.choices[name]
        assert ax.get_title(loc="left").endswith(f": {chosen}")
        np.testing.assert_array_equal(ax.lines[-1].get_xydata(), [[chosen, values[chosen - 1]]])
        low, high = ax.get_xlim()
        assert low < 1
        assert high > 4
