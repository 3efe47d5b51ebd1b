"""The benchmark harness on tiny problems: who is compared with whom, the judges, the reports."""

import gzip
import json
import logging
import math
import os
import struct
import subprocess
import sys
import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import hinge_loss, log_loss, roc_auc_score
from sklearn.svm import LinearSVC

from benchmarks import datasets, harness, import_time, out_of_core, reporting
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.boosting import HeldOutRanking
from benchmarks.harness import Case, Contestant, Options, contest
from benchmarks.history import busy_share, keep_record
from benchmarks.kmeans import Inertia, kmeans_tall
from benchmarks.linear_svm import HingeLoss, svm_tall
from benchmarks.logistic import LogLoss, grid, logistic_tall
from benchmarks.memory import peak_in_child
from benchmarks.pca import LeftOut, pca_tall
from benchmarks.peers import accelerated, cannot, estimator


def toy(name, module="math", value=1.0, cost=1.0, calls=None, **more):
    """A contestant whose answer and seconds are given (functions of tol, or constants)."""

    def fit(tol):
        if calls is not None:
            calls.append(name)
        return SimpleNamespace(
            value=value(tol) if callable(value) else value, cost=cost(tol) if callable(cost) else cost
        )

    return Contestant(name, module, fit, **more)


def run(contestants, options=None, **case):
    """The result of one toy case."""
    defaults = {"quality": 1e-3, "target": 0.5, "optimum": lambda: (1.0, 0.0)}
    one = Case("toy", "numbers", contestants, lambda model: model.value, **{**defaults, **case})
    report = contest(lambda _: [one], "toy", options or Options(repeat=3))
    return report.data["cases"][0], report


@pytest.fixture
def fixed_times(monkeypatch):
    """Calls take the seconds their models say, on an otherwise idle machine."""
    monkeypatch.setattr(harness, "timed", lambda call: (model := call(), model.cost, 0.0))


def by_name(result):
    return {c["name"]: c for c in result["contestants"]}


