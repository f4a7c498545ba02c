from functools import cache

import pytest
from families import FAMILIES, Family


@cache
def _make(name: str) -> Family:
    return FAMILIES[name]()


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    return _make(request.param)
