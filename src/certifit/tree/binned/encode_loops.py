"""The compiled loop that turns values into codes."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def encode_block(X, tables, codes):
    """Fill in the codes (n, d) of rows X (n, d)."""
    keys, table, categorical = tables.keys, tables.codes, tables.categorical
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = float(X[i, j])
            place = 0
            # How many of 255 keys lie below x: halves of 128, 64, … without a branch that could be guessed wrong.
            step = 128
            while step > 0:
                place += step * (keys[j, place + step - 1] < x)
                step >>= 1
            code = table[j, place]
            if np.isnan(x) or (categorical[j] and (place == 255 or keys[j, place] != x)):
                code = 255
            codes[i, j] = code
