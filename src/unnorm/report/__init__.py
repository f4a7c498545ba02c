"""The report on a fitted spatial Markov chain: one HTML file that opens offline.

run.py       Run: a fit, or the fits of all levels, in one shape; the long tables
findings.py  the paper's findings, asked of the curves
figures.py   SVG figures
collect.py   sections: facts, figures and tables
html.py      the page (report.html, sort.js)
"""

from .collect import About, sections
from .html import render
from .run import Run, effects_table, grouped, parameters_table, pooled

__all__ = ["About", "Run", "effects_table", "grouped", "parameters_table", "pooled", "render", "sections"]