@pytest.mark.usefixtures("fixed_times")
class TestContest:
    def test_ratio_is_to_the_fastest_peer_of_equal_quality(self):
        result, _ = run(
            [toy("ours", "certifit", cost=1.0), toy("fast but worse", value=1.1, cost=0.1),
             toy("equal", value=1.0005, cost=4.0), toy("slow", cost=9.0)]
        )  # fmt: skip
        assert result["best_peer"] == "equal"
        assert result["ratio"] == 0.25
        assert result["met"]
        assert not by_name(result)["fast but worse"]["equal"]

    def test_no_ratio_when_ours_is_worse(self):
        result, report = run([toy("ours", "certifit", value=2.0), toy("peer")])
        assert math.isnan(result["ratio"])
        assert not result["met"]
        assert "No ratio" in report.tables[0].note

    def test_the_worst_of_several_calls_counts(self):
        values = iter([1.0, 1.0, 1.5, 1.0])
        result, _ = run([toy("ours", "certifit"), toy("erratic", value=lambda _: next(values))])
        assert by_name(result)["erratic"]["objective"] == 1.5
        assert result["best_peer"] is None

    def test_without_a_known_optimum_the_best_seen_is_it(self):
        result, _ = run([toy("ours", "certifit", value=3.0), toy("peer", value=2.0)], optimum=None)
        assert result["best_objective"] == 2.0
        assert by_name(result)["ours"]["suboptimality"] == 0.5

    def test_first_call_is_apart_and_medians_are_of_warm_calls(self):
        seconds = iter([10.0, 3.0, 1.0, 2.0])
        result, _ = run([toy("ours", "certifit", cost=lambda _: next(seconds)), toy("peer")])
        ours = by_name(result)["ours"]
        assert (ours["first"], ours["warm"], ours["median"]) == (10.0, [3.0, 1.0, 2.0], 2.0)

    def test_calls_interleave_and_nobody_always_goes_first(self):
        calls = []
        run([toy(name, calls=calls) for name in "abc"], Options(repeat=3))
        assert "".join(calls) == "abc" + "abc" + "bca" + "cab"

    def test_loosest_tolerance_that_reaches_the_quality(self):
        tols = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
        result, _ = run([toy("tuned", value=lambda tol: 1.0 + 10 * tol, tols=tols)], quality=1e-3 * 1.001)
        assert by_name(result)["tuned"]["tol"] == 1e-4

    def test_tightest_tolerance_when_none_reaches_it(self):
        result, report = run([toy("hopeless", value=2.0, tols=(1e-1, 1e-2, 1e-3))])
        assert by_name(result)["hopeless"]["tol"] == 1e-3
        assert "(worse)" in report.tables[0].rows[0][4]

    def test_search_comes_from_the_loose_side(self):
        asked = []
        tols = tuple(0.5**k for k in range(20))
        contestant = toy("tuned", value=lambda tol: (asked.append(tol), 1.0 + tol)[1], tols=tols)
        run([contestant], Options(repeat=1), quality=0.5**5)
        assert asked[:4] == [tols[0], tols[1], tols[3], tols[7]]  # growing steps, until one is good enough
        assert asked[-1] == tols[5]
        assert len(asked) == 7  # two by bisection, one warm call

    def test_patience_ends_the_search_and_bounds_the_ratio(self):
        slow = toy("slow", value=lambda tol: 1.0 + tol, cost=lambda tol: 1.0 / tol, tols=(0.1, 0.02, 0.01, 1e-3))
        result, report = run([toy("ours", "certifit", cost=5.0), slow], quality=1e-6)
        found = by_name(result)["slow"]
        assert (found["tol"], found["median"], found["warm"]) == (0.02, 50.0, [])
        assert found["gave_up"]
        assert not found["equal"]
        assert result["best_peer"] == "slow, given up"
        assert result["ratio"] == 0.1  # at most: it would need longer than that
        assert "(given up)" in report.tables[0].rows[1][4]

    def test_nobody_is_dropped_in_silence(self):
        def broken(_):
            raise ValueError("no such luck")

        result, report = run(
            [Contestant("absent", "no_such_module_here", broken), Contestant("broken", "math", broken),
             cannot("unable", "math", "two classes only"), toy("patient", slow=True), toy("fine")]
        )  # fmt: skip
        problems = {name: c["problem"] for name, c in by_name(result).items()}
        assert problems["absent"].startswith("not installed")
        assert problems["broken"] == "failed: ValueError: no such luck"
        assert problems["unable"] == "two classes only"
        assert "--slow" in problems["patient"]
        assert problems["fine"] == ""
        assert len(report.tables[0].rows) == 5

    def test_a_failure_in_a_later_round_is_a_failure(self):
        values = iter([1.0, 1.0])
        result, _ = run([toy("breaks", value=lambda _: next(values)), toy("fine")])
        assert "StopIteration" in by_name(result)["breaks"]["problem"]
        assert result["best_peer"] == "fine"

    def test_warnings_are_kept(self):
        def value(_):
            warnings.warn("stopped early", UserWarning, stacklevel=1)
            return 1.0

        result, _ = run([toy("warns", value=value)])
        assert by_name(result)["warns"]["warnings"] == ["UserWarning: stopped early"]

    def test_budget_ends_further_calls(self):
        result, report = run([toy("slow", cost=60.0), toy("fast")], Options(repeat=5, budget=50.0))
        assert by_name(result)["slow"]["warm"] == []
        assert by_name(result)["slow"]["median"] == 60.0
        assert len(by_name(result)["fast"]["warm"]) == 5
        assert report.tables[0].rows[1][3] == "one call"

    def test_peers_are_chosen_by_part_of_their_name_and_ours_stays(self):
        contestants = [toy("ours", "certifit"), toy("red"), toy("blue")]
        result, _ = run(contestants, Options(peers=("blu",)))
        assert list(by_name(result)) == ["ours", "blue"]


def test_others_at_work_make_a_run_noisy(monkeypatch):
    busy = 0.2 * (os.cpu_count() or 1)  # processor seconds of others in each call of one second
    monkeypatch.setattr(harness, "timed", lambda call: (call(), 1.0, busy))
    result, report = run([toy("ours", "certifit"), toy("peer")])
    assert result["cpu_of_others"] == pytest.approx(0.2)
    assert result["noisy"]
    assert "noisy" in report.tables[0].note


def test_cpu_of_others_sees_another_process():
    before = harness.cpu_of_others()
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert harness.cpu_of_others() - before > 0.4


class TestMemory:
    def test_peak_of_a_passing_allocation(self):
        def call():
            np.ones(8_000_000).sum()  # 64 MB, gone again when the call ends

        assert 60 < peak_in_child(call) < 90

    def test_error_in_the_child(self):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            peak_in_child(lambda: 1 / 0)

    def test_death_of_the_child(self):
        with pytest.raises(RuntimeError, match="exit code 3"):
            peak_in_child(lambda: os._exit(3))

    @pytest.mark.usefixtures("fixed_times")
    def test_in_the_table(self):
        _, report = run([toy("peer"), cannot("unable", "math", "no")], Options(repeat=1, memory=True))
        assert report.tables[0].header[-1] == "peak memory"
        assert report.tables[0].rows[0][-1].endswith(" MB")


