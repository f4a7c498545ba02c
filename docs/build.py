"""Builds the documentation site with warnings as errors, and checks what was built.

pip install '.[docs]' && python docs/build.py [OUT]      # docs/_build/html/index.html
"""

from __future__ import annotations

import sys
from pathlib import Path

from check import site
from sphinx.cmd.build import main

HERE = Path(__file__).parent
OUT = sys.argv[1] if len(sys.argv) > 1 else str(HERE / "_build" / "html")

if __name__ == "__main__":
    trees = str(HERE / "_build" / "doctrees")
    code = main(["-b", "html", "-W", "--keep-going", "-q", "-E", "-a", "-d", trees, str(HERE), OUT])
    wrong = site(Path(OUT)) if code == 0 else []
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(code or bool(wrong))
