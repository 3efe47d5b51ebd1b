"""Choices for all fits inside a context: proofs left to an audit, and proofs that take longer than the fit."""

import pickle
import threading
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from certifit import PCA, DataError, DecisionTreeClassifier, KMeans, Nystroem, audit, config
from certifit.core import proves_later, wants_best_proof
from certifit.core.certificate import Certificate


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


MODELS = [PCA(2), KMeans(3, random_state=0), DecisionTreeClassifier(random_state=0), Nystroem(n_components=20)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_proof_is_left_to_the_audit(model, iris):
    """The same model is fitted, nothing is claimed or warned of, and the audit says what the fit would have said."""
    proved = clone(model).set_params(**({"random_state": 0} if hasattr(model, "random_state") else {})).fit(*iris)
    with config(certify="audit"), warnings.catch_warnings():
        warnings.simplefilter("error")
        left = clone(proved).fit(*iris)
    found = left.certificate_
    assert (found.kind, found.proved, found.holds) == ("unproved", False, False)
    assert found.failures() == [found.claim]
    assert "not known yet" in str(found)
    assert str(Certificate.from_dict(found.to_dict())) == str(found)
    for name in ("components_", "cluster_centers_"):
        np.testing.assert_array_equal(getattr(left, name, 0), getattr(proved, name, 0))
    assert audit(left, *iris).holds


def test_audits_inside_the_context_still_prove(iris):
    with config(certify="audit"):
        assert audit(KMeans(3, random_state=0).fit(*iris), *iris).holds


def test_searches_of_scikit_learn_can_leave_proofs_out(iris):
    with config(certify="audit"):
        search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, cv=3).fit(*iris)
    assert search.best_estimator_.certificate_.kind == "unproved"
    assert audit(search, *iris).holds


def test_workers_know_what_was_chosen(iris):
    """Also where a search clones its estimator in a thread of joblib; a later fit outside is proved."""
    with config(certify="audit"), parallel_config(backend="threading"):
        copy = clone(PCA(2))
        kinds = Parallel(n_jobs=2)(delayed(_kind_of_fit)(clone(copy), iris[0]) for _ in range(3))
    assert kinds == ["unproved"] * 3
    assert copy.fit(iris[0]).certificate_.kind == "optimal"


def _kind_of_fit(model, X):
    return model.fit(X).certificate_.kind


def test_a_clone_of_a_clone_takes_it_along_once(iris):
    with config(certify="audit"):
        copy = clone(PCA(2))
    kinds = []

    def fit():
        again = pickle.loads(pickle.dumps(clone(copy)))  # as a worker process receives it
        kinds.extend([again.fit(iris[0]).certificate_.kind, again.fit(iris[0]).certificate_.kind])

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert kinds == ["unproved", "optimal"]


def test_the_best_proof_of_k_means_is_made_where_it_is_asked_for(iris):
    X = iris[0][:60]
    quick = KMeans(3, random_state=0).fit(X)
    with config(proof="best"):
        best = KMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(best.cluster_centers_, quick.cluster_centers_)
    assert 0 < quick.certificate_.bound < best.certificate_.bound <= best.inertia_
    assert audit(quick, X).bound == pytest.approx(best.certificate_.bound, rel=1e-6)


def test_choices_are_nested_and_belong_to_a_thread():
    seen = []
    with config(proof="best"):
        with config(certify="audit"):
            assert (wants_best_proof(), proves_later()) == (True, True)
            thread = threading.Thread(target=lambda: seen.append((wants_best_proof(), proves_later())))
            thread.start()
            thread.join()
        assert (wants_best_proof(), proves_later()) == (True, False)
    assert seen == [(False, False)]
    with pytest.raises(KeyError), config(certify="audit"):
        raise KeyError
    assert not proves_later()


def test_a_wrong_choice_is_refused_in_words():
    with pytest.raises(DataError, match="Did you mean 'audit'"), config(certify="audits"):
        pass
    with pytest.raises(DataError, match="one of 'quick', 'best'"), config(proof=True):
        pass
