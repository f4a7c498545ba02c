"""Warnings that are hushed stay hushed, whatever other threads do, and no one else's are."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from unnorm._base.threads import run_tasks
from unnorm.errors import UnnormWarning, hush, overhear, warn
from unnorm.terms.built import SmoothTerm


def test_they_are_given_where_they_are_called() -> None:
    with pytest.warns(UnnormWarning, match="a doubt") as caught:
        warn("a doubt")
    assert caught[0].filename == __file__


def test_only_those_that_begin_so() -> None:
    with hush("The constants"):
        warn("The constants of 3 contexts are wrong.")
        with pytest.warns(UnnormWarning, match="^Not converged"):
            warn("Not converged.")


def test_the_inner_block_does_not_undo_the_outer_one() -> None:
    with hush("A"), hush("B"):
        warn("A is wrong")
        warn("B is wrong")
    with overhear() as said, hush("B"):
        warn("A is wrong")
        warn("B is wrong")
    assert said == ["A is wrong"]


def test_it_ends_with_the_block_also_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError), hush():
        raise ZeroDivisionError
    with pytest.warns(UnnormWarning):
        warn("heard again")


def test_two_threads_do_not_undo_each_other() -> None:
    """The order that `warnings.catch_warnings` cannot bear: A in, B in, A out, B warns. With it B's warning was given,
    and nothing at all was given afterwards."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    said: list[BaseException] = []

    def first() -> None:
        with hush():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second() -> None:
        first_in.wait(10)
        try:
            with hush():
                second_in.set()
                first_out.wait(10)
                warn("B is wrong")
        except BaseException as error:
            said.append(error)

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not said
    with pytest.warns(UnnormWarning):
        warn("heard again")


def test_threads_that_work_for_a_block_are_hushed_with_it() -> None:
    meet = threading.Barrier(2, timeout=10)

    def work(i: int) -> str:
        meet.wait()  # both threads have one
        warn(f"{i} is wrong")
        return threading.current_thread().name

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with hush():
            names = run_tasks(work, [(0,), (1,)], 2)
    assert len(set(names)) == 2


def test_rows_far_outside_are_hushed() -> None:
    import unnorm as un

    x = np.linspace(0.0, 1.0, 60)
    term = next(
        one for one in un.gam("y ~ s(x, k=5)", {"x": x, "y": np.sin(5 * x)}).terms if isinstance(one, SmoothTerm)
    )
    with hush():
        term.design({"x": np.array([9.0])})
    with pytest.warns(UnnormWarning, match="1 of 1 rows lie far outside"):
        term.design({"x": np.array([9.0])})
