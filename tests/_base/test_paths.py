"""Paths that are none, too long, closed or strangely named: a sentence of one line, or what was saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError, UnnormError

LONG = "x" * 300
MODEL = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))


@pytest.fixture(scope="module")
def fit() -> Any:
    return un.fit(MODEL, un.iid([0.1, 0.5, 0.7]))


@pytest.mark.parametrize("path", [b"saved", 3, None, ["saved"], "a\0b"], ids=repr)
def test_what_is_no_path(fit: Any, path: Any) -> None:
    for use in (fit.save, un.load):
        with pytest.raises(InputError, match="path"):
            use(path)


@pytest.mark.parametrize("name", [LONG, "two\nlines", "\x1b[31m", "none"])
def test_what_is_not_there(tmp_path: Path, name: str) -> None:
    asked = (lambda: un.load(tmp_path / name), lambda: un.gam("y ~ x", tmp_path / f"{name}.csv"))
    for ask in asked:
        with pytest.raises(UnnormError, match=r"not a saved fit|[Nn]o file|File name too long") as found:
            ask()
        assert str(found.value).isprintable()


@pytest.mark.parametrize("name", ["two\nlines", "a\tb", " ", "é日本", "-x", "*", "%s", ".hidden"])
def test_strange_names_are_names(fit: Any, tmp_path: Path, name: str) -> None:
    fit.save(tmp_path / name)
    np.testing.assert_array_equal(un.load(tmp_path / name, MODEL).estimate, fit.estimate)
    assert os.listdir(tmp_path) == [name]
    (tmp_path / name / "fit.json").write_text("{")
    with pytest.raises(InputError, match="damaged") as found:
        un.load(tmp_path / name, MODEL)
    assert str(found.value).isprintable()


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_closed_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Root may look into any folder, so that the system's answer is played."""

    def closed(self: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", closed)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        un.load(tmp_path / "closed")


def test_links(fit: Any, tmp_path: Path) -> None:
    """To a saved fit, to nothing, to itself: a link stays one."""
    fit.save(tmp_path / "real")
    for name, target in (("link", "real"), ("dangling", "later")):
        (tmp_path / name).symlink_to(tmp_path / target)
        fit.save(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        np.testing.assert_array_equal(un.load(tmp_path / target, MODEL).estimate, fit.estimate)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for use in (fit.save, un.load):
        with pytest.raises(InputError, match="not a saved fit"):
            use(tmp_path / "loop")
