"""Mixtures of products of exponential families."""
