"""Support vector machines: linear, with kernels, for all classes at once, and with a hard margin."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("svm"))
