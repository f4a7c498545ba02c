"""The additive engine on rows that are never together, on a device: made there where the parts allow it, else made here
block by block and kept there in compact form.

Rows are made on the device where the reference is uniform on a box along steps (`moved_box`), its points are one
lattice (`lattice_shift`), the covariates have values in JAX (`Traced`) and the objective is logistic. The points are
those that the engine's own road draws, so that the fit is the same. Standard errors are summed in this process, as
there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.memory import allowed
from .._base.numerics import x64
from .._base.threads import cores
from ..data.covariates.traced import Traced
from ..engine.design import Design
from ..engine.device.spec import Device, require_room
from ..engine.families import FAMILIES
from ..engine.plan import Plan
from ..engine.resources import require
from ..engine.segment import ResponseRows
from ..engine.sides import Sides
from ..errors import CombinationError
from ..models.base import LinearPart
from ..objectives.additive import SAMPLE, AdditiveProblem, Placing, firsts, may_be_labels
from ..objectives.likelihood import RowLikelihood
from ..objectives.parts import in_parts
from ..objectives.rows import Rows
from ..references.blocks import Contrasts
from .engine_rows import EngineScores
from .many_rows import Fitted, PartWalk, kept

if TYPE_CHECKING:
    from ..engine.device.chain import Chain


@final
@dataclass(frozen=True)
class MadeThere:
    """Rows of a logistic problem that a device makes."""

    problem: AdditiveProblem
    contrasts: Contrasts
    shifts: np.ndarray  # (blocks, d)
    traced: Traced
    device: Device

    @cached_property
    def chain(self) -> Chain:
        """The coordinates on the device."""
        import jax

        from ..engine.device.chain import chain

        obs, box = self.contrasts.obs, self.contrasts.reference.moved_box
        assert box is not None
        previous = tuple(f"{name}_prev" for name in obs.outcome_names)
        more = {name: obs.context[name] for name in self.traced.columns if name not in previous}
        with x64(), jax.default_device(self.device.jax):
            each = self.contrasts.each
            return chain(obs.previous(), obs.outcome, previous, more, box, self.shifts, each, self.device.jax)

    @property
    def offset(self) -> float:
        """−log q + log(n/m), the same for all rows."""
        box = self.contrasts.reference.moved_box
        assert box is not None
        return float(np.log(box[1]).sum() - np.log(self.contrasts.k))

    def sample(self) -> Placing:
        """Rows that terms are built on, as `AdditiveProblem` takes them: whole contexts spread over all, and the rows
        where a covariate is least or largest or a level is met first."""
        import jax

        from ..engine.device.chain import end_rows, some_columns

        k, n, c = self.contrasts.k, self.contrasts.obs.n, self.chain
        every = -(-self.problem.source.size // SAMPLE)
        which, ends = np.arange(0, n, every), np.zeros(0, np.int64)
        with x64(), jax.default_device(self.device.jax):
            if every > 1:
                ends = np.unique([*np.asarray(end_rows(k, self.traced, c)), *self._levels()])
            contexts = np.concatenate([which, ends // (1 + k)])
            found = some_columns(k, self.traced, c, contexts)
        i = np.concatenate([np.repeat(np.arange(which.size), 1 + k), which.size + np.arange(ends.size)])
        place = np.concatenate([np.tile(np.arange(1 + k), which.size), ends % (1 + k)])
        columns, rows = {name: v[i, place] for name, v in found.items()}, self._numbers(contexts[i], place)
        terms = self.problem.predictor(self.problem.source.block_rows(0).take(np.arange(1 + k)))[0]
        return Placing(LinearPart(terms, columns, rows.offset, None), rows, every == 1)

    def _levels(self) -> np.ndarray:
        """The first row of each level of the context's columns that may be labels, as whole numbers may."""
        read = dict(self.traced.contexts)
        columns = [self.contrasts.obs.context[read[name]] for name in self.traced.wanted if name in read]
        labels = [firsts(column) for column in columns if may_be_labels(column)]
        return (1 + self.contrasts.k) * np.concatenate([np.zeros(0, np.int64), *labels])

    def _numbers(self, at: np.ndarray, place: np.ndarray) -> Rows:
        """Rows without outcomes: observation, and number among its rows."""
        data, offset = place == 0, np.full(at.size, self.offset)
        likelihood = RowLikelihood(self.problem.cumulant, data.astype(np.float64), np.ones(at.size))
        log_q = -np.log(self.contrasts.k) - offset
        return Rows(
            np.empty((at.size, 0)), at, data, likelihood, offset, None, log_q, self.contrasts.randomisation[place]
        )

    def design(self, plan: Plan) -> tuple[Design, Sides]:
        """The rows in these forms, and their response's side."""
        from ..engine.device.cells import recipe_of
        from ..engine.device.made import known_side, made_rows

        k, n = self.contrasts.k, self.contrasts.obs.n
        recipe, shapes = recipe_of(plan.forms)
        made, held = made_rows(plan.frame, recipe, shapes, k, self.traced, self.chain, self.offset, self.device)
        return made, known_side(held.response, self.offset, n, k)


