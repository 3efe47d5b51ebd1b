"""What every estimator owes its user: all or nothing, untouched input, same bits, weights that count, progress."""

import io
import pickle
import re
import warnings
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn import config_context
from sklearn.base import clone
from sklearn.callback import ProgressBar as ScikitProgressBar
from sklearn.callback import ScoringMonitor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import certifit
from certifit import (
    CertificateWarning,
    DataError,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ProgressBar,
)
from certifit.neural_network.multilayer_perceptron import MultilayerPerceptron
from certifit.rows import ArrayRows
from tests.common.catalogue import (
    CATALOGUE,
    ONCE,
    every_class,
    every_converging,
    every_estimator,
    every_sum,
    every_with,
    fitted_part,
    unfitted,
)


def outputs(model, X):
    """What the model says about rows, whatever it is."""
    methods = [m for m in ("transform", "predict", "predict_proba", "decision_function") if hasattr(model, m)]
    assert methods
    return {m: getattr(model, m)(X) for m in methods}


def assert_same(a, b, **tolerance):
    assert a.keys() == b.keys()
    for name in a:
        if tolerance:
            np.testing.assert_allclose(a[name], b[name], err_msg=name, **tolerance)
        else:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def fitted(model, entry):
    return {name: fitted_part(model, name) for name in entry.audited}


# ------------------------------------------------------------------------------------- all or nothing
class Raises:
    """A callback that fails at the n-th call of one of its hooks."""

    def __init__(self, hook, n=1, error=KeyboardInterrupt):
        self.hook, self.left, self.error = hook, n, error
        self.down = False

    def _call(self, hook):
        if hook == self.hook:
            self.left -= 1
            if self.left == 0:
                raise self.error

    def setup(self, estimator, context):
        self._call("setup")

    def on_fit_task_begin(self, estimator, context):
        self._call("begin")

    def on_fit_task_end(self, estimator, context):
        self._call("end")

    def teardown(self, estimator, context):
        self.down = True


@every_class
def test_an_interrupt_in_a_callback_leaves_the_estimator_unfitted(entry):
    X, y = entry.data()
    model = entry.make()
    for hook, error in (("setup", ValueError), ("begin", KeyboardInterrupt), ("end", ValueError)):
        callback = Raises(hook, error=error)
        model.set_callbacks(callback)
        with pytest.raises(error):
            model.fit(X, y)
        assert unfitted(model)
        assert callback.down
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
    assert_same(outputs(model.set_callbacks().fit(X, y), X), outputs(entry.fitted(), X))


@every_with("max_iter")
def test_impossible_limits_are_refused(entry):
    bad = {"max_iter": (-2, 2.5, "10"), "tol": (-1e-3, "tight", np.nan)}
    for name, value in ((name, value) for name, values in bad.items() for value in values):
        with pytest.raises(DataError, match=rf"{name}={value!r}; wanted a (whole )?number of at least (0|-1)"):
            entry.make(**{name: value}).fit(*entry.data())


@every_with("max_iter")
def test_an_interrupt_between_passes_leaves_the_estimator_unfitted(entry):
    """But for networks, which keep what they have learnt in hours, and say so."""
    X, y = entry.data()
    model = entry.fitted()
    with pytest.raises(KeyboardInterrupt) as caught:
        model.set_callbacks(Raises("end", n=2)).fit(X, y)
    check_what_is_left(model, X, caught.value)  # nor is the first fit left


def check_what_is_left(model, X, error):
    """An interrupted network keeps what it has learnt, unproved, once it took a step; other models keep nothing."""
    if isinstance(model, MultilayerPerceptron) and "was interrupted after" in str(error):
        assert model.certificate_.kind == "unproved"
        assert len(model.predict(X)) == len(X)
    else:
        assert unfitted(model)


@every_estimator
def test_weights_can_be_routed(entry):
    """scikit-learn's routing reads the arguments of every method that learns."""
    with config_context(enable_metadata_routing=True):
        model = entry.make()
        for name in ("set_fit_request", "set_partial_fit_request"):
            if hasattr(model, name) and "sample_weight" in signature(getattr(model, name)).parameters:
                assert getattr(model, name)(sample_weight=True) is model


