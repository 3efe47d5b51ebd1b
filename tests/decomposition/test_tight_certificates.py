"""Certificates of decompositions that are neither too loose nor too strict.

A wrong model never holds, however small the part of it that is wrong; an honest one holds for `fit` and `audit`.
"""

import contextlib
import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.datasets import load_digits, load_wine

from certifit import (
    PCA,
    IncrementalPCA,
    ProbabilisticPCA,
    RobustPCA,
    TrimmedPCA,
    TruncatedSVD,
    audit,
    compare,
    linalg,
)
from certifit.checkers.decomposition import probabilistic_pca as certificates
from certifit.checkers.decomposition import saddle
from certifit.rows import as_rows

WINE = load_wine().data
REPEATED = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_")


def take(model, every, index):
    """The model with other components, and all that repeats their variances."""
    for name in REPEATED:
        setattr(model, name, getattr(every, name)[index])
    left = every.explained_variance_.sum() - model.explained_variance_.sum()
    model.noise_variance_ = left / max(1, 13 - len(index))
    return model


# ------------------------------------------------------------------------------------- the smallest components
@pytest.mark.parametrize("pca", [PCA, IncrementalPCA, decomposition.PCA])
def test_the_gap_is_relative_to_what_is_discarded(pca):
    """The first component has 99.8 % of wine's variance: beside it, every other seems negligible."""
    every = pca(13).fit(WINE)
    model = take(pca(6).fit(WINE), every, [0, 1, 2, 10, 11, 12])
    (failure,) = audit(model, WINE).failures()
    assert failure.startswith("objective within 7.63")
    whole = audit(every, WINE)
    assert whole.holds
    assert whole.relative_gap < 1e-12


@pytest.mark.parametrize("pca", [PCA, IncrementalPCA, decomposition.PCA])
def test_two_small_components_in_the_wrong_order_are_noticed(pca):
    every = pca(13).fit(WINE)
    model = take(pca(13).fit(WINE), every, [*range(11), 12, 11])
    model.noise_variance_ = 0.0
    (failure,) = audit(model, WINE).failures()
    assert failure.startswith("axes turned")


@pytest.mark.parametrize("name", [*REPEATED, "noise_variance_", "mean_"])
@pytest.mark.parametrize("make", [PCA, IncrementalPCA, decomposition.PCA, TrimmedPCA])
def test_every_number_is_checked_relative_to_itself(make, name):
    model = make(5).fit(WINE)
    assert audit(model, WINE).holds
    value = np.array(getattr(model, name))
    value[(-1,) * value.ndim] *= 1.001
    setattr(model, name, value)
    assert not audit(model, WINE).holds


@pytest.mark.parametrize("name", ["explained_variance_", "explained_variance_ratio_", "singular_values_"])
@pytest.mark.parametrize("make", [TruncatedSVD, decomposition.TruncatedSVD])
def test_every_number_of_a_truncated_svd_is_checked(make, name):
    model = make(3, algorithm="arpack", random_state=0).fit(WINE)
    assert audit(model, WINE).holds
    getattr(model, name)[2] *= 1.001
    assert not audit(model, WINE).holds


def test_variances_of_codes_far_from_zero():
    """scikit-learn's are the variances of the codes themselves; a difference of squares has no digit left here."""
    X = WINE[:, :4] + 1e8
    model = TruncatedSVD(2).fit(X)
    np.testing.assert_allclose(model.explained_variance_, model.transform(X).var(axis=0), rtol=1e-6)
    assert model.certificate_.holds
    assert audit(model, X).holds


def test_a_small_singular_value_is_checked_relative_to_itself():
    A = np.diag([1e8, 1.0, 0.5, 0.1])
    found = linalg.svd(A, 2)
    assert found.certificate.holds
    from certifit.checkers.linalg.singular_values import certify

    wrong = np.array([1e8, 0.5]), np.eye(4)[:, [0, 2]]
    assert not certify(A, wrong[1], wrong[0], wrong[1].T).certificate.holds


