"""Wrong models: arbitrary numbers in place of fitted ones. No bound may exceed what another fit reaches.

A case fits an estimator and its peer tightly, then audits models with wrong numbers of many kinds: random, scaled,
rounded, swapped, from other rows or weights, from one iteration. Where an audit proves a lower bound, the best
objective known must not lie below it; where a certificate holds, the objective must be within its tolerance of the
best known.
"""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.honest_fits import riddle
from benchmarks.hunts.random_models import RandomModel, random_model
from benchmarks.hunts.random_tables import RandomTable, as_source, pick, random_table
from benchmarks.hunts.separation import separable
from certifit import LinearSVC, NoSolutionError, audit
from certifit.core import Certificate

# Other rows make other features, or choose another penalty.
PROBLEM_FROM_ROWS = ("ApproximateSVC", "L1Selector", "RBFSampler", "Nystroem", "CV")
PROBLEM_OF_ITS_OWN = ("LocallyLinearEmbedding",)  # a peer breaks ties and regularises in another way
ROUNDING = {"d": 1e-9, "f": 1e-4}  # of an objective, relative to the terms that it sums, by type of the data


def try_wrong_models(case: HuntCase) -> None:
    rng = case.rng
    chosen = random_model(rng)
    table = random_table(rng, chosen.kind, chosen.most_rows, weights=chosen.takes_weights)
    own = chosen.make(rng, *table.shape)
    _limit_time(own)
    with tempfile.TemporaryDirectory() as folder:
        form, X = as_source(rng, table, chosen.takes_sparse, Path(folder))
        case.note(f"{own} on {table} as {form}, target {chosen.kind}")
        _try_wrong_models(case, chosen, own, table, X)


def _try_wrong_models(case: HuntCase, chosen: RandomModel, own: Any, table: RandomTable, X: Any) -> None:
    rng, y, weight = case.rng, table.y, table.weight
    fits = [fit for fit in _tight_fits(case, chosen, own, table) if fit is not None]
    certificates = [(m, _audited(case, m, X, y, weight)) for m in fits]
    known = [(m, c) for m, c in certificates if c is not None and math.isfinite(c.objective)]
    if not known:
        return
    lowers = known[0][1].kind in ("optimal", "bounded")
    best = {_chosen(*pair): math.nan for pair in known}
    for chosen_one in best if lowers else ():
        best[chosen_one] = min(c.objective for m, c in known if _chosen(m, c) == chosen_one)
    for model, certificate in known:
        words = f"fit of {type(model).__module__.split('.')[0]} on {table}"
        _check_against(case, own, words, certificate, best[_chosen(model, certificate)], table)
    for model in fits:
        for name, wrong in _wrong_models(rng, model, table):
            found = _audited(case, wrong, X, y, weight)
            if found is not None:
                case.count("wrong models audited")
                case.count("wrong models that hold", int(found.holds))
                words = f"{type(model).__module__.split('.')[0]}'s model, {name}, on {table}"
                reached = best.get(_chosen(wrong, found), math.nan) if _same_levels(model, wrong) else math.nan
                _check_against(case, own, words, found, reached, table)


def _chosen(model: Any, certificate: Certificate) -> tuple[float, ...]:
    """The strength that a selector or a search over folds chose: fits at two of them are two problems."""
    return float(certificate.facts.get("strength chosen", 0.0)), *map(float, np.ravel(getattr(model, "C_", ())))


def _same_levels(model: Any, wrong: Any) -> bool:
    """Whether two additive models have the same levels and pairs, of which alone a bound speaks; others have none."""
    levels = [[shape.thresholds for shape in _shape_functions(m)] + _pairs(m) for m in (model, wrong)]
    return len(levels[0]) == len(levels[1]) and all(map(np.array_equal, *levels))


def _shape_functions(model: Any) -> list[Any]:
    """Those of an additive model, of one class after another where there are several."""
    found = getattr(model, "shape_functions_", ())
    return [shape for part in found for shape in (part if isinstance(part, list) else [part])]


def _pairs(model: Any) -> list[Any]:
    """The columns of an additive model's pairs, of one class after another where there are several."""
    found = getattr(model, "pair_functions_", ())
    return [pair.columns for part in found for pair in (part if isinstance(part, list) else [part])]


def _limit_time(model: Any) -> None:
    if "max_time" in model.get_params():
        model.set_params(max_time=5.0)


