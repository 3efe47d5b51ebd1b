"""Splitters: what they promise, in scikit-learn's tools, and on rows that are not in memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.model_selection
from scipy.stats import chi2
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB

import certifit
from certifit import DataError, GaussianNB, as_rows
from certifit.model_selection import (
    BootstrapSplit,
    GridSearchCV,
    HashedKFold,
    HashedSplit,
    TimeHoldout,
    cross_val_score,
)
from certifit.model_selection.splitting.hashed_split import hashed_places
from certifit.model_selection.splitting.selected_rows import SelectedRows
from certifit.rows.block import BlockTuning, block_tuning


def test_the_import_line_is_the_migration():
    """Every stable name of scikit-learn's module is here, and the same object."""
    room = certifit.model_selection
    for name in sklearn.model_selection.__all__:
        if not name.startswith("Halving"):  # scikit-learn asks for an import of its own before these
            assert getattr(room, name) is getattr(sklearn.model_selection, name)
            assert name in room.__all__


@pytest.mark.parametrize("cv", [BootstrapSplit(3, 0), TimeHoldout(30), HashedSplit(0.3), HashedKFold(3)])
def test_scikit_learn_takes_them(cv):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    scores = cross_val_score(SklearnGaussianNB(), X, y, cv=cv)
    assert len(scores) == cv.get_n_splits(X, y)
    assert scores.min() > 0.85
    search = GridSearchCV(SklearnGaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, cv=cv).fit(X, y)
    assert search.n_splits_ == cv.get_n_splits()


def test_a_bootstrap_leaves_out_a_share_of_1_over_e():
    splits = [*BootstrapSplit(50, random_state=1).split(np.zeros((400, 2)))]
    for train, test in splits:
        assert len(train) == 400
        assert np.array_equal(np.setdiff1d(np.arange(400), train), test)
    assert abs(np.mean([len(test) for _, test in splits]) / 400 - (1 - 1 / 400) ** 400) < 0.01


def test_a_bootstrap_of_groups_draws_whole_groups():
    groups = np.array(list("aabbbccdde"))
    for train, test in BootstrapSplit(20, random_state=0).split(groups, groups=groups):
        assert not set(groups[train]) & set(groups[test])
        drawn, counts = np.unique(train, return_counts=True)
        for group in set(groups[train]):
            assert len(set(counts[groups[drawn] == group])) == 1
            assert set(np.flatnonzero(groups == group)) <= set(drawn)


def test_two_rows_always_leave_one_to_test():
    assert all(len(test) == 1 for _, test in BootstrapSplit(20, random_state=0).split([[1], [2]]))
    with pytest.raises(DataError, match="one to fit and one to test"):
        next(BootstrapSplit(2).split([[1]]))


def test_the_latest_rows_are_tested():
    time = pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01", "2024-03-01"])
    frame = pd.DataFrame({"when": time, "x": range(4)})
    (train, test), *_ = TimeHoldout(1, time="when").split(frame)
    assert train.tolist() == [1, 2]
    assert test.tolist() == [0, 3]
    with pytest.raises(DataError, match="at least one earlier row"):
        next(TimeHoldout(1, time=[5, 5, 5]).split(range(3)))
    with pytest.raises(DataError, match="name of a column"):
        next(TimeHoldout(1, time="date").split(frame))
    with pytest.raises(DataError, match=r"test_size=1\.5"):
        next(TimeHoldout(1.5).split(frame))


def test_hashed_places_are_uniform_and_do_not_depend_on_what_comes_later():
    """Pearson's chi-squared over 50 cells, and of neighbouring rows over 10 x 10 cells, within its 0.1 % tails."""
    places = hashed_places(100_000, salt=3)
    counts = np.bincount((places * 50).astype(int), minlength=50)
    assert chi2.ppf(0.001, 49) < np.sum((counts - 2000) ** 2 / 2000) < chi2.ppf(0.999, 49)
    pairs = np.bincount((places[:-1] * 10).astype(int) * 10 + (places[1:] * 10).astype(int), minlength=100)
    assert chi2.ppf(0.001, 99) < np.sum((pairs - 999.99) ** 2 / 999.99) < chi2.ppf(0.999, 99)
    assert np.array_equal(hashed_places(10, salt=3), places[:10])
    assert abs(np.corrcoef(places, hashed_places(100_000, salt=4))[0, 1]) < 0.015


def test_a_smaller_hashed_test_set_is_part_of_a_larger_one():
    small, large = (next(HashedSplit(size, salt=1).split(range(500)))[1] for size in (0.1, 0.3))
    assert set(small) < set(large)


def test_hashed_groups_stay_together_and_on_their_side():
    groups = np.repeat([f"patient {i}" for i in range(60)], 3)
    train, test = next(HashedSplit(0.3).split(groups, groups=groups))
    assert not set(groups[train]) & set(groups[test])
    assert len(test) + len(train) == 180
    _, fewer = next(HashedSplit(0.3).split(groups[:90], groups=groups[:90]))
    assert set(groups[fewer]) <= set(groups[test])


def test_chance_that_leaves_a_side_empty_is_told():
    with pytest.raises(DataError, match="another salt"):
        next(HashedSplit(0.01).split(range(5)))
    with pytest.raises(DataError, match="folds without a row"):
        next(HashedKFold(5).split(range(5)))
    with pytest.raises(DataError, match="as_rows"):
        HashedSplit(0.3).split_rows([[1.0]])
    with pytest.raises(DataError, match="without rows"):
        next(HashedSplit(0.3).split([]))


@pytest.fixture(params=["memory", "parquet", "dask"])
def rows(request, tmp_path):
    X, y = load_iris(return_X_y=True)
    with block_tuning(BlockTuning(fixed_rows=8)):
        if request.param == "memory":
            yield as_rows(X, y, target="classes")
        elif request.param == "parquet":
            table = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "kind": y})
            pq.write_table(table, tmp_path / "iris.parquet", row_group_size=40)
            yield as_rows(str(tmp_path / "iris.parquet"), y="kind", target="classes")
        else:
            import dask.array as da

            yield as_rows(da.from_array(X, chunks=(37, 4)), da.from_array(y, chunks=37), target="classes")


def test_rows_anywhere_are_split_without_being_loaded(rows):
    """The fit to the rows of one side is the fit to the same rows in memory."""
    X, y = load_iris(return_X_y=True)
    cv = HashedKFold(4, salt=2)
    for (train, test), (here, there) in zip(cv.split_rows(rows), cv.split(X), strict=True):
        assert (train.n_rows, test.n_rows) == (len(here), len(there))
        assert np.array_equal(test.load().X, X[there])
        assert np.array_equal(test.map(lambda block: np.asarray(block.y)), y[there])
        fitted = GaussianNB().fit(train)
        np.testing.assert_allclose(fitted.theta_, GaussianNB().fit(X[here], y[here]).theta_, rtol=1e-12)
        assert fitted.certificate_.holds


def test_blocks_without_a_kept_row_are_passed_over():
    X = np.arange(40.0)[:, None]
    kept = np.zeros(40, dtype=bool)
    kept[[3, 4, 39]] = True
    with block_tuning(BlockTuning(fixed_rows=4)):
        rows = SelectedRows(as_rows(X), kept)
        assert [block.start for block in rows] == [0, 1, 2]
        assert rows.sum(lambda block: block.X.sum()) == 46
        assert np.array_equal(rows.take(np.array([1, 2])).X[:, 0], [4, 39])
    with pytest.raises(DataError, match="at least one row kept"):
        SelectedRows(as_rows(X), np.zeros(40, dtype=bool))
