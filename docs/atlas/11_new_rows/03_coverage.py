r"""
How often intervals hold the truth
==================================

**Statement.** An interval of 90 % holds what it estimates for at least 90 % of the samples that might have been
drawn. For the accuracy of a fitted model on :math:`n` independent test rows that is so for every :math:`n`: the
interval of Clopper and Pearson has all :math:`p` that the count of right rows does not refute in either tail.

**Why.** The count is binomial. The interval misses :math:`p` only for counts in a tail whose chance under :math:`p`
is at most 5 %, on either side: at most 10 % in all, whatever :math:`p` is.

**Held by** ``tests/theory/atlas/test_atlas_new_rows.py``: ``test_holdout_intervals_cover`` (measured) and
``test_exact_intervals_cover_for_every_truth`` (summed over all counts).

**Control** ``test_control_intervals_of_fitted_rows_miss``: the same interval from rows that were fitted; and
``test_control_the_normal_interval_covers_too_rarely``: :math:`\hat p \pm 1.645 \sqrt{\hat p (1 - \hat p) / n}`.
"""

import numpy as np

from certifit import DecisionTreeClassifier, assess, load_penguins
from certifit.plots import plot_coverage

penguins = load_penguins().dropna()
X = penguins[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].to_numpy()
y, tree = penguins["sex"].to_numpy(), DecisionTreeClassifier()
ends, truth, naive = [], [], []
for seed in range(40):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(y), 100)  # a sample of the birds, which are all of them
    drawn = X[rows] + 1e-6 * rng.normal(size=(100, 4))  # measured anew: a bird drawn twice is no copy of a row
    found = assess(tree, drawn, y[rows], method="holdout", test_size=0.5, confidence=0.9, random_state=seed)
    fitted, _ = found.plan.splits[0]
    truth.append(tree.fit(drawn[fitted], y[rows[fitted]]).score(X, y))
    ends.append([found.claims[0].low, found.claims[0].high])
    naive.append([0.05 ** (1 / len(fitted)), 1.0])  # Clopper and Pearson's, where all rows that count are right

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Both kinds are drawn: from rows left out, and from the rows that the tree was fitted to, which it all has right.

plot_coverage({"rows left out": ends, "fitted rows (the control)": naive}, truth)