def _tight_fits(case: HuntCase, chosen: RandomModel, own: Any, table: RandomTable) -> Iterator[Any]:
    """The model as asked for, the same far more exactly, and scikit-learn's."""
    weighted = {} if table.weight is None else {"sample_weight": table.weight}
    exact = copy.deepcopy(own)
    if "tol" in exact.get_params():
        exact.set_params(tol=1e-12)
    peer = chosen.peer(own) if chosen.peer and chosen.name not in PROBLEM_OF_ITS_OWN else None
    if getattr(own, "class_weight", None) and (weighted or isinstance(own, LinearSVC)):
        # 'balanced' counts rows by weight here, and not there; of several classes, LIBLINEAR weights a machine's own.
        peer = None
    for model in (own, exact, peer):
        if model is None:
            continue
        try:
            fitted = copy.deepcopy(model).fit(table.X, table.y, **weighted)
            if model is exact and hasattr(fitted, "gamma_") and hasattr(peer, "gamma"):
                peer.set_params(gamma=fitted.gamma_)  # 'scale' counts rows by weight here, and not there
            yield fitted
        except NoSolutionError as error:
            _check_impossible(case, own, error, table)
        except TypeError:  # a peer that takes no weights
            continue
        except Exception as error:
            if model is not peer and riddle(error):
                case.find(riddle(error), own, f"{table}: {error}")
            case.note(f"{type(error).__name__}: {error}")


def _audited(case: HuntCase, model: Any, X: Any, y: Any, weight: Any) -> Certificate | None:
    try:
        certificate = audit(model, X, y, weight)
    except ValueError as error:
        case.count("refused")
        case.note(f"audit of {model}: {error}")
        if riddle(error):
            case.find(riddle(error), model, str(error))
        return None
    except Exception as error:
        case.find(f"audit raised {type(error).__name__}", model, str(error))
        return None
    case.count("audits")
    return certificate


def _check_against(case: HuntCase, own: Any, words: str, found: Certificate, best: float, table: RandomTable) -> None:
    case.note(f"{words}\n{found}\nbest known {best!r}")
    if found.kind not in ("optimal", "bounded") or math.isnan(best):
        return
    rounding = ROUNDING[np.asarray(table.X).dtype.char]
    # The bound of a boosting speaks of sums of its own size alone: what a larger one reaches may lie below.
    sized = any(name in found.facts for name in ("size of the model", "size of the additive model"))
    if math.isfinite(found.bound) and not sized:
        case.count("bounds compared")
        scale = abs(found.scale)  # below 0 where a damaged strength is
        if found.bound > best + max(rounding * 1e-3, 1e-9) * abs(best) + 1e-15 * rounding / 1e-9 * scale:
            case.find("bound above the optimum", own, f"{words}: bound {found.bound!r}, best known {best!r}")
    if found.holds and found.kind == "optimal":
        allowed = found.tol * abs(found.objective) + rounding * max(abs(found.objective), 1e-3 * found.scale)
        # A certificate states what it excuses as rounding; more than five digits lost are a finding all the same.
        excused = found.limit - found.tol * abs(found.objective)
        allowed = max(allowed, found.tol * abs(found.objective) + min(excused, 1e-5 * abs(found.objective)))
        if found.objective - best > allowed:
            detail = (
                f"{words}: objective {found.objective!r}, best {best!r}, tol {found.tol:g}, scale {found.scale:g}"
            )
            case.find("holds, and is no optimum", own, detail)


def _check_impossible(case: HuntCase, own: Any, error: NoSolutionError, table: RandomTable) -> None:
    """A proof that classes can or cannot be separated is held against a linear program."""
    case.count("proved impossible")
    if not error.certificate.proved:
        case.find("no solution, without proof", own, f"{table}: {error}")
    keep = slice(None) if table.weight is None else np.asarray(table.weight) > 0
    X, y, possible = np.asarray(table.X, dtype=float)[keep], np.asarray(table.y)[keep], False
    if type(own).__name__ == "HardMarginSVC" and own.kernel == "linear" and len(np.unique(y)) == 2:
        possible = separable(X, y, strictly=True)
    if type(own).__name__ == "LogisticRegression" and own.penalty is None and len(np.unique(y)) == 2:
        possible = not separable(X, y, False, own.fit_intercept)
    if possible:
        case.find("impossible, and possible", own, f"{table}: {error}")


