"""Thin plates of two covariates: only the eigenvectors that are kept, and the rows of a small table evaluated once."""

from __future__ import annotations

import numpy as np
import pytest

from unnorm.engine.core import build_design
from unnorm.terms import thin_plate
from unnorm.terms.parser import parse
from unnorm.terms.thin_plate import ThinPlate, radial

LATTICE = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0)), axis=-1).reshape(-1, 2)


def places(kind: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    if kind == "lattice":  # eigenvalues come in pairs
        return LATTICE
    if kind == "two heaps":
        return np.concatenate([rng.normal(size=(100, 2)), 50.0 + rng.normal(size=(100, 2))])
    return rng.gamma(2.0, 1.0, (180, 2))


@pytest.mark.parametrize("kind", ["lattice", "two heaps", "skewed"])
def test_the_eigenpairs_that_are_kept_are_those_of_eigh(kind: str) -> None:
    x, k = places(kind), 36
    E = radial(thin_plate._squared_distances(x, x), 2, 2)
    found = thin_plate.largest_eigenpairs(E, k)
    assert found is not None
    values, vectors = found
    every, turned = np.linalg.eigh(E)
    keep = np.sort(np.argsort(-np.abs(every), kind="stable")[:k])
    size = np.abs(every).max()
    np.testing.assert_allclose(values, every[keep], atol=1e-13 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(E @ vectors, vectors * values, atol=1e-13 * size)
    apart = np.sort(np.abs(every))[-k] - np.sort(np.abs(every))[-k - 1] > 1e-9 * size  # else which are kept is open
    if apart:
        assert np.linalg.svd(turned[:, keep].T @ vectors)[1].min() > 1.0 - 1e-10


def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    px, py = rng.normal(size=300), rng.gamma(2.0, 1.0, 300)
    who = rng.permutation(np.repeat(np.arange(300), 20))
    return {"px": px[who], "py": py[who], "a": rng.random(who.size)}


def test_a_term_knows_its_functions_at_the_rows_that_it_was_set_up_on() -> None:
    data = table()
    (term,) = parse("s(px, py, k=20)").build(data)
    at = np.random.default_rng(6).permutation(np.unique(np.column_stack([data["px"], data["py"]]), axis=0))[:170]
    known = term.known(at)
    assert known is not None
    exact = term.functions(at)
    np.testing.assert_allclose(known, exact, atol=1e-11 * np.abs(exact).max())
    moved = at.copy()
    moved[100, 1] += 1e-9
    assert term.known(moved) is None, "one of these points is new"
    assert term.known(np.column_stack([at[:, 1], at[:, 0]])) is None
    assert parse("s(a, k=8)").build(data)[0].known(data["a"][:5]) is None


def test_contexts_are_not_evaluated_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    terms = parse("s(a, k=8) + s(px, py, k=20)").build(data)
    plain = terms[1].design(data)
    asked: list[int] = []
    own = ThinPlate.evaluate
    monkeypatch.setattr(ThinPlate, "evaluate", lambda self, points: asked.append(len(points)) or own(self, points))
    design = build_design(terms, data)
    assert design.kinds["s(px,py)"] == "context"
    assert not asked
    beta = np.zeros(design.size)
    beta[design.slices["s(px,py)"]] = np.random.default_rng(7).normal(size=19)
    eta = design.unsort(design.predict(design.to_flat(beta)))
    np.testing.assert_allclose(eta, plain @ beta[design.slices["s(px,py)"]], atol=1e-9 * np.abs(eta).max())


def test_a_formula_is_read_once() -> None:
    text = "y ~ s(x, k=7) + factor(g)"
    assert parse(text, table=True) is parse(text, table=True)
    assert str(parse(text)) == text
