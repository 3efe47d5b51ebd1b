"""Blocks of CSR rows share their entries with the table, and so do their transposes."""

import numpy as np
import pytest
from scipy import sparse

from certifit.rows import ArrayRows, transpose
from certifit.rows.block import BlockTuning, block_tuning


@pytest.mark.parametrize("number", [np.int32, np.int64])
def test_blocks_and_their_transposes_share_the_entries(number):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(23, 6)) * (rng.random((23, 6)) < 0.4)
    X = sparse.csr_array(dense)
    X.indices, X.indptr = X.indices.astype(number), X.indptr.astype(number)
    with block_tuning(BlockTuning(fixed_rows=4)):
        blocks = list(ArrayRows(X))
    assert len(blocks) == 6
    for block in blocks:
        here = dense[block.start : block.start + len(block.w)]
        turned = transpose(block.X)
        np.testing.assert_array_equal(turned.toarray(), here.T)
        np.testing.assert_allclose(turned @ here, here.T @ here, rtol=1e-14, atol=1e-14)
        assert np.shares_memory(turned.data, X.data)
        assert block.X.indices.dtype == block.X.indptr.dtype == np.int32
    assert X.indices.dtype == number
