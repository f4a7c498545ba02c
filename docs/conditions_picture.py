"""Draws docs/conditions.png: the effects on OSIE's early and late fixations, and their difference.

In a folder with eye_osie_fixations.csv and eye_osie_image_grid.csv: python docs/conditions_picture.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", (HERE / "conditions.md").read_text(encoding="utf-8"), flags=re.S)
    for block in blocks[:3]:
        exec(compile(block, "docs/conditions.md", "exec"), names)  # the documentation's own text
    names["figure"].savefig(HERE / "conditions.png", dpi=110)


if __name__ == "__main__":
    main()
