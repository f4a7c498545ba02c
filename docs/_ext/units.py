"""A number and its unit stay on one line: the blank between them does not break."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

BLANK = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:%|(?:ns|µs|ms|s|min|h|kB|MB|GB|TB|nats?|bits?)(?!\w)))")
APART = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)


def bind(app: Any, tree: nodes.document) -> None:
    for text in list(tree.findall(nodes.Text)):
        bound = BLANK.sub("\u00a0", text.astext())
        inside = text.parent
        while inside is not None and not isinstance(inside, APART):
            inside = inside.parent
        if inside is None and bound != text.astext():
            text.parent.replace(text, nodes.Text(bound))


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", bind)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
