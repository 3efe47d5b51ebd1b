"""The compiled loop that turns values into codes."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python

RUN = 64  # rows that are coded together
ZERO, ONE, HALF = np.uint64(0), np.uint64(1), np.uint64(128)


@called_from_python
def encode_block(X, tables, codes):
    """Fill in the codes (n, d) of rows X (n, d): run after run of rows, column after column, whose keys stay near."""
    n, d = X.shape
    xs, places = np.empty(RUN), np.empty(RUN, np.uint64)
    for start in range(0, n, RUN):
        count = min(RUN, n - start)
        for j in range(d):
            keys = tables.keys[j]
            for i in range(count):
                xs[i], places[i] = float(X[start + i, j]), ZERO
            # How many of 255 keys lie below x: halves of 128, 64, … without a branch that could be guessed wrong.
            step = HALF
            while step > ZERO and keys[step - ONE] == np.inf:  # no number lies above these
                step >>= ONE
            while step > ZERO:
                for i in range(count):
                    further = places[i] + step
                    places[i] = further if keys[further - ONE] < xs[i] else places[i]
                step >>= ONE
            for i in range(count):
                x, place = xs[i], places[i]
                code = tables.codes[j, place]
                if np.isnan(x) or (tables.categorical[j] and (place == 255 or keys[place] != x)):
                    code = 255
                codes[start + i, j] = code
