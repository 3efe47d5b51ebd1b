"""Mixtures of any exponential family, column by column, by EM and certified.

    max over π, θ of   Σᵢ wᵢ log Σ_k π_k Π_j p_j(xᵢⱼ | θ_kj) / Σ wᵢ - s/Σ wᵢ Σ_kj KL(imagined rows || θ_kj)

Columns are independent within a component; a missing entry leaves its column out of a row's likelihood, exactly. The
penalty is that of s imagined rows in every component, which are like all rows (`mixture.families.products`).
References: Lazarsfeld & Henry, Latent structure analysis (1968); Dempster, Laird & Rubin (1977), see `mixture.em`;
McLachlan & Peel, Finite mixture models (2000).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.mixture.column_survey import dense_rows
from certifit.core import Attributes, Solution
from certifit.core.settings import Setting, Settings
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.families.column_families import column_families, family_name, only_counts
from certifit.mixture.base import MixtureModel
from certifit.mixture.em import EMPoint, MixtureEM, MixtureParameters
from certifit.mixture.families.columns import learn_imagined_rows, with_checked_entries
from certifit.mixture.families.products import ImaginedRows, ProductComponents
from certifit.mixture.families.sufficient_statistics import LARGEST, group_columns
from certifit.mixture.families.tuning import FamilyMixtureTuning
from certifit.mixture.starting_groups import STARTING_GROUPS
from certifit.rows import Array, ArrayRows, Rows


class Mixture(MixtureModel):
    """A mixture whose components give every column a member of its family; entries may be missing (NaN).

    Where all columns are of counts, sparse matrices are taken too, and filled in block by block.

    Parameters
    ----------
    family : a family, a list with one for each column, or a dict by column name or number
        A family is 'gaussian', 'bernoulli', 'categorical', 'poisson', 'geometric', 'exponential', 'gamma',
        'inverse_gaussian' or 'beta', a class of `certifit.families`, or one of its members where parameters are known
        (Binomial(0.5, n=10) stands for all binomials of 10 trials). Categories are class numbers 0, 1, …
    n_components : int, default=2
    smoothing : float, default=1.0
        Imagined rows in every component, which are like all rows: the objective is the mean log-likelihood less
        smoothing times the mean divergence of the components from all rows. 0 is maximum likelihood, but for columns
        that are not counts, which keep 1e-6: without any, their likelihood has no maximum.
    tol : float, default=1e-6
        Stop when one more EM step promises to raise the objective by at most this, in nats a row.
    max_iter : int, default=1000
        Most EM steps from each start.
    n_init : int, default=1
        Number of starts, of which the best result is kept.
    init_params : 'kmeans', 'k-means++', 'random', 'random_from_data' or 'hierarchical', default='kmeans'
        Where to start: groups of a sample's rows, as in GaussianMixture, by their statistics.
    parameters_init : array (k, p) or None
        Start from these `parameters_` and equal weights instead.
    max_time : float or None, default=None
        Seconds after which the best mixture so far is returned.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_ : (k,)
    parameters_ : (k, p) the parameters of all columns side by side
    parameter_names_ : (p,) column and parameter, 'visits rate' for instance
    families_ : (d,) names of the families
    prior_ : dict of what the imagined rows are, and of the units that Gaussian columns are measured in
    converged_ : bool (diagnostic)
    n_iter_ : int (diagnostic)
    lower_bound_, lower_bounds_ : the objective reached, and at all steps, nats a row
    loglikelihood_ : Σ w log p(x)
    em_trace_ : structured array of iteration, loglik, bound and kl, per row and less the penalty: loglik = bound + kl
    history_ : tuple of Mark, the (negative) objective and the gain still promised at each step (diagnostic)
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Mixture
    >>> X = [[0, 9.1], [1, 8.0], [0, np.nan], [6, 0.2], [4, 0.1], [7, 0.4], [5, 0.3]]
    >>> model = Mixture(["poisson", "exponential"], smoothing=0.1, random_state=0).fit(X)
    >>> model.predict(X).tolist(), model.certificate_.holds
    ([1, 1, 1, 0, 0, 0, 0], True)
    >>> model.parameter_names_.tolist(), model.parameters_.round(2).tolist()
    (['0 rate', '1 rate'], [[5.43, 3.15], [0.42, 0.12]])
    """

    settings: ClassVar[Settings] = {
        **MixtureModel.settings,
        "smoothing": Setting(float, least=0, below=math.inf),
    }
    _tuning: ClassVar[FamilyMixtureTuning] = FamilyMixtureTuning()

    def __init__(
        self,
        family="gaussian",
        n_components=2,
        *,
        smoothing=1.0,
        tol=1e-6,
        max_iter=1000,
        n_init=1,
        init_params="kmeans",
        parameters_init=None,
        max_time=None,
        random_state=None,
    ):
        self.family = family
        self.n_components = n_components
        self.smoothing = smoothing
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.parameters_init = parameters_init
        self.max_time = max_time
        self.random_state = random_state

    # ---------------------------------------------------------------------------------------------- fit
    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        self._check_rows(rows)
        rows = dense_rows(rows)
        templates = column_families(self.family, rows.n_features, self._names)
        prior = learn_imagined_rows(templates, rows, float(self.smoothing), self._tuning)
        single, rng = prior.single_component, check_random_state(self.random_state)
        if self.parameters_init is None:
            start = partial(self._from_groups, single, _sample(rows, len(single.column_of), self._tuning), rng)
        else:
            start = partial(self._from_given, single)
        names = self._names
        found, em = self._run_em(rows, start, lambda point: _attributes(point.mixture, names))
        return self._result(rows, self._with_stored_parameters(found, em), em)

    def _with_stored_parameters(self, found: Solution[EMPoint], em: MixtureEM) -> Solution[EMPoint]:
        """Return the result with its parameters rounded as the public attribute holds them.

        Gaussian columns are measured about their medians. Very far from 0 a mean in the units of the data is rounded
        so much that the likelihood changes: only then is the rounded mixture measured again.
        """
        at, close = found.params.mixture, self._tuning.rounding
        own: ProductComponents = at.components
        stored = own.with_public(own.public())
        if all(np.allclose(a, b, rtol=close, atol=close) for a, b in zip(own.theta, stored.theta, strict=True)):
            return found
        point = EMPoint(MixtureParameters(at.weights, stored))
        step = em.update(point, em.measure(point))
        em.trace[-2:] = em.trace[-1:]
        return replace(found, params=point, objective=step.objective, gain=step.gain)

    def _result(self, rows: Rows, found: Solution[EMPoint], em: MixtureEM) -> Attributes:
        at = found.params.mixture
        counts = all(group.template.support.discrete for group in at.components.groups)
        least = 0.0 if counts else np.nan  # probabilities are at most 1, densities are not: no bound is known
        advice = "Ask for fewer components, or start elsewhere."
        more = self._fit_report(rows, found, em, lambda _: least, degenerate_components(at), advice)
        return {**_attributes(at, self._names), **more}

    def _from_groups(
        self, single: ProductComponents, sample: ArrayRows, rng: np.random.RandomState
    ) -> MixtureParameters:
        """Return the likeliest components given groups of the sample's rows, found by their statistics."""
        batch = single.read_rows(sample.X)
        k, w, tuning = self.n_components, sample.w, self._tuning
        here = np.ones(batch.F.shape, bool) if batch.here is None else batch.here[:, single.column_of]
        n = np.maximum(w @ here, np.finfo(float).tiny)
        away = np.where(here, batch.F - w @ batch.F / n, 0.0)
        with np.errstate(over="ignore"):  # a statistic that spreads beyond bounds tells no groups apart
            spread = np.sqrt(w @ away**2 / n)
        Z = np.clip(np.divide(away, spread, out=np.zeros_like(away), where=spread > 0), -tuning.reach, tuning.reach)
        label = STARTING_GROUPS[self.init_params](ArrayRows(Z, None, w), k, rng, tuning)
        R = w * (tuning.shared / k + (1 - tuning.shared) * (np.arange(k)[:, None] == label))
        n = R.sum(axis=1)
        sums = single.weighted_sums(batch, R)[1]
        return MixtureParameters(n / n.sum(), single.repeated(k).maximise(sums, n)[0])

    def _from_given(self, single: ProductComponents) -> MixtureParameters:
        """Return equal weights and the components with `parameters_init`."""
        given = np.array(self.parameters_init, dtype=np.float64)
        k, p = self.n_components, len(single.parameters)
        if given.shape != (k, p) or not np.isfinite(given).all():
            raise DataError(got=f"parameters_init of shape {given.shape}", wanted=f"finite numbers of shape {(k, p)}")
        own = single.with_public(given)
        own.members()  # refuses parameters that no member of a family has
        return MixtureParameters(np.full(k, 1 / k), own)

    # ---------------------------------------------------------------------------------------------- use
    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether sparse rows are taken: only where all columns are counts, which may be mostly zeros."""
        return only_counts(self.family)

    @property
    def _names(self) -> list[str]:
        return list(getattr(self, "feature_names_in_", ()))

    def _at(self) -> MixtureParameters:
        check_is_fitted(self)
        prior = self.prior_
        templates = column_families(self.family, self.n_features_in_, self._names)
        groups = group_columns(templates, prior["sizes"], prior["shift"], prior["scale"])
        tau = tuple(np.split(prior["statistics"], np.cumsum([len(group.position) for group in groups])[:-1]))
        own = ProductComponents((), ImaginedRows(groups, prior["rows"], prior["strength"], tau, self._tuning))
        return MixtureParameters(self.weights_, own.with_public(self.parameters_))

    def _rows(self, *data: Any, **terms: Any) -> Rows:
        return dense_rows(super()._rows(*data, **terms))

    def _per_row(self, X: Any, f: Any) -> Array:
        rows, at = self._rows(X), self._at()
        supports = [member.support for member in at.components.members()[0]]
        return rows.map(partial(with_checked_entries, supports, rows.names, partial(f, at)))

    def score_samples(self, X: Any) -> Array:
        """Return the log-likelihood of each row's observed entries (n,): -inf where no component can have them."""
        found = super().score_samples(X)
        return np.where(found < -LARGEST / 2, -np.inf, found)

    def n_parameters(self) -> int:
        """Return the number of free parameters."""
        k = len(self.weights_)
        return k - 1 + k * sum(group.free for group in self._at().components.groups)

    def members(self) -> list[list[Family]]:
        """Return the components as members of `certifit.families`: for each a list with one for each column."""
        return self._at().components.members()

    def _draw(self, component: int, n: int, rng: np.random.RandomState) -> Array:
        return np.column_stack([member.sample(n, rng.randint(2**31)) for member in self.members()[component]])


