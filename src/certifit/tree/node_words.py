"""What the nodes of a tree say in words: question, impurity, rows, values and class; for text, dot and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array


@dataclass(frozen=True)
class Characters:
    """How a text writes what is not plain."""

    at_most: str = "<="
    before: str = "["  # of the number of a column or class
    behind: str = "]"
    new_line: str = "\n"


@dataclass(frozen=True)
class TreeWords:
    """The words of a fitted tree, ours or scikit-learn's."""

    model: Any
    names: Sequence[str]  # of the columns
    class_names: Sequence[str] | None
    label: str = "all"  # whether numbers are named: at all nodes, the root, or none
    impurity: bool = True
    node_ids: bool = False
    proportion: bool = False
    precision: int = 3
    characters: Characters = Characters()

    @property
    def tree(self) -> Any:
        return self.model.tree_

    def is_leaf(self, k: int) -> bool:
        return bool(self.tree.children_left[k] < 0)

    def question(self, k: int) -> str:
        """What node k asks: rows for which it is true go left."""
        name, chosen = self.names[self.tree.feature[k]], getattr(self.tree, "category_set", ())
        if len(chosen) and chosen[k] >= 0:
            return f"{name} {self._set_words(k)}"
        if self.parts_missing(k):
            return f"{name} is not missing"
        return f"{name} {self.characters.at_most} {_rounded(self.tree.threshold[k], self.precision)}"

    def parts_missing(self, k: int) -> bool:
        """Whether node k parts rows with a value from rows without one: no value is above its threshold."""
        return bool(self.tree.threshold[k] == np.inf)

    def _set_words(self, k: int, most: int = 8) -> str:
        """The categories that go left at a node, or, where fewer go right, all but these."""
        left = category_names(self.model, k, True)
        right = category_names(self.model, k, False)
        word, shown = ("in", left) if len(left) <= len(right) or not right else ("not in", right)
        more = f", … ({len(shown)} in all)" if len(shown) > most else ""
        return f"{word} {{{', '.join(shown[:most])}{more}}}"

    def lines(self, k: int) -> list[str]:
        """All lines of node k."""
        tree, named = self.tree, self.label == "all" or (self.label == "root" and k == 0)
        found = []
        if self.node_ids:
            found.append(f"{'node ' if named else ''}#{k}")
        if not self.is_leaf(k):
            found.append(self.question(k))
        if self.impurity:
            word = getattr(self.model, "criterion", "impurity")
            word = word if isinstance(word, str) else "impurity"
            found.append(f"{word + ' = ' if named else ''}{_rounded(tree.impurity[k], self.precision)}")
        count = tree.n_node_samples[k]
        share = f"{round(100.0 * count / tree.n_node_samples[0], 1)}%"
        found.append(f"{'samples = ' if named else ''}{share if self.proportion else count}")
        found.append(("value = " if named else "") + self.value(k))
        chosen = self.class_of(k)
        if chosen is not None:
            found.append(f"{'class = ' if named else ''}{chosen}")
        return found

    def value(self, k: int) -> str:
        """Weights or shares of the classes, or the amounts of a node."""
        values = np.asarray(self.tree.value[k], np.float64)
        if self.tree.n_classes[0] > 1 and not self.proportion:
            values = values * self.tree.weighted_n_node_samples[k]
            if np.allclose(values, np.rint(values), rtol=1e-9, atol=1e-9):
                values = np.rint(values).astype(np.int64)
        elif self.tree.n_classes[0] == 1:
            values = values[:, :1]
        if values.size == 1:
            return str(np.around(values[0, 0], self.precision))
        rows = [f"[{', '.join(str(number) for number in np.around(row, self.precision))}]" for row in values]
        return rows[0] if len(rows) == 1 else f"[{self.characters.new_line.join(rows)}]"

    def class_of(self, k: int) -> str | None:
        """The name of a node's most frequent class, where names are asked for and there is one target."""
        if self.class_names is None or self.tree.n_classes[0] == 1 or self.tree.n_outputs != 1:
            return None
        best = int(np.argmax(self.tree.value[k, 0]))
        return str(self.class_names[best])


def tree_words(
    model: Any,
    feature_names: Any = None,
    class_names: Any = None,
    characters: Characters = Characters(),
    **shown: Any,
) -> TreeWords:
    """The words of a model, with checked names of columns and classes."""
    check_is_fitted(model)
    if not hasattr(model, "tree_"):
        raise DataError(got=f"a {type(model).__name__}", wanted="a fitted decision tree, ours or scikit-learn's")
    d = int(model.tree_.n_features)
    if feature_names is None:
        known = getattr(model, "feature_names_in_", None)
        default = [f"x{characters.before}{j}{characters.behind}" for j in range(d)]
        names = default if known is None else [str(name) for name in known]
    else:
        names = checked_names(feature_names, d)
    return TreeWords(model, names, _class_names(model, class_names, characters), characters=characters, **shown)


