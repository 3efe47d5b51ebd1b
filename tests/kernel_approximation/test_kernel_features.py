"""What both kinds of kernel features share: any source, any offset, and rows that are mapped as they pass."""

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from certifit.kernel_approximation.nystroem import Nystroem
from certifit.kernel_approximation.rbf_sampler import RBFSampler
from certifit.rows import ArrayRows, set_threads
from certifit.rows.mapped import MappedRows
from tests.kernel_approximation.tables import gram, table


@pytest.mark.parametrize("cls", [Nystroem, RBFSampler])
def test_far_from_the_origin(cls):
    X = np.round(table(), 3)
    near, far = (cls(gamma=0.3, n_components=50, random_state=0).fit(X + c) for c in (0.0, 2.0**27))
    np.testing.assert_allclose(gram(far, X + 2.0**27), gram(near, X), atol=1e-6)
    assert far.certificate_.holds


@pytest.mark.parametrize("make", [partial(Nystroem, n_components=10), partial(RBFSampler, n_components=10)])
def test_every_source_gives_the_same_features(make, tmp_path):
    X = table(3000)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.to_parquet(tmp_path / "t.parquet")
    model = make(random_state=0).fit(X)
    expected = model.transform(X)
    for source in (da.from_array(X, chunks=(700, 4)), frame, tmp_path / "t.parquet", sparse.csr_array(X)):
        other = make(random_state=0).fit(source)
        np.testing.assert_allclose(other.transform(source), expected, atol=1e-9)
        np.testing.assert_allclose(other.certificate_.objective, model.certificate_.objective, rtol=1e-9)
    single = make(random_state=0).fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-4)
    names = clone(model).fit(frame).get_feature_names_out()
    assert names[9] == f"{type(model).__name__.lower()}9"


def squares(block):
    return block.X**2


def column_sums(block):
    assert len(block.w) <= 2048  # cut for 300 columns
    return block.w @ block.X


def test_mapped_rows_are_cut_to_their_width_and_sum_to_the_same_bits():
    X = table(70_000, 3)
    wide = np.arange(300.0)
    rows = MappedRows(ArrayRows(X, np.arange(70_000)), lambda block: block.X[:, :1] * wide, 300)
    seen = []
    for n in (1, 2, 3):
        set_threads(n)
        seen.append(rows.sum(column_sums))
    set_threads(None)
    assert (seen[0] == seen[1]).all()
    assert (seen[0] == seen[2]).all()
    np.testing.assert_allclose(seen[0], X[:, 0].sum() * wide, rtol=1e-9)
    taken = rows.take(np.array([1, 40_000]))
    np.testing.assert_array_equal(taken.X, X[[1, 40_000], :1] * wide)
    assert taken.y.tolist() == [1, 40_000]
    small = MappedRows(ArrayRows(X[:5000], np.arange(5000)), squares, 3).relabel(lambda y, w: (y + 1, 2 * w))
    np.testing.assert_array_equal(small.load().X, X[:5000] ** 2)
    assert [block.start for block in small] == [0]
    assert (small.load().w == 2).all()
