"""Models compared on the same folds: scores against fits by hand, the choice, the clock, the replay."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

from certifit import DataError, TableClassifier, TableRegressor, audit, fit, load, save
from certifit.datasets import penguins_table
from certifit.table.alerts import choice_alert, unsolved_alert
from certifit.table.labelled_table import labelled_table
from certifit.table.portfolio import contest as contests
from certifit.table.portfolio import fitting
from certifit.table.portfolio.candidates import KINDS, RUN_ORDER, TableFacts, suits
from certifit.table.portfolio.clock import Clock, read_budget
from certifit.table.portfolio.later_rows import later_splits
from certifit.table.portfolio.leaderboard import leaderboard_lines
from certifit.table.portfolio.search import SearchSettings, search


class CountedClock(Clock):
    """A clock that runs out after so many questions, so that no test depends on the time."""

    def __init__(self, questions):
        self.questions = questions

    def left(self):
        self.questions -= 1
        return 60.0 if self.questions > 0 else -1.0


class FixedClock(Clock):
    """A clock that always has so many seconds left."""

    def __init__(self, seconds):
        self.seconds = seconds

    def left(self):
        return self.seconds


def table(n=90, seed=0):
    """Three classes, of which two are told apart by x alone; and an amount."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    x = np.where(kind == 0, 3.0, 0.0) + rng.normal(size=n)
    z = np.where(kind == 1, 1.5, 0.0) + rng.normal(size=n)
    names = np.array(["a", "b", "c"])[kind]
    words = np.where(rng.random(n) < 0.3, None, names)
    return pa.table({"x": x, "z": z, "word": words, "amount": 10 * x + rng.normal(size=n), "kind": names})


QUICK = "linear, naive_bayes, linear_svm"


@pytest.fixture
def stopped(monkeypatch):
    """Makes a search stop after so many questions to the clock."""

    def stop(questions):
        monkeypatch.setattr("certifit.table.portfolio.search.Clock", lambda seconds: CountedClock(questions))

    return stop


def test_scores_are_those_of_fits_to_the_same_folds():
    rows = table().drop_columns(["amount"])
    found = fit(rows, "kind", model="linear")
    y = rows["kind"].to_numpy()
    said = np.empty_like(y)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        said[test] = TableClassifier().fit(rows.take(train), "kind").predict(rows.take(test))
    assert found.search_.winner.score == pytest.approx(accuracy_score(y, said), abs=1e-12)
    assert found.search_.winner.low < found.search_.winner.score < found.search_.winner.high


def test_r2_is_that_of_all_rows_and_the_baseline_knows_the_mean():
    rows = table().drop_columns(["kind"])
    found = fit(rows, "amount", model="linear").search_
    y = rows["amount"].to_numpy()
    said, mean = np.empty_like(y), np.empty_like(y)
    for train, test in KFold(5, shuffle=True, random_state=0).split(y):
        said[test] = TableRegressor().fit(rows.take(train), "amount").predict(rows.take(test))
        mean[test] = y[train].mean()
    assert found.winner.score == pytest.approx(r2_score(y, said), abs=1e-9)
    assert found.baseline.score == pytest.approx(r2_score(y, mean), abs=1e-9)