class TestJudges:
    """Against scikit-learn's own numbers."""

    def test_variance_left_out(self):
        X = datasets.tall_factors(500, 8)
        model = PCA(3).fit(X)
        expected = X.var(axis=0).sum() - model.explained_variance_.sum() * 499 / 500
        judge = LeftOut(X)
        assert judge(model) == pytest.approx(expected, rel=1e-12)
        assert judge.optimum(3) == pytest.approx(expected, rel=1e-12)
        stretched = SimpleNamespace(components_=model.components_ * [[2.0], [3.0], [0.1]])
        assert judge(stretched) == pytest.approx(expected, rel=1e-12)  # the subspace counts, not its basis
        assert judge(SimpleNamespace(components_=np.eye(8)[:3])) > expected

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_sum_of_squared_distances(self, dtype):
        X = datasets.overlapping_clusters(20_000, 4, 5).astype(dtype)
        model = KMeans(5, n_init=1, random_state=0, max_iter=3).fit(X)
        assert Inertia(X)(model) == pytest.approx(model.inertia_, rel=1e-12 if dtype == "float64" else 1e-5)

    def test_areas_under_roc_curves_of_several_models(self):
        rng = np.random.default_rng(0)
        tables = [(np.round(rng.normal(size=(200, 1)), 1), rng.integers(0, 2, 200)) for _ in range(3)]
        one = SimpleNamespace(predict_proba=lambda X: np.stack([1 - np.tanh(X[:, 0]), np.tanh(X[:, 0])], axis=1))
        expected = 1 - np.mean([roc_auc_score(y, X[:, 0]) for X, y in tables])  # with ties, by scikit-learn
        assert HeldOutRanking(tables)([one] * 3) == pytest.approx(expected, rel=1e-12)

    def test_hinge_losses_and_the_penalised_intercept(self):
        X = datasets.tall_factors(300, 5)
        y = datasets.binary_labels(X)
        model = LinearSVC(loss="hinge", C=1.0, random_state=0, max_iter=100_000).fit(X, y)
        penalty = 0.5 * (float((model.coef_**2).sum()) + float(model.intercept_[0]) ** 2)
        expected = 300 * hinge_loss(y, model.decision_function(X)) + penalty
        assert HingeLoss(X, y)(model) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("k", [2, 3])
    def test_log_loss_and_the_bound_below_it(self, k):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5))
        y = np.argmax(X[:, :k] + rng.normal(size=(300, k)), axis=1)
        judge = LogLoss(X, y, C=0.7)
        tight = LogisticRegression(C=0.7, solver="newton-cholesky", tol=1e-12).fit(X, y)
        rough = SimpleNamespace(
            coef_=1.01 * tight.coef_, intercept_=tight.intercept_ + 0.01 * np.arange(len(tight.coef_))
        )
        penalty = (tight.coef_**2).sum() / (2 * 0.7)
        expected = log_loss(y, tight.predict_proba(X), normalize=False) + penalty
        best, gap = judge.proved(tight)
        assert judge(tight) == best == pytest.approx(expected, rel=1e-12)
        assert gap < 1e-12
        value, gap = judge.proved(rough)
        assert value * (1 - gap) <= best * (1 + 1e-12) < value  # the bound is below the optimum, the value above
        assert gap < 0.01


class TestAccelerated:
    """The guard reads scikit-learn-intelex's log, in its words."""

    words = "sklearn.decomposition.PCA.fit: "

    def fit(self, *messages):
        with accelerated():
            for message in messages:
                logging.getLogger("sklearnex").info(self.words + message)

    def test_accelerated_passes_and_the_logger_is_as_before(self):
        logger = logging.getLogger("sklearnex")
        before = list(logger.handlers), logger.level, logger.propagate
        self.fit("running accelerated version on CPU")
        assert (logger.handlers, logger.level, logger.propagate) == before

    @pytest.mark.parametrize(
        "messages", [(), ("running accelerated version on CPU", "fallback to original Scikit-learn")]
    )
    def test_fallback_or_silence_is_an_error(self, messages):
        with pytest.raises(RuntimeError, match="stock scikit-learn"):
            self.fit(*messages)


