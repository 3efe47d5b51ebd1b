r"""
Greedy selection of features
============================

**Statement.** Forward selection adds, step by step, the column that together with those already taken gives the best
score on rows held out. Each step is the best of its candidates; columns that are good alone are not taken if others
say the same, and the columns taken after several steps need not be the best of all sets of their size.

**Why.** The score of a column depends on those beside it: two that agree are worth little more than one, and a column
of no use alone can explain what another leaves. There are :math:`\binom{d}{k}` sets, and a search looks at about
:math:`kd` of them.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``:
``test_each_step_is_the_best_of_its_candidates``.

**Control** ``test_control_columns_by_their_single_scores``: to take columns by what they are worth alone is another
order. ``test_control_greedy_is_not_best``: six columns exist that are better than the six that it takes.
"""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

from certifit import SequentialSelector
from certifit.plots import plot_search

X, y = load_diabetes(return_X_y=True, as_frame=True)
search = SequentialSelector(LinearRegression(), n_features_to_select=6).fit(X, y)
print("taken:", *X.columns[search.path_["column"]])
alone = {name: cross_val_score(LinearRegression(), X[[name]], y).mean() for name in X}
print("alone:", *sorted(alone, key=alone.get, reverse=True))

# %%
# "sex" is worth least alone and the fifth to be taken; "s4", which is fourth alone, is not taken.

plot_search(search)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Every step was the best, but with s2 in place of s3 six columns have a better score than the six taken.

for names in (list(X.columns[search.support_]), ["sex", "bmi", "bp", "s1", "s2", "s5"]):
    print(f"{cross_val_score(LinearRegression(), X[names], y).mean():.4f}", *names)
