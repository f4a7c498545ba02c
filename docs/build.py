"""Builds the documentation site with warnings as errors.

pip install '.[docs]' && python docs/build.py [OUT]      # docs/_build/html/index.html
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import main

HERE = Path(__file__).parent
OUT = sys.argv[1] if len(sys.argv) > 1 else str(HERE / "_build" / "html")

if __name__ == "__main__":
    trees = str(HERE / "_build" / "doctrees")
    sys.exit(main(["-b", "html", "-W", "--keep-going", "-q", "-E", "-a", "-d", trees, str(HERE), OUT]))