def test_estimator_passes_the_tolerance_only_where_there_is_one():
    X = np.arange(12.0).reshape(6, 2)
    assert estimator("a", "sklearn.decomposition:PCA", X, n_components=1).fit(math.nan).tol == 0.0
    assert estimator("a", "sklearn.decomposition:PCA", X, tols=(0.5,)).fit(0.5).tol == 0.5


def test_grid_runs_from_loose_to_tight():
    values = grid(-1, 2)
    assert values[0] == 10.0
    assert values[-1] == pytest.approx(0.01)
    assert len(values) == 13
    assert all(a > b for a, b in pairwise(values))


class TestReporting:
    def report(self, **case):
        contestants = [{"name": "x", "package": "numpy"}]
        case = {"name": "c", "ours": 1.0, "best_peer": "p", "best_peer_median": 2.0, "ratio": 0.5, "target": 0.6,
                "met": True, "noisy": False, "contestants": contestants, "gap": math.nan, **case}  # fmt: skip
        return reporting.Report("Title", [reporting.Table("t", ["a"], [["1|2"]], "note")], {"cases": [case]})

    def test_full_run(self, tmp_path):
        docs = tmp_path / "page.md"
        docs.write_text("# Page\n<!-- demo begin -->\nold\n<!-- demo end -->\nkept\n")
        path = reporting.write(self.report(), "demo", trial=False, results=tmp_path / "r", docs=docs)
        data = json.loads(path.read_text())
        assert data["cases"][0]["gap"] is None  # NaN is not JSON
        assert data["versions"]["numpy"] == np.__version__
        assert {"cpu", "cores", "memory_gb", "blas", "python", "date"} <= set(data["machine"])
        page = docs.read_text()
        assert "old" not in page
        assert page.startswith("# Page\n<!-- demo begin -->\n## demo: Title")
        assert "<!-- demo end -->\nkept\n" in page
        assert "| 1\\|2 |" in page
        assert "| demo c | 1 s | 2 s (p) | 0.5 | 0.6 | yes |" in page  # the summary, added at the end

    def test_trial_leaves_the_documentation_alone(self, tmp_path):
        docs = tmp_path / "page.md"
        path = reporting.write(self.report(), "demo", trial=True, results=tmp_path, docs=docs)
        assert path.name == "demo.trial.json"
        assert not docs.exists()
        assert reporting.summary(tmp_path).rows == []

    def test_the_front_door_shows_the_worst_case_of_each_kind(self, tmp_path):
        for name, case in (("a_small", {}), ("a_tall", {"ratio": 0.9, "met": False}), ("b", {"ratio": 0.1})):
            reporting.write(self.report(**case), name, trial=False, results=tmp_path, docs=tmp_path / "page.md")
        table = reporting.worst_of_each_kind(tmp_path)
        assert table.startswith("**2 of 3 cases meet their targets")
        assert [line.split(" | ")[0] for line in table.splitlines()[4:]] == ["| a_tall c", "| b c"]

    def test_readme_and_benchmark_page_say_what_is_on_record(self):
        assert reporting.worst_of_each_kind() in reporting.README.read_text()
        assert reporting.summary().markdown() in reporting.DOCS.read_text()

    def test_rewriting_twice_changes_nothing(self, tmp_path):
        docs = tmp_path / "page.md"
        reporting.rewrite(docs, "demo", "text\n")
        once = docs.read_text()
        reporting.rewrite(docs, "demo", "text\n")
        assert docs.read_text() == once == "# Benchmarks\n\n<!-- demo begin -->\ntext\n<!-- demo end -->\n"


