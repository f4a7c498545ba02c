"""`Analysis`: a fitted additive model, pooled or by level, in the one shape that tables, figures and sections read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from threading import Thread
from typing import Any, final

import numpy as np

from .._base.counts import counted, total
from .._base.threads import cores
from ..data.observations import Observations
from ..errors import hush
from ..groups.between import Crossing, crossing
from ..groups.conditions import Conditions
from ..models import Additive
from ..results.fit import Fit
from ..results.smooths import SmoothPart
from ..terms.levels import level_name

Columns = dict[str, np.ndarray]
ANGLES = ("angle", "turn")
GROUP = "group"  # the population's curve with levels; the one pooled model without


@final
@dataclass(frozen=True, eq=False)
class Analysis:
    """The fits by level (none where the model is pooled), the group's fit, and the observations behind them."""

    model: Additive
    obs: Observations
    group: Fit | None
    fits: Mapping[str, Fit] = field(default_factory=dict)
    by: str | None = None
    level: float = 0.95
    seed: int = 1  # of what the report draws itself
    mean: Callable[[str], Columns] | None = None  # label → plain mean of the separate fits
    conditions: Conditions | None = None  # compared, where there are any
    grids: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)  # label → where effects are tabulated
    failures: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    save: Callable[[str], None] | None = None
    summary: str = ""
    refit: Callable[[Observations, int], Mapping[str, Fit]] | None = None  # the same fits to other rows, with a seed
    unit: str | None = None  # of lengths, on axes
    duration: str | None = None  # the column of how long each point lasts, to be fitted beside the place
    elsewhere: Callable[[], Any] | None = None  # held-out scores that another process computes; None where it failed
    begun: dict[str, Future[Any]] = field(default_factory=dict, repr=False)  # what is computed beside the sections
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what several sections read, made once
    _effects: dict[tuple[str, str], Columns] = field(default_factory=dict, repr=False)  # each computed once

    def __repr__(self) -> str:
        levels = f", {len(self.fits)} levels of {self.by!r}" if self.fits else ""
        return f"Analysis({self.model.terms}; {counted(total(self.obs.weights), self.obs.n, 'transitions')}{levels})"

    def named(self, name: str) -> str:
        """A covariate with the unit of lengths, where it is one and the unit is known."""
        lengths = {"step", "dcenter", "x", "y", "x_prev", "y_prev", *self.obs.outcome_names}
        return f"{name} ({self.unit})" if self.unit is not None and name in lengths else name

    def unit_of(self, name: str) -> str:
        """The unit of a covariate; nothing where it is not known."""
        if name in ANGLES:
            return "rad"
        return str(self.unit) if self.named(name) != name else ""

    @property
    def all_fits(self) -> dict[str, Fit]:
        """`group` and the levels, in the order of the tables."""
        return {**({} if self.group is None else {GROUP: self.group}), **self.fits}

    @property
    def curves(self) -> dict[str, Fit]:
        """`group`, the conditions' populations as "condition=A", and the levels."""
        found = self.conditions
        compared = {} if found is None else {f"{found.between}={name}": fit for name, fit in found.fits.items()}
        return {**({} if self.group is None else {GROUP: self.group}), **compared, **self.fits}

    @property
    def main(self) -> Fit:
        """The group's fit; where there is none, the first level's."""
        return next(iter(self.all_fits.values()))

    @property
    def labels(self) -> tuple[str, ...]:
        """The terms of f."""
        return self.smooths().model_labels

    def smooths(self, which: str | None = None) -> SmoothPart:
        """The fitted terms of the group or of a level; by default those of the main fit."""
        part = (self.main if which is None else self.curves[which]).smooths
        assert part is not None  # the model is additive
        return part

    def rows(self, which: str) -> np.ndarray:
        """The observations behind a fit, as positions: all of them for the group."""
        if which == GROUP:
            return np.arange(self.obs.n)
        if self.cells is not None:
            return np.flatnonzero(self.cells.of == self.cells.names.index(which))
        return np.flatnonzero(level_rows(self.obs.group[str(self.by)], which))

    @cached_property
    def cells(self) -> Crossing | None:
        """Who was seen in which condition, where conditions were compared."""
        if self.conditions is None:
            return None
        return crossing(self.obs, self.conditions.by, self.conditions.between)

    def effect(self, label: str, which: str) -> Columns:
        """One term's effect: covariates, estimate, se, se_sampling, se_reference, lower, upper."""
        key = (label, which)
        if key not in self._effects:
            with hush():  # the common grid may reach beyond a level's data; its band says so
                self._effects[key] = self.smooths(which).effect(label, self.grids.get(label), self.level)
        return self._effects[key]

    def begin(self, key: str, work: Callable[[], Any]) -> None:
        """Compute something beside what follows, where there are cores for both; `once` waits for it."""
        if cores() < 2 or key in self.begun:
            return
        found: Future[Any] = Future()

        def run() -> None:
            try:
                found.set_result(work())
            except BaseException as error:  # raised again where it is asked for
                found.set_exception(error)

        Thread(target=copy_context().run, args=(run,), daemon=True).start()
        self.begun[key] = found

    def once(self, key: str, work: Callable[[], Any]) -> Any:
        """What was begun under this name, or else is made now, and kept."""
        if key in self.begun:
            return self.begun[key].result()
        if key not in self.kept:
            self.kept[key] = work()
        return self.kept[key]

    @property
    def smallest(self) -> str | None:
        """The level with the fewest observations, whose reference points say most about what more would bring."""
        return min(self.fits, key=lambda which: self.fits[which].n) if self.fits else None


def level_rows(column: np.ndarray, which: str) -> np.ndarray:
    """The rows whose level has this name, as a mask."""
    return column == next(value for value in np.unique(column).tolist() if level_name(value) == which)


def pooled(fit: Fit, model: Additive, obs: Observations, **more: Any) -> Analysis:
    """One model for all; `more` are fields of `Analysis`."""
    return Analysis(model, obs, fit, notes=fit.notes, save=fit.save, summary=fit.summary(), **more)


def grouped(each: Any, model: Additive, obs: Observations, level: float = 0.95, **more: Any) -> Analysis:
    """The fits of `un.fit_each`; `more` are fields of `Analysis`."""

    def mean(label: str) -> Columns:
        table = each.effect(label, which="mean", level=level)
        return {name: np.asarray(table[name]) for name in table}

    return Analysis(
        model,
        obs,
        each.group,
        each.fits,
        each.by,
        level,
        mean=mean if len(each.fits) > 1 else None,
        conditions=each.conditions,
        grids=each.grids,
        failures=each.failures,
        notes=tuple(dict.fromkeys((*obs.notes, *each.notes))),
        save=each.save,
        summary=each.summary(),
        **more,
    )