# -------------------------------------------------------------------------------------------- settings and state
@pytest.mark.parametrize(("wrong", "right"), [(3, 2), (0.9999, 0.9), (None, 2), ("mle", 2)])
@pytest.mark.parametrize("pca", [PCA, decomposition.PCA])
def test_another_number_of_components_than_asked_for_is_noticed(pca, wrong, right):
    X = load_digits().data[:, 20:30]
    model = pca(right).fit(X)
    assert audit(model, X).holds
    assert audit(pca(wrong).fit(X), X).holds
    assert not audit(model.set_params(n_components=wrong), X).holds


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (TruncatedSVD(2), {"n_components": 3}),
        (TrimmedPCA(2, random_state=0), {"n_components": 3}),
        (TrimmedPCA(2, random_state=0), {"keep": 0.8}),
        (ProbabilisticPCA(2), {"n_components": 3}),
        (ProbabilisticPCA(2), {"n_components": None}),
        (ProbabilisticPCA(0), {"n_components": "bic"}),
        (RobustPCA(0.2), {"lam": 0.1}),
        (RobustPCA(0.2), {"lam": None}),
        (RobustPCA(0.2), {"center": False}),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_noticed(model, settings):
    X = load_digits().data[:150, 20:30]
    assert audit(model.fit(X), X).holds
    assert not audit(copy.deepcopy(model).set_params(**settings), X).holds


def test_batches_are_added_to_sums_that_the_audit_has_seen():
    model = IncrementalPCA(2).partial_fit(WINE[:90]).partial_fit(WINE[90:])
    assert audit(model, WINE).holds
    assert isinstance(model.n_samples_seen_, int)
    for name, damage in {"scatter_": 1.001, "weight_": 1.01, "n_used_": 2, "n_samples_": 2}.items():
        wrong = copy.deepcopy(model)
        setattr(wrong, name, getattr(model, name) * damage)
        assert not audit(wrong, WINE).holds, name


def test_rows_of_weight_zero_do_not_count_in_any_batch():
    X, w = WINE[:4, :6], np.array([1.0, 0.0, 2.0, 1.0])
    whole = PCA(2).fit(X, sample_weight=w)
    parts = IncrementalPCA(2).partial_fit(X[:3], sample_weight=w[:3]).partial_fit(X[3:], sample_weight=w[3:])
    np.testing.assert_allclose(parts.noise_variance_, whole.noise_variance_, atol=1e-9)
    assert audit(parts, X, sample_weight=w).holds


# ------------------------------------------------------------------------------------------------- rows of float32
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
@pytest.mark.parametrize(
    "model",
    [
        PCA(2), PCA(1, svd_solver="randomized", random_state=0), PCA(2, svd_solver="full"), IncrementalPCA(2),
        TrimmedPCA(2, keep=1.0, random_state=0), ProbabilisticPCA(2),
    ],
    ids=str,
)  # fmt: skip
def test_the_mean_of_float32_rows_is_exact(model, offset):
    X = (np.random.default_rng(0).normal(size=(30, 4)) + offset).astype(np.float32)
    exact = X.astype(np.longdouble).mean(axis=0).astype(np.float64)
    model.fit(X)
    np.testing.assert_allclose(model.mean_, exact, rtol=1e-15, atol=1e-15)
    assert model.certificate_.holds
    assert audit(model, X).holds
    model.mean_ = model.mean_.astype(np.float32)
    # Half of the last digit of float32: 0.5 at 1e7, where the deviations are 1.
    if offset == 1e7:
        assert not audit(model, X).holds


@pytest.mark.parametrize("svd_solver", ["full", "arpack", "randomized"])
def test_scikit_learns_pca_of_float32_rows_is_judged_by_the_digits_of_the_rows(svd_solver):
    X = load_wine().data.astype(np.float32)
    for offset in (0.0, 100.0):
        theirs = decomposition.PCA(3, svd_solver=svd_solver, random_state=0).fit(X + np.float32(offset))
        assert audit(theirs, X + np.float32(offset)).holds