def test_counts_are_compared_by_their_deviance():
    """scikit-learn's D² of the means that models of the other folds predict; least squares predicts below 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    rows = pa.table({"x": x, "visits": rng.poisson(np.exp(1.2 * x))})
    found = fit(rows, "visits", model="linear, least_squares").search_
    y, said = rows["visits"].to_numpy(), np.empty(120)
    for train, test in KFold(5, shuffle=True, random_state=0).split(y):
        said[test] = TableRegressor().fit(rows.take(train), "visits").predict(rows.take(test))
    assert found.metric == "D²"
    assert found.winner.name == "linear"
    default = next(a for a in found.attempts if a.name == "linear" and not a.settings)
    assert default.score == pytest.approx(d2_tweedie_score(y, said, power=1), abs=1e-9)
    assert fit(rows, "visits", model="linear", family="gaussian").search_.metric == "R²"
    assert fit(rows, "visits", model="linear", metric="mae").search_.metric == "mean absolute error"


def test_the_time_of_the_fit_to_all_rows_is_set_aside(monkeypatch):
    """A fit to a fold of 32 rows takes 30 s: one to all 90 rows 84 s, with a fifth more to be sure."""
    now, step = [0.0], {}

    def tick():
        now[0] += step["seconds"]
        return now[0]

    monkeypatch.setattr(contests, "time", SimpleNamespace(monotonic=tick))
    monkeypatch.setattr("certifit.table.portfolio.search.Clock", lambda seconds: FixedClock(100.0))
    settings = SearchSettings(model="linear, naive_bayes", least_sample=40, largest_sample=40, tunes=False)
    step["seconds"] = 1.0
    data = labelled_table(table().drop_columns(["amount"]), "kind", task="auto")
    found = search(
        data, settings, tell=lambda contest, trial: step.update(seconds=30.0 if trial.name != "linear" else 1.0)
    )
    assert found.ledger.winner.name == "linear"
    assert found.ledger.attempts[2].fate == "stopped"
    why = "another fold about 72 s and its fit to all rows would take about 101 s, 100 s are left"
    assert found.ledger.attempts[2].why == why
    assert len(found.assessment.rows) == 40


def test_classes_with_too_few_rows_among_those_drawn_are_named():
    rows = table().drop_columns(["amount"])
    rows = pa.concat_tables([rows, rows.slice(0, 3).set_column(3, "kind", pa.array(["rare"] * 3))])
    settings = SearchSettings(model="naive_bayes", least_sample=40, largest_sample=40)
    found = search(labelled_table(rows, "kind", task="auto"), settings)
    assert "'rare' (3)" in found.assessment.notes[-1]
    assert "rare" in found.model.classes_


def test_the_choice_is_certified_and_the_simplest_within_one_error_of_the_best():
    ledger = fit(table().drop_columns(["amount"]), "kind", model=QUICK).search_
    scored = [a for a in ledger.attempts[1:] if a.fate == "scored"]
    best = max(scored, key=lambda a: a.score)
    n, inflation = ledger.rows_compared, np.sqrt(1 + 5 / 4)
    error = inflation * np.sqrt(best.score * (1 - best.score) / n)
    order = [*KINDS]
    near = [a for a in scored if a.score >= best.score - error]
    assert order.index(ledger.winner.name) == min(order.index(a.name) for a in near)
    assert ledger.choice.holds
    assert ledger.corrected_low <= ledger.corrected <= ledger.corrected_high


@pytest.mark.parametrize("questions", [3, 12, 10_000], ids=["at once", "in the middle", "never"])
def test_a_replay_gives_the_same_bits_wherever_the_clock_stopped(stopped, questions, tmp_path):
    rows = table().drop_columns(["amount"])
    stopped(questions)
    first = fit(rows, "kind", model=QUICK)
    fates = {a.fate for a in first.search_.attempts}
    assert ("skipped" in fates or "stopped" in fates) == (questions < 10_000)
    save(first, tmp_path / "m.certifit")
    stored = load(tmp_path / "m.certifit")
    assert repr(stored.search_.attempts) == repr(first.search_.attempts)
    again = fit(rows, "kind", replay=stored, seed=1)  # the ledger's seed counts
    assert again.search_.digest == first.search_.digest == stored.search_.digest
    assert again.search_.chosen == first.search_.chosen
    assert (again.search_.unseen_errors == first.search_.unseen_errors).all()


def test_the_digest_sees_a_changed_number():
    from certifit.table.portfolio.digest import fitted_digest

    model = fit(table().drop_columns(["amount"]), "kind", model="linear")
    before = fitted_digest(model)
    model.model_.coef_[0, 0] = np.nextafter(model.model_.coef_[0, 0], 9.0)
    assert fitted_digest(model) != before


def test_an_interruption_keeps_the_best_so_far(monkeypatch):
    data = labelled_table(table().drop_columns(["amount"]), "kind")
    count = iter(range(100))
    whole = contests.Contest._score_fold

    def interrupted(self, trial, number, problem):
        if trial.name != "baseline" and next(count) == 7:
            raise KeyboardInterrupt
        whole(self, trial, number, problem)

    monkeypatch.setattr(contests.Contest, "_score_fold", interrupted)
    ledger = search(data, SearchSettings(model=QUICK, budget=600.0)).ledger
    assert ledger.winner.name == "linear"
    assert [(a.fate, a.why, a.folds) for a in ledger.attempts[2:]] == [("stopped", "interrupted", 2)]


def test_settings_are_halved_on_the_first_folds():
    ledger = fit(table().drop_columns(["amount"]), "kind", model=QUICK, budget="10m").search_
    tried = [a for a in ledger.attempts if a.settings]
    folds = sorted(a.folds for a in tried)
    assert len(tried) == 8
    assert folds == [1, 1, 1, 1, 2, 2, 5, 5]
    assert all(a.fate == ("scored" if a.folds == 5 else "dropped") for a in tried)


@pytest.mark.parametrize("target", ["kind", "amount"])
def test_sets_and_intervals_hold_new_rows_about_as_often_as_they_say(target):
    """Of 3,000 new rows, 90 % by the binomial law are between 0.85 and 0.95, where 150 rows set the radius."""
    other = "amount" if target == "kind" else "kind"
    model = fit(table(150).drop_columns([other]), target, model="linear")
    new = table(3000, seed=1)
    y = new[target].to_numpy()
    if target == "kind":
        held = model.predict_set(new)[np.arange(3000), np.searchsorted(model.classes_, y)]
    else:
        low, high = model.predict_interval(new).T
        held = (low <= y) & (y <= high)
    assert 0.85 < held.mean() < 0.95
    with pytest.raises(DataError, match="at least 199"):
        (model.predict_set if target == "kind" else model.predict_interval)(new, coverage=0.995)


def test_a_model_without_a_ledger_knows_no_intervals():
    model = TableClassifier().fit(table().drop_columns(["amount"]), "kind")
    with pytest.raises(DataError, match="not known"):
        model.predict_set(table())


@pytest.mark.parametrize(
    "name", [name for name in RUN_ORDER if name not in ("boosting", "additive", "least_squares")]
)
def test_every_kind_fits_proves_and_is_audited(name, tmp_path):
    rows = table(60).drop_columns(["amount"])
    model = fit(rows, "kind", model=name, cv=2)
    assert model.search_.winner.certificate == model.certificate_.kind
    save(model, tmp_path / "m.certifit")
    assert audit(load(tmp_path / "m.certifit"), rows).holds
    assert name.split("_")[0] in model.search_.winner.name


def test_groups_stay_together_and_later_rows_are_tested(monkeypatch):
    seen = []
    whole = contests.Contest._score_fold

    def watched(self, trial, number, problem):
        seen.append(self.splits[number])
        whole(self, trial, number, problem)

    monkeypatch.setattr(contests.Contest, "_score_fold", watched)
    group, time = np.arange(90) % 7, np.arange(90)[::-1]
    rows = table().drop_columns(["amount"]).append_column("g", pa.array(group)).append_column("t", pa.array(time))
    model = fit(rows, "kind", model="linear", group="g", drop=["t"])
    assert "g" not in model.features_
    assert all(not set(group[train]) & set(group[test]) for train, test in seen)
    seen.clear()
    assert fit(rows, "kind", model="linear", time="t", drop=["g"]).search_.choice.holds
    assert all(time[train].max() < time[test].min() for train, test in seen)
    seen.clear()
    year, pair = np.arange(90)[::-1] // 13, np.arange(90) // 2 % 20
    rows = rows.set_column(rows.column_names.index("t"), "t", pa.array(year))
    rows = rows.set_column(rows.column_names.index("g"), "g", pa.array(pair))
    found = fit(rows, "kind", model="linear", time="t", group="g").search_
    assert found.choice.holds
    assert len(seen) >= 4
    assert all(year[train].max() < year[test].min() for train, test in seen)
    assert all(not set(pair[train]) & set(pair[test]) for train, test in seen)


@pytest.mark.parametrize("n", [23, 60, 301])
def test_folds_of_different_times_are_scikit_learns(n):
    times = np.random.default_rng(0).permutation(n)
    places = np.argsort(times)
    ours, theirs = later_splits(times, None, 5, ("day", "")), [*TimeSeriesSplit(5).split(places)]
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        for rows, expected in zip(mine, other, strict=True):
            np.testing.assert_array_equal(rows, np.sort(places[expected]))


def test_python_is_told_which_model_is_compared(monkeypatch):
    told = []

    @contextmanager
    def recorded(words, total):
        told.append((0, total, words))
        yield lambda *now: told.append(now)

    monkeypatch.setattr(fitting, "counted", recorded)
    fit(table().drop_columns(["amount"]), "kind", model="linear", budget=30)
    assert told[0] == (0, 30, "comparing models, seconds")
    assert {words for _, _, words in told} >= {"linear model, fold 1, seconds", "linear model, fold 5, seconds"}
    assert all(0 <= done <= total == 30 for done, total, _ in told)


def test_times_that_most_rows_share_make_few_folds_or_none():
    times = np.repeat([3, 5, 8, 9], [40, 5, 3, 2])
    splits = later_splits(times, None, 5, ("year", ""))
    assert [(len(train), len(test)) for train, test in splits] == [(40, 5), (45, 3), (48, 2)]
    alone = np.repeat([0, 1], [45, 5])
    with pytest.raises(DataError, match="2 different times in column 'year'"):
        later_splits(alone, None, 5, ("year", ""))
    with pytest.raises(DataError, match=r"of another 'person'.*--cv"):
        later_splits(np.arange(20), np.zeros(20), 5, ("day", "person"))


def test_a_class_of_a_single_row_has_no_part_in_the_scores():
    rows = table().drop_columns(["amount"])
    names = rows["kind"].to_pylist()
    rare = rows.set_column(rows.column_names.index("kind"), "kind", pa.array([*names[:-1], "rare"]))
    data = labelled_table(rare, "kind")
    found = search(data, SearchSettings(model="linear", tunes=False))
    assert list(found.model.classes_) == ["a", "b", "c", "rare"]
    assert found.ledger.rows_compared == 89
    assert found.assessment.rows.tolist() == [*range(89)]
    assert found.assessment.predicted.shape == (89, 4)
    assert np.allclose(found.assessment.predicted.sum(axis=1), 1)
    (note,) = found.assessment.notes
    assert note.startswith("classes 'rare' (1) have too few rows to be learnt and tested, and no part in the scores;")


def test_folds_that_know_one_class_alone_are_refused():
    rows = table().drop_columns(["amount"]).sort_by("kind").append_column("day", pa.array(range(90)))
    with pytest.raises(DataError, match=r"class 'a' alone .* fold 1 of 5.*Folds follow the column 'day'"):
        fit(rows, "kind", time="day")


def test_weights_count_rows():
    rows = table().drop_columns(["amount"])
    twice = pa.concat_tables([rows, rows.slice(0, 30)])
    weighted = rows.append_column("w", pa.array(np.where(np.arange(90) < 30, 2.0, 1.0)))
    found = fit(weighted, "kind", model="linear", weight="w")
    assert found.model_.coef_ == pytest.approx(TableClassifier().fit(twice, "kind").model_.coef_, rel=1e-3, abs=1e-4)


def test_what_is_asked_wrongly_is_refused():
    rows = table().drop_columns(["amount"])
    for options, words in (
        ({"model": "forrest"}, "Did you mean 'forest'"),
        ({"metric": "r2"}, "the metric 'r2' for classification"),
        ({"budget": "soon"}, "60s, 2m or 1h"),
        ({"cvv": 3}, "the option 'cvv'"),
        ({"group": "kind"}, "as the group and as the target"),
        ({"drop": ["kind"]}, "to be dropped"),
        ({"replay": TableClassifier()}, "to replay"),
        ({"model": "linear_svm", "metric": "log_loss"}, "it gives no probabilities"),
    ):
        with pytest.raises(DataError, match=words.replace("'", ".")):
            fit(rows, "kind", **options)
    assert [read_budget(words) for words in ("1h", " 90 ", "0.5m")] == [3600.0, 90.0, 30.0]


def test_few_rows_are_fitted_without_a_comparison():
    model = fit(penguins_table().slice(140, 19), "species")
    assert not hasattr(model, "search_")
    assert model.certificate_.holds


@pytest.mark.parametrize(
    "change",
    [
        {"alerts": (("leak", "a", "b"),)},
        {"alerts": ("leak",)},
        {"alerts": (("leak", None),)},
        {"alerts": 5},
        {"attempts": ()},
        {"attempts": ((1, 2),)},
        {"chosen": 99},
        {"chosen": "1"},
        {"corrected": "0.9"},
        {"metric": None},
        {"larger_is_better": "yes"},
        {"choice": None},
        {"unseen_errors": (0.1, 0.2)},
        None,
    ],
)
def test_ledgers_that_are_not_made_as_declared_are_refused(change, tmp_path):
    model = fit(table().drop_columns(["amount"]), "kind", model="naive_bayes")
    save(model, tmp_path / "m.certifit")
    assert repr(load(tmp_path / "m.certifit").search_) == repr(model.search_)
    model.search_ = ("nothing",) if change is None else replace(model.search_, **change)
    save(model, tmp_path / "m.certifit")
    with pytest.raises(DataError, match="cannot read"):
        load(tmp_path / "m.certifit")


def test_a_ledger_prints_as_its_leaderboard():
    model = fit(table().drop_columns(["amount"]), "kind", model=QUICK)
    text = repr(model.search_)
    assert text == str(model.search_)
    assert "* " in text
    assert "chosen by one standard error" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "<table>" in model.search_._repr_html_()


def test_the_leaderboard_is_shown_in_words_and_in_notebooks():
    model = fit(table().drop_columns(["amount"]), "kind", model=QUICK)
    text = repr(model)
    for part in ("TableClassifier(", "* ", "naive Bayes", "baseline", "chosen by one standard error", "optimal"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
    assert "Leaderboard" in model._repr_html_()
    # The estimator that the model was made from is shown within it, and is not fitted.
    made = fit(table().drop_columns(["amount"]), "kind", model="linear_svm")
    assert made.estimator is not None
    assert "Certificate: optimal, holds" in made._repr_html_()


def test_numbers_that_are_categories_and_words_that_are_holes(tmp_path):
    """The same as by hand, in predictions and in the audit too."""
    rows = table().drop_columns(["amount"])
    code = np.arange(90) % 4
    x = np.where(np.arange(90) % 9 == 0, -999.0, rows["x"].to_numpy())
    given = pa.table({"x": x, "z": rows["z"], "code": code, "kind": rows["kind"]})
    model = fit(given, "kind", model="linear", categorical=["code"], missing_words=["-999"])
    plain = pa.table({
        "x": pa.array(x, mask=x == -999.0), "z": rows["z"], "code": [f"{c}" for c in code], "kind": rows["kind"],
    })  # fmt: skip
    by_hand = TableClassifier().fit(plain.set_column(2, "code", plain["code"].dictionary_encode()), "kind")
    assert model.features_ == by_hand.features_
    assert (model.model_.coef_ == by_hand.model_.coef_).all()
    save(model, tmp_path / "m.certifit")
    again = load(tmp_path / "m.certifit")
    assert audit(again, given).holds
    assert (again.predict(given) == by_hand.predict(plain)).all()
    again.categorical = ()
    assert not audit(again, given).holds


def test_amounts_that_a_log_link_does_not_suit_have_least_squares():
    """y = x with skewed x: the gamma model's mean is an exponential of x, least squares' is the line itself."""
    x = np.random.default_rng(0).gamma(1.0, size=80) * 10 + 1
    rows = pa.table({"x": x, "y": x + np.random.default_rng(1).normal(size=80) * 0.1})
    ledger = fit(rows, "y", model="linear, least_squares").search_
    assert [a.fate for a in ledger.attempts[1:3]] == ["scored", "scored"]
    assert ledger.winner.name == "least_squares"
    assert ledger.winner.score > 0.99 > ledger.attempts[1].score


def test_forests_are_not_tried_where_their_trees_would_fill_the_memory():
    facts = TableFacts("classification", 50_000, 9_000_000, 1.0, 0)
    assert suits("forest", facts) == ""
    assert suits("forest", replace(facts, whole_rows=200_000)) == ""
    assert suits("forest", replace(facts, whole_rows=1_000_000)) == (
        "1,000,000 rows are more than the 200,000 up to which it is tried, as its trees grow with the rows"
    )
    assert suits("boosting", replace(facts, whole_rows=1_000_000)) == ""


def test_time_is_foretold_by_small_fits(monkeypatch):
    """A fit takes 0.5 s and 1 ms a row; the first to 2,000 rows waits 30 s for a compiler, which is no part of it."""
    now, seen = [0.0], []

    class Slow:
        def fit(self, rows):
            now[0] += 0.5 + 0.001 * len(rows) + 30.0 * (len(rows) == 2000 and 2000 not in seen)
            seen.append(len(rows))

    monkeypatch.setattr(contests.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(contests.Contest, "_problem_of", lambda contest, trial: Slow())
    facts = TableFacts.of(labelled_table(table().drop_columns(["amount"]), "kind"), 0)
    made = contests.Contest(None, [(np.arange(10_000), [])], None, facts, FixedClock(1e6), None, whole_rows=100_000)
    made.problem = SimpleNamespace(y=np.zeros(12_500))
    trial = contests.Trial("linear", {}, np.zeros(1))
    assert made._fold_seconds(trial, np.arange(10_000)) == pytest.approx(10.5)
    assert seen == [500, 500, 2000, 2000, 8000]
    assert made._whole_seconds(trial, 10.5) == pytest.approx(1.2 * 100.5)


def test_boosting_of_fewer_trees_is_tried_where_there_is_no_time_for_the_default(monkeypatch):
    monkeypatch.setattr(contests.Contest, "_too_long", lambda contest, trial: "" if trial.settings else "too long")
    ledger = fit(table().drop_columns(["amount"]), "kind", model="linear, boosting", budget="10m").search_
    tried = [(a.name, dict(a.settings), a.fate) for a in ledger.attempts if a.name == "boosting"]
    quick = {"max_iter": 30, "learning_rate": 0.3}
    assert tried == [("boosting", {}, "skipped"), ("boosting", quick, "scored")]


def test_a_fit_to_all_rows_is_doubted_until_a_fold_was_fitted(monkeypatch):
    """Folds of 10 s, and 100 s foretold for all rows: begun with 75 s left, as small fits are slow for each row."""
    monkeypatch.setattr(contests.Contest, "_fold_seconds", lambda contest, trial, train: 10.0)
    monkeypatch.setattr(contests.Contest, "_whole_seconds", lambda contest, trial, fold: 100.0)
    facts = TableFacts.of(labelled_table(table().drop_columns(["amount"]), "kind"), 0)
    made = contests.Contest(None, [(np.arange(10_000), [])] * 5, None, facts, FixedClock(75.0), None)
    trial = contests.Trial("linear", {}, np.zeros(1))
    assert made._too_long(trial) == ""
    made.clock = FixedClock(74.0)
    assert made._too_long(trial) == "about 50 s needed, and 25 s for a fit to all rows; 74 s are left"
    made.clock, trial.folds, trial.seconds = FixedClock(100.0), 1, 10.0
    why = "another fold about 12 s and its fit to all rows would take about 100 s, 100 s are left"
    assert made._no_time(trial) == why


def test_only_as_many_further_settings_are_begun_as_can_end(monkeypatch):
    """A fold takes 1 s, so a setting 2 (1 + 1/2 + 3/4) s on average: of eight, five are begun where 25 s are left."""
    found = contests.Contest(
        SimpleNamespace(y=np.zeros(3)), [None] * 5, None, None, FixedClock(25.0), lambda contest, trial: None
    )
    for name in ("linear", "linear_svm"):
        found.trials.append(contests.Trial(name, {}, np.zeros(3), fate="scored", folds=5, seconds=5.0))
    monkeypatch.setattr(contests, "variants_of", lambda name, facts: tuple({"C": C} for C in range(4)))

    def score(_contest, trial, *_folds):
        trial.folds, trial.scores = trial.folds + 1, np.full(3, -float(trial.settings["C"]))

    monkeypatch.setattr(contests.Contest, "_go_on", score)
    found.halve_settings()
    assert sorted(trial.folds for trial in found.trials[2:]) == [0, 0, 0, 1, 1, 2, 5, 5]
    assert [trial.why for trial in found.trials[2:]].count(contests.NO_TIME) == 3


def hurry(monkeypatch, name):
    """Give a kind of model of amounts one pass, so that its certificate fails."""
    kind = KINDS[name]

    def make(facts, **settings):
        return kind.regressor(facts, **settings).set_params(max_iter=1)

    monkeypatch.setitem(KINDS, name, replace(kind, regressor=make))


def curved(seed=0, n=120):
    """An amount that a linear model knows nothing of."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    return pa.table({"x": x, "z": rng.normal(size=n), "amount": 5 * np.cos(2 * x) + 0.1 * rng.normal(size=n)})


