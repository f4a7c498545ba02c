"""Ways to damage a saved folder: what disks and people do to it, and what someone who means harm can write into it.

A digest finds the first kind. It is no signature, so that the second kind is signed again here: what is then read must
still be a fit or a sentence, and never code.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from unnorm._base import storage

Draw = Callable[[Any], Any]
CANARY = "UNNORM_CANARY"  # the environment variable that a pickle would set


class Bomb:
    """A pickle that runs code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.putenv, (CANARY, "ran"))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


# --- accidents --------------------------------------------------------------------------------------------------------


def _truncated(draw: Draw, folder: Path, other: Path) -> None:
    path = draw(st.sampled_from(files(folder)))
    raw = path.read_bytes()
    path.write_bytes(raw[: draw(st.integers(0, max(len(raw) - 1, 0)))])


def _flipped(draw: Draw, folder: Path, other: Path) -> None:
    path = draw(st.sampled_from(files(folder)))
    raw = bytearray(path.read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        raw[draw(st.integers(0, len(raw) - 1))] ^= 1 << draw(st.integers(0, 7))
    path.write_bytes(bytes(raw))


def _zeroed(draw: Draw, folder: Path, other: Path) -> None:
    path = draw(st.sampled_from(files(folder)))
    raw = bytearray(path.read_bytes())
    begin = draw(st.integers(0, len(raw) - 1))
    end = min(begin + draw(st.integers(1, 4096)), len(raw))
    raw[begin:end] = bytes(end - begin)
    path.write_bytes(bytes(raw))


def _inserted(draw: Draw, folder: Path, other: Path) -> None:
    path = draw(st.sampled_from(files(folder)))
    raw = path.read_bytes()
    at = draw(st.integers(0, len(raw)))
    path.write_bytes(raw[:at] + draw(st.binary(min_size=1, max_size=40)) + raw[at:])


def _doubled(draw: Draw, folder: Path, other: Path) -> None:
    path = draw(st.sampled_from(files(folder)))
    path.write_bytes(path.read_bytes() * 2)


def _deleted(draw: Draw, folder: Path, other: Path) -> None:
    draw(st.sampled_from(files(folder))).unlink()


def _folder_for_file(draw: Draw, folder: Path, other: Path) -> None:
    path = draw(st.sampled_from(files(folder)))
    path.unlink()
    path.mkdir()


def _from_the_other(draw: Draw, folder: Path, other: Path) -> None:
    """A file of another saved result of the same kind."""
    path = draw(st.sampled_from(files(folder)))
    theirs = other / path.relative_to(folder)
    shutil.copyfile(theirs if theirs.exists() else other / path.name, path)


def _exchanged(draw: Draw, folder: Path, other: Path) -> None:
    """Two files of one result, or the parts of a group."""
    parts = sorted(path for path in folder.iterdir() if path.is_dir())
    one, two = draw(st.sampled_from(parts or files(folder))), draw(st.sampled_from(parts or files(folder)))
    if one != two:
        one.rename(folder / "between")
        two.rename(one)
        (folder / "between").rename(two)


def _strange_file(draw: Draw, folder: Path, other: Path) -> None:
    """A name that leads somewhere else: to nothing, to itself, to a device without an end."""
    path = draw(st.sampled_from(files(folder)))
    path.unlink()
    path.symlink_to(draw(st.sampled_from([path, Path("/dev/zero"), Path("/nowhere"), folder])))


ACCIDENTS = (
    *(_truncated, _flipped, _zeroed, _inserted, _doubled, _deleted, _folder_for_file),
    *(_from_the_other, _exchanged, _strange_file),
)


# --- malice -----------------------------------------------------------------------------------------------------------


def sign(folder: Path, text: str) -> None:
    """Write the JSON file with the digest that belongs to it."""
    about = json.loads(text)
    about.pop("sha256", None)
    body = storage._json(about)
    with open(folder / storage.ARRAYS_NAME, "rb") as file:
        found = storage._digest(body, file)
    (folder / storage.JSON_NAME).write_text(f'{body}{storage._MARK}{found}"\n}}\n', encoding="utf-8")


def _sealed(folder: Path, top: Path) -> None:
    """Sign a folder, and the group that it is a part of."""
    sign(folder, (folder / storage.JSON_NAME).read_text(encoding="utf-8"))
    if folder != top:
        about = json.loads((top / storage.JSON_NAME).read_text(encoding="utf-8"))
        about["manifest"][folder.name] = storage.digest(folder)
        sign(top, json.dumps(about))


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [float("nan"), float("inf"), -float("inf"), 1e308, -1, 0, 10**30, 10**400, 5e-324, [], {}, "", "x"]
    ),
    st.sampled_from(["../../../etc/passwd", "__import__('os')", "\x00", "\ud800", "array:phi", "s(x, k=10000000)"]),
    st.integers(-3, 10**9),
    st.text(max_size=5),
    st.lists(st.one_of(st.none(), st.integers(-2, 3), st.text(max_size=2)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(-2, 2), max_size=2),
)


