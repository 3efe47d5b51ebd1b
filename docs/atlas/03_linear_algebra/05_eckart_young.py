r"""
The nearest matrix of low rank
==============================

**Statement** (Eckart & Young; Mirsky). Of all matrices of rank at most :math:`k`, none is nearer to :math:`A = U
\Sigma V^\top` than :math:`A_k`, which keeps the :math:`k` largest singular values, neither in the Frobenius nor in
the spectral norm. Its distances are :math:`|A - A_k|_F^2 = \sigma_{k+1}^2 + \dots + \sigma_r^2` and :math:`|A -
A_k|_2 = \sigma_{k+1}`.

**Why.** :math:`B` of rank :math:`k` has :math:`B x = 0` for some unit :math:`x` in the span of the first
:math:`k + 1` right singular vectors, where :math:`|(A - B) x| = |A x| \ge \sigma_{k+1}`. For the other norm, Weyl's
:math:`\sigma_{i+k}(A) \le \sigma_i(A - B) + \sigma_{k+1}(B)`, whose last term is zero, bounds every singular value.

**Held by** ``tests/theory/atlas/test_atlas_linear_algebra.py``: ``test_eckart_young``.

**Control** ``test_control_any_other_singular_values``: to keep other singular values than the largest leaves more.
"""

import numpy as np
from sklearn.datasets import load_digits

from certifit import linalg
from certifit.plots import plot_images

A = load_digits().data
singular = np.linalg.svd(A, compute_uv=False)
near = {k: linalg.low_rank(A, k) for k in (2, 8, 16)}
for k, found in near.items():
    print(
        f"rank {k:2d}: distance {found.distance_frobenius:.6f}, by singular values {np.linalg.norm(singular[k:]):.6f}"
    )

# %%
# Ten digits of 64 pixels, and the same rows of the nearest matrices of rank 16, 8 and 2.

plot_images({"64 pixels": A[:10]} | {f"rank {k}": near[k].toarray()[:10] for k in (16, 8, 2)}, (8, 8))

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The second to ninth singular values make a matrix of rank 8 too, but a much worse one.

U, s, Vt = np.linalg.svd(A, full_matrices=False)
print(f"distance {np.linalg.norm(A - U[:, 1:9] * s[1:9] @ Vt[1:9]):.6f}")
