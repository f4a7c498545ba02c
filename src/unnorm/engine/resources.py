"""Where the rows of a fit live: whole in memory, in parts of which some are held, or with workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from .._base.memory import allowed, as_option, words
from .._base.threads import cores
from .._base.words import option
from ..errors import CombinationError, MemoryLimitError
from .estimate import foretold, row_bytes
from .gam_rows import check_total
from .partition import PartitionedDesign
from .parts import Parts, Recipe, local_parts
from .plan import Plan

if TYPE_CHECKING:
    from .sides import Sides

FAMILIES = ("binomial", "poisson", "gaussian")  # whose rows may be in parts
_COLUMNS = 3_000  # coefficients from which p × p algebra without levels is too much
_WORKING = 2.0  # a part while it is made, over what it takes when it is made
_TAKEN = 0.6  # of a worker's memory that rows may take: Dask moves data to the disk from there on


@final
@dataclass(frozen=True)
class Resources:
    """What the user allows."""

    memory: Any = None  # "2GB", bytes; None: most of what is free
    workers: Any = None  # a dask.distributed client
    threads: int | None = None
    folds: Any = None  # a client whose workers share the folds of cross-validation, the rows being in memory

    @property
    def asked(self) -> bool:
        """Whether the rows are to be in parts."""
        return self.memory is not None or self.workers is not None

    @contextmanager
    def opened(self) -> Iterator[Resources]:
        """The same with a client in place of a number of workers, or of an address."""
        if self.workers is None:
            yield self
            return
        from .._base.workers import client_of

        with client_of(self.workers) as client:
            yield replace(self, workers=client)

    @property
    def client(self) -> Any:
        """The client whose workers have the rows, while it is connected; else None."""
        return self.workers if self.workers is not None and self.workers.status == "running" else None

    def choosing(self, method: str) -> Resources:
        """The same for a fit whose smoothing is chosen so: cross-validation has its rows in memory here, and its folds
        with the workers."""
        if method.upper() != "CV" or self.workers is None or self.memory is not None:
            return self
        return replace(self, workers=None, folds=self.workers)

    def parts(self, plan: Plan, recipes: Sequence[Recipe], rows: int, family: str) -> Parts:
        """The parts where they are to be; refused before they are made where they do not fit there."""
        threads = cores() if self.threads is None else self.threads
        if self.workers is not None:
            from .dask_parts import dask_parts

            self.require_workers(plan, rows, recipes[0].numbers)
            return dask_parts(plan, recipes, self.workers)
        budget = allowed(self.memory)
        block = -(-rows // len(recipes))
        row = row_bytes(plan, recipes[0].numbers)
        each = row * block
        threads = min(threads, len(recipes))
        least = _WORKING * each * threads
        while least > budget and threads > 1:
            threads -= 1
            least = _WORKING * each * threads
        if least > budget:
            met = f"{rows:,} rows of {row:.0f} bytes are met {block:,} at a time, which takes {words(least)}"
            if self.memory is None:
                raise MemoryLimitError(
                    f"There is not enough memory: {met}, and {words(budget)} can be taken. End other programs, or use "
                    f"fewer rows, a smaller {option('per_point')}, or terms with fewer functions."
                )
            raise MemoryLimitError(
                f"{met}; {option('memory')} allows {words(budget)}. Pass {option('memory', as_option(least))} or more, "
                "or use terms with fewer functions."
            )
        parts = local_parts(plan, recipes, budget - least, threads)
        foretold(parts, rows, family, budget - least)
        return parts

    def require_workers(self, plan: Plan, rows: int, numbers: int = 3) -> None:
        """Refuse rows that the workers cannot hold together, before any is made."""
        limits = [one.get("memory_limit") for one in self.workers.scheduler_info()["workers"].values()]
        if not limits or any(not limit for limit in limits):
            return  # no workers yet, or no limit
        row = row_bytes(plan, numbers)
        size, room = row * rows, _TAKEN * float(sum(limits))
        if size > room:
            more = -(-size // (_TAKEN * float(sum(limits)) / len(limits)))
            raise MemoryLimitError(
                f"{rows:,} rows of {row:.0f} bytes take {words(size)}, and the {len(limits)} workers can "
                f"hold {words(room)}. Start {more:.0f} such workers or more, give each more memory, or leave workers= "
                "out: memory= then keeps what does not fit on the disk."
            )


_INSTEAD = {
    "nb": "θ is estimated from all rows together: leave memory= and workers= out, or use family='poisson'.",
    "quasipoisson": "family='poisson' has the same curves for given smoothing; multiply its standard errors by √φ, φ "
    "from a fit of some of the rows with family='quasipoisson'.",
}


def require(family: str, method: str, size: int) -> None:
    """Refuse what rows in parts cannot do."""
    if family not in FAMILIES:
        raise CombinationError(
            f"memory= and workers= take the families {', '.join(FAMILIES)}; got family={family!r}. {_INSTEAD[family]}"
        )
    if method == "CV":
        raise CombinationError(
            "method='CV' fits rows in memory: pass a table that fits there and leave memory= out (workers= then share "
            "the folds), or use method='REML'."
        )
    if size > _COLUMNS:
        raise CombinationError(
            f"memory= and workers= take up to {_COLUMNS:,} coefficients, and the terms have {size:,}: levels of a "
            "factor are not separated where rows are in parts. Leave memory= and workers= out, or lower k."
        )


def partitioned(
    plan: Plan, parts: Callable[[], Parts], family: tuple[str, str | None, str]
) -> tuple[PartitionedDesign, Sides]:
    """The design in parts, and the response's side of its fit."""
    name, link, method = family
    require(name, method, plan.frame.size)
    design = PartitionedDesign(parts())
    side = design.sides(name, link)
    if side.rows.weights.size:
        check_total(float(side.rows.weights.sum()), side.count)
    return design, side


def in_memory_bytes(plan: Plan, rows: int) -> float:
    """What all rows take in compact form."""
    return row_bytes(plan) * float(rows)
