"""Reads fitted bags, ours and scikit-learn's, and certifies them on the rows they were fitted on.

Members are of any kind, so what they minimise is not known here; what is checked is that they were fitted to the
samples which the seeds draw: each is fitted again and must say the same. Out-of-bag answers, their score and
its interval are recomputed from all members.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.ensemble.bagging.answers import member_answers, unseen_answers
from certifit.checkers.ensemble.bagging.samples import sample_plan
from certifit.checkers.ensemble.forest.out_of_bag import summarise
from certifit.checkers.ensemble.forest.plain_bootstrap import check_whole, row_order
from certifit.checkers.fitted import fitted_rows
from certifit.checkers.tree.plain_tree import plain_tree
from certifit.core import Certificate, Check, Estimator
from certifit.core.config import config
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, encode_labels
from certifit.rows.checks import TableTerms

FITTED = "members fitted again to the samples that their seeds draw say the same"
UNSEEN = "the out-of-bag score, with an interval for new rows of the same kind"


@dataclass(frozen=True)
class BagTuning:
    """Whether members are fitted again, and what two fits may differ by."""

    refit: bool = True
    apart: float = 1e-6


def audit_bag(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted BaggingClassifier or BaggingRegressor."""
    classes = getattr(model, "classes_", None)
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        rows = encode_labels(rows, np.asarray(classes)).rows
    return certify_bag(model, rows, tol, BagTuning())


def certify_bag(model: Any, rows: Rows, tol: float, tuning: BagTuning) -> Certificate:
    """Check a bag on rows whose y are class numbers or amounts."""
    data, k = rows.load(), len(getattr(model, "classes_", ()))
    y, w, own = np.asarray(data.y), data.w, hasattr(model, "draw_order_")
    if len(model.estimators_) != model.n_estimators:
        raise DataError(
            got=f"{len(model.estimators_)} members for n_estimators={model.n_estimators}",
            wanted="a bag as its fit left it",
        )
    members = [*(_own_members(model, rows, w) if own else _their_members(model, w))]
    checks: tuple[Check, ...] = _check_own(model, rows, w) if own else ()
    facts: dict[str, Any] = {}
    if tuning.refit:
        _check_trees(members)
        # An unlike member that is passed over makes the bag's answers wrong just as well, so none is.
        apart = float(np.max([_refit_apart(member, data.X, y, k, own) for member in members]))
        strange = sum(not _is_copy(member, model.estimator) for member in model.estimators_)
        checks += (
            Check("answers of members fitted again off by, relative", apart, tuning.apart),
            Check("members whose settings are not the estimator's", float(strange), 0.0),
        )
    answers = np.mean([member_answers(member, data.X[:, columns], k) for member, columns, _ in members], axis=0)
    loss = answers.argmax(axis=1) != y if k else (answers[:, 0] - y) ** 2
    objective = float(np.average(loss, weights=w))
    name = "oob_decision_function_" if k else "oob_prediction_"
    if not hasattr(model, name):
        return Certificate("exact", FITTED, objective, 0.0, tol, checks=checks, facts=facts)
    more, told = _check_unseen(model, np.asarray(getattr(model, name), float).reshape(len(y), -1), members, data, k)
    return Certificate(
        "statistical", f"{UNSEEN}; {FITTED}", objective, 0.0, tol, checks=(*checks, *more), facts={**facts, **told}
    )


def _own_members(model: Any, rows: Rows, w: Array) -> Iterator[tuple[Any, Array, Array]]:
    plan, order = sample_plan(model, w, rows.n_features), row_order(rows)
    for member, seed in zip(model.estimators_, model.seeds_, strict=True):
        yield member, plan.columns_of(int(seed)), plan.row_weights(int(seed), order, w)


def _their_members(model: Any, w: Array) -> Iterator[tuple[Any, Array, Array]]:
    samples = model.estimators_samples_
    for member, columns, sample in zip(model.estimators_, model.estimators_features_, samples, strict=True):
        yield member, np.asarray(columns), np.bincount(sample, minlength=len(w)).astype(np.float64)


def _check_trees(members: list[tuple[Any, Array, Array]]) -> None:
    """Refuse members that are trees with a circle in them: they would never answer."""
    for member, columns, _ in members:
        if hasattr(member, "tree_"):
            plain_tree(member.tree_, len(columns))


