"""The colours of a picture reduced to eight, learnt on a sample."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils import shuffle

rng = np.random.default_rng(0)
ramp = np.linspace(0, 1, 48)
picture = np.stack([ramp[:, None] + 0 * ramp, ramp + 0 * ramp[:, None], np.outer(ramp, ramp)], axis=-1)
pixels = (picture + rng.normal(0, 0.02, picture.shape)).reshape(-1, 3).astype(np.float32)
model = KMeans(n_clusters=8, random_state=0, n_init=3).fit(shuffle(pixels, random_state=0, n_samples=1000))
again = model.cluster_centers_[model.predict(pixels)]
assert again.shape == pixels.shape
# tolerance: 0.15
result = {"error": np.mean((pixels - again) ** 2)}