@pytest.mark.parametrize("entry", [e for e in ONCE if e.is_sum], ids=str)
def test_an_interrupt_inside_a_pass_leaves_the_estimator_unfitted(entry, monkeypatch, blocks_of):
    """In every pass in turn, after its first block of several."""
    X, y = entry.data(1000)
    blocks_of(300)
    blocks, left = ArrayRows.__iter__, 0

    def interrupted(self):
        nonlocal left
        left -= 1
        for block in blocks(self):
            yield block
            if left == 0:
                raise KeyboardInterrupt

    monkeypatch.setattr(ArrayRows, "__iter__", interrupted)
    for n in range(1, 6):
        left = n
        model = entry.make()
        try:
            model.fit(X, y)
        except KeyboardInterrupt as error:
            check_what_is_left(model, X, error)
        else:
            break
    assert n > 1


@every_class
def test_a_refused_table_leaves_nothing_of_an_earlier_fit(entry):
    X, y = entry.data()
    model = entry.fitted()
    with pytest.raises(DataError):
        model.fit(np.where(X[3, 1] == X, np.inf if getattr(entry.cls, "missing", False) else np.nan, X), y)
    assert unfitted(model)
    for method in outputs(entry.fitted(), X):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    with pytest.raises(NotFittedError):
        model.objective(X, y)


