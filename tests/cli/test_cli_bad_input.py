"""Bad input at the command line: one sentence on stderr, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

TABLE = "subject,image,fix,x,y\n" + "".join(
    f"{s},{i},{f},{100 + 50 * f + 7 * i},{80 + 40 * f + 11 * s}\n" for s in (1, 2) for i in (1, 2) for f in range(1, 8)
)
COLUMNS = ("--order", "fix", "--group", "subject,image")
WINDOW = ("--window", "0,800,0,600")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    return path


def refused(ran, *words, code=2):
    """One line, without a traceback, that has these words."""
    assert ran.code == code, ran
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("unnorm: ")
    assert "Traceback" not in ran.err
    assert "internal error" not in ran.err, ran.err
    for word in words:
        assert word in ran.err, (word, ran.err)
    return lines[0]


def no_output(folder, *allowed):
    """Neither an output nor a scratch folder is left."""
    left = {path.name for path in folder.iterdir()} - set(allowed)
    assert not left, left


FILES = {
    "empty": (b"", "empty"),
    "blank": (b"  \n \n", "empty"),
    "binary": (b"\x00\x01\x02PK\x03\x04" * 50, "not a text file"),
    "unknown encoding": (b"subject,image,fix,x,y\n\x81,1,1,2,3\n", "iconv -f WINDOWS-1252 -t UTF-8"),
    "utf-16 without its mark": (TABLE.encode("utf-16-le"), "not a text file"),
    "long header": (b"a" * 200_000 + b",image,fix,x,y\n1,1,1,2,3\n", "200,014 characters"),
    "open quotation": (TABLE.encode() + b'"1,1,9,2,3\n', "never closed"),
    "a cell without end": (b'subject,image,fix,x,y\n"' + b"a" * 200_000 + b'",1,1\n', "Line 2"),
    "two commas": (TABLE.replace(",", ";").replace("257", "25,7,1").encode(), "'x'"),
    "order missing": (TABLE.replace("1,1,3,257", "1,1,,257").encode(), "--missing drop"),
    "a point for a number": (TABLE.replace("1,1,3,257", "1,1,3,.").encode(), "(first row 3); rows count from 1"),
    "order infinite": (TABLE.replace("1,1,3,257", "1,1,inf,257").encode(), "infinite"),
    "order text": (TABLE.replace("1,1,3,257", "1,1,third,257").encode(), "(--order) must be integers"),
    "header-only": (b"subject,image,fix,x,y\n", "no rows"),
    "no-header": (b"1,7,2,3,4\n1,7,3,5,6\n", "must name the columns"),
    "ragged": (b"subject,image,fix,x,y\n1,1,1,2,3\n1,1,2,3\n", "Line 3"),
    "non-numeric": (TABLE.replace("1,1,3,257", "1,1,3,left").encode(), "'x'"),
    "infinite": (TABLE.replace("1,1,3,257", "1,1,3,inf").encode(), "'x'"),
    "missing-value": (TABLE.replace("1,1,3,257", "1,1,3,").encode(), "missing"),
    "duplicate-columns": (TABLE.replace("fix,x,y", "x,x,y", 1).encode(), "more than once"),
    "unnamed-column": (TABLE.replace("fix,x,y", ",x,y", 1).encode(), "needs a name"),
    "one-point": (b"subject,image,fix,x,y\n1,1,1,2,3\n1,2,1,5,3\n", "no transitions"),
    "constant": (b"subject,image,fix,x,y\n" + b"".join(b"1,1,%d,5,5\n" % f for f in range(1, 20)), "same"),
    "duplicate-rows": ((TABLE + "1,1,3,257,211\n").encode(), "repeat"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_files(unnorm, tmp_path, kind):
    content, words = FILES[kind]
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    refused(unnorm("fit", path, *COLUMNS, *WINDOW, "--out", tmp_path / "out"), words)
    no_output(tmp_path, "t.csv")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.csv", None, "no file"),
        ("t.xlsx", b"x", "Save As, 'CSV UTF-8'"),
        ("t.csv.gz", b"not gzip", "could not be read"),
        ("t.csv.gz", gzip.compress(TABLE.encode(), mtime=0)[:60], "could not be read"),
        ("t.parquet", b"PAR1 nonsense PAR1", "Parquet"),
        ("folder.csv", "folder", "not a file"),
    ],
)
def test_unreadable(unnorm, tmp_path, name, content, words):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="without pyarrow the sentence is another one")
    refused(unnorm("fit", path, *COLUMNS, *WINDOW, "--out", tmp_path / "out"), words)
    no_output(tmp_path, name)


OPTIONS = {
    "absent column": (("--y", "x,yy"), "There is no column 'yy'"),
    "absent group": (("--group", "subject,picture"), "picture"),
    "absent order": (("--order", "fixx"), "Did you mean 'fix'"),
    "hostile column": (("--y", "x,__import__('os').system('x')"), "There is no column"),
    "one outcome": (("--y", "x"), "two columns"),
    "empty name": (("--y", "x,"), "empty name"),
    "same twice": (("--y", "x,x"), "more than once"),
    "column in capitals": (("--y", "X,Y"), "Did you mean 'x'"),
    "by misspelt": (("--by", "Subjects"), "Did you mean --by subject?"),
    "exchanged columns": (("--y", "y,x", "--window", "150,500,100,400"), "With the two columns exchanged, all would"),
    "width and height": (("--window", "800,600"), "write 0,800,0,600"),
    "width by height": (("--window", "1920x1080"), "write 0,1920,0,1080"),
    "times for numbers": (("--order", "y"), "(--max-gap): nine steps in ten are at most 40"),
    "by unknown": (("--by", "age"), "Write --group 'age,subject,image'"),
    "short window": (("--window", "0,800,0"), "four numbers"),
    "reversed window": (("--window", "800,0,0,600"), "from < to"),
    "words in window": (("--window", "0,800,zero,600"), "finite number"),
    "nan in window": (("--window", "0,800,0,nan"), "finite number"),
    "infinite window": (("--window", "0,inf,0,600"), "finite number"),
    "window file absent": (("--window", "island.geojson"), "no window file"),
    "semicolons in window": (("--window", "0;800;0;600"), "with commas between them"),
    "window too wide": (("--window", "-1e308,1e308,0,600"), "finite length"),
    "points outside": (("--window", "0,200,0,200"), "The points lie in x from 207 to 464 and y"),
    "all outside": (("--window", "-9,-8,-9,-8", "--outside", "drop"), "All"),
    "seed text": (("--seed", "one"), "seed"),
    "seed negative": (("--seed", "-1"), "--seed"),
    "seed float": (("--seed", "1.5"), "seed"),
    "seed huge": (("--seed", str(2**70)), "--seed"),
    "level": (("--level", "95"), "between 0 and 1"),
    "level zero": (("--level", "0"), "between 0 and 1"),
    "level text": (("--level", "high"), "level"),
    "level nan": (("--level", "nan"), "finite"),
    "no references": (("--references", "0"), "--references"),
    "many references": (("--references", "1000000"), "--references"),
    "objective": (("--objective", "magic"), "'logistic'"),
    "points": (("--points", "random"), "'lattice'"),
    "ranking on a lattice": (("--objective", "ranking", "--points", "lattice"), "iid"),
    "smoothing": (("--smoothing", "none"), "'reml'"),
    "outside": (("--outside", "keep"), "'drop'"),
    "missing": (("--missing", "guess"), "'drop'"),
    "lags": (("--lags", "0"), "--lags"),
    "gap": (("--max-gap", "-1"), "positive"),
    "centre": (("--centre", "4"), "two numbers"),
    "turn without lags": (("--terms", "s(turn, bs='cc')"), "lags"),
    "unknown option": (("--colour", "red"), "--colour"),
    "unknown term": (("--terms", "z(step)"), "must be one of"),
    "malformed term": (("--terms", "s(step"), "cannot be read"),
    "empty terms": (("--terms", " "), "text"),
    "unknown covariate": (("--terms", "s(speed)"), "speed"),
    "unknown basis": (("--terms", "s(step, bs='zz')"), "zz"),
    "oversized basis": (("--terms", "s(step, k=100000)"), "k=100000"),
    "a large basis": (("--terms", "s(step, k=10000)"), "10,000 coefficients"),
    "oversized product": (("--terms", "te(step, angle, k=300)"), "90,000 coefficients"),
    "oversized default": (("--terms", "ti(x, y, step, angle, dcenter, x_prev)"), "15,625 coefficients"),
    "oversized order": (("--terms", "s(step, m=99)"), "from 0 to 20"),
    "infinite basis": (("--terms", "s(step, k=1e400)"), "whole number"),
    "deep brackets": (("--terms", "(" * 5000 + "s(step)" + ")" * 5000), "cannot be read"),
    "deep calls": (("--terms", "s(" * 300 + "step" + ")" * 300), "cannot be read"),
    "many minus signs": (("--terms", "-" * 9000 + "s(step)"), "cannot be read"),
    "two statements": (("--terms", "s(step); import os"), "cannot be read"),
    "by itself": (("--terms", "s(step, by=step)"), "one of its own covariates"),
    "by unknown column": (("--terms", "s(step, by=speed)"), "speed"),
    "attribute of a column": (("--terms", "s(step.real)"), "quote a column name that is not a plain word"),
    "negative basis": (("--terms", "s(step, k=-3)"), "-3"),
    "oversized formula": (("--terms", "+".join(["s(step)"] * 5000)), "at most"),
    "code in a term": (("--terms", "__import__('os').system('touch hacked')"), "must be one of"),
    "code in an argument": (("--terms", "s(step, k=open('x').read())"), "literals"),
    "a lambda": (("--terms", "(lambda: 1)()"), "term"),
    "response": (("--terms", "y ~ s(step)"), "no response"),
    "the same term twice": (("--terms", "s(step, k=3) + s(step, k=3)"), "s(step)"),
    "outcome in the normaliser": (("--normaliser", "s(x, y)"), "context only"),
    "malformed normaliser": (("--normaliser", "s("), "cannot be read"),
    "covariate without name": (("--covariate", "log(step)"), "NAME=EXPRESSION"),
    "covariate of nothing": (("--covariate", "a="), "NAME=EXPRESSION"),
    "covariate with code": (("--covariate", "a=__import__('os')"), "not allowed"),
    "covariate with attributes": (("--covariate", "a=step.__class__"), "not allowed"),
    "covariate with a power": (("--covariate", "a=step**9999"), "exponent"),
    "covariate in a circle": (("--covariate", "a=b + 1", "--covariate", "b=a + 1", "--terms", "s(a)"), "a → b → a"),
    "covariate without covariates": (("--covariate", "a=1/0"), "reads no covariate"),
    "covariate that chooses": (("--covariate", "a=step if 1 else 2"), "not allowed"),
    "covariate that assigns": (("--covariate", "a=(step := 3)"), "not allowed"),
    "covariate of minus signs": (("--covariate", "a=" + "-" * 400 + "step"), "deep"),
    "covariate too large": (("--covariate", "a=exp(step / 2)", "--terms", "s(a, k=3)"), "other units"),
    "covariate that is constant": (("--covariate", "a=0*step", "--terms", "s(a, k=3)"), "constant"),
    "covariate too long": (("--covariate", "a=" + "+".join(["step"] * 400)), "at most"),
    "covariate unknown": (("--covariate", "a=speed+1"), "speed"),
    "covariate known": (("--covariate", "step=step+1"), "already"),
    "covariate hostile name": (("--covariate", "<b>=step"), "word"),
    "covariate twice": (("--covariate", "a=step", "--covariate", "a=angle"), "more than once"),
    "covariate not finite": (("--covariate", "a=log(x - 9999)", "--terms", "s(a)"), "not finite"),
    "map without file": (("--map", "a"), "NAME=FILE"),
    "map absent": (("--map", "a=absent.csv"), "no file"),
    "map option": (("--map", "a=t.csv,colour=red"), "'key'"),
    "config absent": (("--config", "absent.toml"), "no configuration file"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OPTIONS)
def test_options(unnorm, table, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    tokens, words = OPTIONS[kind]
    usual = (*COLUMNS, *WINDOW, "--normaliser", "s(x_prev, k=3)", "--references", "3")  # nothing else is wrong
    given = dict(zip(usual[::2], usual[1::2]))
    for name in tokens[::2]:
        given.pop(name, None)
    rest = [part for pair in given.items() for part in pair]
    joined = [f"{name}={value}" for name, value in zip(tokens[::2], tokens[1::2])]
    refused(unnorm("fit", table, *rest, *joined, "--out", tmp_path / "out"), words)
    no_output(tmp_path, "t.csv")


def test_no_file_and_no_window(unnorm, table, tmp_path):
    refused(unnorm("fit", "--out", tmp_path / "out"), "A table of fixations is needed")
    refused(
        unnorm("fit", table, *COLUMNS, "--out", tmp_path / "out"), "--window is needed", "in x from 157 to 464 and y"
    )
    refused(unnorm("fit", table, "--y", "a,b", "--out", tmp_path / "out"), "There is no column 'a'")
    for command in ("fit", "compare", "pattern", "steps", "directions"):  # before any option is asked for
        refused(unnorm(command, tmp_path / "no.csv"), "There is no file", "no.csv")
    refused(unnorm("fit", table, "two", "--out", tmp_path / "out"), "two")
    refused(unnorm("fix"), "fix")
    refused(unnorm("fit", table, "--y", "x", "y", *WINDOW), "'y' belongs to no option", "as --y x,y")
    no_output(tmp_path, "t.csv")


MAPS = {
    "no value": ("m.csv", "x,y,z,w\n0,0,1,1\n800,0,2,1\n0,600,3,1\n800,600,4,1\n", "no column 'a' or 'value'"),
    "not a grid": ("m.csv", "x,y,a\n" + "".join(f"{i},{i * i},1\n" for i in range(60)), "grid"),
    "cell twice": ("m.csv", "x,y,a\n0,0,1\n0,0,1\n800,0,2\n0,600,3\n800,600,4\n", "once"),
    "text": ("m.csv", "x,y,a\n0,0,high\n800,0,2\n0,600,3\n800,600,4\n", "'a'"),
    "infinite": ("m.csv", "x,y,a\n0,0,inf\n800,0,2\n0,600,3\n800,600,4\n", "'a'"),
    "no place": ("m.csv", "u,v,a\n0,0,1\n800,0,2\n", "'x'"),
    "too small": ("m.csv", "x,y,a\n0,0,1\n10,0,2\n0,10,3\n10,10,4\n", "no value at"),
    "keys absent": ("m.csv", "image,x,y,a\n9,0,0,1\n9,800,0,2\n9,0,600,3\n9,800,600,4\n", "no grid for"),
    "constant": ("m.csv", "x,y,a\n" + "".join(f"{x},{y},0.1\n" for x in (0, 410, 800) for y in (0, 600)), "constant"),
    "huge": ("m.csv", "x,y,a\n" + "".join(f"{x},{y},{x + y}e200\n" for x in (0, 410, 800) for y in (0, 600)), "units"),
    "value absent": ("m.csv,value=b", "x,y,a\n0,0,1\n", "'b'"),
    "one row": ("m.csv", "x,y,a\n0,0,1\n", "at least two cells"),
    "not npy": ("m.npy", "x,y\n", "not an .npy array"),
}


@pytest.mark.parametrize("kind", MAPS)
def test_maps(unnorm, table, tmp_path, kind):
    name, content, words = MAPS[kind]
    (tmp_path / name.partition(",")[0]).write_text(content)
    tokens = ("--map", f"a={tmp_path / name}", "--terms", "s(a, k=3)")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, *tokens, "--out", tmp_path / "out"), words)
    no_output(tmp_path, "t.csv", name.partition(",")[0])


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(5), "shape"),
        (np.zeros((3, 3, 3)), "shape"),
        (np.full((4, 4), np.nan), "no values"),
        (np.array([[object(), 1], [2, 3]], dtype=object), "not an .npy array"),
        (np.array([["a", "b"], ["c", "d"]]), "numbers"),
    ],
)
def test_arrays(unnorm, table, tmp_path, array, words):
    np.save(tmp_path / "m.npy", array, allow_pickle=True)
    tokens = ("--map", f"a={tmp_path / 'm.npy'}", "--terms", "s(a, k=3)")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, *tokens, "--out", tmp_path / "out"), words)


def test_oversized_array(unnorm, table, tmp_path):
    from numpy.lib import format as npy

    with open(tmp_path / "m.npy", "wb") as file:  # a header that promises 80 GB
        npy.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (100_000, 100_000)})
    tokens = ("--map", f"a={tmp_path / 'm.npy'}", "--terms", "s(a, k=3)")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, *tokens, "--out", tmp_path / "out"), "Map 'a'")


@pytest.mark.parametrize("extent", ["0:800", "0:a:0:600", "800:0:0:600", "0:inf:0:600"])
def test_extent(unnorm, table, tmp_path, extent):
    np.save(tmp_path / "m.npy", np.ones((3, 4)))
    tokens = ("--map", f"a={tmp_path / 'm.npy'},extent={extent}")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, *tokens, "--out", tmp_path / "out"), "extent=")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("w.geojson", "{", "could not be read"),
        ("w.geojson", "[1, 2]", "GeoJSON"),
        ("w.geojson", '{"type": "Point", "coordinates": [1, 2]}', "Polygon"),
        ("w.geojson", '{"type": "Polygon"}', "could not be read"),
        ("w.geojson", '{"type": "Feature", "geometry": null}', "1 of 1 features have no geometry"),
        ("w.geojson", '{"type": "FeatureCollection", "features": [{"geometry": null}, 1]}', "2 of 2 features"),
        ("w.geojson", '{"type": "FeatureCollection", "features": []}', "without features"),
        ("w.geojson", '{"type": "FeatureCollection"}', "without features"),
        ("w.wkt", "POLYGON ((", "could not be read"),
        ("w.wkt", "LINESTRING (0 0, 1 1)", "Polygon"),
        ("w.wkt", "POLYGON ((0 0, 800 600, 800 0, 0 600, 0 0))", "simple"),
    ],
)
def test_polygons(unnorm, table, tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    refused(unnorm("fit", table, *COLUMNS, "--window", tmp_path / name, "--out", tmp_path / "out"), words)
    no_output(tmp_path, "t.csv", name)


CONFIGS = {
    "not toml": ("data = ", "not TOML"),
    "binary": ("\x00\x01", "not TOML"),
    "unknown": ("colour = 'red'", "unknown setting 'colour'"),
    "format": ("format = 2", "has format 2; this version of unnorm reads format 1"),
    "near": ("reference = 3", "Did you mean 'references'"),
    "type": ("seed = 'one'", "'seed'"),
    "table": ("[window]\na = 1", "'window'"),
    "list": ("y = [1, 2]", "'y'"),
    "bool": ("drop_first = 'yes'", "true or false"),
    "date": ("terms = 2020-01-01", "'terms'"),
    "nan": ("level = nan", "finite"),
    "twice": ("seed = 1\nseed = 2", "not TOML"),
    "nested": ("y = " + "[" * 3000 + "]" * 3000, "not TOML"),
    "large": ("#" * 2_000_000, "larger than"),
    "null": ('terms = "s(step\\u0000)"', "cannot be read"),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_damaged_configs(unnorm, table, tmp_path, kind):
    text, words = CONFIGS[kind]
    (tmp_path / "c.toml").write_text(text)
    ran = unnorm("fit", table, *COLUMNS, *WINDOW, "--config", tmp_path / "c.toml", "--out", tmp_path / "out")
    refused(ran, words, "c.toml") if kind not in ("nan", "bool", "null") else refused(ran, words)
    no_output(tmp_path, "t.csv", "c.toml")


def test_existing_outputs_stay(unnorm, table, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep me")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", out), "exists", "--force")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", out, "--force"), "other files")
    assert (out / "mine.txt").read_text() == "keep me"
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", table), "not a folder")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", table / "below"), "cannot be written")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", "/"), "--out")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", " "), "--out")
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", tmp_path / ("x" * 300)), "too long")
    models = ("--model", "a=s(step)", "--model", "b=s(angle)", "--k", "2")
    refused(unnorm("compare", table, *COLUMNS, *WINDOW, *models, "--out", out), "is a folder")
    refused(unnorm("compare", table, *COLUMNS, *WINDOW, *models, "--out", table), "exists")
    no_output(tmp_path, "t.csv", "out")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a folder in which not even root can make another")
def test_an_output_that_nobody_may_write(unnorm, table):
    """Found out before the fit, not after it."""
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", "/proc/self/out"), "cannot be written")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_output(unnorm, table, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", locked / "out"), "cannot be written")


def test_unreadable_file(unnorm, table, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    table.chmod(0)
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", tmp_path / "out"), "could not be read")


@pytest.mark.parametrize("command", ["simulate", "report"])
def test_damaged_fits(unnorm, table, tmp_path, command):
    refused(unnorm(command, tmp_path / "absent"), "no folder")
    home = tmp_path / "home"
    home.mkdir()
    refused(unnorm(command, home), "not an output of unnorm fit")
    settings = f"data = '{table}'\ngroup = ['subject', 'image']\norder = 'fix'\nwindow = [0, 800, 0, 600]\n"
    (home / "config.toml").write_text(settings)
    refused(unnorm(command, home), "not an output of unnorm fit")
    (home / "fit").mkdir()
    out = ("--out", tmp_path / "o")
    refused(unnorm(command, home, *out), "not a saved fit")
    (home / "fit" / "fit.json").write_text('{"format": 1, "class": "Fit"')
    refused(unnorm(command, home, *out), "damaged")
    (home / "fit" / "fit.json").write_text('{"format": 99}')
    np.savez(home / "fit" / "arrays.npz", a=np.zeros(2))
    refused(unnorm(command, home, *out), "format")
    (home / "fit" / "fit.json").write_text('{"format": 1, "class": "Fit"}')
    refused(unnorm(command, home, *out), "damaged")
    (home / "config.toml").write_text("data = ")
    refused(unnorm(command, home, *out), "not TOML")
    assert not (tmp_path / "o").exists()


def test_a_name_that_is_no_text(unnorm, table, tmp_path):
    odd = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"bad\xff.csv"))
    os.rename(table, odd)
    refused(unnorm("fit", odd, *COLUMNS, *WINDOW, "--out", tmp_path / "out"), "Rename the file")


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("-n", "0"), "-n"),
        (("-n", "many"), "n"),
        (("--steps", "0"), "--steps"),
        (("--seed", "-1"), "--seed"),
        (("-n", "10000000", "--steps", "1000"), "fewer"),
    ],
)
def test_simulate_numbers(unnorm, tmp_path, tokens, words):
    refused(unnorm("simulate", tmp_path, *tokens), words)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ((), "at least twice"),
        (("--model", "a=s(step)"), "at least twice"),
        (("--model", "s(step)", "--model", "b=s(step)"), "NAME=TERMS"),
        (("--model", "a=s(step)", "--model", "a=s(step)"), "twice"),
        (("--model", "a=s(step)", "--model", "b=s(speed)", "--k", "2"), "speed"),
        (("--model", "a=s(step)", "--model", "b=s(angle)", "--folds", "age"), "--folds"),
        (("--model", "a=s(step)", "--model", "b=s(angle)", "--by", "subject", "--folds", "subject"), "other than --by"),
        (("--model", "a=s(step)", "--model", "b=s(angle)", "--by", "age"), "--by must be one of"),
        (("--model", "a=s(step)", "--model", "b=s(angle)", "--k", "1"), "--k"),
        (("--model", "a=s(step)", "--model", "b=s(angle)", "--k", "50"), "levels of 'image'"),
    ],
)
def test_compare(unnorm, table, tmp_path, tokens, words):
    refused(unnorm("compare", table, *COLUMNS, *WINDOW, *tokens), words)


def test_a_level_called_group(unnorm, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace("\n1,", "\ngroup,"))
    refused(unnorm("fit", path, *COLUMNS, *WINDOW, "--by", "subject", "--out", tmp_path / "out"), "rename")


def test_long_sentences_are_cut(unnorm, table, tmp_path):
    line = refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--y", "x," + "y" * 100_000, "--out", tmp_path / "out"), "…")
    assert len(line) < 1100


def test_a_level_is_found_among_texts_of_any_kind():
    from unnorm.report.analysis import level_rows

    for column in (np.array(["a", "b", "a"]), np.array(["a", "b", "a"], dtype=object), np.array([1, 2, 1])):
        assert level_rows(column, str(column[0])).tolist() == [True, False, True]


def test_debug_shows_the_traceback(unnorm, tmp_path):
    from unnorm.errors import InputError

    with pytest.raises(InputError, match="no file"):
        unnorm("fit", tmp_path / "absent.csv", *COLUMNS, *WINDOW, "--debug", "--out", tmp_path / "out")


def test_interrupted(unnorm, table, tmp_path, monkeypatch):
    import unnorm.cli.run as run

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "prepare", interrupt)
    refused(unnorm("fit", table, *COLUMNS, *WINDOW, "--out", tmp_path / "out"), "interrupted", code=130)
    no_output(tmp_path, "t.csv")


def test_our_own_mistakes_are_named_as_such(unnorm, table, tmp_path, monkeypatch):
    import unnorm.cli.run as run

    def broken(*_):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(run, "prepare", broken)
    ran = unnorm("fit", table, *COLUMNS, *WINDOW, "--out", tmp_path / "out")
    assert ran.code == 1
    assert "internal error" in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    no_output(tmp_path, "t.csv")


def test_a_failure_while_writing_leaves_the_old_output(tmp_path):
    from unnorm.cli.output import whole_folder
    from unnorm.errors import InputError

    target = tmp_path / "out"
    target.mkdir()
    (target / "config.toml").write_text("old")

    def write():
        with whole_folder(target, force=True) as folder:
            (folder / "config.toml").write_text("new")
            raise OSError(28, "No space left on device")  # as NumPy's: without a file name

    with pytest.raises(InputError, match=r"--out .* cannot be written: No space left on device"):
        write()
    assert (target / "config.toml").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
