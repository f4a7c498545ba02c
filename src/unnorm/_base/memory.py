"""Memory in words and in bytes: what a user allows, and what is free."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import InputError, MemoryLimitError, UnnormError

_UNITS = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}
_UNITS |= {"tib": 2.0**40}
_SHARE = 0.7  # of what is free that is taken unasked
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_USED = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")


def allowed(memory: object) -> float:
    """Bytes: of "2GB", "500 MB", "1.5GiB" or a number of bytes; None: most of what is free.

    >>> allowed("2GB"), allowed("1 KiB"), allowed(500)
    (2000000000.0, 1024.0, 500.0)
    """
    if memory is None:
        return _SHARE * free()
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z]+)\s*", memory)
        if found and found[2].lower() in _UNITS and float(found[1]) > 0:
            return float(found[1]) * _UNITS[found[2].lower()]
    elif isinstance(memory, int | float) and not isinstance(memory, bool) and 0 < memory < float("inf"):
        return float(memory)
    raise InputError(f"memory must be a size such as '2GB', '500MB' or '4GiB', or a number of bytes; got {memory!r}.")


def free() -> float:
    """Bytes that this process can still take, as far as the system tells; infinite where it does not."""
    found = [_machine(), _own_limit()]
    for limit, used in zip(_LIMITS, _USED):
        try:
            most = Path(limit).read_text().strip()
            if most != "max":
                found.append(float(most) - float(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return max(min(found), 0.0)


def _machine() -> float:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024.0
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _own_limit() -> float:
    """What `ulimit -v` leaves to this process."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        return float(limit) - float(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError, AttributeError):
        return float("inf")


def words(size: float) -> str:
    """A number of bytes for a sentence.

    >>> words(1.5e9), words(2.3e7), words(900.0)
    ('1.5 GB', '23 MB', '900 bytes')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def as_option(size: float) -> str:
    """A number of bytes as `memory=` takes it, rounded up.

    >>> as_option(1.21e9), as_option(2.3e7), as_option(120_400.0), as_option(12.0)
    ('1.3GB', '23MB', '121kB', '1kB')
    """
    unit, name = next((one for one in ((1e9, "GB"), (1e6, "MB")) if size >= one[0]), (1e3, "kB"))
    value = max(size / unit, 1.0)
    digits = 1 if value < 10.0 and unit > 1e3 else 0
    return f"{np.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}".removesuffix(".0") + name


@contextmanager
def in_words(remedy: str) -> Iterator[None]:
    """A sentence in place of a bare MemoryError of what runs inside."""
    try:
        yield
    except UnnormError:
        raise
    except MemoryError as error:
        what = str(error).rstrip(".") or "an allocation failed"
        raise MemoryLimitError(f"There is not enough memory ({what}; {words(free())} are free). {remedy}") from error


def require(size: float, what: str, remedy: str) -> None:
    """Refuse what would take more than is free, before it is allocated."""
    most = free()
    if size > most:
        raise MemoryLimitError(f"{what} would take about {words(size)}, and {words(most)} are free. {remedy}")
