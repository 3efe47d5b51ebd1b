"""Check any fitted model, ours or another library's, from its fitted attributes and the data alone.

>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> import certifit
>>> X, y = load_iris(return_X_y=True)
>>> certifit.audit(LogisticRegression(max_iter=1000, tol=1e-8).fit(X, y), X, y).holds
True
"""

from certifit.auditing.adapters import audit
from certifit.auditing.comparison import Comparison, compare

__all__ = ["Comparison", "audit", "compare"]
