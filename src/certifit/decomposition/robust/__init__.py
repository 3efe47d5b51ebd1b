"""PCA of tables with outliers.

`robust_pca` splits a table into low-rank and sparse parts (single entries may be wrong), by
`principal_component_pursuit`; `trimmed_pca` leaves whole rows out, by `concentration_steps`.
"""
