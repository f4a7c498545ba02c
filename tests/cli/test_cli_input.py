"""Data as they come: files without names, other separators, a window and a map for each image, columns in terms."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.cli.config import checked_job
from unnorm.cli.jobs import prepare

TERMS = ("--terms", "s(step, k=5) + s(dcenter, k=5)", "--references", "5", "-q")
GROUPS = ("--order", "fix", "--group", "subject,image")


def table(seed: int = 3, sizes=((800, 600), (600, 800))) -> dict[str, np.ndarray]:
    """Short steps on images of two sizes, with a duration."""
    rng = np.random.default_rng(seed)
    rows = []
    for subject in ("a", "b", "c"):
        for image in range(1, 7):
            size = np.array(sizes[image % 2])
            at = rng.uniform(0.2 * size, 0.8 * size)
            for fix in range(1, 13):
                rows.append((subject, image, fix, *at.round(1), round(float(rng.gamma(4, 60)), 1)))
                at = np.clip(at + rng.normal(0, 90, 2) + 0.1 * (size / 2 - at), 1, size - 1)
    names = ("subject", "image", "fix", "x", "y", "duration")
    return {name: np.array(column) for name, column in zip(names, zip(*rows))}


def lines(columns, mark=",", header=True, decimal=".") -> str:
    out = [mark.join(columns)] if header else []
    for row in zip(*(column.tolist() for column in columns.values())):
        cells = (str(c).replace(".", decimal) if isinstance(c, float) else str(c) for c in row)
        out.append(mark.join(cells))
    return "\n".join(out) + "\n"


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    return table()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    where = tmp_path_factory.mktemp("input")
    sizes = {"image": np.arange(1, 7), "width": np.array([600, 800] * 3), "height": np.array([800, 600] * 3)}
    (where / "sizes.csv").write_text(lines(sizes))
    (where / "plain.csv").write_text(lines(data))
    (where / "blanks.txt").write_text(lines(data, " "))
    (where / "semicolons.csv").write_text(lines(data, ";", decimal=","))
    (where / "nameless.txt").write_text(lines(data, "\t", header=False))
    (where / "nameless.csv").write_text(lines(data, ";", header=False, decimal=","))
    features = [
        {
            "type": "Feature",
            "properties": {"image": i},
            "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [w, 0], [w, h], [0, h], [0, 0]]]},
        }
        for i, w, h in zip(*(column.tolist() for column in sizes.values()))
    ]
    (where / "sizes.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return where


def _fitted(unnorm, folder, file, *more, name="out"):
    out = folder / f"{name}-{file}"
    ran = unnorm(
        "fit", folder / file, *GROUPS, "--window", folder / "sizes.csv", *TERMS, *more, "--out", out, "--force"
    )
    assert ran.code == 0, ran.err
    return (out / "effects.csv").read_text(), out


def test_the_same_fit_from_every_kind_of_file(unnorm, folder):
    """One fit from the file that is least like the first; of the others, the very rows that a fit is given."""
    names = ("--columns", "subject,image,fix,x,y,duration")
    first, _ = _fitted(unnorm, folder, "plain.csv")
    assert _fitted(unnorm, folder, "nameless.csv", *names)[0] == first

    def rows(file, **more):
        given = {"order": "fix", "group": "subject,image", "window": str(folder / "sizes.csv"), "terms": TERMS[1]}
        return prepare(checked_job({"data": str(folder / file), **given, **more})).inside().outcome.tobytes()

    plain = rows("plain.csv")
    assert rows("blanks.txt") == rows("semicolons.csv") == plain
    assert rows("nameless.txt", columns=names[1]) == plain


def test_windows_by_image_are_those_of_python(unnorm, folder, data):
    _, out = _fitted(unnorm, folder, "plain.csv", "--seed", "4")
    obs = un.transitions(data, y=("x", "y"), order="fix", group=("subject", "image"))
    sizes = {i: (600, 800) if i % 2 else (800, 600) for i in range(1, 7)}
    model = un.Additive(TERMS[1], un.Windows(sizes, "image"))
    fit = un.fit(model, obs, un.Logistic(per_point=5, points=un.Lattice()), rng=4)
    back = un.load(out / "fit", model=model)
    assert isinstance(back, un.Fit)
    assert back.smooths is not None
    assert fit.smooths is not None
    np.testing.assert_allclose(back.smooths.beta, fit.smooths.beta, atol=1e-8)
    polygons = folder / "polygons"
    ran = unnorm(
        "fit",
        folder / "plain.csv",
        *GROUPS,
        "--window",
        folder / "sizes.geojson",
        *TERMS,
        "--seed",
        "4",
        "--out",
        polygons,
    )
    assert ran.code == 0, ran.err
    config = (polygons / "config.toml").read_text()
    assert "sizes.geojson" in config
    report = (out / "report.html").read_text()
    assert "one for each image" in report
    assert "could not be made" not in report
    simulated = folder / "simulated.csv"
    assert unnorm("simulate", out, "-n", "3", "--steps", "4", "--out", simulated).code == 0
    assert "image" in simulated.read_text().splitlines()[0]


def test_degrees_of_visual_angle(unnorm, folder):
    pixels, _ = _fitted(unnorm, folder, "plain.csv")
    degrees, out = _fitted(unnorm, folder, "plain.csv", "--px-per-degree", "25", name="degrees")
    rows = [[row.split(",") for row in text.splitlines()] for text in (pixels, degrees)]
    place, value = rows[0][0].index("step"), rows[0][0].index("estimate")
    for a, b in zip(rows[0][1:], rows[1][1:]):
        if a[place]:
            assert float(a[place]) == pytest.approx(25 * float(b[place]), rel=1e-6)
            assert float(a[value]) == pytest.approx(float(b[value]), abs=1e-3)
    assert "in degrees of 25 pixels" in (out / "report.html").read_text()


def test_columns_of_the_table_in_terms(unnorm, folder, data):
    out = folder / "durations"
    terms = "s(step, k=5) + linear(slow)"
    ran = unnorm(
        "fit", folder / "plain.csv", *GROUPS, "--window", folder / "sizes.csv", "--terms", terms, "--references", "5",
        "-q", "--covariate", "slow=log(duration_prev) * step", "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    obs = un.transitions(
        data, y=("x", "y"), order="fix", group=("subject", "image"), extra=("duration", "duration_prev")
    )
    np.testing.assert_array_equal(obs.context["duration"], data["duration"][obs.row])
    np.testing.assert_array_equal(obs.context["duration_prev"], data["duration"][np.asarray(obs.row) - 1])
    ran = unnorm(
        "fit",
        folder / "plain.csv",
        *GROUPS,
        "--window",
        folder / "sizes.csv",
        "--terms",
        "s(dwell)",
        "--out",
        folder / "no",
    )
    assert ran.code != 0
    assert "no covariate 'dwell'" in ran.err


def test_maps_from_arrays_archives_and_images(unnorm, folder, data):
    from matplotlib.image import imsave

    rng = np.random.default_rng(2)
    maps = {i: rng.random((8, 6) if i % 2 else (6, 8)) for i in range(1, 7)}
    arrays: dict[str, Any] = {str(i): z for i, z in maps.items()}
    np.savez(folder / "maps.npz", **arrays)
    (folder / "png").mkdir()
    for i, z in maps.items():
        imsave(folder / "png" / f"{i}.png", np.repeat((255 * z).astype(np.uint8)[:, :, None], 3, axis=2))
    effects = {}
    for name, text in (("npz", f"saliency={folder}/maps.npz"), ("png", f"saliency={folder}/png/{{image}}.png")):
        out = folder / f"map-{name}"
        ran = unnorm(
            "fit", folder / "plain.csv", *GROUPS, "--window", folder / "sizes.csv", "--references", "5", "-q",
            "--terms", "s(step, k=5) + saliency", "--map", text, "--out", out,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        row = next(line for line in (out / "parameters.csv").read_text().splitlines() if "saliency" in line)
        effects[name] = float(
            row.split(",")[[*(out / "parameters.csv").read_text().splitlines()[0].split(",")].index("estimate")]
        )
    assert effects["npz"] == pytest.approx(effects["png"], abs=0.05)  # 8 bits a pixel


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--window", "none.csv"), "There is no file 'none.csv'"),
        (("--window", "SIZES", "--max-gap", "20 parsecs"), "a time such as 20min"),
        (("--window", "SIZES", "--px-per-degree", "0"), "must be a positive number, as 24"),
        (("--window", "FEW"), "no window for 4 values of 'image'"),
        (("--window", "SIZES", "--map", "z=FOLDER/lost/{image}.png"), "no file is named like"),
        (("--window", "FEW", "--map", "z=FOLDER/maps6.npz"), "has a map but no window"),
        (("--window", "SIZES", "--distance", "road=FOLDER/plain.geojson"), "there is no file"),
    ],
)
def test_what_is_wrong_is_said(unnorm, folder, more, said):
    arrays: dict[str, Any] = {str(i): np.eye(3) for i in range(1, 7)}
    np.savez(folder / "maps6.npz", **arrays)
    (folder / "few.csv").write_text("image,width,height\n1,600,800\n2,800,600\n")
    words = [
        str(w)
        .replace("SIZES", str(folder / "sizes.csv"))
        .replace("FEW", str(folder / "few.csv"))
        .replace("FOLDER", str(folder))
        for w in more
    ]
    ran = unnorm("fit", folder / "plain.csv", *GROUPS, *TERMS, *words, "--out", folder / "never")
    assert ran.code != 0
    assert said in ran.err


def test_a_nameless_file_is_told_how_to_name_its_columns(unnorm, folder):
    ran = unnorm("fit", folder / "nameless.txt", *GROUPS, "--window", "0,800,0,800", "--out", folder / "never")
    assert ran.code != 0
    assert "--columns subject,image,x,y" in ran.err
    wrong = ("--columns", "subject,image,x,y")
    ran = unnorm("fit", folder / "nameless.txt", *GROUPS, *wrong, "--window", "0,800,0,800", "--out", folder / "never")
    assert "--columns names 4 columns" in ran.err


def test_counts_agree_before_and_after_points_are_dropped(unnorm, folder):
    out = folder / "dropped"
    ran = unnorm(
        "fit", folder / "plain.csv", *GROUPS, "--window", "0,700,0,700", "--outside", "drop", *TERMS[:-1], "--out", out
    )
    assert ran.code == 0, ran.err
    kept = int(ran.out.split(" transitions")[0].replace(",", ""))
    assert f"{kept:,} transitions in" in (out / "report.html").read_text()
    assert f"({198 - kept:,} with a point outside the window were dropped)" in ran.out


def test_a_table_in_windows_1252_is_read_and_said(unnorm, tmp_path):
    """On stderr while it runs, unless --quiet, and in the notes that the report shows."""
    from unnorm.cli.config import checked_job
    from unnorm.cli.jobs import prepare
    from unnorm.errors import overhear

    path = tmp_path / "t.csv"
    path.write_bytes(("subject,n,x (µm),y\n" + "".join(f"Zoé,{n},5,5\n" for n in range(9))).encode("cp1252"))
    tokens = ("fit", path, "--y", "x (µm),y", "--order", "n", "--group", "subject", "--window", "0,9,0,9")
    for quiet in (False, True):
        ran = unnorm(*tokens, "--out", tmp_path / "out", *(["-q"] if quiet else []))
        *notes, error = ran.err.splitlines()
        assert "All points are the same" in error
        assert len(notes) == (0 if quiet else 1)
        assert all(f"unnorm: note: '{path}' is not UTF-8 text and was read as Windows-1252" in note for note in notes)
    path.write_bytes(("subject,n,x,y\n" + "".join(f"Zoé,{n},{n},{n}\n" for n in range(9))).encode("cp1252"))
    settings = {"data": str(path), "order": "n", "group": "subject", "window": [0, 9, 0, 9], "terms": "step"}
    with overhear() as said:
        obs = prepare(checked_job(settings)).obs
    assert obs.notes[0] == said[0]
    assert set(obs.group["subject"].tolist()) == {"Zoé"}


def test_lines_for_the_shell_can_be_read_and_typed():
    import shlex

    from unnorm.cli.config import shell_line

    for words in (["s(angle, bs='cc')"], ["it's $HOME"], ['"', "'", "a b", "", "x\\y'"], ["don't!"], ["a'\nb"]):
        assert shlex.split(shell_line(["unnorm", *words])) == ["unnorm", *words]
    assert shell_line(["--terms", "s(angle, bs='cc')"]) == "--terms \"s(angle, bs='cc')\""
