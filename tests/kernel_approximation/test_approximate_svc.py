"""Linear machines on kernel features: the exact machine, bounds for the kernel itself, memory, time, sabotage."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from certifit import CertificateWarning
from certifit.checkers.kernel_approximation import approximate_svc as certificates
from certifit.checkers.kernel_approximation.adapter import audit_approximate_svc, audit_fourier, audit_nystroem
from certifit.checkers.svm.linear_machines.claimed import ClaimedLinearSvm
from certifit.exceptions import DataError
from certifit.kernel_approximation.approximate_svc import ApproximateSVC
from certifit.kernel_approximation.nystroem import Nystroem
from certifit.kernel_approximation.nystroem_problem import NystroemProblem
from certifit.kernel_approximation.rbf_sampler import RBFSampler
from certifit.losses import Hinge, HuberisedHinge
from certifit.rows import ArrayRows
from certifit.svm.kernel.kernels import RBF
from certifit.svm.linear.linear_svm import LinearSVC
from certifit.svm.linear.primal_state import PrimalSvmGoal
from certifit.svm.linear.primal_sums import PrimalQuery, SvmObjective
from certifit.svm.linear.slacks import OneAgainstRest
from certifit.svm.linear.solve import PrimalSvmProblem
from tests.common.tuning import tuned
from tests.kernel_approximation.tables import TOL, WITHIN, labelled


def exact_machine(X, y):
    """scikit-learn's SVC and its objective."""
    model = svm.SVC(tol=1e-9).fit(X, y)
    a, Z = model.dual_coef_[0], model.support_vectors_
    slacks = np.maximum(0.0, 1.0 - (2 * y - 1) * model.decision_function(X))
    return model, 0.5 * a @ rbf_kernel(Z, gamma=model._gamma) @ a + slacks.sum()


def test_with_every_row_a_landmark_the_machine_is_the_exact_one():
    X, y = labelled()
    exact, optimum = exact_machine(X, y)
    model = ApproximateSVC(n_components=200, tol=1e-10, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.certificate_.objective, optimum, rtol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-3)
    assert WITHIN in model.certificate_.facts


def proved(certificate):
    return float(certificate.facts[WITHIN].split()[0])


def test_what_is_proved_of_the_kernel_itself_is_true():
    X, y = labelled(1500)
    _, optimum = exact_machine(X, y)
    for m in (80, 300):
        model = ApproximateSVC(n_components=m, random_state=0).fit(X, y)
        for found in (model.certificate_, audit_approximate_svc(model, X, y, None, 1e-3)):
            assert 0 < found.objective - optimum <= proved(found) * (1 + 1e-2)  # three digits are written
    assert proved(model.certificate_) < 0.03 * optimum


