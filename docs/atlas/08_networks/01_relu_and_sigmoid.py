r"""
ReLU against sigmoid
====================

**Statement.** Going back through a layer, the slopes of the loss are multiplied by the layer's weights and by the
activation's own slope. A sigmoid's slope is at most :math:`\frac14`: behind :math:`L` layers with weights of a norm
of at most :math:`w` the slopes are at most :math:`(w/4)^L` of their size, and for :math:`w < 4` they vanish with
depth. A ReLU's slope is 0 or 1: slopes pass its active units undiminished, and the others are exactly zero, so that
codes are sparse.

**Why.** :math:`\sigma' = \sigma (1 - \sigma) \le \frac14`, with equality at 0; :math:`\|\delta_{l-1}\| = \|D W
\delta_l\| \le \max_j D_{jj} \|W\| \|\delta_l\|` for the diagonal matrix :math:`D` of the activation's slopes.

**Held by** ``tests/theory/atlas/test_atlas_networks.py``: ``test_slopes_shrink_behind_sigmoids``,
``test_slopes_vanish_behind_sigmoids`` and ``test_relu_codes_are_sparse``.

**Control** ``test_control_slopes_pass_relus``, ``test_control_slopes_do_not_vanish_behind_relus`` and
``test_control_sigmoid_codes_are_not_sparse``: the other activation, of which the same is not true.
"""

from sklearn.datasets import load_digits

from certifit import MLPClassifier
from certifit.plots import plot_active_units, plot_slope_sizes

X, y = load_digits(return_X_y=True)
X, y = X[:300] / 16, y[:300]
deep = {a: MLPClassifier((16,) * 8, a, max_iter=1, random_state=0).fit(X, y) for a in ("relu", "logistic")}
plot_slope_sizes(deep, X, y)

# %%
# Eight hidden layers before training has begun: the first weights behind sigmoids hardly matter for the loss.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Units that are exactly zero: sparse codes are the ReLU's, not the sigmoid's.

plot_active_units(deep, X)
