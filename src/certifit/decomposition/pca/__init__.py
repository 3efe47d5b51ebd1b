"""Principal component analysis, truncated SVD, and PCA of rows that come in batches."""