def _is_copy(member: Any, estimator: Any) -> bool:
    """Whether a member has the settings of the estimator, or of a tree where there is none, but for its seeds."""
    if estimator is None and type(member).__name__ not in ("DecisionTreeClassifier", "DecisionTreeRegressor"):
        return False
    asked = type(member)() if estimator is None else estimator
    return type(member) is type(asked) and _settings(member) == _settings(asked)


def _settings(estimator: Any) -> dict[str, str]:
    """Settings as text, those of estimators inside among them, without seeds."""
    found = estimator.get_params()
    inside = {id(value) for value in found.values() if hasattr(value, "get_params")}
    return {
        name: repr(value) for name, value in found.items()
        if name.split("__")[-1] != "random_state" and id(value) not in inside and not isinstance(value, list)
    }  # fmt: skip


def _check_own(model: Any, rows: Rows, w: Array) -> tuple[Check, ...]:
    """Whether the order of the draws, their weights and the seeds are those of the rows and the settings."""
    check_whole(model.draw_order_, model.seeds_)
    if not len(model.draw_order_) == len(model.draw_weight_) == rows.n_rows:
        raise DataError(
            got=f"{rows.n_rows} rows for a bag of {len(model.draw_weight_)}", wanted="the rows it was fitted on"
        )
    strange = 0
    if isinstance(model.random_state, (int, np.integer)):
        expected = np.random.RandomState(model.random_state).randint(2**31 - 1, size=len(model.seeds_))
        strange = int((expected != np.asarray(model.seeds_)).sum())
    off, moved = float(np.abs(w - model.draw_weight_).max()), float((row_order(rows) != model.draw_order_).sum())
    return (
        Check("rows out of the order in which they are drawn", moved, 0.0),
        Check("weights of draws off by", off, 1e-12 * float(w.max())),
        Check("seeds that random_state does not give", float(strange), 0.0),
    )


def fit_member(member: Any, X: Any, y: Array, drawn: Array, only_drawn: bool) -> Any:
    """Fit an estimator to rows that count so much, by their weights, or by repetition where it takes none.

    A proof of its own is left out: that of the bag is made from its members' answers.
    """
    takes_weights = "sample_weight" in inspect.signature(member.fit).parameters
    rows = np.flatnonzero(drawn) if only_drawn else np.arange(len(y))
    with config(certify="audit"):
        if takes_weights:
            return member.fit(X[rows], y[rows], sample_weight=drawn[rows])
        repeated = np.repeat(np.arange(len(y)), np.rint(drawn).astype(np.int64))
        return member.fit(X[repeated], y[repeated])


def _refit_apart(member: tuple[Any, Array, Array], X: Any, y: Array, k: int, only_drawn: bool) -> float:
    """How far the answers of a member are from those of the same estimator, fitted again to its sample."""
    fitted, columns, drawn = member
    X = X[:, columns]
    again = member_answers(fit_member(copy.deepcopy(fitted), X, y, drawn, only_drawn), X, k)
    size = float(np.abs(again).max()) or 1.0
    return float(np.abs(member_answers(fitted, X, k) - again).max()) / size


def _check_unseen(
    model: Any, told: Array, members: list[tuple[Any, Array, Array]], data: Any, k: int
) -> tuple[tuple[Check, ...], dict[str, Any]]:
    """Compare out-of-bag answers, their score and its interval with what they should be."""
    own, y = isinstance(model, Estimator) or hasattr(model, "oob_interval_"), np.asarray(data.y)
    w = data.w if own else np.ones(len(y))
    answers = unseen_answers(members, data.X, k, w)
    known = ~np.isnan(answers)
    same = bool(np.array_equal(known, ~np.isnan(told))) or not own
    size = float(np.abs(answers[known]).max(initial=1.0))
    off = float(np.abs(answers - told)[known].max(initial=0.0)) / size if same else float("inf")
    found = summarise(answers, y, w, k)
    # scikit-learn counts rows that every member saw as answered by 0.
    score, said = (found if own else summarise(np.where(known, answers, 0.0), y, w, k)).score, float(model.oob_score_)
    checks = [
        Check("out-of-bag answers off by, relative", off, 1e-9),
        Check("out-of-bag score off by", abs(score - said) / max(1.0, abs(said)), 1e-9),
    ]
    if own:
        apart = float(np.abs(np.array([found.low, found.high]) - np.asarray(model.oob_interval_)).max())
        checks.append(Check("ends of its interval off by", apart, 1e-9))
    return tuple(checks), {
        f"out-of-bag {'accuracy' if k else 'R²'}": found.score,
        "with 95 % confidence": f"between {found.low:.4g} and {found.high:.4g}",
        "assumed": "rows are independent draws",
    }
