"""Nothing of a naive Bayes model can be wrong unseen: parameters, counts, running sums, settings."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn import naive_bayes as sk

from certifit import BernoulliNB, CategoricalNB, ComplementNB, DataError, GaussianNB, MultinomialNB, NaiveBayes, audit
from certifit.families import Binomial
from tests.naive_bayes.test_mixed import FAMILIES, mixed


def leaves(value, path=()):
    """Give the path of every array and number inside lists, tuples and dicts."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))
    elif isinstance(value, (np.ndarray, float, int)):
        yield path


def damaged(value, path, damage):
    if not path:
        return damage(value)
    if isinstance(value, tuple):
        return tuple(damaged(item, path[1:], damage) if i == path[0] else item for i, item in enumerate(value))
    value[path[0]] = damaged(value[path[0]], path[1:], damage)
    return value


def shift(a):
    return a + 1


def scale(a):
    return a * 1.5


def poison(a):
    return np.full(np.shape(a), np.nan) if np.ndim(a) else float("nan")


def cut(a):
    return a[:-1] if np.ndim(a) else -a


def is_accepted(model, X, y):
    try:
        return audit(model, X, y).holds
    except ValueError:  # refused in words
        return False


TALLIES = np.random.default_rng(0).poisson(2.0, (120, 4)).astype(float)
CLASSES = np.arange(120) % 3
MODELS = [
    (GaussianNB(), TALLIES),
    (GaussianNB(variance="shared", priors=[0.2, 0.3, 0.5]), TALLIES),
    (BernoulliNB(binarize=1.0), TALLIES),
    (MultinomialNB(alpha=0.5), TALLIES),
    (ComplementNB(norm=True), TALLIES),
    (CategoricalNB(min_categories=12), TALLIES),
]


@pytest.mark.parametrize(("model", "X"), MODELS)
@pytest.mark.parametrize("damage", [shift, scale, poison, cut])
def test_every_number_that_a_fit_leaves_is_checked(model, X, damage):
    whole = model.fit(X, CLASSES)
    assert audit(whole, X, CLASSES).holds
    for name in [n for n in vars(whole) if n.endswith("_") and n not in ("certificate_", "n_features_in_")]:
        for path in leaves(getattr(whole, name)):
            hurt = copy.deepcopy(whole)
            old = copy.deepcopy(getattr(hurt, name))
            setattr(hurt, name, damaged(getattr(hurt, name), path, damage))
            if not same(old, getattr(hurt, name), path):
                assert not is_accepted(hurt, X, CLASSES), (name, path)


def same(before, after, path):
    for key in path:
        before, after = before[key], after[key]
    return np.shape(before) == np.shape(after) and np.allclose(before, after, rtol=0, atol=1e-12)


@pytest.mark.parametrize("damage", [shift, scale, poison])
def test_every_number_of_a_mixed_table_is_checked(damage):
    X, y = mixed(90)
    whole = NaiveBayes(FAMILIES).fit(X, y)
    assert audit(whole, X, y).holds
    for name in ("parameters_", "sums_", "class_prior_", "class_count_"):
        for path in leaves(getattr(whole, name)):
            hurt = copy.deepcopy(whole)
            setattr(hurt, name, damaged(getattr(hurt, name), path, damage))
            if not same(getattr(whole, name), getattr(hurt, name), path):
                assert not is_accepted(hurt, X, y), (name, path)