def _leaf(draw: Draw, value: Any) -> Any:
    """The same description with something else at one place, or without it."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        if not draw(st.integers(0, 6)):
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: _leaf(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        i = draw(st.integers(0, len(value) - 1))
        return [*value[:i], _leaf(draw, value[i]), *value[i + 1 :]]
    return draw(HOSTILE)


def _edited(draw: Draw, folder: Path, top: Path) -> None:
    path = folder / storage.JSON_NAME
    about = json.loads(path.read_text(encoding="utf-8"))
    key = draw(st.sampled_from(sorted(set(about) - {"sha256"})))
    about[key] = _leaf(draw, about[key])
    path.write_text(json.dumps(about), encoding="utf-8")
    _sealed(folder, top)


def _nested(draw: Draw, folder: Path, top: Path) -> None:
    """JSON that is deeper than the stack, or has more digits than anyone counts."""
    path = folder / storage.JSON_NAME
    deep = draw(
        st.sampled_from(["[" * 100_000, "[" * 100_000 + "]" * 100_000, "9" * 5000, '{"a":' * 50_000, "NaN", "-"])
    )
    path.write_text(
        path.read_text(encoding="utf-8").replace('"format": 1', f'"format": 1, "x": {deep}'), encoding="utf-8"
    )


def _versioned(draw: Draw, folder: Path, top: Path) -> None:
    path = folder / storage.JSON_NAME
    about = json.loads(path.read_text(encoding="utf-8"))
    about["format"] = draw(st.sampled_from([0, 2, 99, "1", None, [1], 1e308]))
    path.write_text(json.dumps(about), encoding="utf-8")
    _sealed(folder, top)


def _npy(descr: str, shape: str, body: bytes) -> bytes:
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


def _members(folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(folder / storage.ARRAYS_NAME) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _rewrite(folder: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(folder / storage.ARRAYS_NAME, "w", compression) as archive:
        for name, raw in members:
            archive.writestr(name, raw)


def _arrays(draw: Draw, folder: Path, top: Path) -> None:
    """Another array in the place of one: objects, absurd sizes, other kinds, other shapes."""
    members = _members(folder)
    name = draw(st.sampled_from(sorted(members)))
    bad = {
        "pickle": _npy("'|O'", "(1,)", pickle.dumps([Bomb()])),
        "pickle in fields": _npy("[('a', '|O')]", "(1,)", pickle.dumps([Bomb()])),
        "absurd": _npy("'<f8'", "(1000000000000,)", bytes(8)),
        "absurd product": _npy("'<f8'", f"({2**32}, {2**32})", bytes(8)),
        "negative": _npy("'<f8'", "(-1,)", bytes(8)),
        "nothing wide": _npy("'|V0'", "(1000000000000,)", b""),
        "no header": b"\x93NUMPY\x01\x00\xff\xff",
        "nested header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 9000) + b"(" * 9000,
        "long header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 100,
        "version": b"\x93NUMPY\x09\x00" + bytes(100),
        "code": _npy("__import__('os').system('true')", "(1,)", bytes(8)),
        "empty": b"",
        "text": _saved(np.array(["a", "b"])),
        "nothing": _saved(np.zeros(0)),
        "number": _saved(np.float64(3.0)),
        "deep": _saved(np.zeros((1, 1, 1, 1))),
        "not numbers": _saved(np.full(3, np.nan)),
        "fractions": _saved(np.array([0.5, 1.5])),
        "whole": _saved(np.arange(5)),
    }
    members[name] = bad[draw(st.sampled_from(sorted(bad)))]
    _rewrite(folder, list(members.items()))
    _sealed(folder, top)


def _saved(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _archive(draw: Draw, folder: Path, top: Path) -> None:
    """Another archive: bombs, names that lead outside, names that come twice, flags that nobody set."""
    members = list(_members(folder).items())
    kind = draw(st.sampled_from(["bomb", "names", "twice", "encrypted", "method", "short", "not npy", "missing"]))
    if kind == "bomb":
        _rewrite(folder, [*members, ("bomb.npy", _saved(np.zeros(2_000_000)))], zipfile.ZIP_DEFLATED)
    elif kind == "names":
        _rewrite(
            folder, [*members, (draw(st.sampled_from(["../evil.npy", "/evil.npy", "a/../../b.npy"])), _saved(1.0))]
        )
    elif kind == "twice":
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _rewrite(folder, [*members, members[0]])
    elif kind == "not npy":
        _rewrite(folder, [*members, ("evil.pkl", pickle.dumps(Bomb()))])
    elif kind == "missing":
        gone = draw(st.integers(0, len(members) - 1))
        _rewrite(folder, members[:gone] + members[gone + 1 :])
    else:
        raw = bytearray((folder / storage.ARRAYS_NAME).read_bytes())
        central = raw.rfind(b"PK\x01\x02")  # the last entry of the table at the end
        offset, value = {"encrypted": (8, 1), "method": (10, 99), "short": (24, 2**31)}[kind]
        raw[central + offset : central + offset + 2] = struct.pack("<I", value)[:2]
        (folder / storage.ARRAYS_NAME).write_bytes(bytes(raw))
    _sealed(folder, top)


def _manifest(draw: Draw, folder: Path, top: Path) -> None:
    path = top / storage.JSON_NAME
    about = json.loads(path.read_text(encoding="utf-8"))
    name = draw(st.sampled_from(["..", "../..", "/etc", "level-0", "level-7", "", "group/../level-0", "\x00"]))
    about["manifest"] = draw(st.sampled_from([None, [], {}, {name: "0" * 64}, {name: None}, "level-0"]))
    path.write_text(json.dumps(about), encoding="utf-8")
    sign(top, path.read_text(encoding="utf-8"))


MALICE = (_edited, _edited, _edited, _nested, _versioned, _arrays, _arrays, _archive, _manifest)