class TestDatasets:
    def test_mnist_from_a_folder(self, tmp_path):
        images = np.arange(3 * 784, dtype=np.uint32).astype(np.uint8)
        (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 3, 28, 28) + images.tobytes())
        )
        (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(struct.pack(">HBBI", 0, 8, 1, 3) + bytes([7, 0, 9]))
        )
        X, y, words = datasets.mnist(Options(mnist=tmp_path))
        assert words == "MNIST 3 x 784"
        assert y.tolist() == [7, 0, 9]
        assert X.dtype == np.float64
        assert np.array_equal(X, images.reshape(3, 784) / 255)

    def test_mnist_asked_for_and_absent(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            datasets.mnist(Options(mnist=tmp_path))

    def test_stand_in_says_so(self, monkeypatch):
        monkeypatch.delenv("CERTIFIT_MNIST", raising=False)
        X, y, words = datasets.mnist(Options(shrink=600))
        assert words.startswith("synthetic stand-in")
        assert X.shape == (100, 784)
        assert 0.0 == X.min() < X.max() <= 1.0
        assert (X.std(axis=0) == 0).any()  # constant borders, as in the real one
        assert set(y) == set(range(10))

    def test_labels_are_a_mixture(self):
        y = datasets.binary_labels(datasets.tall_factors(5000, 10))
        assert 0.2 < y.mean() < 0.45

    @pytest.mark.parametrize("cases", [pca_tall, kmeans_tall, logistic_tall, svm_tall])
    def test_cases_have_ours_first(self, cases):
        for case in cases(Options(shrink=1000)):
            assert case.contestants[0].name == "certifit"
            assert 0 < case.target <= 1
            assert {"scikit-learn", "scikit-learn-intelex"} <= {c.package for c in case.contestants}


class TestImportTime:
    def test_code_runs_after_its_preparation(self):
        assert import_time.run_timed("x = 1", "assert x == 1") >= 0

    def test_failure_is_told(self):
        assert import_time.run_timed("x = 1", "y").startswith("failed: NameError")

    def test_environment_reaches_the_process(self):
        before = "import os; assert os.environ['NUMBA_CACHE_DIR'] == 'here'"
        assert isinstance(import_time.run_timed(before, "pass", NUMBA_CACHE_DIR="here"), float)

    @pytest.mark.parametrize(
        ("value", "text"), [(0.2, "0.2 s: met"), (0.4, "0.4 s: missed"), ("failed: x", "failed: x")]
    )
    def test_cell(self, value, text):
        assert import_time.cell(value, 0.3) == text


class TestOutOfCore:
    def test_reading_measures_what_it_reads(self, tmp_path):
        out_of_core.write_table(tmp_path / "t", files=2, rows=500)
        size = sum(f.stat().st_size for f in (tmp_path / "t").iterdir()) / 1e6
        found = out_of_core.main("read", str(tmp_path / "t"))
        assert found["read_mb"] == pytest.approx(size, rel=0.2)
        assert found["seconds"] > 0

    def test_loaded_table(self, tmp_path):
        out_of_core.write_table(tmp_path / "t", files=2, rows=500)
        X, y = out_of_core.load(tmp_path / "t", "y")
        assert X.shape == (1000, 100)
        assert set(y) == {0.0, 1.0}
        everything, none = out_of_core.load(tmp_path / "t", None)
        assert everything.shape == (1000, 101)
        assert none is None

    def test_failing_child_is_told(self, tmp_path):
        assert out_of_core.child("read", tmp_path / "nowhere")["problem"].startswith("failed: FileNotFoundError")


def test_list_names_every_benchmark(capsys):
    assert main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(BENCHMARKS)


def test_quick_run_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CERTIFIT_MNIST", raising=False)
    arguments = ["pca_tall", "--quick", "--repeat", "1", "--peers", "covariance_eigh", "--results", str(tmp_path)]
    assert main([*arguments, "--docs", str(tmp_path / "page.md")]) == 0
    assert "scikit-learn covariance_eigh" in capsys.readouterr().out
    (case,) = json.loads((tmp_path / "pca_tall.trial.json").read_text())["cases"]
    stock = next(c for c in case["contestants"] if c["name"] == "scikit-learn covariance_eigh")
    assert stock["equal"]
    assert stock["suboptimality"] < 1e-9
    assert len(stock["warm"]) == 1


def test_the_history_says_what_changed(tmp_path):
    result = {
        "name": "sums", "machine": {"date": "2026-11-16T00:00", "cpu": "any"}, "versions": {"numpy": "2"},
        "cases": [{"name": "all", "ours": 1.0, "best_peer": "them", "best_peer_median": 2.0, "ratio": 0.5}],
    }  # fmt: skip
    assert keep_record(result, tmp_path) == "this is the first record"
    result["cases"][0] |= {"ours": 0.8, "ratio": 0.4}
    assert keep_record(result, tmp_path).endswith("): all 0.5 -> 0.4")
    result["cases"] = [{**result["cases"][0], "name": "other"}]
    assert keep_record(result, tmp_path).endswith("no case in common")
    assert len((tmp_path / "sums.jsonl").read_text().splitlines()) == 3


def test_a_busy_machine_is_not_measured_on(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.__main__.busy_share", lambda: 0.4)
    assert main(["pca_tall"]) == 2
    assert "use 40% of this machine; wanted at most 5%" in capsys.readouterr().err
    assert 0 <= busy_share(0.01) <= 1
