"""One-file HTML pages about fitted models, which check themselves."""

from certifit.report.table_page import Report, render

__all__ = ["Report", "render"]
