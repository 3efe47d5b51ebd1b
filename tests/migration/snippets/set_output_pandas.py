"""Data frames in, data frames out."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

frame, y = load_iris(as_frame=True, return_X_y=True)
pipeline = make_pipeline(StandardScaler(), PCA(n_components=2)).set_output(transform="pandas")
scores = pipeline.fit_transform(frame)
assert [*scores.columns] == ["pca0", "pca1"]
assert scores.index.equals(frame.index)
assert [*pipeline.get_feature_names_out()] == ["pca0", "pca1"]
result = {"scores": np.abs(scores.to_numpy()), "share": pipeline[-1].explained_variance_ratio_}
