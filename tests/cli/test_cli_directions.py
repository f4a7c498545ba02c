"""`unnorm directions`: parameters, picture, JSON and the fit; what is typed wrongly ends in one sentence."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.cli import main
from unnorm.directions.reading import read_family

d = un.directions
RNG = np.random.default_rng(8)
N = 60
TABLE = {
    "bearing": np.degrees(RNG.vonmises(1.0, 3.0, N)) % 360,
    "lon": RNG.normal(20, 10, N),
    "lat": RNG.normal(30, 8, N),
    "wind": RNG.normal(size=N),
    "time": np.arange(N),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "birds.csv"
    rows = zip(*(column.tolist() for column in TABLE.values()))
    path.write_text(",".join(TABLE) + "\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows))
    return path


BEARINGS, DEGREES = ["--y", "bearing", "--unit", "bearings"], ["--y", "bearing", "--unit", "degrees"]


def cases() -> dict[str, tuple[list[str], d.Family, un.Observations]]:
    """What is typed, and what it means."""
    angles = un.iid(TABLE, "bearing", unit="degrees")
    space = un.iid(TABLE, ("lon", "lat"), unit="lonlat")
    wind = un.conditional(TABLE, "bearing", "wind", unit="degrees")
    return {
        "bearings": (BEARINGS, d.von_mises(), un.iid(TABLE, "bearing", unit="bearings")),
        "axes": ([*DEGREES, "--axes", "--family", "von-mises"], d.von_mises(un.Axis()), angles),
        "space": (["--y", "lon,lat", "--unit", "lonlat", "--family", "vonmisesfisher"], d.von_mises_fisher(), space),
        "regression": ([*DEGREES, "--family", "regression", "--x", "wind"], d.regression("wind"), wind),
        "chain": (
            [*DEGREES, "--family", "chain", "--order", "time"],
            d.chain(),
            un.transitions(TABLE, "bearing", order="time", unit="degrees"),
        ),
    }


@pytest.mark.parametrize("case", cases())
def test_shell(case: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, family, obs = cases()[case]
    out = tmp_path / "out"
    main(["directions", str(table), *words, "--level", "0.9", "--out", str(out)])
    fit = un.fit_direction(family, obs)
    assert fit.summary(0.9) in capsys.readouterr().out
    files = {"parameters.csv", "summary.txt", "picture.png", "directions.json", "fit"}
    assert {one.name for one in out.iterdir()} == files
    with (out / "parameters.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["term"] for row in rows] == [row.name for row in fit.rows()]
    for name in ("estimate", "lower"):
        np.testing.assert_allclose([float(row[name]) for row in rows], [getattr(one, name) for one in fit.rows(0.9)])
    found = json.loads((out / "directions.json").read_text())
    assert found["parameters"].keys() == fit.parameters.keys()
    assert found["aic"] == pytest.approx(fit.fit.aic)
    assert (out / "picture.png").read_bytes()[1:4] == b"PNG"
    back = un.load(out / "fit")
    assert isinstance(back, un.DirectionFit)
    assert back.parameters == pytest.approx(fit.parameters)
    if case != "axes":
        return
    again = found["command"].split()[2:]  # what it prints repeats the run
    main(["directions", *again, "--out", str(out), "--force", "-q"])
    assert json.loads((out / "directions.json").read_text())["parameters"] == found["parameters"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--y is needed"),
        (["--y", "bearing"], "look like degrees"),
        (["--y", "bearing", "--unit", "compass"], "bearings"),
        (["--y", "heading", "--unit", "degrees"], "heading"),
        (["--y", "bearing", "--unit", "degrees", "--family", "fisher"], "vonmisesfisher"),
        (["--y", "lon,lat", "--unit", "lonlat"], "directions in space: take vonmisesfisher"),
        (["--y", "bearing", "--unit", "lonlat", "--family", "kent"], "two columns"),
        (["--y", "bearing", "--unit", "degrees", "--family", "kent"], "Kent|Sphere|sphere"),
        (["--y", "bearing", "--unit", "degrees", "--x", "wind"], "regression"),
        (["--y", "bearing", "--unit", "degrees", "--order", "time"], "--family chain"),
        (["--y", "bearing", "--unit", "degrees", "--level", "95"], "--level must lie between 0 and 1"),
        (["--y", "bearing,", "--unit", "degrees"], "empty name"),
        (["--y", "lon,lat", "--unit", "lonlat", "--family", "kent", "--axes"], "leave --axes out"),
        (["--y", "bearing", "--unit", "degrees", "--family", "generalisedvonmises(a)"], "whole numbers, its folds"),
        (["--y", "bearing", "--unit", "degrees", "--missing", "ignore"], "--missing"),
    ],
)
def test_bad_input(words: list[str], says: str, table: Path, tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["directions", str(table), *words, "--out", str(tmp_path / "out")])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert re.search(says, said), said
    assert not (tmp_path / "out").exists()


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of docs/directions.md run."""
    page = (Path(__file__).parents[2] / "docs" / "directions.md").read_text(encoding="utf-8")
    lines = re.search(r"```sh\n(.*?)```", page, flags=re.S)
    assert lines is not None
    monkeypatch.chdir(tmp_path)
    table = {**TABLE, "heading": TABLE["bearing"]}
    text = (
        ",".join(table)
        + "\n"
        + "".join(",".join(map(repr, r)) + "\n" for r in zip(*map(np.ndarray.tolist, table.values())))
    )
    for line in lines[1].replace("\\\n", " ").splitlines():
        words = line.split()[1:]
        Path(words[1]).write_text(text)
        main([*words, "-q"])
        assert (tmp_path / words[-1] / "picture.png").exists()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("von_mises", "von Mises on Circle()"),
        ("Von-Mises Fisher", "von Mises–Fisher on Sphere()"),
        ("generalisedvonmises(4)", "generalised von Mises on Circle()"),
        ("bivariatevonmises(cosine)", "bivariate von Mises (cosine model) on Torus()"),
    ],
)
def test_reading(text: str, want: str) -> None:
    assert repr(read_family(text)) == want
