"""The quadratic problem of sparse columns: conditions of its minimum, with and without jumps ahead of the sweeps."""

import numpy as np
import pytest
from scipy import sparse

from certifit.optimise.proximal_newton import subgradient
from certifit.optimise.sparse_curvature import SparseCurvature, SweepGoals


def problem(intercept, seed=0, n=300, m=80):
    """Columns that are nearly combinations of others, so that sweeps alone creep."""
    rng = np.random.default_rng(seed)
    Z = sparse.random(n, m, density=0.2, random_state=rng).toarray()
    Z[:, m // 2 :] = Z[:, : m // 2] + 0.05 * Z[:, m // 2 :]
    h, size = rng.uniform(0.1, 1.0, n), m + intercept
    curvature = SparseCurvature(((sparse.csr_array(Z), h),), intercept, ridge=rng.uniform(0, 1e-3, m))
    rows = np.column_stack([Z, np.ones(n)]) if intercept else Z
    H = rows.T @ (rows * h[:, None]) + np.diag(np.append(curvature.ridge, np.zeros(size - m)))
    lam = np.append(np.full(m, 0.05), np.zeros(size - m))
    return curvature, H, rng.normal(size=size), lam, np.where(rng.random(size) < 0.5, rng.normal(size=size), 0.0)


@pytest.mark.parametrize("intercept", [False, True])
def test_no_subgradient_is_left_at_the_minimum(intercept):
    curvature, H, g, lam, x = problem(intercept)
    found = curvature.minimise(g, lam, x, SweepGoals(1e-20, sweeps=20_000))
    left = subgradient(g + H @ (found - x), lam, found)
    assert np.abs(left).max() < 1e-7 * np.abs(g).max()


def test_jumps_save_sweeps():
    curvature, H, g, lam, x = problem(False)

    def value(at):
        d = at - x
        return g @ d + 0.5 * d @ H @ d + lam @ np.abs(at)

    best = value(curvature.minimise(g, lam, x, SweepGoals(1e-20, sweeps=20_000)))
    after = value(curvature.minimise(g, lam, x, SweepGoals(0.0, sweeps=60))) - best
    sixty_alone = x.copy()
    for _ in range(60):  # plain coordinate descent, written out
        for j in range(len(x)):
            z = H[j, j] * sixty_alone[j] - (g[j] + H[j] @ (sixty_alone - x))
            sixty_alone[j] = np.sign(z) * max(abs(z) - lam[j], 0.0) / H[j, j]
    assert after < 0.2 * (value(sixty_alone) - best)


def test_few_digits_of_a_step_are_enough_where_little_is_gained_in_the_end():
    """Sweeps end at a share of the first one's gain, and are nearer to the minimum the smaller that is."""
    curvature, H, g, lam, x = problem(True)

    def value(share):
        at = curvature.minimise(g, lam, x, SweepGoals(1e-20, share, sweeps=20_000))
        return g @ (at - x) + 0.5 * (at - x) @ H @ (at - x) + lam @ np.abs(at)

    best, fine, rough = value(0.0), value(1e-6), value(0.1)
    assert best < fine < rough
    assert fine - best < 1e-2 * (rough - best)
