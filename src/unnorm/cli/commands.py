"""The commands of `unnorm`."""

from __future__ import annotations

from cyclopts import App

from .. import __version__
from . import compare, demo, directions, fit, pattern, report, reproduce, simulate, steps

app = App(
    name="unnorm",
    help="Models known up to a constant, by the Poisson transform. Begin with: unnorm demo",
    version=__version__,
)
for _command in (
    *(fit.fit, pattern.pattern, directions.directions, demo.demo, simulate.simulate, report.report, compare.compare),
    *(steps.steps, reproduce.app),
):
    app.command(_command)
