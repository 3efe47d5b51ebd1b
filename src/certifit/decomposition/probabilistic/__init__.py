"""Probabilistic PCA, in closed form or by EM where entries are missing."""
