"""A job: everything that `unnorm fit` is told, from the command line and from a TOML file, and written back as TOML."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, final

from ..errors import InputError, listing, short, unknown

TERMS = "s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)"  # the paper's, Appendix C
POISSON_NORMALISER = "s(x_prev, y_prev, k=40)"  # where none is named; elsewhere the constants follow the effects
REFERENCES = 20
BUNDLED = "bundled:eye"  # names the data set that comes with unnorm, in place of a file
OBJECTIVES = ("logistic", "ranking", "poisson")
SMOOTHING = ("reml", "ml", "gcv", "ubre", "cv")
MOST_REFERENCES = 10_000
FORMAT = 1  # of config.toml; may be left out
LARGEST_CONFIG = 1_000_000  # bytes
_ACTIVE = {*'"$`\\!\n'}  # what double quotation marks do not protect
LARGEST_SEED = 2**63 - 1


@final
@dataclass(frozen=True)
class Job:
    """The settings of one run. Names are the options' own; `config.toml` has the same ones."""

    data: str  # path of the table
    y: tuple[str, ...] = ("x", "y")
    order: str | None = None
    group: tuple[str, ...] = ()
    by: str | None = None
    columns: tuple[str, ...] = ()  # of a file without a line of names
    window: tuple[float, ...] | str = ()  # x from, to, y from, to; the path of a polygon, or of a table of sizes
    window_key: str | None = None  # whose window each is; None: the column of --group that the file has
    px_per_degree: float | None = None  # of visual angle: coordinates are divided by it
    unit: str | None = None  # of lengths, on axes
    terms: str = TERMS
    normaliser: str | None = None  # None: they follow the effects
    normaliser_smoothing: str = "none"
    references: int = REFERENCES
    objective: str = "logistic"
    points: str | None = None  # None: as the objective needs
    smoothing: str = "reml"
    between: str | None = None  # conditions to compare
    seed: int = 1
    level: float = 0.95
    lags: int = 1
    max_gap: float | str | None = None
    map: tuple[str, ...] = ()
    distance: tuple[str, ...] = ()
    covariate: tuple[str, ...] = ()
    duration: str | None = None  # the column of how long each point lasts
    centre: tuple[float, ...] = ()
    drop_first: bool = False
    y_down: bool = False
    outside: str = "error"
    missing: str = "error"

    @property
    def scale(self) -> float:
        """What coordinates are multiplied with: from pixels to degrees of visual angle."""
        return 1.0 if self.px_per_degree is None else 1.0 / self.px_per_degree

    @property
    def length_unit(self) -> str | None:
        """Of lengths, for axes."""
        return self.unit or (None if self.px_per_degree is None else "°")

    def command(self, out: str = "results") -> str:
        """The line for the shell that repeats the run."""
        if any("," in name for name in (*self.y, *self.group, *self.columns)):  # in the shell commas separate names
            return shell_line(["unnorm", "fit", "--config", "config.toml", "--out", out])
        words = ["unnorm", "fit", self.data]
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if name == "data" or value is None or (value == default and name not in ALWAYS):
                continue
            option = f"--{name.replace('_', '-')}"
            if isinstance(value, bool):
                words.append(option)
            elif name in REPEATED:
                words += [part for one in value for part in (option, one)]
            else:
                words.append(f"{option}={text}" if (text := _joined(value)).startswith("-") else option)
                words += [] if text.startswith("-") else [text]
        return shell_line([*words, "--out", out])

    def toml(self) -> str:
        """The settings as TOML; `checked_job(tomllib.loads(text))` gives the same job back."""
        lines = ["# unnorm fit --config config.toml --out ANOTHER_FOLDER repeats this run.", f"format = {FORMAT}"]
        for name, value in asdict(self).items():
            if value is not None and value != ():
                lines.append(f"{name} = {_toml(value)}")
        return "\n".join(lines) + "\n"


_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(Job)}
ALWAYS = ("y", "terms", "references", "smoothing", "seed")  # shown even at their defaults
REPEATED = ("map", "distance", "covariate")
_LISTS = ("y", "group", "columns", "map", "distance", "covariate")
_TEXTS = (
    "data", "order", "by", "terms", "normaliser", "objective", "points", "smoothing", "outside", "missing",
    "window_key", "unit", "duration",
)  # fmt: skip
_WHOLE = {"references": (1, MOST_REFERENCES), "seed": (0, LARGEST_SEED), "lags": (1, 10)}
_CHOICES = {
    "objective": OBJECTIVES,
    "smoothing": SMOOTHING,
    "normaliser_smoothing": ("none", "reml"),
    "outside": ("error", "drop"),
    "missing": ("error", "drop"),
}


