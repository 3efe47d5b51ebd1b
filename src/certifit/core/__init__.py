"""What every model is built on: the certificate, the loop of passes over the rows, and the estimators' base class."""

from certifit.core.certificate import Certificate, Check, rounding_within
from certifit.core.config import certified, proves_later, wants_best_proof
from certifit.core.estimator import Estimator, Objective
from certifit.core.loop import Mark, ResumableUpdate, Solution, Step, fixed_point
from certifit.core.settings import LOOP, MAX_TIME, TOL, Setting
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
    "ResumableUpdate",
    "Setting",
    "Solution",
    "Step",
    "Watch",
    "certified",
    "fixed_point",
    "proves_later",
    "rounding_within",
    "text_table",
    "wants_best_proof",
]
