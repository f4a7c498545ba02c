"""Where the rows of a fit live: whole in memory, in parts of which some are held, or with workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from .._base.memory import allowed, words
from .._base.threads import cores
from ..errors import CombinationError, MemoryLimitError
from .partition import PartitionedDesign
from .parts import Parts, Recipe, local_parts
from .plan import Plan

if TYPE_CHECKING:
    from .sides import Sides

FAMILIES = ("binomial", "poisson", "gaussian")  # whose rows may be in parts
_COLUMNS = 3_000  # coefficients from which p × p algebra without levels is too much
_WORKING = 2.0  # a part while it is made, over what it takes when it is made


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

    def choosing(self, method: str) -> Resources:
        """The same for a fit whose smoothing is chosen so: cross-validation has its rows in memory here, and its folds
        with the workers."""
        if method.upper() != "CV" or self.workers is None or self.memory is not None:
            return self
        return replace(self, workers=None, folds=self.workers)

    def parts(self, plan: Plan, recipes: Sequence[Recipe], rows: int) -> Parts:
        """The parts where they are to be."""
        threads = cores() if self.threads is None else self.threads
        if self.workers is not None:
            from .dask_parts import dask_parts

            return dask_parts(plan, recipes, self.workers)
        budget = allowed(self.memory)
        block = -(-rows // len(recipes))
        each = row_bytes(plan) * block
        threads = min(threads, len(recipes))
        least = _WORKING * each * threads
        while least > budget and threads > 1:
            threads -= 1
            least = _WORKING * each * threads
        if least > budget:
            raise MemoryLimitError(
                f"{rows:,} rows of {row_bytes(plan):.0f} bytes are met {block:,} at a time, which takes "
                f"{words(least)}; memory= allows {words(budget)}. Pass memory='{least / 1e6:.0f}MB' or more, or use "
                "terms with fewer functions."
            )
        return local_parts(plan, recipes, budget - least, threads)


def row_bytes(plan: Plan) -> float:
    """What a row takes in compact form, about: cells, dense columns, response, weight and offset; a context's columns
    shared between its rows are counted as one number."""
    (segment,) = plan.frame.segments
    product = 0 if segment.product is None else segment.product.u.shape[1]
    dense = segment.x.shape[1] if segment.dense is None else 0
    context = segment.z.shape[1] / (16.0 if plan.contexts else 64.0)
    return (
        24.0 + 8.0 * (segment.u.shape[1] + segment.mult.shape[1] + product + dense + context) + 4.0 * segment.f.shape[1]
    )


def require(family: str, method: str, size: int) -> None:
    """Refuse what rows in parts cannot do."""
    if family not in FAMILIES:
        raise CombinationError(
            f"memory= and workers= take the families {', '.join(FAMILIES)}; got family={family!r}. Leave them out."
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
    plan: Plan, recipes: Callable[[], Sequence[Recipe]], rows: int, family: tuple[str, str | None, str],
    resources: Resources,
) -> tuple[PartitionedDesign, Sides]:  # fmt: skip
    """The design in parts, and the response's side of its fit."""
    name, link, method = family
    require(name, method, plan.frame.size)
    design = PartitionedDesign(resources.parts(plan, recipes(), rows))
    return design, design.sides(name, link)


def in_memory_bytes(plan: Plan, rows: int) -> float:
    """What all rows take in compact form."""
    return row_bytes(plan) * float(rows)
