"""Every example of the stochastic part runs: in the docstrings, and in docs/stochastic.md from top to bottom."""

import doctest
import importlib
import re
import warnings
from pathlib import Path

import pytest

from unnorm.errors import UnnormWarning

QUICK = (
    "objectives.losses",
    "references.gaussian_mixture",
    "solvers.stochastic.chi",
    "solvers.stochastic.gradient",
    "solvers.stochastic.logz",
)
SLOW = ("solvers.stochastic.sgd", "bayes.sampling", "bayes.langevin", "bayes.nuts")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"unnorm.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.slow
def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[3] / "docs" / "stochastic.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) >= 6
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnnormWarning)  # an example that warns is no example
        for block in blocks:
            exec(compile(block, "docs/stochastic.md", "exec"), names)  # the documentation's own text, not a user's
    said = capsys.readouterr().out
    for word in ("log Z = ", "R-hat"):
        assert word in said
