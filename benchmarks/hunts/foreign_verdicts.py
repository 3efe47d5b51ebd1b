"""Foreign verdicts: audits of other libraries' models. What holds is near the optimum, and errors are sentences.

scikit-learn's models come with random settings and solvers, statsmodels' with weights, offsets and exposures. The
best objective known is the least of the tight fit, the crippled one and certifit's own. Where the tight fit has not
converged by that measure, its certificate need not hold.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import statsmodels.api as sm
from sklearn import linear_model, svm

from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.honest_fits import riddle
from benchmarks.hunts.random_models import MODELS, RandomModel
from benchmarks.hunts.random_tables import decades, pick, random_table
from certifit import audit
from certifit.core import Certificate

PEERED = tuple(model for model in MODELS if model.peer is not None)


def try_foreign(case: HuntCase) -> None:
    if case.rng.random() < 0.25:
        _try_statsmodels(case)
    else:
        _try_sklearn(case, PEERED[int(case.rng.integers(len(PEERED)))])


def verdict(case: HuntCase, model: Any, *data: Any, **beside: Any) -> Certificate | None:
    try:
        found = audit(model, *data, **beside)
    except Exception as error:
        case.count("refused")
        case.note(f"{model}: {type(error).__name__}: {error}")
        if riddle(error):
            case.find(riddle(error), model, f"{error}; {' '.join(case.notes)[:200]}")
        return None
    case.count("audits")
    case.note(found)
    return found


def _try_sklearn(case: HuntCase, chosen: RandomModel) -> None:
    rng = case.rng
    table = random_table(rng, chosen.kind, min(chosen.most_rows, 100), 6, weights=False)
    own = chosen.make(rng, *table.shape)
    peer = _other_solver(rng, chosen.peer(own)) if chosen.peer else None
    if peer is None:
        return
    case.note(f"{peer} on {table}, target {chosen.kind}")
    crippled = copy.deepcopy(peer)
    if "max_iter" in peer.get_params():
        crippled.set_params(max_iter=1)
    found, models = [], []
    for model in (peer, crippled, own):
        try:
            models.append(model.fit(table.X, table.y))
        except Exception as error:  # theirs, or certifit's, which another hunt looks at
            case.note(f"{type(error).__name__}: {error}")
            continue
        found.append(verdict(case, model, table.X, table.y))
    if len(found) == 3:
        judge(case, peer, str(table), *found)


def _other_solver(rng: np.random.Generator, peer: Any) -> Any:
    """Now and then another of scikit-learn's solvers for the same problem."""
    if isinstance(peer, linear_model.LogisticRegression) and peer.l1_ratio == 0 and np.isfinite(peer.C):
        solver = pick(rng, "lbfgs", "newton-cg", "newton-cholesky", "liblinear", "sag")
        if solver == "liblinear":  # which penalises the intercept
            return linear_model.LogisticRegression(C=peer.C, solver=solver, tol=1e-8, max_iter=5000)
        return peer.set_params(solver=solver, max_iter=2000)
    if isinstance(peer, linear_model.Ridge):
        return peer.set_params(solver=pick(rng, "auto", "svd", "cholesky", "lsqr"))
    if isinstance(peer, svm.LinearSVC):
        return peer.set_params(dual=bool(rng.random() < 0.5 or peer.loss == "hinge"), max_iter=5000)
    return peer


def judge(case: HuntCase, model: Any, words: str, tight: Any, crippled: Any, own: Any) -> None:
    """Compare the verdicts with the least objective of the three, where they are of one problem."""
    same = [c for c in (tight, crippled, own) if c is not None and math.isfinite(c.objective)]
    if (
        crippled is None
        or tight is None
        or tight.kind != "optimal"
        or type(model).__name__ == "LocallyLinearEmbedding"
    ):
        return
    mine = own is not None and own.kind == "optimal" and _same_problem(model)
    best = min(c.objective for c in (same if mine else [tight, crippled]))
    case.count("verdicts judged")
    for name, found in (("tight", tight), ("crippled", crippled)):
        if not math.isfinite(found.objective):
            continue
        excess = found.objective - best
        # A bounded certificate claims no optimum, but that its objective is no further from it than from its bound.
        claimed = found.objective - found.bound if found.kind == "bounded" else 10 * found.tol * abs(found.objective)
        if found.holds and excess > claimed + 1e-9 * found.scale:
            case.find("holds, and is no optimum", model, f"{name} on {words}: {found.objective!r}, best {best!r}")
        if not found.holds and mine and own.holds and excess <= 1e-9 * abs(best) and name == "tight":
            case.count("tight fits that do not hold")
            case.note(f"does not hold though at the best objective known: {found.failures()}")


def _same_problem(model: Any) -> bool:
    """Whether certifit's model of the same settings has the same objective.

    liblinear's intercept is penalised, and of several classes it weights a machine's own alone.
    """
    own_weights = isinstance(model, svm.LinearSVC) and model.class_weight is not None
    return getattr(model, "solver", "") != "liblinear" and not hasattr(model, "gamma") and not own_weights


def _try_statsmodels(case: HuntCase) -> None:
    rng = case.rng
    kind = str(pick(rng, "ols", "logit", "poisson", "glm poisson", "glm gamma", "glm binomial", "glm gaussian"))
    target = {"ols": "numbers", "logit": "two", "glm binomial": "two", "glm gamma": "positive"}.get(kind, "counts")
    table = random_table(rng, target, 100, 4)
    X, y = (
        np.column_stack([np.ones(len(table.X)), np.asarray(table.X, dtype=float)]),
        np.asarray(table.y, dtype=float),
    )
    more: dict[str, Any] = {}
    if kind.startswith("glm"):
        families = {"poisson": sm.families.Poisson(), "gamma": sm.families.Gamma(sm.families.links.Log()),
                    "binomial": sm.families.Binomial(), "gaussian": sm.families.Gaussian()}  # fmt: skip
        more["family"] = families[kind.split()[1]]
        if rng.random() < 0.4:
            more["freq_weights"] = rng.integers(1, 4, size=len(y)).astype(float)
    if "poisson" in kind and rng.random() < 0.5:
        more["exposure"] = rng.uniform(0.5, 2.0, size=len(y))
    if kind.startswith("glm") and rng.random() < 0.3:
        more["offset"] = 0.1 * rng.normal(size=len(y))
    maker = {"ols": sm.OLS, "logit": sm.Logit, "poisson": sm.Poisson}.get(kind, sm.GLM)
    case.note(f"statsmodels {kind} {sorted(more)} on {table}")
    found = []
    for steps in (200, 1):
        try:
            options = {} if kind == "ols" else {"maxiter": steps} | ({} if "glm" in kind else {"disp": 0})
            fitted = maker(y, X, **more).fit(**options)
        except Exception as error:  # statsmodels' own: singular matrices, perfect separation
            case.note(f"{type(error).__name__}: {error}")
            return
        found.append(verdict(case, fitted))
        if decades(rng, -1, 1) > 1 and "freq_weights" not in more:  # the same with the data given again
            again = {k: more[k] for k in ("offset", "exposure") if k in more}
            given = verdict(case, fitted, X, y, **again)
            if given is not None and found[-1] is not None and given.holds != found[-1].holds:
                case.find("verdict depends on how the data are given", kind, f"{sorted(more)} on {table}")
    judge(case, kind, f"{sorted(more)} {table}", *found, None)


FOREIGN_VERDICTS = Hunt(
    "foreign_verdicts",
    "Foreign verdicts",
    "scikit-learn's and statsmodels' models, tight and stopped after one iteration: what holds is near the optimum",
    try_foreign,
    20.0,
)
