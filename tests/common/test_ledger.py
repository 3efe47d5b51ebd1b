"""The ledger of fitted attributes: each is checked by `audit`, derived from checked ones, or diagnostic.

Every attribute of every estimator is tampered with. Where any method then says something else, the audit must not
hold; a diagnostic attribute may say anything, and nothing may follow from it.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from benchmarks.hunts.tampering import (
    TAMPERS,
    TYPE_TAMPERS,
    cut,
    damage,
    damages,
    derived,
    differ,
    fitted_attributes,
    negate,
    said,
)
from certifit import (
    RFE,
    RFECV,
    GaussianNB,
    L1Selector,
    Lasso,
    LinearRegression,
    LogisticRegression,
    RecursiveElimination,
    Ridge,
    SelectFromModel,
    SequentialFeatureSelector,
    SequentialSelector,
    TableClassifier,
    TableRegressor,
    audit,
)
from tests.common.catalogue import CATALOGUE, ONCE, Entry, amounts, counts, fitted_part, set_fitted_part, three, two


def pairs(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Two targets for each row."""
    X, y = amounts(n)
    return X, np.column_stack([y, X @ [1.0, -2.0, 0.5, 1.0] + y**2])


SEARCHED = ("candidate_scores_",)
TWO, FOLDS = {"n_features_to_select": 2}, {"cv": 2}
# Estimators that are not in the catalogue, whose other tests do not fit them.
BESIDE = (
    Entry(L1Selector, {"alphas": 8}, two, ("coef_",), L1Selector),
    Entry(L1Selector, {"alphas": 8, "criterion": "ebic"}, three, ("coef_",), L1Selector),
    Entry(L1Selector, {"loss": "squared", "alphas": 8, "criterion": "cv", "cv": 3}, amounts, ("coef_",), L1Selector),
    Entry(LinearRegression, {}, pairs, ("coef_",), LinearRegression),
    Entry(Ridge, {"alpha": [1.0, 5.0]}, pairs, ("coef_",), Ridge),
    Entry(Lasso, {"alpha": 0.1, "positive": True}, pairs, ("coef_",), Lasso),
    Entry(TableClassifier, {}, three, ("classes_",), TableClassifier),
    Entry(TableRegressor, {}, amounts, ("n_rows_",), TableRegressor),
    Entry(TableRegressor, {"alpha": 0.0}, counts, ("n_rows_",), TableRegressor),
    Entry(SequentialSelector, {"estimator": GaussianNB(), **TWO, **FOLDS}, three, SEARCHED, SequentialSelector),
    Entry(
        SequentialSelector,
        {"estimator": Ridge(), "direction": "backward", **FOLDS},
        amounts,
        SEARCHED,
        SequentialSelector,
    ),
    Entry(RecursiveElimination, {"estimator": Ridge(), **TWO}, amounts, ("importances_",), RecursiveElimination),
    Entry(RecursiveElimination, {"estimator": Ridge(), **FOLDS}, amounts, ("importances_",), RecursiveElimination),
    Entry(
        SequentialFeatureSelector, {"estimator": Ridge(), "tol": 1e-3, **FOLDS}, amounts, SEARCHED, SequentialSelector
    ),
    Entry(RFE, {"estimator": Ridge()}, amounts, ("importances_",), RFE),
    Entry(RFE, {"estimator": LogisticRegression()}, three, ("importances_",), RFE),
    Entry(SelectFromModel, {"estimator": Lasso(0.1)}, amounts, ("support_",), SelectFromModel),
    Entry(RFECV, {"estimator": Ridge(), **FOLDS}, amounts, ("importances_",), RFECV),
)

every_estimator = pytest.mark.parametrize("entry", [*ONCE, *BESIDE], ids=str)


