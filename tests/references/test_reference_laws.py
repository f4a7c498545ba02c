"""What every registered reference promises, tested over the registry's examples."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
from reference_cases import transitions
from reference_checks import CHECKS, bound

import unnorm as un
from unnorm import references
from unnorm.references import REGISTRY, SCHEMES, Example

EXAMPLES = REGISTRY.examples()


def named(value: object) -> str | None:
    return getattr(value, "__name__", None)


def numbered(example: Example) -> str:
    return f"{type(example.reference).__name__} {EXAMPLES.index(example)} on {example.domain!r}"


@pytest.mark.parametrize("example", EXAMPLES, ids=numbered)
@pytest.mark.parametrize("check", CHECKS, ids=named)
def test_every_reference(check: Callable[[Example], None], example: Example) -> None:
    check(example)


@pytest.mark.parametrize(("registry", "name"), [(r, name) for r in (REGISTRY, SCHEMES) for name in r])
def test_registered_parts_are_final_public_and_have_examples(registry, name: str) -> None:
    cls = registry[name]
    assert cls.__name__ == name
    assert cls.__final__
    assert cls is getattr(un, name) is getattr(references, name)
    assert cls.examples()


def test_every_domain_takes_a_uniform_reference() -> None:
    seen = {type(example.domain) for example in REGISTRY["Uniform"].examples()}
    assert seen == {cls for cls in un.domains.REGISTRY.values() if not cls.of_contexts}


def test_kernels_move_with_their_context() -> None:
    """The generic check is one-sided: here the laws that read the context differ between contexts."""
    for example in EXAMPLES:
        obs, q = bound(example)
        if q.given == "nothing" or q.ratio_only or type(example.reference) is un.Custom:
            continue
        y = q.sample(obs, np.arange(obs.n), np.random.default_rng(2))
        here, there = (q.log_density(y, obs, np.roll(np.arange(obs.n), shift)) for shift in (0, 1))
        assert np.abs(np.exp(here) - np.exp(there)).max() > 0.0, q


def test_a_rectangular_window_is_a_box_to_references() -> None:
    window, box = un.Window([(0, 0), (8, 0), (8, 6), (0, 6)]), un.Box((0, 8), (0, 6))
    obs = transitions(box)
    u, t = np.random.default_rng(0).random((40, 3)), np.arange(40)
    for reference in (un.GaussianMixture(2), un.Gaussian(around="context")):
        a, b = reference.bind(window, obs), reference.bind(box, obs)
        assert a.cube_dim == b.cube_dim
        assert a.from_unit(u[:, : a.cube_dim], obs, t) == pytest.approx(b.from_unit(u[:, : b.cube_dim], obs, t))


@pytest.mark.parametrize("module", [module.name for module in pkgutil.iter_modules(references.__path__)])
def test_examples_in_docstrings_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"unnorm.references.{module}")).failed == 0


def test_examples_of_the_room_run() -> None:
    assert doctest.testmod(references).attempted > 0
    assert doctest.testmod(references).failed == 0


def test_repr_fits_in_a_few_lines() -> None:
    for example in EXAMPLES:
        _, q = bound(example)
        for one in (example.reference, q.reference, q):
            assert len(repr(one)) < 600
            assert "\n" not in repr(one)
    assert repr(un.Gaussian(cov=4.0, around="context")) == (
        "Gaussian(mean=None, cov=4.0, around='context', scale=1.0, diagonal=True)"
    )
    assert repr(un.Marginal(probabilities=np.full(50, 0.02))) == "Marginal(add=1.0, probabilities=<50 numbers>)"
    mixed = un.Mixture((1, un.Uniform()), (3, un.BitFlip()))
    assert repr(mixed) == "Mixture((0.25, Uniform(along=None)), (0.75, BitFlip(every=False)))"
