"""Formulas as MathML, which browsers show by themselves: no script, no font and no network is needed."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)
# Commands of LaTeX that docutils has under another name only.
SYNONYMS = {r"\dots": r"\ldots"}


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator, node):
    translator.body.append(f'<span class="math">{_markup(node, as_block=False)}</span>')
    raise nodes.SkipNode


def _display(translator, node):
    translator.body.append(f'<div class="math">{_markup(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _markup(node, as_block):
    try:
        return tex2mathml(spelt_out(node.astext()), as_block=as_block)
    except MathError as error:
        logger.warning("formula %s: %s", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def spelt_out(formula):
    """A formula as docutils reads it: other names, and braces around the digits of a fraction."""
    formula = re.sub(r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", formula)
    return re.sub(r"\\[a-zA-Z]+", lambda command: SYNONYMS.get(command[0], command[0]), formula)
