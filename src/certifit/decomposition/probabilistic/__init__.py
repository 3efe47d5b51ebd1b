"""Probabilistic PCA, in closed form or by EM where entries are missing.

| file | idea |
|---|---|
| `parameters` | μ, W and σ² |
| `closed_form` | the global maximum on complete rows, and where EM starts |
| `posterior` | what observed entries tell of a row's code: E step, imputation, likelihood |
| `em` | the M step and longer steps |
| `choose_components` | how many components |
"""
