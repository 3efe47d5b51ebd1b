"""Check any fitted model, ours or another library's, from its fitted attributes and the data alone.

>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> import certifit
>>> X, y = load_iris(return_X_y=True)
>>> certifit.audit(LogisticRegression(max_iter=1000, tol=1e-8).fit(X, y), X, y).holds
True
"""

from __future__ import annotations

from typing import Any

from certifit.checkers.registry import find_audited
from certifit.core import Certificate, Estimator


def audit(
    model: Any, X: Any = None, y: Any = None, sample_weight: Any = None, *, tol: float | None = None, **beside: Any
) -> Certificate:
    """Recompute a fitted model's certificate from the data. The checker uses no code of the solver.

    Parameters
    ----------
    model : fitted certifit or scikit-learn PCA, TruncatedSVD, LocallyLinearEmbedding, KMeans (also MiniBatchKMeans,
        BisectingKMeans and faiss.Kmeans), GaussianMixture, Mixture, LogisticRegression, naive Bayes, linear or
        generalised linear model, support vector machine, Nystroem, RBFSampler, SelectKBest, anything with the same
        fitted attributes, a Pipeline that ends in one, a TableClassifier, or results of a statsmodels GLM, OLS,
        Logit, Probit or Poisson fit (these carry their data: X and y may be left out)
    X, y, sample_weight : the data it was fitted on, in any form that `fit` takes
    tol : relative gap to ask for; by default the model's own for certifit models, 1e-4 for others
    **beside : offset, exposure or trials of a generalised linear model that was fitted with them; effort of a
        clustering's lower bound (1 by default; 10 takes up to a thousand times as long and proves more)

    Returns
    -------
    Certificate : what is proved; `holds` says whether it is enough
    """
    if hasattr(model, "steps") and hasattr(model, "named_steps"):  # a pipeline
        for _, step in model.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return audit(model.steps[-1][1], X, y, sample_weight, tol=tol, **beside)
    if hasattr(model, "encode_labelled"):  # a model of a table
        return audit(model.model_, model.encode_labelled(X, y, sample_weight), tol=tol)
    known = find_audited(model)
    if tol is None:
        # other libraries' own `tol` means something else
        tol = float(getattr(model, "tol", 1e-4)) if isinstance(model, Estimator) else 1e-4
    return known.auditor(model, X, y, sample_weight, tol, **beside)
