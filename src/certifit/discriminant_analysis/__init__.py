"""Discriminant analysis: Gaussian classes that share a covariance."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("discriminant_analysis"))