@pytest.mark.parametrize("loss", [(np.inf, 0.0, 1.0), (2.0, 0.0, np.inf)])
@pytest.mark.parametrize("rho", [0.0, None])
def test_bounds_for_the_kernel_itself_are_honest_for_any_coefficients(rho, loss):
    """Against the objective of the best machine that a finer approximation finds."""
    X, y = labelled()
    rng = np.random.default_rng(0)
    features = Nystroem(n_components=60, gamma=0.3, random_state=0).fit(X)
    name = "hinge" if np.isinf(loss[0]) else "squared_hinge"
    best = ApproximateSVC(gamma=0.3, n_components=200, loss=name, fit_intercept=rho == 0.0, random_state=0)
    optimum = best.fit(X, y).certificate_.objective
    for size in (0.0, 0.1, 1.0, 10.0):
        coef, b = size * rng.normal(size=(1, 60)), size * rng.normal(size=1) * (rho == 0.0)
        machines = certificates.FeatureMachines(coef, b, ClaimedLinearSvm(*loss, 1.0, rho), features.feature_map())
        assert certificates.lower_bound(machines, RBF(0.3), ArrayRows(X, y)) <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_sums_of_kernel_values_are_sums_of_features(radius, shifted):
    """N on sums over rows instead of on each row: the same losses, duals, Hessians and rows near the kink."""
    X, y = labelled(600)
    rows, rng = ArrayRows(X, y), np.random.default_rng(0)
    model = Nystroem(n_components=30, random_state=0).fit(X)
    mapped, pose = model.mapped(rows), model.problem(rows)
    svm = SvmObjective(Hinge().shape, 1.0, 0.0, model.transform(X).mean(axis=0) if shifted else None)
    goal = PrimalSvmGoal(svm, 1e-3, 0.0)
    mine, plain = pose(mapped, goal), PrimalSvmProblem(mapped, goal)
    assert isinstance(mine, NystroemProblem)
    queries = (PrimalQuery(OneAgainstRest(1), rng.normal(size=31), HuberisedHinge(0.5).shape, radius),)
    (found,), (expected,) = mine.sums(queries).each, plain.sums(queries).each
    for name in ("loss", "minimised", "v", "linear", "square", "mass", "curved"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    if radius:
        np.testing.assert_allclose(found.working.A, expected.working.A, atol=1e-9)
        np.testing.assert_array_equal(found.working.q, expected.working.q)
    else:
        np.testing.assert_allclose(found.H, expected.H, rtol=1e-9, atol=1e-9)


def test_kernel_values_next_to_dependent_are_left_to_their_features():
    X, y = labelled(600)
    model = Nystroem(gamma=1e-3, n_components=100, random_state=0).fit(X)
    assert model.problem(ArrayRows(X, y)) is PrimalSvmProblem


@pytest.mark.parametrize("features", ["nystroem", "fourier"])
def test_room_for_features_changes_nothing_but_time(features):
    X, y = labelled(6000)  # which count as many
    given = {"features": features, "n_components": 25, "tol": 1e-9, "random_state": 0}
    kept, made = (tuned(ApproximateSVC(cache_size=size, **given), sample_rows=300).fit(X, y) for size in (500, 1e-3))
    np.testing.assert_allclose(made.certificate_.objective, kept.certificate_.objective, rtol=2e-9)
    np.testing.assert_allclose(made.decision_function(X), kept.decision_function(X), atol=1e-3)
    assert audit_approximate_svc(made, X, y, None, 1e-8).holds


def test_time_covers_the_features_too():
    """Nothing is left for the machine: what is proved of it is little, and true."""
    X, y = labelled(1000)
    best = ApproximateSVC(n_components=300, random_state=0).fit(X, y)
    with pytest.warns(CertificateWarning, match="asked for"):
        model = ApproximateSVC(n_components=300, max_time=0.0, random_state=0).fit(X, y)
    assert len(model.features_.components_) < len(best.features_.components_)
    assert model.certificate_.gap > 0
    assert not audit_approximate_svc(model, X, y, None, 1e-3).holds
    finer = (
        LinearSVC(penalize_intercept=False, loss="hinge", tol=1e-6)
        .fit(model.features_.transform(X), y)
        .certificate_.objective
    )
    assert model.certificate_.bound <= finer <= model.certificate_.objective


@pytest.mark.parametrize("features", ["nystroem", "fourier"])
def test_it_is_a_linear_machine_on_the_features(features, tmp_path):
    X, y = labelled(2000, 3)
    model = ApproximateSVC(features=features, n_components=20, tol=1e-9, class_weight="balanced", random_state=0)
    model.fit(X, y)
    linear = LinearSVC(loss="hinge", tol=1e-9, class_weight="balanced", penalize_intercept=False)
    linear.fit(model.features_.transform(X), y)
    np.testing.assert_allclose(model.certificate_.objective, linear.certificate_.objective, rtol=1e-8)
    assert model.objective(X, y).total == pytest.approx(model.certificate_.objective, rel=1e-10)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame.to_parquet(tmp_path / "t.parquet")
    other = clone(model).fit(tmp_path / "t.parquet", "y")
    np.testing.assert_allclose(other.decision_function(tmp_path / "t.parquet"), model.decision_function(X), atol=1e-4)
    other = clone(model).fit(da.from_array(X, chunks=(700, 4)), da.from_array(y, chunks=700))
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-4)


def test_the_pipeline_is_a_line():
    X, y = labelled()
    pipe = make_pipeline(Nystroem(n_components=50, random_state=0), LinearSVC()).fit(X, y)
    assert pipe.score(X, y) > 0.9


def test_unknown_features_are_refused():
    X, y = labelled()
    with pytest.raises(DataError, match="features='random'"):
        ApproximateSVC(features="random").fit(X, y)
    with pytest.raises(DataError, match="Use features='nystroem' for other kernels"):
        ApproximateSVC(features="fourier", kernel="poly").fit(X, y)


def test_features_of_other_settings_are_noticed():
    X, y = labelled()
    nystroem, fourier = Nystroem(gamma=1.0, n_components=20).fit(X), RBFSampler(gamma=1.0, n_components=20).fit(X)
    machine = ApproximateSVC(gamma=1.0, n_components=20).fit(X, y)
    assert audit_approximate_svc(machine, X, y, None, 1e-3).holds
    for model in (nystroem, fourier, machine):
        model.gamma = 0.5
    assert not audit_nystroem(nystroem, X, None, None, TOL).holds
    assert not audit_fourier(fourier, X, None, None, TOL).holds
    assert not audit_approximate_svc(machine, X, y, None, 1e-3).holds
    assert not audit_approximate_svc(machine.set_params(gamma=1.0, kernel="linear"), X, y, None, 1e-3).holds


def test_damaged_features_of_a_machine_are_noticed():
    X, y = labelled()
    for features, name in (("nystroem", "normalization_"), ("fourier", "random_offset_")):
        model = ApproximateSVC(features=features, n_components=20, random_state=0).fit(X, y)
        assert audit_approximate_svc(model, X, y, None, 1e-3).holds
        setattr(model.features_, name, 1.01 * getattr(model.features_, name))
        assert not audit_approximate_svc(model, X, y, None, 1e-3).holds