@pytest.mark.parametrize("turned", [False, True])
def test_a_float32_mean_is_judged_by_what_it_adds_to_the_error(turned):
    """Numbers near 2^30 are 64 apart in float32: a mean there is off by more than a narrow column's deviation."""
    rng = np.random.default_rng(0)
    wide, narrow = np.round(rng.normal(size=(2, 29)) * [[500.0], [1.0]]) * 64
    X = (np.column_stack([wide + narrow, wide - narrow] if turned else [wide, narrow]) + 2.0**30).astype(np.float32)
    exact, theirs = X.astype(np.float64).mean(axis=0), decomposition.PCA(1, svd_solver="full").fit(X)
    off, narrowest = theirs.mean_ - exact, np.linalg.eigvalsh(np.cov(X.astype(np.float64).T))[0]
    assert np.sum((off - off @ theirs.components_.T @ theirs.components_) ** 2) > 1e-3 * narrowest
    assert not audit(theirs, X).holds
    theirs.mean_ = exact
    assert audit(theirs, X).holds


def test_a_mean_of_numbers_whose_squares_vanish_is_judged_by_their_size():
    X = np.array([[3.0, -1.0], [-3.0, 2.0], [0.1, 5.0], [-0.1, -6.0 + 1e-9]]) * 1e-176
    w = np.array([0.3, 0.7, 1.1, 0.9])
    model = PCA(1).fit(X, None, w)
    assert model.certificate_.holds
    assert audit(model, X, sample_weight=w).holds
    # Rows summed in another order: rounding in units of the rows, not of a mean near zero.
    model.mean_ = model.mean_ + 2e-15 * 1e-176
    assert audit(model, X, sample_weight=w).holds
    model.mean_ = model.mean_ * 1.5
    assert not audit(model, X, sample_weight=w).holds


@pytest.mark.parametrize("name", ["explained_variance_", "singular_values_", "explained_variance_ratio_"])
@pytest.mark.parametrize(
    "model",
    [
        PCA(), PCA(5), PCA(5, svd_solver="full"), PCA(3, svd_solver="gram"), TruncatedSVD(5),
        TruncatedSVD(5, algorithm="full"),
    ],
    ids=str,
)  # fmt: skip
def test_fits_of_float32_rows_that_are_summed_in_float64_are_judged_in_float64(model, name):
    """The last variance is 1e-7 of the first: float32 beside the total would forgive any number in its place."""
    X = (np.random.default_rng(1).normal(size=(300, 6)) * [1e3, 1e2, 10.0, 1.0, 0.5, 0.2]).astype(np.float32)
    model.fit(X)
    assert model.certificate_.holds
    assert audit(model, X).holds
    getattr(model, name)[-1] *= 1.0001
    assert not audit(model, X).holds


