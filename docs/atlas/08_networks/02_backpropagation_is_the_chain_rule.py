r"""
Back-propagation is the chain rule
==================================

**Statement.** The slopes of the loss in all weights follow from one pass back: the slope in a unit is the sum, over
the units that it leads to, of weight times their slope, times the activation's own slope; the slope in a weight is
the value that enters it times the slope of the unit that it leads to. They are the partial derivatives.

**Why.** The chain rule for :math:`f_L \circ \dots \circ f_1`, its product of matrices taken from the left: every
product is then of a matrix and one vector, so that all slopes cost about as much as the loss does, whatever their
number.

**Held by** ``tests/theory/atlas/test_atlas_networks.py``: ``test_back_propagation_is_the_derivative`` (against
central differences of a loss that is written out).

**Control** ``test_control_a_dropped_activation_slope``: the activation's slope left out on the way back.
"""

import numpy as np

from certifit import MLPClassifier, load_penguins
from certifit.plots import plot_backpropagation

penguins = load_penguins().dropna()
X = penguins[["bill_length_mm", "bill_depth_mm"]].to_numpy()
X, y = (X - X.mean(axis=0)) / X.std(axis=0), penguins["species"].to_numpy()
model = MLPClassifier((2,), "tanh", max_iter=5, random_state=0).fit(X, y)
plot_backpropagation(model, X[0], y[0])

# %%
# Black numbers go forward, coloured ones come back: each follows from those to its right.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The slopes in the first weights beside central differences, with the slope of tanh and without it.

(W, V), (b, c), true = model.coefs_, model.intercepts_, model.classes_ == y[0]


def loss(W):
    scores = np.tanh(X[0] @ W + b) @ V + c
    return np.log(np.exp(scores).sum()) - scores[true][0]


steps = 1e-6 * np.eye(W.size).reshape(W.size, *W.shape)
differences = np.array([(loss(W + e) - loss(W - e)) / 2e-6 for e in steps]).reshape(W.shape)
back = V @ (model.predict_proba(X[:1])[0] - true)
for name, slope in (("with", 1 - np.tanh(X[0] @ W + b) ** 2), ("without", 1.0)):
    print(f"{name} the slope of tanh: off by {np.abs(np.outer(X[0], back * slope) - differences).max():.1e}")