@every_class
def test_a_warning_made_an_error_leaves_the_estimator_unfitted(entry):
    """Whoever asks for errors gets no half-proved model."""
    X, y = entry.data()
    hopeless = {"tol": 0.0, "max_iter": 0}
    model = entry.make(**{name: value for name, value in hopeless.items() if entry.has(name)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model.fit(X, y)
        except CertificateWarning:
            assert unfitted(model)
        else:
            assert model.certificate_.holds


# ------------------------------------------------------------------------------------ untouched input
@pytest.mark.parametrize("entry", [e for e in ONCE if e.is_sum], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_input_is_never_changed(entry, dtype):
    X, y = entry.data()
    X, w = X.astype(dtype), np.linspace(1, 2, len(X))
    saved = X.copy(), None if y is None else y.copy(), w.copy()
    model = entry.make().fit(X, y, sample_weight=w)
    outputs(model, X)
    model.objective(X, y, w)
    for a, b in zip((X, y, w), saved, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("entry", [e for e in ONCE if e.is_sum], ids=str)
def test_read_only_input(entry):
    X, y = entry.data()
    w = np.linspace(1, 2, len(X))
    for a in (X, y, w):
        if a is not None:
            a.flags.writeable = False
    model = entry.make().fit(X, y, sample_weight=w)
    outputs(model, X)
    assert certifit.audit(model, X, y, w).holds


@every_class
def test_what_is_handed_out_is_the_users_own(entry):
    """Changing an answer does not change the model."""
    X, _ = entry.data()
    model = entry.fitted()
    before = outputs(model, X)
    for answer in outputs(model, X).values():
        answer[:] = 0
    assert_same(outputs(model, X), before)


# ------------------------------------------------------------------------------------ copies and bits
@every_class
def test_pickle_and_clone(entry):
    X, y = entry.data()
    model = entry.fit()
    back = pickle.loads(pickle.dumps(model))
    assert_same(outputs(back, X), outputs(model, X))
    assert back.certificate_ == model.certificate_
    copy = clone(model)
    assert unfitted(copy)
    assert_same(outputs(copy.fit(X, y), X), outputs(model, X))


@every_estimator
def test_two_fits_give_the_same_bits(entry):
    X, _ = entry.data()
    assert_same(outputs(entry.fit(), X), outputs(entry.fitted(), X))


@every_sum
def test_any_number_of_threads_gives_the_same_bits(entry, threads, blocks_of):
    """Four blocks and a rest, of more rows than those that start from a sample take for it."""
    X, y = entry.data(70_000)
    blocks_of(16_000)
    w = np.random.default_rng(0).exponential(size=len(X))
    rough = {"tol": 1e-4} if entry.has("tol") else {}  # the bits of a pass count, not how many passes there are
    seen = []
    for n in (1, 3):
        threads(n)
        model = entry.make(**rough).fit(X, y, sample_weight=w)
        seen.append((fitted(model, entry), model.certificate_, outputs(model, X[:100])))
    for attributes, certificate, answers in seen[1:]:
        assert_same(attributes, seen[0][0])
        assert certificate == seen[0][1]
        assert_same(answers, seen[0][2])


@every_class
def test_memory_order_does_not_matter(entry):
    X, y = entry.data()
    plain = outputs(entry.fitted(), X)
    assert_same(outputs(entry.make().fit(np.asfortranarray(X), y), X), plain)
    assert_same(outputs(entry.make().fit(np.repeat(X, 2, axis=0)[::2], y), X), plain)


@every_estimator
def test_float32(entry):
    """Half the memory, the same answer to half the digits, and it is still proved."""
    X, y = entry.data()
    model, single = entry.fitted(), entry.make().fit(X.astype(np.float32), y)
    assert single.certificate_.holds
    assert certifit.audit(single, X.astype(np.float32), y).holds
    assert_same(fitted(single, entry), fitted(model, entry), rtol=1e-3, atol=1e-4)


# ---------------------------------------------------------------------------------------------- names
@every_class
def test_feature_names(entry):
    X, y = entry.data()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = entry.make().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.n_features_in_ == 4
    assert_same(outputs(model, frame), outputs(entry.fitted(), X))
    with pytest.raises(ValueError, match="feature names"):
        next(iter(outputs(model, frame[["b", "a", "c", "d"]])))


# -------------------------------------------------------------------------------------------- weights
def precise(entry):
    """As exact as it goes, so that equal problems give equal answers."""
    return entry.make(tol=1e-13) if entry.has("penalty") else entry.make()


@every_sum
def test_weight_two_is_a_row_twice(entry):
    X, y = entry.data()
    times = 1 + np.arange(len(X)) % 2
    weighted = precise(entry).fit(X, y, sample_weight=times)
    repeated = precise(entry).fit(np.repeat(X, times, axis=0), None if y is None else np.repeat(y, times))
    assert_same(outputs(weighted, X), outputs(repeated, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        weighted.certificate_.objective, repeated.certificate_.objective, rtol=1e-10, atol=1e-10
    )


@every_sum
def test_weight_zero_is_a_row_that_is_absent(entry):
    X, y = entry.data()
    there = np.arange(len(X)) % 4 != 0
    wild = np.where(there[:, None], X, 1e6)  # what a row without weight says does not matter
    weighted = precise(entry).fit(wild, y, sample_weight=there.astype(float))
    without = precise(entry).fit(X[there], None if y is None else y[there])
    assert weighted.certificate_.holds
    assert_same(outputs(weighted, X), outputs(without, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.certificate_.objective, without.certificate_.objective, rtol=1e-9, atol=1e-10)


@every_sum
def test_no_weights_are_weights_of_one(entry):
    X, y = entry.data()
    assert_same(outputs(entry.make().fit(X, y, sample_weight=np.ones(len(X))), X), outputs(entry.fitted(), X))


# ------------------------------------------------------------------------------------------ max_time
@every_with("max_time")
def test_out_of_time_returns_the_best_so_far(entry):
    X, y = entry.data()
    with pytest.warns(CertificateWarning):
        model = entry.fit(max_time=0.0)
    assert not model.certificate_.holds
    assert certifit.audit(model, X, y).objective >= entry.fitted().certificate_.objective
    assert_same(outputs(entry.fit(max_time=1e6), X), outputs(entry.fitted(), X))


# ------------------------------------------------------------------------------------------ progress
@every_class
def test_scikit_learns_progress_bar(entry, capsys):
    X, y = entry.data()
    model = entry.make().set_callbacks(ScikitProgressBar()).fit(X, y)
    out = capsys.readouterr().out
    assert f"{type(model).__name__} - fit" in out
    assert "100%" in out
    assert_same(outputs(model, X), outputs(entry.fitted(), X))


@pytest.mark.parametrize("entry", [e for e in ONCE if hasattr(e.cls, "score")], ids=str)
def test_scikit_learns_scoring_monitor(entry):
    """The score at every pass, from a model as if fit had stopped there; the last one is the fitted model's."""
    X, y = entry.data()
    y = np.zeros(len(X)) if y is None else y
    monitor = ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X, y)})
    model = entry.make().set_callbacks(monitor).fit(X, y)
    log = monitor.get_logs().data
    assert log[0]["task_name"] == "fit"
    score = model.score(X, y)
    assert log[0]["score"] == score
    passes = [line["score"] for line in log if line["task_name"] == "pass"]
    assert all(np.isfinite(passes))
    if passes:
        # Least squares end with one more step, its gradient to twice the precision.
        refined = type(model).__name__ == "LinearRegression"
        assert passes[-1] == (pytest.approx(score, rel=1e-14) if refined else score)
    stages = isinstance(model, GradientBoostingClassifier | GradientBoostingRegressor)  # whose number is n_estimators
    assert bool(passes) == (entry.has("max_iter") or stages)


@every_with("max_iter")
def test_our_progress_bar_shows_the_gap_falling(entry):
    X, y = entry.data()
    screen = io.StringIO()
    callback = ProgressBar(Console(file=screen, width=120, force_terminal=True, color_system=None))
    model = entry.make().set_callbacks(callback).fit(X, y)
    last = screen.getvalue().split("\r")[-1]
    assert type(model).__name__ in last
    assert re.search(r"pass \d+", last)
    assert f"objective {model.certificate_.objective:.6g}"[:12] in last
    assert_same(outputs(model, X), outputs(entry.fitted(), X))
    assert not callback._screens
    assert not callback._bars


@pytest.mark.parametrize("entry", [e for e in ONCE if not e.has("max_iter")], ids=str)
def test_our_progress_bar_is_harmless_where_there_is_no_loop(entry):
    X, y = entry.data()
    callback = ProgressBar(Console(file=io.StringIO()))
    model = entry.make().set_callbacks(callback).fit(X, y)
    assert_same(outputs(model, X), outputs(entry.fitted(), X))
    assert not callback._screens
    assert not callback._bars


@every_with("max_iter")
def test_our_progress_bar_ends_with_an_interrupted_fit(entry):
    X, y = entry.data()
    callback = ProgressBar(Console(file=io.StringIO()))
    with pytest.raises(KeyboardInterrupt):
        entry.make().set_callbacks(callback, Raises("end")).fit(X, y)
    assert not callback._screens


@every_converging
def test_a_callback_may_stop_the_fit(entry):
    X, y = entry.data()

    class Enough(Raises):
        def on_fit_task_end(self, estimator, context):
            return context.task_name == "pass"

    with pytest.warns(CertificateWarning):
        model = entry.make().set_callbacks(Enough("never")).fit(X, y)
    assert not model.certificate_.holds
    check_is_fitted(model)


@every_class
def test_contexts_do_not_hoard_parameters(entry):
    """Callbacks' contexts live as long as the fit; they must not keep every pass's arrays alive."""

    class Hoard(Raises):
        root = None

        def on_fit_task_end(self, estimator, context):
            if context.parent is None:
                Hoard.root = context

    X, y = entry.data()
    entry.make().set_callbacks(Hoard("never")).fit(X, y)
    kept = [value for context in Hoard.root for value in vars(context).values()]
    assert not any(isinstance(value, np.ndarray) for value in kept)
    assert all(getattr(value, "params", None) is None for value in kept)


# -------------------------------------------------------------------------------------- in company
def test_inside_pipelines_and_searches():
    entry = next(e for e in CATALOGUE if e.cls is certifit.LogisticRegression)
    X, y = entry.data()
    pipe = make_pipeline(StandardScaler(), certifit.PCA(), certifit.LogisticRegression())
    search = GridSearchCV(pipe, {"pca__n_components": [1, 3], "logisticregression__C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    assert certifit.audit(search.best_estimator_, X, y).holds