def checked_job(given: Mapping[str, Any], source: str = "the command line") -> Job:
    """A job from settings, each checked: an error says which one, what was expected and what came."""
    settings = {name.replace("-", "_"): value for name, value in given.items() if value is not None}
    if (version := settings.pop("format", FORMAT)) != FORMAT or isinstance(version, bool):
        raise InputError(f"{source} has format {version!r}; this version of unnorm reads format {FORMAT}.")
    names = list(_DEFAULTS)
    for name in settings:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(
                f"{source} has an unknown setting {short(name)}; the settings are {listing(names, most=40)}.{hint}"
            )
    values = {name: _checked(name, value, source) for name, value in settings.items()}
    if not values.get("data"):
        raise InputError("A table of fixations is needed: unnorm fit FIXATIONS.csv …, or data = '…' in --config.")
    job = Job(**values)
    if not job.window:
        raise InputError(
            f"--window is needed: x from, to, y from, to of the whole screen, image or plot, as --window 0,800,0,600; "
            f"{_extent(job)}a polygon file (.geojson, .wkt); or a table with the size of each image (.csv with image, "
            "width, height)."
        )
    if job.by is not None and job.by not in job.group:
        raise InputError(
            f"--by must be one of the columns of --group, which tell sequences apart; got --by {job.by!r} and --group "
            f"{listing(job.group) or 'with no columns'}. {_by_or_group(job)}"
        )
    if job.between is not None:
        job = _compared(job)
    if job.normaliser is None and job.normaliser_smoothing != "none":
        raise InputError(
            "--normaliser-smoothing penalises the terms of --normaliser, and none are given: by default the constants "
            f"follow the effects. Leave it out, or give terms, as --normaliser '{POISSON_NORMALISER}'."
        )
    if job.objective == "ranking" and job.points not in (None, "iid"):
        raise InputError(f"--objective ranking needs independent reference points, --points iid; got {job.points!r}.")
    return job


def _by_or_group(job: Job) -> str:
    close = difflib.get_close_matches(str(job.by).lower(), {one.lower(): one for one in job.group}, n=1, cutoff=0.8)
    meant = [one for one in job.group if close and one.lower() == close[0]]
    return f"Did you mean --by {meant[0]}?" if meant else f"Write --group '{','.join((str(job.by), *job.group))}'."


def _extent(job: Job) -> str:
    """Where the points of a table lie, for someone who is asked for the window; what is wrong with it is said first."""
    from .._base.files import read_table
    from .._base.frames import only

    if job.data == BUNDLED or len(job.y) != 2:
        return ""
    table = read_table(job.data, only(y=job.y), job.columns or None)
    numbers = {
        name: [v for v in table[name].tolist() if isinstance(v, int | float) and math.isfinite(v)] for name in job.y
    }
    if not all(numbers.values()):
        return ""
    where = " and ".join(f"{name} from {min(values):g} to {max(values):g}" for name, values in numbers.items())
    return f"the points lie in {where}; or "


def _compared(job: Job) -> Job:
    """With the column of conditions among those of the groups: no step leads from one condition to another."""
    if job.by is None:
        raise InputError(
            f"--between compares conditions of the levels of --by, as --by subject --between {job.between}; got no "
            "--by."
        )
    if job.between == job.by:
        raise InputError(f"--between must name the conditions, and --by the subjects; got {job.by!r} for both.")
    return job if job.between in job.group else replace(job, group=(*job.group, str(job.between)))


def _schemes() -> tuple[str, ...]:
    """The registered point schemes, as the shell names them; imported when asked for, as the shell starts without."""
    from .._base.words import by_word
    from ..references import SCHEMES

    return tuple(by_word(SCHEMES))


def _checked(name: str, value: Any, source: str) -> Any:
    what = f"{name!r} in {source}" if source.endswith(".toml") else f"--{name.replace('_', '-')}"
    if name in _WHOLE:
        return whole(what, value, *_WHOLE[name])
    if name in _CHOICES or name == "points":
        choices = _CHOICES[name] if name in _CHOICES else _schemes()
        if value not in choices:
            raise InputError(unknown(what, value, choices))
        return value
    if name == "level":
        level = _number(what, value)
        if not 0 < level < 1:
            raise InputError(f"{what} must lie between 0 and 1, as 0.95; got {short(value)}.")
        return level
    if name == "px_per_degree":
        density = _number(what, value)
        if not density > 0:
            raise InputError(f"{what} must be a positive number, as 24; got {short(value)}.")
        return density
    if name == "max_gap":
        if isinstance(value, str) and value.strip()[-1:].isalpha():
            return _gap(what, value)
        gap = _number(what, value)
        if not gap > 0:
            raise InputError(f"{what} must be a positive number; got {short(value)}.")
        return gap
    if name in ("drop_first", "y_down"):
        if not isinstance(value, bool):
            raise InputError(f"{what} must be true or false; got {short(value)}.")
        return value
    if name == "window":
        return _window(what, value)
    if name == "centre":
        point = numbers(what, value)
        if len(point) != 2:
            raise InputError(f"{what} must be two numbers, as 400,300; got {short(value)}.")
        return point
    if name in _LISTS:
        return _list(what, value, split=name not in REPEATED)
    assert name in (*_TEXTS, "between")
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be text; got {short(value)}.")
    return _unicode(what, value)


