"""Probabilistic PCA, in closed form or by EM where entries are missing.

| file | idea |
|---|---|
| `parameters` | μ, W and σ² |
| `closed_form` | the global maximum on complete rows, and where EM starts |
| `posterior` | the code of a row given its observed entries; imputation and likelihood |
| `em` | the E and M steps, and jumps that accelerate them |
| `choose_components` | the number of components |
"""
