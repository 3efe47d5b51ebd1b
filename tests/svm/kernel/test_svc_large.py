"""Kernel machines on tables whose kernel matrix is too large to keep: computed again, the answer is the same."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from certifit import CertificateWarning
from certifit.checkers.svm.adapter import audit_svc, audit_svr
from certifit.svm.joint_kernel.joint_smo import JointSmoTuning
from certifit.svm.kernel.expansion import KernelValueTuning
from certifit.svm.kernel.exponential_loops import exp_single
from certifit.svm.kernel.gram import GivenGram, KernelCache, RadialGram, WholeMatrix, gram_of, kernel_rows
from certifit.svm.kernel.kernels import RBF, Linear
from certifit.svm.kernel.smo import SmoTuning
from certifit.svm.kernel.svc import SVC
from certifit.svm.kernel.svr import SVR
from tests.common.catalogue import amounts, three, two
from tests.common.tuning import tuned

LITTLE = 0.01  # megabytes of kernel values kept, which no table here is content with


SMALL = KernelValueTuning(block_columns=100, block_rows=30)


def in_small_parts(model):
    """With working sets and blocks so small that tables of a few hundred rows have many of either."""
    sets = {"smo": SmoTuning(working_set=64), "joint": JointSmoTuning(working_set=64)}
    return tuned(model, values=SMALL, **sets)


# ------------------------------------------------------------------------------------------------- the same answer
def test_classes():
    """The objective is that of LIBSVM, solved to 1e-6, and so is every prediction that is not a close call."""
    X, y = two(700)
    model = in_small_parts(SVC(tol=1e-6, cache_size=LITTLE)).fit(X, y)
    theirs = svm.SVC(tol=1e-6).fit(X, y)
    checked, other = audit_svc(model, X, y, None, 1e-6), audit_svc(theirs, X, y, None, 1e-4)
    assert model.certificate_.holds
    assert checked.holds
    np.testing.assert_allclose(checked.objective, other.bound, rtol=2e-6)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("multi_class", ["ovr", "weston-watkins", "crammer-singer"])
def test_more_classes(multi_class):
    X, y = three(450)
    settings = {"multi_class": multi_class, "tol": 1e-5}
    again, kept = (
        in_small_parts(SVC(cache_size=LITTLE, **settings)).fit(X, y),
        in_small_parts(SVC(**settings)).fit(X, y),
    )
    assert audit_svc(again, X, y, None, 1e-5).holds
    np.testing.assert_allclose(again.certificate_.objective, kept.certificate_.objective, rtol=2e-5)


def test_numbers():
    """Two variables for every row."""
    X, y = amounts(300)
    again, kept = in_small_parts(SVR(tol=1e-6, cache_size=LITTLE)).fit(X, y), in_small_parts(SVR(tol=1e-6)).fit(X, y)
    assert audit_svr(again, X, y, None, 1e-6).holds
    np.testing.assert_allclose(again.predict(X), kept.predict(X), atol=1e-3 * y.std())


def test_single_precision():
    """Above 2000 rows kernel values are float32; the checker's are float64."""
    X, y = two(2600)
    model = in_small_parts(SVC(cache_size=1.0)).fit(X, y)
    checked, other = (audit_svc(machine, X, y, None, 1e-3) for machine in (model, svm.SVC(tol=1e-4).fit(X, y)))
    assert checked.holds
    assert other.holds
    np.testing.assert_allclose(model.certificate_.objective, checked.objective, rtol=1e-6)
    assert checked.bound <= other.objective
    assert other.bound <= checked.objective


def test_any_number_of_threads_and_a_file_give_the_same_bits(threads, tmp_path):
    X, y = two(2300)
    names = ["a", "b", "c", "d"]
    pq.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "kind": y}), tmp_path / "t.parquet")
    seen = []
    for n, table in ((1, (X, y)), (3, (X, y)), (2, (tmp_path / "t.parquet", "kind"))):
        threads(n)
        seen.append(in_small_parts(SVC(cache_size=1.0)).fit(*table))
    for model in seen[1:]:
        assert model.dual_coef_.tobytes() == seen[0].dual_coef_.tobytes()
        assert model.certificate_ == seen[0].certificate_


