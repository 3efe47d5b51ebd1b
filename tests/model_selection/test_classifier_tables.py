"""Tables and curves of classifiers: numbers against scikit-learn, bands that cover, pictures."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import (
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
    roc_curve,
)
from sklearn.naive_bayes import GaussianNB

from certifit import DataError, assess
from certifit.model_selection.assessment.classifier_tables import (
    TestedScores,
    calibration_table,
    precision_recall_band,
    roc_band,
)
from certifit.model_selection.bootstrap.bootstrap_bands import BandTuning, roc_percentiles
from certifit.plots.style import figures_apart


@pytest.fixture(scope="module")
def found():
    return assess(GaussianNB(), *load_breast_cancer(return_X_y=True), method="holdout", test_size=0.4)


def rows_and_answers(found):
    return found.problem.y[found.tested.test], found.tested.answers


def test_classes_are_scored_as_scikit_learn_scores_them(found):
    y, answers = rows_and_answers(found)
    precision, recall, f1, rows = precision_recall_fscore_support(y, answers["predict"])
    frame = found.per_class().to_frame()
    np.testing.assert_allclose(frame["precision"], precision)
    np.testing.assert_allclose(frame["recall"], recall)
    np.testing.assert_allclose(frame["F1"], f1)
    assert frame["rows"].tolist() == rows.tolist()
    assert (frame["recall from"] < frame["recall"]).all()
    assert (frame["precision"] < frame["precision to"]).all()


def test_confusion(found):
    y, answers = rows_and_answers(found)
    frame = found.confusion().to_frame()
    assert frame["rows"].tolist() == confusion_matrix(y, answers["predict"]).ravel().tolist()
    np.testing.assert_allclose(frame.groupby("true class")["share"].sum(), 1)
    assert ((frame["from"] <= frame["share"]) & (frame["share"] <= frame["to"])).all()


def test_roc_is_scikit_learns_within_its_band(found):
    y, answers = rows_and_answers(found)
    curve = found.roc()
    assert curve.area == pytest.approx(roc_auc_score(y, answers["predict_proba"][:, 1]), abs=1e-12)
    alarms, hits, _ = roc_curve(y, answers["predict_proba"][:, 1], drop_intermediate=False)
    np.testing.assert_allclose(np.column_stack([curve.x, curve.y]), np.column_stack([alarms, hits]))
    assert np.all((curve.low <= curve.y) & (curve.y <= curve.high))
    # the other class as the positive one is the same curve, turned round
    assert found.roc(0).area == pytest.approx(curve.area, abs=1e-12)


def scores(n, rng):
    """Scores of n rows, uniform in negatives and √u in positives: TPR = 1 - t², FPR = 1 - t."""
    y = (rng.random(n) < 0.4).astype(int)
    u = rng.random(n)
    s = np.where(y == 1, np.sqrt(u), u)
    return TestedScores(y, np.array([0, 1]), {"predict_proba": np.column_stack([1 - s, s])}, 0.9, 1.0)


def test_bands_hold_the_whole_true_curve():
    """Of 60 samples of 200 rows at least 46 curves are held everywhere: 54 expected, less 3 deviations and more."""
    rng, roc_hits, precision_hits = np.random.default_rng(0), 0, 0
    for _ in range(60):
        sample = scores(200, rng)
        curve = roc_band(sample, None)
        truth = 1 - (1 - curve.x) ** 2
        roc_hits += bool(np.all((curve.low <= truth + 1e-12) & (truth <= curve.high + 1e-12)))
        curve = precision_recall_band(sample, None)
        true, false = 0.4 * (1 - curve.threshold**2), 0.6 * (1 - curve.threshold)
        truth = true / (true + false)
        precision_hits += bool(np.all((curve.low <= truth + 1e-12) & (truth <= curve.high + 1e-12)))
    assert roc_hits >= 46
    assert precision_hits >= 46


def test_bands_are_not_everything():
    curve = roc_band(scores(20_000, np.random.default_rng(0)), None)
    assert np.mean(curve.high - curve.low) < 0.1


def test_calibrated_probabilities_are_within_their_bands():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = (rng.random(4000) < p).astype(int)

    def table(said):
        answers = {"predict_proba": np.column_stack([1 - said, said])}
        return calibration_table(TestedScores(y, np.array([0, 1]), answers, 0.9, 1.0), None, 10)

    right, wrong = table(p), table(p**3)
    assert right.error_low == 0
    assert right.error < 0.03
    assert wrong.error_low > 0.1
    assert wrong.error_low < wrong.error < wrong.error_high
    assert sum(right.columns["rows"]) == 4000


def test_thresholds(found):
    y, answers = rows_and_answers(found)
    frame = found.thresholds(at=[0.3, 0.5]).to_frame()
    said = answers["predict_proba"][:, 1] >= 0.5
    assert frame["recall"][1] == pytest.approx(np.mean(said[y == 1]))
    assert frame["specificity"][1] == pytest.approx(np.mean(~said[y == 0]))
    assert frame["precision"][1] == pytest.approx(np.mean(y[said] == 1))
    assert len(found.thresholds().to_frame()) == 10


def test_rows_of_several_folds_count_for_fewer():
    X, y = load_iris(return_X_y=True)
    folds = assess(GaussianNB(), X, y, method="k-fold", n_splits=5)
    frame, note = folds.per_class().to_frame(), str(folds.per_class())
    assert "count as 0.44 rows" in note
    assert frame["rows"].sum() == 150
    # 50 of 50 right rows count as 22.2: the lower end is (α/2)^(1/22.2)
    assert frame["recall from"][0] == pytest.approx(0.05 ** (1 / (50 / (1 + 5 / 4))), rel=1e-9)


def test_what_a_classifier_lacks_is_told():
    X, y = load_iris(return_X_y=True)
    three = assess(GaussianNB(), X, y, method="holdout")
    with pytest.raises(DataError, match=r"positive=2, say"):
        three.roc()
    assert 0.8 < three.roc(1).area <= 1
    with pytest.raises(DataError, match="positive=7"):
        three.roc(7)
    plain = assess(RidgeClassifier(), *load_breast_cancer(return_X_y=True), method="holdout")
    assert plain.roc().area > 0.9
    with pytest.raises(DataError, match="without predict_proba"):
        plain.calibration()


def test_pictures(found):
    with figures_apart():
        assert len(found.plot().lines) == 2
        assert found.roc().plot().get_xlabel() == "false positives"
        assert found.precision_recall().plot().get_ylabel() == "precision"
        assert found.calibration().plot().get_title() == "Calibration for 1"
    for table in (found.roc(), found.calibration(), found.thresholds()):
        assert "<table>" in table._repr_html_()
        assert len(table.to_frame()) > 3


def test_bootstrap_bands_hold_points_of_a_known_curve():
    """Scores N(0, 1) and N(1.5, 1): true positives are Φ(1.5 + Φ⁻¹(x)). Bands of 90 % hold it at 0.3 and 0.5 about
    as often in 150 tables, and are narrower than those that hold everywhere."""
    rng, at = np.random.default_rng(0), np.array([0.3, 0.5])
    held = []
    for _ in range(150):
        y = np.repeat([0, 1], 120)
        p = 1 / (1 + np.exp(-rng.normal(size=240) - 1.5 * y))
        found = TestedScores(y, np.array([0, 1]), {"predict_proba": np.column_stack([1 - p, p])}, 0.9, 1.0)
        low, high = roc_percentiles((p[y == 1], p[y == 0]), at, found.tails, 1.0, BandTuning(n_draws=100))
        truth = norm.cdf(1.5 + norm.ppf(at))
        held.append((low <= truth) & (truth <= high))
    assert (np.abs(np.mean(held, axis=0) - 0.9) < 4 * 0.3 / np.sqrt(150)).all()
    everywhere, pointwise = roc_band(found, 1), roc_band(found, 1, "bootstrap")
    assert np.array_equal(everywhere.y, pointwise.y)
    assert np.mean(pointwise.high - pointwise.low) < 0.6 * np.mean(everywhere.high - everywhere.low)
    for band in (pointwise, precision_recall_band(found, 1, "bootstrap")):
        assert (band.low <= band.y).all()
        assert (band.y <= band.high).all()
        assert "at each point for itself" in str(band)
    # The precision of most rows called positive is binomial: its spread is known.
    precision = precision_recall_band(found, 1, "bootstrap")
    place = int(np.argmin(np.abs(precision.x - 0.9)))
    called = np.count_nonzero(p >= precision.threshold[place])
    error = np.sqrt(precision.y[place] * (1 - precision.y[place]) / called)
    assert precision.high[place] - precision.low[place] == pytest.approx(2 * 1.645 * error, rel=0.25)
    with pytest.raises(DataError, match="band='dkw'"):
        roc_band(found, 1, "dkw")


def test_every_table_has_a_picture():
    X, y = load_iris(return_X_y=True)
    found = assess(GaussianNB(), X, y, method="k-fold")
    assert len(found.confusion().plot().texts) == 9
    assert [label.get_text() for label in found.per_class().plot().get_yticklabels()] == ["0", "1", "2"]
    assert len(found.thresholds(1).plot().lines) == 3
    assert len(found.calibration(1).plot().lines) >= 1


def test_classes_named_by_words_have_the_scores_of_numbers():
    """The later in the alphabet is positive, as larger numbers are: also for scorers that ask for a class 1."""
    X, y = load_breast_cancer(return_X_y=True)
    metrics = ["accuracy", "f1", "precision", "recall", "average_precision", "roc_auc", "neg_log_loss"]
    how = {"method": "k-fold", "n_splits": 3, "metrics": metrics}
    words, numbers = (assess(GaussianNB(), X, target, **how) for target in (np.array(["benign", "malignant"])[y], y))
    for name in metrics:
        assert words[name].estimate == pytest.approx(numbers[name].estimate)
