"""What a style sheet cannot see: a number keeps its unit on its line, and cells with sentences are known as such."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

BLANK = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:%|(?:ns|µs|ms|s|min|h|kB|MB|GB|TB|nats?|bits?)(?!\w)))")
APART = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
SENTENCE = 40  # characters from which a cell needs room, so that a phone does not set it a word a line


def bound(tree: nodes.document) -> None:
    """The blank between a number and its unit does not break."""
    for text in list(tree.findall(nodes.Text)):
        new = BLANK.sub("\u00a0", text.astext())
        inside = text.parent
        while inside is not None and not isinstance(inside, APART):
            inside = inside.parent
        if inside is None and new != text.astext():
            text.parent.replace(text, nodes.Text(new))


def roomy(tree: nodes.document) -> None:
    """Cells of a table that hold a sentence have the class `sentence`."""
    for cell in tree.findall(nodes.entry):
        if len(cell.astext()) >= SENTENCE:
            cell["classes"].append("sentence")


def both(app: Any, tree: nodes.document) -> None:
    bound(tree)
    roomy(tree)


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", both)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
