"""Trees as text and in the language of Graphviz, as scikit-learn writes them; its own trees are taken as well."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.tree.node_words import (
    Characters,
    TreeWords,
    category_names,
    checked_look,
    checked_names,
    shares_of_colour,
    subtree_depth,
    tree_words,
)


def export_text(
    decision_tree: Any, *, feature_names: Any = None, class_names: Any = None, max_depth: int = 10, spacing: int = 3,
    decimals: int = 2, show_weights: bool = False,
) -> str:  # fmt: skip
    """Write the rules of a tree as text.

    Parameters
    ----------
    decision_tree : a fitted tree, ours or scikit-learn's
    feature_names, class_names : arrays of words, optional
    max_depth : int
        Deepest level that is written; what lies below is told by its depth.
    spacing : int
        Spaces by which a level is moved to the right.
    decimals : int
    show_weights : bool
        Whether leaves tell the weight of each class.

    Returns
    -------
    str

    Examples
    --------
    >>> from certifit import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["low", "low", "high"])
    >>> print(export_text(model, feature_names=["size"]))
    |--- size <= 1.50
    |   |--- class: low
    |--- size >  1.50
    |   |--- class: high
    <BLANKLINE>
    """
    for name, value, least in (("max_depth", max_depth, 0), ("spacing", spacing, 1), ("decimals", decimals, 0)):
        Setting(int, least=least).check(name, value)
    words = tree_words(decision_tree, class_names=class_names)
    d, known = words.tree.n_features, getattr(decision_tree, "feature_names_in_", None)
    names = [f"feature_{j}" for j in range(d)] if known is None else [str(name) for name in known]
    names = names if feature_names is None else checked_names(feature_names, d)
    return "".join(_text_lines(words, names, max_depth, spacing, decimals, show_weights))


def _text_lines(
    words: TreeWords, names: list[str], most: int, spacing: int, decimals: int, weights: bool
) -> list[str]:
    tree, lines = words.tree, []
    stack: list[tuple[int, int, str]] = [(0, 0, "")]  # node, depth, and the rule that leads to it
    while stack:
        k, depth, rule = stack.pop()
        if rule:
            lines.append(f"{_indent(depth, spacing)} {rule}\n")
        indent = _indent(depth + 1, spacing)
        if words.is_leaf(k):
            lines.append(f"{indent} {_leaf_words(words, k, decimals, weights)}\n")
        elif depth > most:
            lines.append(f"{indent} truncated branch of depth {subtree_depth(tree, k)}\n")
        else:
            name, chosen = names[tree.feature[k]], getattr(tree, "category_set", ())
            if len(chosen) and chosen[k] >= 0:
                group = "{" + ", ".join(category_names(words.model, k, True)) + "}"
                rules = f"{name} in {group}", f"{name} not in {group}"
            elif words.parts_missing(k):
                rules = f"{name} is not missing", f"{name} is missing"
            else:
                at = f"{tree.threshold[k]:.{decimals}f}"
                rules = f"{name} <= {at}", f"{name} >  {at}"
            stack += [
                (int(tree.children_right[k]), depth + 1, rules[1]),
                (int(tree.children_left[k]), depth + 1, rules[0]),
            ]
    return lines


def _indent(depth: int, spacing: int) -> str:
    return ("|" + " " * spacing) * (depth - 1) + "|" + "-" * spacing


def _leaf_words(words: TreeWords, k: int, decimals: int, weights: bool) -> str:
    tree = words.tree
    values = np.asarray(tree.value[k])
    if tree.n_classes[0] == 1 and not hasattr(words.model, "classes_"):
        return f"value: [{', '.join(f'{v:.{decimals}f}' for v in values[:, 0])}]"
    if tree.n_outputs > 1:
        best = [classes[int(np.argmax(share))] for classes, share in zip(words.model.classes_, values, strict=True)]
        return f"class: {best}"
    names = words.model.classes_ if words.class_names is None else words.class_names
    told = f"class: {names[int(np.argmax(values[0]))]}"
    if not weights:
        return told
    mass = values[0] * tree.weighted_n_node_samples[k]
    return f"weights: [{', '.join(f'{v:.{decimals}f}' for v in mass)}] {told}"


def export_graphviz(
    decision_tree: Any, out_file: Any = None, *, max_depth: int | None = None, feature_names: Any = None,
    class_names: Any = None, fontname: str = "helvetica", **look: Any,
) -> str | None:  # fmt: skip
    """Write a tree in Graphviz's language, dot.

    Parameters
    ----------
    decision_tree : a fitted tree, ours or scikit-learn's
    out_file : a file or its name; None: the text is returned
    max_depth : int or None
        Deepest level that is written; None for all.
    feature_names, class_names : arrays of words, optional; class_names=True writes y[0], y[1], …
    fontname : str
    **look : what nodes show, by scikit-learn's names
        label='all', 'root' or 'none': nodes whose numbers are named; filled=False: coloured by class or amount, the
        stronger the purer; impurity=True, node_ids=False, proportion=False: nodes tell their impurity, their number,
        and shares instead of counts; precision=3 digits behind the point; leaves_parallel=False, rotate=False,
        rounded=False: leaves at the bottom, growing to the right, round corners; special_characters=False: ≤ and
        subscripts as HTML.

    Returns
    -------
    str, or None where a file is written

    Examples
    --------
    >>> from certifit import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["low", "low", "high"])
    >>> print(export_graphviz(model, feature_names=["size"]).splitlines()[3])
    0 [label="size <= 1.5\\ngini = 0.444\\nsamples = 3\\nvalue = [1, 2]"] ;
    """
    graph = ("filled", "rounded", "rotate", "leaves_parallel", "special_characters")
    chosen = checked_look(look, graph)
    filled, rounded, rotate, leaves_parallel, special = (bool(chosen.pop(name, False)) for name in graph)
    characters = Characters("&le;", "<SUB>", "</SUB>", "<br/>") if special else Characters(new_line="\\n")
    words = tree_words(decision_tree, feature_names, class_names, characters, **chosen)
    style = [word for word, wanted in (("filled", filled), ("rounded", rounded)) if wanted]
    shape = f'shape=box, style="{", ".join(style)}", color="black"' if style else "shape=box"
    lines = ["digraph Tree {", f'node [{shape}, fontname="{fontname}"] ;']
    if leaves_parallel:
        lines.append("graph [ranksep=equally, splines=polyline] ;")
    lines.append(f'edge [fontname="{fontname}"] ;')
    if rotate:
        lines.append("rankdir=LR ;")
    fills = _fills(decision_tree) if filled else None
    lines += _dot_nodes(words, max_depth, fills, rotate, special)
    if leaves_parallel:
        lines += _dot_ranks(words.tree, max_depth)
    text = "\n".join([*lines, "}"])
    if out_file is None:
        return text
    if isinstance(out_file, str):
        with open(out_file, "w", encoding="utf-8") as file:
            file.write(text)
    elif hasattr(out_file, "write"):
        out_file.write(text)
    else:
        raise DataError(got=f"out_file={out_file!r}", wanted="a file, its name or None")
    return None


def _dot_nodes(words: TreeWords, most: int | None, fills: list[str] | None, rotate: bool, html: bool) -> list[str]:
    """A line for each node and for each edge, depth first."""
    tree, lines = words.tree, []
    stack: list[tuple[int, int, int]] = [(0, -1, 0)]  # node, parent, depth
    while stack:
        k, parent, depth = stack.pop()
        if most is not None and depth > most:
            grey = ', fillcolor="#C0C0C0"' if fills else ""
            lines.append(f'{k} [label="(...)"{grey}] ;')
            lines.append(f"{parent} -> {k} ;")
            continue
        label = "<br/>".join(words.lines(k)) if html else "\\n".join(_quoted(line) for line in words.lines(k))
        fill = f', fillcolor="{fills[k]}"' if fills else ""
        lines.append(f"{k} [label=<{label}>{fill}] ;" if html else f'{k} [label="{label}"{fill}] ;')
        if parent >= 0:
            left = tree.children_left[parent] == k
            angle, word = (45 if left != rotate else -45), "True" if left else "False"
            note = f'[labeldistance=2.5, labelangle={angle}, headlabel="{word}"] ' if parent == 0 else ""
            shown = note if most is None or most > 0 else ""
            lines.append(f"{parent} -> {k} {shown};")
        if not words.is_leaf(k):
            stack += [(int(tree.children_right[k]), k, depth + 1), (int(tree.children_left[k]), k, depth + 1)]
    return lines


def _quoted(line: str) -> str:
    return line.replace('"', r"\"")


def _dot_ranks(tree: Any, most: int | None) -> list[str]:
    """Lines that put nodes of one depth side by side, and all leaves at the bottom."""
    ranks: dict[str, list[int]] = {"leaves": []}
    stack = [(0, 0)]
    while stack:
        k, depth = stack.pop()
        if tree.children_left[k] < 0 or (most is not None and depth > most):
            ranks["leaves"].append(k)
            continue
        ranks.setdefault(str(depth), []).append(k)
        stack += [(int(tree.children_right[k]), depth + 1), (int(tree.children_left[k]), depth + 1)]
    return [f"{{rank=same ; {'; '.join(map(str, ranks[rank]))}}} ;" for rank in sorted(ranks)]


def _fills(model: Any) -> list[str]:
    """A colour for each node: hues at equal distances, mixed with white."""
    number, strength = shares_of_colour(model)
    kinds = 1 if model.tree_.n_outputs > 1 else max(1, int(model.tree_.n_classes[0]))
    hues = [colorsys.hsv_to_rgb(((25 + 360 * c // kinds) % 360) / 360, 0.75, 0.9) for c in range(kinds)]
    return [_mixed_with_white(hues[c], s) for c, s in zip(number, strength, strict=True)]


def _mixed_with_white(colour: tuple[float, float, float], strength: float) -> str:
    parts = [round(int(255 * part) * strength + 255 * (1 - strength)) for part in colour]
    return "#" + "".join(f"{part:02x}" for part in parts)
