"""Histogram boosting: against scikit-learn's, losses, sources and threads, and a checker that is not fooled."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.ensemble import HistGradientBoostingClassifier as SklearnClassifier
from sklearn.ensemble import HistGradientBoostingRegressor as SklearnRegressor
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from certifit import GradientBoostingRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor, audit
from certifit.checkers.ensemble.boosting.plain_trees import plain_trees
from certifit.checkers.ensemble.boosting.stage_rules import longest_step
from certifit.checkers.ensemble.score_losses import plain_score_loss
from certifit.exceptions import CertificateWarning, DataError
from certifit.losses.scores import score_slope_loops
from certifit.losses.scores.score_losses import KINDS, ScoreLoss
from certifit.rows.threads import set_threads


@pytest.fixture(autouse=True)
def one_thread():
    """scikit-learn's threads wait in circles for each other where tests share cores."""
    with threadpool_limits(1), np.errstate(over="ignore"):
        yield


def problem(n=400, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=n)


def digest(trees):
    found = hashlib.sha256()
    for f in fields(trees):
        value = getattr(trees, f.name)
        for part in value if isinstance(value, tuple) else (value,):
            found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


# What scikit-learn finds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "absolute_error"])
def test_scores_like_those_of_scikit_learn(loss):
    X, y = problem(600)
    y = np.exp(y / 2) if loss in ("poisson", "gamma") else y
    settings = {"loss": loss, "max_iter": 30, "max_bins": 64}
    ours = HistGradientBoostingRegressor(**settings).fit(X, y)
    theirs = SklearnRegressor(**settings).fit(X, y)
    assert ours.certificate_.holds
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=0.03)


def test_the_same_trees_as_scikit_learn_where_values_are_few():
    """With few distinct values both see the same splits, and single precision leaves six digits."""
    X, y = problem(500)
    X = X.round(0)
    settings = {"max_iter": 5, "max_leaf_nodes": 4}
    ours = HistGradientBoostingRegressor(**settings).fit(X, y)
    assert np.allclose(ours.predict(X), SklearnRegressor(**settings).fit(X, y).predict(X), atol=1e-5)


