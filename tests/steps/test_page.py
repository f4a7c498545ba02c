"""docs/steps.md: every block runs, on the deer where ../shared/data is, else on a simulated track of the same shape;
examples/deer.py and `unnorm steps` likewise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import unnorm as un
from steps.walks import walk, wood
from unnorm.cli import main

mpl.use("Agg")
ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
FILES = ("animal_deer_track.csv", "animal_deer_forest_grid.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two files."""
    if all((SHARED / name).exists() for name in FILES):
        return SHARED
    made = tmp_path_factory.mktemp("deer")
    points = walk(400, np.random.default_rng(1), lambda y, _, t: 1.5 * wood(*y.T))
    times = pd.date_range("2024-03-01", periods=400, freq="6h").strftime("%Y-%m-%dT%H:%M:%SZ")
    pd.DataFrame({"time": times, "x": points[:, 0], "y": points[:, 1], "burst": np.arange(400) // 80}).to_csv(
        made / FILES[0], index=False
    )
    x, y = (a.ravel() for a in np.meshgrid(np.arange(50.0, 20_000.0, 100.0), np.arange(50.0, 20_000.0, 100.0)))
    pd.DataFrame({"x": x, "y": y, "frac_forest": wood(x, y)}).to_csv(made / FILES[1], index=False)
    return made


def test_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    monkeypatch.chdir(folder)
    text = (ROOT / "docs" / "steps.md").read_text(encoding="utf-8")
    blocks, names = re.findall(r"```python\n(.*?)```", text, flags=re.S), {}
    for block in blocks:
        exec(compile(block, "steps.md", "exec"), names)  # the documentation's own text, not a user's
    plt.close("all")
    assert len(blocks) == 6
    logistic, ranking = names["logistic"].fit, names["ranking"].fit
    np.testing.assert_array_less(np.abs(logistic.estimate - ranking.estimate) / ranking.se, 0.5)  # 20 points each
    assert names["both"].movement()["parameter"].tolist() == ["shape", "scale", "mean", "kappa"]
    assert names["utilisation"].probability.sum() == pytest.approx(1.0)
    assert (ROOT / "docs" / "steps.png").exists()


def test_the_example(folder: Path, tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "examples" / "deer.py"), str(folder), str(tmp_path / "deer.png")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Utilisation(" in done.stdout
    assert (tmp_path / "deer.png").stat().st_size > 10_000


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = [
        "steps",
        str(folder / FILES[0]),
        "--burst",
        "burst",
        "--map",
        f"forest={folder / FILES[1]},interpolate=nearest",
    ]
    more = ["--unit", "metres", "--figures", "svg", "--json"]
    main([*words, "--terms", "forest", "--integrated", "--references", "10", "--rows", "--out", str(out), *more])
    told = json.loads(capsys.readouterr().out)
    made = {path.name for path in out.iterdir()}
    assert made == {
        *("parameters.csv", "movement.csv", "utilisation.csv", "rows.csv", "summary.txt", "steps.json", "report.html"),
        *("fit", "figures"),
    }
    drawn = sorted(path.name for path in (out / "figures").iterdir())
    assert drawn[0] == "01-track-the-track-over-forest.svg"
    assert {name.split("-")[1] for name in drawn} == {
        *("track", "movement", "strength", "calibration", "utilisation", "simulated"),
    }
    assert "x (m)" in (out / "figures" / drawn[0]).read_text(encoding="utf-8")
    page = (out / "report.html").read_text(encoding="utf-8")
    for title in ("Track", "Selection", "Movement", "Calibration", "Utilisation", "Simulated tracks"):
        assert f">{title}<" in page
    assert "The settings are also in steps.json" in page
    assert re.search(r"<dt>kernel</dt><dd>gamma \(shape [\d.]+, scale [\d.]+\) steps; von Mises \(mean ", page)
    numbers = json.loads(re.findall(r'<script type="application/json" id="curves">(.*?)</script>', page)[0])
    assert [one["value"] for one in numbers["maps"].values()] == ["share of time"]
    assert "calibration-1" in numbers["charts"]
    about = json.loads((out / "steps.json").read_text())
    assert set(about["parameters"]) == {"forest", "step", "log_step", "cos_turn"}
    assert about == told
    assert about["command"].startswith("unnorm steps ")
    assert "--json" not in about["command"]
    assert not re.search(r"<td[^>]*>-?0\.0000<", page)  # slopes for each metre have figures
    rows = pd.read_csv(out / "rows.csv")
    assert set(rows["case"]) == {0, 1}
    again = tmp_path / "again"
    main([*about["command"].split()[1:2], *_words(about["command"])[2:], "--out", str(again), "-q"])
    assert (again / "parameters.csv").read_text() == (out / "parameters.csv").read_text()
    with pytest.raises(SystemExit):
        main([*words, "--terms", "forest", "--out", str(out)])  # exists
    assert "--force" in capsys.readouterr().err


def _words(command: str) -> list[str]:
    import shlex

    return shlex.split(command)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--terms is needed"),
        (["--terms", "forest"], "There is no covariate 'forest'"),
        (["--terms", "x", "--rate", "6h"], "--rate and --tolerance go together"),
        (["--terms", "x", "--max-gap", "soon"], "max_gap must be a positive duration"),
        (["--terms", "x", "--step", "cauchy"], "step"),
        (["--terms", "x", "--at", "night"], "--at must be NAME=NUMBER"),
        (["--terms", "x", "--covariate", "far"], "--covariate must be NAME=EXPRESSION"),
        (["--terms", "x", "--time", "when"], "There is no column 'when'"),
    ],
)
def test_what_the_command_refuses(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "track.csv"
    points = 5_000 + np.cumsum(np.random.default_rng(1).normal(0, 100, (60, 2)), axis=0)
    pd.DataFrame({"time": np.arange(60) * 3600, "x": points[:, 0], "y": points[:, 1]}).to_csv(data, index=False)
    with pytest.raises(SystemExit) as end:
        main(["steps", str(data), *options, "--out", str(tmp_path / "out")])
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_many_animals() -> None:
    """Random slopes of single animals, and a fit of each: spread around the population's, and shrunken to it."""
    slopes = (0.5, 1.5, 2.5, 3.5)
    parts = [
        walk(151, np.random.default_rng(50 + i), lambda y, _, t, b=b: b * wood(*y.T)) for i, b in enumerate(slopes)
    ]
    table = {
        "t": np.tile(np.arange(151) * 3600.0, 4), "x": np.concatenate(parts)[:, 0], "y": np.concatenate(parts)[:, 1],
        "id": np.repeat([f"deer {i}" for i in range(4)], 151),
    }  # fmt: skip
    track = un.track(table, time="t", x="x", y="y", animal="id")
    from steps.walks import wood_map

    fit = un.fit_steps(track, "forest + s(animal, forest, bs='re')", maps=wood_map(), rng=1)
    own = fit.fit.effect("s(animal,forest)", at={"animal": [f"deer {i}" for i in range(4)], "forest": np.ones(4)})
    found = fit.fit.theta["forest"] + np.asarray(own["estimate"])
    assert np.corrcoef(found, slopes)[0, 1] > 0.8
    each = un.fit_each(
        fit.fit.model, track.observations(), by="animal", objective=un.Ranking(fit.kernel, per_point=10), rng=1
    )
    assert set(each.fits) == {f"deer {i}" for i in range(4)}
