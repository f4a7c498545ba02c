"""The site: `python docs/build.py` makes docs/_build/html; warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from unnorm import __version__  # noqa: E402

project, author, copyright = "unnorm", "the unnorm authors", "the unnorm authors"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "parts",
    "sentences",
    "mathml",
    "typography",
]
exclude_patterns = ["_build", "_ext", "_tables"]
default_role = "code"
nitpicky = False
smartquotes_action = "q"  # quotes, and no dashes: --by is an option

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]

autodoc_typehints = "none"  # signatures show them as they were written
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
napoleon_use_ivar = True

html_math_renderer = "mathml"
highlight_language = "none"  # what a program prints is no program
html_theme = "pydata_sphinx_theme"
html_title = "unnorm"
html_static_path = ["_static"]
html_css_files = ["unnorm.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
