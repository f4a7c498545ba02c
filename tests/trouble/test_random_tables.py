"""Random small tables through `un.gam`, `un.fit` and `unnorm fit`: finite numbers, or a named error with a sentence."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_tables import columns, numbers, tables

import unnorm as un
from unnorm.cli import main
from unnorm.cli import run as running
from unnorm.errors import UnnormError, UnnormWarning

QUICK = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
LENGTHS = pytest.mark.parametrize(
    "at_length", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)], ids=["quick", "long"]
)
TERMS = ("s({x}, k=4)", "{x}", "s({x}, k=4, bs='cr')", "s({x})", "s({x}, bs='re')", "s({x}, bs='gp', k=4)")


def _sentence(text: str) -> None:
    assert text.endswith((".", "?", '"', "'")), text
    assert "\n" not in text


def _gam(data: Any) -> bool:
    table = data.draw(tables())
    y, x, *others = table
    formula = f"{y} ~ {data.draw(st.sampled_from(TERMS)).format(x=x)}" + "".join(f" + {name}" for name in others)
    family = data.draw(st.sampled_from(("gaussian", "gaussian", "poisson", "binomial", "nb")))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)
            fit = un.gam(formula, table, family)
            fit.summary()
    except UnnormError as error:
        _sentence(str(error))
        return False
    assert np.isfinite(list(fit.coefficients.values())).all()
    assert np.isfinite(fit.covariance).all()
    assert np.all(np.diag(fit.covariance) >= 0)
    assert np.isfinite(fit.predict().estimate).all()
    return True


def _fit(data: Any) -> bool:
    table = data.draw(tables())
    y = next(iter(table))
    there = [float(v) for v in np.asarray(table[y], dtype=object) if isinstance(v, float) and np.isfinite(v)]
    low, high = (min(there), max(there)) if there else (0.0, 1.0)
    pad = data.draw(st.sampled_from((0.0, 0.1, 1.0))) * (high - low)
    make = data.draw(st.sampled_from((un.iid, un.transitions)))
    term = data.draw(st.sampled_from(("s({y}, k=4)", "{y}"))).format(y=y)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)
            model = un.Additive(term, un.Interval(low - pad, high + pad))
            count: dict[str, int] = {"total": 100} if make is un.iid else {"per_point": 3}
            fit = un.fit(model, make(table, y=y), un.Logistic(un.Uniform(), points=un.IID(), **count), rng=1)
            fit.summary()
    except UnnormError as error:
        _sentence(str(error))
        return False
    assert np.isfinite(fit.estimate).all()
    assert fit.smooths is None or np.isfinite(fit.smooths.beta).all()
    assert fit.errors is None or np.isfinite(fit.errors.total).all()
    return True


@st.composite
def paths(draw: Any) -> dict[str, Any]:
    """A table of points in order; now and then with something in it that is none."""
    n = draw(st.sampled_from((1, 2, 3, 12, 30, 30)))
    rng = np.random.default_rng(draw(st.integers(0, 99_999)))
    table: dict[str, Any] = {
        "who": np.repeat(["a", "b"], (n + 1) // 2)[:n],
        "t": np.arange(n),
        "x": rng.uniform(0, 1, n),
        "y": rng.uniform(0, 1, n),
    }
    for _ in range(draw(st.integers(0, 1))):
        table[draw(st.sampled_from(sorted(table)))] = draw(st.one_of(numbers(n), columns(n)))
    return table


def _shell(data: Any, folder: Path, capsys: Any) -> bool:
    table = data.draw(paths())
    text = io.StringIO()
    csv.writer(text).writerows([list(table), *zip(*(list(column) for column in table.values()))])
    path, out = folder / "t.csv", folder / f"out-{len(list(folder.iterdir()))}"
    path.write_text(text.getvalue(), encoding="utf-8")
    tokens = ["fit", str(path), "--order", "t", "--group", "who", "--window", "0,1,0,1", "--references", "3"]
    terms = data.draw(st.sampled_from(("s(step, k=4)", "step", "s(x, k=4) + y")))
    more = data.draw(st.sampled_from(([], ["--missing", "drop"], ["--outside", "drop"])))
    tokens += ["--terms", terms, "--normaliser", "x_prev", *more, "--out", str(out), "-q"]
    code: Any = 0
    try:
        main(tokens)
    except SystemExit as end:
        code = end.code or 0
    said = capsys.readouterr().err
    if code:
        assert code == 2, said
        assert said.startswith("unnorm: ")
        assert said.count("\n") == 1
        assert not out.exists()
        return False
    with open(out / "effects.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(np.isfinite(float(row[name])) for row in rows for name in ("estimate", "se", "lower", "upper"))
    return True


@LENGTHS
@pytest.mark.parametrize("way", [_gam, _fit], ids=["gam", "fit"])
def test_numbers_or_a_sentence(way: Any, at_length: settings) -> None:
    found = []

    @settings(at_length)
    @given(st.data())
    def run(data: Any) -> None:
        found.append(way(data))

    run()
    assert sum(found) > len(found) / 30  # some are fitted


@LENGTHS
def test_numbers_or_a_sentence_in_the_shell(
    at_length: settings, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "make_sections", lambda *_: ())  # the report has its own tests, and takes long
    monkeypatch.setattr(running, "advice", lambda *_: ())
    found = []

    @settings(at_length, max_examples=at_length.max_examples // 3)
    @given(st.data())
    def run(data: Any) -> None:
        found.append(_shell(data, tmp_path, capsys))

    run()
    assert sum(found) > len(found) / 30
