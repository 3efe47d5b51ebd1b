"""The one-file HTML report of a fitted table model."""

from certifit.report.page import Report, render

__all__ = ["Report", "render"]
