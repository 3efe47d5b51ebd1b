"""Refuses fitted attributes of our own models that are not what a fit leaves: plain arrays, numbers and words.

Masked arrays, lists, text and whatever else turns into numbers have the values that an audit reads, and other answers
from every method that computes with them; so has a model of which a method was replaced.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from certifit.core import Estimator
from certifit.exceptions import DataError
from certifit.rows import Array

# Of labels, names and what is said in words: whatever their entries are, they stand in plain containers.
WORDS = (
    "classes_", "feature_names_in_", "parameter_names_", "families_", "proved_zero_", "undecided_", "features_",
    "covariance_type_", "layers_", "category_labels_", "calibration_groups_", "calibration_strata_",
)  # fmt: skip
# The same of a model of a table: names of its columns, and how it was found.
TABLE_WORDS = ("columns_", "target_", "weight_", "family_", "family_because_", "search_")
# None where there is nothing to say.
OPTIONAL = ("covariance_", "pvalues_", "weight_", "target_", "calibration_groups_", "calibration_strata_")
SHAPES = ("image_shape_", "shape_fit_")  # tuples of whole numbers
# Sparse where X was, or after `sparsify`: methods reckon with it.
MAYBE_SPARSE = ("support_vectors_", "dual_coef_", "expansion_", "X_fit_")


def check_plain_attributes(model: Any) -> None:
    """Refuse a fitted model of ours with an attribute of another type than a fit leaves, or a replaced method."""
    _check_class_order(model)
    width = vars(model).get("n_features_in_", 0)
    if type(width) is not int:
        raise DataError(got=f"n_features_in_ = {width!r}", wanted="a whole number of columns", fix="Fit it again.")
    settings = model.get_params(deep=False)
    for name, value in vars(model).items():
        if name not in settings and _stands_in_the_way(model, name):
            raise DataError(
                got=f"{name} set in a {type(model).__name__}",
                wanted="what its class has under that name, its settings and what its fit left",
                fix=f"Delete it: del model.{name}",
            )
        # Every audit makes the certificate anew.
        unread = name in getattr(model, "diagnostics", ()) or name == "certificate_"
        if name.endswith("_") and not name.startswith("_") and not unread:
            _check_attribute(model, name, value)


def _stands_in_the_way(model: Any, name: str) -> bool:
    """Whether an attribute that is no setting hides one of its class, or has a name that no fit leaves."""
    its = getattr(type(model), name, None)
    if name.startswith("_"):
        return callable(its)  # how far a fit has come, and what scikit-learn keeps, may be there
    return its is not None or not name.endswith("_")


def _check_attribute(model: Any, name: str, value: Any) -> None:
    """Refuse one attribute that is not plain."""
    words = (*WORDS, *TABLE_WORDS) if hasattr(model, "encode_labelled") else WORDS
    if value is None:
        wrong = None if name in OPTIONAL else "None"
    elif name in words and not isinstance(value, Estimator):
        wrong = None if _is_plain_container(value) else value
    elif sparse.issparse(value):
        wrong = None if _may_be_sparse(model, name) else value
    elif name in SHAPES:
        whole = type(value) is tuple and all(type(part) is int for part in value)
        wrong = None if whole else value
    elif is_dataclass(value) and not isinstance(value, type):
        field, wrong = _field_that_is_not_plain(value) or ("", None)
        name = f"{name}.{field}"
    else:
        wrong = _part_that_is_not_plain(value, words=name == "parameters_" and isinstance(value, list))
    if wrong is not None:
        raise DataError(
            got=f"{name} {_in_words(wrong)} in a fitted {type(model).__name__}",
            wanted="plain arrays of real numbers, as fit leaves them",
            fix="Fit it again.",
        )


def _part_that_is_not_plain(value: Any, words: bool = False) -> Any:
    """The first part of an attribute that no fit leaves, and None where there is none.

    Numbers stand by themselves, in arrays, or by name in a dictionary or record: a list of them is no array. The
    parameters of a family, among `words`, may be a tuple of them.
    """
    if isinstance(value, np.ndarray):
        return None if is_plain_array(value) else value
    if isinstance(value, Estimator):
        return check_plain_attributes(value)
    if hasattr(value, "get_params") or (words and isinstance(value, str)):
        return None  # another library's estimator, which its own methods read
    if isinstance(value, (bool, np.bool_, Real)):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return (_field_that_is_not_plain(value) or ("", None))[1]
    if type(value) is dict:
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = list(value)
        named = hasattr(value, "_fields") or (words and type(value) is tuple)
        if any(isinstance(part, Real) for part in parts) and not named:
            return value
    else:
        return value
    found = (_part_that_is_not_plain(part, words) for part in parts)
    return next((part for part in found if part is not None), None)


def _field_that_is_not_plain(record: Any) -> tuple[str, Any] | None:
    """The same for the fields of a record, such as a tree, with the field's name.

    What is declared as an array or a number must be one.
    """
    for one in fields(record):
        part = getattr(record, one.name)
        if one.type in ("Array", Array) and not (isinstance(part, np.ndarray) and is_plain_array(part)):
            return one.name, part if part is not None else "None"
        if one.type in ("float", "int") and not isinstance(part, Real):
            return one.name, part if part is not None else "None"
        wrong = None if part is None else _part_that_is_not_plain(part, True)
        if wrong is not None:
            return one.name, wrong
    return None


def is_plain_array(value: Any) -> bool:
    """Whether this is no subclass that computes otherwise, of real numbers in the machine's own single or double."""
    if type(value) not in (np.ndarray, np.memmap) or not value.dtype.isnative:
        return False
    kinds = [value.dtype[i] for i in range(len(value.dtype))] or [value.dtype]
    return all(kind.kind in "biu" or (kind.kind == "f" and kind.itemsize in (4, 8)) for kind in kinds)


def _is_plain_container(value: Any) -> bool:
    return is_dataclass(value) or type(value) in (np.ndarray, np.memmap, list, tuple, dict, str)


def _may_be_sparse(model: Any, name: str) -> bool:
    if name == "coef_":
        return hasattr(type(model), "sparsify")
    if name == "components_":
        return hasattr(model, "component_indices_")  # landmarks, which are rows
    return name in MAYBE_SPARSE


def _in_words(value: Any) -> str:
    kind = f"{type(value).__name__} of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
    return f"with {kind[:60]}"


def _check_class_order(model: Any) -> None:
    """Refuse classes that do not ascend, as every fit leaves them: where scores tie, their order decides."""
    found = getattr(model, "classes_", ())
    each = [np.asarray(one) for one in (found if isinstance(found, list) else [found])]  # a list of several targets'
    if not all(one.ndim == 1 and (one[:-1] < one[1:]).all() for one in each):
        raise DataError(
            got=f"classes_ that do not ascend in a fitted {type(model).__name__}",
            wanted="the sorted labels, each once",
            fix="Leave its attributes as the fit left them.",
        )
