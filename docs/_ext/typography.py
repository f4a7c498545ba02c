"""What a style sheet cannot see: a number keeps its unit on its line, and cells with sentences are known as such."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.ext.napoleon.docstring import GoogleDocstring

BLANK = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:%|(?:ns|µs|ms|s|min|h|kB|MB|GB|TB|nats?|bits?)(?!\w)))")
# a letter, and below it one or two others, or some in braces: y_t, Z_θ, Σ_{j>i}; x_prev is the name of a column
INDEX = re.compile(r"(?:(?<=^[^\W\d_])|(?<=[^\w.][^\W\d_]))(_\{[^{}]+\}|_[a-zθλν0-9]{1,2})(?![A-Za-z0-9_])")
APART = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
WORD = 34  # characters of code that fit on a line of a phone
SENTENCE = 40  # characters from which a cell needs room, so that a phone does not set it a word a line


def bound(tree: nodes.document) -> None:
    """The blank between a number and its unit does not break."""
    for text in list(tree.findall(nodes.Text)):
        new = BLANK.sub("\u00a0", text.astext())
        if new != text.astext() and not within(text, APART):
            text.parent.replace(text, nodes.Text(new))


def lowered(tree: nodes.document) -> None:
    """y_t and f_θ in plain text, as docstrings have them, are set with their indices below the line."""
    for text in list(tree.findall(nodes.Text)):
        parts = INDEX.split(text.astext())
        if len(parts) > 1 and not within(text, APART):
            new: list[nodes.Node] = []
            for i, part in enumerate(parts):
                new += [nodes.Text(part)] if i % 2 == 0 else [nodes.subscript("", part.strip("_{}"))]
            text.parent.replace(text, [node for node in new if node.astext()])


def within(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node is not None


def roomy(tree: nodes.document) -> None:
    """Cells of a table that hold a sentence have the class `sentence`."""
    for cell in tree.findall(nodes.entry):
        if len(cell.astext()) >= SENTENCE:
            cell["classes"].append("sentence")


def breakable(tree: nodes.document) -> None:
    """Code with a word that is as wide as a phone has the class `long`."""
    for code in tree.findall(nodes.literal):
        if max(map(len, code.astext().split()), default=0) > WORD:
            code["classes"].append("long")


def dashed(tree: nodes.document) -> None:
    """An argument and what it is are parted by a dash."""
    for text in list(tree.findall(nodes.Text)):
        if text.astext() == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def as_written(docstring: Any) -> list[str]:
    """The docstring of a property: napoleon takes what stands before a colon for a type, and tears sentences apart."""
    return docstring._consume_to_end()


def every(app: Any, tree: nodes.document) -> None:
    bound(tree)
    lowered(tree)
    roomy(tree)
    breakable(tree)
    dashed(tree)


def setup(app: Any) -> dict[str, bool]:
    GoogleDocstring._parse_attribute_docstring = as_written
    app.connect("doctree-read", every)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
