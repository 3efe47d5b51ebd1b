r"""
Separate machines, or one for all classes
=========================================

**Statement.** If the mean of the :math:`m` rows of a class is also a mean of rows of the others, each with a share of
at most :math:`1/m`, then the best machine of that class against the rest, with a free intercept, is *constant*:
:math:`w = 0`. Its score says nothing, on a scale of its own, and most of the class may be lost; the rarer, the
sooner. A joint machine compares the scores of a row's classes within one loss, and keeps it here.

**Why.** Take :math:`\alpha = C` for the class and :math:`\alpha = C m` times the share for the others: a dual point
of the value :math:`2 C m`, which is what :math:`w = 0, b = -1` costs.

**Held by** ``tests/theory/atlas/test_atlas_support_vectors.py``:
``test_the_machine_of_a_class_in_the_middle_is_constant``, ``test_a_joint_machine_keeps_the_class_in_the_middle``.

**Control** ``test_control_a_class_at_the_edge_has_a_machine``: setosa's mean is no such mean, and its machine is not
constant; ``test_control_separate_machines_lose_it``.
"""

import numpy as np
from sklearn.datasets import load_iris

from certifit import LinearSVC
from certifit.plots import plot_boundaries

X, y = load_iris(return_X_y=True, as_frame=True)
petals, species = X.iloc[:, 2:], load_iris().target_names[y]
few = np.r_[0:50, 50:65, 100:150]  # versicolor, in the middle, with fifteen of its fifty flowers
separate = LinearSVC(loss="hinge", penalize_intercept=False).fit(petals.iloc[few], species[few])
joint = LinearSVC(multi_class="crammer-singer", penalize_intercept=False).fit(petals.iloc[few], species[few])
for name, model in {"separate": separate, "joint": joint}.items():
    found = np.mean(model.predict(petals[50:65]) == "versicolor")
    print(f"{name}: |w| {np.linalg.norm(model.coef_, axis=1).round(2)}, versicolor recognised {found:.0%}")

# %%
# The scores of the separate machines have scales of their own; versicolor's says the same of every flower.

plot_boundaries({"one against the rest": separate, "all classes at once": joint}, petals.iloc[few], species[few])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Setosa lies at the edge, with as few flowers: its own machine finds it.

few = np.r_[0:15, 50:150]
edge = LinearSVC(loss="hinge", penalize_intercept=False).fit(petals.iloc[few], species[few])
print(f"|w| of setosa's machine {np.linalg.norm(edge.coef_[0]):.2f}")
