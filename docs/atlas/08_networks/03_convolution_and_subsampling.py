r"""
Convolution, subsampling, fully connected
=========================================

**Statement.** A convolution is a linear map whose matrix is sparse and repeats the same few weights in every line: it
equals that matrix product, has as many weights as its window whatever the size of the image, and moves its output as
the image moves (but for what crosses its edges). Pooling leaves one number of every window: fewer values, without
weights. A fully connected layer has a weight of its own for every pair, and does not know that an image was moved.

**Why.** Each output is the same weighted sum of a window, at another place; that is linear, and moving the image
renames the places. So the line of the matrix for the next place is the last one moved by a pixel.

**Held by** ``tests/theory/atlas/test_atlas_networks.py``: ``test_a_convolution_is_a_sparse_product``,
``test_a_convolution_moves_with_the_image``, ``test_pooling_shrinks`` and ``test_weights_are_counted``.

**Control** ``test_control_a_window_turned_round``, ``test_control_weights_of_their_own_do_not_move_with_the_image``,
``test_control_neighbouring_maxima_do_not_shrink`` and ``test_control_a_dense_layer_has_more_weights``.
"""

import numpy as np
from scipy.signal import correlate2d
from sklearn.datasets import load_digits

from certifit import ConvNetClassifier
from certifit.plots import plot_filters

digits = load_digits()
images = digits.images[:500] / 16
layers = [("conv", 8, 3), "relu", ("max_pool", 2), ("dense", 16), "relu"]
model = ConvNetClassifier(layers, max_iter=15, random_state=0).fit(images, digits.target[:500])
print("weights of the convolution and of the dense layers:", *(weights.shape for weights in model.coefs_))
plot_filters(model)

# %%
# The matrix of one channel: 36 places of a window of 3 x 3 on 8 x 8 pixels, and nine different weights.

window = model.coefs_[0][0, 0]
matrix = np.stack([correlate2d(pixel.reshape(8, 8), window, "valid").ravel() for pixel in np.eye(64)], axis=1)
same = np.allclose(matrix @ images[0].ravel(), correlate2d(images[0], window, "valid").ravel())
print(
    f"{matrix.shape}, {np.count_nonzero(matrix)} entries, {len(np.unique(matrix)) - 1} weights; same answer: {same}"
)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# An image that moves by a pixel moves what the window finds; with weights of their own at every place it does not.

moved, own = np.roll(images[0], 1, axis=1), matrix * np.random.default_rng(0).uniform(0.5, 1.5, matrix.shape)
for name, M in (("shared weights", matrix), ("weights of their own", own)):
    before, after = (M @ images[0].ravel()).reshape(6, 6), (M @ moved.ravel()).reshape(6, 6)
    print(f"{name}: off by {np.abs(after[:, 1:] - before[:, :-1]).max():.1e}")
