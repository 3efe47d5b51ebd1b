"""Certificates, the loop and the estimator base: what every model stands on."""

from certifit.core.certificate import Certificate, Check
from certifit.core.estimator import Estimator, Objective
from certifit.core.loop import Mark, Solution, Step, fixed_point
from certifit.core.settings import LOOP, MAX_TIME, TOL, Setting, check_choices, check_settings
from certifit.core.text_table import text_table
from certifit.core.watch import Attributes, Watch

__all__ = [
    "LOOP",
    "MAX_TIME",
    "TOL",
    "Attributes",
    "Certificate",
    "Check",
    "Estimator",
    "Mark",
    "Objective",
    "Setting",
    "Solution",
    "Step",
    "Watch",
    "check_choices",
    "check_settings",
    "fixed_point",
    "text_table",
]