def test_of_models_as_good_as_each_other_one_that_was_solved_is_chosen():
    """The same fits twice; the second time the certificates of the simplest model are said to have failed."""
    data = labelled_table(table().drop_columns(["amount"]), "kind", task="auto")
    settings = SearchSettings(model=QUICK, tunes=False)

    def spoil(_, trial):
        trial.proved = trial.proved and trial.name != "linear"

    plain, spoilt = search(data, settings).ledger, search(data, settings, tell=spoil).ledger
    assert [a.score for a in plain.attempts] == [a.score for a in spoilt.attempts]
    assert plain.winner.name == "linear"
    assert spoilt.winner.name == "naive_bayes"
    assert unsolved_alert(plain) is unsolved_alert(spoilt) is None


def test_a_model_that_was_not_solved_wins_only_where_it_is_better_and_an_alert_says_so(monkeypatch):
    hurry(monkeypatch, "additive")
    model = fit(curved(), "amount", model="linear, additive")
    assert model.search_.winner.name == "additive"
    words = unsolved_alert(model.search_)
    assert words.kind == "not solved"
    assert "no model that was solved is within one standard error of it" in words.words
    alone = unsolved_alert(fit(curved(), "amount", model="additive").search_)
    assert alone.words.endswith("because no model was solved")