# ------------------------------------------------------------------------------------------------- wrong numbers
def _numbers(model: Any) -> list[str]:
    # A kernel's width and a penalty that was chosen say which problem was solved; others are other problems.
    problem = {"gamma_", "alpha_", "l1_ratio_", "C_"}
    skip = {*getattr(model, "diagnostics", ()), "classes_", "n_iter_", "n_features_in_", *problem}
    return sorted(
        name
        for name, value in vars(model).items()
        if name.endswith("_") and name not in skip and isinstance(value, (np.ndarray, float))
        and np.asarray(value).dtype.kind == "f" and np.asarray(value).size
    )  # fmt: skip


def _wrong_models(rng: np.random.Generator, model: Any, table: RandomTable) -> Iterator[tuple[str, Any]]:
    """Models with wrong numbers, and what was done to each."""
    names = _numbers(model)
    coefficients = [name for name in ("coef_", "intercept_") if name in names]
    for _ in range(4):
        wrong = copy.deepcopy(model)
        if not names:
            break
        share = coefficients if coefficients and rng.random() < 0.5 else [str(pick(rng, *names))]
        how = str(pick(rng, *SPOILS))
        for name in share:
            old = np.asarray(getattr(wrong, name), dtype=float)
            new = np.asarray(SPOILS[how](rng, old.copy()))
            setattr(wrong, name, float(new) if isinstance(getattr(wrong, name), float) else new)
        yield f"{how} {', '.join(share)}", wrong
    yield from _other_fits(rng, model, table)


def _noise(rng: np.random.Generator, a: Any) -> Any:
    return a + 10.0 ** rng.uniform(-9, 3) * (np.abs(a).mean() or 1.0) * rng.normal(size=a.shape)


def _swapped(rng: np.random.Generator, a: Any) -> Any:
    flat = a.ravel()
    i, j = rng.integers(flat.size, size=2)
    flat[i], flat[j] = flat[j], flat[i]
    return flat.reshape(a.shape)


SPOILS: dict[str, Any] = {
    "random": lambda rng, a: rng.normal(size=a.shape) * 10.0 ** rng.uniform(-12, 12),
    "scaled": lambda rng, a: a * 10.0 ** rng.uniform(-3, 3),
    "nearly right": lambda rng, a: a * (1 + 10.0 ** rng.uniform(-12, -1)),
    "noisy": _noise,
    "zero": lambda rng, a: a * 0.0,
    "negative": lambda rng, a: -a,
    "swapped": _swapped,
    "rounded": lambda rng, a: np.array([float(f"{v:.1e}") for v in a.ravel()]).reshape(a.shape),
    "single": lambda rng, a: a.astype(np.float32),
}


def _other_fits(rng: np.random.Generator, model: Any, table: RandomTable) -> Iterator[tuple[str, Any]]:
    """The same estimator, fitted on other rows or with other weights, or stopped after one iteration."""
    if type(model).__name__.endswith(PROBLEM_FROM_ROWS):
        return
    n = len(table.X)
    keep = np.sort(rng.permutation(n)[: max(2, n - 1 - int(rng.integers(n // 2)))])
    other = {} if table.weight is None else {"sample_weight": table.weight}
    part = {name: np.asarray(value)[keep] for name, value in other.items()}
    tries = [("fitted on other rows", {}, table.X[keep], None if table.y is None else table.y[keep], part)]
    if other:
        tries.append(("fitted without its weights", {}, table.X, table.y, {}))
    if "max_iter" in model.get_params():
        tries.append(("one iteration", {"max_iter": 1}, table.X, table.y, other))
    for words, settings, X, y, more in tries:
        clone = copy.deepcopy(model).set_params(**settings)
        try:
            clone.fit(X, y, **more)
        except ValueError:
            continue
        # Rows of weight 0 may be all that a class has: with and without it are two problems.
        if np.array_equal(getattr(clone, "classes_", 0), getattr(model, "classes_", 0)):
            yield words, clone.set_params(**{k: model.get_params()[k] for k in settings})


WRONG_MODELS = Hunt(
    "wrong_models",
    "Wrong models",
    "audits of models with wrong numbers: no bound above the best objective known, none holds far from it",
    try_wrong_models,
    20.0,
)
