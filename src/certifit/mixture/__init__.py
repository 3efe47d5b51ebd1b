"""Mixtures by EM: Gaussian, and of any exponential family; and how many components there are."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("mixture"))
