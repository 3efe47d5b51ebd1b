"""Models in files, without pickle."""

from certifit.store.atomic_file import write_atomically
from certifit.store.model_file import load, save

__all__ = ["load", "save", "write_atomically"]
