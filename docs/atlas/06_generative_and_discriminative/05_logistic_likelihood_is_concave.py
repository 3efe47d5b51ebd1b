r"""
The logistic likelihood is concave
==================================

**Statement.** The log-likelihood of logistic regression has the second derivatives :math:`-X^T D X` with
:math:`D = \mathrm{diag}(p_i (1 - p_i))`: it is concave, every stationary point is a maximum, and it is found by
steps, since :math:`X^T (y - p(\beta)) = 0` has in general no solution in closed form. If a hyperplane separates
the classes there is no maximum at all: along its normal the likelihood rises for ever.

**Why.** :math:`v^T X^T D X v = \sum_i p_i (1 - p_i) (x_i \cdot v)^2 \ge 0`. If :math:`y_i\, x_i \cdot v > 0` for all
rows (labels :math:`\pm 1`), every term :math:`-\log(1 + e^{-t y_i x_i \cdot v})` rises with :math:`t`.

**Held by** ``tests/theory/atlas/test_atlas_generative_and_discriminative.py``:
``test_logistic_likelihood_is_concave``, ``test_separable_classes_have_no_maximum``.

**Control** ``test_control_squared_errors_are_not_convex``: the squared error of the same probabilities;
``test_control_overlapping_classes_have_one``.
"""

import numpy as np

from certifit import LogisticRegression, NoSolutionError, load_penguins
from certifit.losses import Logistic
from certifit.plots import plot_losses

birds = load_penguins().dropna()
X = birds[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]]
X, male = (X - X.mean()) / X.std(), np.where(birds["sex"] == "male", 1, -1)
model = LogisticRegression(penalty=None).fit(X, male)
p = model.predict_proba(X)[:, 1]
print(f"eigenvalues of the second derivatives {np.linalg.eigvalsh(-X.T @ (X * (p * (1 - p))[:, None])).round(1)}")
print(f"found in {model.n_iter_[0]} steps")
plot_losses(Logistic(base=2))

# %%
# A row's loss (in bits) is convex in its margin, and never reaches 0: rows that are all on the right side gain by
# larger coefficients, without end. The sex of a penguin has a most likely formula; that it is a Gentoo has none.

try:
    LogisticRegression(penalty=None).fit(X, birds["species"] == "Gentoo")
except NoSolutionError as error:
    print(error)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The squared error of the same probabilities is not convex: between two points it lies above their chord.

far = 10 * model.coef_[0]
at_ends = [np.mean(((male + 1) / 2 - 1 / (1 + np.exp(-X @ w))) ** 2) for w in (far, -far)]
between = np.mean(((male + 1) / 2 - 1 / (1 + np.exp(X @ far / 3))) ** 2)
print(f"a third of the way {between:.3f}, the chord there {np.dot(at_ends, [1 / 3, 2 / 3]):.3f}")
