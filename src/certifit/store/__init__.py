"""Models in files, without pickle, and predictions in files."""

from certifit.files.atomic_file import write_atomically
from certifit.store.model_file import load, save
from certifit.store.predictions import write_predictions

__all__ = ["load", "save", "write_atomically", "write_predictions"]
