"""What stays is not searched for garbage, and the search goes on as it was after it."""

from __future__ import annotations

import gc

import pytest

from unnorm._base.garbage import staying


@pytest.fixture(autouse=True)
def thawed():
    before = gc.isenabled()
    yield
    gc.unfreeze()
    (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("on", [True, False])
def test_nothing_is_searched_within_and_all_as_before_after_it(on: bool) -> None:
    (gc.enable if on else gc.disable)()
    before = gc.get_freeze_count()
    seen = []

    def fails() -> None:
        with staying():
            seen.append(gc.isenabled())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen == [False]
    assert gc.isenabled() == on
    assert gc.get_freeze_count() > before
