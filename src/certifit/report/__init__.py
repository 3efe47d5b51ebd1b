"""One-file HTML pages about fitted models, which check themselves; `certifit.report(model, X, y)` makes one."""

import sys
from types import ModuleType
from typing import Any

from certifit.report.table_page import Report, render

__all__ = ["Report", "render"]


class CallableReport(ModuleType):
    """This package can be called: `certifit.report` is a name of a package and of a function."""

    def __call__(self, *args: Any, **settings: Any) -> Any:
        from certifit.report.model_page import report

        return report(*args, **settings)


sys.modules[__name__].__class__ = CallableReport
