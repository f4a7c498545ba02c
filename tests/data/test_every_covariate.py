"""What every registered covariate promises, tested over the registry's examples and the built-ins."""

from __future__ import annotations

import doctest
import importlib

import pytest
from covariate_checks import CENTRE, CHECKS, OBS

import unnorm as un
from unnorm.data.covariates import BUILT_INS, REGISTRY
from unnorm.data.covariates.base import Setting

SETTING = Setting(OBS, CENTRE)
ALL = [one for kind in BUILT_INS.values() for one in kind.built_in(SETTING) if not one.internal]


@pytest.mark.parametrize("covariate", [*REGISTRY.examples(), *ALL], ids=lambda one: one.name)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_covariate(check, covariate) -> None:
    check(covariate)


@pytest.mark.parametrize("name", REGISTRY)
def test_registered_covariates_are_final_public_and_have_examples(name: str) -> None:
    cls = REGISTRY[name]
    assert cls.__final__  # pyright: ignore[reportAttributeAccessIssue]
    assert cls is getattr(un, name)
    assert cls.examples()


def test_built_ins_are_those_of_the_docs() -> None:
    assert {one.name for one in ALL} == {
        *("x", "y", "x_prev", "y_prev", "x_prev2", "y_prev2"),
        *("step", "angle", "turn", "dcenter"),
    }
    assert not set(BUILT_INS) & set(un.__all__)


@pytest.mark.parametrize("module", ["", ".columns", ".expressions", ".maps", ".resolve"])
def test_examples_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"unnorm.data.covariates{module}"))
    assert result.attempted > 0
    assert result.failed == 0
