"""docs/conditions.md runs: on its own data in the slow suite, and on eight images of them here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("agg")
ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
TEXT = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
FILES = ("eye_osie_fixations.csv", "eye_osie_image_grid.csv")
pytestmark = [
    pytest.mark.skipif(not (SHARED / FILES[0]).exists(), reason="the real data are not here (../shared/data)"),
    pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning"),
]


def run(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/conditions.md", "exec"), names)  # the documentation's own text, not a user's
    return names


def test_it_runs_on_some_of_the_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        lines = (SHARED / name).read_text().splitlines()
        column = lines[0].split(",").index("image")
        kept = [line for line in lines[1:] if int(line.split(",")[column]) <= 1008]
        (tmp_path / name).write_text("\n".join([lines[0], *kept]) + "\n")
    monkeypatch.chdir(tmp_path)
    light = re.sub(r"s\(step, k=8\).*?k=6\)", "s(step, k=5) + s(edge, k=4)", TEXT)
    light = light.replace("objective=un.Logistic(per_point=5)", "objective=un.Logistic(per_point=3), normaliser=CHI")
    light = light.replace("window = un.Box", 'CHI = un.Smooth("s(x_prev, y_prev, k=8)")\nwindow = un.Box')
    names = run(light)
    assert names["groups"].conditions.design == "between"
    assert names["phases"].conditions.design == "within"
    assert names["axes"].shape == (2, 2)


@pytest.mark.slow
def test_it_says_what_it_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SHARED)
    names = run(TEXT)
    for which in ("groups", "phases"):
        found = names[which].conditions
        printed = TEXT[
            TEXT.index("conditions of 'pace'") if which == "groups" else TEXT.index("term contrast  statistic") :
        ]
        for term, p in zip(found.tests["term"], found.tests["p"]):
            row = re.search(rf"{re.escape(str(term))} +all .*?(\d\.\d+) +(?:—|NaN)", printed)
            assert row is not None
            assert float(row[1]) == pytest.approx(float(p), abs=0.006)
