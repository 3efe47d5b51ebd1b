"""The statements of docs/atlas/04_principal_components on data; each with a broken variant that must fail."""

import numpy as np
from sklearn.datasets import load_wine

from certifit import two_views

WINE = load_wine().data / load_wine().data.std(axis=0)


def variances_and_errors(rows, directions):
    """The variance of the rows along each direction, and the mean squared error of the code of the first M."""
    centred = rows - rows.mean(axis=0)
    left = [centred - centred @ directions[:M].T @ directions[:M] for M in range(len(directions) + 1)]
    return (centred @ directions.T).var(axis=0), np.array([np.mean((lost**2).sum(axis=1)) for lost in left])


def most_variance_is_least_error(rows, directions):
    """V_m is the m-th eigenvalue of the covariance, and J_M what the eigenvalues after the M-th add up to."""
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1]
    variances, errors = variances_and_errors(rows, directions)
    discarded = eigenvalues.sum() - np.append(0, np.cumsum(eigenvalues[: len(directions)]))
    found, expected = np.append(variances, errors), np.append(eigenvalues[: len(directions)], discarded)
    return np.allclose(found, expected, rtol=0, atol=1e-10 * eigenvalues.sum())


def test_most_variance_is_least_error():
    assert most_variance_is_least_error(WINE, two_views(WINE, 5).directions)


def test_control_uncentred_rows_break_it():
    assert not most_variance_is_least_error(WINE, np.linalg.svd(WINE)[2][:5])
