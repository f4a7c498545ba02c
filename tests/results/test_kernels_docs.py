"""Every code block of docs/kernels.md runs, in order."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings(
    "ignore::unnorm.errors.UnnormWarning"
)  # penalised χ, and few functions for a curve


def test_the_page_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) == 4
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/kernels.md", "exec"), names)  # the documentation's own text, not a user's
    path, ml, many = names["path"], names["ml"], names["many"]
    assert path.converged
    assert np.all(np.abs(path.fit.estimate - ml.estimate) < 0.045 * ml.se)
    assert np.all(np.abs(many.estimate - [2.0, 1.0]) < 3 * many.se)
