"""The one-file HTML report of a fitted table model."""

from certifit.report.page import render

__all__ = ["render"]
