"""docs/directions.md: every block runs; examples/directions.py runs where the shared data are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "directions.md").read_text(encoding="utf-8")
    blocks, names = re.findall(r"```python\n(.*?)```", text, flags=re.S), {}
    for block in blocks:
        exec(compile(block, "directions.md", "exec"), names)  # the documentation's own text, not a user's
    plt.close("all")
    assert len(blocks) == 9
    assert names["again"].parameters == names["fit"].parameters
    fit, turned, chain, logistic = (names[name] for name in ("fit", "turned", "chain", "logistic"))
    assert abs(fit.parameters["mean"] - (90 - np.degrees(1.0))) < 3 * fit.rows()[0].se
    assert "whole circle" in names["lost"].tidy()["note"][0]
    assert abs(turned.parameters["wind"] - 0.7) < 3 * turned.rows()[2].se
    assert abs(chain.parameters["kappa turn"] - 3.0) < 3 * chain.rows()[1].se
    assert abs(logistic.parameters["kappa"] - fit.parameters["kappa"]) < 0.3 * fit.rows()[1].se
    assert names["cone"] is not None


def test_example(tmp_path: Path) -> None:
    if not (SHARED / "dir_pigeons.csv").exists():
        pytest.skip("the shared data folder is absent")
    picture = tmp_path / "directions.png"
    command = [sys.executable, str(ROOT / "examples" / "directions.py"), str(SHARED), str(picture)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert picture.stat().st_size > 10_000
    # R's circular 0.5-1, mle.vonmises: wind mu 0.2922, kappa 1.768 (AIC 838.1 from its log-likelihood)
    assert re.search(r"von Mises +838\.1", run.stdout)
    assert re.search(r"on +n = 27: mean 55°, interval the whole circle", run.stdout)
