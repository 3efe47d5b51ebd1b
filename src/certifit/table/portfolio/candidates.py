"""The models that are compared: the simplest first, each with good defaults and with further settings to try.

A candidate is named by a word and by settings in plain numbers, so that a ledger can name it and a replay build it
again. Settings that have the unit of the target (C and epsilon of support vector regression) are in its deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from certifit.ensemble.additive.additive_models import AdditiveClassifier, AdditiveRegressor
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from certifit.ensemble.forest.classifiers import ExtraTreesClassifier, RandomForestClassifier
from certifit.ensemble.forest.regressors import ExtraTreesRegressor, RandomForestRegressor
from certifit.naive_bayes.mixed import NaiveBayes
from certifit.neural_network.perceptron_models import MLPClassifier
from certifit.numerics.compiled.compiling import PlainFirst
from certifit.svm.kernel.svc import SVC
from certifit.svm.kernel.svr import SVR
from certifit.svm.linear.linear_svm import LinearSVC, LinearSVR
from certifit.table.labelled_table import LabelledTable
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_model import TableModel
from certifit.table.table_regressor import TableRegressor
from certifit.table.targets import choose_family
from certifit.tree.binned.growth import PLAIN_FIRST as BOOSTED_TREES
from certifit.tree.binned.seeded.growing import PLAIN_FIRST as FOREST_TREES

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class PortfolioTuning:
    """Up to how many rows a model is tried, and how many further settings of it."""

    kernel_rows: int = 4_000  # whose time grows with their square
    linear_machine_rows: int = 50_000
    network_rows: int = 20_000
    additive_rows: int = 50_000
    forest_rows: int = 200_000  # of the fit to all rows: of a million the trees hold 5 GB
    streamed_bytes: float = 2**29  # that trees may hold of rows which are read block by block
    row_bytes: int = 64  # that trees hold of a row, beside a byte of each of its entries
    drawn_settings: int = 30  # of boosting, at random
    additive_passes: int = 1_000  # at most; small tables with many columns need more than usual for their proof
    compiling_seconds: float = 20.0  # of boosting's loops, the first time on a computer


_LIMITS = PortfolioTuning()


@dataclass(frozen=True)
class TableFacts:
    """What candidates are made from beside their settings."""

    task: str
    n_rows: int
    n_entries: int  # rows times encoded columns
    deviation: float  # of a quantity; 1 for classes
    seed: int
    class_weight: Any = None
    family: str = "auto"
    natural_family: str = "gaussian"  # of the linear model of a quantity
    reading: Mapping[str, Any] = field(default_factory=dict)  # how columns are read, as a table model takes it
    whole_rows: int = 0  # of the table that the chosen model is fitted to, where models are compared on fewer
    streamed_rows: int = 0  # of the table that the chosen model is fitted to block by block; 0 where it is in memory

    @classmethod
    def of(cls, data: LabelledTable, seed: int, class_weight: Any = None, family: str = "auto") -> TableFacts:
        """The facts of labelled rows."""
        deviation = 1.0 if data.choice.task == "classification" else float(np.std(data.y)) or 1.0
        natural = family if family != "auto" else "gaussian"
        if data.choice.task == "regression" and family == "auto":
            natural = choose_family(data.y, data.weights).family
        entries = len(data.y) * sum(len(column.features) for column in data.columns)
        return cls(
            data.choice.task, len(data.y), entries, deviation, seed, class_weight, family, natural, data.reading
        )


@dataclass(frozen=True)
class ModelKind:
    """A kind of model: how one is made of settings, and which settings are tried."""

    words: str
    classifier: Callable[..., Any] | None = None  # (facts, **settings) -> estimator
    regressor: Callable[..., Any] | None = None
    variants: tuple[Settings, ...] = ()
    most_rows: float = np.inf
    in_blocks: Literal["no", "codes", "yes"] = "no"  # whether rows may be read block by block; trees hold their codes
    loop: PlainFirst | None = None  # that takes long to compile, the first time on a computer
    quick: Settings | None = None  # tried where there is no time for the default ones
    most_fitted: float = np.inf  # rows of the table that it is fitted to if it is chosen

    def compiling_seconds(self, entries: int) -> float:
        """How long the next fit to a table of so many entries may have to wait for a compiler."""
        loop = self.loop
        if loop is None or loop.is_compiled():
            return 0.0
        plain = loop.suffices(entries) and loop.spent < loop.tuning.seconds / 2
        return 0.0 if plain else _LIMITS.compiling_seconds


def build(name: str, settings: Settings, facts: TableFacts) -> TableModel:
    """The table model that a candidate stands for, not fitted."""
    kind = KINDS[name]
    if facts.task == "classification":
        if name == "linear":
            return TableClassifier(class_weight=facts.class_weight, **facts.reading, **settings)
        assert kind.classifier is not None
        estimator = kind.classifier(facts, **settings)
        if facts.class_weight is not None:
            estimator.set_params(class_weight=facts.class_weight)
        return TableClassifier(**facts.reading, estimator=estimator)
    if name == "linear":
        return TableRegressor(family=facts.family, **facts.reading, **settings)
    if name == "least_squares":
        return TableRegressor(family="gaussian", **facts.reading, **settings)
    assert kind.regressor is not None
    return TableRegressor(**facts.reading, estimator=kind.regressor(facts, **settings))


def suits(name: str, facts: TableFacts) -> str:
    """Why a kind of model is not tried on such a table; empty where it is."""
    kind, classes = KINDS[name], facts.task == "classification"
    if name == "linear":
        return ""
    if (kind.classifier if classes else kind.regressor) is None:
        return f"not for {facts.task}"
    if name == "least_squares" and facts.natural_family == "gaussian":
        return "not for amounts whose linear model is by least squares already"
    if facts.n_rows > kind.most_rows:
        return f"{facts.n_rows:,} rows are more than the {kind.most_rows:,.0f} up to which it is tried"
    if facts.whole_rows > kind.most_fitted:
        known = f"{kind.most_fitted:,.0f} up to which it is tried, as its trees grow with the rows"
        return f"{facts.whole_rows:,} rows are more than the {known}"
    if facts.streamed_rows and not _fits_in_blocks(kind, facts):
        return "it would hold all rows in memory"
    if classes and facts.class_weight is not None and name == "naive_bayes":
        return "it takes no class weights"
    return ""


def _fits_in_blocks(kind: ModelKind, facts: TableFacts) -> bool:
    held = facts.streamed_rows * (facts.n_entries / max(facts.n_rows, 1) + _LIMITS.row_bytes)
    return kind.in_blocks == "yes" or (kind.in_blocks == "codes" and held <= _LIMITS.streamed_bytes)


def variants_of(name: str, facts: TableFacts) -> tuple[Settings, ...]:
    """Further settings of a kind of model, in the order in which they are tried."""
    if name in ("linear", "least_squares") and facts.task == "regression":
        return tuple({"alpha": alpha} for alpha in (0.1, 10.0, 100.0))
    return KINDS[name].variants or (_boosting_variants(facts.seed) if name == "boosting" else ())


def _boosting_variants(seed: int, tuning: PortfolioTuning = PortfolioTuning()) -> tuple[Settings, ...]:
    """Settings drawn at random: tuned boosting is hard to beat, and a grid of six settings is too large."""
    rng = check_random_state(seed)
    choices: dict[str, list[Any]] = {
        "learning_rate": [0.02, 0.05, 0.1, 0.2],
        "max_iter": [100, 200, 400],
        "max_leaf_nodes": [4, 8, 16, 31, 63],
        "min_samples_leaf": [5, 10, 20, 50],
        "l2_regularization": [0.0, 1.0, 10.0],
        "max_features": [0.5, 1.0],
    }
    return tuple(
        {name: values[rng.randint(len(values))] for name, values in choices.items()}
        for _ in range(tuning.drawn_settings)
    )


def _boosting_classifier(facts: TableFacts, **settings: Any) -> Any:
    return HistGradientBoostingClassifier(random_state=facts.seed, **settings)


def _boosting_regressor(facts: TableFacts, **settings: Any) -> Any:
    return HistGradientBoostingRegressor(random_state=facts.seed, **settings)


def _forest_classifier(facts: TableFacts, extra: bool = False, **settings: Any) -> Any:
    return (ExtraTreesClassifier if extra else RandomForestClassifier)(random_state=facts.seed, **settings)


def _forest_regressor(facts: TableFacts, extra: bool = False, **settings: Any) -> Any:
    return (ExtraTreesRegressor if extra else RandomForestRegressor)(random_state=facts.seed, **settings)


def _network(facts: TableFacts, **settings: Any) -> Any:
    settings = {"hidden_layer_sizes": [64], "early_stopping": facts.n_rows >= 1000, **settings}
    settings["hidden_layer_sizes"] = tuple(settings["hidden_layer_sizes"])
    return MLPClassifier(random_state=facts.seed, **settings)


def _kernel_regressor(facts: TableFacts, C: float = 1.0, epsilon: float = 0.1) -> Any:
    return SVR(C=C * facts.deviation, epsilon=epsilon * facts.deviation)


def _linear_machine_regressor(facts: TableFacts, C: float = 1.0) -> Any:
    return LinearSVR(C=C * facts.deviation)


_STRENGTHS = tuple({"C": C} for C in (0.1, 10.0, 0.01, 100.0))

# By what they cost, as they are tried.
RUN_ORDER = (
    "linear", "least_squares", "naive_bayes", "linear_svm", "kernel_svm", "boosting", "forest", "additive", "network",
)  # fmt: skip
# From the simplest on: of models that are as good, the first is taken.
KINDS: dict[str, ModelKind] = {
    "linear": ModelKind("linear model", variants=_STRENGTHS, in_blocks="yes"),
    "least_squares": ModelKind("least squares", regressor=TableRegressor, in_blocks="yes"),
    "naive_bayes": ModelKind("naive Bayes", lambda facts: NaiveBayes("auto"), in_blocks="yes"),
    "linear_svm": ModelKind(
        "linear SVM", lambda facts, **s: LinearSVC(**s), _linear_machine_regressor, _STRENGTHS,
        _LIMITS.linear_machine_rows, "yes",
    ),
    "additive": ModelKind(
        "additive model", lambda facts, **s: AdditiveClassifier(max_iter=_LIMITS.additive_passes, **s),
        lambda facts, **s: AdditiveRegressor(max_iter=_LIMITS.additive_passes, **s),
        ({"max_bins": 32},), _LIMITS.additive_rows,
    ),
    "kernel_svm": ModelKind(
        "kernel SVM", lambda facts, **s: SVC(**s), _kernel_regressor, _STRENGTHS, _LIMITS.kernel_rows
    ),
    "forest": ModelKind(
        "random forest", _forest_classifier, _forest_regressor,
        (
            {"max_features": 0.5}, {"extra": True}, {"min_samples_leaf": 3, "max_features": 0.5},
            {"extra": True, "max_features": 0.5, "min_samples_leaf": 2}, {"min_samples_leaf": 5},
        ),
        most_fitted=_LIMITS.forest_rows, in_blocks="codes", loop=FOREST_TREES,
    ),
    "network": ModelKind(
        "neural network", _network, None,
        ({"alpha": 0.1}, {"alpha": 1.0}, {"hidden_layer_sizes": [64, 64]}, {"learning_rate_init": 0.01}),
        _LIMITS.network_rows,
    ),
    "boosting": ModelKind(
        "gradient boosting", _boosting_classifier, _boosting_regressor, in_blocks="codes", loop=BOOSTED_TREES,
        quick={"max_iter": 30, "learning_rate": 0.3},
    ),
}  # fmt: skip
