"""docs/patterns.md: every block runs; and `unnorm pattern` writes what Python computes."""

import csv
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figures import read

import unnorm as un
from unnorm.cli import main

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the page's blocks leave behind; they read the repository's fixtures and save a fit."""
    text = (DOCS / "patterns.md").read_text(encoding="utf-8")
    blocks, names = re.findall(r"```python\n(.*?)```", text, flags=re.S), {"text": text}
    assert len(blocks) == 9
    folder = tmp_path_factory.mktemp("page")
    (folder / "tests").symlink_to(DOCS.parent / "tests")
    before = Path.cwd()
    os.chdir(folder)
    try:
        for block in blocks:
            exec(compile(block, "patterns.md", "exec"), names)  # the documentation's own text, not a user's
    finally:
        os.chdir(before)
    return names


def test_page(page: dict[str, Any]) -> None:
    fit, strauss = page["fit"], page["strauss"]
    assert abs(fit.theta["elev"] - 1.2) < 3 * fit.se[1]
    assert abs(strauss.theta["strauss"] - np.log(0.3)) < 3 * strauss.se[1]
    assert page["inside"].p > 0.02
    assert page["csr"].p <= 0.05 < page["own"].p
    assert page["again"].summary() == page["mixed"].summary()


def test_page_side_by_side(page: dict[str, Any]) -> None:
    """R's figures on the page are those of the fixtures, and the page's fit has them."""
    shown = re.findall(r"^(\S+) +(-?\d\.\d{7}) (\d\.\d{7})$", page["text"], flags=re.M)
    table = read("fits.csv")
    here = table["case"] == "marked"
    assert [row[0] for row in shown] == table["term"][here].tolist()
    for column, k in (("estimate", 1), ("se", 2)):
        figures = np.array([float(row[k]) for row in shown])
        np.testing.assert_allclose(figures, table[column][here].astype(float), atol=5.1e-8)
        np.testing.assert_allclose(getattr(page["both"], column), figures, atol=2e-7)
    for name in "KG":
        (row,) = re.findall(rf"^{name} ([\d. ]+)$", page["text"], flags=re.M)
        figures = np.array(row.split(), float)
        np.testing.assert_allclose(page[name], figures, atol=5.1e-8)
        known = read("functions.csv")
        column = (known["case"] == f"star {name}") & (known["column"] == ("iso" if name == "K" else "km"))
        assert all(np.abs(known["value"][column].astype(float) - one).min() < 5.1e-8 for one in figures)


@pytest.fixture
def points(tmp_path: Path) -> tuple[Path, un.Pattern]:
    made = un.patterns.process(un.Box((0, 10), (0, 5)), lambda xy: 0.5 + 0.2 * xy[:, 0], un.Strauss(0.3), [-1.0])
    one = made.simulate(rng=1)[0]
    path = tmp_path / "points.csv"
    path.write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in one.xy.tolist()))
    (tmp_path / "grid.csv").write_text("x,y,elev\n" + "".join(f"{x},{y},{x}\n" for x in range(11) for y in range(6)))
    return path, one


def test_shell(points: tuple[Path, un.Pattern], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, pattern = points
    out = tmp_path / "out"
    words = ["--window", "0,10,0,5", "--map", f"elev={tmp_path / 'grid.csv'}", "--terms", "elev", "--simulations", "19"]
    main(["pattern", str(path), *words, "--interaction", "strauss(0.3)", "--seed", "3", "--out", str(out)])
    assert "γ = exp(strauss)" in capsys.readouterr().out
    names = {"parameters.csv", "intensity.csv", "summary.txt", "report.html", "pattern.json"}
    assert {one.name for one in out.iterdir()} == names
    with (out / "parameters.csv").open() as file:
        rows = list(csv.DictReader(file))
    grid = {"x": np.repeat(np.arange(11.0), 6), "y": np.tile(np.arange(6.0), 11), "elev": np.repeat(np.arange(11.0), 6)}
    elev = un.Map.from_table(grid, value="elev")
    fit = un.fit_pattern(pattern, "elev", covariates=[elev], interaction=un.Strauss(0.3), rng=3)
    assert tuple(row["term"] for row in rows) == fit.names
    np.testing.assert_allclose([float(row["estimate"]) for row in rows], fit.estimate, rtol=1e-8)
    np.testing.assert_allclose([float(row["se"]) for row in rows], fit.se, rtol=1e-8)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "strauss" in page
    assert "data:image/svg+xml" in page
    assert "se from dummy points" in page
    assert "The settings are also in pattern.json" in page
    assert "config.toml" not in page
    numbers = json.loads(re.findall(r'<script type="application/json" id="curves">(.*?)</script>', page)[0])["maps"]
    assert [one["value"] for one in numbers.values()] == ["trend", "residual"]
    limits = [one["limits"] for one in numbers.values()]
    np.testing.assert_allclose(limits, [[0.0, 5.0, 10.0, 0.0]] * 2, atol=1e-9)  # left, top, right, bottom
    alts = re.findall(r'<img src="data:[^"]*" alt="([^"]*)"', page)
    assert all("highest" in one and "lowest" in one for one in alts[-3:-1]), alts
    assert len(page) < 3_000_000


def test_shell_labels(points: tuple[Path, un.Pattern], tmp_path: Path) -> None:
    """Marks and sites are labels in the files, not numbers of labels; a factor's effect is drawn by its labels."""
    lines = points[0].read_text().splitlines()
    marked = [f"{line},{kind},{site}" for line, kind, site in zip(lines[1:], "ab" * 500, "NES" * 400)]
    points[0].write_text("\n".join(["x,y,kind,site", *marked]))
    words = ["--window", "0,10,0,5", "--marks", "kind", "--terms", "factor(kind)", "--simulations", "19", "-q"]
    main(["pattern", str(points[0]), *words, "--out", str(tmp_path / "out")])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "The fitted intensity of a," in page
    assert "The fitted intensity of b," in page
    with (tmp_path / "out" / "intensity.csv").open() as file:
        assert {row["kind"] for row in csv.DictReader(file)} == {"a", "b"}
    words = ["--window", "0,10,0,5", "--replicate", "site", "--terms", "s(site, bs='re')", "--quiet"]
    main(["pattern", str(points[0]), *words, "--out", str(tmp_path / "sites")])
    with (tmp_path / "sites" / "intensity.csv").open() as file:
        assert {row["site"] for row in csv.DictReader(file)} == {"N", "E", "S"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--window", "0,1,0,1"], "lie outside the window"),
        (["--window", "0,10,0,5", "--interaction", "straus(1)"], "strauss"),
        (["--window", "0,10,0,5", "--terms", "elev"], "no covariate 'elev'"),
        (["--window", "0,10,0,5", "--simulations", "3"], "--simulations"),
        ([], "--window is needed"),
    ],
)
def test_shell_bad_input(points: tuple[Path, un.Pattern], tmp_path: Path, capsys, words: list[str], says: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["pattern", str(points[0]), *words, "--out", str(tmp_path / "out")])
    assert end.value.code == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
