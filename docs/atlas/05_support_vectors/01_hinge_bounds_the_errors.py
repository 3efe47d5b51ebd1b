r"""
The hinge bounds the errors
===========================

**Statement.** Let :math:`m = y f(x)` be the margin of a row, :math:`y = \pm 1`. The hinge
:math:`\max(0, 1 - m)` is nowhere below the 0-1 loss :math:`1[m \le 0]`. So for *every* :math:`f` the number of errors
is at most the sum of hinges, and at the soft-margin solution at most (objective) / :math:`C`.

**Why.** For :math:`m \le 0` the hinge is :math:`1 - m \ge 1`; for :math:`m > 0` it is at least 0. The objective is
:math:`C` times the hinges plus half a squared norm, which is not negative.

**Held by** ``tests/theory/atlas/test_atlas_support_vectors.py``: ``test_hinge_bounds_the_errors``.

**Control** ``test_control_without_the_one_errors_cost_too_little``: without its 1 (the perceptron's loss) the hinge
charges less than 1 for an error next to the boundary.
"""

import numpy as np

from certifit import LinearSVC, load_penguins
from certifit.losses import Hinge, Logistic, SquaredHinge
from certifit.plots import plot_losses

birds = load_penguins().dropna()
X, y = birds[["flipper_length_mm", "body_mass_g"]], np.where(birds["species"] == "Gentoo", 1, -1)
X = (X - X.mean()) / X.std()
model = LinearSVC(loss="hinge", C=1.0).fit(X, y)
margins = y * model.decision_function(X)
print(f"errors {np.sum(margins <= 0)}, hinges {Hinge().value(margins).sum():.2f}, of {len(y)} birds")
print(f"objective / C {model.certificate_.objective:.2f}")

# %%
# The steps are the 0-1 loss. Dashed is what is no bound: the logistic loss is one only in bits (base 2), since
# :math:`\log 2 < 1` at the margin 0.

plot_losses([Hinge(), SquaredHinge(), Logistic(base=2), Logistic()])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The perceptron's loss :math:`\max(0, -m)` drops the 1: the birds that are wrong cost less than there are of them.

print(f"errors {np.sum(margins <= 0)}, perceptron's losses {np.maximum(0, -margins).sum():.2f}")
