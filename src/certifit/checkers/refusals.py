"""What `audit` says of models it does not know: what this is, and the nearest thing that would work."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from certifit.exceptions import DataError


def refusal(model: Any, like: str | None, known: tuple[str, ...]) -> DataError:
    """The error for a model of an unknown class, or for an unknown word `like`."""
    if like is not None:
        near = get_close_matches(like, known, n=1)
        fix = f"Did you mean like={near[0]!r}?" if near else "The documentation of audit lists them."
        return DataError(got=f"like={like!r}", wanted="the name of a class that audit knows", fix=fix)
    name = type(model).__name__
    if name in _WRAPPERS:
        return DataError(got=f"a {name} that is not fitted", wanted="a fitted model", fix="Call fit first.")
    if isinstance(model, type):
        return DataError(
            got=f"the class {model.__name__}", wanted="a fitted model", fix=f"{model.__name__}(…).fit(…)"
        )
    if name not in _UNPROVED and not any(hasattr(model, method) for method in ("fit", "predict", "params")):
        return DataError(got=f"a {name}", wanted="a fitted model", fix="audit(model, X, y)")
    return DataError(
        got=f"a {name}, {_what_it_is(model, known)}", wanted="a model that audit knows", fix=_fix(model, known)
    )


def _what_it_is(model: Any, known: tuple[str, ...]) -> str:
    solves = _UNPROVED.get(type(model).__name__)
    if solves:
        return solves[0]
    base = _known_base(model, known)
    return (
        "whose problem audit does not know"
        if base is None
        else f"a subclass of {base} that may solve another problem"
    )


def _known_base(model: Any, known: tuple[str, ...]) -> str | None:
    if _of_statsmodels(model):  # whose results descend from those of a regression, whatever they minimise
        return None
    return next((base.__name__ for base in type(model).__mro__[1:] if base.__name__ in known), None)


def _of_statsmodels(model: Any) -> bool:
    return type(model).__module__.startswith("statsmodels.")


def _fix(model: Any, known: tuple[str, ...]) -> str:
    base = _known_base(model, known)
    solves = _UNPROVED.get(type(model).__name__)
    if solves and solves[1]:
        return solves[1]
    if base is not None:
        return f"If it minimises what {base} does: audit(model, …, like={base!r})."
    if _of_statsmodels(model):
        return "Results of OLS, WLS, GLS, GLSAR, Logit, Probit, Poisson and GLM are audited."
    return "help(certifit.audit) names those that it knows; like= names one whose problem this model solves too."


# They are audited by what they hold once they are fitted.
_WRAPPERS = {
    "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV",
    "TransformedTargetRegressor", "CalibratedClassifierCV",
}  # fmt: skip

# By class name: what a model is, and what could be audited in its place.
_UNPROVED: dict[str, tuple[str, str]] = {
    "MeanShift": ("which seeks modes of a density, not squared distances", "KMeans is audited."),
    "AffinityPropagation": ("whose centres are rows chosen by similarities", "KMeans is audited."),
    "SpectralClustering": ("whose clusters are of a graph", "audit the k-means step: KMeans on its embedding."),
    "DBSCAN": ("which minimises nothing", "KMeans and GaussianMixture are audited."),
    "GroupLasso": ("whose penalty is on groups of columns", "Lasso and ElasticNet are audited."),
    "MultiTaskLasso": ("whose penalty joins several targets", "Lasso for each target is audited."),
    **dict.fromkeys(
        ("MultiTaskElasticNet", "MultiTaskLassoCV", "MultiTaskElasticNetCV"),
        ("whose penalty joins several targets", "ElasticNet for each target is audited."),
    ),
    **dict.fromkeys(
        ("RegularizedResults", "RegularizedResultsWrapper", "L1PoissonResultsWrapper", "L1BinaryResultsWrapper"),
        (
            "whose penalty the results do not say (fit_regularized)",
            "fit() without a penalty is audited, and so are Lasso, ElasticNet and GeneralizedLinearRegressor.",
        ),
    ),
    **dict.fromkeys(
        ("NegativeBinomialResultsWrapper", "ZeroInflatedPoissonResultsWrapper"),
        ("which estimates more than coefficients", "GLM with families.NegativeBinomial(alpha=…) is audited."),
    ),
    **dict.fromkeys(
        (
            "VotingClassifier",
            "VotingRegressor",
            "StackingClassifier",
            "StackingRegressor",
            "OneVsRestClassifier",
            "OneVsOneClassifier",
            "OutputCodeClassifier",
            "MultiOutputClassifier",
            "MultiOutputRegressor",
        ),
        ("which combines other models", "Audit its members, each with the rows and the target it was fitted to."),
    ),
    **dict.fromkeys(
        ("LassoLars", "LassoLarsCV", "LassoLarsIC"),
        ("which follows a path of solutions", "If it minimises what Lasso does: audit(model, …, like='Lasso')."),
    ),
    "NuSVC": ("which minimises another form of the problem", "SVC with the C that belongs to its nu is audited."),
    "NuSVR": ("which minimises another form of the problem", "SVR with the C that belongs to its nu is audited."),
    "OneClassSVM": ("which has no classes to tell apart", "SVC is audited, GaussianMixture for densities."),
    "SGDOneClassSVM": ("which has no classes to tell apart", "SGDClassifier with a hinge is audited."),
    "SGDRegressor": ("whose loss and penalty audit does not know", "Ridge, Lasso and LinearSVR are audited."),
    "BayesianRidge": ("which chooses its penalty by the evidence", "Ridge with that penalty is audited."),
    "KernelPCA": ("whose components are those of a kernel", "PCA and Nystroem are audited."),
}