def _gap(what: str, value: str) -> str:
    from ..data.chains import span

    if span(value) is None:
        raise InputError(f"{what} must be a number, or a time such as 20min, 6h or '1h 30min'; got {short(value)}.")
    return value


def _unicode(what: str, text: str) -> str:
    """File names may hold bytes that are not text, which config.toml could not hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{what} must be UTF-8 text; got {text!r}. Rename the file.") from None
    return text


def whole(what: str, value: Any, least: int, most: int) -> int:
    """A whole number within bounds, from text or as a number; 1.5 is not taken for 1."""
    if isinstance(value, str) and value.strip().removeprefix("-").isdecimal() and len(value) < 30:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{what} must be a whole number from {least} to {most}; got {short(value)}.")
    return value


def _number(what: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise InputError(f"{what} must be a finite number; got {short(value)}.")
    return number


def numbers(what: str, value: Any) -> tuple[float, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    wrong = InputError(f"{what} must be finite numbers with commas between them; got {short(value)}.")
    if not isinstance(parts, Sequence):
        raise wrong
    try:
        return tuple(_number(what, part.strip() if isinstance(part, str) else part) for part in parts)
    except InputError:
        raise wrong from None


def _window(what: str, value: Any) -> tuple[float, ...] | str:
    from .._base.files import SUFFIXES

    if isinstance(value, str) and value.lower().endswith((".geojson", ".json", ".wkt", *SUFFIXES)):
        return value
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*[,x×*]\s*(\d+(?:\.\d+)?)\s*", value) if isinstance(value, str) else None
    if size:
        raise InputError(
            f"{what} must be four numbers, x from, to, y from, to; got {short(value)}. For a width and a height write "
            f"0,{size[1]},0,{size[2]}."
        )
    bounds = numbers(what, value)
    if len(bounds) != 4:
        raise InputError(
            f"{what} must be four numbers, x from, to, y from, to, as 0,800,0,600, a polygon file (.geojson, .wkt) or "
            f"a table of sizes (.csv); got {len(bounds)}: {short(value)}."
        )
    x0, x1, y0, y1 = bounds
    if not (x0 < x1 and y0 < y1):
        raise InputError(
            f"{what} must be x from, to, y from, to, with from < to; got x {x0:g} to {x1:g} and y {y0:g} to {y1:g}."
        )
    return bounds


def _list(what: str, value: Any, split: bool) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
        raise InputError(f"{what} must be text, or a list of texts; got {short(value)}.")
    if split and isinstance(value, str):
        items = [part.strip() for part in value.split(",")]
    if any(not item.strip() for item in items):
        raise InputError(f"{what} has an empty name; got {short(value)}.")
    return tuple(_unicode(what, item) for item in items)


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings of a TOML file."""
    import tomllib

    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no configuration file {str(path)!r}.")
    try:
        if path.stat().st_size > LARGEST_CONFIG:
            raise InputError(f"The configuration {str(path)!r} is larger than {LARGEST_CONFIG:,} bytes: not a job's.")
        settings = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:  # also TOMLDecodeError, UnicodeDecodeError
        if isinstance(error, InputError):
            raise
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"The configuration {str(path)!r} is not TOML that can be read: {line}.") from error
    return settings


def shell_line(words: Sequence[str]) -> str:
    """The words as they are typed: in double quotation marks where they hold single ones, as bs='cc' does.

    >>> shell_line(["unnorm", "fit", "my data.csv", "--terms", "s(angle, bs='cc')"])
    'unnorm fit \'my data.csv\' --terms "s(angle, bs=\'cc\')"'
    """
    return " ".join(f'"{one}"' if "'" in one and not _ACTIVE & {*one} else shlex.quote(one) for one in words)


def _joined(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(_plain(item) for item in value)
    return _plain(value)


def _plain(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    """A character of a TOML basic string: quotes, backslashes and control characters are escaped."""
    if char in '"\\':
        return "\\" + char
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    if char in short:
        return short[char]
    return f"\\u{ord(char):04x}" if ord(char) < 0x20 or ord(char) == 0x7F else char
