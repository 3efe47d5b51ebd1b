"""Tables and the audit that tests of kernel machines share."""

import pytest
from sklearn.preprocessing import StandardScaler

from certifit.checkers.svm.adapter import audit_svc, audit_svr
from certifit.svm.kernel.svc import SVC
from certifit.svm.kernel.svr import SVR
from tests.common.catalogue import amounts, three, two


def standard(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def audit(model, X, y, w=None, tol=None, **tuning):
    check = audit_svr if hasattr(model, "epsilon") and "SVR" in type(model).__name__ else audit_svc
    return check(model, X, y, w, model.tol if tol is None else tol, **tuning)


FITTED = {
    "two classes": (SVC, {}, two),
    "three classes": (SVC, {"C": 0.5}, three),
    "regression": (SVR, {"epsilon": 0.5}, amounts),
}
every_kind = pytest.mark.parametrize("kind", FITTED)


def fitted(kind, **params):
    cls, settings, data = FITTED[kind]
    X, y = data()
    return cls(**{"tol": 1e-8, **settings, **params}).fit(X, y), X, y
