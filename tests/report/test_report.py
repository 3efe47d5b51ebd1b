"""Cross-validation against scikit-learn's, the pictures, and the HTML report: complete, self-contained, escaped."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score

from certifit import fit, report
from certifit.core.text_table import proved_digits
from certifit.datasets import penguins_table
from certifit.plots import plot_coefficients, plot_confusion, plot_convergence, svg
from certifit.report import Report, render
from certifit.report.answers import ModelAnswers, class_charts
from certifit.report.page import _whole_options
from certifit.table.alerts import Alert, table_alerts
from certifit.table.cross_validation import CrossValidation, cross_validate
from certifit.table.labelled_table import labelled_table
from certifit.table.portfolio.search import RowOrder, SearchSettings, search
from certifit.table.table_classifier import TableClassifier

HOSTILE = '<script>alert("1")</script>&$x_{'


class Page(HTMLParser):
    """Counts tags and words; fails on tags that do not nest."""

    VOID = ("meta", "img", "br", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def penguins():
    data = labelled_table(penguins_table(), "species")
    model = TableClassifier().fit(penguins_table(), "species")
    return model, data, cross_validate(model, data, folds=4, seed=3)


def page(model, data, assessment, **changes):
    words = {"table": "penguins.csv", "settings": {"C": 1.0}, "recheck": "certifit audit m.certifit penguins.csv"}
    return render(Report(model, data, assessment, **{**words, **changes}))


def test_cross_validation_agrees_with_scikit_learn(penguins):
    model, data, found = penguins
    frame, splitter = data.table.to_pandas(), StratifiedKFold(4, shuffle=True, random_state=3)
    proba = cross_val_predict(model, frame, data.y, cv=splitter, method="predict_proba")
    predicted = model.classes_[proba.argmax(axis=1)]
    folds = [test for _, test in splitter.split(frame, data.y)]
    for score, metric in zip(
        found.scores,
        (
            lambda i: (predicted[i] == data.y[i]).mean(),
            lambda i: balanced_accuracy_score(data.y[i], predicted[i]),
            lambda i: log_loss(data.y[i], proba[i]),
        ),
        strict=True,
    ):
        values = np.array([metric(i) for i in folds])
        assert score.mean == pytest.approx(values.mean(), abs=1e-8)
        assert score.error == pytest.approx(values.std(ddof=1) / 2, abs=1e-8)
    assert (found.confusion == confusion_matrix(data.y, predicted)).all()
    recall = found.confusion.diagonal() / found.confusion.sum(axis=1)
    assert [c.recall for c in found.classes] == pytest.approx(recall.tolist())


def test_the_baseline_is_scikit_learns_dummy(penguins):
    _, data, found = penguins
    splitter = StratifiedKFold(4, shuffle=True, random_state=3)
    X = np.zeros((len(data.y), 1))
    for score, scoring in zip(found.scores, ("accuracy", "balanced_accuracy", "neg_log_loss"), strict=True):
        values = cross_val_score(DummyClassifier(strategy="prior"), X, data.y, cv=splitter, scoring=scoring)
        assert score.baseline == pytest.approx(abs(values.mean()))
        assert score.baseline_error == pytest.approx(values.std(ddof=1) / 2)


def test_weights_enter_the_scores():
    """A row of weight 0 is no row."""
    data = labelled_table(penguins_table(), "species", np.where(np.arange(344) % 5 == 0, 0.0, 1.0))
    fewer = labelled_table(penguins_table().take(np.flatnonzero(np.arange(344) % 5)), "species")
    a, b = (cross_validate(TableClassifier(), d) for d in (data, fewer))
    for one, other in zip(a.scores, b.scores, strict=True):
        assert one[1:] == pytest.approx(other[1:], rel=1e-9)
    assert (a.confusion == b.confusion).all()


def test_small_classes_mean_fewer_folds_or_none():
    y = np.array(["a"] * 30 + ["b"] * 3 + ["c"] * 12)
    data = labelled_table(pa.table({"x": np.random.default_rng(0).normal(size=45)}), y)
    found = cross_validate(TableClassifier(), data)
    assert isinstance(found, CrossValidation)
    assert found.folds == 3
    assert found.notes == ("3 folds instead of 5: class 'b' has 3 rows",)
    y[31:33] = "a"
    single = cross_validate(TableClassifier(), labelled_table(data.table, y))
    assert isinstance(single, str)
    assert "class 'b' has a single row" in single


def test_progress_counts_the_folds(penguins):
    model, data, _ = penguins
    seen = []
    cross_validate(model, data, folds=2, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_the_report_has_everything(penguins):
    model, data, assessment = penguins
    text = page(model, data, assessment)
    words = " ".join(Page(text).words)
    for part in (
        "Predicting species from penguins.csv",
        "The certificate holds.",
        "Chinstrap 68",
        f"{model.certificate_.objective:.10g}",
        "4-fold cross-validation",
        f"{100 * assessment.scores[0].mean:.1f} %",
        f"{assessment.scores[2].mean:.3f}",
        "flipper_length_mm is missing",
        proved_digits(model.model_.coef_[1, 3], model.certificate_.parameter_error[1][3]),
        "Only digits that the certificate proves are printed",
        "certifit audit m.certifit penguins.csv",
        model.fingerprint_,
        "numpy",
    ):
        assert part in words
    assert len(text.encode()) < 2_000_000


def test_the_report_needs_nothing_else(penguins):
    """No address is loaded, nothing but hashed texts may run, and no tag has a style or a handler of its own."""
    text = page(*penguins)
    parsed = Page(text)
    assert not {"link", "iframe", "object", "img"} & set(parsed.tags)
    assert not re.search(r"https?://|url\(|@import", text)
    assert [value for name, value in parsed.attributes if name in ("src", "href")] == ["#content"]
    assert not [name for name, _ in parsed.attributes if name == "style" or name.startswith("on")]
    policy = re.search('Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy


def test_a_failed_certificate_and_no_cross_validation_are_said(penguins):
    _, data, _ = penguins
    with pytest.warns(match="of the optimum"):
        model = TableClassifier(max_iter=1).fit(penguins_table(), "species")
    words = " ".join(Page(page(model, data, "not cross-validated, as asked")).words)
    assert "The certificate does not hold:" in words
    assert "not cross-validated, as asked" in words


@pytest.mark.parametrize("classes", [2, 3])
def test_hostile_names_are_shown_not_run(classes):
    rng = np.random.default_rng(0)
    y = np.array([HOSTILE, "b", "日本"])[np.arange(60) % classes]
    table = pa.table({HOSTILE: rng.normal(size=60), "c": [HOSTILE, "é"] * 30, "target": y})
    model = TableClassifier().fit(table, "target")
    data = labelled_table(table, "target")
    text = page(model, data, cross_validate(model, data), table=HOSTILE, settings={HOSTILE: HOSTILE}, recheck=HOSTILE)
    parsed = Page(text)
    assert parsed.tags.count("script") == 3  # the proof, the check and the tables
    assert HOSTILE in "".join(parsed.words)


def test_a_terminal_that_shows_a_page_finds_nothing_to_obey():
    name = "x\x1b[2J\x9b\x07"
    table = pa.table({name: np.arange(60) % 7, "target": [name, "b"] * 30})
    model, data = TableClassifier().fit(table, "target"), labelled_table(table, "target")
    text = page(model, data, cross_validate(model, data), table=name)
    assert "x\ufffd[2J\ufffd\ufffd" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_names_do_not_turn_round_the_words_beside_them():
    """An override of the direction would show a name, and what follows it, from right to left."""
    name = "cost\u202egnp.\u2066x"
    table = pa.table({name: np.arange(60) % 7, "target": [name, "b"] * 30})
    model, data = TableClassifier().fit(table, "target"), labelled_table(table, "target")
    text = page(model, data, cross_validate(model, data), table=name)
    assert "cost\ufffdgnp.\ufffdx" in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)


def test_every_picture_says_what_it_shows(penguins):
    model, data, assessment = penguins
    tags = re.findall("<svg [^>]*>", page(model, data, assessment))
    assert len(tags) > 5
    assert all(re.search('role="img" aria-label="[^"]+"', tag) for tag in tags)


def test_rows_held_out_are_named_so(penguins):
    model, data, assessment = penguins
    kept = replace(assessment, predicted=model.predict_proba(data.table))
    assert "Of rows that were held out" in page(model, data, kept)
    assert "Of the rows that the model was fitted to" in page(model, data, replace(assessment, predicted=None))


def test_mistakes_of_labels_alone_are_those_of_rows_held_out(penguins):
    _, data, _ = penguins
    found = search(data, SearchSettings(model="linear_svm", tunes=False))
    wrong = int(found.assessment.confusion.sum() - np.trace(found.assessment.confusion))
    text = page(found.model, data, found.assessment)
    mistakes = text.partition("The worst mistakes</h2>")[2].partition("</table>")[0]
    assert wrong == mistakes.count("<tr>") - 1 > 0  # one is the head
    assert "Rows that were held out" in mistakes
    assert "Probabilities and thresholds" not in text


def test_pictures_of_later_rows_are_of_those_that_were_tested(penguins):
    _, data, _ = penguins
    order = RowOrder(times=np.random.default_rng(0).permutation(len(data.y)), time="day")
    found = search(data, SearchSettings(model="linear", tunes=False), order)
    assert len(found.assessment.rows) == len(found.assessment.predicted) < len(data.y)
    text = page(found.model, data, found.assessment)
    assert "Of rows that were held out" in text
    assert f"(pictures and scores: {len(found.assessment.rows):,} of them)" in text


def test_the_verdict_of_use_knows_that_the_model_was_chosen(penguins):
    _, data, _ = penguins
    found = search(data, SearchSettings(model="linear, naive_bayes", tunes=False))
    assert "Corrected for the choice among 2 models, accuracy is 0.9" in page(found.model, data, found.assessment)


def test_alerts_come_first_and_uselessness_is_said(penguins):
    model, data, assessment = penguins
    score = assessment.scores[0]._replace(mean=0.44, baseline=0.44)
    alerts = (Alert("no use", "it is of no use"),)
    text = page(model, data, replace(assessment, scores=(score, *assessment.scores[1:])), alerts=alerts)
    assert text.index("it is of no use") < text.index("The certificate holds.")
    assert "No better than guessing." in text


def test_a_page_stays_small_whatever_the_table():
    """Many rows, many columns and long words: sums or nothing in place of the rows, and lists that end."""
    rng = np.random.default_rng(0)
    columns = {f"{'long ' * 40}{j}": rng.normal(size=60) for j in range(320)}
    y = np.array(["a" * 3000, "b"])[(rng.normal(size=60) > 0).astype(int)]
    table = pa.table({**columns, "y": y})
    with pytest.warns(match="of the optimum"):
        model = TableClassifier(max_iter=1).fit(table, "y")
    text = page(model, labelled_table(table, "y"), "not cross-validated, as asked")
    assert len(text.encode()) < 2_000_000
    assert "And 20 more columns" in text


def test_a_leaderboard_is_shown_where_models_were_compared(penguins):
    assert "Models that were tried" not in page(*penguins)
    found = fit(penguins_table(), "species", model="naive_bayes")
    words = " ".join(Page(report(found, penguins_table(), "species").html).words)
    assert "Models that were tried" in words
    assert "naive Bayes" in words
    # A page made later has no answers of the folds; of use it says what the ledger does.
    assert "Better than guessing." in words
    assert "The model was chosen by one standard error of the difference: naive Bayes" in words


def test_pictures_show_the_numbers(penguins):
    model, _, assessment = penguins
    line = plot_convergence(model.model_).lines[0]
    assert len(line.get_xdata()) == len(model.model_.history_)
    assert line.get_xdata()[0] == 0  # however long the first pass took, or waited for loops to be compiled
    assert line.get_ydata()[-1] == pytest.approx(model.model_.history_[-1].gain)
    shown = [text.get_text() for text in plot_confusion(assessment.confusion, classes=model.classes_).texts]
    assert shown == [str(n) for n in assessment.confusion.ravel()]
    ax = plot_coefficients(model.model_.coef_, model.features_, list(model.classes_), most=4)
    largest = np.argsort(-np.abs(model.model_.coef_).max(axis=0))[:4]
    assert [label.get_text() for label in ax.get_yticklabels()] == [model.features_[j] for j in largest]
    assert svg(ax) == svg(ax)


def test_a_leak_keeps_the_verdict_of_use_from_being_green():
    """The target's copy under another name: right for every row, and of no use where it is not known beforehand."""
    rng = np.random.default_rng(0)
    kind = np.where(rng.random(90) < 0.5, "no", "yes")
    data = labelled_table(pa.table({"x": rng.normal(size=90), "reason": np.char.upper(kind), "kind": kind}), "kind")
    model = TableClassifier().fit(data)
    report = Report(model, data, cross_validate(model, data), "t.csv", {}, "", tuple(table_alerts(data)))
    page = render(report)
    assert "Better than guessing, if the alert (leak) is no matter." in page
    assert '<span class="whole">--drop</span>' in page
    assert "if the alert" not in render(replace(report, alerts=()))