def test_the_exponential_loss_is_adaboosts():
    """Where values are few, stumps by curvatures come as low as those of scikit-learn's exact boosting."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(400, 4)).astype(float)
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=400) > 8, "yes", "no")
    model = HistGradientBoostingClassifier(loss="exponential", max_iter=40, max_leaf_nodes=2).fit(X, y)
    peer = GradientBoostingClassifier(loss="exponential", n_estimators=40, max_depth=1).fit(X, y)
    sign = np.where(y == "yes", 1.0, -1.0)
    mine, theirs = (float(np.exp(-sign * m.decision_function(X)).mean()) for m in (model, peer))
    assert mine == pytest.approx(theirs, rel=0.02)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * model.decision_function(X))))
    assert model.certificate_.objective == pytest.approx(mine)
    assert (model.certificate_.kind, model.certificate_.holds) == ("bounded", True)
    assert audit(model, X, y).holds
    model.loss = "log_loss"
    assert not audit(model, X, y).holds
    with pytest.raises(DataError, match="two classes"):
        HistGradientBoostingClassifier(loss="exponential").fit(X, X[:, 0])


def test_breast_cancer_out_of_sample():
    X, y = load_breast_cancer(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    losses = [
        log_loss(y[test], cls(max_iter=50).fit(X[~test], y[~test]).predict_proba(X[test]))
        for cls in (HistGradientBoostingClassifier, SklearnClassifier)
    ]
    assert losses[0] <= losses[1] * 1.1


def test_late_stages_of_scikit_learn_are_judged_by_what_they_could_do():
    """Probabilities near 1 are rounded in single precision, and a root of too little curvature adds nothing."""
    X, y = load_iris(return_X_y=True)
    theirs = SklearnClassifier().fit(X, y)
    assert audit(theirs, X, y).holds
    theirs._predictors[-40][2].nodes["value"] *= 1.01
    assert not audit(theirs, X, y).holds
    early = SklearnClassifier().fit(X, y)
    early._predictors[3][1].nodes["value"] = 0.0  # could be split, and was
    assert not audit(early, X, y).holds


@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 2}, {"l2_regularization": 3.0, "max_depth": 3}])
def test_the_audit_of_scikit_learn_reads_its_stages(settings):
    X, y = load_diabetes(return_X_y=True)
    theirs = SklearnRegressor(max_iter=15, **settings).fit(X, y)
    found = audit(theirs, X, y)
    assert found.holds
    assert found.kind == ("bounded" if settings.get("max_leaf_nodes") == 2 else "greedy")
    theirs.learning_rate = 0.2
    assert not audit(theirs, X, y).holds


def test_the_audit_says_what_it_cannot_read():
    X, y = problem()
    with pytest.raises(DataError, match=r"certifit\.HistGradientBoostingRegressor"):
        audit(SklearnRegressor(loss="absolute_error", max_iter=2).fit(X, y), X, y)


# The mathematics -------------------------------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.parametrize("name", [*KINDS])
def test_gradients_are_those_of_the_loss(name):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 50).astype(float) if name in ("log_loss", "exponential") else rng.gamma(2, size=50)
    F, w = rng.normal(size=50) * 3, rng.random(50)
    parameter = 0.3 if name in ("quantile", "huber") else None
    plain = plain_score_loss(name, parameter)
    kernel = ScoreLoss(name, parameter).kernel()
    g, h, found = np.zeros(50), np.zeros(50), np.zeros(3)
    score_slope_loops.find_gradients(kernel, (F, y, w), (0, 50), (g, h), found)
    assert np.allclose(g, w * plain.slope(y, F), rtol=1e-12, atol=0)
    assert np.allclose(h, w * (plain.curvature(y, F) if plain.smooth else 1.0), rtol=1e-12, atol=0)
    assert np.allclose(found, [np.abs(g).sum(), h.sum(), h.max()])


@pytest.mark.compiled
def test_gradients_of_several_classes():
    rng = np.random.default_rng(1)
    y, F, w = rng.integers(0, 3, 40).astype(float), rng.normal(size=(40, 3)), rng.random(40)
    g, h = np.empty((3, 40)), np.empty((3, 40))
    score_slope_loops.find_class_gradients(F, y, w, 0, 40, g, h)
    plain = plain_score_loss("multinomial")
    assert np.allclose(g.T, w[:, None] * plain.slope(y, F))
    assert np.allclose(h.T, w[:, None] * plain.curvature(y, F))


@pytest.mark.parametrize("loss", ["log_loss", "poisson", "gamma", "exponential"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 1.5])
def test_no_step_of_a_share_of_newtons_raises_the_loss(loss, rate):
    """Rows whose curvature is next to nothing would be sent far beyond their minimum."""
    rng = np.random.default_rng(0)
    plain, longest = plain_score_loss(loss), longest_step(loss, rate)
    for _ in range(300):
        y = (
            rng.integers(0, 2, 5).astype(float)
            if loss in ("log_loss", "exponential")
            else rng.gamma(1, size=5) + 1e-3
        )
        F = rng.normal(size=5) * 4
        step = -rate * plain.slope(y, F).sum() / plain.curvature(y, F).sum()
        step = np.clip(step, -longest, longest)
        before = plain.value(y, F).sum()
        assert plain.value(y, F + step).sum() <= before + 1e-12 * abs(before)


def test_a_leaf_is_the_median_of_its_residuals():
    y = np.concatenate([np.arange(30.0), 100 + np.arange(31.0)])
    X = (y > 50).astype(float)[:, None]
    settings = {"loss": "absolute_error", "max_iter": 1, "learning_rate": 1.0, "max_leaf_nodes": 2}
    model = HistGradientBoostingRegressor(**settings).fit(X, y)
    assert model.predict([[0.0], [1.0]]).tolist() == [14.5, 115.0]
    assert model.certificate_.holds


@pytest.mark.parametrize("settings", [{"max_depth": 1}, {"max_depth": 2, "alpha": 0.6}])
def test_hubers_loss_gives_the_stages_of_exact_trees_where_values_are_few(settings):
    """Bins part every two values then, and the exact trees' own tests hold them against scikit-learn's."""
    X, y = problem(150)
    X, y = np.round(X, 1), y + np.random.default_rng(1).standard_t(1.5, 150)
    binned = HistGradientBoostingRegressor("huber", max_iter=6, min_samples_leaf=1, max_leaf_nodes=None, **settings)
    exact = GradientBoostingRegressor(loss="huber", n_estimators=6, **settings)
    np.testing.assert_allclose(binned.fit(X, y).predict(X), exact.fit(X, y).predict(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(binned.huber_deltas_, exact.huber_deltas_, rtol=1e-12)
    assert audit(binned, X, y).holds
    binned.huber_deltas_ = binned.huber_deltas_ * 1.1
    assert not audit(binned, X, y).holds


def test_a_delta_of_0_leaves_nothing_open():
    """A row at the median makes δ 0, and every loss with it: leaves then take the median, as for small δ."""
    X, y = np.zeros((5, 1)), np.array([1.0, 2.0, 3.0, 5.0, 9.0])
    model = HistGradientBoostingRegressor("huber", alpha=0.1, max_iter=1).fit(X, y)
    assert model.huber_deltas_ == [0.0]
    assert (model.predict(X) == 3.0).all()
    assert audit(model, X, y).holds
    model.trees_ = replace(model.trees_, value=model.trees_.value + 1.0)
    assert not audit(model, X, y).holds


def test_hubers_loss_stops_early_goes_on_and_keeps_to_monotone_columns():
    X, y = problem(150)
    fits = [
        HistGradientBoostingRegressor("huber", max_iter=4, random_state=0, **settings).fit(X, y)
        for settings in ({"early_stopping": True, "warm_start": True}, {"monotonic_cst": [0, 0, 1, 0]})
    ]
    fits[0].set_params(max_iter=7).fit(X, y)
    assert len(fits[0].huber_deltas_) == fits[0].n_iter_
    assert all(model.certificate_.holds and audit(model, X, y).holds for model in fits)


def test_stumps_carry_their_duality_gap():
    X, y = problem(300)
    few, many = (
        HistGradientBoostingRegressor(max_leaf_nodes=2, max_iter=m).fit(X, y).certificate_ for m in (20, 400)
    )
    for found in (few, many):
        assert found.kind == "bounded"
        assert found.bound <= found.objective
    # Boosting with small steps comes close to the best additive model of its size (Hastie et al., ESL 16.2).
    assert many.objective <= few.objective
    assert many.relative_gap < 0.6


# Threads, sources, weights ---------------------------------------------------------------------------------------


def test_same_bits_for_threads_and_sources(tmp_path):
    import dask.dataframe as dd
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = problem(30_000, d=24)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(24)]).assign(y=y)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=7000)
    model = HistGradientBoostingRegressor(max_iter=4, early_stopping=False, random_state=0)
    found = set()
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            found.add(digest(model.fit(X, y).trees_))
    finally:
        set_threads(None)
    found.add(digest(model.fit(str(tmp_path / "t.parquet"), "y").trees_))
    found.add(digest(model.fit(dd.from_pandas(frame, npartitions=3), "y").trees_))
    assert len(found) == 1


def test_rows_without_weight_are_not_there():
    X, y = problem(300)
    w = np.random.default_rng(0).integers(0, 2, 300)
    settings = {"max_iter": 5, "random_state": 0}
    weighted = HistGradientBoostingRegressor(**settings).fit(X, y, w)
    without = HistGradientBoostingRegressor(**settings).fit(X[w > 0], y[w > 0])
    assert np.allclose(weighted.predict(X), without.predict(X), rtol=1e-6)
    # A block of a long table may have no other rows.
    assert plain_trees(weighted.trees_).leaf_table(0, 2, np.empty((0, 4))).shape == (2, 0)


# Parameters ------------------------------------------------------------------------------------------------------


def test_warm_start_goes_on_where_it_stopped():
    X, y = problem()
    whole = HistGradientBoostingClassifier(max_iter=8, random_state=0).fit(X, y > 0)
    parts = HistGradientBoostingClassifier(max_iter=3, random_state=0, warm_start=True).fit(X, y > 0)
    parts.set_params(max_iter=8).fit(X, y > 0)
    assert parts.n_iter_ == 8
    assert np.allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-10)
    assert parts.certificate_.holds


@pytest.mark.parametrize("scoring", ["loss", None, "roc_auc"])
def test_early_stopping_keeps_rows_and_is_audited(scoring):
    X, y = problem(800)
    model = HistGradientBoostingClassifier(
        max_iter=200,
        early_stopping=True,
        scoring=scoring,
        n_iter_no_change=3,
        random_state=1,
        learning_rate=0.3,
        refit_leaves=False,
    ).fit(X, y > 0)
    assert model.do_early_stopping_
    assert model.n_iter_ < 200
    assert len(model.train_score_) == len(model.validation_score_) == model.n_iter_ + 1
    assert model.certificate_.holds
    assert audit(model, X, y > 0).holds
    model.validation_seed_ += 1
    assert not audit(model, X, y > 0).holds


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_after_early_stopping_leaves_are_those_of_all_rows(classes):
    X, y = problem(400)
    y = np.digitize(y, [-0.5, 0.5][: classes - 1]) if classes else y
    cls = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    settings = {"early_stopping": True, "n_iter_no_change": 2, "random_state": 1, "learning_rate": 0.5}
    model = cls(**settings).fit(X, y)
    before = cls(**settings, refit_leaves=False).fit(X, y)
    assert np.array_equal(model.trees_.threshold, before.trees_.threshold)
    assert np.array_equal(model.validation_score_, before.validation_score_)
    assert (model.trees_.count[0], before.trees_.count[0]) == (400, 360)
    assert audit(model, X, y).holds
    assert model.objective(X, y).total <= before.objective(X, y).total
    model.refit_leaves = False
    assert not audit(model, X, y).holds


def test_several_quantiles_do_not_cross():
    X, y = problem(500)
    levels = [0.1, 0.5, 0.9]
    model = HistGradientBoostingRegressor("quantile", quantile=levels, max_iter=60, max_leaf_nodes=8).fit(X, y)
    raw, found = model._raw(X), model.predict(X)
    assert found.shape == (500, 3)
    assert (np.diff(raw, axis=1) < 0).any()
    assert (np.diff(found, axis=1) >= 0).all()
    # Scores in order have no larger loss (Chernozhukov, Fernández-Val & Galichon 2010).
    loss = plain_score_loss("quantiles", tuple(levels))
    assert loss.value(y, found).sum() < loss.value(y, raw).sum()
    assert np.allclose((y[:, None] <= found).mean(axis=0), levels, atol=0.07)
    assert 0 < model.score(X, y) < 1
    assert audit(model, X, y).holds
    alone = HistGradientBoostingRegressor("quantile", quantile=0.5, max_iter=1).fit(X, y)
    assert model.trees_.baseline[1] == alone.trees_.baseline[0]
    model.quantile = [0.1, 0.6, 0.9]
    assert not audit(model, X, y).holds


def test_the_learning_rate_follows_the_rows_when_asked_to():
    X, y = problem(400)
    model = HistGradientBoostingRegressor(learning_rate="auto", max_iter=2)
    few, many = (clone(model).fit(X[:n], y[:n]) for n in (100, 400))
    assert 0 < few.learning_rate_ < many.learning_rate_ < 0.2
    assert audit(many, X, y).holds
    many.learning_rate = few.learning_rate_
    assert not audit(many, X, y).holds


def test_staged_answers_end_at_the_answer():
    X, y = problem()
    model = HistGradientBoostingClassifier(max_iter=4).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert len([*model.staged_predict(X)]) == 4
    assert np.allclose([*model.staged_predict_proba(X)][-1], model.predict_proba(X))
    assert np.allclose([*model.staged_decision_function(X)][-1], model.decision_function(X))


def test_monotone_predictions_rise():
    X, y = problem(500)
    model = HistGradientBoostingRegressor(max_iter=20, monotonic_cst=[1, 0, -1, 0]).fit(X, y)
    assert model.certificate_.holds
    line = np.linspace(-3, 3, 50)
    for row in X[:20]:
        grid = np.tile(row, (50, 1))
        grid[:, 0] = line
        assert (np.diff(model.predict(grid)) >= 0).all()
        grid = np.tile(row, (50, 1))
        grid[:, 2] = line
        assert (np.diff(model.predict(grid)) <= 0).all()


def test_without_interactions_the_model_is_additive():
    X, y = problem(500)
    model = HistGradientBoostingRegressor(max_iter=10, interaction_cst="no_interactions").fit(X, y)
    a, b = X[:100].copy(), X[100:200].copy()
    mixed = a.copy()
    mixed[:, 0] = b[:, 0]
    other = b.copy()
    other[:, 0] = a[:, 0]
    total = model.predict(a) + model.predict(b)
    assert np.allclose(model.predict(mixed) + model.predict(other), total, atol=1e-9)


def test_categories_of_a_frame_are_told_apart():
    rng = np.random.default_rng(0)
    kind = rng.choice(["red", "green", "blue", "black"], 400)
    frame = pd.DataFrame({"kind": pd.Categorical(kind), "x": rng.normal(size=400)})
    y = np.isin(kind, ["red", "blue"]) * 2.0 + 0.1 * frame["x"].to_numpy()
    model = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=2, learning_rate=0.5).fit(frame, y)
    assert model.is_categorical_.tolist() == [True, False]
    assert model.certificate_.holds
    assert audit(model, frame, y).holds
    assert model.score(frame, y) > 0.99
    new = pd.DataFrame({"kind": pd.Categorical(["purple"]), "x": [0.0]})
    assert np.isfinite(model.predict(new)).all()


def test_missing_values_have_a_side():
    X, _ = problem(400)
    gone = np.random.default_rng(0).random(400) < 0.3
    X[gone, 3] = np.nan
    model = HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=2, learning_rate=1.0).fit(X, 3.0 * gone)
    assert model.certificate_.holds
    assert np.allclose(model.predict(X), 3.0 * gone)
    empty = np.full((1, 4), np.nan)
    assert np.isfinite(model.predict(empty)).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"monotonic_cst": [1, 0]}, "for each of the 4 columns"),
        ({"monotonic_cst": [2, 0, 0, 0]}, "-1, 0 or 1"),
        ({"interaction_cst": "threes"}, "pairwise"),
        ({"interaction_cst": [{0, 9}]}, "columns from 0 to 3"),
        ({"categorical_features": [0], "monotonic_cst": [1, 0, 0, 0]}, "categories have no order"),
        ({"categorical_features": ["a"]}, "names of columns"),
        ({"max_bins": 300}, "max_bins"),
        ({"interaction_cst": [{0, 1}, set()]}, "at least one column"),
        ({"loss": "quantile", "quantile": [0.9, 0.1]}, "ascending"),
        ({"loss": "quantile"}, "quantile"),
        ({"loss": "gamma"}, "targets above 0"),
    ],
)
def test_contradictions_are_refused_in_words(settings, words):
    X, y = problem()
    with pytest.raises((DataError, ValueError), match=words):
        HistGradientBoostingRegressor(**settings).fit(X, y)


def test_a_column_has_one_direction():
    frame = pd.DataFrame(problem(60)[0], columns=list("abcd"))
    with pytest.raises(DataError, match="two things of column 0"):
        HistGradientBoostingRegressor(monotonic_cst={"a": 1, 0: -1}).fit(frame, problem(60)[1])


@pytest.mark.parametrize("loss", ["log_loss", "poisson", "gamma"])
def test_leaves_of_late_stages_hold_where_slopes_are_all_but_nought(loss):
    # Slopes there are differences of a mean and a target, or of a probability and 1, with the digits of these.
    settings = {"max_iter": 60, "min_samples_leaf": 2, "early_stopping": False, "random_state": 0}
    if loss == "log_loss":
        X, y = (part[:300] for part in load_digits(return_X_y=True))
        X = X[:, 20:40]
        model = HistGradientBoostingClassifier(learning_rate=0.2, **settings).fit(X, y)
    else:
        X, y = load_diabetes(return_X_y=True)
        model = HistGradientBoostingRegressor(loss=loss, learning_rate=0.5, **settings).fit(X, y)
    assert model.certificate_.holds
    leaf = int(np.flatnonzero(model.trees_.left < 0)[-1])
    model.trees_.value[leaf] *= 1 + 1e-6
    assert not audit(model, X, y).holds


def test_a_row_that_outweighs_all_others_decides_the_first_score():
    # The first target lies far from it: taken from there alone, the mean has lost a digit that the audit asks for.
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(80, 2)), rng.normal(size=80), np.ones(80)
    y[0], y[3], w[3] = 8.0, 0.1, 1e9
    model = HistGradientBoostingRegressor(max_iter=2).fit(X, y, sample_weight=w)
    mean = sum(Fraction(a) * Fraction(b) for a, b in zip(w.tolist(), y.tolist(), strict=True)) / Fraction(w.sum())
    assert abs(Fraction(model.trees_.baseline[0]) - mean) <= Fraction(np.spacing(float(mean)))
    assert model.certificate_.holds


@pytest.mark.parametrize("X", [np.ones((60, 2)), np.full((60, 2), np.nan)])
def test_columns_that_say_nothing_leave_the_best_constant(X):
    y = np.arange(60.0)
    model = HistGradientBoostingRegressor(max_iter=2).fit(X, y)
    assert np.allclose(model.predict(X), 29.5)
    assert model.certificate_.holds


# The checker cannot be fooled ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "quantile", "poisson", "huber"])
@pytest.mark.parametrize("name", ["value", "threshold", "left", "count", "column", "baseline", "missing_left", "low"])
def test_a_changed_tree_is_found_out(loss, name):
    X, y = problem(300)
    X[::7, 1] = np.nan
    y = np.exp(y / 2) if loss == "poisson" else y
    model = HistGradientBoostingRegressor(loss, quantile=0.6, max_iter=4, max_leaf_nodes=6).fit(X, y)
    assert audit(model, X, y).holds
    trees = model.trees_
    changed = np.array(getattr(trees, name))
    inner = np.flatnonzero(trees.left >= 0)
    if name == "value":
        changed[np.flatnonzero(trees.left < 0)[3]] *= 1.05 if loss != "quantile" else 3.0
    elif name == "left":
        changed[inner[0]], changed[inner[1]] = changed[inner[1]], changed[inner[0]]
    elif name == "column":
        changed[inner[0]] = (changed[inner[0]] + 2) % 4
    elif name == "missing_left":
        changed[inner] = 1 - changed[inner]
    elif name == "low":
        changed[inner[0] + 1] = 0.0
    else:
        changed[inner[0] if name != "baseline" else 0] += 1
    model.trees_ = replace(trees, **{name: changed})
    assert not audit(model, X, y).holds


def test_other_settings_or_rows_are_found_out():
    X, y = problem(300)
    model = HistGradientBoostingRegressor(max_iter=4, max_leaf_nodes=6).fit(X, y)
    assert not audit(model, X, y + X[:, 3]).holds
    for name, value in {"learning_rate": 0.11, "l2_regularization": 1.0, "max_leaf_nodes": 5}.items():
        wrong = HistGradientBoostingRegressor(**{**model.get_params(), name: value})
        wrong.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
        assert not audit(wrong, X, y).holds


def test_a_learning_rate_beyond_reason_is_told():
    X, y = problem(300)
    with pytest.warns(CertificateWarning, match="training loss"):
        HistGradientBoostingRegressor(learning_rate=2.5, max_iter=5).fit(X, y)


def test_targets_next_to_nothing_are_learnt_or_refused():
    """A power of two takes the unit away: the same trees. Bins compare squares, which are 0 below 1.5e-154."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    usual = GradientBoostingRegressor(n_estimators=10).fit(X, y).predict(X)
    for unit, digits in ((2.0**-996, 1e-12), (2.0**-1030, 1e-7)):  # the second is denormal
        tiny = GradientBoostingRegressor(n_estimators=10).fit(X, y * unit)
        np.testing.assert_allclose(tiny.predict(X) / unit, usual, atol=digits)
        assert tiny.certificate_.holds
        with pytest.raises(ValueError, match="whose square is 0"):
            HistGradientBoostingRegressor(max_iter=10).fit(X, y * unit)
