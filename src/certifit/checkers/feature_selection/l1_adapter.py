"""The adapter of the L1 selector: its path of fits, its folds, and the strength it chose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.checkers.feature_selection import l1_choice, screening
from certifit.checkers.feature_selection.fitted_selector import shaped, support_of
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, encode_labels
from certifit.rows.checks import Target


def audit_l1(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the gap at every strength of an L1Selector, the columns that it calls 0 there, and its choice."""
    target: Target = "numbers" if model.loss_ == "squared" else "classes"
    rows = fitted_rows(model, len(support_of(model)), X, y, sample_weight, target)
    _check_loss(model, rows)
    if target == "classes":
        rows = encode_labels(rows, model.classes_).rows
    k = len(model.classes_) if target == "classes" and len(model.classes_) > 2 else 1
    coef, columns = _l1_path(model, k, rows.n_features)
    m = len(coef)
    problem = screening.screening_problem(model.loss_, bool(model.fit_intercept), rows)
    alphas = l1_choice.strengths_again(model, problem, k, rows)
    if len(alphas) < m:
        raise DataError(got=f"{m} fits for {len(alphas)} strengths", wanted="at most one fit for each strength")
    screened = tuple(
        screening.screen(problem.at(float(alpha), float(model.l1_ratio)), beta, b, rows)
        for alpha, beta, b in zip(alphas, coef, numbers(model, "intercept_path_"), strict=False)
    )
    path = l1_choice.StatedPath(columns, coef, np.asarray(model.proved_path_, dtype=bool), screened)
    further: tuple[Check, ...] = ()
    if model.criterion == "cv":
        data = rows.load()
        fits = _fold_fits(model, data.n_rows, coef.shape)
        held = l1_choice.held_out_again(model, fits, alphas[:m], data)
        criterion, error = held.criterion, held.error
        gap = l1_choice.fold_gap(held.gap, tol, data.n_rows)
        further = (gap, *l1_choice.fold_check(model, fits.roles, data))
    else:
        criterion, error = l1_choice.information_again(model, path, problem.weight), np.zeros(m)
    chosen = l1_choice.chosen_strength(path)
    used = path.nonzero[chosen]
    claim = screening.PathClaim(
        chosen, float(alphas[chosen]), path.proved, np.asarray(model.support_), used, len(alphas) - m
    )
    checks = (*further, *l1_choice.path_checks(path, alphas, criterion, error), *_chosen_fit(model, path, chosen))
    return screening.certify_path(screened, claim, tol, rows.n_rows, checks)


def _check_loss(model: Any, rows: Rows) -> None:
    """Refuse a fit for another kind of target than the setting, or y where that is 'auto', asks for."""
    asked = l1_choice.loss_for(rows) if model.loss == "auto" else model.loss
    if asked != model.loss_:
        raise DataError(
            got=f"an L1Selector {'with' if model.loss_ == 'logistic' else 'without'} classes_, as fits with the "
            f"{model.loss_} loss have them",
            wanted=f"the {asked} loss, for which its settings and this y ask",
            fix="Fit it again, on the data given here.",
        )


def _l1_path(model: Any, k: int, d: int) -> tuple[Array, dict[str, Array]]:
    """The coefficients (m, k, d) and the columns of `path_` (m,), in the shapes that belong together."""
    coef, intercept = numbers(model, "coef_path_"), numbers(model, "intercept_path_")
    m = len(np.atleast_1d(coef))
    if m == 0 or coef.shape != (m, k, d) or intercept.shape != (m, k) or np.shape(model.proved_path_) != (m, d):
        raise DataError(
            got=f"a path of {coef.shape} coefficients and {intercept.shape} intercepts for {k} scores of {d} columns",
            wanted="as many fits, at least one, of as many scores in every part of the path",
        )
    names = ("alpha", "nonzero", "proved_zero", "gap", "loss", "criterion", "error")
    if not isinstance(model.path_, Mapping) or set(model.path_) != {*names}:
        found = (
            f"the columns {', '.join(map(str, model.path_))}" if isinstance(model.path_, Mapping) else "no columns"
        )
        raise DataError(got=f"path_ with {found}", wanted=f"a dict with {', '.join(names)}")
    columns = {name: shaped(model, f"path_[{name!r}]", model.path_[name], (m,)) for name in names}
    strange = [name for name in names if not np.isfinite(columns[name]).all()]
    if strange:
        raise DataError(got=f"path_[{strange[0]!r}] with NaN or infinity", wanted="finite numbers")
    return coef, {name: values.astype(np.float64) for name, values in columns.items()}


def _fold_fits(model: Any, n: int, shape: tuple[int, ...]) -> l1_choice.FoldFits:
    """The fits of the folds, in the shapes that belong together."""
    missing = [name for name in ("fold_roles_", "fold_coef_", "fold_intercept_") if not hasattr(model, name)]
    if missing:
        raise DataError(
            got=f"an L1Selector with criterion='cv' without {missing[0]}",
            wanted="the fits of the folds, by which the strength was chosen",
            fix="Fit it again.",
        )
    roles = shaped(model, "fold_roles_", model.fold_roles_, (None, n))
    if (
        len(roles) < 2
        or roles.dtype.kind != "i"
        or not all({1, 2} <= {*role.tolist()} <= {0, 1, 2, 3} for role in roles)
    ):
        raise DataError(
            got="fold_roles_ that do not say what each row is to every fold",
            wanted="at least two rows of 0, 1 (fitted) and 2 (held out), with some of both",
        )
    coef = shaped(model, "fold_coef_", numbers(model, "fold_coef_"), (len(roles), *shape))
    intercept = numbers(model, "fold_intercept_")
    return l1_choice.FoldFits(roles, coef, shaped(model, "fold_intercept_", intercept, (len(roles), *shape[:2])))


def _chosen_fit(model: Any, path: l1_choice.StatedPath, chosen: int) -> tuple[Check, ...]:
    """Checks that what a selector says of its chosen fit is what the path says of it."""
    d = path.coef.shape[2]
    names = getattr(model, "feature_names_in_", np.array([f"x{j}" for j in range(d)], object))
    proved, zero = path.proved[chosen], ~path.nonzero[chosen]
    parts = {
        "coef_": np.array_equal(np.asarray(model.coef_), path.coef[chosen]),
        "intercept_": np.array_equal(np.asarray(model.intercept_), numbers(model, "intercept_path_")[chosen]),
        "proved_zero_": list(model.proved_zero_) == list(names[proved]),
        "undecided_": list(model.undecided_) == list(names[zero & ~proved]),
    }
    off = abs(float(model.alpha_) - float(path.columns["alpha"][chosen]))
    return (
        Check("alpha_ is off the strength that the criterion chooses by", off, 0.0),
        *(
            Check(f"{name} is not that of the chosen fit (1: yes)", float(not same), 0.0)
            for name, same in parts.items()
        ),
    )