def _attributes(at: MixtureParameters, names: list[str]) -> Attributes:
    own: ProductComponents = at.components
    label = names or [str(j) for j in range(own.d)]
    return {
        "weights_": at.weights,
        "parameters_": own.public(),
        "parameter_names_": np.array([f"{label[j]} {name}" for j, name in own.parameters], dtype=object),
        "families_": np.array([family_name(member) for member in own.members()[0]], dtype=object),
        "prior_": own.prior_attributes(),
    }


def _sample(rows: Rows, width: int, tuning: FamilyMixtureTuning) -> ArrayRows:
    """Return evenly spaced rows to find a start from, as many as fit into memory with `width` statistics each."""
    stride = -(-rows.n_rows // max(1, min(tuning.sample_rows, tuning.sample_statistics // width)))
    sample = rows.load() if stride == 1 else rows.thin(stride)
    some = np.flatnonzero((sample.w > 0) & ~np.isnan(sample.X).all(axis=1))
    if not len(some):
        raise DataError(
            got=f"no row with weight and an entry among every {stride}th row",
            wanted="such rows, to find a start from",
            fix="Drop the others, or give parameters_init.",
        )
    return sample.take(some)


def degenerate_components(at: MixtureParameters) -> dict[str, str]:
    """Name the components that have no rows of their own, or that are the same as another."""
    own: ProductComponents = at.components
    tuning = own.prior.tuning
    n, theta = at.weights * own.prior.rows, np.concatenate(own.theta, axis=1)
    out = {f"component {j}": f"has {n[j]:.2g} rows" for j in np.flatnonzero(n < tuning.fewest_rows)}
    some = np.flatnonzero(n >= tuning.fewest_rows)
    for i, a in enumerate(some):
        same = [str(b) for b in some[i + 1 :] if np.allclose(theta[a], theta[b], rtol=tuning.same, atol=1e-9)]
        if same:
            out[f"component {a}"] = f"is the same as {', '.join(same)}"
    return out