def test_variances_raised_together_with_their_floor_are_noticed():
    """epsilon_ follows from var_smoothing and the rows: a larger one is no excuse for larger variances."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)) * [1.0, 1.0, 10.0], np.arange(200) % 2
    X[:, 0] += 3 * y
    model = GaussianNB().fit(X, y)
    with pytest.raises(AttributeError):
        model.epsilon_ = 1e4
    model.var_ = model.var_ + 1e4
    assert not audit(model, X, y).holds
    theirs = sk.GaussianNB().fit(X, y)
    theirs.var_, theirs.epsilon_ = theirs.var_ + 1e4, theirs.epsilon_ + 1e4
    assert not audit(theirs, X, y).holds
    theirs = sk.GaussianNB().fit(X, y)
    theirs.epsilon_ *= 1e6
    assert not audit(theirs, X, y).holds


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (GaussianNB(), {"var_smoothing": 0.1}),
        (GaussianNB(), {"priors": [0.2, 0.3, 0.5]}),
        (GaussianNB(), {"variance": "shared"}),
        (BernoulliNB(binarize=1.0), {"binarize": 2.0}),
        (BernoulliNB(binarize=1.0), {"alpha": 2.0}),
        (MultinomialNB(), {"fit_prior": False}),
        (MultinomialNB(), {"class_prior": [0.2, 0.3, 0.5]}),
        (ComplementNB(), {"norm": True}),
        (CategoricalNB(), {"min_categories": 40}),
        (NaiveBayes("poisson"), {"family": "geometric"}),
        (NaiveBayes("categorical"), {"alpha": 0.2}),
    ],
)
def test_settings_changed_after_the_fit_are_noticed(model, settings):
    y = np.array([0, 0, 1, 2])[np.arange(120) % 4]
    model.fit(TALLIES, y)
    assert audit(model, TALLIES, y).holds
    assert not is_accepted(copy.deepcopy(model).set_params(**settings), TALLIES, y)


def test_known_parameters_are_those_of_the_setting():
    X, y = np.minimum(TALLIES, 10), CLASSES
    model = NaiveBayes(Binomial(0.5, n=10)).fit(X, y)
    assert audit(model, X, y).holds
    with pytest.raises(DataError, match="known parameters"):
        audit(model.set_params(family=Binomial(0.5, n=12)), X, y)


def test_means_in_single_precision_far_from_0_are_not_those_of_the_rows():
    rng = np.random.default_rng(0)
    X, y = 1e6 + rng.normal(size=(200, 2)), np.arange(200) % 2
    for model in (GaussianNB().fit(X, y), sk.GaussianNB().fit(X, y)):
        assert audit(model, X, y).holds
        model.theta_ = model.theta_.astype(np.float32)
        assert not audit(model, X, y).holds
    single = (X - 1e6).astype(np.float32)
    assert audit(sk.GaussianNB().fit(single, y), single, y).holds


def test_moments_of_a_class_without_entries_are_checked():
    """A class without a value in a column has the moments of all rows there."""
    X, y = TALLIES.copy(), CLASSES
    X[y == 1, 2] = np.nan
    for model, attribute in ((GaussianNB(), "theta_"), (NaiveBayes("poisson"), None)):
        model.fit(X, y)
        assert audit(model, X, y).holds
        if attribute is None:
            row = model.parameters_[0]["members"]
            model.parameters_[0]["members"] = (row[0], (*row[1][:2], (row[1][2][0] * 1.5,), row[1][3]), row[2])
        else:
            getattr(model, attribute)[1, 2] += 0.5
        assert not audit(model, X, y).holds


# ------------------------------------------------------------------------------------------------ honest models
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array])
def test_gaussian_fit_and_audit_agree(scale, offset, form):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)) * [1.0, 2.0, 0.0] + offset, np.array([0, 0, 1])[np.arange(60) % 3]
    X, w = form(X * scale), rng.integers(0, 3, 60).astype(float)
    for model in (GaussianNB(), GaussianNB(variance="shared"), NaiveBayes()):
        model.fit(X, y, w)
        assert model.certificate_.holds
        checked = audit(model, X, y, w)
        assert checked.holds, checked.failures()


@pytest.mark.parametrize(
    "model",
    [
        sk.GaussianNB(var_smoothing=1e-3),
        sk.BernoulliNB(binarize=1.0, fit_prior=False),
        sk.MultinomialNB(alpha=0.5, force_alpha=False),
        sk.MultinomialNB(class_prior=[0.1, 0.2, 0.3, 0.4], alpha=[0.1, 0.2, 0.3, 0.4]),
        sk.ComplementNB(norm=True),
        sk.CategoricalNB(min_categories=20),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learns_settings_weights_and_batches(model, weighted):
    X, y = TALLIES, np.array([0, 1, 2, 2])[np.arange(120) % 4]
    w = np.random.default_rng(2).exponential(size=120) if weighted else None
    if getattr(model, "class_prior", None) is None:
        assert audit(model.fit(X, y, w), X, y, w).holds
        assert not audit(model, X, y[::-1], w).holds
    batches = copy.deepcopy(model)
    for attribute in [a for a in vars(batches) if a.endswith("_")]:
        delattr(batches, attribute)
    sizes = {"n": 120} if isinstance(model, sk.CategoricalNB) else {"n": 40}
    for i in range(0, 120, sizes["n"]):
        here = slice(i, i + sizes["n"])
        batches.partial_fit(X[here], y[here], [0, 1, 2, 3], None if w is None else w[here])
    if isinstance(model, sk.GaussianNB):  # its ε is that of the last batch's rows
        assert not audit(batches, X, y, w, tol=1e-9).holds
        batches.var_ -= batches.epsilon_
        batches.epsilon_ = model.epsilon_
        batches.var_ += batches.epsilon_
        assert audit(batches, X, y, w, tol=0.02).holds
    else:
        assert audit(batches, X, y, w).holds, audit(batches, X, y, w).failures()