# --------------------------------------------------------------------------------------------------- out of time
@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
def test_the_machine_with_the_smallest_gap_is_returned():
    X, y = two(700)
    hard = {"C": 1000.0, "tol": 1e-9, "cache_size": LITTLE}
    gaps = np.array([mark.gain for mark in in_small_parts(SVC(max_iter=30, **hard)).fit(X, y).history_[0]])
    last = int(np.argmax(gaps > np.minimum.accumulate(gaps)))  # the first round that does not make the gap smaller
    assert last > 0
    model = in_small_parts(SVC(max_iter=last, **hard)).fit(X, y)
    (history,) = model.history_
    best = int(gaps[: last + 1].argmin())
    assert model.n_iter_.tolist() == [best]
    assert not model.certificate_.holds
    np.testing.assert_allclose(model.certificate_.relative_gap, gaps[best], rtol=1e-9)
    np.testing.assert_allclose(model.objective(X, y).total, history[best].objective, rtol=1e-9)


def test_little_memory_is_needed():
    """3e8 kernel values are never there at once, nor any 5e6 of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(18_000, 3))
    y = X.sum(axis=1) + rng.normal(size=len(X)) > 0
    with pytest.warns(CertificateWarning):
        SVC(max_iter=1).fit(X[:3000], y[:3000])  # whatever is loaded and compiled once
    tracemalloc.start()
    with pytest.warns(CertificateWarning):
        SVC(max_iter=3).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 5e6


# ----------------------------------------------------------------------------------------------- kernel matrices
def table(n=250):
    return np.random.default_rng(0).normal(size=(n, 3))


GRAMS = {
    "float64": lambda X: RadialGram(X, 0.3, False, SMALL),
    "float32": lambda X: RadialGram(X, 0.3, True, SMALL),
    "any kernel": lambda X: gram_of(X, Linear(), False, SMALL),
    "sparse": lambda X: gram_of(sparse.csr_array(X), RBF(0.3), False, SMALL),
    "not ours": lambda X: gram_of(X, lambda A, B: A @ B.T, False, SMALL),
    "given": lambda X: GivenGram(rbf_kernel(X, gamma=0.3), SMALL),
}


@pytest.mark.parametrize("name", GRAMS)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("k", [None, 4])
def test_values_are_what_scikit_learn_says(name, keep, k):
    X, rng = table(), np.random.default_rng(1)
    gram = GRAMS[name](X)
    K = linear_kernel(X) if name in ("any kernel", "not ours") else rbf_kernel(X, gamma=0.3)
    rows = gram if not keep else KernelCache(gram, 120 * 250 * 8 / 1e6)
    f = rng.normal(size=250 if k is None else (250, k))
    chosen = np.array([7, 7, *rng.choice(250, 70, replace=False)])
    change = rng.normal(size=(len(chosen), *f.shape[1:]))
    change[::3] = 0.0
    before = f.copy()
    tol = 1e-5 if name == "float32" else 1e-12
    np.testing.assert_allclose(rows.square(chosen), K[np.ix_(chosen, chosen)], atol=tol)
    np.testing.assert_allclose(rows.add(f, chosen, change), f + K[:, chosen] @ change, atol=10 * tol)
    np.testing.assert_array_equal(rows.add(f, chosen[:0], change[:0]), f)
    np.testing.assert_array_equal(f, before)
    assert rows.at_hand()[chosen].all()
    assert rows.at_hand().all() != keep


def test_what_is_kept():
    """All of a matrix, or some rows of one that is dear; nothing if values are cheap, or a batch has no room."""
    X = np.random.default_rng(0).normal(size=(600, KernelValueTuning().narrow_columns + 1))
    narrow, wide = (RadialGram(A, 0.01, single=True) for A in (X[:, :-1], X))
    dear = (wide, RadialGram(X[:, :2], 0.3, single=False), gram_of(X, Linear(), single=False), GivenGram(np.eye(600)))
    assert kernel_rows(narrow, 1.4) is narrow
    assert isinstance(kernel_rows(narrow, 1.5), KernelCache)
    for gram in dear:
        assert kernel_rows(gram, 600 * 511 * gram.dtype.itemsize / 1e6) is gram
        kept = kernel_rows(gram, 600 * 513 * gram.dtype.itemsize / 1e6)
        assert isinstance(kept, KernelCache)
        assert kept.most == 512
    small = gram_of(X[:500], Linear(), single=False)
    assert isinstance(kernel_rows(small, 2.0), WholeMatrix)
    assert kernel_rows(small, 1.9) is small


def test_values_of_a_small_matrix_are_computed_once_and_when_asked_for():
    X, calls = table(), []
    gram = gram_of(X, lambda A, B: calls.append(len(A)) or linear_kernel(A, B), single=False)
    rows, K = kernel_rows(gram, 200.0), linear_kernel(X)
    assert isinstance(rows, WholeMatrix)
    assert not calls
    every, some, f = np.arange(len(X)), np.array([3, 200, 7]), np.ones(len(X))
    np.testing.assert_allclose(rows.square(every), K, atol=1e-12)
    np.testing.assert_allclose(rows.square(some), K[np.ix_(some, some)], atol=1e-12)
    np.testing.assert_allclose(rows.square(every[::-1]), K[::-1, ::-1], atol=1e-12)
    np.testing.assert_allclose(rows.add(f, some, np.array([1.0, 0.0, -2.0])), f + K[3] - 2 * K[7], atol=1e-11)
    assert len(calls) == 1


def test_machines_of_pairs_share_one_matrix_where_it_has_room():
    """A kernel is asked for fewer values, and machines are the same."""
    X, asked = table(), []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return rbf_kernel(A, B, gamma=0.3)

    y, megabytes = np.arange(len(X)) % 3, 8e-6 * len(X) ** 2
    shared, counts = SVC(kernel=kernel, cache_size=1.01 * megabytes).fit(X, y), sum(asked)
    asked.clear()
    apart = SVC(kernel=kernel, cache_size=0.99 * megabytes).fit(X, y)
    assert counts < sum(asked)
    np.testing.assert_allclose(shared.decision_function(X), apart.decision_function(X), atol=1e-9)


# ------------------------------------------------------------------------------------------ numba and NumPy
@pytest.mark.compiled
def test_compiled_exponentials():
    """np.exp of float64, to one unit in the last place; above 0 as at 0, and 0 where float32 ends."""
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.0, -0.0, 3.0, -87.0], rng.uniform(-87, 0, 60), -rng.exponential(size=60)])
    out = np.stack([x, x]).astype(np.float32)
    expected = np.exp(np.minimum(out, 0).astype(np.float64))
    exp_single(out)
    np.testing.assert_allclose(out, expected, rtol=np.finfo(np.float32).eps)
    assert (out[:, :3] == 1.0).all()
    edge = np.array([[np.nan, -np.inf, np.inf, -88.0]], np.float32)
    exp_single(edge)
    np.testing.assert_array_equal(edge, [[np.nan, 0.0, 1.0, 0.0]])


def test_a_larger_tolerance_than_the_usual_one_ends_a_small_fit_sooner():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    usual, loose = (SVC(C=1e3, tol=tol).fit(X, y) for tol in (1e-3, 0.05))
    assert loose.n_iter_[0] < usual.n_iter_[0]
    assert usual.certificate_.gap < 1e-6 * usual.certificate_.objective
    assert loose.certificate_.holds
