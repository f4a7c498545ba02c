"""Saved folders: whole or not at all, never code, damage named."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from unnorm._base import atomic, storage
from unnorm.errors import InputError


def _write(path: Path, value: float = 1.0) -> Path:
    return storage.write_folder(path, {"class": "Fit", "value": value}, {"a": np.arange(3.0)})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    about = {"text": "θ ∝ exp f", "nan": float("nan"), "list": [1, 2.5, None, True]}
    arrays = {
        "x": np.arange(6.0).reshape(2, 3),
        "names": np.array(["a", "β"], dtype=object),
        "flags": np.array([True, False]),
    }
    storage.write_folder(tmp_path / "deep" / "er", about, arrays)
    found, read = storage.read_folder(tmp_path / "deep" / "er")
    assert found["text"] == about["text"]
    assert np.isnan(found["nan"])
    assert found["list"] == about["list"]
    np.testing.assert_array_equal(read["x"], arrays["x"])
    assert read["names"].tolist() == ["a", "β"]
    assert read["flags"].dtype == bool


def test_overwriting_replaces_all_and_leaves_nothing_behind(tmp_path: Path) -> None:
    _write(tmp_path / "fit", 1.0)
    _write(tmp_path / "fit", 2.0)
    assert storage.read_folder(tmp_path / "fit")[0]["value"] == 2.0
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]


def test_a_failed_write_leaves_the_old_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "fit", 1.0)

    def broken(*args: object, **kwargs: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(InputError, match=r"fit' cannot be written: disk full"):
        _write(tmp_path / "fit", 2.0)
    assert storage.read_folder(tmp_path / "fit")[0]["value"] == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]


def test_a_failed_swap_puts_the_old_fit_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "fit", 1.0)
    real, calls = storage.os.replace, []

    def fails(a: Path, b: Path) -> None:
        if b.name == "fit" and not calls:
            calls.append(a)
            raise OSError("gone")
        real(a, b)

    monkeypatch.setattr(atomic, "_swapped", lambda *_: False)  # as where the system cannot exchange two names
    monkeypatch.setattr(storage.os, "replace", lambda a, b: fails(Path(a), Path(b)))
    with pytest.raises(InputError, match="gone"):
        _write(tmp_path / "fit", 2.0)
    assert storage.read_folder(tmp_path / "fit")[0]["value"] == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]


def test_a_folder_that_is_not_a_fit_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.txt").write_text("miaow")
    with pytest.raises(InputError, match="is not a saved fit; choose another path"):
        _write(tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.txt").read_text() == "miaow"


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is not a saved fit"):
        _write(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written"):
        _write(tmp_path / "file" / "fit")


def test_a_path_without_a_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"it has no fit\.json"):
        storage.read_folder(tmp_path / "nothing")


@pytest.mark.parametrize("damage", ["json", "npz", "missing", "truncated", "format", "list", "edited", "other arrays"])
def test_damage_is_named(tmp_path: Path, damage: str) -> None:
    path = _write(tmp_path / "fit")
    text, arrays = path / storage.JSON_NAME, path / storage.ARRAYS_NAME
    if damage == "json":
        text.write_text("{ not json")
    elif damage == "npz":
        arrays.write_bytes(b"not a zip file")
    elif damage == "missing":
        arrays.unlink()
    elif damage == "truncated":
        arrays.write_bytes(arrays.read_bytes()[:40])
    elif damage == "format":
        text.write_text(json.dumps({**json.loads(text.read_text()), "format": 99}))
    elif damage == "edited":
        text.write_text(text.read_text().replace("1.0", "2.0"))
    elif damage == "other arrays":
        np.savez(arrays, a=np.arange(4.0))
    else:
        text.write_text("[1, 2]")
    with pytest.raises(InputError, match=r"damaged|cannot read"):
        storage.read_folder(path)


def test_what_can_be_described_comes_back_undamaged(tmp_path: Path) -> None:
    about = {"a": (1, 2.5, float("inf")), 3: None, "µ": "\u0000", "big": 10**40, "small": 5e-324}
    found, _ = storage.read_folder(storage.write_folder(tmp_path / "fit", about, {}))
    assert found == {"format": 1, "a": [1, 2.5, float("inf")], "3": None, "µ": "\u0000", "big": 10**40, "small": 5e-324}


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('code ran')",))


def test_loading_never_runs_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array of pickled objects is refused, not unpickled."""
    path = _write(tmp_path / "fit")
    monkeypatch.setattr(storage, "_digest", lambda *_: storage.digest(path))  # the digest does not find it
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    head = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + "\n"
    body = header + head.encode() + pickle.dumps([Bomb()])
    with zipfile.ZipFile(path / storage.ARRAYS_NAME, "w") as out:
        out.writestr("a.npy", body)
    with pytest.raises(InputError, match=r"damaged \(ValueError: an array of Python objects, which are never loaded"):
        storage.read_folder(path)


def test_objects_are_stored_as_text(tmp_path: Path) -> None:
    storage.write_folder(tmp_path / "f", {}, {"o": np.array([1, "b", None], dtype=object)})
    assert storage.read_folder(tmp_path / "f")[1]["o"].tolist() == ["1", "b", "None"]


def test_labels_without_characters_do_not_fill_the_memory() -> None:
    """NumPy makes room for a character of each: ten billion of them take no byte of the file, and 40 GB here."""

    def raw(count: int) -> bytes:
        header = f"{{'descr': '<U0', 'fortran_order': False, 'shape': ({count},), }}".encode()
        header += b" " * (64 - (len(header) + 11) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header

    assert storage._array(raw(3)).tolist() == ["", "", ""]
    with pytest.raises(ValueError, match="with no bytes"):
        storage._array(raw(10**10))


def test_what_is_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path, read = _write(tmp_path / "fit", 1.0), []

    def torn() -> tuple[float, float]:
        first = storage.read_folder(path)[0]["value"]
        if not read:
            _write(path, 2.0)  # by another process
        elif len(read) == 1:
            _write(path, 3.0)
            read.append(True)
            raise InputError("half of it is another's.")
        read.append(True)
        return first, storage.read_folder(path)[0]["value"]

    assert storage.settled(path, torn) == (3.0, 3.0)
    with pytest.raises(InputError, match="in earnest"):
        storage.settled(path, lambda: _refused("in earnest."))
    with pytest.raises(InputError, match="again and again"):
        storage.settled(path, lambda: _write(path))


def _refused(text: str) -> None:
    raise InputError(text)
