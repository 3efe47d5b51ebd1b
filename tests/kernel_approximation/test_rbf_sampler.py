"""Random Fourier features: their distribution, their stated error, sabotage."""

import numpy as np
import pytest
from sklearn import kernel_approximation
from sklearn.metrics.pairwise import rbf_kernel

from certifit import audit, config
from certifit.checkers.kernel_approximation.adapter import audit_fourier
from certifit.kernel_approximation.rbf_sampler import RBFSampler
from tests.kernel_approximation.tables import TOL, gram, table


def test_features_are_those_of_scikit_learn_with_the_same_frequencies():
    X = table()
    model = RBFSampler(n_components=31, random_state=0).fit(X)
    theirs = kernel_approximation.RBFSampler(n_components=31).fit(X)
    theirs.random_weights_, theirs.random_offset_ = model.random_weights_, model.random_offset_
    np.testing.assert_allclose(model.transform(X), theirs.transform(X), atol=1e-12)


def test_inner_products_are_unbiased_and_closer_than_independent_ones():
    """Yu et al. (2016), theorem 1, with an odd number of features; the spread over seeds against scikit-learn's."""
    X = table(12)
    K = rbf_kernel(X, gamma=0.2)
    ours, theirs = (
        np.array([gram(cls(gamma=0.2, n_components=7, random_state=i).fit(X), X) for i in range(200)])
        for cls in (RBFSampler, kernel_approximation.RBFSampler)
    )
    assert (np.abs(ours.mean(axis=0) - K) <= 5 * ours.std(axis=0) / np.sqrt(200) + 1e-12).all()
    assert ((ours - K) ** 2).mean() < 0.6 * ((theirs - K) ** 2).mean()


def test_frequencies_are_orthogonal_and_their_features_have_unit_length():
    X = table()
    model = RBFSampler(n_components=8, random_state=0).fit(X)
    W = model.random_weights_[:, :4]
    np.testing.assert_allclose(W.T @ W, np.diag(np.diag(W.T @ W)), atol=1e-12)
    np.testing.assert_allclose(np.square(model.transform(X)).sum(axis=1), 1.0)


def test_the_stated_error_covers_that_of_all_pairs():
    X = table(500)
    for seed in range(5):
        with config(proof="best"):
            model = RBFSampler(n_components=100, random_state=seed).fit(X)
        off = np.abs(gram(model, X) - rbf_kernel(X, gamma=model.gamma_))
        facts = model.certificate_.facts
        assert off.mean() <= facts["mean error of a kernel value, at most"] <= off.mean() + 0.02
        larger = (off > facts["largest error among 4096 pairs of rows"]).mean()
        assert larger <= facts["share of pairs with a larger one, at most"]


def test_scikit_learns_frequencies_are_drawn_again_where_their_seed_is_known():
    X = table()
    theirs = kernel_approximation.RBFSampler(gamma="scale", n_components=50, random_state=3).fit(X)
    assert audit_fourier(theirs, X, None, None, TOL).holds
    theirs.random_weights_ = -theirs.random_weights_
    assert not audit_fourier(theirs, X, None, None, TOL).holds
    unknown = kernel_approximation.RBFSampler(gamma="scale", n_components=1000).fit(X)
    assert "not known" in audit_fourier(unknown, X, None, None, TOL).facts["frequencies"]
    unknown.random_weights_ = 3.0 * unknown.random_weights_  # which their errors show
    assert not audit_fourier(unknown, X, None, None, TOL).holds


@pytest.mark.parametrize("name", ["random_weights_", "random_offset_", "seed_", "gamma_"])
def test_damaged_frequencies_are_noticed(name):
    X = table()
    model = RBFSampler(n_components=20, random_state=0).fit(X)
    setattr(model, name, getattr(model, name) * 2)
    assert not audit_fourier(model, X, None, None, TOL).holds


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_frequencies_of_another_size_are_noticed_without_their_seed(factor):
    X = np.random.default_rng(5).normal(size=(100, 3))
    peer = kernel_approximation.RBFSampler(gamma=0.1, n_components=40).fit(X)  # drawn from nowhere in particular
    assert audit(peer, X).holds
    peer.random_weights_ = factor * peer.random_weights_
    assert not audit(peer, X).holds
    assert audit(RBFSampler(gamma=0.1, n_components=40).fit(X), X).holds


def test_frequencies_are_held_to_their_last_digits():
    """Far from 0 the phases W x of frequencies in float32 are off by 0.1 and more."""
    X = 1e6 + table()[:50]
    model = RBFSampler(n_components=20, random_state=0).fit(X)
    assert audit(model, X).holds
    model.random_weights_ = model.random_weights_.astype(np.float32)
    assert not audit(model, X).holds
