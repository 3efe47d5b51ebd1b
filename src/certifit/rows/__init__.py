"""Tables of any kind, in memory, in files or on a cluster, as sequences of row blocks over which sums are taken."""

from certifit.rows.as_rows import as_rows
from certifit.rows.block import Array, Block, Matrix, block_rows, transpose
from certifit.rows.labels import (
    apply_class_weight,
    apply_class_weights,
    class_weight_vector,
    encode_label_columns,
    encode_labels,
)
from certifit.rows.rows import ArrayRows, Rows
from certifit.rows.sums import Largest, Sums, tree_sum
from certifit.rows.threads import set_threads, thread_count

__all__ = [
    "Array",
    "ArrayRows",
    "Block",
    "Largest",
    "Matrix",
    "Rows",
    "Sums",
    "apply_class_weight",
    "apply_class_weights",
    "as_rows",
    "block_rows",
    "class_weight_vector",
    "encode_label_columns",
    "encode_labels",
    "set_threads",
    "thread_count",
    "transpose",
    "tree_sum",
]
