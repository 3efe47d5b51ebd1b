"""Tables near a curved surface, their embeddings and the matrix of their local errors, for tests of all parts."""

import numpy as np
import pytest
from sklearn.datasets import make_s_curve, make_swiss_roll

from certifit.checkers.manifold.adapter import audit_lle
from certifit.manifold.locally_linear import LocallyLinearEmbedding
from certifit.manifold.neighbours import centre_and_scale, nearest_others, scale_rows
from certifit.manifold.reconstruction_weights import modified_systems, standard_systems

N = 400
SWISS = make_swiss_roll(N, random_state=0)[0]
SCURVE = make_s_curve(350, noise=0.02, random_state=1)[0]
CLOUD = np.random.default_rng(2).normal(size=(320, 20)) @ np.diag(0.8 ** np.arange(20))
TABLES = {"swiss": SWISS, "s": SCURVE, "cloud": CLOUD}
METHODS = ["standard", "modified"]
each_table = pytest.mark.parametrize("name", TABLES)
each_method = pytest.mark.parametrize("method", METHODS)


def embed(X, **params):
    return LocallyLinearEmbedding(**{"n_neighbors": 12, **params}).fit(X)


def audited(model, X, tol=None):
    return audit_lle(model, X, None, None, model.tol if tol is None else tol)


def matrix(X, method="standard", k=12, components=2):
    """M, dense, from our local systems."""
    Z = scale_rows(X)
    near = nearest_others(centre_and_scale(X), k, "auto")
    if method == "standard":
        F = standard_systems(Z, near, 1e-3).F
    else:
        F = modified_systems(Z, near, 1e-3, components).F
    return (F.T @ F).toarray(), F
