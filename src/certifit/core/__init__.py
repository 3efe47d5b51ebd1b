"""Rows, sums, the loop, certificates and the estimator base: what every model stands on."""

from certifit.core.as_rows import as_rows
from certifit.core.certificate import Certificate, Check
from certifit.core.checks import check_choices, check_settings
from certifit.core.errors import DataError, NoSolutionError, SourceChangedError
from certifit.core.estimator import CertificateWarning, Estimator, Objective
from certifit.core.labels import apply_class_weight, class_weight_vector, encode_labels
from certifit.core.loop import Mark, Solution, Step, fixed_point
from certifit.core.rows import Array, ArrayRows, Block, Matrix, Rows, block_rows
from certifit.core.sums import Largest, Sums, tree_sum
from certifit.core.threads import set_threads, thread_count

__all__ = [
    "Array",
    "ArrayRows",
    "Block",
    "Certificate",
    "CertificateWarning",
    "Check",
    "DataError",
    "Estimator",
    "Largest",
    "Mark",
    "Matrix",
    "NoSolutionError",
    "Objective",
    "Rows",
    "Solution",
    "SourceChangedError",
    "Step",
    "Sums",
    "apply_class_weight",
    "as_rows",
    "block_rows",
    "check_choices",
    "check_settings",
    "class_weight_vector",
    "encode_labels",
    "fixed_point",
    "set_threads",
    "thread_count",
    "tree_sum",
]
