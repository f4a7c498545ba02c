"""What every kind of basis must do: a new one is tested by being registered; so is CONTRIBUTING.md's example."""

import re
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.engine.core import build_design
from unnorm.errors import TermError
from unnorm.terms import from_dict, specs
from unnorm.terms import registry as registered
from unnorm.terms.parser import parse

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(4)
COLUMNS = {
    "x": RNG.random(300),
    "z": RNG.normal(size=300),
    "w": np.exp(RNG.normal(size=300)),
    "angle": RNG.uniform(-np.pi, np.pi, 300),
    "lat": np.degrees(np.arcsin(RNG.uniform(-1, 1, 300))),
    "lon": RNG.uniform(-180, 180, 300),
    "region": RNG.choice(list("abcde"), 300),
}
NEW = {"x": np.array([0.1, 0.9]), "z": np.array([-1.0, 1.0]), "w": np.array([1.0, 2.0]), "angle": np.array([-3.0, 3.0]),
       "lat": np.array([-40.0, 80.0]), "lon": np.array([0.0, 170.0]), "region": np.array(["b", "e"])}  # fmt: skip
EXAMPLES = [text for kind in registered.KINDS.values() for text in kind.examples()]


def build(text):
    return parse(text).build(COLUMNS, periods={"angle": (-np.pi, np.pi)})


def check(text):
    (term,) = build(text)
    X = term.design(COLUMNS)
    assert X.shape == (300, term.size)
    assert np.isfinite(X).all()
    assert np.abs(X.mean(axis=0)).max() < 1e-8 * np.abs(X).max()  # centred
    assert np.linalg.matrix_rank(X) == term.size
    for penalty in term.penalties:
        values = np.linalg.svd(penalty.square_root, compute_uv=False)
        assert np.sum(values > 1e-10 * values[0]) == penalty.rank  # as declared
        np.testing.assert_allclose(
            penalty.square_root.T @ penalty.square_root, penalty.matrix, atol=1e-9 * np.abs(penalty.matrix).max()
        )
    joint = np.concatenate([p.square_root / np.linalg.norm(p.square_root) for p in term.penalties])
    assert np.linalg.matrix_rank(joint, tol=1e-10) == term.size - term.null_dim
    again = from_dict(term.to_dict())
    np.testing.assert_array_equal(again.design(NEW), term.design(NEW))
    design = build_design([term], COLUMNS)  # the engine's compact rows say the same as the columns
    beta = np.cos(np.arange(term.size + 1.0))
    np.testing.assert_allclose(
        design.unsort(design.predict(design.to_flat(beta))), beta[0] + X @ beta[1:], atol=1e-3 * np.abs(X).max()
    )


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_registered_basis(text):
    check(text)


@pytest.mark.parametrize("name", registered.KINDS)
def test_every_kind_has_an_example(name):
    assert any(f"'{name}'" in text or name == "tp" for text in registered.KINDS[name].examples())


def test_the_example_of_contributing(monkeypatch):
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text.split("### A basis")[1].split("\n### ")[0], re.DOTALL)
    names: dict = {}
    exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    fourier = names["Fourier"]()
    kinds = {**registered.KINDS, fourier.name: fourier}  # the line in the registry
    monkeypatch.setattr(registered, "KINDS", kinds)
    monkeypatch.setattr(specs, "KINDS", kinds)
    monkeypatch.setattr(specs, "BASES", (*specs.BASES, fourier.name))
    monkeypatch.setattr(specs, "_COVARIATES", {**specs._COVARIATES, fourier.name: fourier.covariates})
    for example in fourier.examples():
        check(example)
    y = np.cos(COLUMNS["angle"]) + 0.5 * np.sin(3 * COLUMNS["angle"]) + 0.1 * RNG.normal(size=300)
    fit = un.gam("y ~ s(angle, bs='fourier', k=11)", {**COLUMNS, "y": y}, periods={"angle": (-np.pi, np.pi)})
    truth = np.cos(COLUMNS["angle"]) + 0.5 * np.sin(3 * COLUMNS["angle"])
    assert np.sqrt(np.mean((fit.fitted - truth) ** 2)) < 0.03


def test_maps_by_their_points_and_by_their_penalty():
    from unnorm.terms.markov import shared_points

    near = {"a": [(0.0, 0.0), (0.4, 0.0), (0.4, 0.4)], "b": [(0.1, 0.0), (0.3, 0.1)], "c": [(0.4, 0.4), (0.9, 0.9)]}
    assert shared_points(near) == {"a": ["c"], "b": [], "c": ["a"]}
    pair = np.array([[1.0, -1.0], [-1.0, 1.0]])
    two = {"penalty": np.kron(np.eye(2), pair).tolist(), "regions": ("a", "b", "c", "d")}
    columns = {"region": np.array(list("abcd") * 5), "w": np.linspace(1.0, 2.0, 20)}
    (term,) = un.terms.Terms((un.s("region", bs="mrf", xt=two, by="w"),)).build(columns)
    assert term.null_dim == 2
    assert term.penalties[0].rank == 2


CHAIN = {"a": ("b",), "b": ("a", "c"), "c": ("b", "d"), "d": ("c",)}
SQUARES = {r: [(i, 0), (i + 1, 0), (i + 1, 1), (i, 1)] for i, r in enumerate("abcd")}


@pytest.mark.parametrize(
    ("xt", "remedy"),
    [
        ({"nb": CHAIN}, "with its neighbours, as {'e': (…)}, or {'e': ()} where it has none; or"),
        ({"polys": SQUARES}, "with its outline, as {'e': points}, which"),
        ({"penalty": np.diag([1.0, 0.0, 0.0, 0.0]), "regions": list("abcd")}, "to 'regions', with a row and a column"),
    ],
    ids=["nb", "polys", "penalty"],
)
def test_a_region_that_xt_lacks_is_not_the_data_s_fault(xt, remedy):
    terms = un.terms.Terms((un.s("region", bs="mrf", xt=xt),))
    said = f"s(region): xt= must have every region of the data, and lacks 'e'. Add it {remedy}"
    with pytest.raises(TermError, match=re.escape(said)):
        terms.build(COLUMNS)
    with pytest.raises(TermError, match=r"lacks 'e', 'f'\. Add each "):
        terms.build({"region": np.append(COLUMNS["region"], "f")})
    (term,) = un.terms.Terms((un.s("region", bs="mrf", xt={"nb": {**CHAIN, "e": ()}}),)).build(COLUMNS)
    assert np.isfinite(term.design(COLUMNS)).all()
