"""The parts that CONTRIBUTING.md shows, made by running its examples."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example(heading: str) -> dict[str, Any]:
    """What the first Python block under `### heading` defines, by name."""
    block = re.search(rf"^### {heading}\n(?:(?!^###).)*?^```python\n(.*?)^```", TEXT, flags=re.S | re.M)
    assert block is not None, f"CONTRIBUTING.md has no example under {heading!r}"
    module = types.ModuleType("contributing_" + re.sub(r"\W+", "_", heading))
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(block.group(1), "CONTRIBUTING.md", "exec"), module.__dict__)
    return module.__dict__


def registry_line(heading: str) -> str:
    """The line that CONTRIBUTING.md adds to a registry under this heading."""
    line = re.search(rf"^### {heading}\n(?:(?!^###).)*?`(from \.\w+ import \w+ as \w+)`", TEXT, flags=re.S | re.M)
    assert line is not None, f"CONTRIBUTING.md has no registry line under {heading!r}"
    return line.group(1)
