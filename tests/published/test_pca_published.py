"""PCA against numbers in print, and to ten digits against Jacobi's method in extended precision.

The arrests and the irises with R's numbers are in test_published.py.
"""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

from certifit import PCA, audit
from tests.published.printed import assert_printed, columns
from tests.published.test_published import ARRESTS

TABLES = {"iris": load_iris().data, "wine": load_wine().data, "digits": load_digits().data, "arrests": ARRESTS}


def covariance(X):
    """(n - 1 below) in extended precision; where the platform has none, in double."""
    X = X.astype(np.longdouble)
    Z = X - X.mean(axis=0)
    return Z.T @ Z / (len(X) - 1)


def jacobi(S):
    """Eigenvalues, descending, and eigenvectors as rows, by cyclic rotations (Golub & Van Loan 2013, section 8.5).

    Rotations stop where an entry off the diagonal is below rounding of the two entries on it: small eigenvalues then
    come out as well, relatively, as large ones (Demmel & Veselić 1992).
    """
    S, V = S.copy(), np.eye(len(S), dtype=S.dtype)
    eps, turned = np.finfo(S.dtype).eps, True
    while turned:
        turned = False
        for p in range(len(S) - 1):
            for q in range(p + 1, len(S)):
                if S[p, q] ** 2 <= eps**2 * abs(S[p, p] * S[q, q]):
                    continue
                turned = True
                slope = (S[q, q] - S[p, p]) / (2 * S[p, q])
                t = (1 if slope >= 0 else -1) / (abs(slope) + np.sqrt(1 + slope**2))
                c = 1 / np.sqrt(1 + t**2)
                turn = np.array([[c, t * c], [-t * c, c]], dtype=S.dtype)
                S[:, [p, q]] = S[:, [p, q]] @ turn
                S[[p, q]] = turn.T @ S[[p, q]]
                S[p, q] = S[q, p] = 0
                V[:, [p, q]] = V[:, [p, q]] @ turn
    order = np.argsort(-np.diag(S))
    return np.diag(S)[order], V.T[order]


@pytest.fixture(scope="module")
def references():
    return {name: jacobi(covariance(X)) for name, X in TABLES.items()}


def test_jacobi_on_a_matrix_with_known_eigenvalues():
    """Second differences on 12 points: 2 - 2 cos(π j / 13)."""
    S = (2 * np.eye(12) - np.eye(12, k=1) - np.eye(12, k=-1)).astype(np.longdouble)
    values, vectors = jacobi(S)
    known = 2 - 2 * np.cos(np.pi * np.arange(12, 0, -1) / 13)
    np.testing.assert_allclose(values.astype(float), known, rtol=1e-14)
    assert np.abs(vectors @ S @ vectors.T - np.diag(values)).max() < 1e-14


@pytest.mark.parametrize("svd_solver", ["auto", "full"])
@pytest.mark.parametrize("name", TABLES)
def test_variances_to_ten_digits(references, name, svd_solver):
    values, vectors = references[name]
    X = TABLES[name]
    moving = int((X.std(axis=0) > 0).sum())  # three pixels of the digits are always blank
    model = PCA(svd_solver=svd_solver).fit(X)
    np.testing.assert_allclose(model.explained_variance_[:moving], values[:moving].astype(float), rtol=5e-11)
    assert (model.explained_variance_[moving:] == 0).all()
    share = (values / values.sum()).astype(float)
    np.testing.assert_allclose(model.explained_variance_ratio_[:moving], share[:moving], rtol=5e-11)
    along = np.abs((model.components_[:moving] * vectors[:moving].astype(float)).sum(axis=1))
    np.testing.assert_allclose(along, 1, rtol=1e-10)
    assert audit(model, X).holds


def test_cars():
    """R's summary(prcomp(mtcars, scale. = TRUE)), in many tutorials; Henderson & Velleman (1981), Biometrics 37."""
    X = np.column_stack(list(columns("cars").values()))
    model = PCA().fit((X - X.mean(axis=0)) / X.std(axis=0, ddof=1))
    assert_printed(
        np.sqrt(model.explained_variance_),
        "2.5707 1.6280 0.79196 0.51923 0.47271 0.46000 0.3678 0.35057 0.2776 0.22811 0.1485",
    )
    together = np.cumsum(model.explained_variance_ratio_)[:7]
    assert_printed(together, "0.6008 0.8417 0.89873 0.92324 0.94356 0.96279 0.9751")
