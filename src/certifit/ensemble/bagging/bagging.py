"""Bagging: any estimator, fitted to many bootstrap samples of the rows; the mean of what these members say.

Averaging lowers the variance of a learner that changes much from sample to sample, and leaves its bias as it is. The
rows that a member has not drawn tell how well it does on new ones. A member that takes `sample_weight` is told how
often each row was drawn; to another, rows are repeated. Rows are drawn in proportion to their weights, in the order
of their contents: a row of weight 2 is exactly a row twice.
References: Breiman, Bagging predictors (1996); Louppe & Geurts, Ensembles on random patches (2012).
"""

from __future__ import annotations

import inspect
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.ensemble.bagging.adapter import BagTuning, certify_bag, fit_member
from certifit.checkers.ensemble.bagging.answers import member_answers, unseen_answers
from certifit.checkers.ensemble.bagging.samples import SamplePlan, sample_plan
from certifit.checkers.ensemble.forest.out_of_bag import summarise
from certifit.checkers.ensemble.forest.plain_bootstrap import mixed
from certifit.core import Attributes, Estimator, Objective, Setting, certified
from certifit.core.config import carrying_choice
from certifit.core.settings import Settings
from certifit.ensemble.earlier_fit import earlier_fit
from certifit.ensemble.forest.bootstrap import Bootstrap
from certifit.exceptions import DataError, warn_caller
from certifit.rows import Array, Block, Rows, encode_labels
from certifit.rows.kept_passes import kept
from certifit.tree.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor


def _is_share(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and 0 < float(value) <= 1


def _base_has(name: str) -> Any:
    return lambda self: hasattr(self.estimators_[0] if hasattr(self, "estimators_") else self._base(), name)


class Bagging(Estimator):
    """What bags of classifiers and of regressors share."""

    settings: ClassVar[Settings] = {
        "n_estimators": Setting(int, least=1),
        "max_samples": Setting(int, least=1, none=True, other=_is_share, other_words="a share of the rows up to 1.0"),
        "max_features": Setting(int, least=1, other=_is_share, other_words="a share of the columns up to 1.0"),
        "bootstrap": Setting(bool),
        "bootstrap_features": Setting(bool),
        "oob_score": Setting(bool),
        "warm_start": Setting(bool),
    }
    ignored: ClassVar[tuple[str, ...]] = ("verbose",)
    differences: ClassVar[dict[str, str]] = {
        "oob_score": "Rows that every member has drawn are left out, NaN in the answers.",
        "get_metadata_routing": "Parameters other than sample_weight are not passed on to members.",
        "fit(sample_weight)": "Rows are drawn in proportion to their weights: a row of weight 2 is a row twice.",
    }

    estimators_: list[Any]
    seeds_: Array
    draw_order_: Array
    draw_weight_: Array

    def __init__(
        self, estimator=None, n_estimators=10, *, max_samples=None, max_features=1.0, bootstrap=True,
        bootstrap_features=False, oob_score=False, warm_start=False, n_jobs=None, random_state=None, verbose=0,
    ):  # fmt: skip
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _base(self) -> Any:
        """The estimator to be fitted many times."""
        raise NotImplementedError

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self._base()).input_tags.sparse)

    @property
    def missing(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self._base()).input_tags.allow_nan)

    def _check_settings(self) -> None:
        super()._check_settings()
        if not (hasattr(self._base(), "fit") and hasattr(self._base(), "get_params")):
            raise DataError(got=f"estimator={self._base()!r}", wanted="an estimator, or None for a decision tree")
        if self.oob_score and not self.bootstrap:
            raise DataError(
                got="oob_score without bootstrap", wanted="bootstrap=True",
                fix="Out of bag estimation only available if bootstrap=True",
            )  # fmt: skip
        if self.oob_score and self.warm_start:
            raise DataError(
                got="oob_score with warm_start", wanted="one of the two",
                fix="Out of bag estimate only available if warm_start=False",
            )  # fmt: skip

    # Fitting --------------------------------------------------------------------------------------------------

    def _fit_members(self, rows: Rows, found: Attributes, previous: Attributes) -> Attributes:
        """All fitted attributes, from rows whose y are class numbers or amounts."""
        previous = earlier_fit(self, previous, rows.n_features, found.get("classes_"))
        data = rows.load()
        y, w = np.asarray(data.y), data.w
        plan = sample_plan(self, w, rows.n_features)
        if plan.columns > rows.n_features:
            raise DataError(
                got=f"max_features={self.max_features} for {rows.n_features} columns", wanted="at most so many",
                fix="max_features must be <= n_features",
            )  # fmt: skip
        if not self.bootstrap and plan.rows > (w > 0).sum():
            raise DataError(
                got=f"max_samples={self.max_samples} for {(w > 0).sum()} rows", wanted="at most so many",
                fix="max_samples must be <= n_samples to be able to sample without replacement.",
            )  # fmt: skip
        order = Bootstrap.of(rows, w, plan.rows).order
        before = list(previous.get("estimators_", []))
        self._check_more(len(before))
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        seeds[: len(before)] = previous["seeds_"] if before else 0
        fit_one = partial(self._fit_one, plan, order, data.X, y, w)
        if self.n_jobs in (None, 1):
            more = [kept(("member", int(seed)), partial(fit_one, int(seed))) for seed in seeds[len(before) :]]
        else:
            job = delayed(carrying_choice(fit_one))
            more = Parallel(n_jobs=self.n_jobs)(job(int(seed)) for seed in seeds[len(before) :])
        fitted: dict[str, Any] = {
            **found, "estimators_": [*before, *more], "seeds_": seeds.astype(np.int64), "draw_order_": order,
            "draw_weight_": w,
        }  # fmt: skip
        if self.oob_score:
            fitted.update(self._out_of_bag(plan, fitted, data))
        known = SimpleNamespace(**self.get_params(deep=False), **fitted)
        # Members that were fitted just now are fitted again by an audit only; earlier ones may know other rows.
        certificate = certified(certify_bag, known, rows, 1e-4, BagTuning(refit=bool(before)))
        return {**fitted, "certificate_": certificate}

    def _check_more(self, there: int) -> None:
        """Refuse fewer members than were fitted before."""
        if there > self.n_estimators:
            raise DataError(
                got=f"n_estimators={self.n_estimators} with {there} members fitted before",
                wanted="at least as many with warm_start=True",
                fix=f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={there} when "
                "warm_start==True",
            )
        if there == self.n_estimators:
            warn_caller("Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning)

    def _fit_one(self, plan: SamplePlan, order: Array, X: Any, y: Array, w: Array, seed: int) -> Any:
        """A copy of the estimator, fitted to the sample that a seed draws."""
        member = _seeded(clone(self._base()), seed)
        drawn = plan.row_weights(seed, order, w)
        if "sample_weight" not in _fit_parameters(member) and not (drawn == np.rint(drawn)).all():
            raise DataError(
                got=f"weights that are not whole, and a {type(member).__name__} whose fit takes no sample_weight",
                wanted="an estimator that takes sample_weight, or bootstrap=True",
                fix="With bootstrap=True rows are drawn in proportion to their weights, and repeated.",
            )
        try:
            return fit_member(member, X[:, plan.columns_of(seed)], y, drawn, only_drawn=True)
        except ValueError as error:
            there, known = np.unique(y[drawn > 0]), np.unique(y[w > 0])
            if self.target != "classes" or len(there) == len(known):
                raise
            raise DataError(
                got=f"a sample with {len(there)} of {len(known)} classes, which {type(member).__name__} refuses",
                wanted="an estimator that takes samples without some of the classes, or every class in each sample",
                fix=f"{error} Draw more rows (max_samples), give rare classes more weight, or take a decision tree.",
            ) from error

    def _out_of_bag(self, plan: SamplePlan, fitted: Attributes, data: Any) -> Attributes:
        members = (
            (m, plan.columns_of(int(s)), plan.row_weights(int(s), fitted["draw_order_"], data.w))
            for m, s in zip(fitted["estimators_"], fitted["seeds_"], strict=True)
        )
        k = len(fitted.get("classes_", ()))
        answers = unseen_answers(members, data.X, k, data.w)
        found = summarise(answers, np.asarray(data.y), data.w, k)
        return {
            "oob_decision_function_" if k else "oob_prediction_": answers if k else answers[:, 0],
            "oob_score_": found.score,
            "oob_interval_": np.array([found.low, found.high]),
        }

    # What a fitted bag says --------------------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The estimator of which the members are copies."""
        check_is_fitted(self)
        return self._base()

    @property
    def estimators_features_(self) -> list[Array]:
        """The columns that each member is shown."""
        check_is_fitted(self)
        plan = sample_plan(self, self.draw_weight_, self.n_features_in_)
        return [plan.columns_of(int(seed)) for seed in self.seeds_]

    @property
    def estimators_samples_(self) -> list[Array]:
        """The rows that each member has drawn, each as often as it was."""
        check_is_fitted(self)
        plan = sample_plan(self, self.draw_weight_, self.n_features_in_)
        drawn = [plan.row_weights(int(seed), self.draw_order_, self.draw_weight_) for seed in self.seeds_]
        if not self.bootstrap:
            return [np.flatnonzero(d) for d in drawn]
        return [np.repeat(np.arange(len(d)), d.astype(np.int64)) for d in drawn]

    def _answers(self, classes: int, columns: list[Array], block: Block) -> Array:
        """The mean of what the members say (n, k)."""
        pairs = zip(self.estimators_, columns, strict=True)
        total = sum(member_answers(member, block.X[:, chosen], classes) for member, chosen in pairs)
        return np.asarray(total / len(self.estimators_))

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, i: int) -> Any:
        return self.estimators_[i]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.allow_nan = self.sparse, self.missing
        return tags


