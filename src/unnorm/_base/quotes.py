"""Quotation marks of a CSV file, looked at before it is parsed.

A cell in quotation marks may hold line ends, so that a mark which is never closed, or closed rows later by the mark of
another cell, makes one cell of all rows between them. Parsers take that as it is; here it has a sentence, and the line.
"""

from __future__ import annotations

import csv
import io
from typing import IO

import numpy as np

from ..errors import InputError
from .encodings import not_text

_CHUNK = 2**24  # bytes that are looked at together
_QUOTE = ord('"')


def check_quotes(file: IO[bytes], mark: str, path: str, line: int) -> None:
    """Refuse the rest of a file, which begins on `line`, unless every mark that opens a cell closes it."""
    begin = file.tell()
    if not _alternate(file, mark, path):  # a mark inside a cell without marks (5" is no quotation), or a fault
        file.seek(begin)
        _check_slowly(file, mark, path, line)


def _alternate(file: IO[bytes], mark: str, path: str) -> bool:
    """Whether marks open cells at their beginnings and close them at their ends in turn. A doubled mark, which stands
    for one of the text, closes and opens at the same place."""
    beside = np.zeros(256, dtype=bool)  # what may stand beside a mark, outside of the cell
    beside[list(b'\r\n"' + mark.encode())] = True
    inside, before = 0, ord("\n")
    while chunk := file.read(_CHUNK):
        while chunk.endswith(b'"') and (more := file.read(1)):  # what follows a mark is seen with it
            chunk += more
        if b"\0" in chunk:
            raise not_text(path)
        text = np.frombuffer(chunk, dtype=np.uint8)
        at = np.flatnonzero(text == _QUOTE)
        if at.size:
            last, following = text[at - 1], text[np.minimum(at + 1, text.size - 1)]
            last[at == 0] = before
            following[at == text.size - 1] = ord("\n")
            opens = (np.arange(at.size) + inside) % 2 == 0
            if not beside[np.where(opens, last, following)].all():
                return False
            inside = (inside + at.size) % 2
        before = chunk[-1]
    return inside == 0


def _check_slowly(file: IO[bytes], mark: str, path: str, line: int) -> None:
    text = io.TextIOWrapper(file, encoding="latin-1", newline="")  # bytes as they are: what they mean is no matter here
    reader = csv.reader(text, delimiter=mark, strict=True)
    row = line
    try:
        for _ in reader:
            row = line + reader.line_num
    except csv.Error as error:
        if "expected after" in str(error):
            raise InputError(
                f"Line {line + reader.line_num - 1} of {path!r} has text after a closing quotation mark, in the row "
                f"that begins on line {row}. Put the whole cell in quotation marks, with those of the text doubled."
            ) from error
        raise InputError(
            f"A quotation mark that opens a cell on line {row} of {path!r} is never closed. Remove it, or double it "
            "within a cell in quotation marks."
        ) from error
    finally:
        text.detach()
