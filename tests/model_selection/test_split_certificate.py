"""The certificate of splits: it holds for honest splits, and every kind of leak makes it fail."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from certifit import DataError, as_rows, check_splits
from certifit.model_selection import (
    BootstrapSplit,
    GroupKFold,
    HashedKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeHoldout,
    TimeSeriesSplit,
)

X, Y = load_iris(return_X_y=True)
GROUPS = np.arange(150) // 5


@pytest.mark.parametrize(
    "cv",
    [5, KFold(4, shuffle=True, random_state=0), StratifiedKFold(3), RepeatedKFold(n_splits=3, n_repeats=2),
     LeaveOneOut(), ShuffleSplit(3), BootstrapSplit(4), HashedKFold(5)],
    ids=lambda cv: type(cv).__name__,
)  # fmt: skip
def test_honest_splits_hold(cv):
    assert check_splits(cv, X, Y).holds


def test_groups_and_times_hold():
    assert check_splits(GroupKFold(3), X, Y, GROUPS).holds
    assert check_splits(HashedKFold(3), X, Y, GROUPS).holds
    assert check_splits(TimeSeriesSplit(3), X, Y, time=np.arange(150)).holds
    late = np.random.default_rng(0).permutation(150)
    assert check_splits(TimeHoldout(0.2, time=late), X, Y, time=late).holds


def failures(splits, **terms):
    return " ".join(check_splits(splits, X, Y, **terms).failures())


def test_every_leak_is_found():
    a, b = np.arange(100), np.arange(100, 150)
    assert failures([(a, b)]) == ""
    assert "both fitted and tested: 1" in failures([(np.append(a, 120), b)])
    assert "outside the table: 1" in failures([(a, np.append(b, 150))])
    assert "outside the table: 1" in failures([(np.append(a, -1), b)])
    assert "an empty side: 1" in failures([(a, b[:0])])
    assert "an empty side: 1" in failures([])
    assert "groups on both sides of a split: 1" in failures([(a[:-1], np.append(b, 99))], groups=GROUPS)
    assert "not later than all fitted: 1" in failures([(a, b)], time=np.r_[np.arange(100), 99, np.arange(101, 150)])
    # rows 101 and 142 of the iris data are the only equal ones
    assert "equal to a fitted row: 1" in failures([(np.arange(140), np.arange(140, 150))], duplicates=False)
    assert failures([(a, b)], duplicates=False) == ""


def test_folds_that_are_not_what_their_class_declares_fail():
    """A look-alike that never tests its last fold."""

    class Forgetful(KFold):
        def split(self, X, y=None, groups=None):
            yield from [*super().split(X, y, groups)][:-1]

    Forgetful.__name__ = "KFold"
    found = check_splits(Forgetful(3), X)
    assert not found.holds
    assert "rows not tested 1 times: 50" in found.failures()[0]


def test_equal_rows_are_named_by_number_and_in_every_form_of_the_table():
    for table in (X, as_rows(X), sparse.csr_array(X), X.astype(str)):
        found = check_splits([(np.arange(140), np.arange(140, 150))], table)
        assert found.witness == ((0.0, 142.0, 101.0),)
        assert found.facts["tested rows equal to a fitted row"] == 1


def test_the_fingerprint_tells_data_and_splits_apart():
    first = check_splits(KFold(3), X).facts["fingerprint"]
    assert check_splits(KFold(3), X.copy()).facts["fingerprint"] == first
    other = X.copy()
    other[7, 2] += 1e-12
    assert check_splits(KFold(3), other).facts["fingerprint"] != first
    assert check_splits(KFold(4), X).facts["fingerprint"] != first


def test_what_is_no_split_is_refused_in_words():
    with pytest.raises(DataError, match="pairs"):
        check_splits([1, 2], X)
    with pytest.raises(DataError, match="row numbers"):
        check_splits([([0.5], [1.5])], X)
    with pytest.raises(DataError, match="groups of shape"):
        check_splits(3, X, groups=[1, 2])
