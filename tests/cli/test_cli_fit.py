"""`unnorm fit` and its relatives against the same work in Python; runs that repeat exactly."""

from __future__ import annotations

import csv
import html
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import unnorm as un
from unnorm._base.frames import read_table
from unnorm.cli.config import Job, checked_job

TERMS, NORMALISER = "s(step, k=5) + s(angle, bs='cc', k=6)", "s(x_prev, y_prev, k=8)"


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return {name: np.array(column) for name, column in zip(rows[0], zip(*rows[1:]))}


@pytest.fixture(scope="module")
def by_subject(tmp_path_factory, fixations, usual, light):
    """One run with levels, for all tests of this module."""
    from unnorm.cli import main

    out = tmp_path_factory.mktemp("run") / "results"
    main(["fit", str(fixations), *usual, *light, "--by", "subject", "--y-down", "--seed", "5", "--out", str(out), "-q"])
    return out


@pytest.fixture(scope="module")
def in_python(fixations):
    from unnorm._base.frames import read_table

    obs = un.transitions(read_table(fixations), y=("x", "y"), order="fix", group=("subject", "image"))
    model = un.Additive(TERMS, un.Box((0, 800), (0, 600)), y_down=True)
    return model, obs


def test_outputs(by_subject):
    names = {"effects.csv", "parameters.csv", "summary.txt", "fit", "report.html", "config.toml"}
    assert {path.name for path in by_subject.iterdir()} == names
    assert (by_subject.stat().st_mode & 0o777) == 0o755
    effects = read(by_subject / "effects.csv")
    expected = ("by", "term", "step", "angle", "estimate", "se", "se_reference", "lower", "upper")
    assert tuple(effects) == expected
    assert set(effects["by"]) == {"group", "a", "b"}
    assert set(effects["term"]) == {"s(step)", "s(angle)"}
    here = effects["term"] == "s(step)"
    assert np.all(effects["angle"][here] == "")
    assert np.all(effects["step"][here] != "")
    parameters = read(by_subject / "parameters.csv")
    assert set(parameters["term"]) == {"s(step)", "s(angle)", "s(x_prev,y_prev)"}


@pytest.mark.filterwarnings("ignore:.*extrapolated there:unnorm.errors.UnnormWarning")  # the common grid of levels
def test_the_same_numbers_as_in_python(by_subject, in_python):
    from unnorm.groups import fit_each

    model, obs = in_python
    objective = un.Logistic(per_point=5, points=un.Lattice())
    each = fit_each(model, obs, "subject", objective, un.Smooth(NORMALISER), rng=5)
    effects = read(by_subject / "effects.csv")
    for which in ("group", "a", "b"):
        for label in each.labels:
            mine = (effects["by"] == which) & (effects["term"] == label)
            theirs = each.effect(label, which)
            for name in ("estimate", "se", "se_reference", "lower", "upper"):
                np.testing.assert_allclose(effects[name][mine].astype(float), theirs[name], rtol=1e-8, atol=1e-9)


def test_the_fit_loads(by_subject, in_python):
    from unnorm.groups import load_group

    fits = load_group(by_subject / "fit", model=in_python[0])
    assert fits.levels == ("a", "b")
    table = fits.fits["a"].effect("s(step)", at={"step": [10.0, 50.0]})
    assert np.all(np.isfinite(table["estimate"]))


def test_config_and_command_repeat_the_run(unnorm, by_subject, tmp_path):
    again = unnorm("fit", "--config", by_subject / "config.toml", "--out", tmp_path / "again", "-q")
    assert again.code == 0, again.err
    assert (again.out, again.err) == ("", "")
    page = (by_subject / "report.html").read_text(encoding="utf-8")
    line = html.unescape(re.sub(r"</?span>", "", re.search(r"<pre><code>(.*?)</code></pre>", page, re.S)[1]))
    words = shlex.split(line)
    assert words[:2] == ["unnorm", "fit"]
    words[-1] = str(tmp_path / "third")
    assert unnorm(*words[1:], "-q").code == 0
    for name in ("effects.csv", "parameters.csv", "summary.txt", "config.toml", "report.html"):
        first = (by_subject / name).read_bytes()
        assert (tmp_path / "again" / name).read_bytes() == first, name
        assert (tmp_path / "third" / name).read_bytes() == first, name


def test_report_again(unnorm, by_subject, tmp_path):
    ran = unnorm("report", by_subject, "--out", tmp_path / "r.html", "--figures", "svg")
    assert ran.code == 0, ran.err
    assert list((tmp_path / "figures").glob("*.svg"))
    assert "report: " in ran.out
    assert (tmp_path / "r.html").read_bytes() == (by_subject / "report.html").read_bytes()
    assert unnorm("report", by_subject / "fit").code == 2  # report.html exists
    moved = unnorm("report", by_subject, "--data", tmp_path / "elsewhere.csv", "--out", tmp_path / "r2.html")
    assert moved.code == 2
    assert "--data" in moved.err


