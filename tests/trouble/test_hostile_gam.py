"""A saved Gam that somebody changed and signed again: a sentence when it is read, or a fit that answers."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import MALICE, sign
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import unnorm as un
from unnorm._base import storage
from unnorm.errors import UnnormError

FORMULAS = {
    "levels": ("y ~ s(x, k=5) + s(g, bs='re')", "gaussian"),
    "factor": ("z ~ s(x, by=g, k=5) + g", "binomial"),
    "surface": ("c ~ te(x, w, k=4) + log(w)", "poisson"),
}
NEW = {"x": np.linspace(0.1, 0.9, 4), "w": np.full(4, 0.5), "g": np.array(["a", "b", "c", "a"])}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("gams")
    rng = np.random.default_rng(1)
    x, w, g = rng.uniform(size=90), rng.uniform(0.2, 1.0, 90), rng.choice(list("abc"), 90)
    table = {"x": x, "w": w, "g": g, "y": np.sin(5 * x) + rng.normal(size=90) / 4, "z": rng.random(90) < x}
    table["c"] = rng.poisson(2 * w)
    for name, (formula, family) in FORMULAS.items():
        un.gam(formula, table, family=family).save(top / name)
    return top


def _sentence(error: UnnormError) -> None:
    assert str(error).endswith((".", "?", ")", '"', "'")), str(error)


def _finite(*numbers: Any) -> None:
    for one in numbers:
        assert np.isfinite(np.asarray(one, dtype=np.float64)).all()


def _asked(fit: Any) -> None:
    """What a user asks of a fit; errors with a name are answers, and numbers are finite."""
    _finite(fit.linear_predictor, list(fit.coefficients.values()), fit.vcov(), list(fit.edf.values()), fit.n)
    asked = (
        lambda: [len(fit.summary())],
        lambda: fit.predict(NEW),
        lambda: fit.predict(NEW, kind="response", se=False),
        lambda: fit.residuals("pearson"),
        lambda: fit.draws(3, NEW, kind="link"),
        *(lambda label=term.label: fit.effect_columns(label)["estimate"] for term in fit.terms),
        *(lambda label=term.label: fit.effect_columns(label)["se"] for term in fit.terms),
    )
    for ask in asked:
        try:
            _finite(*ask())
        except UnnormError as error:
            _sentence(error)


def _hostile(saved: Path, data: Any) -> None:
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(scratch) / "saved"
        shutil.copytree(saved / data.draw(st.sampled_from(sorted(FORMULAS)), label="which"), folder)
        data.draw(st.sampled_from(MALICE[:-1]), label="harm")(data.draw, folder, folder)
        try:
            fit = un.load(folder)
        except UnnormError as error:
            _sentence(error)
            return
        _asked(fit)


@pytest.mark.parametrize("examples", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_what_is_read_answers(saved: Path, examples: int) -> None:
    @settings(
        max_examples=examples, deadline=None, derandomize=examples < 1000, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def run(data: Any) -> None:
        _hostile(saved, data)

    run()


@pytest.mark.parametrize("which", FORMULAS)
def test_the_undamaged_is_read_and_answers(saved: Path, which: str) -> None:
    _asked(un.load(saved / which))


def _changed(saved: Path, tmp_path: Path, which: str, change: Any) -> Path:
    folder = tmp_path / "saved"
    shutil.copytree(saved / which, folder)
    about = json.loads((folder / storage.JSON_NAME).read_text(encoding="utf-8"))
    change(about)
    (folder / storage.JSON_NAME).write_text(json.dumps(about), encoding="utf-8")
    sign(folder, (folder / storage.JSON_NAME).read_text(encoding="utf-8"))
    return folder


def _set(*path: Any, value: Any) -> Any:
    def change(about: Any) -> None:
        for key in path[:-1]:
            about = about[key]
        about[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("family", value="gamma"),
        _set("method", value="guess"),
        _set("theta", value=-1.0),
        _set("whole", value=3),
        _set("logdet", value=float("nan")),
        _set("columns", value=["x", "x"]),
        _set("smoothed", "scale", value=0.0),
        _set("smoothed", "rows", value=-4),
        _set("smoothed", "deviance", value="much"),
        _set("smoothed", "sp_labels", value=["s(q)", "s(g)"]),
        _set("smoothed", "converged", value="perhaps"),
        _set("smoothed", "timings", value={"fit": "long"}),
        _set("terms", 0, "label", value="s(g)"),
        _set("terms", 0, "covariates", value=["q"]),
        _set("terms", 0, "penalties", 0, "rank", value=99),
        _set("terms", 0, "fixed_sp", value=[]),
        _set("terms", 1, "factor_levels", value=["g", [{}, [], "c"]]),
    ],
)
def test_each_part_is_checked(saved: Path, tmp_path: Path, change: Any) -> None:
    with pytest.raises(UnnormError, match=r"damaged|not|own label"):
        un.load(_changed(saved, tmp_path, "levels", change))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("inverse.sigma", lambda array: array.astype(complex)),
        ("smoothed.limit", lambda array: array.astype(float)),
        ("inverse.sigma", lambda array: array * 1e200),  # the eigenvalues of its square: LinAlgError
        ("smoothed.beta", lambda array: array * 1e200),
        ("y", lambda array: array * 1e200),
        ("y", lambda array: array[:0]),  # what the terms say of it is no sentence on a saved fit
    ],
)
def test_arrays_of_other_kinds_are_damage(saved: Path, tmp_path: Path, name: str, change: Any) -> None:
    about, arrays = storage.read_folder(saved / "levels")
    storage.write_folder(tmp_path / "changed", about, {**arrays, name: change(arrays[name])})
    with pytest.raises(UnnormError, match="is damaged"):
        un.load(tmp_path / "changed")


@pytest.mark.parametrize("value", [None, 1e300])
def test_every_number_of_a_basis_is_one(saved: Path, tmp_path: Path, value: Any) -> None:
    """Also those that no row of the data reads: predictions there were nan, and tests ended in a LinAlgError."""
    about = json.loads((saved / "levels" / storage.JSON_NAME).read_text(encoding="utf-8"))
    cells = len(about["terms"][0]["basis"]["values"])
    for cell in range(1, cells, 4):
        folder = tmp_path / str(cell)
        folder.mkdir()
        with pytest.raises(UnnormError, match="damaged"):
            un.load(_changed(saved, folder, "levels", _set("terms", 0, "basis", "values", cell, 1, value=value)))


def test_reading_runs_no_module_that_the_file_names(saved: Path, tmp_path: Path, monkeypatch: Any) -> None:
    package = tmp_path / "chosen_by_a_stranger"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this ran')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in (f"{package.name}.x", package.name, "os"):
        fit = un.load(_changed(saved, tmp_path / name, "levels", _set("backend", value=name)))
        assert isinstance(fit, un.Gam)
        assert isinstance(fit.effect(fit.smooths[0].label), dict)


def test_sizes_are_compared_before_anything_is_made(saved: Path, tmp_path: Path) -> None:
    many = list(range(10**4))

    def change(about: Any) -> None:
        term = next(term for term in about["terms"] if term["kind"] == "random")
        term["size"], term["factors"], term["factor_levels"] = 10**4, [["g", many]], ["g", many]
        term["penalties"][0]["copies"] = 10**4

    with pytest.raises(UnnormError, match="coefficients, and terms with"):
        un.load(_changed(saved, tmp_path, "levels", change))


def test_a_film_on_too_fine_a_lattice_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    square = [(0, 0), (1, 0), (1, 1), (0, 1)]
    table = {"x": rng.random(80), "w": rng.random(80), "y": rng.normal(size=80)}
    smooth = un.s("x", "w", bs="so", k=5, xt={"boundary": [square], "grid": 40})
    un.gam(smooth, table, response="y").save(tmp_path / "film")
    for n, change in enumerate((("film", "grid", 10**6), ("film", "sizes", [10**8]))):

        def finer(about: Any, change: Any = change) -> None:
            about["terms"][0]["basis"][change[0]][change[1]] = change[2]

        with pytest.raises(UnnormError, match="is damaged"):
            un.load(_changed(tmp_path, tmp_path / str(n), "film", finer))
