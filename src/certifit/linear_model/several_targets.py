"""Fitting a linear model of several targets: one after the other, with the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.linear_model.several_targets import joint_certificate
from certifit.core import Attributes, Watch
from certifit.rows import Rows
from certifit.rows.rows import Relabel


@dataclass(frozen=True)
class TargetWatch:
    """Reports the passes of one target's fit as those of the model of all targets."""

    watch: Watch
    number: int
    targets: int
    found: Sequence[Attributes]  # of the targets before it
    shared: Attributes  # of all targets, such as classes_

    @contextmanager
    def loop(self, name: str, max_iter: int, attributes: Callable[[Any], Attributes]) -> Iterator[Watch]:
        """A watch for one loop, whose attributes and objective are those of all targets so far."""
        label = f"target {self.number}: {name}"
        with self.watch.loop(label, max_iter, lambda x: self._placed(attributes(x))) as watch:
            watch.added = sum(float(one["certificate_"].objective) for one in self.found)
            yield watch

    def _placed(self, one: Attributes) -> Attributes:
        """The attributes of all targets; 0 for those that come later."""
        coef = np.zeros((self.targets, *np.shape(one["coef_"])))
        intercept = np.zeros(self.targets)
        for k, fitted in enumerate([*self.found, one]):
            coef[k], intercept[k] = fitted["coef_"], fitted["intercept_"]
        return {**self.shared, "coef_": coef, "intercept_": intercept}


def fit_targets(
    models: Sequence[Any],
    watch: Watch,
    rows: Rows,
    relabels: Sequence[Relabel],
    previous: Attributes,
    shared: Attributes | None = None,
) -> Attributes:
    """Fit each model, of one target, to the rows with its own targets; return the attributes of all together.

    `previous` are those of an earlier fit, where a warm start is wanted; `shared` are known before any fit.
    """
    shape = len(models), rows.n_features
    warm = np.shape(previous.get("coef_", 0.0)) == shape and np.shape(previous.get("intercept_", 0.0)) == shape[:1]
    found: list[Attributes] = []
    for k, (model, relabel) in enumerate(zip(models, relabels, strict=True)):
        earlier = {"coef_": previous["coef_"][k], "intercept_": previous["intercept_"][k]} if warm else {}
        model._watch = TargetWatch(watch, k, len(models), tuple(found), shared or {})
        found.append(model._fit(rows.relabel(relabel), earlier))
    return join_targets(found)


def join_targets(found: Sequence[Attributes]) -> Attributes:
    """The fitted attributes of all targets, from those of each."""
    stacked = {name for name in ("coef_", "intercept_", "deviance_", "n_iter_", "dual_gap_") if name in found[0]}
    return {
        **{name: np.array([one[name] for one in found]) for name in sorted(stacked)},
        "covariance_": None,
        "collinear_": found[0]["collinear_"],
        "history_": tuple(one["history_"] for one in found),
        "certificate_": joint_certificate([one["certificate_"] for one in found]),
    }
