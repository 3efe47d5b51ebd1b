"""Additive models: one piecewise constant function of each column, with a penalty on how much they vary."""
