"""Tables whose text is not UTF-8: UTF-16, which says so by its first two bytes, and Windows-1252 (with Latin-1 in it),
as Excel and many eye trackers write CSV files in Western Europe and America."""

from __future__ import annotations

import re
import shlex
from typing import final

from ..errors import InputError

NO_TEXT = "save it as comma-separated values in UTF-8 (in Excel: Save As, 'CSV UTF-8')"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")  # of no text; form feeds are
_LONE = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, as Python carries them


@final
class NotUTF8Error(InputError):
    """Text that is not UTF-8, and may be Windows-1252."""


def converted(path: str, encoding: str) -> str:
    """The command that makes a UTF-8 file of another one."""
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(path)} > utf8.csv"


def not_text(path: str) -> InputError:
    return InputError(f"{path!r} is not a text file, or one in UTF-16; {NO_TEXT}.")


def not_utf8(path: str, line: int | None = None) -> InputError:
    where = "" if line is None else f" (line {line})"
    return NotUTF8Error(
        f"{path!r} is not UTF-8 text{where}; {NO_TEXT}, or, where its encoding is Windows-1252, with "
        f"{converted(path, 'WINDOWS-1252')}"
    )


def without_mark(raw: bytes, path: str) -> bytes:
    """UTF-8 without the byte-order mark; UTF-16 with its mark as UTF-8."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return raw.decode("utf-16").encode("utf-8")
        except UnicodeError:
            raise not_text(path) from None
    return raw.removeprefix(b"\xef\xbb\xbf")


def from_western(raw: bytes) -> bytes | None:
    """Windows-1252 as UTF-8; None for what is no text of it, or is UTF-8 but for some damage."""
    mixed = _LONE.sub("", raw.decode("utf-8", "surrogateescape"))
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return text.encode("utf-8") if mixed.isascii() and not _CONTROLS.search(text) else None


def read_as_western(path: str) -> str:
    """The note of a file that was read so."""
    return (
        f"{path!r} is not UTF-8 text and was read as Windows-1252, as Excel writes it. If letters came out wrong, name "
        f"its encoding: {converted(path, 'ENCODING')}"
    )