def test_a_rare_class_is_the_one_in_question_and_thresholds_reach_it():
    """Of 1,000 rows 30 are of the first class: the table calls 0.2 % to half of all rows it."""
    rng = np.random.default_rng(0)
    rare = np.arange(1000) < 30
    p = np.clip(0.02 + 0.1 * rare + 0.01 * rng.random(1000), 0, 1)
    answers = ModelAnswers(
        np.where(rare, "fraud", "plain"), np.column_stack([p, 1 - p]), np.array(["fraud", "plain"])
    )
    charts = class_charts(answers)
    assert charts["positive"] == "fraud"
    assert charts["roc_area"] == 1.0
    assert [line[1] for line in charts["thresholds"]] == ["500", "200", "100", "50", "20", "10", "5", "2", "0"]
    assert charts["thresholds"][3][2:4] == ("60.0 %", "100.0 %")
    assert ">0.1<" in charts["calibration"]
    assert ">0.8<" not in charts["calibration"]
    half = np.where(rng.random(1000) < 0.5, "fraud", "plain")
    even = class_charts(ModelAnswers(half, answers.said, answers.classes))
    assert (even["positive"], len(even["thresholds"])) == ("plain", 9)


def test_words_of_options_are_not_broken():
    text = _whole_options("more (--budget gives <b>more</b>)")
    assert text == 'more <span class="whole">(--budget</span> gives &lt;b&gt;more&lt;/b&gt;)'
