"""What a target is: classes or a quantity, and what kind of quantity. These rules choose a model from y.

Classes or a quantity, where nobody says which:

- text, true/false and categories are classes;
- numbers with a fraction are a quantity;
- whole numbers are classes where they are few (up to 10) and each occurs often (5 rows on average), else a quantity;
- the numbers of the rows, from one to the next without a gap, are refused: they only tell the rows apart.

The family of a quantity (McCullagh & Nelder, Generalized Linear Models, 1989), where nobody says which:

- counts, Poisson with a log link: whole numbers from 0 up, three different ones or more, some of them below 10, their
  mean at most 1000; negative binomial where they vary more than Poisson's law allows (`table.overdispersion`);
- positive amounts, gamma with a log link: every one above 0, and skewed to the right (skewness above 1);
- any other amount: least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from sklearn.utils.multiclass import type_of_target

from certifit.exceptions import DataError
from certifit.rows import Array

Task = Literal["classification", "regression"]
Target: TypeAlias = Any  # an Arrow array, in one piece or several


@dataclass(frozen=True)
class TargetKindTuning:
    """Where the rules above draw their lines."""

    most_numeric_classes: int = 50  # a classifier takes no more different numbers for classes
    few_numbers: int = 10  # so many different whole numbers may be classes without being called so
    rows_each: int = 5  # so many rows each of them has on average
    small_count: int = 10  # counts have some below
    largest_mean_count: float = 1000.0
    skewed: float = 1.0  # from this skewness on, positive amounts are gamma's


class TaskChoice(NamedTuple):
    """Classes or a quantity, and why."""

    task: Task
    why: str


class FamilyChoice(NamedTuple):
    """A family of the generalised linear models, and why."""

    family: str
    why: str


def choose_task(target: Target, tuning: TargetKindTuning = TargetKindTuning()) -> TaskChoice:
    """Tell classes from a quantity, by the values that are there.

    >>> choose_task(pa.array(["a", "b"])).task, choose_task(pa.array([1.5, 2.0])).task
    ('classification', 'regression')
    """
    target = unpacked(target).drop_null()
    if not is_number(target.type):
        return TaskChoice("classification", f"{type_words(target.type)} are classes")
    y = _values(target)
    ends = (float(y.min()), float(y.max())) if len(y) else (0.0, 0.0)
    return task_of_numbers(len(np.unique(y)), len(y), has_fraction(y), ends, tuning)


def has_fraction(y: Array) -> bool:
    """Whether some of these numbers are not whole."""
    return bool(y.dtype.kind == "f" and (y != np.floor(y)).any())


def task_of_numbers(
    distinct: int, n: int, fraction: bool, ends: tuple[float, float], tuning: TargetKindTuning = TargetKindTuning()
) -> TaskChoice:
    """Tell classes from a quantity, of n numbers from one end to the other; the numbers of the rows are neither."""
    if fraction:
        return TaskChoice("regression", "numbers with a fraction are a quantity")
    if distinct <= 2:
        return TaskChoice("classification", f"{distinct} different numbers are classes")
    words = f"{distinct:,} different whole numbers in {n:,} rows"
    if distinct <= tuning.few_numbers and n >= tuning.rows_each * distinct:
        return TaskChoice("classification", f"{words} are few and come often, as classes do")
    low, high = ends
    if distinct == n > tuning.few_numbers and high - low + 1 == n:
        raise DataError(
            got=f"a target that numbers the rows, from {low:.0f} to {high:.0f}",
            wanted="a quantity, or classes that come more than once",
            fix="Name another column; where it is a rank to predict, --task regression.",
        )
    return TaskChoice("regression", f"{words} are a quantity")


class QuantityFacts(NamedTuple):
    """What the family of a quantity depends on."""

    low: float
    mean: float
    skewness: float
    distinct: int
    whole: bool  # whether all are whole numbers


def choose_family(y: Array, w: Array, tuning: TargetKindTuning = TargetKindTuning()) -> FamilyChoice:
    """Choose the family of a quantity y (n,) from its values and their weights w (n,).

    >>> choose_family(np.array([0.0, 3.0, 1.0, 1.0]), np.ones(4)).family
    'poisson'
    >>> choose_family(np.array([0.3, 0.1, 0.2, 9.0]), np.ones(4)).family
    'gamma'
    """
    mean = float(np.average(y, weights=w))
    whole = bool((y == np.floor(y)).all())
    facts = QuantityFacts(float(y.min()), mean, _skewness(y, w, mean), len(np.unique(y)), whole)
    return family_of(facts, tuning)


def family_of(facts: QuantityFacts, tuning: TargetKindTuning = TargetKindTuning()) -> FamilyChoice:
    """Choose the family of a quantity by what is known of it."""
    counted = facts.whole and facts.low >= 0 and facts.distinct > 2
    if counted and facts.low < tuning.small_count and facts.mean <= tuning.largest_mean_count:
        return FamilyChoice("poisson", "whole numbers from 0 up, some of them small")
    if facts.low <= 0:
        return FamilyChoice("gaussian", "some of them are not positive")
    words = f"skewed to the right (skewness {facts.skewness:.2g})"
    if facts.skewness > tuning.skewed:
        return FamilyChoice("gamma", f"all of them positive, and {words}")
    return FamilyChoice("gaussian", f"all of them positive, but not {words}")


def _skewness(y: Array, w: Array, mean: float) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        second, third = (float(np.average((y - mean) ** power, weights=w)) for power in (2, 3))
    return third / second**1.5 if second > 0 and np.isfinite(second) else 0.0


def class_labels(target: Target, tuning: TargetKindTuning = TargetKindTuning()) -> Array:
    """Labels as an array of text, whole numbers or booleans; a quantity is refused."""
    y = label_values(target)
    refuse_quantity(np.unique(y), len(y), tuning)
    return y


def label_values(target: Target) -> Array:
    """Labels as an array of text, numbers or booleans; other types are refused."""
    target = unpacked(target)
    if (pa.types.is_string(target.type) or pa.types.is_large_string(target.type)) and target.null_count == 0:
        coded = pa.chunked_array(target).combine_chunks().dictionary_encode()
        return np.array(coded.dictionary.to_pylist(), dtype=str)[coded.indices.to_numpy()]
    y = _values(target)
    if y.dtype == object and all(isinstance(label, str) for label in y):
        y = y.astype(str)
    if y.dtype.kind not in "biufU":
        raise DataError(
            got=f"a target of type {target.type}",
            wanted="classes: text, whole numbers or true/false",
            fix="Convert the target column to text.",
        )
    _refuse_infinity(y, "classes")
    return y


def refuse_quantity(labels: Array, n: int, tuning: TargetKindTuning = TargetKindTuning()) -> None:
    """Refuse different labels (k,) of n rows that are a quantity, no classes."""
    distinct = len(labels)
    many = distinct > tuning.few_numbers and (distinct > tuning.most_numeric_classes or 2 * distinct > n)
    if type_of_target(np.repeat(labels, 2)) == "continuous" or (labels.dtype.kind in "iuf" and many):
        raise DataError(
            got=f"a target that is a quantity, with {distinct:,} different numbers in {n:,} rows "
            "(Unknown label type: continuous)",
            wanted=f"classes: text, true/false, or few whole numbers (at most {tuning.most_numeric_classes})",
            fix="TableRegressor predicts quantities; if these numbers are codes, convert the column to text.",
        )


def quantities(target: Target) -> Array:
    """Numbers as float64; text and dates are refused."""
    target = unpacked(target)
    if not is_number(target.type) and not pa.types.is_boolean(target.type):
        raise DataError(
            got=f"a target of type {target.type}",
            wanted="numbers",
            fix="Words are classes: --task classification, in Python TableClassifier.",
        )
    y = _values(target.cast(pa.float64(), safe=False))
    _refuse_infinity(y, "finite numbers")
    return np.ascontiguousarray(y, dtype=np.float64)


def _refuse_infinity(y: Array, wanted: str) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(got="a target with infinite values: y contains infinity", wanted=wanted)


def unpacked(target: Target) -> Target:
    return target.cast(target.type.value_type) if pa.types.is_dictionary(target.type) else target


def _values(target: Target) -> Array:
    return np.asarray(target.to_numpy(zero_copy_only=False) if isinstance(target, pa.Array) else target.to_numpy())


def is_number(kind: pa.DataType) -> bool:
    return any(f(kind) for f in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def type_words(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "true and false"
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return "words" if any(f(kind) for f in text) else f"values of type {kind}"
