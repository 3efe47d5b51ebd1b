r"""
AdaBoost is an additive logistic model
======================================

**Statement.** AdaBoost fits :math:`f = \sum_m \alpha_m h_m`, :math:`h_m = \pm 1`, by forward stages: rows weigh
:math:`e^{-y f}`, and :math:`\alpha_m` is the step along :math:`h_m` with the least mean :math:`e^{-y f}`. The
function with the least expected loss is half the log-odds, :math:`f^*(x) = \frac12 \log \frac{P(y = 1 | x)}{P(y = -1
| x)}`.

**Why.** :math:`e^{-y(f + \alpha h)} = e^{-yf} e^{-\alpha y h}`: what came before is a weight. At one :math:`x` the
expected loss is :math:`p e^{-f} + (1 - p) e^{f}`; its derivative vanishes at half the log-odds.

**Held by** ``tests/theory/atlas/test_atlas_trees_and_ensembles.py``: ``test_strengths_minimise_the_exponential_loss``
and ``test_boosting_ends_at_the_log_odds``.

**Control** ``test_control_steps_of_another_loss``: those of the logistic loss; and
``test_control_the_mean_vote_is_no_log_odds``: strengths divided by their sum.
"""

import numpy as np

from certifit import AdaBoostClassifier, assess, load_penguins

penguins = load_penguins().dropna()
kept = penguins[(penguins["body_mass_g"] >= 3000) & (penguins["body_mass_g"] < 5500)]
mass, male = (kept[["body_mass_g"]] // 500), kept["sex"] == "male"
model = AdaBoostClassifier(n_estimators=100).fit(mass, male)
told = kept.assign(told=model.predict_proba(mass)[:, 1], male=male, mass=500 * mass)
print(told.groupby("mass")[["male", "told"]].mean().round(4))

# %%
# One column of five values, where stumps can build any function: the probabilities are the shares that were counted.
# Of birds that were left out, events come true about as often as the model says.

assess(AdaBoostClassifier(n_estimators=100), mass, male, method="k-fold", n_splits=5).calibration().plot()

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The mean vote of the stumps, with strengths divided by their sum, is no log-odds: it says too little of most birds.

told["told"] = 1 / (1 + np.exp(-model.decision_function(mass)))
print(told.groupby("mass")[["male", "told"]].mean().round(4))
