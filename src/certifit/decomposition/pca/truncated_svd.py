"""The best rank-k approximation of a table, certified. It is PCA without centring.

    min over X̃ of rank k of  Σ wᵢ |xᵢ - x̃ᵢ|²,   reached by  x̃ = Bᵀ B x,  B (k, d) the leading right singular vectors

Reference: Eckart & Young, "The approximation of one matrix by another of lower rank" (1936).
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.decomposition import pca as certificates
from certifit.checkers.decomposition.captured_variance import PCACheckTuning
from certifit.core import Attributes, Estimator, Objective, certified
from certifit.core.settings import TOL, Setting, Settings
from certifit.decomposition.pca.linear_codes import LinearCodes, check_codes, code_squares, encode, error_sums
from certifit.decomposition.pca.principal_axes import SOLVERS, AxesWanted, PCATuning, complete, decompose
from certifit.exceptions import DataError
from certifit.numerics.covariance import column_moments
from certifit.rows import Array, Rows


class TruncatedSVD(LinearCodes, Estimator):
    """Leading singular vectors of a table that is not centred, for counts and other sparse rows.

    Parameters
    ----------
    n_components : int, default=2
    algorithm : 'auto', 'full', 'covariance_eigh', 'gram', 'arpack', 'randomized' or 'power'
        As `svd_solver` of PCA.
    tol : float, default=1e-9
        Most that another approximation could lower the mean squared error, relative to that error.
    random_state : int, RandomState or None
        Seed of the random start of iterative algorithms.
    n_iter, n_oversamples, power_iteration_normalizer : ignored
        Algorithms iterate until `tol`; accepted so that scikit-learn code runs unchanged.

    Attributes
    ----------
    components_ : (k, d) right singular vectors
    singular_values_ : (k,)
    explained_variance_, explained_variance_ratio_ : (k,) variance of the codes, and as a share of the columns' sum
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import TruncatedSVD
    >>> X = np.outer([1.0, 2.0, 3.0], [3.0, 4.0])
    >>> TruncatedSVD(n_components=1).fit(X).singular_values_ ** 2
    array([350.])
    """

    sparse = True
    settings: ClassVar[Settings] = {
        "n_components": Setting(int, least=1),
        "tol": TOL,
        "algorithm": Setting(choices=SOLVERS),
    }
    ignored: ClassVar[tuple[str, ...]] = ("n_iter", "n_oversamples", "power_iteration_normalizer")
    differences: ClassVar[dict[str, str]] = {
        "algorithm": "'auto' is exact wherever a matrix of the smaller side fits in memory; 'randomized' iterates "
        "until tol is proved, not n_iter times. ARPACK too may be asked for as many components as columns.",
        "tol": "It is what every algorithm must prove, not ARPACK's own tolerance alone.",
        "components_": "Fitted attributes are float64 for float32 rows too; codes have the type of the rows.",
    }
    _tuning: ClassVar[PCATuning] = PCATuning()

    def __init__(
        self,
        n_components=2,
        *,
        algorithm="auto",
        tol=1e-9,
        random_state=None,
        n_iter=5,
        n_oversamples=10,
        power_iteration_normalizer="auto",
    ):
        self.n_components = n_components
        self.algorithm = algorithm
        self.tol = tol
        self.random_state = random_state
        self.n_iter = n_iter
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        k, most = self.n_components, rows.n_features
        if int(k) > most:
            raise DataError(
                got=f"n_components={k!r}", wanted=f"a whole number between 1 and the number of features, {most}"
            )
        seed = check_random_state(self.random_state).randint(2**31)
        wanted = AxesWanted(int(k), self.tol, seed, centred=False, tuning=self._tuning)
        axes = decompose(rows, self.algorithm, wanted)
        values, B = complete(axes.values, axes.vectors, int(k))
        columns = column_moments(rows)
        # From the values about zero, the mean's square would have to be subtracted, which cancels far from zero.
        variances = rows.sum(partial(code_squares, columns.mean, B)) / columns.weight
        sigma = np.sqrt(values * axes.weight)
        check = PCACheckTuning(largest_order=self._tuning.largest_order)
        return {
            "components_": B,
            "singular_values_": sigma,
            "explained_variance_": variances,
            "explained_variance_ratio_": variances / (columns.total or 1.0),
            "certificate_": certified(
                certificates.certify_svd,
                certificates.SVDClaim(B, sigma, variances, variances / (columns.total or 1.0)),
                self.tol,
                rows,
                self.algorithm,
                tuning=check,
            ),
        }

    def transform(self, X: Any) -> Array:
        """Return the codes z = B x, (n, k)."""
        return self._rows(X).map(partial(encode, np.zeros(self.n_features_in_), self.components_))

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows of codes, x = Bᵀ z."""
        check_is_fitted(self)
        return check_codes(X, len(self.components_)) @ self.components_

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared distance of rows to their approximation."""
        return -self.objective(X).total

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the mean squared distance of rows to their approximation, summed row by row."""
        rows = self._rows(X, sample_weight=sample_weight)
        sums = rows.sum(partial(error_sums, np.zeros(rows.n_features), self.components_))
        error = float(sums[0] / sums[1])
        return Objective(error, error, 0.0)
