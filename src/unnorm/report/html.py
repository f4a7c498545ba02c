"""The report as one HTML file: everything inside, nothing fetched, every text from the data escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from .._version import __version__
from . import interactive
from .page import Provenance, Section


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    text = (files("unnorm.report") / "report.html").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(text)


def _static(name: str) -> str:
    return (files("unnorm.report") / "static" / name).read_text(encoding="utf-8")


def render(provenance: Provenance, sections: Sequence[Section]) -> str:
    """The whole page. Only this page's own script may run: its hash is in the content security policy."""
    from markupsafe import Markup

    script = _static("maps.js") + _static("report.js")  # which runs last: it goes through the page
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return _template().render(
        provenance=provenance,
        sections=sections,
        version=__version__,
        script=Markup(script),
        script_hash=digest,
        style=Markup(_static("report.css")),
        curves=Markup(interactive.block(sections)),
        figure_id=interactive.figure_id,
    )