@every_estimator
def test_nothing_that_methods_read_can_be_changed_unseen(entry):
    X, y = entry.data()
    whole = entry.fitted()
    before, tol = said(whole, X, y), whole.certificate_.tol
    unseen, riddles = [], []
    for name in fitted_attributes(whole):
        if name in whole.diagnostics:
            continue
        for tamper, hurt in damages(getattr(whole, name), TAMPERS):
            model = copy.deepcopy(whole)
            setattr(model, name, hurt)
            try:
                holds = audit(model, X, y).holds
            except ValueError:
                continue
            except Exception as error:
                riddles.append(f"{name} {tamper.__name__}: {error!r}")
                continue
            after = said(model, X, y) if holds else before
            changed = [m for m in before if differ(before[m], after.get(m), max(1e-6, 10 * tol**0.5))]
            if changed:
                unseen.append(f"{name} {tamper.__name__}: {', '.join(changed)}")
    assert not unseen, unseen
    assert not riddles, riddles


@every_estimator
def test_attributes_of_another_type_and_those_that_are_missing_are_noticed(entry):
    """Methods may fail by them, as the audit may; where it holds, none answers otherwise."""
    X, y = entry.data()
    whole = entry.fitted()
    before, unseen = said(whole, X, y), []
    for name in set(fitted_attributes(whole)) - set(whole.diagnostics):
        for tamper, hurt in damages(getattr(whole, name), TYPE_TAMPERS):
            model = damage(whole, name, hurt)
            try:
                holds = audit(model, X, y).holds
            except (ValueError, AttributeError):  # scikit-learn's NotFittedError is both
                continue
            after = said(model, X, y) if holds else before
            answers = [m for m in before if not str(after.get(m, "Error")).endswith("Error")]
            changed = [m for m in answers if differ(before[m], after[m], 1e-6)]
            if changed:
                unseen.append(f"{name} {tamper.__name__}: {', '.join(changed)}")
    assert not unseen, unseen


@every_estimator
def test_nothing_follows_from_a_diagnostic_attribute(entry):
    X, y = entry.data()
    whole = entry.fitted()
    before = said(whole, X, y)
    for name in set(whole.diagnostics) & set(fitted_attributes(whole)):
        for tamper, hurt in damages(getattr(whole, name), (negate, cut)):
            model = copy.deepcopy(whole)
            setattr(model, name, hurt)
            after = said(model, X, y)
            assert [m for m in before if differ(before[m], after[m], 0.0)] == [], (name, tamper.__name__)
            assert audit(model, X, y).holds


@every_estimator
def test_derived_attributes_cannot_be_set(entry):
    model = entry.fitted()
    for name in derived(model):
        with pytest.raises(AttributeError):
            setattr(model, name, 0)


@every_estimator
def test_settings_that_no_fit_could_have_had_are_refused(entry):
    """A tolerance so large that anything would pass is no proof, and settings are checked as `fit` does."""
    X, y = entry.data()
    model = entry.fitted()
    params = model.get_params(deep=False)
    if "tol" in params:
        junk = copy.deepcopy(model).set_params(tol=10.0)
        name = entry.audited[0]
        set_fitted_part(junk, name, np.asarray(fitted_part(junk, name)) * 1.5)
        assert not audit(junk, X, y).holds
    for name in ("C", "alpha", "n_clusters", "n_components", "max_iter"):
        if name in params and name in model.settings:
            with pytest.raises(ValueError, match=name):
                audit(copy.deepcopy(model).set_params(**{name: -3}), X, y)


class Nothing:
    """A value that no setting may have."""


@every_estimator
def test_values_of_a_wrong_type_are_refused_by_fit_and_audit(entry):
    """Every setting that a fit uses, whether declared or not; what is True or False by default is nothing else."""
    X, y = entry.data()
    fitted = entry.fitted()
    for name, value in entry.make().get_params(deep=False).items():
        if not entry.has(name):
            continue
        wrong = [Nothing(), *([1, "yes"] if isinstance(value, bool) else [])]
        for junk in wrong:
            with pytest.raises(ValueError, match=name):
                entry.make(**{name: junk}).fit(X, y)
            with pytest.raises(ValueError, match=name):
                audit(copy.deepcopy(fitted).set_params(**{name: junk}), X, y)


def test_every_entry_is_looked_at():
    assert {entry.cls for entry in ONCE} == {entry.cls for entry in CATALOGUE}
    assert len(ONCE) > 50
