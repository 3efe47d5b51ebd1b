"""Many models that answer as one: bagging, forests, AdaBoost and stagewise additive models."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("ensemble"))