def test_simulate(unnorm, by_subject, tmp_path):
    out = tmp_path / "s.csv"
    ran = unnorm("simulate", by_subject, "--which", "b", "-n", "30", "--steps", "4", "--seed", "2", "--out", out)
    assert ran.code == 0, ran.err
    table = read(out)
    assert tuple(table) == ("chain", "step", "x", "y")
    assert len(table["x"]) == 30 * 5
    x, y = table["x"].astype(float), table["y"].astype(float)
    assert np.all((x >= 0) & (x <= 800) & (y >= 0) & (y <= 600))
    first = out.read_bytes()
    assert unnorm("simulate", by_subject, "--which", "b", "-n", "30", "--steps", "4", "--out", out).code == 2
    tokens = (
        "simulate",
        by_subject,
        "--which",
        "b",
        "-n",
        "30",
        "--steps",
        "4",
        "--seed",
        "2",
        "--out",
        out,
        "--force",
    )
    assert unnorm(*tokens).code == 0
    assert out.read_bytes() == first
    started = unnorm(
        "simulate", by_subject, "--start", "400,300", "-n", "3", "--steps", "2", "--out", out, "--force", "-q"
    )
    assert (started.code, started.out) == (0, "")
    table = read(out)
    at = table["step"] == "0"
    assert set(zip(table["x"][at], table["y"][at])) == {("400", "300")}
    wrong = unnorm("simulate", by_subject, "--which", "c", "--out", out, "--force")
    assert wrong.code == 2
    assert "'a', 'b'" in wrong.err


def test_pooled_and_drop_first(unnorm, fixations, usual, light, tmp_path):
    ran = unnorm("fit", fixations, *usual, *light, "--drop-first", "--out", tmp_path / "r")
    assert ran.code == 0, ran.err
    assert "report: " in ran.out
    assert set(read(tmp_path / "r" / "effects.csv")["by"]) == {"group"}
    # 2 subjects × 6 images × 12 points: 11 points stay, 10 pairs each
    assert set(read(tmp_path / "r" / "parameters.csv")["n"]) == {"120"}
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "The first point of each of 12 sequences was removed" in page
    assert unnorm("fit", fixations, *usual, *light, "--out", tmp_path / "r").code == 2
    from unnorm import load

    assert load(tmp_path / "r" / "fit").n == 120


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_refits_are_fits_with_their_own_seed(fixations, in_python):
    from unnorm.cli.jobs import prepare, refit

    given = {"data": str(fixations), "order": "fix", "group": "subject,image", "window": "0,800,0,600", "y_down": True}
    light = {"terms": TERMS, "normaliser": NORMALISER, "references": "5"}
    prepared = prepare(checked_job({**given, **light}))
    model, obs = in_python
    objective = un.Logistic(per_point=5, points=un.Lattice())
    for seed in (1, 2):
        (mine,) = refit(prepared, prepared.model, prepared.inside(), seed).values()
        theirs = un.fit(model, obs, objective, un.Smooth(NORMALISER), rng=seed)
        np.testing.assert_allclose(mine.smooths.beta, theirs.smooths.beta, rtol=1e-9)


@pytest.fixture
def no_report(monkeypatch):
    """Skip the report where a test is about something else."""
    from unnorm.cli import run

    monkeypatch.setattr(run, "make_sections", lambda *_: ())


def test_a_map_that_is_a_coordinate(no_report, unnorm, fixations, usual, tmp_path):
    """A raster of the x coordinate, bilinear, is x itself: the same effects, from .npy and from .csv by image."""
    centres = np.linspace(-100, 900, 20, endpoint=False) + 25
    np.save(tmp_path / "x.npy", np.tile(centres, (16, 1)))
    rows = [f"{image},{x},{y},{x}" for image in range(1, 7) for x in (-100, 400, 900) for y in (-100, 700)]
    (tmp_path / "x.csv").write_text("image,x,y,place\n" + "\n".join(rows) + "\n")
    tokens = ("--normaliser", NORMALISER, "--references", "5", "-q")
    fits = {
        "x": ("--terms", "s(x, k=5)"),
        "npy": ("--terms", "s(m, k=5)", "--map", f"m={tmp_path / 'x.npy'},extent=-100:900:-100:700"),
        "csv": ("--terms", "s(place, k=5)", "--map", f"place={tmp_path / 'x.csv'}"),
        "expression": ("--terms", "s(twice, k=5)", "--covariate", "twice=2 * x"),
    }
    effects = {}
    for name, more in fits.items():
        ran = unnorm("fit", fixations, *usual, *tokens, *more, "--out", tmp_path / name)
        assert ran.code == 0, ran.err
        effects[name] = read(tmp_path / name / "effects.csv")["estimate"].astype(float)
    for name in ("npy", "csv", "expression"):
        np.testing.assert_allclose(effects[name], effects["x"], rtol=0, atol=2e-3)  # the smoothing optimum


