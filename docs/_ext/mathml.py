"""Formulas as MathML, which browsers set by themselves: no script, no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

# A hat is one character with its letter: fonts without tables for mathematics set it on the letter, unseen.
HAT = re.compile(r'<mover accent="true"> <mi>(\w)</mi> <mo stretchy="false">[\u02c6^]</mo> </mover>')
APPLIED = re.compile(r"<mo>&ApplyFunction;</mo>(?= ?(<mo[^>]*>[({])?)")  # after log and exp, which need a thin space


def markup(tex: str, block: bool) -> str:
    """LaTeX as MathML on one line."""
    made = " ".join(line.strip() for line in tex2mathml(tex).splitlines())
    made = HAT.sub("<mi>\\1\u0302</mi>", made)
    made = APPLIED.sub(lambda found: "" if found[1] else '<mspace width=".17em"></mspace>', made)
    return made.replace("<math ", '<math display="block" ', 1) if block else made


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(markup(node.astext(), block=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    formulas = [one for one in node.astext().split("\n\n") if one.strip()]
    writer.body.append(f'<div class="formula">{"".join(markup(one, block=True) for one in formulas)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
