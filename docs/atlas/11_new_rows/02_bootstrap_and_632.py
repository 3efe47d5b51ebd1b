r"""
The bootstrap and .632
======================

**Statement.** A sample drawn with replacement leaves each of :math:`n` rows out with the chance :math:`(1 - 1/n)^n
\to e^{-1} = 0.368`. The error of rows left out is too large, because models have seen only 63.2 % of the rows; that
of fitted rows is too small; the mean of both with the weights 0.632 and 0.368 is nearly right for models that do not
learn their rows by heart.

**Why.** Each of :math:`n` draws misses a row with the chance :math:`1 - 1/n`. The weights are the shares of new and
of seen rows in a draw: a heuristic (Efron 1983), not a theorem, and so the control shows where it is wrong.

**Held by** ``tests/theory/atlas/test_atlas_new_rows.py``: ``test_draws_leave_out_one_row_in_e`` and
``test_632_is_nearly_right``.

**Control** ``test_control_draws_without_replacement``; ``test_control_neither_part_alone_is_right``; and
``test_control_632_believes_a_model_that_learns_by_heart``: nearest neighbours of classes that no column tells.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier

from certifit import assess, load_penguins
from certifit.plots import plot_estimates

X, y = load_diabetes(return_X_y=True)
X = X[:, [2, 3, 6, 8]]
told = {"fitted rows": [], "rows left out": [], ".632": []}
right = []
for seed in range(15):
    rows = np.random.default_rng(seed).integers(0, len(y), 24)
    asked = {"metrics": "neg_mean_squared_error", "n_splits": 12, "random_state": seed}
    model = LinearRegression().fit(X[rows], y[rows])
    told["fitted rows"].append(np.mean((model.predict(X[rows]) - y[rows]) ** 2))
    for name, method in (("rows left out", "bootstrap"), (".632", ".632")):
        told[name].append(-assess(LinearRegression(), X[rows], y[rows], method=method, **asked).claims[0].estimate)
    right.append(np.mean((model.predict(X) - y) ** 2))
plot_estimates(told, np.mean(right), "squared error")

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# One nearest neighbour knows every fitted row by heart. If no column tells the class, half of new rows are wrong;
# .632 says about a third. The correction .632+ sees that fitted rows say nothing here, and stays near one half.

birds = load_penguins().dropna().sample(60, random_state=0)
columns, coin = birds[["bill_length_mm", "bill_depth_mm"]], np.arange(60) % 2
for method in (".632", ".632+"):
    score = assess(KNeighborsClassifier(1), columns, coin, method=method, n_splits=20).claims[0].estimate
    print(f"{method}: {1 - score:.2f} of new rows wrong")
