r"""
Huber joins a line and a parabola
=================================

**Statement.** The Huberised hinge is 0 above :math:`1 + h`, the parabola :math:`(1 + h - m)^2 / 4h` for
:math:`|1 - m| \le h`, the line :math:`1 - m` below. Values and slopes agree where the pieces meet, so the loss has a
slope everywhere and the machine's gradient vanishes at its solution:
:math:`w = -C \sum_i \varphi'(m_i) y_i x_i`. It lies at most :math:`h/4` above the hinge.

**Why.** At :math:`m = 1 - h` both pieces have the value :math:`h` and the slope -1, at :math:`1 + h` both are 0.
A convex function with a slope everywhere is least exactly where its gradient is 0 (Fermat).

**Held by** ``tests/theory/atlas/test_atlas_support_vectors.py``: ``test_huber_joins_line_and_parabola``,
``test_the_gradient_of_a_machine_with_slopes_everywhere_vanishes``.

**Control** ``test_control_another_parabola_does_not_join``: with :math:`2h` in place of :math:`4h` values jump; and
``test_control_the_hinge_has_no_slope_at_its_kink``.
"""

import numpy as np

from certifit import LinearSVC, load_penguins
from certifit.losses import Hinge, HuberisedHinge, SquaredHinge
from certifit.plots import plot_losses

birds = load_penguins().dropna()
X, y = birds[["flipper_length_mm", "body_mass_g"]], np.where(birds["species"] == "Gentoo", 1, -1)
X = ((X - X.mean()) / X.std()).to_numpy()
for name, loss in {"huberised_hinge": HuberisedHinge(0.5), "hinge": Hinge()}.items():
    model = LinearSVC(loss=name, penalize_intercept=False, tol=1e-10).fit(X, y)
    slopes = loss.derivative(y * model.decision_function(X))
    print(f"{name}: w = {model.coef_[0].round(4)}, minus the sum of slopes {(-(slopes * y) @ X).round(4)}")

# %%
# On the left the Huberised hinge has the value and the slope of the hinge; about the kink it is a parabola.

plot_losses([Hinge(), HuberisedHinge(0.5), SquaredHinge()])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Above, the second line: the hinge has no slope at its kink, rows *on* the margin need one between -1 and 0 (their
# dual variable), and the sum of one-sided slopes misses :math:`w`.

print(f"{np.sum(np.abs(y * model.decision_function(X) - 1) < 1e-6)} birds lie on the kink of the hinge")
