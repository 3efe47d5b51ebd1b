"""A picture of a tree: questions from the top down, nodes coloured by what they say, edges as thick as their rows."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from certifit.core import Setting
from certifit.plots.style import COLOURS, GREY, new_axes, plain
from certifit.rows import Array
from certifit.tree.node_words import TreeWords, checked_look, shares_of_colour, tree_words


@dataclass(frozen=True)
class TreePictureTuning:
    """Sizes of a picture, in inches, points and letters."""

    leaf_width: float = 1.5
    level_height: float = 1.3
    font_size: float = 9.0
    least_font: float = 2.0
    line_letters: int = 26
    strip_points: float = 5.0  # height of the strip with the shares of the classes
    edge_points: float = 6.0  # width of an edge that all rows take


@dataclass
class PlacedNode:
    """A node in the picture."""

    number: int  # -1 for what is cut off below
    x: float
    depth: int
    children: list[PlacedNode] = field(default_factory=list)


def plot_tree(
    decision_tree: Any, *, max_depth: int | None = None, feature_names: Any = None, class_names: Any = None,
    ax: Axes | None = None, fontsize: float | None = None, **look: Any,
) -> list[Any]:  # fmt: skip
    """Draw a tree.

    Rows for which a node's question is true go to the left. Edges are as thick as their share of the rows; below the
    box of a node of classes lies a strip with their shares.

    Parameters
    ----------
    decision_tree : a fitted tree, ours or scikit-learn's
    max_depth : int or None
        Deepest level that is drawn; None for all.
    feature_names, class_names : arrays of words, optional; class_names=True writes y[0], y[1], …
    ax : Axes, optional
        Where to draw; those of a new figure, as large as the tree needs, unless given.
    fontsize : float or None
        In points; None: as large as the boxes allow.
    **look : what nodes show, by scikit-learn's names
        label='all', 'root' or 'none': nodes whose numbers are named; filled=True, rounded=True: boxes are coloured,
        the stronger the purer, and have round corners; impurity=True, node_ids=False, proportion=False: nodes tell
        their impurity, their number, and shares instead of counts; precision=3 digits behind the point.

    Returns
    -------
    list of the texts: nodes, depth first, and the two answers below the root

    Examples
    --------
    >>> from certifit import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["low", "low", "high"])
    >>> print(plot_tree(model, feature_names=["size"])[0].get_text())
    size <= 1.5
    gini = 0.444
    samples = 3
    value = [1, 2]
    """
    Setting(int, least=0, none=True).check("max_depth", max_depth)
    chosen = checked_look(look, ("filled", "rounded"))
    filled, rounded = chosen.pop("filled", True), chosen.pop("rounded", True)
    words = tree_words(decision_tree, feature_names, class_names, **chosen)
    return _TreePicture(words, TreePictureTuning(), filled, rounded, fontsize).draw(max_depth, ax)


def _placed(tree: Any, most: int | None) -> tuple[PlacedNode, int]:
    """The nodes at their places, leaves one unit apart, parents above the middle of their children; and the width."""
    leaves = 0

    def place(k: int, depth: int) -> PlacedNode:
        nonlocal leaves
        if most is not None and depth > most:
            found = PlacedNode(-1, leaves, depth)
            leaves += 1
        elif tree.children_left[k] < 0:
            found = PlacedNode(k, leaves, depth)
            leaves += 1
        else:
            children = [place(int(child), depth + 1) for child in (tree.children_left[k], tree.children_right[k])]
            found = PlacedNode(k, (children[0].x + children[1].x) / 2, depth, children)
        return found

    return place(0, 0), leaves


def _walk(node: PlacedNode) -> list[PlacedNode]:
    """All nodes, depth first."""
    return [node, *(below for child in node.children for below in _walk(child))]


class _TreePicture:
    """Draws one tree on axes whose units are the leaves and the levels."""

    def __init__(
        self, words: TreeWords, tuning: TreePictureTuning, filled: bool, rounded: bool, size: float | None
    ) -> None:
        self.words, self.tuning, self.filled, self.rounded, self.size = words, tuning, filled, rounded, size
        self.number, self.strength = shares_of_colour(words.model)

    def draw(self, most: int | None, ax: Axes | None) -> list[Any]:
        root, leaves = _placed(self.words.tree, most)
        nodes = _walk(root)
        levels = max(node.depth for node in nodes) + 1
        width = max(3.2, self.tuning.leaf_width * leaves)
        own = ax is None
        ax = new_axes(ax, width, max(2.0, self.tuning.level_height * levels))
        if own:
            _fill_figure(ax)
        ax.set_xlim(-0.55, leaves - 0.45)
        ax.set_ylim(-(levels - 0.45), 0.5)
        ax.set_axis_off()
        self._edges(ax, root)
        boxes = [self._box(ax, node) for node in nodes]
        answers = self._answers(ax, root) if root.children else []
        size = self._font(ax, nodes, boxes) if self.size is None else self.size
        for text in (*boxes, *answers):
            text.set_fontsize(size)
        self._strips(ax, nodes, boxes)
        self._legend(ax)
        ordered = [*boxes]
        for answer, child in zip(answers, root.children, strict=False):
            ordered.insert(ordered.index(boxes[nodes.index(child)]) + 1, answer)
        return ordered

    def _box(self, ax: Axes, node: PlacedNode) -> Any:
        lines = ["(...)"] if node.number < 0 else self.words.lines(node.number)
        wrapped = [textwrap.fill(line, self.tuning.line_letters) for line in lines]
        colour = self._colour(node.number)
        box = {
            "boxstyle": "round,pad=0.35" if self.rounded else "square,pad=0.35",
            "fc": colour,
            "ec": GREY,
            "lw": 0.8,
        }
        text = ax.text(node.x, -node.depth, "\n".join(wrapped), ha="center", va="center", bbox=box, linespacing=1.25)
        text.set_color("white" if _lightness(colour) < 0.45 else "black")
        plain(text)
        return text

    def _colour(self, k: int) -> Any:
        if k < 0:
            return (0.85, 0.85, 0.85)
        if not self.filled:
            return (1.0, 1.0, 1.0)
        strength = 0.85 * float(self.strength[k])  # dark enough to see, light enough to read on
        return tuple(strength * part + 1 - strength for part in to_rgb(COLOURS[self.number[k] % len(COLOURS)]))

    def _edges(self, ax: Axes, root: PlacedNode) -> None:
        count = self.words.tree.n_node_samples
        for node in _walk(root):
            ids = (self.words.tree.children_left, self.words.tree.children_right)
            for child, side in zip(node.children, ids, strict=False):
                share = count[side[node.number]] / count[0]
                width = 0.6 + self.tuning.edge_points * share
                ax.plot([node.x, child.x], [-node.depth, -child.depth], color=GREY, lw=width, alpha=0.55, zorder=0)

    def _answers(self, ax: Axes, root: PlacedNode) -> list[Any]:
        """The words beside the first two edges."""
        left, right = root.children
        told = ((left, "True  ", "right"), (right, "  False", "left"))
        return [
            ax.text((root.x + child.x) / 2, -0.5, word, ha=side, va="bottom", color=GREY)
            for child, word, side in told
        ]

    def _font(self, ax: Axes, nodes: list[PlacedNode], boxes: list[Any]) -> float:
        """The largest size at which boxes neither meet nor leave the picture."""
        for text in boxes:
            text.set_fontsize(self.tuning.font_size)
        renderer = _renderer(ax)
        sizes = np.array([[box.width, box.height] for box in (self._extent(text, renderer) for text in boxes)])
        x, depth = np.array([node.x for node in nodes]), np.array([node.depth for node in nodes])
        unit = np.abs(ax.transData.transform((1, 1)) - ax.transData.transform((0, 0)))
        left, right = ax.get_xlim()
        edge = 2 * np.minimum(x - left, right - x) * unit[0]  # as wide as a box may be there
        fits = [float(0.74 * unit[1] / sizes[:, 1].max()), float((0.97 * edge / sizes[:, 0]).min())]
        for level in range(depth.max() + 1):
            here = np.flatnonzero(depth == level)
            here = here[np.argsort(x[here])]
            apart, wide = np.diff(x[here]) * unit[0], (sizes[here[1:], 0] + sizes[here[:-1], 0]) / 2
            fits += [float(0.9 * a / b) for a, b in zip(apart, wide, strict=True)]
        return max(self.tuning.least_font, self.tuning.font_size * min(1.15, *fits))

    @staticmethod
    def _extent(text: Any, renderer: Any) -> Any:
        text.update_bbox_position_size(renderer)
        return text.get_bbox_patch().get_window_extent(renderer)

    def _strips(self, ax: Axes, nodes: list[PlacedNode], boxes: list[Any]) -> None:
        """A strip below every box with the shares of its classes."""
        tree = self.words.tree
        if not self.filled or tree.n_outputs > 1 or tree.n_classes[0] < 2:
            return
        renderer = _renderer(ax)
        high = (
            self.tuning.strip_points
            * renderer.points_to_pixels(1.0)
            * min(1.0, boxes[0].get_fontsize() / self.tuning.font_size)
        )
        to_data = ax.transData.inverted()
        for node, text in zip(nodes, boxes, strict=True):
            if node.number < 0:
                continue
            box = self._extent(text, renderer)
            (x0, y0), (x1, y1) = to_data.transform([(box.x0, box.y0 - 1.3 * high), (box.x1, box.y0 - 0.3 * high)])
            self._strip(ax, np.asarray(tree.value[node.number, 0]), (x0, y0, x1 - x0, y1 - y0))

    @staticmethod
    def _strip(ax: Axes, share: Array, place: tuple[float, float, float, float]) -> None:
        x, y, width, height = place
        for c, part in enumerate(share / share.sum()):
            if part > 0:
                ax.add_patch(Rectangle((x, y), width * part, height, fc=COLOURS[c % len(COLOURS)], lw=0, zorder=3))
                x += width * part

    def _legend(self, ax: Axes) -> None:
        """The colours of the classes."""
        tree, model = self.words.tree, self.words.model
        if not self.filled or tree.n_outputs > 1 or tree.n_classes[0] < 2 or tree.n_classes[0] > len(COLOURS):
            return
        names = self.words.class_names if self.words.class_names is not None else model.classes_
        patches = [Patch(color=COLOURS[c], label=str(name)) for c, name in enumerate(names)]
        legend = ax.legend(handles=patches, loc="upper left", frameon=False, fontsize=8, title="class")
        plain(*legend.get_texts())


def _renderer(ax: Axes) -> Any:
    """What measures texts, on any backend, after the figure has laid out its axes."""
    from matplotlib.backends.backend_agg import RendererAgg

    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    return RendererAgg(*figure.bbox.size, figure.dpi)


def _fill_figure(ax: Axes) -> None:
    """Let axes that have no ticks and labels take all of their figure."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.set_layout_engine("none")
    ax.set_position((0.0, 0.0, 1.0, 1.0))


def _lightness(colour: Any) -> float:
    """How light a colour looks, from 0 to 1 (Rec. 709)."""
    return float(np.dot([0.2126, 0.7152, 0.0722], colour))
