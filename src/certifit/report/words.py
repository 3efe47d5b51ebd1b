"""Words and numbers that the report and the command line share."""

from __future__ import annotations

import math

import numpy as np

from certifit.table.table_model import LabelledData

FAMILY_WORDS = {
    "gaussian": "amounts, by least squares",
    "poisson": "counts, by a Poisson model with a log link",
    "negative_binomial": "counts, by a negative binomial model with a log link",
    "gamma": "positive amounts, by a gamma model with a log link",
}


def target_words(data: LabelledData, most_classes: int) -> str:
    """The classes and how often they are, or where the numbers lie."""
    if data.choice.task == "regression":
        low, middle, high = (f"{value:.6g}" for value in data.spread)
        return f"from {low} to {high}, median {middle}"
    labels, counts = data.label_counts
    if len(labels) > most_classes:  # the frequent ones first
        order = np.argsort(-counts, kind="stable")
        labels, counts = labels[order], counts[order]
    few = slice(most_classes)
    shown = ", ".join(
        f"{shortened(label, 40)} {count:,}" for label, count in zip(labels[few], counts[few], strict=True)
    )
    more = f" and {len(labels) - most_classes:,} more classes" if len(labels) > most_classes else ""
    return shown + more


def with_error(value: float, error: float) -> str:
    """A score and its standard error, with as many decimals as the error has digits that tell something.

    >>> with_error(0.98543, 0.00312), with_error(44.2701, 0.71872), with_error(1234.5, 81.2)
    ('0.9854 ± 0.0031', '44.27 ± 0.72', '1234 ± 81')
    """
    if not math.isfinite(value) or not math.isfinite(error):
        return f"{value:.4g} ± {error:.2g}"
    decimals = 4 if error <= 0 else min(4, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def shortened(text: object, length: int = 60) -> str:
    """Words of the data in one line, cut where they are too long for a page.

    >>> shortened("a  b\\n c"), shortened("abcdefgh", 5)
    ('a b c', 'abcd…')
    """
    words = " ".join(str(text).split())
    return words if len(words) <= length else words[: length - 1] + "…"
