"""Cross-validation of a table model and the one-file HTML report."""

from certifit.report.crossval import CrossValidation, Score, cross_validate
from certifit.report.html import render

__all__ = ["CrossValidation", "Score", "cross_validate", "render"]
