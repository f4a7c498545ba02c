"""What the page is made of: sections with sentences, pictures and tables; and where the analysis came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from .interactive import Chart, Field, Frame


@final
@dataclass(frozen=True)
class Picture:
    """One figure: its image as a data URI, the text for those who do not see it, and a caption."""

    uri: str
    alt: str
    caption: str
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # format → the figure as a file
    chart: Chart | None = field(default=None, repr=False)  # the numbers behind its curves
    map: Field | None = field(default=None, repr=False)  # or behind its map
    frame: Frame | None = field(default=None, repr=False)  # where its one pair of axes is

    def __repr__(self) -> str:
        return f"Picture({self.caption!r}, {len(self.uri):,} characters)"


@final
@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and the number that it sorts by."""

    text: str
    value: float | None = None


@final
@dataclass(frozen=True)
class Table:
    """A table of the report."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@final
@dataclass(frozen=True)
class Section:
    """Sentences, pictures and tables under one heading; `make_sections` adds the anchor and the title."""

    text: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    pairs: bool = False  # pictures belong together two by two
    anchor: str = ""
    title: str = ""


@final
@dataclass(frozen=True)
class Provenance:
    """Where an analysis came from: what was fitted, on what, what was left out, and how to repeat it."""

    title: str
    facts: Sequence[tuple[str, str]]
    notes: Sequence[str]
    command: str
    settings: str = "The settings are also in config.toml beside this report: unnorm fit --config config.toml --out …"


def number(value: float, digits: int) -> Cell:
    """A number to so many digits; a dash where there is none."""
    return Cell("–") if value != value else Cell(f"{value:.{digits}f}", float(value))


def p_value(value: float) -> Cell:
    """A p-value, as papers print it."""
    if value != value:
        return Cell("–")
    return Cell("< 0.001" if value < 0.001 else f"{value:.3f}", float(value))
