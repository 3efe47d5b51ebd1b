"""Networks: layers, back-propagation, and estimators made of them."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("neural_network"))
