"""Principal component analysis, truncated SVD, and PCA of rows that come in batches.

`principal_axes` finds the axes, `linear_codes` turns rows into codes and back, `choose_components` decides how many;
the estimators are in `pca`, `incremental_pca` and `truncated_svd`. `both_views` shows the two textbook definitions of
PCA side by side.
"""