@pytest.mark.parametrize("seed", range(6))
def test_digits_of_fits_to_float32_rows_of_any_shape(seed):
    """Squares of more than 128 columns are summed in float32 where nothing is faint: the audit knows when."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([60, 150, 400])), int(rng.choice([20, 129, 200]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3 * (seed % 2), 0, size=d) + rng.choice([0.0, 100.0])
    X = X.astype(np.float32)
    for solver in ("auto", "full", "covariance_eigh", "gram", "randomized"):
        k = int(rng.integers(1, min(n, d)))
        for model in (
            PCA(k, svd_solver=solver, random_state=0),
            TruncatedSVD(k, algorithm=solver, random_state=0),
        ):
            assert model.fit(X).certificate_.holds
            assert audit(model, X).holds


# ----------------------------------------------------------------------------------------------------------- saddles
def with_holes(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [4.0, 2.0, 1.0] @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:3]
    X += 0.2 * rng.normal(size=X.shape)
    holes = rng.random(X.shape) < 0.1
    holes[:, 0] = False
    return np.where(holes, np.nan, X)


def test_a_saddle_does_not_pass_for_a_maximum_and_is_left():
    """EM started at the second and third axes alone stays there: no step finds the first."""
    X = with_holes()
    best = ProbabilisticPCA(3, tol=1e-9).fit(X)
    kept = best.components_[1:], best.explained_variance_[1:]
    # A component that is exactly zero stays zero under EM.
    stuck = ProbabilisticPCA(3).fit(X)
    stuck.components_, stuck.explained_variance_ = (
        np.vstack([kept[0], best.components_[:1]]),
        np.append(kept[1], best.noise_variance_),
    )
    model = certificates.PPCAModel(stuck.components_, stuck.explained_variance_, best.mean_, best.noise_variance_, 3)
    rows = as_rows(X, missing=True)
    way = certificates.find_way_up(model, rows)
    assert way.gain > 0.01
    assert abs(way.u @ best.components_[0]) > 0.99
    stuck.set_params(warm_start=True).fit(X)
    np.testing.assert_allclose(stuck.loglikelihood_, best.loglikelihood_, rtol=1e-6)
    assert stuck.certificate_.holds
    assert audit(stuck, X).holds


def test_every_direction_with_more_variance_than_a_component_is_tried():
    """A model of the third axis and of noise alone: both the first and the second axis are ways up from it."""
    X = with_holes()
    best = ProbabilisticPCA(3, tol=1e-9).fit(X)
    noise = best.noise_variance_
    beside = np.linalg.svd(best.components_)[2][3:4]
    model = certificates.PPCAModel(
        np.vstack([best.components_[2:], beside]),
        np.array([best.explained_variance_[2], noise]),
        best.mean_,
        noise,
        2,
    )
    rows, tried = as_rows(X, missing=True), []
    before = rows.sum(lambda block: certificates._expect(model.mean, model.W, model.noise, block))

    def curves(U):
        tried.append(U)
        return certificates._curves(model, rows, 200.0, U)

    way = saddle.upward_direction(model.W, model.noise, before.residuals / 200.0, curves)
    assert tried[0].shape[1] >= 2
    along = np.abs(best.components_[:2] @ tried[0])
    assert (along.max(axis=1) > 0.95).all()
    assert way.gain == max(
        saddle._way_up(model.W, model.noise, u, certificates._curves(model, rows, 200.0, u[:, None])[0]).gain
        for u in tried[0].T
    )


def test_the_second_derivative_is_that_of_the_likelihood():
    """Against central differences of the likelihood, along the direction that the residuals point to."""
    X = with_holes(60)
    fitted = ProbabilisticPCA(2).fit(X)
    model = certificates.PPCAModel(
        fitted.components_, fitted.explained_variance_, fitted.mean_, 1.3 * fitted.noise_variance_
    )
    rows, rng = as_rows(X, missing=True), np.random.default_rng(0)
    u, v = rng.normal(size=6), rng.normal(size=2)

    def likelihood(step):
        W = model.W + step * np.outer(u, v)
        return rows.sum(lambda block: certificates._likelihood(model.mean, W, model.noise, block))

    h = 1e-3
    differences = (likelihood(h) - 2 * likelihood(0.0) + likelihood(-h)) / h**2
    K = rows.sum(lambda block: saddle.curvature(model.mean, model.W, model.noise, u, block))
    np.testing.assert_allclose(v @ K @ v, differences, rtol=1e-4)


# ------------------------------------------------------------------------------------ random honest and wrong fits
def table(rng):
    """A random table, often degenerate, and row weights."""
    n, d = int(rng.choice([2, 3, 5, 12, 40])), int(rng.choice([1, 2, 4, 9]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=d)
    kind = rng.choice(["plain", "constant", "doubled", "equal", "scaled", "far", "rank one"])
    if kind == "constant":
        X[:, 0] = 3.3
    elif kind == "doubled":
        X = np.repeat(X, 2, axis=0)
    elif kind == "equal":
        X[:] = X[0]
    elif kind == "scaled":
        X *= 10.0 ** rng.choice([-9, 9])
    elif kind == "far":
        X += 10.0 ** rng.choice([3, 6, 8])
    elif kind == "rank one":
        X = np.outer(rng.normal(size=n), rng.normal(size=d))
    X = X.astype(np.float32) if rng.random() < 0.3 else X
    w = rng.integers(0, 3, len(X)).astype(float) if rng.random() < 0.4 else None
    return kind, sparse.csr_array(X) if rng.random() < 0.2 else X, w


def models(rng, n, d, is_sparse):
    k = int(rng.integers(1, min(n, d) + 1))
    solver = str(rng.choice(["auto", "full", "covariance_eigh", "gram", "arpack", "randomized", "power"]))
    yield PCA(k, svd_solver=solver, random_state=0)
    yield from (PCA(rng.choice([None, 0.5, 0.9])), IncrementalPCA(k), TruncatedSVD(k, random_state=0))
    yield TrimmedPCA(k, random_state=0, keep=float(rng.choice([0.5, 0.75, 1.0])))
    if n >= d:
        yield PCA("mle")
    if not is_sparse:
        yield from (ProbabilisticPCA(k - 1), ProbabilisticPCA("bic"), RobustPCA(max_iter=50))


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
@pytest.mark.parametrize("seed", range(20))
def test_fit_and_audit_agree_and_wrong_models_do_not_hold(seed):
    rng = np.random.default_rng(seed)
    kind, X, w = table(rng)
    for model in models(rng, *X.shape, sparse.issparse(X)):
        try:
            model.fit(X, sample_weight=w)
        except ValueError:
            continue
        found = audit(model, X, sample_weight=w)
        assert found.holds == model.certificate_.holds, (kind, model, found.failures())
        assert found.holds or isinstance(model, RobustPCA), (kind, model, found.failures())
        if hasattr(model, "noise_variance_") and kind in ("plain", "scaled", "far"):
            wrong = copy.deepcopy(model)
            wrong.noise_variance_ = np.nan
            with contextlib.suppress(ValueError):
                assert not audit(wrong, X, sample_weight=w).holds


def test_planes_are_compared_only_with_those_of_the_same_problem():
    X = np.random.default_rng(0).normal(size=(60, 4))
    models = {
        "pca": PCA(2),
        "power": PCA(2, svd_solver="power", random_state=0),
        "batches": IncrementalPCA(2),
        "scikit-learn's": decomposition.PCA(2),
        "through zero": TruncatedSVD(2),
        "three": PCA(3),
        "likeliest": ProbabilisticPCA(2),
        "relevant": ProbabilisticPCA("ard"),
    }
    table = compare({name: model.fit(X) for name, model in models.items()}, X, show=False)
    problems = table.problems
    assert problems["pca"] == problems["power"] == problems["batches"] == problems["scikit-learn's"]
    assert len(set(problems.values())) == 5


@pytest.mark.parametrize(("far", "hidden"), [(0.0, None), (1e9, "2 of 3")])
def test_axes_hidden_by_rounding_are_named(far, hidden):
    """Beside one row at 1e9 the sums of squares have no digit left for variances near 1."""
    X = np.random.default_rng(0).normal(size=(80, 4))
    X[0] += far
    found = audit(IncrementalPCA(3).fit(X), X)
    said = found.facts.get("axes of which nothing is proved")
    assert found.holds
    assert said is None if hidden is None else str(said).startswith(hidden)


@pytest.mark.parametrize("shape", [(200, 6), (5, 12)])
@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh"])
def test_small_axes_are_proved_beside_one_row_that_is_far_larger(solver, shape):
    """Rounding of the total, of 1e16, is far above the error of the best plane; the proof is to three digits."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape)
    X[3] *= 1e9
    smallest = (np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[2:] ** 2).sum() / len(X)
    model = PCA(2, svd_solver=solver).fit(X)
    for found in (model.certificate_, audit(model, X)):
        assert found.holds
        assert found.bound <= smallest * (1 + 1e-6) <= found.objective * (1 + 2e-6)
        assert found.limit < 2e-3 * smallest
    turned = np.linalg.qr(np.column_stack([model.components_[0], rng.normal(size=shape[1])]))[0][:, 1]
    model.components_[1] = turned * np.sign(turned[np.abs(turned).argmax()])
    wrong = audit(model, X)
    assert not wrong.holds
    assert "rounded" in str(wrong.facts["error below the last digits of the total"])


def test_rows_in_a_plane_leave_nothing_but_rounding():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2)) * [1e6, 1.0] @ rng.normal(size=(2, 5))
    for model in (PCA(2), PCA(3), PCA(2, svd_solver="full"), TruncatedSVD(2), decomposition.PCA(2)):
        assert audit(model.fit(X), X).holds, model