def dated(form, n=120):
    """Rows a day apart, shuffled, whose target turns around in the last sixth of the time."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2023-12-20") + rng.permutation(n)
    later = days >= np.datetime64("2023-12-20") + n * 5 // 6
    x = rng.normal(size=n)
    when = [day.item().strftime(form) for day in days]
    return pa.table({"x": x, "when": when, "kind": np.where((x > 0) ^ later, "yes", "no")})


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%m/%d/%Y", "%Y/%m/%d"])
def test_times_in_text_are_put_in_the_order_of_time(form):
    """Sorted as text, 01.02.2024 stands before 31.12.2023; the last fold then had rows of all months."""
    expected = dated("%Y-%m-%d").to_pandas()
    expected["when"] = expected["when"].astype("datetime64[s]")
    found = fit(dated(form), "kind", model="linear", time="when").search_
    assert found.winner.score == fit(expected, "kind", model="linear", time="when").search_.winner.score


def test_times_of_which_the_order_is_not_sure_are_refused_or_named():
    early = dated("%d/%m/%Y", 60).to_pandas()
    early["when"] = [f"{1 + k % 9:02}/{1 + k // 9:02}/2024" for k in range(60)]
    with pytest.raises(DataError, match="may be day or month first"):
        fit(early, "kind", time="when")
    days = fit(early, "kind", model="linear", time="when", dates=["when=%d/%m/%Y"])
    months = fit(early, "kind", model="linear", time="when", dates=["when=%m/%d/%Y"])
    assert days.search_.time == months.search_.time == "when"
    assert days.search_.unseen_errors.tolist() != months.search_.unseen_errors.tolist()
    with pytest.raises(DataError, match="are not all in %Y-%m"):
        fit(early, "kind", time="when", dates=["when=%Y-%m-%d"])
    early["when"] = [f"week {k}" for k in range(60)]
    with pytest.raises(DataError, match="are text, such as 'week 0'"):
        fit(early, "kind", time="when")
    early["when"] = [f"2024W{k:02}" for k in range(60)]
    assert fit(early, "kind", model="linear", time="when").search_.time == "when"


def test_the_interval_of_r2_is_that_of_a_ratio():
    """Rows far out add to the loss and to the baseline's: what the model leaves open of them is all that counts."""
    rng = np.random.default_rng(0)
    x, spread = rng.normal(size=2000), rng.standard_t(2.5, size=2000)
    rows = pa.table({"x": x, "amount": x + 3 * spread})
    ledger = fit(rows, "amount", model="linear").search_
    y = rows["amount"].to_numpy()
    said = np.empty_like(y)
    for train, test in KFold(5, shuffle=True, random_state=0).split(y):
        slope, level = np.polyfit(x[train], y[train], 1)
        said[test] = level + slope * x[test]
    drawn = [rng.integers(2000, size=2000) for _ in range(500)]
    scores = [r2_score(y[rows], said[rows]) for rows in drawn]  # R² of rows drawn anew: the bootstrap
    width = ledger.winner.high - ledger.winner.low
    inflation = np.sqrt(1 + 5 / 4)  # rows of several folds depend on each other (Nadeau & Bengio)
    assert width == pytest.approx(2 * 1.645 * inflation * np.std(scores), rel=0.15)
    assert ledger.winner.low > 0
    assert choice_alert(ledger) is None
    assert leaderboard_lines(ledger)[-1][2] == "-"  # the baseline's R² is 0 by what R² is


def test_a_model_that_is_off_by_far_in_one_row_is_no_rival():
    """A log link multiplies: far from the other rows it foretells anything, and says nothing about the choice."""
    rng = np.random.default_rng(1)
    x = np.append(rng.normal(size=150), 60.0)
    rows = pa.table({"x": x, "count": rng.poisson(np.maximum(20 + 5 * x, 1))})
    found = fit(rows, "count", model="linear, least_squares", family="poisson", metric="r2", budget=60)
    scores = {a.name: a.score for a in found.search_.attempts if not a.settings}
    assert scores["linear"] < -10 < 0.5 < scores["least_squares"]
    scored = [a for a in found.search_.attempts if a.fate == "scored" and a.name != "baseline"]
    assert found.search_.rivals == len([a for a in scored if a.score > 0]) == len(scored) - 1
    assert found.family_because_ == "it did better than a log link where both were compared"
    assert found.search_.corrected == pytest.approx(scores["least_squares"], abs=0.1)
