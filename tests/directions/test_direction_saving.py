"""A saved fit of directions is the fit: by `un.load`, with its data, chart and unit; nothing in it is code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.directions.family import MAKERS, Family

d = un.directions
RNG = np.random.default_rng(4)
ANGLES = RNG.vonmises(1.0, 2.0, 40)
POINTS = RNG.normal([1.0, 0.4, -0.2], 0.5, (40, 3))
POINTS /= np.linalg.norm(POINTS, axis=1, keepdims=True)
WIND = RNG.normal(size=40)
PLACES = {"lon": RNG.normal(10, 12, 40), "lat": RNG.normal(40, 9, 40), "wind": WIND, "angle": ANGLES}


def cases() -> dict[str, tuple[Family, un.Observations]]:
    angles, bearings = un.iid(ANGLES, unit="radians"), un.iid({"b": np.degrees(ANGLES)}, "b", unit="bearings")
    places = un.iid(PLACES, ("lon", "lat"), unit="lonlat")
    beside = un.conditional(PLACES, "angle", x="wind", unit="radians")
    return {
        "von_mises": (d.von_mises(un.Axis()), bearings),
        "generalised_von_mises": (d.generalised_von_mises((2,)), angles),
        "wrapped_cauchy": (d.wrapped_cauchy(), angles),
        "wrapped_normal": (d.wrapped_normal(un.Circle()), bearings),
        "von_mises_fisher": (d.von_mises_fisher(), places),
        "kent": (d.kent(), places),
        "watson": (d.watson(un.Axis(3)), un.iid(POINTS)),
        "bingham": (d.bingham(), un.iid(POINTS)),
        "fisher_bingham": (d.fisher_bingham(), un.iid(POINTS)),
        "bivariate_von_mises": (d.bivariate_von_mises("cosine"), un.iid(np.column_stack([ANGLES, ANGLES + WIND]))),
        "regression": (d.regression("wind", dispersion="wind"), beside),
        "chain": (d.chain(mean=False), un.transitions(ANGLES, unit="radians")),
    }


def test_every_family_knows_how_it_was_made() -> None:
    assert set(cases()) == set(MAKERS)
    for name, (family, _) in cases().items():
        described = json.loads(json.dumps(family.to_dict()))
        assert described["family"] == name
        back = Family.from_dict(described)
        assert repr(back) == repr(family)
        assert back.quantities == family.quantities
    with pytest.raises(un.errors.InputError, match="von_mises"):
        Family.from_dict({"family": "vonmises"})


# a fit compiles its model: one of each kind here, the others with `pytest -m slow`
QUICK = ("von_mises", "kent", "watson", "regression", "chain")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MAKERS]
)
def test_round_trip(name: str, tmp_path: Path) -> None:
    family, obs = cases()[name]
    fit = un.fit_direction(family, obs)
    fit.save(tmp_path / "fit")
    back: Any = un.load(tmp_path / "fit")
    assert isinstance(back, un.DirectionFit)
    assert back.summary() == fit.summary()
    assert repr(back) == repr(fit)
    for robust in (False, True):
        assert back.rows(0.9, robust) == fit.rows(0.9, robust)
    x = None if family.kind == "iid" else {"wind": WIND[:3]} if family.kind == "conditional" else ANGLES[:3]
    y = fit.unit.outward(obs.outcome[:3]) if fit.unit.name == "lonlat" else fit.unit.angles().outward(obs.outcome[:3])
    y = obs.outcome[:3] if family.domain.coordinate_period is None and fit.unit.name != "lonlat" else y
    y = y[:, 0] if y.shape[1] == 1 else y
    np.testing.assert_array_equal(back.log_density(y, x), fit.log_density(y, x))
    if family.kind == "iid":
        for one, other in zip(fit.simulate(5, rng=1).values(), back.simulate(5, rng=1).values()):
            np.testing.assert_array_equal(one, other)
        back.plot()
    back.save(tmp_path / "again")  # what was read can be written
    assert (tmp_path / "again" / "fit.json").read_text() == (tmp_path / "fit" / "fit.json").read_text()


def test_what_is_no_direction_fit(tmp_path: Path) -> None:
    fit = un.fit_direction(d.von_mises(), un.iid(ANGLES))
    fit.save(tmp_path / "fit")
    json.loads((tmp_path / "fit" / "fit.json").read_text())
    with np.load(tmp_path / "fit" / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fiubU" for name in arrays.files)
    with pytest.raises(un.errors.InputError, match="holds a DirectionFit, which needs no model"):
        un.load(tmp_path / "fit", model=fit.chart.model)  # pyright: ignore[reportArgumentType]
    fit.fit.save(tmp_path / "plain")
    with pytest.raises(un.errors.InputError, match=r"holds a Fit, not a DirectionFit; read it with un\.load"):
        un.DirectionFit.load(tmp_path / "plain")
    text = (tmp_path / "fit" / "fit.json").read_text()
    (tmp_path / "fit" / "fit.json").write_text(text.replace('"von_mises"', '"wrapped_cauchy"'))
    with pytest.raises(un.errors.InputError, match="damaged"):
        un.load(tmp_path / "fit")