def _fit_parameters(member: Any) -> Any:
    return inspect.signature(member.fit).parameters


def _seeded(member: Any, seed: int) -> Any:
    """Give every random_state inside an estimator a number of its own."""
    names = sorted(name for name in member.get_params() if name == "random_state" or name.endswith("__random_state"))
    numbers = mixed(np.uint64(seed), np.arange(len(names))) >> np.uint64(33)
    return member.set_params(**{name: int(number) for name, number in zip(names, numbers, strict=True)})


class BaggingClassifier(ClassifierMixin, Bagging):
    """A bag of classifiers: the mean of their probabilities, or of their votes.

    Parameters
    ----------
    estimator : classifier or pipeline, or None for a DecisionTreeClassifier
    n_estimators : int
        The number of members.
    max_samples : int, float for a share, or None
        Rows that each member draws; as many as there are if None. A row of whole weight w counts as w rows.
    max_features : int, or float for a share
        Columns that each member is shown.
    bootstrap, bootstrap_features : bool
        Whether rows, and columns, are drawn with replacement.
    oob_score : bool
        Whether each row is answered by the members that have not drawn it.
    warm_start : bool
        Whether `fit` adds members to those that are there.
    n_jobs : int or None
        Processes that fit members, as in joblib; the members are the same for any number.
    random_state : int, RandomState or None
    verbose : not used

    Attributes
    ----------
    estimators_ : list of fitted members; they know classes by number
    seeds_ : (n_estimators,) what decides each member's sample
    estimators_features_, estimators_samples_ : lists of arrays (computed when asked for)
    estimator_ : the estimator of which the members are copies
    classes_ : (k,)
    n_classes_ : int
    draw_order_, draw_weight_ : (n,) the order in which rows stand for the bootstrap, and their weights in it
    oob_score_ : float, accuracy of the out-of-bag answers (with oob_score)
    oob_interval_ : (2,) where the accuracy on new rows lies with 95 % confidence (with oob_score)
    oob_decision_function_ : (n, k) out-of-bag answers (with oob_score)
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from certifit import BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BaggingClassifier(KNeighborsClassifier(), oob_score=True, random_state=0).fit(X, y)
    >>> bool(model.oob_score_ > 0.9), model.predict(X[:2])
    (True, array([0, 0]))
    >>> model.certificate_.kind, model.certificate_.holds
    ('statistical', True)
    """

    target = "classes"
    differences: ClassVar[dict[str, str]] = {
        **Bagging.differences,
    }

    classes_: Array

    def _base(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows, fewest=1)
        return self._fit_members(labels.rows, {"classes_": labels.classes}, previous)

    @property
    def n_classes_(self) -> int:
        check_is_fitted(self)
        return len(self.classes_)

    def predict_proba(self, X: Any) -> Array:
        """The mean of the members' probabilities, or the shares of their votes (n, k)."""
        rows = self._rows(X)
        return rows.map(partial(self._answers, len(self.classes_), self.estimators_features_))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The class with the largest mean probability (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    @available_if(_base_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """The mean of the members' scores."""
        rows = self._rows(X)
        return rows.map(partial(self._scores, self.estimators_features_))

    def _scores(self, columns: list[Array], block: Block) -> Array:
        pairs = zip(self.estimators_, columns, strict=True)
        return np.asarray(sum(m.decision_function(block.X[:, c]) for m, c in pairs) / len(self.estimators_))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The share of these rows whose class is not predicted."""
        rows = self._rows(X, y, sample_weight, "classes")
        data = encode_labels(rows, self.classes_).rows.load()
        wrong = self._answers(len(self.classes_), self.estimators_features_, Block(data.X, None, data.w, 0))
        total = float(np.average(wrong.argmax(axis=1) != data.y, weights=data.w))
        return Objective(total, total, 0.0)


class BaggingRegressor(RegressorMixin, Bagging):
    """A bag of regressors: the mean of what they predict.

    Parameters
    ----------
    estimator : regressor or pipeline, or None for a DecisionTreeRegressor
    n_estimators, max_samples, max_features, bootstrap, bootstrap_features : as in BaggingClassifier
    oob_score, warm_start, n_jobs, random_state, verbose : as in BaggingClassifier

    Attributes
    ----------
    estimators_, seeds_, estimators_features_, estimators_samples_, estimator_ : as in BaggingClassifier
    draw_order_, draw_weight_ : as in BaggingClassifier
    oob_score_ : float, R² of the out-of-bag answers (with oob_score)
    oob_interval_ : (2,) where R² on new rows lies with 95 % confidence (with oob_score)
    oob_prediction_ : (n,) out-of-bag answers (with oob_score)
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import BaggingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> BaggingRegressor(random_state=0).fit(X, y).certificate_.holds
    True
    """

    target = "numbers"
    differences: ClassVar[dict[str, str]] = {
        **Bagging.differences,
    }

    def _base(self) -> Any:
        return DecisionTreeRegressor() if self.estimator is None else self.estimator

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        return self._fit_members(rows, {}, previous)

    def _means(self, columns: list[Array], block: Block) -> Array:
        return self._answers(0, columns, block)[:, 0]

    def predict(self, X: Any) -> Array:
        """The mean of what the members predict (n,)."""
        rows = self._rows(X)
        return rows.map(partial(self._means, self.estimators_features_))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean squared error on these rows."""
        data = self._rows(X, y, sample_weight, "numbers").load()
        found = self._means(self.estimators_features_, Block(data.X, None, data.w, 0))
        total = float(np.average((found - data.y) ** 2, weights=data.w))
        return Objective(total, total, 0.0)
