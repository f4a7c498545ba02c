"""What every registered domain promises, tested over the registry's examples."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Callable

import pytest
from domain_checks import CHECKS

import unnorm as un
from unnorm import domains
from unnorm.domains import REGISTRY, Domain, from_dict
from unnorm.errors import InputError


@pytest.mark.parametrize("domain", REGISTRY.examples(), ids=repr)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_domain(check: Callable[[Domain], None], domain: Domain) -> None:
    check(domain)


@pytest.mark.parametrize("name", REGISTRY)
def test_registered_domains_are_final_public_and_have_examples(name: str) -> None:
    cls = REGISTRY[name]
    assert cls.__name__ == name
    assert cls.__final__  # pyright: ignore[reportAttributeAccessIssue]
    assert cls is getattr(un, name) is getattr(domains, name)
    assert cls.examples() or cls.of_contexts  # what has no Ω of its own is tested in test_windows.py
    assert all(type(example) is cls for example in cls.examples())


def test_every_domain_of_the_room_is_registered() -> None:
    found = set()
    for module in pkgutil.iter_modules(domains.__path__):
        for name, value in vars(importlib.import_module(f"unnorm.domains.{module.name}")).items():
            if isinstance(value, type) and issubclass(value, Domain) and not inspect.isabstract(value):
                found |= {name} if value.__module__.endswith(module.name) and hasattr(value, "__final__") else set()
    assert found == set(REGISTRY)


def test_large_spaces_have_no_rule() -> None:
    assert un.BinaryVectors(20).rule == "enumeration"
    assert un.BinaryVectors(21).rule is None
    assert un.BinaryVectors(5000).rule is None
    assert un.Box((0, 1), (0, 1), (0, 1)).rule == "quadrature"
    four = un.Box(*[(0, 1)] * 4)
    assert four.rule is None
    assert four.default_order is None
    with pytest.raises(InputError, match=r"order\*\*4 nodes .*Pass the order yourself"):
        four.quadrature()


def test_a_rectangular_window_is_a_box() -> None:
    window = un.Window([(1, 2), (5, 2), (5, 3), (1, 3)])
    assert window.sides is not None
    assert [side.tolist() for side in window.sides] == [[1, 2], [5, 3]]
    assert un.Window([(1, 2), (5, 2), (5, 3), (1, 3.0001)]).sides is None


def test_unreadable_descriptions() -> None:
    with pytest.raises(InputError, match=r"must be one of .*'Interval'.*got 'Klein'"):
        from_dict({"domain": "Klein"})
    with pytest.raises(InputError, match="got None"):
        from_dict({})
    with pytest.raises(InputError, match="description of Interval lacks 'upper'"):
        from_dict({"domain": "Interval", "lower": 0.0})
    with pytest.raises(InputError, match=r"description of BinaryVectors cannot be read \(.*'d'.*\); it has \['domain'"):
        from_dict({"domain": "BinaryVectors"})


@pytest.mark.parametrize("name", ["", ".accuracy", ".boxes", ".finite", ".graphs", ".round", ".window"])
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"unnorm.domains{name}"))
    assert result.attempted > 0
    assert result.failed == 0