def made_there(problem: AdditiveProblem, device: Device) -> MadeThere | None:
    """The rows as a device makes them; None where it cannot."""
    contrasts, chi, obs = problem.source.contrasts, problem.normaliser.terms, problem.obs
    f = problem.model.terms
    if contrasts is None or f is None or chi is None or problem.normaliser.anchored or problem.family != "binomial":
        return None
    shifts = contrasts.shifts()
    if shifts is None or obs.weight is not None or obs.offset is not None:
        return None
    names = dict.fromkeys((*f.columns, *chi.columns))
    known = problem.model.covariates(obs)
    traced = known.traced(names, obs) if all(name in known for name in names) else None
    return None if traced is None else MadeThere(problem, contrasts, shifts, traced, device)


def placed_there(problem: AdditiveProblem, plan: Plan, parts: Any, device: Device) -> tuple[Design, Sides]:
    """Rows that are made here, block by block, and kept on the device in compact form."""
    from ..engine.device.placing import laid_out
    from ..engine.device.rows import DeviceParts

    held, used, side = [], 0, parts.sides(problem.family, None)
    for one in parts.parts.each(_same):
        part = laid_out(one.design.segments[0], one.rows, device)
        used += part.bytes
        require_room(used, part.tile, device.free)
        held.append(part.put())
    response = ResponseRows(np.empty(0), np.empty(0), np.empty(0))
    design = replace(plan.frame, elsewhere=DeviceParts(tuple(held), response), rows=problem.source.size)
    return design, replace(side, rows=response)


def _same(plan: Plan, part: Any, i: int) -> Any:
    return part


def fit_there(
    problem: AdditiveProblem, there: MadeThere | None, device: Device, fitted: Fitted, method: str, threads: int | None
) -> EngineScores:
    """As `many_rows.fit_many`, with the passes on a device."""
    from ..engine.device.error import sentence

    built, placing = problem.built
    count = cores() if threads is None else threads
    plan = problem.plan(built, placing, count)
    require(problem.family, method, plan.frame.size)
    parts = in_parts(problem, plan, replace(problem.resources, threads=threads))
    design, side = _design(problem, there, plan, parts, device)
    smoothed = fitted(design, side, built, None, False)
    code = FAMILIES[problem.family]
    said = sentence(design, side.rows, code, smoothed, device)
    smoothed = replace(smoothed, notes=(*smoothed.notes, said))
    home = parts.parts.at_home(allowed(problem.resources.memory), count)
    walk = PartWalk(problem.source, home, design.to_flat(smoothed.beta), replace(side, rows=_NONE), code)
    return EngineScores(problem, kept(problem, plan, placing, smoothed), None, walk=walk)


_NONE = ResponseRows(np.empty(0), np.empty(0), np.empty(0))  # the parts' own


def _design(
    problem: AdditiveProblem, there: MadeThere | None, plan: Plan, parts: Any, device: Device
) -> tuple[Design, Sides]:
    if there is not None:
        try:
            return there.design(plan)
        except CombinationError:  # a term that is made here only
            pass
    return placed_there(problem, plan, parts, device)
