"""The report on a fitted spatial Markov chain: one HTML file that opens offline.

analysis.py  Analysis: a fit, or the fits of all levels, in one shape
tables.py    the long tables, effects.csv and parameters.csv
findings.py  the paper's findings, asked of the curves
held_out.py  bits for each point of sequences left out
figures.py   SVG figures
page.py      what the page is made of: sections, pictures, tables
sections/    a file and a line in the registry for each section
html.py      the page (report.html, static/)
interactive.py  the numbers behind figures, for the page's script
curves.py    which curves the figures of an analysis show
"""

from .analysis import Analysis, grouped, pooled
from .html import render
from .page import Provenance
from .sections import SECTIONS, make_sections
from .tables import effects_table, parameters_table

__all__ = [
    "SECTIONS",
    "Analysis",
    "Provenance",
    "effects_table",
    "grouped",
    "make_sections",
    "parameters_table",
    "pooled",
    "render",
]
