"""Random honest fits: fit and audit come to the same verdict, and neither fails with anything but words."""

import copy
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import manifold

from certifit import DataError, LocallyLinearEmbedding, audit
from certifit.checkers.manifold import locally_linear as checker
from certifit.checkers.manifold.local_systems import FlatDirectionRule, local_forms
from certifit.manifold.neighbours import centre_and_scale, nearest_others
from certifit.manifold.reconstruction_weights import modified_systems
from tests.manifold.embeddings import SWISS, embed


def normal(rng, n, d):
    return rng.normal(size=(n, d))


def copies(rng, n, d):
    return normal(rng, n, d)[rng.integers(0, max(2, n // int(rng.integers(1, 5))), n)]


def grid(rng, n, d):
    return rng.integers(0, int(rng.integers(2, 6)), (n, d)).astype(float)


def collinear(rng, n, d):
    return rng.normal(size=(n, 1 + d // 2)) @ rng.normal(size=(1 + d // 2, d))


def sparse_rows(rng, n, d):
    return np.where(rng.uniform(size=(n, d)) < 0.7, 0.0, rng.normal(size=(n, d)))


def uneven(rng, n, d):
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 6, d) + 10 * rng.normal()


def whole_numbers(rng, n, d):
    return np.round(rng.normal(size=(n, d)))


KINDS = (normal, copies, grid, collinear, sparse_rows, uneven, whole_numbers)
FORMS = (np.asarray, sparse.csr_array, np.float32)


def drawn(kind, seed):
    """A table, and settings that it allows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(17, 90)), int(rng.integers(1, 9))
    size = int(rng.integers(2, 16))
    params = {
        "n_neighbors": size,
        "n_components": int(rng.integers(1, min(3, d, size) + 1)),
        "method": str(rng.choice(["standard", "modified"])),
        "disconnected": str(rng.choice(["embed", "join"])),
        "reg": float(10.0 ** rng.integers(-9, 1)) if rng.uniform() < 0.3 else 1e-3,
    }
    return FORMS[seed % 3](kind(rng, n, d)), params


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_fit_and_audit_agree(kind):
    for seed in range(24):
        X, params = drawn(kind, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LocallyLinearEmbedding(**params).fit(X)
            found = audit(model, X)
        assert model.certificate_.holds, (seed, params, model.certificate_.failures())
        assert found.holds, (seed, params, found.failures())
        assert found.claim == model.certificate_.claim
        assert abs(found.objective - model.certificate_.objective) <= found.limit, (seed, params)
        # a budget is no licence: a limit beyond the tolerance is for objectives that are next to nothing
        # (or for directions of almost equal spread, and systems whose inverse enlarges rounding by 1 / reg)
        well = params["reg"] >= 1e-5
        small = found.limit <= (1e-3 if well else 0.1) * found.objective or found.limit <= 1e-9 * found.scale
        assert small, (seed, params, found.limit, found.objective)
        hurt = copy.deepcopy(model)
        hurt.embedding_ = np.roll(model.embedding_, 1, axis=0)
        assert not audit(hurt, X).holds or _is_as_good(hurt, X, found), (seed, params)


def _is_as_good(hurt, X, found):
    """Whether other coordinates are as smooth, as where all rows of a part are copies."""
    return hurt.objective(X).total <= found.objective + found.limit


def test_directions_of_equal_spread_are_taken_together():
    """Points of a grid, each with neighbours at the corners of a square about it: every direction of the plane is as
    flat as any other, so that a border between two of them would depend on the basis that LAPACK returns."""
    X = np.array([[i, j] for i in range(8) for j in range(8)], float)
    near = nearest_others(centre_and_scale(X), 4, "auto")
    angle = np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    plain, turned = (local_forms(A, near, 1e-3, (1, True)) for A in (X, X @ angle))
    np.testing.assert_allclose(turned.B, plain.B, atol=1e-12)
    systems = modified_systems(X, near, 1e-3, 1)
    assert systems.open == plain.open >= 36  # the rows inside
    np.testing.assert_allclose(
        (systems.F.T @ systems.F).toarray(), checker.assemble_matrix(plain.B, near).toarray(), atol=1e-12
    )


def test_weights_where_no_flat_direction_is_seen_from_the_row():
    """Two copies among three neighbours: the only flat direction is their difference, to which 1 is orthogonal, so
    that the reflection of Vᵀ1 = 0 is anything; the rule's vector decides, in fit and checker alike."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(1, 3, 3))
    Z[0, 1] = Z[0, 0]
    X = np.concatenate([np.zeros((1, 3)), Z[0]])
    near = np.array([[1, 2, 3], [2, 0, 3], [1, 0, 3], [0, 1, 2]])
    forms = local_forms(X, near, 1e-3, (3, True))
    systems = modified_systems(X, near, 1e-3, 3)
    rows = (systems.F[systems.owner == 0] @ np.eye(4))[:, near[0]]
    np.testing.assert_allclose(rows.T @ rows, forms.B[0], atol=1e-12)
    assert forms.open == systems.open >= 1
    # the weights still sum to 1, and are those of the flat direction and the plain ones
    np.testing.assert_allclose(rows.sum(axis=1), -1, atol=1e-12)
    assert abs(FlatDirectionRule().reference(3) @ [1, -1, 0]) > 0.1


def test_a_limit_does_not_grow_where_all_is_well():
    """At default settings the budget for rounding is far below the tolerance."""
    model = embed(SWISS)
    assert model.certificate_.limit <= 1.1 * model.tol * model.certificate_.objective
    modified = embed(SWISS, method="modified")
    assert modified.certificate_.limit <= 1.1 * modified.tol * modified.certificate_.objective


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_components": 3}, "n_components=3 and an embedding of 2 coordinates"),
        ({"n_neighbors": 11}, "neighbors_ of shape"),
        ({"neighbors_": np.zeros((400, 12))}, "type float64"),
        ({"neighbors_": np.full((400, 12), 400)}, "row numbers from 0 to 399"),
        ({"X_fit_": np.zeros((3, 3))}, "X_fit_ of shape"),
        ({"embedding_": np.full((400, 2), np.nan)}, "NaN"),
        ({"reconstruction_error_": np.nan}, "NaN"),
        ({"method": "isomap"}, "method='isomap'"),
        ({"reg": -1.0}, "reg"),
    ],
    ids=str,
)
def test_settings_and_attributes_that_do_not_fit_together(changes, words):
    model = embed(SWISS)
    vars(model).update(changes)
    with pytest.raises(DataError, match=words):
        audit(model, SWISS)


@pytest.mark.parametrize("changes", [{"reg": 0.1}, {"method": "modified"}], ids=str)
def test_other_settings_make_another_problem(changes):
    model = embed(SWISS).set_params(**changes)
    assert not audit(model, SWISS).holds


def test_coordinates_of_fewer_digits_are_judged_as_such():
    """A float32 copy of coordinates of float64 rows is off by a part in 1e7, and the eigenvectors' limit knows."""
    model = embed(SWISS, tol=1e-10)
    assert audit(model, SWISS).holds
    model.embedding_ = model.embedding_.astype(np.float32)
    assert not audit(model, SWISS).holds


@pytest.mark.parametrize("method", ["standard", "modified"])
def test_scikit_learns_embeddings_of_copies_and_grids(method):
    """Where neighbours are not determined, or the method leaves weights open, the audit may say no, never fail."""
    rng = np.random.default_rng(0)
    for X in (np.repeat(rng.normal(size=(40, 3)), 2, axis=0), rng.integers(0, 4, (90, 3)).astype(float)):
        theirs = manifold.LocallyLinearEmbedding(n_neighbors=8, method=method, eigen_solver="dense").fit(X)
        found = audit(theirs, X)
        assert found.holds or found.failures()


def test_a_row_far_from_all_others_leaves_a_constant_without_error():
    """Seen from there its neighbours lie in one direction, and 1 has a flat part of 1e-7 only."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[0] += 1e7
    model = LocallyLinearEmbedding(
        method="modified", n_neighbors=7, n_components=1, reg=0.01, disconnected="join"
    ).fit(X)
    F = modified_systems(X, model.neighbors_, 0.01, 1).F
    assert np.abs(F.sum(axis=1)).max() < 1e-14
    assert model.certificate_.holds == audit(model, X).holds
