r"""
Conformal prediction
====================

**Statement.** Let :math:`s_1, \dots, s_n` be errors :math:`|y - \hat y|` of calibration rows that the model has not
seen, and :math:`q` the :math:`k`-th smallest, :math:`k = \lceil (n + 1)(1 - \alpha) \rceil` (infinite if
:math:`k > n`). If a new row is exchangeable with them, :math:`\hat y \pm q` holds its target with a chance of at
least :math:`1 - \alpha`, and of exactly :math:`k / (n + 1)` without ties and with :math:`k \le n`: for any model and
any law of errors.

**Why.** The new row's error has each of the :math:`n + 1` ranks among all errors with the same chance; it is covered
if the rank is at most :math:`k`.

**Held by** ``tests/theory/atlas/test_atlas_new_rows.py``: ``test_conformal_intervals_cover`` (over splits of one
table, whose rows are exchangeable by construction) and ``test_k_of_all_ranks_are_covered`` (each row is new in turn).

**Control** ``test_control_fitted_scores_are_too_small``: calibration rows that the model was fitted to; and
``test_control_the_share_of_calibration_rows``: :math:`n` in place of :math:`n + 1`.
"""

from sklearn.datasets import load_diabetes

from certifit import ConformalRegressor, DecisionTreeRegressor
from certifit.plots import plot_coverage

X, y = load_diabetes(return_X_y=True)
old, new = slice(0, 342), slice(342, None)
tree = DecisionTreeRegressor(max_depth=5)
model = ConformalRegressor(tree, coverage=0.9, random_state=0).fit(X[old], y[old])
print(model.certificate_)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# A tree has small errors on the rows that it was fitted to, and an interval calibrated by them is too narrow. The
# picture has both, for a hundred patients that neither has seen; the line is each patient's own target.

seen = ConformalRegressor(tree.fit(X[old], y[old]), method="prefit", coverage=0.9).fit(X[old], y[old])
ends = {"rows left out": model.predict_interval(X[new]), "fitted rows (the control)": seen.predict_interval(X[new])}
plot_coverage(ends, y[new])