@pytest.mark.parametrize("objective", ["ranking", "poisson"])
def test_objectives(no_report, unnorm, fixations, usual, tmp_path, objective):
    tokens = (
        "--terms",
        "s(step, k=5)",
        "--normaliser",
        NORMALISER,
        "--references",
        "10",
        "--objective",
        objective,
        "-q",
    )
    ran = unnorm("fit", fixations, *usual, *tokens, "--out", tmp_path / "r")
    assert ran.code == 0, ran.err
    effects = read(tmp_path / "r" / "effects.csv")
    estimate = effects["estimate"].astype(float)
    assert estimate[0] > estimate[-1] + 1  # long steps are rare, whatever is maximised


def test_polygon_window(no_report, unnorm, fixations, usual, light, tmp_path):
    ring = [[0, 0], [800, 0], [800, 600], [0, 600], [0, 0]]
    (tmp_path / "w.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    usual = (*usual[:-2], "--window", str(tmp_path / "w.geojson"))
    ran = unnorm("fit", fixations, *usual, *light, "--out", tmp_path / "r", "-q")
    assert ran.code == 0, ran.err


def test_compare(unnorm, fixations, usual, tmp_path):
    tokens = ("--normaliser", NORMALISER, "--references", "5", "--k", "2", "--folds", "image", "-q")
    models = ("--model", "steps=s(step, k=5)", "--model", "angles=s(angle, bs='cc', k=5)")
    ran = unnorm("compare", fixations, *usual, *tokens, *models, "--out", tmp_path / "c.csv")
    assert ran.code == 0, ran.err
    table = read(tmp_path / "c.csv")
    assert table["model"].tolist() == ["steps", "angles"]
    ncic, bits = table["ncic"].astype(float), table["bits"].astype(float)
    assert ncic[0] < ncic[1] - 20
    assert bits[0] > bits[1] + 0.5
    assert "steps" in ran.out


def test_compare_by_level(unnorm, fixations, usual, tmp_path):
    """NCIC is the sum of the levels' own, each compared on common points."""
    import unnorm as un
    from unnorm.groups.each import level_seed

    tokens = ("--normaliser", NORMALISER, "--references", "5", "--k", "2", "--by", "subject", "-q")
    models = ("--model", "steps=s(step, k=5)", "--model", "angles=s(angle, bs='cc', k=5)")
    ran = unnorm("compare", fixations, *usual, *tokens, *models, "--out", tmp_path / "c.csv")
    assert ran.code == 0, ran.err
    assert "summed over 2 levels of subject" in ran.out
    table = read(tmp_path / "c.csv")
    obs = un.transitions(read_table(fixations), y=("x", "y"), order="fix", group=("subject", "image"))
    box = un.Box((0, 800), (0, 600))
    both = {name: un.Additive(terms, box) for name, terms in (m.split("=", 1) for m in models[1::2])}
    rest = {"objective": un.Logistic(per_point=5), "normaliser": un.Smooth(NORMALISER)}
    ncic = np.zeros(2)
    for level in ("a", "b"):
        own = obs.take(obs.group["subject"] == level)
        specs = {name: {"model": model, **rest} for name, model in both.items()}
        ncic += un.compare(both["steps"], own, specs, rng=level_seed(1, level)).criteria["ncic"]
    np.testing.assert_allclose(table["ncic"].astype(float), ncic, rtol=1e-6)
    bits = table["bits"].astype(float)
    assert bits[0] > bits[1] + 0.5


ANY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
PLAIN = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=12)
QUIET = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@QUIET
@given(data=ANY, order=ANY, groups=st.lists(ANY, min_size=1, max_size=3), seed=st.integers(0, 2**40))
def test_any_text_survives_toml(data, order, groups, seed):
    import tomllib

    one = Job(data, order=order, group=tuple(groups), window=(0.0, 1.5, -2.0, 1e-3), seed=seed, map=("a=b.csv",))
    assert checked_job(tomllib.loads(one.toml()), source="config.toml") == one


@QUIET
@given(data=PLAIN.filter(lambda t: not t.startswith("-")), order=PLAIN, group=PLAIN, seed=st.integers(0, 2**40))
def test_any_text_survives_the_shell(data, order, group, seed):
    from unnorm._base import files
    from unnorm.cli import run as command

    if "--debug" in (data, order, group) or "," in group:
        return
    one = Job(data, order=order, group=(group,), window=(-1.0, 1.5, -2.0, 0.25), seed=seed, y_down=True)
    seen = []
    before = command.run_job, files.table_file
    command.run_job, files.table_file = lambda job, *_: seen.append(job), lambda path: None  # no such file is there
    try:
        from unnorm.cli import main

        main(shlex.split(one.command("nowhere/else"))[1:])
    finally:
        command.run_job, files.table_file = before
    assert seen == [one]


def test_help(unnorm):
    ran = unnorm("fit", "--help")
    assert ran.code == 0
    for option in ("--by", "--window", "--normaliser", "--map", "--covariate", "--drop-first", "--config", "--force"):
        assert option in ran.out
    assert unnorm("--version").out.strip() == un.__version__


def test_python_m_unnorm_is_the_command():
    ran = subprocess.run([sys.executable, "-m", "unnorm", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == un.__version__
