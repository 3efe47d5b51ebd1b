"""The checker of fitted exponential families."""
