"""A saved pattern fit is the same fit: numbers, predictions, simulations; nothing else is read as one."""

import json
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

SQUARE = un.Box((0, 1), (0, 1))
ISLAND = un.Window([(0, 0), (4, 0), (4, 3), (0, 3)], holes=[[(1, 1), (2, 1), (2, 2), (1, 2)]])
ELEV = un.Map("elev", np.add.outer(np.arange(7.0), np.arange(9.0)), np.linspace(0, 4, 9), np.linspace(0, 3, 7))


def scattered(n: int = 150, window: un.Window | un.Box = ISLAND, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    xy = window.uniform(n, rng)
    return {"x": xy[:, 0], "y": xy[:, 1], "kind": rng.choice(["a", "b"], n), "site": rng.integers(0, 3, n)}


def fits() -> dict[str, un.PatternFit]:
    table = scattered()
    two = un.pattern(table, ("x", "y"), window=ISLAND, marks="kind")
    sites = un.pattern(table, ("x", "y"), window={0: ISLAND, 1: ISLAND, 2: ISLAND}, replicate="site")
    plain = un.pattern(table, ("x", "y"), window=ISLAND)
    wave = un.Expression("wave", "sin(x)")
    given = un.Dummies(ISLAND.uniform(3000, 5), rho=lambda xy: np.full(len(xy), 3000 / 11.0))
    return {
        "marks and a map": un.fit_pattern(two, "elev + kind", covariates=[ELEV], dummies=2000, rng=2),
        "Strauss": un.fit_pattern(
            two, "wave", covariates=[wave], interaction=un.MultiStrauss([[0.1, 0.2], [0.2, 0.0]]), dummies=2000, rng=2
        ),
        "sites": un.fit_pattern(sites, "s(x, k=5) + s(site, bs='re')", dummies=2000, rng=2),
        "given dummies": un.fit_pattern(plain, "s(elev, k=5)", covariates=[ELEV], points=given),
    }


@pytest.mark.parametrize("which", ["marks and a map", "Strauss", "sites", "given dummies"])
@pytest.mark.filterwarnings("ignore:The estimated interaction attracts")
def test_round_trip(which: str, tmp_path: Path) -> None:
    fit = fits()[which]
    fit.save(tmp_path / "fit")
    back = un.load(tmp_path / "fit")
    assert isinstance(back, un.PatternFit)
    assert back.summary() == fit.summary()
    assert repr(back) == repr(fit)
    np.testing.assert_array_equal(back.estimate, fit.estimate)
    np.testing.assert_array_equal(back.covariance, fit.covariance)
    np.testing.assert_array_equal(back.covariance_robust, fit.covariance_robust)
    for one, other in zip(fit.trend(9).values(), back.trend(9).values()):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(fit.conditional_intensity(9).values(), back.conditional_intensity(9).values()):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(fit.lurking("x").residual, back.lurking("x").residual)
    if which != "Strauss":
        for one, other in zip(fit.simulate(2, rng=3), back.simulate(2, rng=3)):
            np.testing.assert_array_equal(one.xy, other.xy)
    if which != "sites":
        np.testing.assert_array_equal(fit.residuals().z, back.residuals().z)
    back.save(tmp_path / "again")  # what was read can be written
    assert (tmp_path / "again" / "fit.json").read_text() == (tmp_path / "fit" / "fit.json").read_text()


def test_no_code(tmp_path: Path) -> None:
    fit = un.fit_pattern(un.pattern(scattered(), ("x", "y"), window=ISLAND), dummies=500, rng=1)
    fit.save(tmp_path / "fit")
    json.loads((tmp_path / "fit" / "fit.json").read_text())
    with np.load(tmp_path / "fit" / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fiubU" for name in arrays.files)


def test_functions_are_passed_again(tmp_path: Path) -> None:
    ridge = un.Function("ridge", lambda y, _: np.cos(y[:, 0]))
    pattern = un.pattern(scattered(), ("x", "y"), window=ISLAND)
    fit = un.fit_pattern(pattern, "ridge", covariates=[ridge], dummies=1000, rng=1)
    fit.save(tmp_path / "fit")
    numbers = un.load(tmp_path / "fit")
    assert isinstance(numbers, un.PatternFit)
    assert numbers.theta == fit.theta
    with pytest.raises(un.errors.UnnormError, match="ridge"):
        numbers.intensity(5)
    whole = un.PatternFit.load(tmp_path / "fit", [ridge])
    np.testing.assert_array_equal(whole.intensity(5)["intensity"], fit.intensity(5)["intensity"])
    with pytest.raises(un.errors.InputError, match=r"its own '?other"):
        un.PatternFit.load(tmp_path / "fit", [un.Function("other", lambda y, _: y[:, 0])])


def test_what_is_no_pattern_fit(tmp_path: Path) -> None:
    un.gam("y ~ x", {"x": np.arange(20.0), "y": np.arange(20.0) % 3}).save(tmp_path / "gam")
    with pytest.raises(un.errors.InputError, match=r"holds a Gam, not a PatternFit; read it with un\.load"):
        un.PatternFit.load(tmp_path / "gam")
    fit = un.fit_pattern(un.pattern(scattered(), ("x", "y"), window=ISLAND), dummies=500, rng=1)
    fit.save(tmp_path / "fit")
    with pytest.raises(un.errors.InputError, match="needs no model"):
        un.load(tmp_path / "fit", model=object())  # pyright: ignore[reportArgumentType]
    text = (tmp_path / "fit" / "fit.json").read_text()
    (tmp_path / "fit" / "fit.json").write_text(text.replace('"stratified"', '"poisson"'))
    with pytest.raises(un.errors.InputError, match="damaged"):
        un.load(tmp_path / "fit")
    (tmp_path / "mine").mkdir()
    with pytest.raises(un.errors.InputError, match="not a saved fit"):
        fit.save(tmp_path / "mine")