def checked_look(look: Mapping[str, Any], more: Sequence[str]) -> dict[str, Any]:
    """What nodes show: names that `TreeWords` knows, or `more`; others are refused."""
    known = ("label", "impurity", "node_ids", "proportion", "precision", *more)
    for name in look:
        if name not in known:
            raise DataError(got=f"{name}={look[name]!r}", wanted=f"names among {', '.join(known)}")
    Setting(choices=("all", "root", "none")).check("label", look.get("label", "all"))
    Setting(int, least=0).check("precision", look.get("precision", 3))
    return dict(look)


def checked_names(feature_names: Any, d: int) -> list[str]:
    """Names of columns, one for each."""
    names = [*feature_names]
    if len(names) != d:
        raise DataError(
            got=f"{len(names)} feature_names", wanted=f"one for each of the {d} columns",
            fix=f"Length of feature_names, {len(names)} does not match number of features, {d}: "
            f"feature_names must contain {d} elements, got {len(names)}.",
        )  # fmt: skip
    if not all(isinstance(name, str) for name in names):
        raise DataError(got=f"feature_names {names}", wanted="words", fix="All feature names must be strings.")
    return names


def _class_names(model: Any, asked: Any, characters: Characters) -> list[str] | None:
    if asked is None or asked is False or not is_classifier(model):
        return None
    classes = np.asarray(model.classes_) if model.tree_.n_outputs == 1 else np.zeros(0)
    if asked is True:
        return [f"y{characters.before}{c}{characters.behind}" for c in range(len(classes))]
    names = [str(name) for name in asked]
    if len(names) != len(classes) and model.tree_.n_outputs == 1:
        raise DataError(
            got=f"{len(names)} class_names", wanted=f"one for each of the {len(classes)} classes",
            fix="When `class_names` is an array, it should contain as many items as `decision_tree.classes_`. "
            f"Got {len(names)} while the tree was fitted with {len(classes)} classes.",
        )  # fmt: skip
    return names


def category_names(model: Any, k: int, left: bool) -> list[str]:
    """The categories that go left, or right, at a node that asks for them, by their labels where they have some."""
    tree = model.tree_
    j = int(tree.feature[k])
    values = tree.category_values[tree.category_first[j] : tree.category_first[j + 1]]
    columns = getattr(model, "feature_names_in_", None)
    labels = getattr(model, "category_labels_", {}).get(str(columns[j])) if columns is not None else None
    names = [f"{v:g}" for v in values] if labels is None else [str(labels[int(v)]) for v in values]
    goes = tree.category_left[tree.category_set[k], : len(values)].astype(bool) == left
    return [name for name, shown in zip(names, goes, strict=True) if shown]


def _rounded(number: float, precision: int) -> str:
    return str(round(float(number), precision)) if math.isfinite(number) else str(float(number))


def subtree_depth(tree: Any, k: int) -> int:
    """The number of levels of the branch that begins at node k."""
    deepest, stack = 0, [(k, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        if tree.children_left[node] >= 0:
            stack += [(int(tree.children_left[node]), depth + 1), (int(tree.children_right[node]), depth + 1)]
    return deepest


def shares_of_colour(model: Any) -> tuple[Array, Array]:
    """For each node the number of its colour (m,) and how strong it is (m,), from 0 to 1.

    Of classes the most frequent one gives the colour, and its lead over the next the strength. Amounts have one
    colour, the stronger the larger; several targets one too, the stronger the purer.
    """
    tree = model.tree_
    m = len(tree.feature)
    none = np.zeros(m, np.int64)
    if tree.n_outputs > 1 or tree.n_classes[0] == 1:
        scale = -np.asarray(tree.impurity) if tree.n_outputs > 1 else np.asarray(tree.value)[:, 0, 0]
        low, high = scale.min(), scale.max()
        return none, (scale - low) / (high - low) if high > low else np.zeros(m)
    share = np.sort(np.asarray(tree.value)[:, 0], axis=1)
    best, second = share[:, -1], share[:, -2]
    return np.argmax(np.asarray(tree.value)[:, 0], axis=1), (best - second) / np.where(second < 1, 1 - second, 1.0)
